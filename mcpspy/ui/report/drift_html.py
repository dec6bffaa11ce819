"""The drift of a server's tools as one HTML page: no scripts, no requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from msgspec import UNSET

from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.drift import ToolDrift
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report import diff_text
from mcpspy.ui.report.drift import clients, rate, verdict, versions
from mcpspy.ui.report.load_html import POLICY, STYLE

_MORE = """
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem .8rem; margin: .4rem 0;
  background: light-dark(#f0f0ec, #1d2027); }
"""


def page(server: str, found: Sequence[ToolDrift], sessions: int) -> bytes:
    """Return the page."""
    return "".join(_page(server, found, sessions)).encode("utf-8", "backslashreplace")


def _page(server: str, found: Sequence[ToolDrift], sessions: int) -> Iterator[str]:
    title = _text(f"Drift of {server}")
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<style>{STYLE}{_MORE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    yield f"<p>{_text(verdict(server, found, sessions))}</p>\n"
    for each in found:
        tone = "bad" if each.severity is ChangeSeverity.BREAKING else "ok"
        yield f'<h2><span class="{tone}">{each.severity}</span> {_text(each.tool + versions(each))}</h2>\n'
        yield f"<p>{_text(each.time[:19])} UTC, session {_text(each.session)}; met by {_text(clients(each))};"
        yield f" errors {rate(each.before)} before, {rate(each.after)} after</p>\n"
        for change in each.changes:
            yield f"<p>{_text(diff_text.change_heading(change, beside=each.severity))}</p>\n"
            if UNSET not in (change.old, change.new):
                body = diff_text.body(change, diff_text.WIDE)
                yield "<pre>" + "".join(_text(f"{mark} {line}") + "\n" for mark, line in body) + "</pre>\n"
    yield "</body>\n</html>\n"


def _text(text: str) -> str:
    return escape(sanitize(text))
