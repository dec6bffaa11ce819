"""The eras of a host and of its server: which they are, and the translation if they differ.

Theory of operation. Nothing changes until the server refuses what the host sent. A refused `initialize` may come from a
server of 2026-07-28, and a refused request of 2026-07-28 from one with a handshake. mcpspy then requests
`server/discover`, which every server of 2026-07-28 has; its result, or its error, is the era of the server
(basic/versioning, 2026-07-28: Backward Compatibility). Messages of the host wait meanwhile. If both have a revision in
common, or the server refuses everything, the host gets the refusal, and nothing is translated.

A host that knows both eras begins with `server/discover`, and falls back to `initialize` if it is refused. So it gets
that refusal; only `ALWAYS` answers it in place of the server. A request of 2026-07-28 that follows is translated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from mcpspy.core.era.commands import (
    ALWAYS,
    AUTO,
    NEVER,
    RESPONSE_TIMEOUT,
    Command,
    Fail,
    SendToHost,
    SendToServer,
    TranslationNote,
)
from mcpspy.core.era.messages import (
    DISCOVER,
    INITIALIZE,
    OwnIds,
    cancelled,
    is_modern,
    meta_of,
    read,
    request,
    request_meta,
    revision_of,
    supports_modern,
)
from mcpspy.core.era.newer_server import NewerServer
from mcpspy.core.era.older_server import OlderServer
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.protocol.spec import CLIENT, HEADER_MISMATCH, META, MISSING_CAPABILITY, MODERN, SERVER

NO_ERA = frozenset({401, 403, 407, 408, 429})
"""Statuses of refusals that say nothing about the era of the server."""


class Era(StrEnum):
    UNKNOWN = "unknown"
    PROBING = "probing"
    """The server is asked for its era."""
    SAME = "same"
    TRANSLATED = "translated"


class EraMachine:
    """The session. Commands must be executed in order."""

    def __init__(self, prefix: str, policy: str = AUTO, *, has_handshake: bool = False) -> None:
        """`prefix` begins the ids of all requests of mcpspy; neither peer must be able to guess it.

        `has_handshake`: the transport is HTTP+SSE, which only servers of the handshake era have.
        """
        self.era = Era.SAME if policy == NEVER else Era.UNKNOWN
        self.translation: NewerServer | OlderServer | None = None
        self._ids = OwnIds(prefix)
        self._policy = policy
        self.has_handshake = has_handshake
        self._initialize: Request | None = None
        """The host's open `initialize`."""
        self._asked: dict[str, tuple[Request, bytes]] = {}
        """Open requests of 2026-07-28, while the era is unknown."""
        self._probe = ""
        """Id of the open `server/discover`."""
        self._held: dict[str, bytes | str] = {}
        """Refused requests: the server's error, or the reason for none."""
        self._waiting: list[tuple[bytes, object]] = []

    @property
    def is_probing(self) -> bool:
        """Return whether the server is asked for its era."""
        return self.era is Era.PROBING

    @property
    def initialize(self) -> bytes:
        """The handshake of mcpspy with an older server, which begins a session again; empty if there is none."""
        return self.translation.initialize if isinstance(self.translation, OlderServer) else b""

    def has(self, id: str) -> bool:  # noqa: A002
        """Return whether the server has a request of mcpspy, or a translated one, under this id."""
        return self._ids.has(id) or (self.translation is not None and self.translation.has(id))

    def keeps(self, message: AnyMessage) -> bool:
        """Return whether a message of the host is not forwarded to the server."""
        return self.translation is not None and self.translation.keeps(message)

    def client(self, data: bytes, carrier: object = None) -> list[Command]:
        """Take a message of the host, which is recorded. A command for it has its carrier."""
        messages = read(CLIENT, data)
        if self.era is Era.PROBING:
            self._waiting.append((data, carrier))
            return []
        if self.translation is not None:
            return [
                command
                for message in messages
                for command in self.translation.client(message, message.data, carrier)
            ]
        if self.era is Era.UNKNOWN and len(messages) == 1 and isinstance(message := messages[0], Request):
            if message.method == INITIALIZE:
                self._initialize = message
            elif is_modern(message):
                if self.has_handshake and (message.method != DISCOVER or self._policy == ALWAYS):
                    return [TranslationNote("probe", MODERN), *self._begin(message, data, carrier)]
                self._asked[message.id] = message, data
        return [SendToServer(data, carrier)]

    def server(self, data: bytes, carrier: str | None = None) -> list[Command]:
        """Take a message of the server. It is recorded; without a `SendToHost` of it, it is not forwarded.

        `carrier` is the id of the request in whose exchange it came, None if it came in none.
        """
        if self.era is Era.SAME:
            return [SendToHost(data, is_own=False)]
        commands: list[Command] = []
        for message in read(SERVER, data):
            if isinstance(message, Result | Failure) and message.id is not None:
                commands += self._responded(message, message.data)
            elif self.translation is not None:
                commands += self.translation.server(message, message.data, carrier)
            else:
                commands.append(SendToHost(message.data, is_own=False))
        return commands

    def failed(self, id: str, why: str, status: int | None = None) -> list[Command]:  # noqa: A002
        """Take the end of a request without a response; `status` is that of HTTP, if it was refused."""
        if self.translation is not None and not self._is_handshake(id):
            return self.translation.failed(id, why)
        is_refusal = status is not None and 400 <= status < 500 and status not in NO_ERA
        if id == self._probe or self._is_handshake(id):
            return self._decided(None, why) if id == self._probe else self._end_handshake(why)
        if self._is_open(id) and is_refusal:
            return self._refused(id, why)
        if self._ids.has(id):  # It has timed out.
            return []
        self._forget(id)
        return [Fail(id, why)]

    def timed_out(self, id: str, why: str) -> list[Command]:  # noqa: A002
        """Take the end of the timeout of a request of mcpspy. Does nothing if it has a response."""
        if id == self._probe:  # Its exchange is closed.
            return [SendToServer(cancelled(id, why)), *self.failed(id, why)]
        if isinstance(self.translation, OlderServer) and self.translation.awaits(id):
            # Clients must not cancel `initialize` (basic/utilities/cancellation).
            return self.failed(id, why)
        return []

    def lost(self, why: str) -> list[Command]:
        """Take the end of the connection."""
        if self.era is Era.PROBING:
            return self.failed(self._probe, why)
        if isinstance(self.translation, OlderServer):
            if not self.translation.is_ready:
                return self._end_handshake(why)
            self.translation.lost(why)
        return []

    def again(self) -> list[Command]:
        """Continue after the time of a `Later`."""
        return [] if self.translation is None else self.translation.again()

    def restored(self) -> list[Command]:
        """Return the commands after the session with the server was begun again."""
        return self.translation.restored() if isinstance(self.translation, OlderServer) else []

    # The era of the server.

    def _is_open(self, id: str) -> bool:  # noqa: A002
        return id in self._asked or (self._initialize is not None and id == self._initialize.id)

    def _is_handshake(self, id: str) -> bool:  # noqa: A002
        return isinstance(self.translation, OlderServer) and self.translation.is_handshake(id)

    def _forget(self, id: str) -> None:  # noqa: A002
        self._asked.pop(id, None)
        if self._initialize is not None and id == self._initialize.id:
            self._initialize = None

    def _responded(self, message: Result | Failure, data: bytes) -> list[Command]:
        id = message.id or ""  # noqa: A001
        if self._is_handshake(id):
            return self._take_handshake(message)
        if self.translation is not None:
            return self.translation.server(message, data, None)
        if id == self._probe:
            return self._decided(message, message.text if isinstance(message, Failure) else "")
        if not self._is_open(id):
            return [] if self._ids.has(id) else [SendToHost(data, is_own=False)]
        if isinstance(message, Failure):
            return self._failed(message, data)
        if id in self._asked and not message.body.result_type and self._asked[id][0].method != DISCOVER:
            return self._begin_late(message, data)
        self._settle()
        return [SendToHost(data, is_own=False)]

    def _failed(self, message: Failure, data: bytes) -> list[Command]:
        """Take an error for the first request of the host."""
        id = message.id or ""  # noqa: A001
        if id in self._asked:
            if message.code in (HEADER_MISMATCH, MISSING_CAPABILITY) or supports_modern(message):
                self._settle()
                return [SendToHost(data, is_own=False)]
            if self._asked[id][0].method == DISCOVER and self._policy != ALWAYS:
                self._forget(id)
                return [SendToHost(data, is_own=False)]
        return self._refused(id, data)

    def _refused(self, id: str, refusal: bytes | str) -> list[Command]:  # noqa: A002
        """Hold a refusal that may be due to the era, until the server's is known."""
        if id in self._asked and self._asked[id][0].method == DISCOVER and self._policy != ALWAYS:
            self._forget(id)
            return [SendToHost(refusal, is_own=False) if isinstance(refusal, bytes) else Fail(id, refusal)]
        self._held[id] = refusal
        if self.era is Era.PROBING:
            return []
        self.era = Era.PROBING
        self._probe = self._ids.new()
        message, _ = self._asked.get(id, (self._initialize, b""))
        assert message is not None
        host = MODERN if is_modern(message) else revision_of(message)
        if message.method == DISCOVER:  # The probe itself: it need not be repeated.
            return [TranslationNote("probe", host, refused=(id,)), *self._decided(None, "")]
        return [
            TranslationNote("probe", host, refused=(id,)),
            SendToServer(
                request(self._probe, DISCOVER, {"_meta": self._meta(message)}), timeout=RESPONSE_TIMEOUT
            ),
        ]

    def _meta(self, message: Request) -> dict[str, Any]:
        """Return the members that `server/discover` needs in `_meta`, in the name of the host."""
        if is_modern(message):
            return {key: value for key, value in meta_of(message).items() if key.startswith(META)}
        return request_meta(message, {})

    def _decided(self, message: Result | Failure | None, why: str) -> list[Command]:
        """Take the response to `server/discover`, or the reason for none."""
        self._probe = ""
        is_newer = isinstance(message, Result) and supports_modern(message)
        if self._initialize is not None and is_newer:
            assert isinstance(message, Result)
            initialize, self._initialize = self._initialize, None
            self._held.clear()
            self.era = Era.TRANSLATED
            self.translation = NewerServer(self._ids, initialize, message)
            return [*self.translation.begin(initialize), *self._flush()]
        if self._initialize is None and not is_newer:
            first, _ = next(iter(self._asked.values()))
            return self._begin(first, b"", None)
        commands = self._release()
        self.era = Era.UNKNOWN
        self._initialize = None
        if is_newer:
            self._settle()
        return commands + self._flush()

    def _settle(self) -> None:
        self.era = Era.SAME
        self._asked.clear()
        self._initialize = None

    def _release(self) -> list[Command]:
        """Give the host the refusals that were held."""
        held, self._held = self._held, {}
        for id in held:  # noqa: A001
            self._forget(id)
        return [Fail(key, each) if isinstance(each, str) else SendToHost(each) for key, each in held.items()]

    def _flush(self) -> list[Command]:
        waiting, self._waiting = self._waiting, []
        return [command for data, carrier in waiting for command in self.client(data, carrier)]

    # The handshake for a host of 2026-07-28.

    def _begin(self, first: Request, data: bytes, carrier: object) -> list[Command]:
        """Begin a session with an older server. What it has refused is sent again."""
        self.era = Era.TRANSLATED
        translation = self.translation = OlderServer(self._ids, first)
        for id in self._held:  # noqa: A001
            translation.wait(self._asked[id][1], None)
        if data:
            translation.wait(data, carrier)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            translation.wait(*each)
        self._asked.clear()
        return translation.begin()

    def _begin_late(self, message: Result, data: bytes) -> list[Command]:
        """Begin a session with an older server that has answered a request without a handshake."""
        first, _ = self._asked.pop(message.id or "")
        host = TranslationNote("probe", MODERN)
        commands = self._begin(first, b"", None)
        assert isinstance(self.translation, OlderServer)
        return [
            host,
            SendToHost(self.translation.result(message, data, first.method), is_own=False),
            *commands,
        ]

    def _take_handshake(self, message: Result | Failure) -> list[Command]:
        assert isinstance(self.translation, OlderServer)
        if isinstance(message, Failure):
            return self._end_handshake(f"refused initialize: {message.description}")
        held, self._held = self._held, {}
        return self.translation.offered(message, tuple(held))

    def _end_handshake(self, why: str) -> list[Command]:
        """Answer what waits, because the server refuses both eras."""
        assert isinstance(self.translation, OlderServer)
        waiting, self.translation, self.era = self.translation.waiting, None, Era.UNKNOWN
        commands = self._release()
        answered = {each.id for each in commands if isinstance(each, Fail)}
        for data, carrier in waiting:
            for message in read(CLIENT, data):
                if isinstance(message, Request) and carrier is not None and message.id not in answered:
                    commands.append(Fail(message.id, why))
        return commands
