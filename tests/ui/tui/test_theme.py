"""Every colour has enough contrast, and every role has a style."""

from __future__ import annotations

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import Theme

from mcpspy.ui.tui.theme import CSS, DARK, LIGHT, PLAIN, ROLES, SIXTEEN, chosen_theme

ENOUGH = 4.5
"""Minimum contrast of text for WCAG 2.1, level AA."""


def luminance(colour: str) -> float:
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT, SIXTEEN], ids=lambda theme: theme.name)
def test_every_colour_can_be_read_on_every_ground(theme: Theme) -> None:
    texts = (theme.foreground, theme.success, theme.error, theme.warning, theme.secondary, theme.primary)
    grounds = (theme.background, theme.surface, theme.panel)
    for text in (*texts, theme.variables["quiet"]):
        for ground in (*grounds, theme.variables["cursor"], theme.variables["cursor-away"]):
            assert text is not None
            assert ground is not None
            enough = ENOUGH if theme is not SIXTEEN else 4.2  # The red of 16 colours on their blue.
            assert round(contrast(text, ground), 1) >= enough, (text, ground)


def test_every_role_has_a_look() -> None:
    assert all(f".role--{role} " in CSS for role in ROLES)


@pytest.mark.parametrize(
    ("variables", "theme"),
    [
        ({}, DARK.name),
        ({"TEXTUAL_THEME": "nord"}, "nord"),
        ({"TEXTUAL_THEME": "unheard-of"}, DARK.name),
        ({"NO_COLOR": "1", "TEXTUAL_THEME": "nord"}, PLAIN.name),
        ({"NO_COLOR": ""}, DARK.name),
    ],
)
def test_the_environment_chooses(
    variables: dict[str, str], theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert chosen_theme({DARK.name, LIGHT.name, PLAIN.name, "nord"}) == theme


def test_a_terminal_of_16_colours_has_a_theme_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert chosen_theme({DARK.name}, has_few_colours=True) == SIXTEEN.name
    colours = [SIXTEEN.primary, SIXTEEN.error, SIXTEEN.success, SIXTEEN.variables["quiet"], SIXTEEN.panel]
    numbers = [RichColor.parse(str(colour)).downgrade(ColorSystem.STANDARD).number for colour in colours]
    assert numbers == [14, 9, 10, 7, 4]
