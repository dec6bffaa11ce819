"""Tests of the base widget: colours, and drawing only changed lines."""

from __future__ import annotations

from typing import ClassVar

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip

from mcpspy.ui.tui.theme import COMPONENTS, CSS, DARK, LIGHT
from mcpspy.ui.tui.widgets.base import BaseWidget, DismissibleModal, DismissibleScreen


class Counted(BaseWidget):
    """A widget that counts how often each line is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.times = [0] * 4

    def render_line(self, y: int) -> Strip:
        self.times[y] += 1
        return Strip(self.paint([("bad", "bad"), ("plain", None), ("er", None)], 12), 12)


class Canvas(App[None]):
    CSS = CSS
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self) -> None:
        super().__init__()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = DARK.name
        self.lines = Counted()

    def compose(self) -> ComposeResult:
        yield self.lines


def colours(lines: BaseWidget) -> list[str]:
    painted = lines.paint([("x", "bad"), ("y", None)], 2)
    return [segment.style.color.name for segment in painted if segment.style and segment.style.color]


class Top(DismissibleModal[str]):
    """The screen on top."""


async def test_a_covered_screen_closes_after_the_one_above_it_and_only_once() -> None:
    results: list[str | None] = []
    async with (app := Canvas()).run_test(size=(12, 4)) as pilot:
        below, covered, top = DismissibleScreen[str](), DismissibleScreen[str](), Top()
        for screen in (below, covered, top):
            await app.push_screen(screen, results.append)
        assert covered.is_current, "a modal screen is transparent"
        covered.dismiss("covered")
        await pilot.pause()
        assert (app.screen, results) == (top, [])
        top.dismiss("top")
        top.dismiss("again")
        await pilot.pause()
        covered.dismiss("again")
        await pilot.pause()
        assert (app.screen, results) == (below, ["top", "covered"])


async def test_a_line_is_drawn_again_only_if_its_region_is_refreshed() -> None:
    async with (app := Canvas()).run_test(size=(12, 4)) as pilot:
        before = list(app.lines.times)
        app.lines.refresh(Region(0, 2, 12, 1))
        await pilot.pause()
        assert app.lines.times == [count + (y == 2) for y, count in enumerate(before)]
        app.lines.refresh()
        await pilot.pause()
        assert app.lines.times == [count + 1 + (y == 2) for y, count in enumerate(before)]


async def test_a_theme_change_draws_all_lines_in_the_new_colours() -> None:
    async with (app := Canvas()).run_test(size=(12, 4)) as pilot:
        before, dark = list(app.lines.times), colours(app.lines)
        app.theme = LIGHT.name
        await pilot.pause()
        assert all(now > then for now, then in zip(app.lines.times, before, strict=True))
        assert not {*colours(app.lines)} & {*dark}
        app.theme = DARK.name
        await pilot.pause()
        assert colours(app.lines) == dark


async def test_pieces_of_one_style_are_joined_and_a_line_has_its_width() -> None:
    async with (app := Canvas()).run_test(size=(12, 4)):
        assert [
            segment.text for segment in app.lines.paint([("bad", "bad"), ("plain", None), ("er", None)], 12)
        ] == [
            "bad",
            "plainer  ",
        ]
        assert [segment.text for segment in app.lines.paint([("漢字漢字", "bad")], 5)] == ["漢字 "]
        crossed = app.lines.paint([("x", "bad")], 2, Style(reverse=True))
        assert [segment.style.reverse for segment in crossed if segment.style] == [True, True]


async def test_line_filters_of_textual_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Canvas()
    async with app.run_test(size=(12, 4)):
        for colour in colours(app.lines):
            red, green, blue = Color.parse(colour).rgb
            assert red == green == blue, "grey"


@pytest.mark.parametrize("theme", [DARK.name, LIGHT.name])
async def test_placeholders_of_secrets_are_in_reverse_video(theme: str) -> None:
    async with (app := Canvas()).run_test(size=(12, 4)) as pilot:
        app.theme = theme
        await pilot.pause()
        secret, plain = app.lines.paint([("x", "redacted"), ("y", None)], 2)
        assert secret.style is not None
        assert plain.style is not None
        assert (secret.style.reverse, bool(plain.style.reverse)) == (True, False)
        assert secret.style.color != plain.style.color
