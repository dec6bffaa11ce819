"""What mcpspy said and did while a session was recorded: the client is told what it was told then.

Owns which messages were part of its talk with the server, and what of a message of the server was
changed, dropped or delayed on its way to it, as the notes of the recording say it. A message that was
corrupted is left whole: that is for the same rule to do again.
"""

from __future__ import annotations

from typing import TypeGuard

from mcpspy.core.message import AnyMessage, Failure, Malformed, Result
from mcpspy.core.mock.scene import Said
from mcpspy.core.mock.shelf import Place, Shelf
from mcpspy.core.record import Note
from mcpspy.core.spec import SERVER

GONE: Place = (0, 0)
"""Where a message is that never reached the client."""


class Tampering:
    """The fold over notes of kind `rule`."""

    def __init__(self, shelf: Shelf) -> None:
        self.last: tuple[int, int] | None = None
        """Row and place of the server's message, if it is what came last: notes on it come next."""
        self._shelf = shelf
        self._held: dict[object, tuple[int, int]] = {}
        """The same of what is held, by ticket."""

    def may_change(self, row: int) -> bool:
        """Whether something may still be done to a message of this row."""
        return (self.last is not None and self.last[0] == row) or any(
            row == its for its, _ in self._held.values()
        )

    def add(self, note: Note, line: bytes, offset: int) -> None:
        """Take a note, and its line, if it is in a file."""
        fields = note.fields
        ticket, action = fields.get("ticket"), fields.get("action")
        is_held = isinstance(ticket, int)
        which = self._held.pop(ticket, None) if is_held and action == "release" else self.last
        if which is None or fields.get("from") != SERVER:
            return
        if is_held and action == "hold":
            self._held[ticket] = which
            return
        seconds, sent = fields.get("seconds"), fields.get("sent")
        if action not in ("delay", "release") or not isinstance(seconds, int | float):
            seconds = 0.0
        later = max(0.0, seconds)
        if fields.get("why") in ("dropped", "connection closed"):
            self._shelf.amend(*which, GONE)
        elif isinstance(sent, str) and sent[:1] + sent[-1:] == "{}" and action in ("replace", "release"):
            where = (
                self._shelf.noted(offset, len(line))
                if line
                else self._shelf.keep(sent.encode("utf-8", "replace"))
            )
            self._shelf.amend(*which, where, later)
        elif later:
            self._shelf.amend(*which, None, later)


def is_heard(message: AnyMessage) -> TypeGuard[Said]:
    """Whether the host said it, or heard it from its server.

    What we said to the server in the host's name, its answers to that, what we dropped, and what a viewer said to the
    host is no part of their talk. An answer of ours is: the host had no other.
    """
    frame = message.frame
    if isinstance(message, Malformed) or (frame.side == SERVER and frame.to is not None):
        return False
    return frame.by is None or (frame.side == SERVER and isinstance(message, Result | Failure))
