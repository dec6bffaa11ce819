"""The keys of held messages among the keys of the session screen."""

from __future__ import annotations

from textual.binding import Binding

from mcpspy.ui.tui.bindings import INTERCEPT_KEYS, before
from mcpspy.ui.tui.bindings import SESSION_KEYS as SESSION


def test_each_has_an_id_and_precedes_the_other_bindings_of_its_key() -> None:
    merged = [binding for binding in before(SESSION) if isinstance(binding, Binding)]
    assert len(merged) == len(INTERCEPT_KEYS) + len(SESSION)
    held = [binding for binding in INTERCEPT_KEYS if isinstance(binding, Binding)]
    assert all(binding.id and binding.id.startswith("held.") and binding.tooltip for binding in held)
    for binding in held:
        rivals = [one for one in merged if binding.key in one.key.split(",")]
        assert rivals[0] is binding
    assert [one for one in merged if one not in held] == SESSION
