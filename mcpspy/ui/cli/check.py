"""`mcpspy check`: check sessions against a contract on calls, errors and duration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mcpspy.analysis import rows
from mcpspy.analysis.completeness import Gap, gaps
from mcpspy.analysis.contract import Contract, TermResult, check, read_call_limit, term_lines
from mcpspy.core.rules.model import seconds
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, INCOMPLETE, UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.cli.arguments import recordings
from mcpspy.ui.cli.options import FOLDER, Argument, Option, Repeated, Switch, formats
from mcpspy.ui.cli.parser import reading
from mcpspy.ui.text.terminal import Output, print_report, warn_incomplete

EPILOG = """\
examples:
  mcpspy check last --expect-tool forecast --forbid-tool 'delete_*'
  mcpspy check run.jsonl --max-calls 20 --max-calls 'search=3' --max-duration 30s
  mcpspy check recordings/ --no-errors --no-issues --format junit > check.xml

TOOL is a name, or a pattern with *, ? and [...]. SESSION is a file, a folder of
recordings, `last`, a session name, or the beginning of a session id (default: last).
docs/check.md defines calls, errors and issues.

exit codes: 0 every session meets every term; 1 a term is not met; 2 usage error or not a
recording; 3 file not readable; 4 every term is met as far as recorded, but a recording is
incomplete
"""

_CALLS = reading(read_call_limit, "use 20 or search=3", "invalid value")
_TIME = reading(seconds, "use 30s, 500ms or 5min", "invalid value")

OPTIONS = (
    Argument("sessions", "SESSION", "sessions to check (default: last)", nargs="*"),
    Repeated("--expect-tool", "TOOL", "require a call of this tool"),
    Repeated("--forbid-tool", "TOOL", "allow no call of this tool"),
    Repeated("--max-calls", "[TOOL=]N", "allow at most N calls, of all tools or of this one", read=_CALLS),
    Option("--max-duration", "TIME", "allow at most this time from the start to the last message: 30s, 5min",
        read=_TIME),
    Switch("--no-errors", "require a result without an error for each request"),
    Switch("--no-issues", "allow no message with a protocol issue (filter is:issue)"),
    *formats("json: one object; junit: XML", "json", "junit"),
    FOLDER,
)  # fmt: skip


CheckedSession = tuple[str, list[TermResult], list[Gap]]
"""Title, results of the terms, and gaps of the recording."""


def main(args: argparse.Namespace) -> int:
    contract = _contract(args)
    checked: list[CheckedSession] = []
    for title, path in recordings(args.sessions, args.dir):
        recording = Recording(path)
        state, session = recording.state, recording.session()
        torn = 0 if state is RecordingState.LIVE else recording.torn
        missing = gaps(session, torn=torn, is_cut=state is RecordingState.DIED)
        # The terms are about calls: a list with pages that no one requested changes none of them.
        checked.append((title, check(session, contract), [gap for gap in missing if not gap.is_listing]))
        warn_incomplete(path, recording.torn)
    if args.format == "text":
        _print(checked)
    else:
        from mcpspy.ui.report.junit import contract_junit

        print_report(_json(checked) if args.format == "json" else contract_junit(checked))
    if not all(_is_met(results) for _, results, _ in checked):
        return FINDINGS
    return INCOMPLETE if any(missing for *_, missing in checked) else 0


def _contract(args: argparse.Namespace) -> Contract:
    contract = Contract(
        expect_tools=tuple(args.expect_tool),
        forbid_tools=tuple(args.forbid_tool),
        max_calls=tuple(args.max_calls),
        max_duration=args.max_duration,
        no_errors=args.no_errors,
        no_issues=args.no_issues,
    )
    if contract == Contract():
        raise UsageError("check: nothing to check", "add --expect-tool TOOL, --no-errors or another term")
    return contract


def _print(checked: Sequence[CheckedSession]) -> None:
    output = Output()
    for title, results, missing in checked:
        output.line(sanitize(title))
        output.lines(term_lines(results))
        for gap in missing:
            output.line(sanitize(f"  incomplete: {gap.text}"), rows.OPEN)
    terms = [result.is_met for _, results, _ in checked for result in results]
    failed = terms.count(False)
    of = f"{len(terms)} {'term' if len(terms) == 1 else 'terms'}"
    output.line(f"{failed} of {of} not met" if failed else f"{of} met", rows.BAD if failed else rows.OK)


def _json(checked: Sequence[CheckedSession]) -> str:
    import json

    sessions = [
        {
            "session": title,
            "ok": _is_met(results),
            "incomplete": [sanitize(gap.text) for gap in missing],
            "terms": [*map(_term, results)],
        }
        for title, results, missing in checked
    ]
    return json.dumps({"ok": all(each["ok"] for each in sessions), "sessions": sessions}, indent=2) + "\n"


def _is_met(results: Sequence[TermResult]) -> bool:
    return all(result.is_met for result in results)


def _term(result: TermResult) -> dict[str, Any]:
    evidence = [{"t": one.at, "text": one.text} for one in result.evidence]
    return {"term": result.term, "ok": result.is_met, "found": result.found, "evidence": evidence}
