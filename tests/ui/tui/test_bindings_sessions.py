"""Every key of the list of sessions has a name and a word."""

from __future__ import annotations

from textual.binding import Binding

from mcpspy.ui.tui.bindings import SESSIONS_KEYS
from mcpspy.ui.tui.sessions.screen import SessionsScreen
from mcpspy.ui.tui.sessions.session_list import SessionList

ALL = [binding for binding in [*SESSIONS_KEYS, *SessionList.BINDINGS] if isinstance(binding, Binding)]


def test_every_key_has_a_name_of_its_own_and_shows_what_it_does() -> None:
    names = [binding.id for binding in ALL]
    assert all(names)
    assert len(set(names)) == len(names)
    assert all(binding.tooltip or binding.description for binding in ALL)


def test_no_key_does_two_things() -> None:
    # Escape forgets what was to be compared; only if nothing is, it is `leave`.
    keys = [key for binding in ALL if binding.id != "sessions.forget" for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


def test_every_key_has_its_action() -> None:
    for binding in SESSIONS_KEYS:
        assert isinstance(binding, Binding)
        assert binding.action.startswith("app.") or hasattr(SessionsScreen, f"action_{binding.action}")
