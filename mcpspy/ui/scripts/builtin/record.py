"""Record only the exchanges and notifications that match a filter. Use it with --no-record.

Options: filter, file (new file, or a folder with a slash at its end; default: the sessions folder).
"""

from __future__ import annotations

from mcpspy import LiveExchange, LiveMessage, LiveSession
from mcpspy.core.recording.encode import frame_prefix, splice
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.ui.api.exchange import read_query
from mcpspy.ui.scripts.builtin import required

HANDSHAKE = ("initialize", "server/discover")


class Record:
    def configure(self, options: dict[str, str]) -> None:
        self.filter = required(options, "filter")
        read_query(self.filter)
        self.target = RecordingTarget()
        self.target.record = options.get("file")
        self.waiting: dict[str, LiveExchange] = {}

    def session_started(self, session: LiveSession) -> None:
        self.recorder = Recorder(self.target, {"transport": session.transport, "name": session.name})
        self.offset: float | None = None

    def request(self, exchange: LiveExchange) -> None:
        self.waiting[key(exchange)] = exchange

    def response(self, exchange: LiveExchange) -> None:
        self.waiting.pop(key(exchange), None)
        if exchange.method in HANDSHAKE or exchange.matches(self.filter):
            self.write(exchange.request)
            self.write(exchange.message)

    def notification(self, message: LiveMessage) -> None:
        if message.matches(self.filter):
            self.write(message)

    def session_ended(self, session: LiveSession) -> None:
        for exchange in self.waiting.values():
            if exchange.matches(self.filter):
                self.write(exchange.request)
        self.recorder.finish(None, None)

    def write(self, message: LiveMessage) -> None:
        if self.offset is None:  # The recording and the session have not started at the same time.
            self.offset = self.recorder.now() - message.at
        stream = {} if message.stream is None else {"stream": message.stream}
        at = max(0.0, message.at + self.offset)
        self.recorder.write(splice(frame_prefix(message.side, stream) % at, [message.data], body=True))


def key(exchange: LiveExchange) -> str:
    return f"{exchange.request.stream} {exchange.side} {exchange.id!r}"


script = Record()
