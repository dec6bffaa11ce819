"""Every key of the session list has an id and a description."""

from __future__ import annotations

from textual.binding import Binding

from mcpspy.ui.tui.bindings import SESSIONS_KEYS
from mcpspy.ui.tui.sessions.screen import SessionsScreen
from mcpspy.ui.tui.sessions.session_list import SessionList

ALL = [binding for binding in [*SESSIONS_KEYS, *SessionList.BINDINGS] if isinstance(binding, Binding)]


def test_every_key_has_a_unique_id_and_a_description() -> None:
    names = [binding.id for binding in ALL]
    assert all(names)
    assert len(set(names)) == len(names)
    assert all(binding.tooltip or binding.description for binding in ALL)


def test_no_key_has_two_actions() -> None:
    # Escape cancels a pending diff; only without one is it `leave`.
    keys = [key for binding in ALL if binding.id != "sessions.forget" for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


def test_every_key_has_its_action() -> None:
    for binding in SESSIONS_KEYS:
        assert isinstance(binding, Binding)
        action = binding.action.partition("(")[0]
        assert action.startswith("app.") or hasattr(SessionsScreen, f"action_{action}")
