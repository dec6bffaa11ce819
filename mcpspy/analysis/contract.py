"""Contracts on the calls, errors and duration of a session.

A contract states, for example, which tools a client must not call. `check` compares a session with it; `mcpspy check`
and the pytest plugin print the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Failure
from mcpspy.core.protocol.spec import METHOD_NOT_FOUND
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change, Session, is_injected

CALL = "tools/call"


class CallLimit(NamedTuple):
    """A maximum number of calls of the tools that match `tool`, a pattern with `*`, `?` and `[…]`."""

    tool: str
    most: int


class Contract(Struct, frozen=True, kw_only=True):
    """Terms that a session must meet. A tool is given by its name or by a pattern, as in `fnmatch`."""

    expect_tools: tuple[str, ...] = ()
    """Each is called at least once."""
    forbid_tools: tuple[str, ...] = ()
    """None is called."""
    max_calls: tuple[CallLimit, ...] = ()
    max_duration: float | None = None
    """Seconds from the start of the session to its last message."""
    no_errors: bool = False
    """Every request gets a result, and no tool reports an error."""
    no_issues: bool = False
    """No message has a protocol issue (the filter `is:issue`)."""


class Evidence(NamedTuple):
    """A message that breaks a term."""

    at: float
    """Seconds since the session's start."""
    text: str


class TermResult(NamedTuple):
    term: str
    """The term as an option of `mcpspy check`, without its dashes: `forbid-tool delete_*`."""
    is_met: bool
    found: str
    """A summary of the session: `2 calls`."""
    evidence: Sequence[Evidence] = ()


def read_call_limit(text: str) -> CallLimit:
    """Return the limit of `20`, for all tools together, or of `search=3`; raise ValueError."""
    tool, equals, number = text.rpartition("=")
    if not number.isdecimal() or not number.isascii() or (equals and not tool):
        raise ValueError("not a number of calls")
    return CallLimit(tool or "*", int(number))


def check(session: Session, contract: Contract) -> list[TermResult]:
    """Return a result for each term of the contract, in the order of its members."""
    return list(_results(session, contract))


def _results(session: Session, contract: Contract) -> Iterator[TermResult]:
    # An answer to `input_required` continues its call (2026-07-28), and mcpspy's own calls are not the client's.
    calls = [
        exchange
        for exchange in session.exchanges
        if exchange.request.method == CALL
        and exchange.continues is None
        and exchange.request.frame.by is None
    ]
    names = Counter(exchange.request.subject or "" for exchange in calls)
    for pattern in contract.expect_tools:
        count = len(_matching(calls, pattern))
        others = ", ".join(sorted(names)) or "none"
        found = _counted(count, "call") if count else f"no call; called tools: {others}"
        yield TermResult(f"expect-tool {pattern}", count > 0, found)
    for pattern in contract.forbid_tools:
        matching = _matching(calls, pattern)
        yield TermResult(
            f"forbid-tool {pattern}", not matching, _counted(len(matching), "call"), _shown(matching)
        )
    for tool, most in contract.max_calls:
        matching = _matching(calls, tool)
        term = f"max-calls {most}" if tool == "*" else f"max-calls {tool}={most}"
        yield TermResult(
            term, len(matching) <= most, _counted(len(matching), "call"), _shown(matching[most:])
        )
    if (limit := contract.max_duration) is not None:
        took = _duration(session)
        yield TermResult(f"max-duration {rows.duration(limit)}", took <= limit, rows.duration(took))
    if contract.no_errors:
        errors = [Evidence(change.what.at, _row(change)) for change in session.changes if _is_error(change)]
        yield TermResult("no-errors", not errors, _counted(len(errors), "error"), errors)
    if contract.no_issues:
        issues = list(_issues(session))
        yield TermResult("no-issues", not issues, _counted(len(issues), "issue"), issues)


def _matching(calls: Sequence[Exchange], pattern: str) -> list[Exchange]:
    return [exchange for exchange in calls if fnmatchcase(exchange.request.subject or "", pattern)]


def _shown(exchanges: Sequence[Exchange]) -> list[Evidence]:
    return [Evidence(exchange.request.at, _line(exchange)) for exchange in exchanges]


def _line(exchange: Exchange) -> str:
    words = (exchange.request.method, exchange.request.subject, rows.outcome(exchange)[0])
    return "  ".join(filter(None, words))


def _duration(session: Session) -> float:
    return max(
        (change.what.at for change in session.changes if not isinstance(change.what, Note | Damaged)),
        default=0.0,
    )


def _is_error(change: Change) -> bool:
    if is_injected(change):
        return False
    what, exchange = change.what, change.exchange
    if exchange is not None and exchange.request.method == "server/discover" and isinstance(what, Failure):
        return what.code != METHOD_NOT_FOUND  # So a server of an earlier revision answers a modern client.
    status = change.status
    if status is None:
        return False
    judged = outcome.of(status)
    return change.is_counted and (judged.failed or judged.unanswered or judged.is_withheld)


def _row(change: Change) -> str:
    row = rows.row(change)
    return "  ".join(filter(None, (row.method, row.subject, row.status)))


def _issues(session: Session) -> Iterator[Evidence]:
    for change in session.changes:
        if change.has_issue:
            what, row = change.what, rows.row(change)
            why = "" if isinstance(what, Note | Damaged) else "; ".join(rows.flaws(change))
            yield Evidence(what.at, "  ".join(filter(None, (row.method, row.subject, why))))


def _counted(number: int, noun: str) -> str:
    return counted(number, noun) if number else f"no {noun}s"


SHOWN_EVIDENCE = 10
"""Messages that are printed per term."""


def term_lines(results: Sequence[TermResult]) -> list[tuple[str, str]]:
    """Return the lines of a session's report, each with its tone."""
    lines = []
    for result in results:
        mark, tone = ("ok", rows.OK) if result.is_met else ("FAILED", rows.BAD)
        lines.append((f"  {mark:6}  {sanitize(result.term)}: {sanitize(result.found)}", tone))
        if result.is_met:
            continue
        shown = [
            f"{rows.moment(one.at):>9}  {sanitize(one.text)}" for one in result.evidence[:SHOWN_EVIDENCE]
        ]
        if (more := len(result.evidence) - SHOWN_EVIDENCE) > 0:
            shown.append(f"{'':9}  and {more} more")
        lines += [(f"          {line}", rows.QUIET) for line in shown]
    return lines
