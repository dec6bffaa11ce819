"""A recorded session, read as causes and effects.

Owns the question after which message of the client each message of the server
has to come. Answers and progress say so themselves. For the rest, order is all
there is: a server request, a log message or a `list_changed` follows the
client's last message if that still waits for its answer, or is itself an
answer; else the youngest request that waits; else the last message.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.core.exchange import Exchange, State
from mcpspy.core.message import Failure, Notification, Request, Result, read_frame
from mcpspy.core.mock.asked import asked
from mcpspy.core.mock.canonical import Pointer
from mcpspy.core.mock.scene import CANCEL, EOF, Said, Scene, Step
from mcpspy.core.record import Frame, Note
from mcpspy.core.session import COMES_AGAIN, Session
from mcpspy.core.spec import CLIENT

CONNECTION_CLOSED = -32000
"""What SDK servers answer to everything that still waits when the client has closed its end."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def script(session: Session, ignored: Iterable[Pointer] = ()) -> list[Scene]:
    """Return the scenes of a session, in the order of their causes."""
    reader = _Reader(tuple(ignored))
    for change in session.changes:
        what, exchange = change.what, change.exchange
        if change.flaw == COMES_AGAIN:
            continue
        if isinstance(what, Note):
            if what.kind == "eof" and what.fields.get("from") == CLIENT:
                reader.closed_at = what.at
            elif exchange is not None and exchange.state is State.REFUSED:
                reader.refused(exchange, what.at)
            elif exchange is not None:
                reader.hung_up(exchange)
        elif isinstance(what, Request | Notification | Result | Failure):
            if what.side == CLIENT:
                reader.client(what, exchange)
            else:
                reader.server(what, exchange)
    return reader.scenes


class _Reader:
    def __init__(self, ignored: tuple[Pointer, ...]) -> None:
        self.scenes: list[Scene] = []
        self.closed_at: float | None = None
        """When the client closed its end."""
        self._ignored = ignored
        self._since: dict[Scene, tuple[tuple[int, ...], float]] = {}
        """The gates of a scene so far, and when the last of them opened."""
        self._by_exchange: dict[int, Scene] = {}
        self._posted: dict[int, Scene] = {}
        self._asked: dict[int, tuple[Scene, int]] = {}
        """Server requests: their scene, and their place in it."""
        self._open: dict[str | None, list[Scene]] = {}
        self._last: dict[str | None, tuple[Scene, bool]] = {}
        """The scene of the client's last message in a stream, and whether that was an answer."""
        self._last_stream: str | None = None

    def client(self, what: Said, exchange: Exchange | None) -> None:
        stream = what.frame.stream
        if isinstance(what, Request):
            assert exchange is not None
            scene = self._begin(what, exchange.number)
            scene.asked = asked(what, self._ignored)
            scene.cancelled = exchange.state in (State.CANCELLED, State.LATE)
            self._by_exchange[exchange.number] = scene
            if what.frame.http is not None:
                self._posted[what.frame.http] = scene
            if not exchange.is_subscription:
                self._open.setdefault(stream, []).append(scene)
        elif isinstance(what, Result | Failure):
            if exchange is None or exchange.number not in self._asked:
                return
            scene, place = self._asked[exchange.number]
            self._gate(scene, place, what.at)
        elif what.method == "notifications/cancelled":
            if exchange is not None and (cancelled := self._by_exchange.get(exchange.number)) is not None:
                self._close(cancelled, stream)
            return
        elif what.method == "notifications/progress":
            return
        else:
            scene = self._begin(what)
        self._last[stream] = scene, isinstance(what, Result | Failure)
        self._last_stream = stream

    def server(self, what: Said, exchange: Exchange | None) -> None:
        if isinstance(what, Result | Failure):
            if exchange is not None and exchange.answer is what:
                self._answered(what, exchange)
        elif isinstance(what, Request):
            assert exchange is not None
            scene = self._place(what)
            self._asked[exchange.number] = scene, len(scene.steps)
            self._add(scene, what)
        elif what.method == "notifications/progress":
            if exchange is not None and (reported := self._by_exchange.get(exchange.number)) is not None:
                self._add(reported, what)
        elif exchange is None:
            self._add(self._place(what), what)
        elif exchange.number in self._asked:
            scene, place = self._asked[exchange.number]
            self._add(scene, what, withdraws=place)
        elif exchange.is_subscription:
            self._add(self._place(what), what, listens=exchange.number)
        else:
            self._add(self._place(what), what)

    def refused(self, exchange: Exchange, at: float) -> None:
        """Take an HTTP error without a message for the answer it was."""
        scene = self._by_exchange.get(exchange.number)
        if scene is None or scene.answer is not None:
            return
        why = next((flaw for flaw in exchange.flaws if flaw.startswith("HTTP ")), "refused")
        data = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32000,"message":"%b"}}' % (
            exchange.request.id.encode(),
            why.encode(),
        )
        (failure,) = read_frame(Frame(at, "server", data))
        if isinstance(failure, Failure):
            self._close(scene, exchange.request.frame.stream)
            self._add(scene, failure)

    def hung_up(self, exchange: Exchange) -> None:
        """Take the end of an HTTP exchange for the end of the request it carried."""
        if (scene := self._by_exchange.get(exchange.number)) is not None:
            self._close(scene, exchange.request.frame.stream)

    def _answered(self, what: Result | Failure, exchange: Exchange) -> None:
        scene = self._by_exchange.get(exchange.number)
        if scene is None:
            return
        code = what.code if isinstance(what, Failure) else None
        if exchange.cancel is not None and isinstance(what, Failure):
            self._gate(scene, CANCEL, exchange.cancel.at)
        if self.closed_at is not None and (exchange.is_subscription or code == CONNECTION_CLOSED):
            self._gate(scene, EOF, self.closed_at)
        self._add(scene, what, listens=exchange.number if exchange.is_subscription else None)
        self._close(scene, exchange.request.frame.stream)

    def _begin(self, cause: Request | Notification | None, number: int | None = None) -> Scene:
        scene = Scene(cause, number)
        self.scenes.append(scene)
        self._since[scene] = (), cause.at if cause is not None else 0.0
        return scene

    def _gate(self, scene: Scene, gate: int, at: float) -> None:
        gates, since = self._since[scene]
        if gate not in gates:
            self._since[scene] = (*gates, gate), max(since, at)

    def _add(
        self, scene: Scene, what: Said, *, listens: int | None = None, withdraws: int | None = None
    ) -> None:
        gates, since = self._since[scene]
        scene.steps.append(Step(what, max(0.0, what.at - since), gates, listens, withdraws))

    def _close(self, scene: Scene, stream: str | None) -> None:
        waiting = self._open.get(stream, [])
        if scene in waiting:
            waiting.remove(scene)

    def _place(self, what: Request | Notification) -> Scene:
        """Return the scene in which it has to come."""
        stream = what.frame.stream
        if what.frame.http is not None and (posted := self._posted.get(what.frame.http)) is not None:
            if not posted.is_subscription or what.method == ACKNOWLEDGED:
                return posted
            stream = self._last_stream  # What it listens for was brought about in another stream.
        waiting = self._open.get(stream)
        if stream in self._last:
            scene, is_answer = self._last[stream]
            if not waiting or is_answer or scene.is_subscription or scene in waiting:
                return scene
        return waiting[-1] if waiting else self._opening()

    def _opening(self) -> Scene:
        if not self.scenes or self.scenes[0].cause is not None:
            self._begin(None)
            self.scenes.insert(0, self.scenes.pop())
        return self.scenes[0]
