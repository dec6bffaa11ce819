"""The filter line, and the rows that match its filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.model import row_filter
from mcpspy.ui.tui.session import background, filter_bar
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece

Make = Callable[..., Path]

CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{%b}}'


@pytest.fixture
def tools(live: Any) -> Any:
    """A session of a hundred answered calls, ten per tool, in turn."""
    for number in range(100):
        live.say("client", CALL % (number, b"tool%d" % (number % 10)))
        live.say("server", RESULT % (number, b'"n":"answer %d"' % number))
    return live


def typed(screen: Any) -> str:
    """Return the text of the filter line."""
    return str(screen.session.filter.text)


async def test_rows_are_filtered_while_typing(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("slash")
        await screen.shows("tool:echo status:err")
        await screen.press(*"tool:tool3")
        await screen.until(lambda: screen.count == 10)
        await screen.shows("/ tool:tool3", "1/10 matches in 101 rows")
        assert screen.focused == "FilterInput"
        assert all("tool3" in line for line in screen.places)
        await screen.press("enter")
        assert screen.focused == "MessageList"
        await screen.shows("/ tool:tool3", "1/10 matches in 101 rows")


async def test_keys_right_after_the_slash_are_not_commands(opened: Any, tools: Any) -> None:
    async with opened(tools.path) as screen:
        await screen.shows("100/100  following")
        screen.session.action_filter()
        assert screen.focused == "FilterInput"
        await screen.press(*"text:9")
        assert typed(screen) == "text:9"


async def test_a_pattern_that_re2_cannot_run_needs_a_permission(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.press("slash")
        await screen.press(*"/tool(?=3)/")
        await screen.shows("look-ahead (?= is not supported")
        assert screen.count == 101
        screen.app.unsafe_regex = True
        await screen.press("enter")
        await screen.until(lambda: screen.count == 10)
        await screen.shows("look-ahead (?= may never end")


async def test_an_invalid_filter_is_reported_and_the_rows_stay(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("slash", *"tool:tool3")
        await screen.until(lambda: screen.count == 10)
        await screen.press("space", "left_parenthesis")
        said = screen.session.filter.query_one("#filter-error")
        await screen.until(lambda: said.text)
        await screen.shows(said.text)
        assert screen.count == 10
        await screen.press("enter")
        await screen.shows(said.text)
        assert (screen.count, screen.focused) == (10, "MessageList")
        await screen.press("slash", "backspace", "backspace", *" is:red")
        await screen.until(lambda: "red" in said.text)
        await screen.press(*["backspace"] * len(" is:red"), "enter")
        await screen.until(lambda: not said.text and screen.count == 10)


async def test_previous_filters_can_be_recalled(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        for text in ("tool:tool3", "tool:tool4", "tool:tool4"):
            await screen.press("slash", "ctrl+u", *text, "enter")
        await screen.press("slash", "up", "up")
        assert typed(screen) == "tool:tool3"
        await screen.press("up", "enter")
        assert typed(screen) == "tool:tool3"
        await screen.until(lambda: "tool3" in screen.places[0])
        await screen.press("escape", "slash")
        assert typed(screen) == "tool:tool3", "the last filter returns"


async def test_escape_clears_it_and_the_cursor_stays_on_its_row(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path, size=(120, 24)) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("slash", *"tool:tool7", "enter", *"jjjj")
        await screen.until(lambda: screen.count == 10)
        row = screen.session.listing.row
        await screen.press("escape")
        await screen.until(lambda: screen.count == 101)
        await screen.processed()
        assert screen.session.listing.row == row
        assert "tool7" in screen.selected
        assert "tool:tool7" not in screen.text
        await screen.press("escape")
        await screen.shows("mcpspy · sessions")


async def test_escape_keeps_the_row_of_a_followed_session(opened: Any, tools: Any) -> None:
    async with opened(tools.path, size=(120, 24)) as screen:
        await screen.shows("following")
        await screen.press("slash", *"tool:tool7", "enter")
        await screen.until(lambda: screen.count == 10)
        row = screen.session.listing.row
        await screen.press("escape")
        await screen.until(lambda: screen.count == 100)
        await screen.processed()
        assert screen.session.listing.row == row
        await screen.shows("paused")
        await screen.press("f", "slash", "backspace", "9", "enter")
        await screen.until(lambda: screen.count == 10)
        await screen.press("escape")
        await screen.until(lambda: screen.count == 100)
        await screen.processed()
        await screen.shows("following")


async def test_the_footer_shows_the_keys_of_the_filter_line(opened: Any, tools: Any) -> None:
    async with opened(tools.path, size=(120, 24)) as screen:
        await screen.until(lambda: "follow" in screen.lines[-1])
        await screen.press("slash")
        await screen.until(lambda: "clear filter" in screen.lines[-1] and "follow" not in screen.lines[-1])
        await screen.press("enter")
        await screen.until(lambda: "follow" in screen.lines[-1])


async def test_the_row_is_restored_after_a_filter_without_matches(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path, size=(120, 24)) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("G", *"kkkkkkkkk")
        row, selected = screen.session.listing.row, screen.selected[:60]
        await screen.press("slash", *"no-such-word")
        await screen.shows("0 matches in 101 rows", "No matching rows.", "Press esc to clear the filter")
        await screen.press("escape")
        await screen.until(lambda: screen.count == 101)
        await screen.processed()
        assert (screen.session.listing.row, screen.selected[:60]) == (row, selected)


async def test_the_row_is_restored_in_a_long_list(
    opened: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)
    live.calls(1, 10_000)
    live.end()
    async with opened(live.path, size=(120, 24)) as screen:
        await screen.until(lambda: screen.count == 10_001)
        await screen.press("G", *["pageup"] * 5)
        row, top = screen.session.listing.row, screen.session.listing.scroll_offset.y
        await screen.press("slash", *"tool:echo", "enter")
        await screen.until(lambda: screen.count == 10_000)
        await screen.press("escape")
        await screen.until(lambda: screen.count == 10_001)
        await screen.processed()
        assert screen.session.listing.row == row
        assert screen.session.listing.scroll_offset.y == top


async def test_the_detail_pane_is_empty_without_rows(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path, size=(120, 24)) as screen:
        await screen.shows("request tools/call")
        await screen.press("slash", *"no-such-word")
        await screen.until(lambda: "request tools/call" not in screen.text)
        await screen.press("escape")
        await screen.shows("request tools/call")


async def test_shift_f_toggles_the_filter(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("F")
        assert screen.count == 101
        await screen.press("slash", *"tool:tool7", "enter")
        await screen.until(lambda: screen.count == 10)
        await screen.press("j")
        row = screen.session.listing.row
        await screen.press("F")
        await screen.shows("filter off (F to restore)")
        await screen.until(lambda: screen.count == 101)
        await screen.press("F")
        await screen.until(lambda: screen.count == 10)
        await screen.shows("/ tool:tool7")
        assert screen.session.listing.row == row


async def test_shift_f_restores_the_last_valid_filter(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("slash", *"tool:tool7", "enter")
        await screen.until(lambda: screen.count == 10)
        await screen.press("slash", *" (", "enter")  # At no moment another valid filter.
        await screen.shows("unclosed (")
        await screen.press("F")
        await screen.until(lambda: screen.count == 101)
        await screen.press("n", "F")
        await screen.until(lambda: screen.count == 10)
        await screen.shows("/ tool:tool7")


async def test_a_slow_filter_shows_its_progress(
    opened: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)
    monkeypatch.setattr(row_filter, "PORTION", 10)
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        said: list[str] = []
        say = SplitLine.set_text

        def listen(line: SplitLine, left: list[Piece], right: list[Piece] | None = None) -> None:
            say(line, left, right)
            said.append(line.text)

        monkeypatch.setattr(
            SplitLine, "set_text", listen
        )  # On a busy machine a key takes longer than filtering.
        await screen.press("slash", *'text:"answer 9"')
        await screen.until(lambda: screen.count == 11)
        await screen.processed()
        assert any("filtering" in line for line in said), said
        await screen.until(lambda: "filtering" not in screen.text)
        await screen.shows("1/11 matches in 101 rows")


async def test_new_rows_are_filtered_and_followed(opened: Any, tools: Any) -> None:
    async with opened(tools.path) as screen:
        await screen.shows("100/100  following")
        await screen.press("slash", *"tool:tool3", "enter")
        await screen.shows("10/10 matches in 100 rows  following")
        tools.say("client", CALL % (203, b"tool3"), CALL % (204, b"tool4"))
        await screen.shows("11/11 matches in 102 rows  following")
        assert "tool3" in screen.selected
        await screen.press("k")
        tools.say("client", CALL % (213, b"tool3"), CALL % (223, b"tool3"))
        await screen.shows("10/13 matches in 104 rows  paused, +2 new (End)")


async def test_rows_that_appear_and_vanish_above_do_not_move_the_selection(opened: Any, live: Any) -> None:
    live.calls(1, 30)
    live.say("client", *[CALL % (number, b"waits") for number in range(100, 160)])
    async with opened(live.path, size=(120, 24)) as screen:
        await screen.press("slash", *"is:pending", "enter")
        await screen.shows("60/60 matches in 90 rows  following")
        await screen.press(*["k"] * 25)
        await screen.shows("35/60 matches")
        row, lines = screen.session.listing.row, screen.lines[2:]
        place = next(place for place, line in enumerate(lines) if line.startswith("▸"))
        live.say("server", *[RESULT % (number, b"") for number in range(100, 110)])
        await screen.shows("25/50 matches in 90 rows")
        assert screen.session.listing.row == row
        assert screen.lines[2 + place].startswith("▸")
        assert [line.split()[1:6] for line in screen.places if line.startswith("▸")]
        shown = [line[2:60].split()[2:4] for line in screen.lines[2 : 2 + place]]
        assert shown == [line[2:60].split()[2:4] for line in lines[:place]], "no row moved on the screen"
        live.say("server", RESULT % (134, b""))
        await screen.shows("25/49 matches in 90 rows")
        assert screen.session.listing.row == row + 1, "the row is hidden: the next one is selected"
        assert screen.lines[2 + place].startswith("▸")


async def test_a_row_that_matches_later_does_not_move_the_selection(opened: Any, live: Any) -> None:
    live.say("client", *[CALL % (number, b"waits") for number in range(100, 110)])
    live.calls(1, 40)
    async with opened(live.path, size=(120, 24)) as screen:
        await screen.press("slash", *"status:ok", "enter")
        await screen.shows("40/40 matches in 50 rows")
        await screen.press("k")
        row, place = screen.session.listing.row, screen.lines.index(_selected(screen))
        live.say("server", *[RESULT % (number, b"") for number in range(100, 110)])
        await screen.shows("49/50 matches in 50 rows")
        assert screen.session.listing.row == row
        assert screen.lines.index(_selected(screen)) == place


def _selected(screen: Any) -> str:
    lines: list[str] = screen.lines
    return next(line for line in lines if line.startswith("▸"))


async def test_a_truncated_or_deleted_file_is_still_filtered(opened: Any, tools: Any) -> None:
    async with opened(tools.path, size=(140, 30)) as screen:
        await screen.press("slash", *"tool:tool3", "enter")
        await screen.shows("10/10 matches in 100 rows")
        head = tools.path.read_bytes().split(b"\n")[0]
        tools.path.write_bytes(head + b"\n")
        await screen.shows("the file was truncated or replaced", "0 matches in 0 rows")
        tools.say("client", CALL % (203, b"tool3"), CALL % (204, b"tool4"))
        await screen.until(lambda: screen.count == 1 and "tool3" in "".join(screen.places))
        tools.path.unlink()
        tools.say("client", CALL % (213, b"tool3"))
        await screen.until(lambda: screen.count == 2)
        await screen.press("escape")
        await screen.until(lambda: screen.count == 3)


def test_filtering_waits_until_typing_pauses() -> None:
    assert 0 < filter_bar.SETTLE < 0.3


async def test_the_line_shows_how_a_filter_may_continue_and_right_takes_it(opened: Any, tools: Any) -> None:
    tools.end()
    async with opened(tools.path) as screen:
        await screen.until(lambda: screen.count == 101)
        await screen.press("slash", *"meth")
        await screen.shows("/ method:")
        assert typed(screen) == "meth"
        await screen.press("right", *"tools/c")
        await screen.shows("/ method:tools/call")
        await screen.press("right")
        await screen.until(lambda: typed(screen) == "method:tools/call")
