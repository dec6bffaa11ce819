"""Lines of `show`: method, status and id stay visible on a terminal of any width."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from rich.cells import cell_len

from mcpspy.analysis import rows
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.show import read_width
from mcpspy.ui.cli.show_layout import Widths, widths
from mcpspy.ui.text.width import shorten_status

Make = Callable[..., Path]

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").glob("*.jsonl"))
TERMINALS = [60, 80, 120]
HTTP_HEADER = {"mcpspy": 1, "id": "a1", "started": "2026-01-01T00:00:00.000Z", "transport": "http"}


def body(out: str) -> list[str]:
    """Return the lines below the column names, up to the summary."""
    lines = out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.split()[:2] == ["time", "method"])
    return lines[start + 1 : lines.index("", start)]


def http_recording(path: Path, *entries: dict[str, object]) -> str:
    path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in (HTTP_HEADER, *entries)))
    return str(path)


@pytest.mark.parametrize("width", TERMINALS)
@pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])
def test_every_line_fits_and_shows_method_status_and_id(
    path: Path, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(path), "--width", str(width)]) == 0

    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if cell_len(line) > width] == []
    changes = Recording(path).session().changes
    for line, change in zip(body(out), changes, strict=True):
        row = rows.row(change)
        if row.arrow == rows.NO_DIRECTION:
            continue
        assert row.method.rpartition("/")[2][-12:] in line
        assert row.id.strip('"')[-6:] in line
        if row.latency:
            shown = {row.status, shorten_status(row.status, 0), shorten_status(row.status, width)}
            assert any(status[:10] in line for status in shown)


def test_a_wide_terminal_has_every_column_whole(capsys: pytest.CaptureFixture[str]) -> None:
    recording = next(path for path in RECORDINGS if path.stem == "everything-ts-auto-2")

    assert main(["show", str(recording), "--width", "160"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[1].split() == ["time", "method", "target", "id", "latency", "size", "status"]
    assert any("notifications/tools/list_changed" in line for line in lines)


@pytest.mark.parametrize("terminal", [40, 50, *TERMINALS, 200])
def test_columns_leave_room_for_the_status(terminal: int) -> None:
    needed = Widths(time=9, stream=3, method=30, subject=60, id=40, latency=9, size=6, status=60)

    given = widths(terminal, needed)

    fixed = given.time + given.gap + given.stream + 1 + 1 + given.gap
    cells = [cell for cell in given[2:-1] if cell]
    assert fixed + sum(cells) + given.gap * (len(cells) - 1) <= terminal
    assert given.method >= 14
    if terminal >= 60:
        assert given.status >= 10
        assert given.id == 12


def test_latency_and_size_are_the_first_columns_to_go() -> None:
    needed = Widths(time=6, stream=0, method=24, subject=34, id=4, latency=9, size=6, status=30)

    given = {terminal: widths(terminal, needed) for terminal in TERMINALS}

    assert (given[60].latency, given[60].size) == (0, 0)
    assert (given[80].latency, given[80].size) == (0, 0)
    assert (given[120].latency, given[120].size) == (9, 6)


def test_the_status_has_the_latency_where_that_has_no_column(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording(
        [
            (
                "client",
                b'{"jsonrpc":"2.0","id":"a-long-identifier","method":"tools/call","params":{"name":"%b"}}'
                % (b"x" * 30),
            ),
            ("server", b'{"jsonrpc":"2.0","id":"a-long-identifier","result":{}}'),
        ]
    )

    main(["show", str(path), "--width", "60"])

    assert body(capsys.readouterr().out)[1].split()[-4:] == ["ok", "in", "1.0", "ms"]


def test_wide_and_combining_characters_take_the_room_they_need(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "天気を調べる道具" * 4 + "e\u0301" * 9 + "\U0001f469\u200d\U0001f467"
    head = {"jsonrpc": "2.0", "id": "番号" * 5}
    path = make_recording(
        [
            ("client", orjson.dumps(head | {"method": "tools/call", "params": {"name": name}})),
            ("server", orjson.dumps(head | {"error": {"code": -1, "message": name}})),
        ]
    )

    for width in TERMINALS:
        main(["show", str(path), "--width", str(width)])
        lines = body(capsys.readouterr().out)
        assert all(cell_len(line) <= width for line in lines)
        assert "tools/call" in lines[1]
        assert "-1: " in lines[1]


def test_ids_are_as_wide_as_needed_and_keep_their_end(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording(
        [
            ("client", b'{"jsonrpc":"2.0","id":"%b","method":"ping"}' % key)
            for key in (b"0123456789abcdef", b"7")
        ]
    )

    main(["show", str(path), "--width", "60"])
    first, second, _ = body(capsys.readouterr().out)

    assert first.split()[3] == '…6789abcdef"'
    assert second.split()[3] == '"7"'


def test_notes_on_successful_http_are_shown_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fine = {
        "t": 0.1,
        "note": "http",
        "stream": "1",
        "http": 1,
        "method": "POST",
        "path": "/mcp",
        "status": 200,
    }
    path = http_recording(
        tmp_path / "http.jsonl",
        {
            "t": 0.1,
            "from": "client",
            "stream": "1",
            "http": 1,
            "msg": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        },
        fine,
        {
            "t": 0.2,
            "from": "server",
            "stream": "1",
            "http": 1,
            "msg": {"jsonrpc": "2.0", "id": 1, "result": {}},
        },
        {"t": 0.2, "note": "http-end", "stream": "1", "http": 1, "hung_up": None},
        fine | {"t": 0.3, "http": 2, "status": 404},
        fine | {"t": 0.4, "http": 3, "status": None, "error": "connection refused"},
        {"t": 0.5, "note": "http-end", "stream": "1", "http": 3, "hung_up": "server"},
    )
    failures = ["http", "http", "http-end"]

    def kinds(*options: str) -> list[str]:
        assert main(["show", path, *options]) == 0
        printed.append(capsys.readouterr().out)
        return [line.split()[3] for line in body(printed[-1]) if re.match(r" *[\d.]+ ", line)]

    printed: list[str] = []
    assert kinds() == ["ping", "ping", *failures]
    assert "2 HTTP notes hidden (--http)" in printed[0]
    assert kinds("--http") == kinds("-v") == ["ping", "http", "ping", "http-end", *failures]
    assert "hidden" not in printed[1]
    assert kinds("-q", "note:http-end") == ["http-end", "http-end"]


@pytest.mark.parametrize(
    "case",
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "0"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colors_are_for_terminals_unless_an_option_or_the_environment_decides(
    make_recording: Make,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[list[str], dict[str, str], bool],
) -> None:
    options, environment, has_color = case
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    main(["show", str(make_recording()), *options])

    assert ("\x1b[31m" in capsys.readouterr().out) == has_color


@pytest.mark.parametrize("text", ["39", "-1", "wide", "1e9", ""])
def test_a_width_too_small_for_columns_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a width"):
        read_width(text)


def test_lines_of_a_pipe_are_not_cut(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    message = b"x" * 300
    path = make_recording(
        [
            ("client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
            ("server", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%b"}}' % message),
        ]
    )

    for options in ([], ["--width", "0"]):
        main(["show", str(path), *options])
        assert message.decode() in capsys.readouterr().out
