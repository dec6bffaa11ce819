"""Every key of the detail pane can be remapped."""

from __future__ import annotations

from textual.binding import Binding

from mcpspy.ui.tui.bindings import DETAIL_KEYS
from mcpspy.ui.tui.detail.pane import DetailPane


def test_every_key_has_a_unique_id() -> None:
    bindings = [binding for binding in DETAIL_KEYS if isinstance(binding, Binding)]
    keys = [key for binding in bindings for key in binding.key.split(",")]

    assert len({binding.id for binding in bindings}) == len(DETAIL_KEYS)
    assert all((binding.id or "").startswith("detail.") for binding in bindings)
    assert len(set(keys)) == len(keys)


def test_every_key_has_an_action() -> None:
    for binding in DETAIL_KEYS:
        assert isinstance(binding, Binding)
        assert hasattr(DetailPane, "action_" + binding.action.partition("(")[0])
