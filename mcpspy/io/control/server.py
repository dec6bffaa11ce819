"""The server side of the control protocol: greeting, commands, responses and events.

Independent of sockets and of the meaning of commands. Specification: docs/control.md.
"""

from __future__ import annotations

from mcpspy.core.framing import LineFramer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class ControlTarget(Protocol):
        """The session that is controlled."""

        session: str
        tell: Callable[[str | None, dict[str, Any]], None]
        """Set by the server: send an event to one viewer, or to all (None)."""

        def hello(self) -> dict[str, Any]:
            """Return the greeting."""

        def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
            """Execute a command of a viewer. Return the fields of the response, or raise CommandError."""

        def viewer_left(self, viewer: str) -> None:
            """Handle the end of a viewer's connection."""

        def listening(self, path: str | None) -> None:
            """Handle the start of the control socket, or None for its failure."""

        def closing(self) -> None:
            """Handle the end of the session, before viewers are disconnected."""

        def closed(self) -> None:
            """Handle the end of all connections. May block for a short time."""


VERSION = 1

MAX_LINE = 64 << 20
"""Maximum size of a command in bytes, as large as the maximum of all held messages."""

UNANSWERED = ("decide", "note")
"""Commands that get a response only if they are refused: those for each message of a script."""

DEFAULT_NAME = "viewer"
"""Name of a viewer that has not sent one."""


class ControlServer:
    """All connections to a session."""

    def __init__(self, live: ControlTarget, token: bytes = b"") -> None:
        self.live = live
        self.token = token
        self.connections: list[Connection] = []
        live.tell = self.tell

    def accept(self, write: Callable[[bytes], None], disconnect: Callable[[], None]) -> Connection:
        """Greet a viewer. `write` sends bytes to it; `disconnect` closes the connection, but not immediately."""
        connection = Connection(self, write, disconnect)
        self.connections.append(connection)
        if not self.token:
            connection.greet()
        return connection

    def tell(self, viewer: str | None, event: dict[str, Any]) -> None:
        """Send an event to one viewer, or to all."""
        line = _line(event) if self.connections else b""
        for connection in self.connections:
            if connection.is_greeted and viewer in (None, connection.name):
                connection.write(line)

    def end(self) -> None:
        self.live.closing()
        self.tell(None, {"event": "end"})

    def name_for(self, wanted: str) -> str:
        """Return the wanted name, with a number if it is in use."""
        taken = {connection.name for connection in self.connections}
        number = 1
        name = wanted
        while name in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name


class Connection:
    """The connection of one viewer."""

    def __init__(
        self, server: ControlServer, write: Callable[[bytes], None], disconnect: Callable[[], None]
    ) -> None:
        self._server = server
        self.write = write
        self._disconnect = disconnect
        self.name = server.name_for(DEFAULT_NAME)
        self.is_greeted = False
        """True if the viewer has sent the token, or none is needed."""
        self._is_disconnected = False
        self._framer = LineFramer()
        self._incomplete = 0

    def greet(self) -> None:
        self.is_greeted = True
        self.write(_line({"mcpspy": VERSION, **self._server.live.hello()}))

    def feed(self, data: bytes) -> None:
        lines = self._framer.feed(data)
        self._incomplete = len(data) - data.rfind(b"\n") - 1 if lines else self._incomplete + len(data)
        for line in lines:
            self._handle_line(line)
        if self._incomplete > MAX_LINE:
            self._refuse(None, f"the line exceeds {MAX_LINE} bytes")
            self._disconnect()

    def on_disconnect(self) -> None:
        """Handle the end of the connection: release the messages that the viewer held."""
        if not self._is_disconnected:
            self._is_disconnected = True
            self._server.connections.remove(self)
            self._server.live.viewer_left(self.name)

    def _handle_line(self, line: bytes) -> None:
        if self._is_disconnected:
            return
        if not self.is_greeted:
            from hmac import compare_digest

            if compare_digest(line, self._server.token):
                self.greet()
            else:
                self._disconnect()
            return
        from mcpspy.core.protocol.message import loads

        order = loads(line)
        if not isinstance(order, dict) or not isinstance(order.get("order"), str):
            self._refuse(None, 'not a command: send a JSON object such as {"n":1,"order":"list"}')
        else:
            self._execute(order)

    def _execute(self, order: dict[str, Any]) -> None:
        from mcpspy.core.intercept.actions import CommandError

        number = order.get("n")
        try:
            if order["order"] == "hello":
                answer = self._rename(order.get("viewer"))
            else:
                answer = self._server.live.order(self.name, order)
        except CommandError as error:
            self._refuse(number, str(error))
            return
        if order["order"] not in UNANSWERED:
            self.write(_line({"n": number, "ok": True, **answer}))

    def _rename(self, name: object) -> dict[str, Any]:
        from mcpspy.core.intercept.actions import CommandError

        if not isinstance(name, str) or not name.isidentifier() or len(name) > 20:
            raise CommandError('"viewer" must be a word of at most 20 letters, such as "tui"')
        self._server.live.viewer_left(self.name)  # Release the messages that it held under another name.
        self.name = ""
        self.name = self._server.name_for(name)
        return {"viewer": self.name}

    def _refuse(self, number: object, why: str) -> None:
        self.write(_line({"n": number, "ok": False, "error": " ".join(why.split())}))


def _line(value: dict[str, Any]) -> bytes:
    from mcpspy.core.rules.edit import to_json

    return to_json(value) + b"\n"
