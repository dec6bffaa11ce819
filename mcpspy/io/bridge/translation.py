"""The translation of a bridged session: executes the commands of `core.era`, and records what is sent.

A message of a peer is recorded as it came. If the other peer gets it in another form, a note `rule` with the action
`translate` follows; if it does not get it, the message has the key `to`, and what mcpspy sends in its place the key
`by` (docs/format.md). All messages of a translated session are in one stream, that of its first request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mcpspy.core.era.commands import Command, Fail, Later, SendToHost, SendToServer, TranslationNote
from mcpspy.core.era.machine import EraMachine
from mcpspy.core.era.messages import read
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.encode import MCPSPY, note
from mcpspy.core.session.rule_notes import RULE
from mcpspy.core.session.translation_notes import TRANSLATE, TRANSLATION, words
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.bridge.interception import BridgeInterception
    from mcpspy.io.client import ReceivedMessage
    from mcpspy.io.client.http import HttpConnection
    from mcpspy.io.client.http_exchange import ClientExchange
    from mcpspy.io.recording.recorder import Recorder


class TranslationCarrier(Protocol):
    """The bridge, which sends what the translation decides on."""

    interception: BridgeInterception

    def post(self, data: bytes, exchange: ClientExchange | None) -> None:
        """Send a message to the server, after the earlier ones. Without an exchange, it is one of mcpspy."""

    def give(self, data: bytes) -> None:
        """Send a message of mcpspy to the host."""

    def fail(self, id: str, why: str) -> bytes:  # noqa: A002
        """Answer a request of the host with an error, which is returned."""

    def settle(self, message: AnyMessage) -> None:
        """Take a response that the host gets."""


class Translation:
    def __init__(
        self, bridge: TranslationCarrier, recorder: Recorder, policy: str, *, has_handshake: bool
    ) -> None:
        """`policy` is one of `core.era.commands.POLICIES`; `has_handshake`: the transport is HTTP+SSE."""
        self._bridge = bridge
        self._recorder = recorder
        self._machine = EraMachine(f"mcpspy-{secrets.token_hex(4)}-", policy, has_handshake=has_handshake)
        self._stream = ""
        """The stream of the session, once it is translated."""
        self._streams: dict[str, Value] = {}
        """Open requests of the host, by id → the stream in which they are recorded."""
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def is_active(self) -> bool:
        return self._machine.translation is not None

    @property
    def initialize(self) -> bytes:
        """The handshake that begins a session with the server again; empty if it is the host's."""
        return self._machine.initialize

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    # The host's messages.

    def exchange_for(self, connection: HttpConnection, first: AnyMessage) -> ClientExchange | None:
        """Return the exchange for a message of the host; None if it closes another exchange, or is kept."""
        if self._machine.keeps(first):
            return None
        exchange = connection.exchange_for(first)
        if exchange is not None:
            if self._machine.has_handshake and connection.stream is not None:
                self._stream = connection.stream
            self._adopt(exchange)
            if isinstance(first, Request):
                self._stream = self._stream or exchange.stream
        return exchange

    def fields(self, first: AnyMessage, exchange: ClientExchange | None) -> dict[str, Value] | None:
        """Return the fields of the entry of a host's message; None if it is not recorded: it closes an exchange."""
        if exchange is not None:
            fields: dict[str, Value] = exchange.fields
        elif self._machine.keeps(first):
            fields = {"stream": self._stream, "to": MCPSPY}
        else:
            return None
        if isinstance(first, Request):
            self._streams[first.id] = fields["stream"]
        return fields

    def client(self, data: bytes, exchange: ClientExchange | None) -> list[Command]:
        """Take a message of the host, which is recorded. Return the commands to run."""
        commands = self._machine.client(data, exchange)
        for command in commands:
            if isinstance(command, SendToServer) and command.carrier is not None and command.data != data:
                self._recorder.note(RULE, **_fields(CLIENT, data, command.data))
        return commands

    # The server's messages.

    def server(self, event: ReceivedMessage, data: bytes, fields: dict[str, Value]) -> None:
        """Take a message of the server, and record it."""
        commands = self._machine.server(data, event.request)
        while commands and isinstance(commands[0], TranslationNote):
            self.run(commands[:1])
            del commands[0]
        forwarded = [each for each in commands if isinstance(each, SendToHost) and not each.is_own]
        if len(forwarded) != 1 or not self._may_forward(forwarded[0].data, fields):
            self._bridge.interception.record(SERVER, event.data, {**fields, "to": MCPSPY})
            self.run(commands)
            return
        (found,) = forwarded
        notes = []
        if found.data != data:
            notes.append(note(self._bridge.interception.now(), RULE, _fields(SERVER, data, found.data)))
        self._settle(found.data)
        self._bridge.interception.take(SERVER, found.data, fields, original=event.data, notes=notes)
        self.run(each for each in commands if each is not found)

    def failed(self, id: str, why: str, status: int | None) -> None:  # noqa: A002
        """Take the end of a request without a response."""
        self.run(self._machine.failed(id, why, status))

    def has(self, id: str) -> bool:  # noqa: A002
        return self._machine.has(id)

    def lost(self, why: str) -> None:
        """Take the end of the connection."""
        self.run(self._machine.lost(why))

    def restored(self) -> None:
        """Take the beginning of another session with the server."""
        self.run(self._machine.restored())

    def own_exchange(self, connection: HttpConnection, data: bytes) -> ClientExchange | None:
        """Record a message of mcpspy to the server. Return its exchange; None if it closes another one."""
        (message,) = read(CLIENT, data)
        exchange = connection.exchange_for(message)
        if exchange is not None:
            self._adopt(exchange)
            if isinstance(message, Request) and message.id in self._streams:
                # It is sent again, and recorded once.
                self._recorder.note(RULE, **_fields(CLIENT, data, data))
            else:
                self._bridge.interception.record(CLIENT, data, {**exchange.fields, "by": MCPSPY})
            exchange.is_request_recorded = True
        return exchange

    def _adopt(self, exchange: ClientExchange) -> None:
        if self._stream and (self.is_active or self._machine.is_probing or self._machine.has_handshake):
            exchange.stream = self._stream

    def _may_forward(self, data: bytes, fields: dict[str, Value]) -> bool:
        """Return whether a message for the host is in the stream of the request that it answers."""
        (message,) = read(SERVER, data)
        if not isinstance(message, Result | Failure):
            return True
        stream = fields.get("stream")
        return self._streams.get(message.id or "", stream) == stream

    def _settle(self, data: bytes) -> Value:
        """Take a message that the host gets. Return its stream."""
        stream: Value = self._stream
        for message in read(SERVER, data):
            self._bridge.settle(message)
            if isinstance(message, Result | Failure) and message.id is not None:
                stream = self._streams.pop(message.id, stream)
        return stream

    def run(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case SendToServer(data, carrier, timeout):
                    self._bridge.post(data, carrier)  # type: ignore[arg-type]  # It is an exchange.
                    if timeout is not None:
                        self._start_timer(timeout, partial(self._time_out, data, timeout))
                case SendToHost(data):
                    fields: dict[str, Value] = {"stream": self._settle(data), "by": MCPSPY}
                    self._bridge.interception.record(SERVER, data, fields)
                    self._bridge.give(data)
                case Fail(id_, why):
                    stream = self._streams.pop(id_, self._stream)
                    data = self._bridge.fail(id_, why)
                    if data and self.is_active:
                        self._bridge.interception.record(SERVER, data, {"stream": stream, "by": MCPSPY})
                case Later(seconds):
                    self._start_timer(seconds, lambda: self.run(self._machine.again()))
                case TranslationNote(did, host, server, refused):
                    fields = {"did": did, "host": host, **({"server": server} if server else {})}
                    if refused:
                        fields["refused"] = list(refused)
                    self._recorder.note(TRANSLATION, **fields)
                    if did == "begin":
                        say(words(fields))

    def _time_out(self, data: bytes, seconds: float) -> None:
        (request,) = read(CLIENT, data)
        assert isinstance(request, Request)
        why = f"the server sent no response to {request.method} within {seconds:g} s"
        if commands := self._machine.timed_out(request.id, why):
            self._recorder.note("error", text=why)
            say(why)
            self.run(commands)

    def _start_timer(self, seconds: float, work: Callable[[], None]) -> None:
        def end() -> None:
            self._timers.discard(timer)
            work()

        timer = asyncio.get_running_loop().call_later(seconds, end)
        self._timers.add(timer)


def _fields(side: str, data: bytes, sent: bytes) -> dict[str, Value]:
    """Return the fields of the note on a message that its receiver gets in another form."""
    (message, *_) = read(side, data)
    fields: dict[str, Value] = {"action": TRANSLATE, "from": side}
    if isinstance(message, Request | Result | Failure) and message.id is not None:
        fields["id"] = message.id
    if method := getattr(message, "method", ""):
        fields["method"] = method
    return {**fields, "sent": sent.decode("utf-8", "replace")}
