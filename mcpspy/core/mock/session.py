"""One client of a recorded server: what it says goes in, what it is told comes out, with its time.

Owns the state that is the client's alone: its place in the queues, what is
still to be sent and when, its open requests. Time comes in as an argument, in
seconds of any clock that does not go back. Never raises, whatever the client
sends.

A conversation that may begin before all of the recording is read.

Owns the waiting: a message of which the rest of the recording could still
change the answer waits until it cannot, and what comes after it waits behind
it, so that a client's requests are taken in their order. What no recording has
a say in does not wait: garbage, and the client's answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from mcpspy.core.mock import responses
from mcpspy.core.mock.delivery import Audience
from mcpspy.core.mock.handshake import discover, initialize, is_enough
from mcpspy.core.mock.interaction import EOF, Run, Scene, Step
from mcpspy.core.mock.matching import asked
from mcpspy.core.mock.passthrough import Relay
from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.responses import miss
from mcpspy.core.mock.selector import Choice, Match, ready
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
    text,
)
from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame

BATCHES = ("2024-11-05", "2025-03-26")
"""Revisions in which a JSON-RPC batch is a message."""

NEVER_MISSED = ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel")
"""Requests whose result is empty whatever is asked: one that was not recorded has it, too."""

UNREADABLE = ("not JSON", "starts with a byte order mark", "nested too deep", "blank line")


class Options(Struct, frozen=True, kw_only=True):
    """How a recording is served."""

    match: Match = Match.EXACT
    repeats: bool = True
    """Whether the last answer of a key is given again; otherwise it is a miss."""
    miss: int = responses.INTERNAL_ERROR
    """The code of a miss."""
    forwards: bool = False
    """Whether the real server is asked in place of a miss: through `Conversation.relay`."""
    speed: float = 0.0
    """How many times as fast as it was recorded; 0: at once."""


class Outgoing(Struct, frozen=True):
    """One message for the client."""

    at: float
    data: bytes
    """The message on one line, without a line end."""
    request: bytes | None
    """JSON text of the id of the client's request it belongs to: over HTTP, whose stream carries it.

    That request may have been answered already. None: it belongs to no request."""
    is_answer: bool


class Conversation:
    """What one client has been told, and what it is still to be told."""

    def __init__(self, library: Library, options: Options, now: float) -> None:
        self.library = library
        self.revision: str | None = None
        """What was agreed by a handshake."""
        self._complaints: list[str] = []
        self.choice = Choice(library, options.match, repeats=options.repeats)
        self._options = options
        self._queue: list[tuple[float, int, Run | None, int, Outgoing | Step]] = []
        self._number = 0
        self._runs: dict[str, list[Run]] = {}
        """Requests by id, as long as they may be cancelled."""
        self._audience = Audience()
        self.relay = Relay() if options.forwards else None
        for scene in library.opening:
            self._play(Run(scene, now, options.speed))

    def complaints(self) -> list[str]:
        """Return what a person should know since the last call, one line each."""
        said, self._complaints = self._complaints, []
        return said

    @property
    def next_at(self) -> float | None:
        """When the next message is due; None if all that is left waits for the client."""
        return self._queue[0][0] if self._queue else None

    @property
    def owes(self) -> bool:
        """Whether an answer is on its way, which the client still has to get after it closed its end."""
        if self.relay is not None and self.relay.is_waiting:
            return True
        return any(
            (isinstance(what, Outgoing) or what.is_answer) and not (run is not None and run.cancelled)
            for _, _, run, _, what in self._queue
        )

    def receive(self, data: bytes, now: float) -> None:
        """Take what the client sent: one line or one body, whatever is in it."""
        if not self._is_answered(data, now):
            self._take(read_frame(Frame(now, CLIENT, data)), data, now)

    def cancel(self, id: str, now: float) -> None:  # noqa: A002
        """Stop a request by its id's JSON text: `notifications/cancelled`, or a client that hung up (HTTP, 2026-07-28)."""
        if runs := self._runs.get(id):
            run = runs[-1]
            run.cancel(now)
            self._forget(run)
            self._play(run)
        elif self.relay is not None:
            self.relay.cancel(id)

    def hear(self, data: bytes, now: float) -> None:
        """Take what the real server says to what was sent on to it."""
        if self.relay is not None:
            for said in self.relay.heard(data):
                self._push(now, None, 0, Outgoing(now, *said))

    def close(self, now: float) -> None:
        """The client closed its end."""
        for run in [run for runs in self._runs.values() for run in runs]:
            run.open(EOF, now)
            self._play(run)

    def take(self, now: float) -> Iterator[Outgoing]:
        """Yield what is due, in its order."""
        while self._queue and self._queue[0][0] <= now:
            at, _, run, place, what = heappop(self._queue)
            if isinstance(what, Outgoing):
                yield what
            elif run is not None and not run.is_stopped(what):
                request, said = self._audience.carrier(run, what), self._audience.told(run, place, what)
                if what.is_answer:
                    self._forget(run)
                if said is not None:
                    yield Outgoing(at, said, request, what.is_answer)

    def _is_answered(self, data: bytes, now: float) -> bool:
        """Answer a plain request that is answered at once; whether it was."""
        if self._options.speed:
            return False
        answer = ready(data, self.choice, self.library.ignored)
        if answer is not None:
            self._make(now, answer.data, answer.id)
        return answer is not None

    def _take(self, messages: Sequence[AnyMessage], data: bytes, now: float) -> None:
        """Take the messages of a line or body."""
        if data.lstrip()[:1] == b"[" and self.revision not in BATCHES:
            said = f"batches are not part of {self.revision or 'this protocol'}"
            self._make(now, responses.error(b"null", responses.INVALID_REQUEST, said))
            return
        for message in messages:
            self._receive(message, now)

    def _receive(self, message: AnyMessage, now: float) -> None:
        if isinstance(message, Request):
            self._request(message, now)
        elif isinstance(message, Notification):
            self._notification(message, now)
        elif isinstance(message, Malformed):
            self._malformed(message, now)
        else:
            self._answered(message, now)

    def _request(self, message: Request, now: float) -> None:
        id = message.id.encode()  # noqa: A001
        if message.flaws and (
            flaws := [flaw for flaw in message.flaws if flaw.startswith(("id is", "jsonrpc"))]
        ):
            known = b"null" if flaws[-1].startswith("id is") else id
            self._make(now, responses.error(known, responses.INVALID_REQUEST, f"invalid request: {flaws[0]}"))
            return
        if message.method in ("initialize", "server/discover"):
            self._introduce(message, now)
            return
        if message.method == "logging/setLevel":
            self._audience.level = message.subject
        wanted = asked(message, self.library.ignored)
        if (
            wanted.version is not None
            and wanted.version not in (supported := self.library.versions)
            and supported
        ):
            data = {"supported": supported, "requested": wanted.version}
            self._answer(message, now, responses.UNSUPPORTED_VERSION, "Unsupported protocol version", data)
            return
        scene = self.choice.answer(wanted)
        if scene is not None:
            self._start(scene, message, now)
        elif message.method in NEVER_MISSED:
            self._make(now, responses.result(id, {}), id)
        else:
            self._missed(message, now)

    def _introduce(self, message: Request, now: float) -> None:
        params = message.params
        params = params if isinstance(params, dict) else {}
        if message.method == "initialize":
            if self.relay is not None:
                self.relay.introduction = message.data
            said = initialize(self.library, params.get("protocolVersion"))
            self._audience.capabilities = params.get("capabilities")
            self.revision = said.revision
        else:
            said = discover(self.library)
        if said.scene is not None:
            self._start(said.scene, message, now)
        elif said.result is not None:
            self._make(now, responses.result(message.id.encode(), said.result), message.id.encode())
        else:
            self._answer(message, now, said.code, said.why, said.data)

    def _start(self, scene: Scene, message: Request, now: float) -> None:
        run = Run(scene, now, self._options.speed, message)
        self._runs.setdefault(message.id, []).append(run)
        if scene.is_subscription:
            self._audience.listens(run)
        elif not scene.is_answered and not scene.cancelled:
            about = asked(message).about
            self._complaints.append(f"{about}: was never answered when it was recorded, so it is not now")
        self._play(run)

    def _notification(self, message: Notification, now: float) -> None:
        if message.method == "notifications/cancelled":
            self.cancel(text(message.body.request_id) or "", now)
        elif (scene := self.choice.notice(message.method)) is not None:
            self._play(Run(scene, now, self._options.speed))

    def _answered(self, message: Result | Failure, now: float) -> None:
        if self.relay is not None and self.relay.answer(message):
            return
        asked = self._audience.answered(message.id or "")
        if asked is not None:
            run, place = asked
            run.open(place, now)
            self._play(run)

    def _malformed(self, message: Malformed, now: float) -> None:
        if message.why != "blank line":
            self._make(now, refused(message))

    def _missed(self, message: Request, now: float) -> None:
        missed = miss(message, self.library)
        self.choice.misses.append(missed.text)
        if self.relay is not None:
            self._complaints.append(f"{missed.text}; the server is asked")
            self.relay.ask(message)
            return
        self._complaints.append(missed.line)
        self._answer(message, now, self._options.miss, f"mcpspy mock: {missed.text}", missed.data)

    def _answer(self, message: Request, now: float, code: int, why: str, data: object) -> None:
        id = message.id.encode()  # noqa: A001
        self._make(now, responses.error(id, code, why, data), id)

    def _make(self, now: float, data: bytes, request: bytes | None = None) -> None:
        self._push(now, None, 0, Outgoing(now, data, request, True))

    def _play(self, run: Run) -> None:
        for at, place, step in run.due(lambda step: self._audience.is_spared(run, step)):
            self._push(at, run, place, step)

    def _push(self, at: float, run: Run | None, place: int, what: Outgoing | Step) -> None:
        self._number += 1
        heappush(self._queue, (at, self._number, run, place, what))

    def _forget(self, run: Run) -> None:
        """A request that is over cannot be cancelled any more."""
        self._audience.left(run)
        id = (run.id or b"").decode()  # noqa: A001
        runs = self._runs.get(id, [])
        if run in runs:
            runs.remove(run)
            if not runs:
                del self._runs[id]


def refused(message: Malformed) -> bytes:
    """Return the answer to what is no message."""
    code = responses.PARSE_ERROR if message.why.startswith(UNREADABLE) else responses.INVALID_REQUEST
    return responses.error(b"null", code, message.why[:200])


class Patient(Conversation):
    """One client of a recording that is still being read; call `go_on` whenever more of it was."""

    def __init__(self, library: Library, options: Options, now: float) -> None:
        super().__init__(library, options, now)
        self._held: deque[bytes] = deque()
        self._is_closed = False

    @property
    def waits(self) -> bool:
        """Whether something the client said waits for more of the recording."""
        return bool(self._held)

    @property
    def owes(self) -> bool:
        """As of a conversation; what waits may be owed an answer."""
        return self.waits or super().owes

    def receive(self, data: bytes, now: float) -> None:
        """Take what the client sent, or have it wait."""
        if self._held or not self._is_answered(data, now):
            messages = read_frame(Frame(now, CLIENT, data))
            is_heard = any(isinstance(message, Request | Notification) for message in messages)
            if is_heard and (self._held or not self._is_sure(messages)):
                self._held.append(data)
            else:
                self._take(messages, data, now)

    def go_on(self, now: float) -> None:
        """Take what waited and need not any more."""
        while self._held and self._is_sure(messages := read_frame(Frame(now, CLIENT, self._held[0]))):
            self._take(messages, self._held.popleft(), now)
        if self._is_closed and not self._held:
            self._is_closed = False
            super().close(now)

    def cancel(self, id: str, now: float) -> None:  # noqa: A002
        """Stop a request; one that waits is not answered at all."""
        for data in self._held:
            message, *others = read_frame(Frame(now, CLIENT, data))
            if isinstance(message, Request) and message.id == id and not others:
                self._held.remove(data)
                return
        super().cancel(id, now)

    def close(self, now: float) -> None:
        """The client closed its end: it does so after what waits."""
        self._is_closed = True
        self.go_on(now)

    def _is_sure(self, messages: Sequence[AnyMessage]) -> bool:
        # Two requests of a batch may want the same place in a queue.
        return self.library.is_whole or (len(messages) == 1 and self._is_sure_of(messages[0]))

    def _is_sure_of(self, message: AnyMessage) -> bool:
        if isinstance(message, Notification):
            return message.method == "notifications/cancelled" or self.choice.is_noticed(message.method)
        if not isinstance(message, Request):
            return True
        if message.method in INTRODUCTIONS:
            return is_enough(self.library, message)
        wanted = asked(message, self.library.ignored)
        if wanted.version is not None and wanted.version not in self.library.versions:
            return False  # It may be refused for its revision.
        return self.choice.is_sure(wanted)
