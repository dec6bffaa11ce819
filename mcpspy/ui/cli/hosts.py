"""`mcpspy hosts`: list the MCP hosts on this machine, their servers, and which are wrapped."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.mistakes import Mistake
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry
from mcpspy.core.redact.display import REDACTED, redacted_command, redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.outcome import TROUBLE, verdict_tone
from mcpspy.errors import McpspyError
from mcpspy.io.hosts import HOSTS, Host
from mcpspy.io.hosts.configuration import ConfigTarget, ignored_files, target
from mcpspy.io.hosts.last_session import SessionsByName
from mcpspy.io.recording.listed_session import ListedSession
from mcpspy.io.recording.redaction import RedactionOptions, display_rules
from mcpspy.ui.cli.options import Option, Switch, formats
from mcpspy.ui.text.terminal import Output, columns, print_json

if TYPE_CHECKING:
    from mcpspy.core.redact.config import RedactionRules

EPILOG = """\
examples:
  mcpspy hosts
  mcpspy hosts --all
  mcpspy hosts --format json | jq -r '.servers[] | select(.last.verdict == "crashed") | .last.path'

Lists hosts that have a configuration file, including the project in the current folder.
The last session of a server is live, fine, or had errors or unanswered requests; or the
server never started, never answered, refused the host or crashed, or mcpspy was killed:
below it, the first cause that mcpspy explain finds. A warning is a mistake in the file that
the host does not report: a value that it does not replace, a file that it does not read.

exit code: 0, also with warnings and with files that cannot be read
"""


OPTIONS = (
    Switch("--all", "also list hosts without a configuration file, with its expected path"),
    Option("--dir", "DIR", "sessions folder for servers whose entry does not set one"),
    *formats("json: one object per host"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    sessions = SessionsByName()
    output = Output()
    rules = display_rules(RedactionOptions())
    shown = 0
    for host in HOSTS:
        found = _read(host)
        if found is None and not args.all and not ignored_files(host):
            continue
        shown += 1
        document = _document(host, found, sessions, args.dir, rules)
        if args.format == "json":
            print_json(document)
        else:
            _print(output, document)
    if not shown and args.format == "text":
        output.line("No host configuration found. mcpspy hosts --all lists the expected paths.")
        output.line("  mcpspy wrap FILE   wraps the servers of any other configuration file")
    return 0


def _read(host: Host) -> ConfigTarget | McpspyError | None:
    """Return a host's configuration, the error if it is not readable, or None if it does not exist."""
    if not any(os.path.lexists(path) for path in host.paths()):
        return None
    try:
        return target(host)
    except McpspyError as error:
        return error


def _document(
    host: Host,
    found: ConfigTarget | McpspyError | None,
    sessions: SessionsByName,
    folder: str | None,
    rules: RedactionRules | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "host": host.name,
        "title": host.title,
        "path": os.path.abspath(found.file.path if isinstance(found, ConfigTarget) else host.paths()[0]),
        "docs": host.docs,
        "installed": found is not None,
        "trouble": str(found) if isinstance(found, McpspyError) else None,
        "servers": [],
        "warnings": [],
    }
    if isinstance(found, ConfigTarget):
        try:
            document["servers"] = [_server(server, sessions, folder, rules) for server in found.servers()]
            document["warnings"] = [_warning(found.file.path, mistake) for mistake in found.mistakes()]
        except McpspyError as error:
            document["trouble"] = str(error)
    document["warnings"] += [_warning(path, mistake) for path, mistake in ignored_files(host)]
    return document


def _warning(path: Path, mistake: Mistake) -> dict[str, Any]:
    return {"path": os.path.abspath(path), **mistake._asdict()}


def _server(
    server: ServerEntry, sessions: SessionsByName, folder: str | None, rules: RedactionRules | None
) -> dict[str, Any]:
    wrapped = server.proxy
    last = None
    is_gone = False
    if wrapped is not None:
        name = wrapped.option("--name")
        last = sessions.last(name, wrapped.option("--dir") or folder) if name else None
        program = server.argv[0]
        is_gone = os.path.isabs(program) and not os.path.exists(program)
    command = server.argv if wrapped is None else server.argv[wrapped.at :]
    return {
        "name": server.name,
        "type": str(server.what),
        "command": redacted_command(command, rules) if server.what is EntryKind.STDIO else None,
        "url": _shown_url(server.url, rules) if server.what is EntryKind.URL else None,
        "why": server.why or None,
        "disabled": server.disabled,
        "wrapped": wrapped is not None,
        "mcpspy_is_gone": is_gone,
        "last": _session(last) if last is not None else None,
    }


def _shown_url(url: str, rules: RedactionRules | None) -> str:
    """Return a URL, redacted, and without the values of its query: a key there may have any name."""
    return re.sub(r"([?&][^=&#]*=)[^&#]*", rf"\1{REDACTED}", redacted_url(url, rules))


def _session(last: ListedSession) -> dict[str, Any]:
    summary = last.summary
    fields = summary.exit.fields if summary.exit is not None else {}
    return {
        "verdict": last.verdict,
        "words": last.words,
        "exit": fields.get("code"),
        "signal": fields.get("signal"),
        "id": summary.header.id,
        "started": summary.header.started,
        "path": str(summary.path),
        "cause": _cause(summary.path) if last.verdict in TROUBLE else None,
    }


def _cause(path: Path) -> str | None:
    """Return the first cause that `mcpspy explain` finds, in a sentence."""
    from mcpspy.ui.report.explanation import first_cause

    cause = first_cause(path)
    return None if cause is None else cause.title


def _print(output: Output, host: dict[str, Any]) -> None:
    output.line(sanitize(f"{host['host']}  {host['path']}"), None if host["installed"] else rows.QUIET)
    if host["trouble"]:
        output.line(sanitize(f"  {host['trouble']}"), rows.BAD)
    servers = host["servers"]
    width = max((len(sanitize(server["name"])) for server in servers), default=0)
    for server in servers:
        last = server["last"]
        tone = verdict_tone(last["verdict"]) if last else None if server["wrapped"] else rows.QUIET
        if server["mcpspy_is_gone"]:
            tone = rows.BAD
        state = "wrapped" if server["wrapped"] else ""
        cells = [f"  {sanitize(server['name'])}", state, _outcome(server), sanitize(_command(server))]
        output.line(columns(cells, (min(width, 30) + 2, 7, 32, 0)), tone)
        if last and last["cause"] and not server["mcpspy_is_gone"]:
            output.line(f"    {last['cause']}", rows.BAD)
        for warning in host["warnings"]:
            if warning["server"] == server["name"]:
                output.line(f"    warning: {warning_text(warning)}", rows.ISSUE)
    for warning in host["warnings"]:
        if warning["server"] not in {server["name"] for server in servers}:
            other = "" if warning["path"] == host["path"] else f"{warning['path']}: "
            output.line(f"  warning: {sanitize(other)}{warning_text(warning)}", rows.ISSUE)


def warning_text(warning: dict[str, Any]) -> str:
    """Return a mistake in one line: the place, what is wrong, and the fix."""
    place = f"{warning['place']}: " if warning["place"] else ""
    return sanitize(f"line {warning['line']}: {place}{warning['text']}; {warning['fix']}")


def _outcome(server: dict[str, Any]) -> str:
    last = server["last"]
    if server["mcpspy_is_gone"]:
        return "mcpspy not found"
    if last is None:
        return "no session yet" if server["wrapped"] else ""
    return str(last["words"])


def _command(server: dict[str, Any]) -> str:
    off = "(disabled) " if server["disabled"] else ""
    return off + str(" ".join(server["command"]) if server["command"] else server["url"] or server["why"])
