"""Keys can be given others, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mcpspy.errors import UsageError
from mcpspy.ui.tui.app import McpspyApp, keyed
from mcpspy.ui.tui.bindings import checked, in_force, names

KNOWN = {"session.back", "session.wire"}


def test_every_key_of_a_widget_that_is_remapped_has_a_name_of_its_own() -> None:
    tables = [node.BINDINGS for node in keyed()]
    assert all(isinstance(binding, Binding) and binding.id for table in tables for binding in table)
    assert {"session.wire", "list.down", "detail.fold", "sessions.open", "app.commands"} <= names(tables)


def test_chosen_keys_are_taken_as_they_are() -> None:
    assert checked({"session.back": "x,ctrl+b"}, KNOWN) == {"session.back": "x,ctrl+b"}


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"session.bak": "x"}, "did you mean session.back"),
        ({"zzz": "x"}, "docs/tui.md lists the names"),
        ({"session.back": 5}, "takes keys as text"),
        ({"session.back": " , "}, "takes keys as text"),
    ],
)
def test_a_wrong_choice_is_reported_with_the_way_out(chosen: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        checked(chosen, KNOWN)
    with pytest.raises(UsageError):
        McpspyApp(None, None, chosen)


def test_the_help_shows_the_keys_that_are_in_force() -> None:
    bindings = [Binding("q", "back", id="session.back"), Binding("v", "wire", id="session.wire")]
    assert [binding.key for binding in in_force(bindings, {"session.wire": "x"})] == ["q", "x"]


def test_the_page_names_every_key_that_can_be_changed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tui.md").read_text(encoding="utf-8")
    missing = [name for name in sorted(names(node.BINDINGS for node in keyed())) if f"`{name}`" not in page]
    assert missing == []
