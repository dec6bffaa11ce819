"""Parts of a recording that can be replayed on their own.

Owns what a request depends on: the handshake, the server request it answers, the source of its cursor or
task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import structs

from mcpspy.core.protocol.message import AnyMessage, Malformed, Request, Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Damaged, Frame, Note
from mcpspy.core.replay.substitution import Substitutions, returned_values, sent_back
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change, Session

LEFT_OUT = "left-out"


def needed(session: Session, wanted: Collection[int]) -> set[int]:
    """Return the numbers of these exchanges and of those that they depend on."""
    kept: set[int] = set()
    sources: dict[tuple[str, bytes], int] = {}
    for exchange in session.exchanges:
        if isinstance(exchange.answer, Result):
            for given in returned_values(exchange.answer):
                sources.setdefault(given, exchange.number)
    waiting = [exchange for exchange in session.exchanges if exchange.number in wanted]
    waiting += [exchange for exchange in session.exchanges if exchange.request.method in HANDSHAKE_METHODS]
    while waiting:
        exchange = waiting.pop()
        if exchange.number in kept:
            continue
        kept.add(exchange.number)
        waiting += [other for other in (exchange.continues, exchange.continued_by) if other is not None]
        for kind, _, value in sent_back(exchange.request):
            if (source := sources.get((kind, value))) is not None:
                waiting.append(session.exchanges[source])
    return kept


def reduced(session: Session, kept: Collection[int]) -> Session:
    """Return the session with only these exchanges of the client, in its final state.

    Server messages that belong to other exchanges are removed. Entries keep their places: a note marks each
    gap.
    """
    part, owners = Session(session.header), _Owners()
    for change in session.changes:
        what, owner = change.what, owners.owner(change)
        if owner is not None and owner not in kept:
            part.add(Note(what.at, LEFT_OUT, {}))
        elif isinstance(what, Note | Damaged):
            part.add(what)
        else:
            frame = what.frame
            part.add(frame if what.index is None else structs.replace(frame, data=what.data))
    part.end()
    return part


def as_recorded(session: Session, carried: Iterable[Substitutions]) -> Session:
    """Return the session with the recorded values in place of those that the live server returned."""
    back = list(carried)
    part = Session(session.header)
    for change in session.changes:
        entry = change.entry
        if isinstance(entry, Frame):
            for each in back:
                entry = structs.replace(entry, data=each.as_recorded(entry.data))
        if entry is not None:
            part.add(entry)
    part.end()
    return part


class _Owners:
    """Assigns entries to exchanges of the client."""

    def __init__(self) -> None:
        self._open: list[int] = []
        self._by_http: dict[int, int] = {}
        self._last: int | None = None
        """The last request of the client; None after a notification."""
        self._server_requests: dict[int, int | None] = {}

    def owner(self, change: Change) -> int | None:
        """Return the number of the exchange that the next entry belongs to, if any."""
        what, exchange = change.what, change.exchange
        if isinstance(what, Damaged | Malformed):
            return None
        if exchange is not None and exchange.request.side == CLIENT:
            self._follow(what, exchange)
            return exchange.number
        if isinstance(what, Note):
            return None
        if what.side == CLIENT and exchange is None:
            self._last = None
            return None
        if exchange is not None:
            return self._server_requests.setdefault(exchange.number, self._cause(what.frame))
        return self._cause(what.frame)

    def _follow(self, what: AnyMessage | Note, exchange: Exchange) -> None:
        if isinstance(what, Request):
            self._last = exchange.number
            if not exchange.is_subscription:
                self._open.append(exchange.number)
            if what.frame.http is not None:
                self._by_http[what.frame.http] = exchange.number
        elif exchange.number in self._open and (what is exchange.answer or what is exchange.cancel):
            self._open.remove(exchange.number)

    def _cause(self, frame: Frame) -> int | None:
        """Return the cause of a server message: its HTTP exchange, an open request or the last one."""
        if frame.http in self._by_http:
            return self._by_http[frame.http]
        return self._open[-1] if self._open else self._last
