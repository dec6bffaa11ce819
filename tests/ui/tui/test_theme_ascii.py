"""Tests of ASCII mode."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual._border import BORDER_CHARS
from textual.drivers.headless_driver import HeadlessDriver

from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.theme import ascii_driver, ascii_only, needs_ascii


@given(st.text())
def test_a_text_becomes_ascii_of_the_same_width(text: str) -> None:
    drawn = ascii_only(text)
    assert drawn.isascii()
    assert [cell_len(ascii_only(character)) for character in text if character.isprintable()] == [
        cell_len(character) for character in text if character.isprintable()
    ]


def test_the_glyphs_of_mcpspy_have_different_replacements() -> None:
    assert ascii_only("→ ← ▸ ● ○ … · é 中 ┌─┐│└┘ ━┃ \x1b[1m") == "> < > * o ~ - ? ?? +-+|++ =| \x1b[1m"
    for name in ("solid", "heavy", "round"):
        drawn = {ascii_only(character) for row in BORDER_CHARS[name] for character in row}
        assert drawn <= {"+", "-", "|", "=", " "}


async def test_the_driver_writes_ascii_only(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "write", lambda _self, data: written.append(data))
    driver: Any = ascii_driver(HeadlessDriver)(McpspyApp())
    driver.write("→ é")
    assert written == ["> ?"]
    assert McpspyApp(ascii_only=True).driver_class.__name__ == "AsciiDriver"
    assert McpspyApp().driver_class.__name__ != "AsciiDriver"


@pytest.mark.parametrize(
    ("environ", "needed"),
    [
        ({}, False),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.utf8", "LC_ALL": ""}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, True),
    ],
)
def test_it_is_on_where_the_locale_is_not_utf_8(
    environ: dict[str, str], needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert needs_ascii(environ) is needed
    monkeypatch.setattr(sys, "platform", "win32")
    assert not needs_ascii(environ)
