"""The drift of a server's tools as text, Markdown, JSON and one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from msgspec import UNSET

from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.drift import CallOutcomes, ToolDrift
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.diff import fence, span
from mcpspy.ui.report.load import page_head


def verdict(server: str, found: Sequence[ToolDrift], sessions: int) -> str:
    """Return the summary: `weather: 2 changes of tools, 1 breaking, in 12 sessions`."""
    breaking = sum(each.severity is ChangeSeverity.BREAKING for each in found)
    nouns = " and ".join(f"{noun}s" for noun in sorted({each.noun for each in found}, reverse=True))
    changes = f"{len(found)} change{'s' * (len(found) != 1)} of {nouns}" if found else "no change of a tool"
    return f"{sanitize(server)}: {changes}{f', {breaking} breaking' if breaking else ''}, in {sessions} session{'s' * (sessions != 1)}"


def text(
    server: str, found: Sequence[ToolDrift], sessions: int, width: int
) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of the report with their tones."""
    for each in found:
        yield (
            f"{each.severity:10} {each.time[:19]}  {diff_report.short(each.tool)}{versions(each)}",
            diff_report.TONES[each.severity],
        )
        for change in each.changes:
            yield f"  {diff_report.change_heading(change, beside=each.severity)}", None
            if UNSET not in (change.old, change.new):
                for mark, line in diff_report.body(change, (width or diff_report.TERMINAL_WIDTH) - 6):
                    yield f"    {mark} {line}", None
        yield f"  met by {clients(each)}", None
        if each.noun == "tool":
            yield f"  errors {rate(each.before)} before, {rate(each.after)} after", None
    yield verdict(server, found, sessions), None


def markdown(server: str, found: Sequence[ToolDrift], sessions: int) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"### mcpspy drift: {span(verdict(server, found, sessions))}"
    for each in found:
        yield ""
        yield f"**{each.severity}** {each.time[:19]} {span(diff_report.short(each.tool) + versions(each))}"
        yield f"met by {span(clients(each))}; errors {rate(each.before)} before, {rate(each.after)} after"
        yield ""
        lines = [diff_report.change_heading(change, beside=each.severity) for change in each.changes]
        yield from fence(lines, "text").splitlines()


def document(server: str, found: Sequence[ToolDrift], sessions: int) -> dict[str, Any]:
    return {
        "server": server,
        "sessions": sessions,
        "changes": [
            {
                "severity": str(each.severity),
                "time": each.time,
                each.noun: each.tool,
                "session": each.session,
                "versions": each.versions,
                "clients": each.clients,
                "before": {"calls": each.before.calls, "errors": each.before.errors},
                "after": {"calls": each.after.calls, "errors": each.after.errors},
                "changes": [
                    {
                        "severity": str(change.severity),
                        "pointer": change.pointer,
                        "why": change.why,
                        **({} if change.old is UNSET else {"old": change.old}),
                        **({} if change.new is UNSET else {"new": change.new}),
                    }
                    for change in each.changes
                ],
            }
            for each in found
        ],
    }


def versions(each: ToolDrift) -> str:
    """Return the versions of the server before and after, if they differ."""
    old, new = map(sanitize, each.versions)
    return f"  ({old} {diff_report.ARROW} {new})" if old != new else ""


def clients(each: ToolDrift) -> str:
    """Return the clients that met the change, each with the day."""
    return ", ".join(f"{sanitize(client)} ({time[:10]})" for client, time in each.clients.items())


def rate(outcomes: CallOutcomes) -> str:
    """Return the share of failed calls."""
    if not outcomes.calls:
        return "no calls"
    return f"{outcomes.errors / outcomes.calls:.1%} of {outcomes.calls:,} calls"


_MORE = """
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem .8rem; margin: .4rem 0;
  background: light-dark(#f0f0ec, #1d2027); }
"""


def page(server: str, found: Sequence[ToolDrift], sessions: int) -> bytes:
    """Return the page."""
    return "".join(_page(server, found, sessions)).encode("utf-8", "backslashreplace")


def _page(server: str, found: Sequence[ToolDrift], sessions: int) -> Iterator[str]:
    yield from page_head(_html_text(f"Drift of {server}"), _MORE)
    yield f"<p>{_html_text(verdict(server, found, sessions))}</p>\n"
    for each in found:
        tone = "bad" if each.severity is ChangeSeverity.BREAKING else "ok"
        yield f'<h2><span class="{tone}">{each.severity}</span> {_html_text(each.tool + versions(each))}</h2>\n'
        yield f"<p>{_html_text(each.time[:19])} UTC, session {_html_text(each.session)}; met by {_html_text(clients(each))};"
        yield f" errors {rate(each.before)} before, {rate(each.after)} after</p>\n"
        for change in each.changes:
            yield f"<p>{_html_text(diff_report.change_heading(change, beside=each.severity))}</p>\n"
            if UNSET not in (change.old, change.new):
                body = diff_report.body(change, diff_report.TERMINAL_WIDTH)
                yield (
                    "<pre>" + "".join(_html_text(f"{mark} {line}") + "\n" for mark, line in body) + "</pre>\n"
                )
    yield "</body>\n</html>\n"


def _html_text(text: str) -> str:
    return escape(sanitize(text))
