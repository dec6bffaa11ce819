"""A conversation that may begin before all of the recording is read.

Owns the waiting: a message of which the rest of the recording could still
change the answer waits until it cannot, and what comes after it waits behind
it, so that a client's requests are taken in their order. What no recording has
a say in does not wait: garbage, and the client's answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mcpspy.core.message import AnyMessage, Notification, Request, read_frame
from mcpspy.core.mock.asked import asked
from mcpspy.core.mock.conversation import Conversation, Options
from mcpspy.core.mock.introduction import is_enough
from mcpspy.core.mock.library import Library
from mcpspy.core.parties import INTRODUCTIONS
from mcpspy.core.record import Frame
from mcpspy.core.spec import CLIENT


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
