"""Keys can be remapped by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mcpspy.errors import UsageError
from mcpspy.ui.tui.app import McpspyApp, keyed
from mcpspy.ui.tui.bindings import checked, in_force, names

KNOWN = {"session.back", "session.wire"}


def test_every_key_of_a_remappable_widget_has_an_id() -> None:
    tables = [node.BINDINGS for node in keyed()]
    assert all(isinstance(binding, Binding) and binding.id for table in tables for binding in table)
    assert {"session.wire", "list.down", "detail.fold", "sessions.open", "app.commands"} <= names(tables)


def test_valid_keys_are_returned_unchanged() -> None:
    assert checked({"session.back": "x,ctrl+b"}, KNOWN) == {"session.back": "x,ctrl+b"}


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"session.bak": "x"}, "did you mean session.back"),
        ({"zzz": "x"}, "see docs/tui.md for the names"),
        ({"session.back": 5}, "expected keys as text"),
        ({"session.back": " , "}, "expected keys as text"),
    ],
)
def test_an_invalid_key_setting_is_reported_with_a_hint(chosen: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        checked(chosen, KNOWN)
    with pytest.raises(UsageError):
        McpspyApp(None, None, chosen)


def test_the_help_shows_the_remapped_keys() -> None:
    bindings = [Binding("q", "back", id="session.back"), Binding("v", "wire", id="session.wire")]
    assert [binding.key for binding in in_force(bindings, {"session.wire": "x"})] == ["q", "x"]


def test_the_docs_list_every_remappable_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tui.md").read_text(encoding="utf-8")
    missing = [name for name in sorted(names(node.BINDINGS for node in keyed())) if f"`{name}`" not in page]
    assert missing == []
