"""`mcpspy ca`: the certificate authority of the forward proxy, and how programs are made to trust it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from mcpspy.io.forward.ca import CertificateAuthority
from mcpspy.ui.cli.options import describe

EPILOG = """\
examples:
  mcpspy ca
  SSL_CERT_FILE=$(mcpspy ca --bundle) HTTPS_PROXY=http://127.0.0.1:8899 python agent.py

Makes a certificate authority of this user's own the first time (its key is readable by
nobody else), and says how each runtime is made to trust it. Installs nothing. Who has
its key can speak for any host to whoever trusts it: prefer `mcpspy exec`, which makes
one program trust it, to the system's store.

exit codes: 0; 2 usage; 3 mitmproxy is not installed, or the files cannot be written
"""

HOSTS = (
    ("Claude Code", "mcpspy exec -- claude"),
    ("Codex", "mcpspy exec -- codex"),
    (
        "VS Code, Cursor",
        "quit it, then mcpspy exec -- code --wait; some of it trusts the system's store only",
    ),
    ("Claude Desktop", "its connectors do not pass this machine: mcpspy bridge brings it such a server"),
)
"""Hosts, and how to make each use the proxy and trust the authority."""

STORES = (
    (
        "Debian, Ubuntu",
        "sudo cp {cert} /usr/local/share/ca-certificates/mcpspy.crt && sudo update-ca-certificates",
        "sudo rm /usr/local/share/ca-certificates/mcpspy.crt && sudo update-ca-certificates --fresh",
    ),
    (
        "Fedora, RHEL",
        "sudo cp {cert} /etc/pki/ca-trust/source/anchors/mcpspy.pem && sudo update-ca-trust",
        "sudo rm /etc/pki/ca-trust/source/anchors/mcpspy.pem && sudo update-ca-trust",
    ),
    (
        "macOS",
        "security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db {cert}",
        "security delete-certificate -Z {sha1} ~/Library/Keychains/login.keychain-db",
    ),
    ("Windows", "certutil -user -addstore Root {cert}", "certutil -user -delstore Root {sha1}"),
)
"""Systems, and the commands that add the authority to the store and remove it."""


def configure(parser: argparse.ArgumentParser) -> None:
    forms = {
        "--json": (None, "print where it is and what it is as one JSON object"),
        "--cert": (None, "print the path of its certificate, and no more"),
        "--bundle": (None, "print the path of the system's authorities and it in one file"),
    }
    describe(parser.add_mutually_exclusive_group(), forms)


def main(args: argparse.Namespace) -> int:
    from mcpspy.io.forward.proxy import require_mitmproxy

    require_mitmproxy("ca")
    from mcpspy.io.forward.ca import authority

    ca = authority()
    if args.cert or args.bundle:
        text = f"{ca.certificate if args.cert else ca.bundle}\n"
    elif args.json:
        text = orjson.dumps(_document(ca), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2).decode()
    else:
        text = _page(ca)
    sys.stdout.write(text)
    return 0


def _document(ca: CertificateAuthority) -> dict[str, str]:
    return {
        "name": ca.name,
        "key": str(ca.key),
        "certificate": str(ca.certificate),
        "bundle": str(ca.bundle),
        "sha256": ca.fingerprint("SHA256"),
        "sha1": ca.fingerprint("SHA1"),
        "until": ca.until.isoformat(),
    }


def _page(ca: CertificateAuthority) -> str:
    from mcpspy.io.forward.child import CA_BUNDLE_VARIABLES, EXTRA_CA_VARIABLES

    width = max(map(len, (*CA_BUNDLE_VARIABLES, *EXTRA_CA_VARIABLES)))
    lines = [
        f"{ca.name}, until {ca.until:%Y-%m-%d}",
        "",
        f"  its certificate          {ca.certificate}",
        f"  the system's and it      {ca.bundle}",
        f"  its key, for you alone   {ca.key}",
        f"  SHA-256                  {ca.fingerprint('SHA256')}",
        "",
        "One program is made to trust it by its environment; mcpspy exec -- COMMAND sets all of these:",
        "",
        *(f"  {name:{width}}  the system's and it   {who}" for name, who in CA_BUNDLE_VARIABLES.items()),
        *(f"  {name:{width}}  its certificate       {who}" for name, who in EXTRA_CA_VARIABLES.items()),
        f"  {'NODE_USE_ENV_PROXY':{width}}  1                     Node.js 24, and 22.21: fetch() heeds HTTPS_PROXY",
        "",
        "fetch() of older Node.js takes no proxy: mcpspy http --upstream URL goes in front of the server instead.",
        "",
        *(f"  {host:{width}}  {how}" for host, how in HOSTS),
        "",
        "All programs trust it through the system's store; mcpspy runs none of this:",
        "",
    ]
    for system, add, remove in STORES:
        values = {"cert": ca.certificate, "sha1": ca.fingerprint("SHA1").replace(":", "")}
        lines += [f"  {system}", f"    {add.format(**values)}", f"    {remove.format(**values)}   (and out)"]
    return "\n".join(lines) + "\n"
