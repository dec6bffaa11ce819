"""Keys that a person has chosen.

Owns which names of keys there are, and that a wrong one is said before the
screen opens. A name belongs to one action of one widget.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from mcpspy.errors import UsageError


def names(tables: Iterable[Iterable[BindingType]]) -> set[str]:
    """Return the names under which bindings can be given other keys."""
    return {
        binding.id for table in tables for binding in table if isinstance(binding, Binding) and binding.id
    }


def keyed(*first: type[DOMNode]) -> tuple[type[DOMNode], ...]:
    """Return whose keys can be given others, `first` and every screen. Imports every screen, which only who has chosen keys waits for."""
    from mcpspy.ui.tui.detail.pane import DetailPane
    from mcpspy.ui.tui.detail.search_bar import SearchBox
    from mcpspy.ui.tui.diff.screen import DiffScreen
    from mcpspy.ui.tui.intercept.editor import EditorScreen
    from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesList, CapabilitiesScreen
    from mcpspy.ui.tui.panels.stats_screen import StatsList, StatsScreen
    from mcpspy.ui.tui.panels.timeline_screen import TimelineList, TimelineScreen
    from mcpspy.ui.tui.session.filter_bar import FilterInput
    from mcpspy.ui.tui.session.screen import SessionScreen
    from mcpspy.ui.tui.sessions.screen import SessionsScreen
    from mcpspy.ui.tui.sessions.session_list import SessionList
    from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, ErrorPrompt, TextPrompt
    from mcpspy.ui.tui.widgets.virtual_list import VirtualList

    return (
        *first,
        SessionsScreen,
        SessionScreen,
        SessionList,
        VirtualList,
        DetailPane,
        FilterInput,
        SearchBox,
        TextPrompt,
        ConfirmPrompt,
        TimelineScreen,
        TimelineList,
        StatsScreen,
        StatsList,
        CapabilitiesScreen,
        CapabilitiesList,
        DiffScreen,
        EditorScreen,
        ErrorPrompt,
    )


def checked(chosen: Mapping[str, Any], known: set[str]) -> dict[str, str]:
    """Return the chosen keys by name; raise UsageError for a name that is none, or keys that are no text."""
    for name, keys in chosen.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "docs/tui.md lists the names"
            raise UsageError(f"keys: {name!r} is no name of a key", hint)
        if not isinstance(keys, str) or not keys.strip(", "):
            raise UsageError(f'keys: "{name}" takes keys as text', f'"{name}" = "ctrl+x,x"')
    return dict(chosen)


def in_force(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> list[Binding]:
    """Return bindings with the keys that were chosen for them."""
    return [
        binding.with_key(chosen[binding.id]) if binding.id and binding.id in chosen else binding
        for binding in bindings
        if isinstance(binding, Binding)
    ]
