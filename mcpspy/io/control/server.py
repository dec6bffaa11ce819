"""What is said between a live session and its visitors: JSON lines.

Owns the conversation of each visitor: greeting, orders, answers, events. Knows
neither sockets nor what orders mean. Specification: docs/control.md.
"""

from __future__ import annotations

from mcpspy.core.framing import LineFramer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Live(Protocol):
        """A live session."""

        session: str
        tell: Callable[[str | None, dict[str, Any]], None]
        """Set by the room: how a visitor, or everyone (None), is told an event."""

        def hello(self) -> dict[str, Any]:
            """Return what a visitor hears first."""

        def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
            """Do as a visitor wants; return the answer's fields, or raise OrderError."""

        def viewer_left(self, viewer: str) -> None:
            """A visitor has gone."""


VERSION = 1

LONGEST = 64 << 20
"""Bytes an order may have: as many as can be held."""

STRANGER = "viewer"
"""Who has not said who it is."""


class ControlServer:
    """All visitors of a session."""

    def __init__(self, live: Live, token: bytes = b"") -> None:
        self.live = live
        self.token = token
        self.guests: list[Connection] = []
        live.tell = self.tell

    def enter(self, write: Callable[[bytes], None], show_out: Callable[[], None]) -> Connection:
        """Greet a visitor. `write` sends bytes to it; `show_out` ends the connection, later."""
        guest = Connection(self, write, show_out)
        self.guests.append(guest)
        if not self.token:
            guest.greet()
        return guest

    def tell(self, viewer: str | None, event: dict[str, Any]) -> None:
        """Tell one visitor, or all, what has happened."""
        line = _line(event) if self.guests else b""
        for guest in self.guests:
            if guest.is_known and viewer in (None, guest.name):
                guest.write(line)

    def end(self) -> None:
        """Say that the session has ended."""
        self.tell(None, {"event": "end"})

    def name_for(self, wanted: str) -> str:
        """Return a name that no visitor has: as wanted, or with a number."""
        taken = {guest.name for guest in self.guests}
        number = 1
        name = wanted
        while name in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name


class Connection:
    """One visitor."""

    def __init__(
        self, room: ControlServer, write: Callable[[bytes], None], show_out: Callable[[], None]
    ) -> None:
        self._room = room
        self.write = write
        self._show_out = show_out
        self.name = room.name_for(STRANGER)
        self.is_known = False
        """Whether it has shown that it may be here."""
        self._has_left = False
        self._framer = LineFramer()
        self._held = 0

    def greet(self) -> None:
        """Say what session this is."""
        self.is_known = True
        self.write(_line({"mcpspy": VERSION, **self._room.live.hello()}))

    def feed(self, data: bytes) -> None:
        """Take what it has sent."""
        lines = self._framer.feed(data)
        self._held = len(data) - data.rfind(b"\n") - 1 if lines else self._held + len(data)
        for line in lines:
            self._hear(line)
        if self._held > LONGEST:
            self._refuse(None, f"a line of more than {LONGEST} bytes")
            self._show_out()

    def left(self) -> None:
        """It has gone; what it held goes on."""
        if not self._has_left:
            self._has_left = True
            self._room.guests.remove(self)
            self._room.live.viewer_left(self.name)

    def _hear(self, line: bytes) -> None:
        if self._has_left:
            return
        if not self.is_known:
            from hmac import compare_digest

            if compare_digest(line, self._room.token):
                self.greet()
            else:
                self._show_out()
            return
        from mcpspy.core.protocol.message import loads

        order = loads(line)
        if not isinstance(order, dict) or not isinstance(order.get("order"), str):
            self._refuse(None, 'no order: one is a JSON object, as in {"n":1,"order":"list"}')
        else:
            self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        from mcpspy.core.intercept.actions import CommandError

        number = order.get("n")
        try:
            if order["order"] == "hello":
                answer = self._introduced(order.get("viewer"))
            else:
                answer = self._room.live.order(self.name, order)
        except CommandError as error:
            self._refuse(number, str(error))
            return
        self.write(_line({"n": number, "ok": True, **answer}))

    def _introduced(self, name: object) -> dict[str, Any]:
        from mcpspy.core.intercept.actions import CommandError

        if not isinstance(name, str) or not name.isidentifier() or len(name) > 20:
            raise CommandError('"viewer": a word of at most 20 letters, as in "tui"')
        self._room.live.viewer_left(self.name)  # What it held under another name.
        self.name = ""
        self.name = self._room.name_for(name)
        return {"viewer": self.name}

    def _refuse(self, number: object, why: str) -> None:
        self.write(_line({"n": number, "ok": False, "error": " ".join(why.split())}))


def _line(value: dict[str, Any]) -> bytes:
    from mcpspy.core.rules.edit import written

    return written(value) + b"\n"
