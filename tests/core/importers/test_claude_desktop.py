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
    assert earlier.changed == ["the session may begin in an earlier file"]
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
    assert whole.changed == [
        "truncated in the log, kept as it is: 1 message",
        "not JSON in the log, kept as it is: 1 message",
    ]
    (session,) = sessions(START + LINE % (1, b"Message from client: " + PING[:20]))
    assert [data for _, _, data in frames(session)] == [PING[:20]]
    assert session.changed == ["not JSON in the log, kept as it is: 1 message"]


def test_the_log_of_all_servers_is_split_by_name_and_mixed_servers_are_reported() -> None:
    found = sessions((FILES / "mcp.log").read_bytes())
    assert [(session.key, session.messages) for session in found] == [
        ("weather-1", 2),
        ("files", 1),
        ("weather-2", 2),
    ]
    assert "the server's stderr, which is in mcp-server-NAME.log" in found[0].lacks
    assert found[-1].changed == ["2 handshakes: servers of one name ran at the same time"]


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
    assert session.changed == ["not JSON in the log, kept as it is: 1 message"]
