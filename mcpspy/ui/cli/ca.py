"""`mcpspy ca`: the certificate authority (CA) of the forward proxy, and how to make programs trust it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from mcpspy.io.forward.ca import CertificateAuthority
from mcpspy.ui.cli.options import Switch, formats

EPILOG = """\
examples:
  mcpspy ca
  SSL_CERT_FILE=$(mcpspy ca --bundle) HTTPS_PROXY=http://127.0.0.1:8899 python agent.py

Creates a certificate authority on first use, whose key only you can read, and prints how
to make each runtime trust it. Installs nothing. Anyone with the key can impersonate any
server to programs that trust the CA: prefer `mcpspy exec`, which makes one program trust
it, over the system's trust store.

exit codes: 0; 2 usage error; 3 mitmproxy not installed, or files not writable
"""

HOSTS = (
    ("Claude Code", "mcpspy exec -- claude"),
    ("Codex", "mcpspy exec -- codex"),
    (
        "VS Code, Cursor",
        "quit it, then mcpspy exec -- code --wait; some parts use only the system's trust store",
    ),
    ("Claude Desktop", "its connectors run on another machine: use mcpspy bridge for such a server"),
)
"""Hosts, and how to make each of them use the proxy and trust the CA."""

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
"""Systems, and the commands that add the CA to the trust store and remove it."""

OPTIONS = (
    *(option.but(one_of="output") for option in formats("json: one object")),
    Switch("--cert", "print only the path of the CA certificate", one_of="output"),
    Switch("--bundle", "print only the path of a file with the system's CAs and this one", one_of="output"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    from mcpspy.io.extras import require

    require("mitmproxy", "ca", "mitm")
    from mcpspy.io.forward.ca import authority

    ca = authority()
    if args.cert or args.bundle:
        text = f"{ca.certificate if args.cert else ca.bundle}\n"
    elif args.format == "json":
        document = {
            "name": ca.name,
            "key": str(ca.key),
            "certificate": str(ca.certificate),
            "bundle": str(ca.bundle),
            "sha256": ca.fingerprint("SHA256"),
            "sha1": ca.fingerprint("SHA1"),
            "until": ca.until.isoformat(),
        }
        text = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2).decode()
    else:
        text = _page(ca)
    sys.stdout.write(text)
    return 0


def _page(ca: CertificateAuthority) -> str:
    from mcpspy.io.forward.child import CA_BUNDLE_VARIABLES, EXTRA_CA_VARIABLES

    width = max(map(len, (*CA_BUNDLE_VARIABLES, *EXTRA_CA_VARIABLES)))
    lines = [
        f"{ca.name}, valid until {ca.until:%Y-%m-%d}",
        "",
        f"  certificate          {ca.certificate}",
        f"  bundle               {ca.bundle} (the system's CAs and this one)",
        f"  key, keep it secret  {ca.key}",
        f"  SHA-256              {ca.fingerprint('SHA256')}",
        "",
        "To make one program trust the CA, set its environment; mcpspy exec -- COMMAND sets all of these:",
        "",
        *(f"  {name:{width}}  bundle       {users}" for name, users in CA_BUNDLE_VARIABLES.items()),
        *(f"  {name:{width}}  certificate  {users}" for name, users in EXTRA_CA_VARIABLES.items()),
        f"  {'NODE_USE_ENV_PROXY':{width}}  1            Node.js 24, and 22.21: fetch() uses HTTPS_PROXY",
        "",
        "fetch() of older Node.js does not support proxies: use mcpspy http --upstream URL instead.",
        "",
        *(f"  {host:{width}}  {instruction}" for host, instruction in HOSTS),
        "",
        "To make all programs trust it, add it to the system's trust store; mcpspy never runs these commands:",
        "",
    ]
    for system, add, remove in STORES:
        values = {"cert": ca.certificate, "sha1": ca.fingerprint("SHA1").replace(":", "")}
        lines += [
            f"  {system}",
            f"    {add.format(**values)}",
            f"    {remove.format(**values)}   (removes it)",
        ]
    return "\n".join(lines) + "\n"
