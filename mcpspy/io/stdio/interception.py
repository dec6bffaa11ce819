"""Interception of a stdio session: rules, the watchdog and viewers.

Each decision is recorded before its messages are sent, with one write per batch. The original bytes of held
messages are kept, so a bug in the engine disables the rules but loses no traffic. While there is nothing to
decide, the channels forward bytes without this module.
"""

from __future__ import annotations

from mcpspy.core.framing import is_message
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, note
from mcpspy.io.intercept.interception import SessionInterception
from mcpspy.io.stdio.base import STDERR, THROUGH
from mcpspy.io.stdio.message_channel import MessageChannel, StderrLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mcpspy.core.intercept import actions
    from mcpspy.core.intercept.interceptor import Interceptor
    from mcpspy.io.intercept.executor import Effect
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RunOptions, Taps
    from mcpspy.io.stdio.message_channel import ByteStream

JOIN_LIMIT = 1 << 20
"""Maximum size of entries or messages, in bytes, that are joined for one write. Larger ones are not copied again."""

BLANKS = b" \t"

BATCH_SIZE = 64
"""Number of messages that are recorded and sent with one write."""

MAX_UNREAD_INJECTED = 1 << 20
"""Limit for injected responses, in bytes, that a peer has not read. Above it, mcpspy stops reading from that peer."""

MAX_BACKLOG = 64 << 20
"""Limit for unread bytes of a peer. Above it, viewers cannot send to that peer."""


class Outbox:
    """Entries of a recording, with the bytes and events that may leave only after them."""

    __slots__ = ("entries", "events", "sent")

    def __init__(self) -> None:
        self.entries: list[bytes | bytearray] = []
        """Pieces of recording lines."""
        self.sent: list[tuple[Callable[[bytes], None], bytes]] = []
        """Send functions and the bytes for each."""
        self.events: list[tuple[str | None, dict[str, Any]]] = []
        """Events with the viewer that receives each; None stands in for all viewers."""

    def record(self, entry: Iterable[bytes | bytearray]) -> None:
        """Add an entry, all of it or, after an exception, nothing."""
        self.entries += list(entry)

    def forward(self, channel: MessageChannel, line: bytes) -> None:
        """Forward a line of a peer. The line may be large, so it is not copied to append the LF."""
        self.sent += [(channel.send, line), (channel.send, b"\n")]

    def bytes_for(self, channel: MessageChannel) -> int:
        return sum(len(data) for write, data in self.sent if write == channel.send)

    def send(self, recorder: Recorder) -> None:
        """Record the entries, then send the bytes."""
        entries = self.entries
        if entries:
            recorder.write(b"".join(entries) if sum(map(len, entries)) < JOIN_LIMIT else entries)
        sent: dict[Callable[[bytes], None], list[bytes]] = {}
        for write, data in self.sent:
            sent.setdefault(write, []).append(data)
        for write, pieces in sent.items():
            for data in (b"".join(pieces),) if sum(map(len, pieces)) < JOIN_LIMIT else pieces:
                write(data)


class StdioInterception(SessionInterception):
    """Interception of both directions. Only `order` raises."""

    transport = "stdio"

    def __init__(
        self,
        recorder: Recorder,
        options: RunOptions,
        taps: Taps,
        streams: Sequence[ByteStream],
        alarm: Callable[[], None],
    ) -> None:
        """Create the channels. `alarm` is called whenever `due_at` changes."""
        super().__init__(recorder, options.interception, options.session_name)
        self._noise = options.noise
        self._alarm = alarm
        self._channels = {
            CLIENT: MessageChannel(CLIENT, streams[0], taps[0], self, options.line_limit),
            SERVER: MessageChannel(SERVER, streams[1], taps[1], self, options.line_limit),
        }
        self._stderr, self._stderr_tap = streams[2], taps[2]
        self._is_watching_stderr = False
        self._held: dict[int, tuple[MessageChannel, bytes]] = {}
        """Channel and original line of each held message, in order of arrival."""
        self._is_disconnected = False
        self._outbox = Outbox()

    @property
    def due_at(self) -> float | None:
        """Return the monotonic time at which `wake` is due, or None."""
        next_at = None if self._interceptor is None else self._interceptor.next_at
        return None if next_at is None else self._epoch + next_at

    def passes(self, channel: MessageChannel, lines: bytes) -> bool:
        """Return True if complete lines, each with its LF, need no decision."""
        interceptor = self._interceptor
        if interceptor is None or not self.is_on or self._is_disconnected or self._drops_noise(channel):
            return False
        try:
            return all(interceptor.passes(channel.side, line) for line in lines[:-1].split(b"\n"))
        except Exception as error:
            self._give_up(error)
            return False

    def take(self, channel: MessageChannel, lines: list[bytes]) -> None:
        """Decide on complete lines, given without their LF, in order."""
        at = self.now()
        for start in range(0, len(lines), BATCH_SIZE):
            for line in lines[start : start + BATCH_SIZE]:
                try:
                    self._decide(at, channel, line)
                except Exception as error:
                    self._give_up(error)
                    self._forward_unchanged(at, channel, line)
            self._apply_backpressure(channel, self._flush())
        self._settle()

    @property
    def is_deciding(self) -> bool:
        """Return whether messages wait for a script."""
        return any(map(self.is_deciding_on, self._channels.values()))

    def is_deciding_on(self, channel: MessageChannel) -> bool:
        return self.waiting_for_scripts(channel.side)[0] > 0

    def end_side(self, channel: MessageChannel) -> None:
        """Release the held messages of a side that closed its end of the pipe."""
        self._run(lambda interceptor, at: interceptor.end(at, channel.side))
        self._release(lambda other: other is channel)
        self._flush()

    def release_server(self) -> None:
        """Release the held messages of a server that has exited."""
        if any(channel.side == SERVER for channel, _ in self._held.values()):
            self.end_side(self._channels[SERVER])

    def keep_back(self, channel: MessageChannel, unfinished: bytes) -> bool:
        """Keep an unfinished last line from the host if it is noise; return False if it is to be forwarded."""
        try:
            if not self._drops_noise(channel) or is_json_message(
                unfinished.removesuffix(b"\r"), thoroughly=True
            ):
                return False
        except Exception as error:
            self._give_up(error)
            return False
        self._remove_noise(channel.last_at, channel, unfinished, torn=True)
        self._flush()
        return True

    def wake(self) -> None:
        next_at = None if self._interceptor is None else self._interceptor.next_at
        if next_at is not None and next_at <= self.now():
            super().wake()

    def finish(self) -> None:
        """Release all held messages and unfinished lines if their receiver still reads."""
        self._run(lambda interceptor, at: interceptor.end(at))
        self._release()
        self._flush()
        for channel in self._channels.values():
            channel.off()
        self.is_on = False

    def _check_deliverable(self, interceptor: Interceptor, order: dict[str, Any]) -> None:
        from mcpspy.core.intercept.actions import CommandError

        if (to := order.get("to", SERVER)) in (CLIENT, SERVER):
            stream = self._channels[CLIENT if to == SERVER else SERVER].stream
            if not stream.is_writable:
                raise CommandError(f"cannot send to the {to}: its pipe is closed")
            if stream.backlog > MAX_BACKLOG:
                raise CommandError(f"the {to} is not reading: {stream.backlog} bytes are queued")
        # Without a recording, earlier messages are unknown.
        is_silent = self._recorder.writer is not None and not interceptor.injected.has_client_message
        if interceptor.injected.is_initializing or is_silent:
            raise CommandError("the session has not started: try again after the handshake")
        # First of all: nothing may be injected inside a line, and the response is inspected from its first byte.
        for channel in self._channels.values():
            channel.on()

    def _carry_out(self, at: float, steps: Iterable[actions.Step]) -> None:
        lines, effects = self._planned(at, steps)
        self._outbox.record(lines)
        self._execute(effects)
        self._flush()

    def _decide(self, at: float, channel: MessageChannel, line: bytes) -> None:
        """Decide on one line. An exception is a bug in the engine; nothing has happened then."""
        drops_noise = self._drops_noise(channel)
        if self._is_disconnected:
            self._outbox.record(channel.frame(at, line, {"to": MCPSPY}))
            return
        if len(line) <= channel.limit:
            data = line.removesuffix(b"\r")
            if not is_json_message(data, thoroughly=drops_noise):
                if drops_noise:
                    self._remove_noise(at, channel, line)
                    return
            elif self._interceptor is not None and self.is_on:  # Otherwise, only noise is removed.
                decision = self._interceptor.process(at, channel.side, data)
                if not decision.is_untouched:
                    self._carry_out_decision(at, channel, line, decision)
                    return
        self._forward_unchanged(at, channel, line)

    def _carry_out_decision(
        self, at: float, channel: MessageChannel, line: bytes, decision: actions.Decision
    ) -> None:
        lines, effects = self._planned(at, decision.steps)
        self._outbox.record(channel.frame(at, line, {"to": MCPSPY} if decision.to_mcpspy else {}))
        self._outbox.record(lines)
        self._held[decision.ticket] = channel, line
        self._execute(effects)
        if not decision.is_held:
            self._held.pop(decision.ticket, None)

    def _drops_noise(self, channel: MessageChannel) -> bool:
        return channel.side == SERVER and self._noise != THROUGH

    def _remove_noise(self, at: float, channel: MessageChannel, line: bytes, *, torn: bool = False) -> None:
        self._outbox.record(channel.frame(at, line, {"to": MCPSPY}, torn=torn))
        self._outbox.record([note(at, "noise", {"did": self._noise})])
        if self._noise == STDERR:
            self._outbox.sent.append((self._stderr.put, line + b"\n"))

    def _forward_unchanged(self, at: float, channel: MessageChannel, line: bytes) -> None:
        self._outbox.record(channel.frame(at, line, {}))
        self._outbox.forward(channel, line)

    def _flush(self) -> Outbox:
        """Record and send what is in the outbox, then notify viewers."""
        outbox, self._outbox = self._outbox, Outbox()
        outbox.send(self._recorder)
        for viewer, event in outbox.events:
            self.tell(viewer, event)
        if self._is_disconnected:
            for channel in self._channels.values():
                channel.stream.finish()
        return outbox

    # What carries the steps: bytes and events wait in the outbox until their entries are recorded.

    def forward(self, step: actions.Forward) -> None:
        self._outbox.forward(*self._held.pop(step.ticket))

    def substitute(self, step: actions.Substitute) -> None:
        channel, _ = self._held.pop(step.ticket)
        self._outbox.sent.append((channel.send, step.data if step.raw else step.data + b"\n"))

    def drop(self, step: actions.Dropped) -> None:
        del self._held[step.ticket]

    def disconnect(self, step: actions.Disconnect) -> None:
        self._is_disconnected = True

    def notify(self, viewer: str | None, event: dict[str, Any]) -> None:
        self._outbox.events.append((viewer, event))

    def injection(self, at: float, step: actions.Inject) -> tuple[Iterable[bytes | bytearray], Effect] | None:
        channel = self._channels[step.side]
        if not channel.stream.is_writable:
            return None
        sent = channel.send, step.data + b"\n"
        return channel.frame(at, step.data, {"by": MCPSPY}), lambda: self._outbox.sent.append(sent)

    def _apply_backpressure(self, channel: MessageChannel, outbox: Outbox) -> None:
        """Stop reading from a peer that causes responses but does not read them."""
        (other,) = (each for each in self._channels.values() if each is not channel)
        if answered := outbox.bytes_for(other):
            earlier = 0 if other.stream.backlog <= answered else other.unread_injected
            other.unread_injected = earlier + answered
            if other.unread_injected > MAX_UNREAD_INJECTED:
                channel.stream.wait_for(other.stream)

    def _switch(self, *, is_wanted: bool) -> bool:
        for channel in self._channels.values():
            if is_wanted or channel.has_queued or self._drops_noise(channel):
                channel.on()
            else:
                channel.off()
        return self._channels[CLIENT].is_on

    def _settle(self) -> None:
        super()._settle()
        if self._options.scripts.files:
            for channel in self._channels.values():
                if self.is_crowded(channel.side) or (channel.is_waiting and self.is_deciding_on(channel)):
                    channel.stream.pause()
                else:
                    channel.stream.resume()

    def _watch_stderr(self, *, is_wanted: bool) -> None:
        lines, self._stderr_lines = self._stderr_lines, []
        if is_wanted != self._is_watching_stderr:
            self._is_watching_stderr = is_wanted
            limit = self._channels[SERVER].limit
            watcher = StderrLines(self._stderr, self._stderr_tap, self._tell_stderr, limit)
            self._stderr.divert(watcher if is_wanted else None)
        for line in lines if is_wanted else ():
            self._tell_stderr(line)

    def _set_alarm(self, next_at: float | None) -> None:
        if next_at is not None:
            self._alarm()

    def _release(self, of: Callable[[MessageChannel], bool] = lambda _: True) -> None:
        """Forward the held messages in order of arrival."""
        held, self._held = self._held, {}
        for ticket, (channel, line) in held.items():
            if of(channel):
                self._outbox.forward(channel, line)
            else:
                self._held[ticket] = channel, line

    def _give_up(self, error: Exception) -> None:
        self._discard(error)
        self._release()
        self._outbox.record([note(self.now(), "error", {"text": self._failure})])
        self._flush()


def is_json_message(line: bytes, *, thoroughly: bool) -> bool:
    """Return whether a line is a JSON object or array. Unless `thoroughly`, check the outer brackets only."""
    from mcpspy.core.protocol.message import loads

    return is_message(line, BLANKS) and (not thoroughly or loads(line.strip(BLANKS)) is not None)
