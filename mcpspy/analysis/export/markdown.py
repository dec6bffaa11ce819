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
from mcpspy.analysis.export.base import RecordedSession
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.sanitize import sanitize, sanitize_bytes
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Change

LARGEST = 64_000
"""Maximum bytes of a body in the document."""

_CARRIERS = ("http", "http-end", "sse", "part")
"""Notes on how messages came, which a reader of the messages does not ask for."""


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield the sessions one after the other: exchanges, and messages and notes without one."""
    for number, session in enumerate(sessions):
        if number:
            yield "\n"
        yield from document(
            session.header, ((change, "") for change in session.wanted() if _stands(change, session))
        )


def document(header: Header, changes: Iterable[tuple[Change, str]]) -> Iterator[str]:
    """Yield a section for each change, with the user's note."""
    yield f"# {_code(sanitize(header.name) or 'session')}, recorded {sanitize(header.started)}\n"
    for change, note in changes:
        yield from _section(change, note)


def _stands(change: Change, session: RecordedSession) -> bool:
    """Return whether the change has its own section; others are in the section of their request."""
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        return what.kind not in _CARRIERS
    if exchange is None or isinstance(what, Request):
        return True
    if isinstance(what, Notification):
        return not session.keep(Change(change.number, exchange.request, exchange))
    return what is not exchange.answer


def _section(change: Change, note: str) -> Iterator[str]:
    said, exchange = rows.row(change), change.exchange
    subject = f" {_code(said.subject)}" if said.subject else ""
    yield f"\n## {_code(said.method or 'answer')}{subject}\n\n"
    latency, status = said.latency, said.status
    if exchange is not None and isinstance(change.what, Request):
        latency = "" if exchange.latency is None else rows.duration(exchange.latency)
        status = sanitize(rows.outcome(exchange)[0])
    facts = [f"{rows.moment(change.what.at)} s", latency, status]
    yield f"{said.arrow} " + " · ".join(_code(fact) for fact in facts if fact) + "\n"
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
    along = [*exchange.progress, *([exchange.cancel] if exchange.cancel else [])]
    if isinstance(what, Request) and along:
        yield "\n### on the way\n\n"
        for each in sorted(along, key=lambda each: each.at):
            yield f"- {_code(f'{rows.moment(each.at)} s')} {_code(_said(each))}\n"
    if exchange.answer is not None:
        yield "\n### response\n" + _body(exchange.answer.data)
    elif exchange.state is State.PENDING:
        yield "\nNo response yet.\n"


def _said(message: Notification) -> str:
    if message.method == "notifications/progress":
        return sanitize(rows.progress(message))
    return sanitize(f"{message.method} {message.subject or ''}".rstrip())


def _body(data: bytes) -> str:
    try:
        laid, language = lay_out(data, indent=2), "json"
    except (DecodeError, RecursionError):
        laid, language = data, "text"
    lines = laid.split(b"\n")
    shown, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > LARGEST:
            break
        shown.append(sanitize_bytes(line))
    cut = "" if size <= LARGEST else f"\nCut: the first {len(shown):,} of {len(lines):,} lines.\n"
    return _fenced(language, "\n".join(shown)) + cut


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def _code(text: str) -> str:
    """Return a code span that the text cannot end."""
    ticks = "`" * (_longest_run(text) + 1)
    room = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
