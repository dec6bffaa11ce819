"""Problems, matches of the filter, and sorting, with the keys of the session screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcpspy.ui.model import session_loader as loader

Make = Callable[..., Path]

CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":{"path":"%b"}}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[%b]}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no such path"}}'


def talk(live: Any) -> None:
    """Record three calls, one of which fails, and a crash with a pending call."""
    live.note("stderr", text="listening")
    for number, path in enumerate((b"/a/needle", b"/b", b"/c/needle"), 1):
        live.say("client", CALL % (number, b"read", path))
        if number == 2:
            live.note("stderr", text="cannot open /b")
        live.say("server", ERROR % 2 if number == 2 else RESULT % (number, b"1," * 60 + b'"needle"'))
    live.say("client", CALL % (4, b"read", b"/d"))
    live.note("stderr", text="Traceback")
    live.end(1)


async def test_p_shows_only_problems_and_returns_to_the_row(opened: Any, live: Any) -> None:
    talk(live)
    async with opened(live.path, size=(130, 30)) as screen:
        await screen.shows("ended: exit 1")
        await screen.press("j", "j", "j")
        row = screen.session.listing.row
        await screen.press("P")
        await screen.shows("3 problems: 1 error, 1 unanswered, 1 crash", "2 stderr lines", "of 8 rows")
        await screen.processed()
        shown = [
            next(word for word in line.split() if word.isalpha() or "/" in word) for line in screen.places
        ]
        assert shown == ["tools/call", "stderr", "tools/call", "stderr", "exit"]
        await screen.press("escape")
        await screen.processed()
        assert (screen.count, screen.session.listing.row) == (8, row)
        await screen.press("P")
        await screen.processed()
        await screen.press("G", "P")
        await screen.processed()
        assert (screen.count, screen.cursor) == (8, 7)
        await screen.shows(" 1 error ", " 1 unanswered ")


async def test_problems_combine_with_the_filter(opened: Any, live: Any) -> None:
    talk(live)
    async with opened(live.path, size=(130, 30)) as screen:
        await screen.shows("ended: exit 1")
        await screen.press("slash", *"text:/b or text:/a", "enter", "P")
        await screen.shows("1 error ", "1/2 of 8 rows", "/ text:/b or text:/a")
        await screen.press("Y")
        await screen.shows("copied: mcpspy show")
        assert "--filter=(text:/b or text:/a) is:problem" in screen.app.clipboard
        await screen.press("escape")
        await screen.shows("2/3 matches in 8 rows")
        await screen.press("slash", "ctrl+u", *"tool:none", "enter", "P")
        await screen.shows("no problems", "No problems match the filter.", "Press P or esc to show all rows.")
        await screen.press("escape", "escape")
        await screen.processed()
        assert screen.count == 8


async def test_problems_of_a_live_session_appear(opened: Any, live: Any) -> None:
    live.say("client", CALL % (1, b"read", b"/a"))
    live.note("stderr", text="cannot open /a")
    async with opened(live.path, size=(130, 30)) as screen:
        await screen.press("P")
        await screen.shows("No problems.")
        live.say("server", ERROR % 1)
        await screen.shows("1 error · 1 stderr line", "cannot open /a")


async def test_a_match_of_the_filter_is_unfolded_and_shown(opened: Any, live: Any) -> None:
    talk(live)
    async with opened(live.path, size=(130, 24)) as screen:
        await screen.shows("ended: exit 1")
        await screen.press("slash", *"text:needle", "enter")
        await screen.shows("filter 1/2", '"path": "/a/needle"')
        await screen.press("tab", "n")
        await screen.shows("filter 2/2", "/result/content/60")
        assert any(line.rstrip(" │▁▂▃▄▅▆▇█").endswith('"needle"') for line in screen.lines)
        await screen.press("minus")
        await screen.shows("1 member }")
        await screen.press("n")
        await screen.shows("filter 2/2", "/result/content/60")
        await screen.press("N")
        await screen.shows("filter 1/2", "/params/arguments/path")
        await screen.press("escape", "escape")
        await screen.until(lambda: "filter 2/2" not in screen.text)


async def test_a_search_in_the_message_hides_the_marks_of_the_filter(opened: Any, live: Any) -> None:
    talk(live)
    async with opened(live.path, size=(130, 24)) as screen:
        await screen.shows("ended: exit 1")
        await screen.press("slash", *"text:needle", "enter")
        await screen.shows("filter 1/2")
        await screen.press("tab", "ctrl+f", *"jsonrpc", "enter")
        await screen.shows("jsonrpc 2/2")
        await screen.press("escape")
        await screen.until(lambda: "jsonrpc 2/2" not in screen.text)
        await screen.press("n")
        await screen.shows("filter ")


async def test_n_goes_to_the_rows_that_a_filter_matches_when_it_is_off(opened: Any, live: Any) -> None:
    talk(live)
    async with opened(live.path, size=(130, 24)) as screen:
        await screen.shows("ended: exit 1")
        await screen.press("n")
        await screen.shows("no filter (/ to filter)")
        await screen.press("slash", *"text:needle", "enter")
        await screen.shows("1/2 matches in 8 rows")
        await screen.press("F")
        await screen.shows("filter off")
        await screen.processed()
        await screen.press("g", "n")
        await screen.until(lambda: screen.cursor == 1)
        await screen.press("n")
        await screen.until(lambda: screen.cursor == 4)
        await screen.press("n")
        await screen.shows("no row that matches the filter below")
        await screen.press("N")
        await screen.until(lambda: screen.cursor == 1)
        await screen.shows("filter 1/2")


async def test_the_sorted_column_has_an_arrow_and_its_heading_can_be_clicked(opened: Any, live: Any) -> None:
    for number, tool in enumerate((b"b", b"a", b"c"), 1):
        live.say("client", CALL % (number, tool, b"x" * number))
        for _ in range(number % 3):
            live.say("client", b'{"jsonrpc":"2.0","method":"notifications/x"}')
        live.say("server", RESULT % (number, b""))
    live.end()
    async with opened(live.path, size=(160, 24)) as screen:
        await screen.shows("ended: exit 0")
        place = screen.lines[1].index("latency")
        await screen.press("j")
        await screen.pilot.click("#list", offset=(place + 2, 0))
        await screen.shows("latency↓", "· sorted by latency")
        await screen.processed()
        assert screen.cursor == screen.session.listing.scroll_offset.y == 0
        row = screen.session.listing.row
        await screen.pilot.click("#list", offset=(place + 2, 0))
        await screen.shows("latency↑", "· sorted by latency, smallest first")
        await screen.pilot.click("#list", offset=(screen.lines[1].index("target") + 2, 0))
        await screen.shows("rows can be sorted by time, latency and size")
        await screen.pilot.click("#list", offset=(screen.lines[1].index("time") + 1, 0))
        await screen.until(lambda: "· sorted by" not in screen.text)
        assert "↓" not in screen.lines[1]
        assert screen.session.listing.row != row, "the smallest first was selected then"


async def test_a_file_that_is_deleted_after_the_end_is_reported(
    opened: Any, make_recording: Make, monkeypatch: Any
) -> None:
    monkeypatch.setattr(loader, "NAME_EVERY", 0.01)
    path = make_recording()
    async with opened(path) as screen:
        await screen.shows("ended: exit 0")
        path.unlink()
        await screen.shows("the file was deleted while open; the messages read before are shown (exit 0)")
