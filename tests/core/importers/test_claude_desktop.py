"""Logs of Claude Desktop; files/mcp-server-weather.log and files/mcp.log have examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.importers.claude_desktop import sessions
from tests.core.importers.reading import frames, notes

FILES = Path(__file__).parent / "files"
LINE = b"2026-11-21T08:00:00.%03dZ [weather] [info] %b { metadata: undefined }\n"
START = LINE % (0, b"Initializing server...")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_each_start_of_a_server_is_a_session_and_an_earlier_one_is_reported() -> None:
    earlier, whole = sessions((FILES / "mcp-server-weather.log").read_bytes())
    assert (earlier.key, whole.key) == ("weather-1", "weather-2")
    assert "the session may begin in an earlier file" in earlier.changed
    assert [data for _, _, data in frames(earlier)] == [
        b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    ]
    assert whole.command == ["/usr/bin/python3", "/srv/weather.py", "--motto=it's sunny"]
    assert whole.started == pytest.approx(1795248005.03)


def test_stderr_is_kept_and_objects_of_the_log_are_not_stderr() -> None:
    _, whole = sessions((FILES / "mcp-server-weather.log").read_bytes())
    assert [note["text"] for note in notes(whole, "stderr")] == [
        "[11/21/26 08:00:05] INFO     weather is ready                     weather.py:12",
        "                             3 stations",
    ]


def test_a_truncated_message_is_kept_as_it_is_and_counted() -> None:
    _, whole = sessions((FILES / "mcp-server-weather.log").read_bytes())
    assert b"...[14696 chars truncated]..." in frames(whole)[-2][2]
    assert whole.changed[:2] == [
        "truncated in the log, kept as it is: 1 message",
        "not JSON in the log, kept as it is: 1 message",
    ]
    (session,) = sessions(START + LINE % (1, b"Message from client: " + PING[:20]))
    assert [data for _, _, data in frames(session)] == [PING[:20]]
    assert session.changed[0] == "not JSON in the log, kept as it is: 1 message"


def test_the_log_of_all_servers_is_split_by_name_and_mixed_servers_are_reported() -> None:
    found = sessions((FILES / "mcp.log").read_bytes())
    assert [(session.key, session.messages) for session in found] == [
        ("weather-1", 2),
        ("files", 1),
        ("weather-2", 2),
    ]
    assert "the server's stderr, which is in mcp-server-NAME.log" in found[0].lacks
    assert "2 handshakes: servers of one name ran at the same time" in found[-1].changed


def test_lines_without_a_server_are_counted_in_the_log_of_all_servers() -> None:
    line = b"2026-11-21T08:00:00.000Z [info] [weather] Message from client: " + PING + b"\n  and more\n"
    (session,) = sessions(line)
    assert session.changed[0] == "left out, because they belong to no record: 1 line"
    assert not notes(session, "stderr")


def test_a_session_that_has_no_end_in_the_log_has_no_exit() -> None:
    lines = START + LINE % (1, b"Message from client: " + PING)
    assert not notes(sessions(lines)[0], "exit")
    assert notes(sessions(lines + LINE % (2, b"Server transport closed"))[0], "exit")
    assert notes(sessions(lines + lines)[0], "exit")


def test_a_rotated_log_may_begin_with_stderr() -> None:
    (session,) = sessions(b"last words\n" + LINE % (1, b"Message from client: " + PING) + b"and more\n")
    assert [note["text"] for note in notes(session, "stderr")] == ["last words", "and more"]


def test_lines_of_windows_are_read() -> None:
    (session,) = sessions((START + LINE % (1, b"Message from client: " + PING)).replace(b"\n", b"\r\n"))
    assert [data for _, _, data in frames(session)] == [PING]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (rb"[ 'C:\\x', [length]: 1 ]", ["node", "C:\\x"]),
        (rb"[ '', [length]: 1 ]", ["node", ""]),
        (rb"[ [length]: 0 ]", ["node"]),
        (b"[ 'a' +\n 'b', 'c', [length]: 9 ]", None),
    ],
)
def test_a_command_is_read_if_all_its_arguments_are_there(
    arguments: bytes, command: list[str] | None
) -> None:
    text = (
        b"Using MCP server command: node with args and path: {\n  metadata: {\n    args: %b\n}\n} %%o"
        % arguments
    )
    record = b"2026-11-21T08:00:00.000Z [weather] [info] " + text + b"\n"
    (session,) = sessions(START + record + LINE % (1, b"Message from client: " + PING))
    assert session.command == command


TIMEOUT = (
    b'Message from client: {"jsonrpc":"2.0","method":"notifications/cancelled",'
    b'"params":{"requestId":1,"reason":"Error: MCP error -32001: Request timed out"}}'
)


def test_the_end_of_a_session_has_the_time_of_the_log() -> None:
    lines = START + LINE % (1, b"Message from client: " + PING) + LINE % (900, b"Server transport closed")
    (session,) = sessions(lines + LINE % (999, b"Client transport closed"))
    assert session.lines[-1].startswith(b'{"t":0.899000,"note":"exit"')


def test_errors_of_the_host_are_kept_apart_from_stderr_and_counted() -> None:
    error = b"2026-11-21T08:00:00.500Z [weather] [error] spawn npx ENOENT {\n  metadata: 1\n}\n"
    (session,) = sessions(START + LINE % (1, b"Message from client: " + PING) + error + error)
    assert "errors of the host, not of the server: 2 (spawn npx ENOENT)" in session.changed
    assert not notes(session, "stderr")


def test_a_timeout_of_the_host_is_not_an_exit_of_the_server() -> None:
    lines = START + LINE % (1, b"Message from client: " + PING) + LINE % (600, TIMEOUT)
    closed = LINE % (
        603,
        b"Server transport closed unexpectedly, this is likely due to the process exiting early.",
    )
    (session,) = sessions(lines + closed)
    assert (
        "the host ended the session after its own timeout: the server may still have worked"
        in session.changed
    )
    assert any("reason for the end" in lack for lack in session.lacks)
    assert (notes(session, "exit")[0]["code"], notes(session, "exit")[0]["signal"]) == (None, None)
    (calm,) = sessions(lines)
    assert not any("timeout" in change for change in calm.changed)
    assert any("the end of the session is not in the log" in change for change in calm.changed)


def test_records_that_are_not_messages_are_counted() -> None:
    (session,) = sessions(START + LINE % (1, b"Message from client: " + PING))
    assert "left out, because they are not messages: 1 record of the host" in session.changed


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (b"""Unexpected token 'S', "Starting w"... is not valid JSON""", b"Starting w"),
        (b"""Unexpected token '/', "/usr/bin/node" is not valid JSON""", b"/usr/bin/node"),
        (b"Unexpected token S in JSON at position 0", b"S"),
    ],
)
def test_the_line_that_the_host_could_not_read_is_a_line_of_the_server(error: bytes, line: bytes) -> None:
    (session,) = sessions(START + LINE % (1, error) + LINE % (2, b"Message from client: " + PING))
    assert [(side, data) for _, side, data in frames(session)] == [("server", line), ("client", PING)]
    assert session.changed[:1] == ["not JSON in the log, kept as it is: 1 message"]
