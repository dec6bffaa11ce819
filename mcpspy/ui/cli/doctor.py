"""`mcpspy doctor`: try what a host would do to connect to a server, step by step."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.analysis import rows
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, McpspyError, UsageError
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.ui.cli.arguments import read_endpoint, read_headers_of
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    COMMAND,
    FOLDER,
    HEADERS,
    REDACTION,
    Argument,
    Option,
    Repeated,
    Switch,
    duration,
    formats,
    only_with,
)
from mcpspy.ui.cli.parser import recorded
from mcpspy.ui.text.terminal import Output, print_json

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget
    from mcpspy.io.doctor import Examination, Step
    from mcpspy.io.hosts.configuration import ConfigTarget

TAKES_OPTIONS_ANYWHERE = True

EPILOG = """\
examples:
  mcpspy doctor                                every server of every host
  mcpspy doctor claude-desktop/weather
  mcpspy doctor -- python weather.py
  mcpspy doctor --url https://example.com/mcp
  mcpspy doctor claude-desktop --ask

Does what the host would do, and prints each step: ✓ if it holds, ! if it holds although the server
violates the protocol, ✗ if it breaks, - if it was not tried. Then the cause, as mcpspy explain names
it. A server of a host gets only the variables that hosts pass on, and those of its entry. The
sessions are recorded with the origin `doctor`.

It starts only commands that are in a configuration or on the command line.

exit codes: 0 every step holds; 1 a step breaks; 2 usage error; 3 a configuration is not readable
"""

TIMEOUT = 30.0

UNREADABLE = 3
"""Exit code if a configuration cannot be read."""

REFUSED = ("result-rejected", "tool-dropped")
"""Causes for which a host refuses a response that has arrived: a list that mcpspy can read fails there."""

AT_ONCE = 4
"""Servers that are tried at the same time."""

OPTIONS = (
    Argument("entry", "HOST[/SERVER]", "a host, or one of its servers (default: every host)", nargs="?",
        excludes=(COMMAND, "--url")),
    Argument("command", COMMAND, "the server to start, and its arguments", nargs="*", excludes=("--url",)),
    Option("--url", "URL", "URL of a server: http:// or https://"),
    *only_with("--url", HEADERS),
    *(option.but(requires="--url") for option in CERTIFICATES),
    Option("--call", "TOOL", "also call this tool"),
    Repeated("--argument", "NAME=VALUE", "--call: an argument of the tool; a value is JSON if it parses as JSON",
        requires="--call"),
    Switch("--ask", "show each command or URL, and ask before it is used"),
    Option("--timeout", "TIME", "time to wait for each response: 30, 500ms, 5min (default: 30)",
        read=duration, default=TIMEOUT),
    FOLDER,
    *REDACTION,
    *formats("json: one object for each server"),
)  # fmt: skip


class Patient(NamedTuple):
    """A server to examine."""

    host: str
    name: str
    target: ServerTarget | None
    trouble: str = ""
    """The reason why the entry cannot be used."""
    configuration: str = ""
    """The file."""
    mistakes: tuple[str, ...] = ()
    """Those in the entry, or in the file, that the host does not report."""
    is_unreadable: bool = False
    """True if the file cannot be read."""


def main(args: argparse.Namespace) -> int:
    found = _patients(args)
    if args.ask:
        found = [each for each in found if _wants(each)]
    if not found:
        raise UsageError(
            "doctor: no server to examine", "name a command, a URL or a host; mcpspy hosts lists them"
        )
    examined = asyncio.run(_examine_all(found, args))
    output = Output()
    for patient, examination in examined:
        if args.format == "json":
            print_json(_document(patient, examination))
        else:
            _print(output, patient, examination, is_short=len(examined) > 1)
    if any(patient.is_unreadable for patient, _ in examined):
        return UNREADABLE
    return FINDINGS if any(each.broken for _, each in examined) else 0


def _patients(args: argparse.Namespace) -> list[Patient]:
    from mcpspy.io.client import ServerAddress, ServerCommand

    if args.command:
        return [Patient("", "", ServerCommand(args.command))]
    if args.url is not None:
        host = read_endpoint("--url", args.url).host
        sent = read_headers_of(args.header, args.header_env)
        return [Patient("", host, ServerAddress(args.url, sent, args.cacert, args.insecure))]
    from mcpspy.io.hosts import HOSTS
    from mcpspy.io.hosts.configuration import find, target

    if args.entry is not None:
        host, _, name = args.entry.partition("/")
        if Path(args.entry).is_file():
            host, name = args.entry, ""
        try:
            configuration = find(host)
        except McpspyError as error:
            path = next((path for known in HOSTS if known.name == host for path in known.paths()), None)
            if path is None or not path.exists():
                raise
            return [Patient(host, name, None, str(error), is_unreadable=True)]
        found = _of_host(host, configuration)
        chosen = [each for each in found if name in ("", each.name) or each.is_unreadable]
        if not chosen and (wrong := _misplaced(configuration)):
            return [Patient(host, name, None, "; ".join(wrong))]
        if not chosen:
            names = ", ".join(each.name for each in found) or "none"
            raise UsageError(
                sanitize(f"doctor: {host}: no server {name}".rstrip()), sanitize(f"it has {names}")
            )
        return chosen
    every: list[Patient] = []
    for known in HOSTS:
        if any(path.exists() for path in known.paths()):
            try:
                configuration = target(known)
            except McpspyError as error:
                every.append(Patient(known.name, "", None, str(error), is_unreadable=True))
                continue
            of_host = _of_host(known.name, configuration)
            if not of_host and (wrong := _misplaced(configuration)):
                of_host = [Patient(known.name, "", None, "; ".join(wrong))]
            every += of_host
    return every


def _misplaced(configuration: ConfigTarget) -> list[str]:
    """Return the mistakes because of which a file has no server for its host."""
    from mcpspy.io.hosts import HOSTS
    from mcpspy.io.hosts.configuration import ignored_files

    found = [(configuration.file.path, each) for each in configuration.mistakes()]
    for host in HOSTS:  # A file of a project may be in the user's folder.
        if configuration.host is not None and host.product == configuration.product:
            found += ignored_files(host)
    return [f"{where}, line {each.line}: {each.text}; {each.fix}" for where, each in found]


def _of_host(host: str, configuration: ConfigTarget) -> list[Patient]:
    from mcpspy.io.client import ServerCommand
    from mcpspy.io.client.host_entry import target_of

    found = []
    where = str(configuration.file.path)
    try:
        mistakes, entries = configuration.mistakes(), configuration.servers()
    except McpspyError as error:
        text = str(error)
        trouble = text if text.startswith(where) else f"{where}: {text}"
        return [Patient(host, "", None, trouble, where, is_unreadable=True)]
    for entry in entries:
        if entry.disabled:
            continue
        try:
            target = target_of(configuration, entry)
        except McpspyError as error:
            found.append(Patient(host, entry.name, None, str(error), where))
            continue
        if isinstance(target, ServerCommand):
            target = target._replace(is_bare=True)
        own = tuple(
            f"{where}, line {each.line}: {each.text}; {each.fix}"
            for each in mistakes
            if each.server in ("", entry.name)
        )
        found.append(Patient(host, entry.name, target, configuration=where, mistakes=own))
    return found


def _wants(patient: Patient) -> bool:
    if patient.target is None:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("doctor: --ask needs a terminal", "leave it out")
    sys.stderr.write(sanitize(f"{patient.host} {patient.name}: {patient.target.shown}: try it? [y/n] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower().startswith("y")


async def _examine_all(
    patients: list[Patient], args: argparse.Namespace
) -> list[tuple[Patient, Examination]]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(patient: Patient) -> tuple[Patient, Examination]:
        async with turns:
            return patient, await _examine(patient, args)

    return await asyncio.gather(*map(one, patients))


async def _examine(patient: Patient, args: argparse.Namespace) -> Examination:
    from mcpspy.io.doctor import CONNECTING, STARTING, TALKING, Examination, examine
    from mcpspy.ui.cli.arguments import read_parameters

    found = Examination()
    if patient.target is None:
        found.add("configuration", patient.trouble, holds=False)
        found.skip(*(CONNECTING if "http" in patient.trouble else STARTING), *TALKING)
        return found
    if patient.configuration:
        found.add(
            "configuration", "; ".join(patient.mistakes) or patient.configuration, holds=not patient.mistakes
        )
    where = recorded(RecordingTarget(), args, (FOLDER, *REDACTION))
    call = None if args.call is None else (args.call, read_parameters(args.argument) or {})
    await examine(found, patient.target, patient.name, where, seconds=args.timeout, call=call)
    if found.broken is None and (cause := _cause(found)) is not None and cause.code in REFUSED:
        found.fail("call" if cause.title.startswith("tools/call") else "lists", cause.title)
    return found


def _cause(examination: Examination) -> Any:
    from mcpspy.ui.report.explanation import first_cause

    return None if examination.path is None else first_cause(Path(examination.path))


def _print(output: Output, patient: Patient, examination: Examination, *, is_short: bool) -> None:
    """Print the steps; of several servers those that hold in one line."""
    broken = examination.broken
    title = " ".join(filter(None, (patient.host, patient.name)))
    if title or is_short:
        state = "✓" if broken is None else "✗"
        last = examination.steps[-1].text if broken is None else f"{broken.name}: {broken.text}"
        output.line(
            sanitize(f"{state} {title}  {last if is_short else ''}".rstrip()),
            rows.OK if broken is None else rows.BAD,
        )
    if not is_short or broken is not None or any(step.is_warned for step in examination.steps):
        for step in examination.steps:
            mark, tone = _mark(step)
            output.line(sanitize(f"  {mark} {step.name:<13}  {redacted_text(step.text)}"), tone)
    if (cause := _cause(examination)) is not None:
        output.line(
            sanitize(f"  {'cause' if broken else 'seen'}: {cause.title}"), rows.BAD if broken else rows.OPEN
        )
        output.line(sanitize(f"  next: {cause.next_step}"), rows.QUIET)


def _mark(step: Step) -> tuple[str, str | None]:
    if step.is_warned:
        return "!", rows.ISSUE
    return {True: ("✓", None), False: ("✗", rows.BAD), None: ("-", rows.QUIET)}[step.holds]


def _document(patient: Patient, examination: Examination) -> dict[str, Any]:
    cause = _cause(examination)
    return {
        "host": patient.host or None,
        "server": patient.name or None,
        "ok": examination.broken is None,
        "steps": [{**step._asdict(), "text": redacted_text(step.text)} for step in examination.steps],
        "cause": None
        if cause is None
        else {"code": cause.code, "title": cause.title, "next": cause.next_step},
        "recording": examination.path,
    }
