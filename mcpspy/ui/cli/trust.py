"""`mcpspy trust`: review what a server offers, and keep it in a lockfile."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from mcpspy.analysis import rows
from mcpspy.analysis.completeness import Gap, gaps, unseen_lists
from mcpspy.analysis.diff import ChangeSeverity, SessionDiff
from mcpspy.analysis.lint import Finding
from mcpspy.analysis.trust import compare, interface_of, security_findings
from mcpspy.core.counted import counted
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.core.trust.lock import TrustedServer, find, read_lock
from mcpspy.errors import FINDINGS, INCOMPLETE, UsageError
from mcpspy.io.client import ServerAddress, ServerCommand
from mcpspy.io.lockfile import ServerIdentity, read_text, updated
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.cli.arguments import session_path
from mcpspy.ui.cli.options import COMMAND, FOLDER, Argument, Option, Switch, duration
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.lint_scan import visible
from mcpspy.ui.text.terminal import Output, print_report

EPILOG = """\
examples:
  mcpspy trust -- python weather.py
  mcpspy trust last
  mcpspy trust --check -- python weather.py
  mcpspy trust --check --format junit --url http://localhost:3001/mcp > trust.xml

Prints the changes since the last review, with the security findings of mcpspy lint, and
writes the lockfile. With --check, it writes nothing. SESSION is a file, `last`, a session
name, or the beginning of a session id. docs/trust.md describes the lockfile.

exit codes: 0 written, or unchanged; 1 --check: different or not in the lockfile; 2 usage
error or invalid lockfile; 3 the server cannot be reached, or a file is not readable;
4 --check: unchanged as far as seen, but the session does not show everything
"""

OPTIONS = (
    Argument("session", "SESSION", "a session with the server", nargs="?"),
    Argument("command", COMMAND, "the server to start, and its arguments", nargs="*"),
    Option("--lock", "FILE", "the lockfile (default: mcp.lock)", default="mcp.lock"),
    Option("--url", "URL", "URL of a running server"),
    Option("--name", "NAME", "name in the lockfile (default: the name of the session)"),
    Switch("--resources", "also keep the list of resources"),
    Switch("--check", "write nothing, and exit 1 if the server differs from the lockfile"),
    Option("--timeout", "TIME", "time limit of listing: 30, 5min (default: 60)", read=duration, default=60.0),
    Option("--format", None, "--check: output format (default: text)",
        choices=["text", "json", "junit", "sarif"], default="text", requires="--check"),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if (args.session is not None) + bool(args.command) + (args.url is not None) != 1:
        raise UsageError("trust: name one server", "use SESSION, --url URL, or -- COMMAND")
    session = _session(args)
    found, header = interface_of(session), session.header
    file = Path(args.lock)
    text = read_text(file)
    if not args.check and not args.resources:
        found.items.pop("resources", None)
    name = args.name or (header and header.name) or "server"
    identity = ServerIdentity(name)
    if header is not None:
        identity = ServerIdentity(name, command=header.command, cwd=header.cwd, url=header.upstream or "")
    known = find(read_lock(text, args.lock), identity.names)
    if not found.items and not (args.check and known):
        subject = "the server" if args.session is None else args.session
        raise UsageError(
            sanitize(f"trust: {subject} lists nothing, so there is nothing to trust"),
            "use a session in which the host lists the tools, or mcpspy trust -- COMMAND",
        )
    if known is None and args.check and not file.exists():
        raise UsageError(f"{args.lock}: no such lockfile", "write it with mcpspy trust, without --check")
    if known is None and args.check:
        raise UsageError(f"{args.lock}: no entry for {identity}", "add it with mcpspy trust, without --check")
    difference = compare(
        known or TrustedServer(listed=tuple(found.items), items={m: {} for m in found.items}), found
    )
    findings = security_findings(session)
    programs = [] if known is None else identity.changes(known, found.server)
    missing = [] if known is None else [*_gaps(args, session), *unseen_lists(known, found)]
    if args.check and args.format != "text":
        _write_report(args, difference, programs, name, missing)
    else:
        _print(difference, findings, programs, is_new=known is None)
    if args.check:
        if args.format == "text":
            Output().lines((sanitize(f"incomplete: {gap.text}"), rows.OPEN) for gap in missing)
        if not difference.is_same(ChangeSeverity.NOTE):
            return FINDINGS
        return INCOMPLETE if missing else 0
    from mcpspy.io.recording.atomic import save

    listed = [
        each.member
        for method, each in LISTINGS.items()
        if (each.member != "resources" or args.resources)
        and (method not in EXTENSION_LISTINGS or each.member in found.items)
    ]
    save(file, [updated(text, name, found, identity, listed=listed)], force=True)
    Output().line(sanitize(f"{args.lock}: {name} is trusted as listed"), rows.OK)
    return 0


def _gaps(args: argparse.Namespace, session: Session) -> list[Gap]:
    """Return the gaps of the session. The lists are those of the lockfile, so `unseen_lists` has the gaps in them."""
    if args.session is None:
        return []
    recording = Recording(session_path(args.session, args.dir))
    found = gaps(session, is_cut=recording.state is RecordingState.DIED)
    return [gap for gap in found if not gap.is_listing]


def _session(args: argparse.Namespace) -> Session:
    if args.session is not None:
        return Recording(session_path(args.session, args.dir)).session()
    from mcpspy.io.listing import listed

    target = ServerAddress(args.url) if args.url else ServerCommand(args.command)
    return asyncio.run(listed(target, args.timeout))


def _print(difference: SessionDiff, findings: list[Finding], programs: list[str], *, is_new: bool) -> None:
    output = Output()
    for line in programs:
        output.line(sanitize(line), rows.QUIET)
    for case in difference.changed:
        output.line(diff_report.about(case))
        for change in case.changes:
            output.line(
                f"  {diff_report.change_heading(change)}",
                rows.BAD if change.severity is ChangeSeverity.BREAKING else None,
            )
    for finding in findings:
        output.line(f"  {finding.code} {finding.severity}: {visible(finding.message)}", rows.BAD)
    count = sum(len(case.changes) for case in difference.cases)
    if is_new:
        output.line("not in the lockfile yet")
    text = f"{counted(count, 'change')}, {counted(len(findings), 'security finding')}"
    output.line(text if count or findings else "no changes")


def _write_report(
    args: argparse.Namespace, difference: SessionDiff, programs: list[str], name: str, missing: list[Gap]
) -> None:
    gaps_found = [f"incomplete: {sanitize(gap.text)}" for gap in missing]
    if args.format == "junit":
        from mcpspy.ui.report.junit import diff_junit

        text = diff_junit(
            difference, (args.lock, name), fail_on=ChangeSeverity.NOTE, notes=[*programs, *gaps_found]
        )
    elif args.format == "sarif":
        from mcpspy.ui.report.lint import trust_sarif

        text = trust_sarif(difference, programs, args.lock, gaps_found)
    else:
        import json

        changes = [
            {
                "method": case.method,
                "severity": str(change.severity),
                "pointer": change.pointer,
                "why": change.why,
            }
            for case, change in difference.changes
        ]
        report = {"server": name, "same": not changes, "changes": changes, "programs": programs}
        report["incomplete"] = [sanitize(gap.text) for gap in missing]
        text = json.dumps(report, indent=2) + "\n"
    print_report(text)
