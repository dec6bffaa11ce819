"""A Mermaid sequence diagram, as GitHub renders it.

All characters of a label except letters, digits and a few signs are character references, so no text of a
peer is a statement, a comment or markup. The diagram stays below Mermaid's size limit and reports how many
messages were left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import RecordedSession
from mcpspy.core.protocol.message import Malformed, Message, Notification, Request, Result
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.sanitize import sanitize, sanitize_bytes
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change

LONGEST = 60
"""Maximum characters of a label; longer labels make the diagram too wide."""

ROOM = 48_000
"""Maximum characters of a diagram. Mermaid rejects 50,000 (`maxTextSize`), and GitHub allows no change."""

_SAFE = frozenset(" _./,-()'")

_NOTED = ("exit", "error", "lost", "signal")


def export(session: RecordedSession) -> Iterator[str]:
    changes = list(session.changes)
    client, server = _introduced(changes)
    header = session.header
    yield "sequenceDiagram\n"
    yield f"  participant C as {_label(str(client or 'client'))}\n"
    yield f"  participant S as {_label(str(server or header.name or 'server'))}\n"
    size = left = 0
    for change in filter(session.keep, changes):
        line = _line(change)
        if line is None:
            continue
        size += len(line)
        if left or size > ROOM:
            left += 1
        else:
            yield line
    if left:
        yield f"  Note over C,S: {left} more messages omitted, use a filter to fit them\n"


def _introduced(changes: list[Change]) -> tuple[Peer | None, Peer | None]:
    peers = Peers()
    for change in changes:
        if peers.client is not None and peers.server is not None:
            break
        if isinstance(change.what, Request):
            peers.add_request(change.what)
        elif isinstance(change.what, Result) and change.exchange is not None:
            peers.add_response(change.what, change.exchange.request.method)
    return peers.client, peers.server


def _line(change: Change) -> str | None:
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        if what.kind not in _NOTED:
            return None
        row = rows.row(change)
        return f"  Note over C,S: {_label(f'{row.method} {row.subject}')}\n"
    if isinstance(what, Damaged):
        return None
    if isinstance(what, Request):
        return _arrow(what, "->>", f"{what.method} {what.subject or ''}")
    if isinstance(what, Notification):
        about = rows.progress(what) if what.method == "notifications/progress" else what.subject or ""
        return _arrow(what, "--)", f"{what.method} {about}")
    if isinstance(what, Malformed):
        return _arrow(what, "--x", f"{what.why} {sanitize_bytes(what.data[:LONGEST])}")
    if exchange is None or what is not exchange.answer:
        return _arrow(what, "--x", rows.row(change).status or "unsolicited response")
    return _arrow(what, "--x" if outcome.of(exchange.state).failed else "-->>", _answer(exchange))


def _answer(exchange: Exchange) -> str:
    request, latency = exchange.request, exchange.latency
    took = "" if latency is None else f" {rows.duration(latency)}"
    return f"{rows.outcome(exchange)[0]}{took} ({request.subject or request.method})"


def _arrow(message: Message, arrow: str, text: str) -> str:
    one, other = ("C", "S") if message.side == CLIENT else ("S", "C")
    return f"  {one}{arrow}{other}: {_label(text)}\n"


def _label(text: str) -> str:
    text = sanitize(text).strip()
    cut = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
    return "".join(map(_entity, cut))


def _entity(character: str) -> str:
    return character if character.isalnum() or character in _SAFE else f"#{ord(character)};"
