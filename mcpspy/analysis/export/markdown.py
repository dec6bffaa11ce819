"""A Markdown document with one section per exchange.

No text of a peer is interpreted as Markdown: names are in code spans, bodies in fences longer than any in
them. `document` takes selected rows with the user's notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import CARRIERS, RecordedSession
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.sanitize import sanitize, sanitize_bytes
from mcpspy.core.session.session import Change

LARGEST = 64_000


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield the sessions one after the other: exchanges, and messages and notes without one."""
    for number, session in enumerate(sessions):
        if number:
            yield "\n"
        changes = ((change, "") for change in session.selected() if _has_section(change, session))
        yield from document(session.header, changes)


def document(header: Header, changes: Iterable[tuple[Change, str]]) -> Iterator[str]:
    """Yield a section for each change, with the user's note."""
    yield f"# {code_span(sanitize(header.name) or 'session')}, recorded {sanitize(header.started)}\n"
    for change, note in changes:
        yield from _section(change, note)


def _has_section(change: Change, session: RecordedSession) -> bool:
    """Return whether the change has its own section; others are in the section of their request."""
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        return what.kind not in CARRIERS
    if exchange is None or change.opened is not None:
        return True
    if isinstance(what, Notification):
        return not session.keep(Change(change.number, exchange.request, exchange))
    # A request that was sent again after a redirect is in the section of the first.
    return what is not exchange.answer and not isinstance(what, Request)


def _section(change: Change, note: str) -> Iterator[str]:
    row, exchange = rows.row(change), change.exchange
    subject = f" {code_span(row.subject)}" if row.subject else ""
    yield f"\n## {code_span(row.method or 'response')}{subject}\n\n"
    latency, status = row.latency, row.status
    if exchange is not None and isinstance(change.what, Request):
        latency = "" if exchange.latency is None else rows.duration(exchange.latency)
        status = sanitize(rows.outcome(exchange)[0])
    facts = [f"{rows.moment(change.what.at)} s", latency, status]
    yield f"{row.arrow} " + " · ".join(code_span(fact) for fact in facts if fact) + "\n"
    if note:
        yield "\n" + "".join(f"> {sanitize(line)}\n" for line in note.splitlines())
    yield from _bodies(change)


def _bodies(change: Change) -> Iterator[str]:
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        if what.text:
            yield _fenced("text", sanitize(what.text[:LARGEST]))
        return
    if isinstance(what, Damaged) or exchange is None or not isinstance(what, Request | Result | Failure):
        yield _body(what.data)
        return
    yield "\n### request\n" + _body(exchange.request.data)
    others = [*exchange.progress, *([exchange.cancel] if exchange.cancel else [])]
    if isinstance(what, Request) and others:
        yield "\n### notifications\n\n"
        for each in sorted(others, key=lambda each: each.at):
            yield f"- {code_span(f'{rows.moment(each.at)} s')} {code_span(_summary(each))}\n"
    answer = what if isinstance(what, Result | Failure) else exchange.answer
    if answer is not None:
        yield "\n### response\n" + _body(answer.data)
    elif exchange.is_open:
        yield "\nNo response yet.\n"


def _summary(message: Notification) -> str:
    if message.method == "notifications/progress":
        return sanitize(rows.progress(message))
    return sanitize(f"{message.method} {message.subject or ''}".rstrip())


def _body(data: bytes) -> str:
    try:
        pretty, language = lay_out(data, indent=2), "json"
    except (DecodeError, RecursionError):
        pretty, language = data, "text"
    lines = pretty.split(b"\n")
    shown, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > LARGEST:
            break
        shown.append(sanitize_bytes(line))
    cut = "" if size <= LARGEST else f"\nCut: the first {len(shown):,} of {len(lines):,} lines.\n"
    return _fenced(language, "\n".join(shown)) + cut


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, longest_run(text) + 1)
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def code_span(text: str) -> str:
    """Return a code span that the text cannot end."""
    ticks = "`" * (longest_run(text) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
