"""The menu of options that are on or off."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App

from mcpspy.ui.tui.theme import COMPONENTS
from mcpspy.ui.tui.widgets.prompts import MenuOption, ToggleMenu


class Alone(App[None]):
    """An application with only the menu."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self) -> None:
        super().__init__()
        self.on = {"first"}

    def on_mount(self) -> None:
        options = [MenuOption("f", "the first", "first"), MenuOption("z", "[b]last", "last")]
        self.push_screen(ToggleMenu("Rows", options, self.on.__contains__, self.toggle))

    def toggle(self, name: str) -> None:
        """Turn an option on or off."""
        self.on ^= {name}


def lines(app: App[None]) -> list[str]:
    """Return the lines inside the box."""
    shown = [strip.text for strip in app.screen._compositor.render_strips()]
    return [line.strip(" │") for line in shown if "│" in line]


async def test_letters_enter_space_and_clicks_toggle() -> None:
    app = Alone()
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert lines(app)[:3] == ["Rows", "▸ f [x] the first", "  z [ ] [b]last".strip()]
        await pilot.press("z")
        assert (app.on, lines(app)[2]) == ({"first", "last"}, "▸ z [x] [b]last")
        await pilot.press("j", "enter")
        assert app.on == {"last"}, "after the last option comes the first"
        await pilot.press("up", "space")
        assert app.on == set()
        await pilot.click("#menu Static", offset=(4, 1))
        assert app.on == {"first"}


async def test_it_closes() -> None:
    for key in ("escape", "q", "V"):
        app = Alone()
        async with app.run_test(size=(60, 12)) as pilot:
            await pilot.press(key)
            assert len(app.screen_stack) == 1
