"""Every key of the diff screen has an id, a description and an action."""

from __future__ import annotations

from textual.binding import Binding

from mcpspy.ui.tui.bindings import DIFF_KEYS
from mcpspy.ui.tui.diff.rows import DiffList
from mcpspy.ui.tui.diff.screen import DiffScreen

OWN = [binding for binding in DIFF_KEYS if isinstance(binding, Binding)]


def test_every_key_has_a_unique_id_and_one_action() -> None:
    assert len({binding.id for binding in OWN}) == len(OWN) == len(DIFF_KEYS)
    assert all((binding.id or "").startswith("diff.") and binding.tooltip for binding in OWN)
    keys = [key for binding in [*OWN, *DiffList.BINDINGS] for key in binding.key.split(",")]  # type: ignore[union-attr]
    assert len(set(keys)) == len(keys)


def test_every_key_has_its_action() -> None:
    for binding in OWN:
        name = binding.action.partition("(")[0]
        assert name.startswith("app.") or hasattr(DiffScreen, f"action_{name}")
