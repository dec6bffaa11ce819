"""Every key of the session screen, pressed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mcpspy.ui.model import row_filter
from mcpspy.ui.tui.bindings import SESSION_KEYS
from tests.ui.conftest import CONVERSATION, Said

Make = Callable[..., Path]

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"

CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{%b}}'
LOG = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}'

CALLS: list[Said] = [
    *CONVERSATION[:2],
    ("client", CALL % (10, b"fast")),
    ("client", CALL % (11, b"slow")),
    ("server", RESULT % (10, b'"text":"a long answer, and longer than any other one"')),
    ("server", LOG),
    ("client", CALL % (12, b"fast")),
    ("server", RESULT % (12, b"")),
    ("server", RESULT % (11, b'"isError":true')),
]
"""Four exchanges: hello (0), fast (2), slow (3), a notification (5), fast (6), and the exit (9)."""

HTTP = (
    b'{"t":0.10,"from":"client","http":1,"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
    b'{"t":0.11,"note":"http","http":1,"status":200,"method":"POST","path":"/mcp"}\n'
    b'{"t":0.12,"from":"server","http":1,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}\n'
    b'{"t":0.13,"note":"stderr","text":"a word"}\n'
)


def subjects(screen: Any) -> list[str]:
    """Return the targets of the rows."""
    return [re.sub(r"^[▸▹]?\*? ?\S+ [→←·] ", "", line).split()[1] for line in screen.places]


def rows(screen: Any) -> list[int]:
    """Return the row numbers that the list shows."""
    return list(screen.session.view.rows)


def test_every_key_has_a_unique_id_and_a_description() -> None:
    bindings = [key for key in SESSION_KEYS if isinstance(key, Binding)]
    names = [binding.id or "" for binding in bindings]
    assert len(names) == len(SESSION_KEYS) == len(set(names))
    assert all(name.startswith("session.") for name in names)
    keys = [key for binding in bindings for key in binding.key.split(",")]
    assert len(keys) == len(set(keys))
    assert all(binding.tooltip for binding in bindings)


async def test_v_changes_between_exchanges_and_messages(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        assert rows(screen) == [0, 2, 3, 5, 6, 9]
        await screen.press("j", "j", "v")
        await screen.shows("one row per message, in wire order")
        await screen.processed()
        assert rows(screen) == list(range(10))
        assert (screen.cursor, "slow" in screen.selected) == (3, True)
        await screen.press("G", "k", "v")
        await screen.shows("one row per exchange")
        await screen.processed()
        assert rows(screen)[screen.cursor] == 9, "the row after the response, which has no row now"


@pytest.mark.parametrize(
    ("key", "hidden", "status"),
    [
        ("n", {5}, "notifications hidden"),
        ("e", {9}, "stderr and events hidden"),
    ],
)
async def test_the_menu_of_rows_hides_and_shows_kinds_of_rows(
    opened: Any, make_recording: Make, key: str, hidden: set[int], status: str
) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        before, session = rows(screen), screen.session
        await screen.press("V")
        await screen.shows(f"{key} [x]")
        await screen.press(key)
        await screen.shows(f"{key} [ ]")
        await screen.press("escape")
        await screen.shows(status)
        await screen.processed()
        assert rows(screen) == [row for row in before if row not in hidden]
        await screen.press("V", *["j"] * (key == "e"), "enter")
        await screen.shows(f"{key} [x]")
        await screen.press("V")
        await screen.until(lambda: screen.app.screen is session)
        await screen.shows(status.replace("hidden", "shown"))
        await screen.processed()
        assert rows(screen) == before


async def test_http_exchanges_are_hidden_at_first(opened: Any, live: Any) -> None:
    with live.path.open("ab") as file:
        file.write(HTTP)
    async with opened(live.path, size=(160, 30)) as screen:
        await screen.until(lambda: screen.count == 2)
        assert "POST /mcp" not in screen.text
        await screen.press("V", "h", "escape")
        await screen.shows("HTTP exchanges shown", "POST /mcp")
        assert rows(screen) == [0, 1, 3]
        await screen.press("V", "h", "escape")
        await screen.shows("HTTP exchanges hidden")
        await screen.until(lambda: "POST /mcp" not in screen.text)


async def test_t_cycles_three_time_formats(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")

        def time_of_the_second() -> str:
            return str(screen.places[1].split()[0])

        assert time_of_the_second() == "0.002"
        await screen.press("t")
        await screen.until(lambda: re.fullmatch(r"\d\d:\d\d:\d\d\.\d\d\d", time_of_the_second()))
        await screen.shows("time: absolute (time of day)")
        await screen.press("t")
        await screen.until(lambda: time_of_the_second() == "+0.002")
        assert screen.places[2].split()[0] == "+0.001"
        await screen.press("t")
        await screen.until(lambda: time_of_the_second() == "0.002")


async def test_s_cycles_the_sort_order_and_shift_s_reverses_it(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("j", "j")
        for key, order, status in (
            ("s", [3, 2, 6], "sorted by latency, largest first"),
            ("S", [6, 2, 3], "sorted by latency, smallest first"),
            ("s", [0, 2, 3, 6], "sorted by size, largest first"),
            ("S", [6, 3, 2, 0], "sorted by size, smallest first"),
        ):
            await screen.press(key)
            await screen.shows(status)
            await screen.processed()
            assert [row for row in rows(screen) if row in order] == order
            assert screen.cursor == 0, "the first row is the one that was looked for"
        await screen.press("s")
        await screen.shows("sorted by time")
        await screen.processed()
        assert rows(screen) == [0, 2, 3, 5, 6, 9]
        await screen.press("S")
        await screen.shows("sorted by time, latest first")
        await screen.processed()
        assert rows(screen) == [9, 6, 5, 3, 2, 0]


async def test_too_many_rows_are_not_sorted(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_filter, "MOST_SORTED", 5)
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("s")
        await screen.shows("too many rows to sort (more than 5); filter first")
        assert rows(screen) == [0, 2, 3, 5, 6, 9]
        await screen.press("V", "n", "escape", "s")
        await screen.shows("sorted by latency")


async def test_a_sorted_list_is_not_followed_and_sorts_new_rows(opened: Any, live: Any) -> None:
    live.calls(1, 5)
    async with opened(live.path, size=(160, 30)) as screen:
        await screen.shows("5/5  following")
        await screen.press("s")
        await screen.shows("sorted by latency", "paused")
        live.say("client", CALL % (50, b"slowest"))
        live.calls(51, 60)
        live.say("server", RESULT % (50, b""))
        await screen.until(lambda: "slowest" in screen.places[0], "the slowest at the top")
        assert screen.count == 16
        await screen.press("s", "s")
        await screen.shows("sorted by time")
        await screen.press("end")
        await screen.shows("16/16  following")


async def test_marked_rows_are_navigated_and_shown_alone(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("M")
        await screen.shows("no marked rows (m to mark)")
        await screen.press("j", "m")
        assert screen.cursor == 2, "m moves to the next row"
        await screen.press("j", "m")
        assert [line[:2] for line in screen.lines[2:8]] == ["  ", " *", "  ", " *", "▸ ", "  "]
        await screen.press("u")
        await screen.shows("no marked row below")
        await screen.press("U")
        assert screen.cursor == 3
        await screen.press("U")
        assert screen.cursor == 1
        await screen.press("U")
        await screen.shows("no marked row above (m to mark)")
        await screen.press("u")
        assert screen.cursor == 3
        await screen.press("M")
        await screen.processed()
        assert (rows(screen), screen.cursor) == ([2, 5], 1)
        await screen.press("M")
        await screen.processed()
        assert (rows(screen), screen.cursor) == ([0, 2, 3, 5, 6, 9], 3)
        await screen.press("m", "U")
        assert screen.cursor == 1, "m again removes the mark"


async def test_brackets_go_to_calls_of_the_same_tool(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("j", "right_square_bracket")
        assert screen.cursor == 4
        await screen.press("right_square_bracket")
        await screen.shows("no call of the same tool or method below")
        await screen.press("left_square_bracket")
        assert screen.cursor == 1
        await screen.press("left_square_bracket")
        await screen.shows("no call of the same tool or method above")


async def test_p_goes_from_progress_to_its_call(opened: Any, live: Any) -> None:
    token = b'"_meta":{"progressToken":7}'
    live.say("client", (CALL % (1, b"x")).replace(b'"name"', token + b',"name"'))
    live.say(
        "server",
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}',
        RESULT % (1, b""),
    )
    async with opened(live.path) as screen:
        await screen.wire()
        await screen.press("g", "j", "p")
        assert screen.cursor == 0
        await screen.press("p")
        assert screen.cursor == 2


async def test_p_goes_between_the_two_parts_of_an_exchange(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 45)) as screen:
        await screen.shows("ended: exit 0", "response initialize", "(root)  ")
        place = screen.session.panes.detail._viewer.where()
        await screen.press("p")
        await screen.until(lambda: screen.session.panes.detail._viewer.where() != place)
        assert screen.cursor == 0
        await screen.press("p")
        await screen.until(lambda: screen.session.panes.detail._viewer.where() == place)


async def test_e_finds_the_request_of_a_late_error(opened: Any, make_recording: Make) -> None:
    error = b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"no"}}'
    messages: list[Said] = [
        *CONVERSATION[:2],
        ("client", CALL % (10, b"slow")),
        ("client", CALL % (11, b"fast")),
        ("server", error % 11),
        ("client", CALL % (12, b"well")),
        ("server", error % 10),
        ("server", RESULT % (12, b"")),
    ]
    async with opened(make_recording(messages)) as screen:
        await screen.shows("ended: exit 0")
        for place in (1, 2):
            await screen.press("e")
            assert screen.cursor == place
        await screen.press("e")
        await screen.shows("no error or protocol issue below")
        await screen.press("j", "E")
        assert screen.cursor == 2
        await screen.press("E")
        assert screen.cursor == 1
        await screen.press("E")
        await screen.shows("no error or protocol issue above")


async def test_an_input_required_chain_is_navigated(opened: Any) -> None:
    async with opened(RECORDINGS / "peer-sdk-modern.jsonl", size=(160, 40)) as screen:
        await screen.shows("ended")
        await screen.processed()
        index = screen.session.loader.model.index
        first = next(row for row in index.continued_by if row not in index.continues)
        screen.session.listing.go_to(first)
        await screen.press("comma")
        await screen.shows("no previous request: no input_required here")
        walked = [first]
        while (following := index.continued_by.get(walked[-1])) is not None:
            await screen.press("full_stop")
            assert screen.session.listing.row == following
            walked.append(following)
        assert len(walked) > 1
        await screen.press("full_stop")
        await screen.shows("no next request: no input_required here")
        for row in reversed(walked[:-1]):
            await screen.press("comma")
            assert screen.session.listing.row == row


async def test_the_views_of_the_message_are_chosen_from_the_list(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0", "[1 pretty]")
        for key, tab in (("2", "[2 text]"), ("3", "[3 raw]"), ("4", "[4 headers]"), ("1", "[1 pretty]")):
            await screen.press(key)
            await screen.shows(tab)
            assert screen.focused == "MessageList"


async def test_shift_y_copies_the_command_that_prints_the_rows(opened: Any, make_recording: Make) -> None:
    path = make_recording(CALLS)
    async with opened(path, size=(250, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("Y")
        await screen.shows("copied: mcpspy show")
        assert screen.app.clipboard == f"mcpspy show {path}"
        await screen.press("slash", *"about:'a b'", "enter", "Y")
        await screen.until(lambda: screen.app.clipboard != f"mcpspy show {path}")
        assert screen.app.clipboard == f"mcpspy show {path} '--filter=about:'\"'\"'a b'\"'\"''"


async def test_a_jump_to_a_hidden_row_shows_the_reason(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(CALLS), size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("G", "k", "m", "slash", *"tool:slow", "enter")
        await screen.until(lambda: screen.count == 1)
        await screen.press("u")
        await screen.shows("that row is hidden")
