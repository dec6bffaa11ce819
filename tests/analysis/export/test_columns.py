"""Columns that all messages of a session have."""

from __future__ import annotations

from msgspec.structs import replace

from mcpspy.analysis.export.columns import of_session
from mcpspy.core.recording.decode import Frame
from tests.analysis.export.sessions import HEADER, note, session_of

HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"mcp","version":"1"}}}'
)


def test_a_client_that_follows_a_redirect_has_one_name() -> None:
    """The repetition of `initialize` has its own stream, because the server has not named a session yet."""
    head = {"http": 1, "stream": "1"}
    columns = of_session(
        session_of(
            Frame(0, "client", HELLO, "1", 1),
            note(0.1, "http", **head, method="POST", path="/mcp", status=307, response={"location": "/mcp/"}),
            note(0.2, "http-end", **head, hung_up=None),
            Frame(0.3, "client", HELLO, "2", 2),
            Frame(9, "client", HELLO, "3", 3),
            header=replace(HEADER, transport="http", command=None, upstream="http://h/mcp"),
        )
    )

    assert [columns.label(stream) for stream in ("1", "2", "3")] == ["mcp", "mcp", "mcp #3"]
