"""The application: themes, screens, and how it ends.

Composes, and owns nothing else but the end of an internal error: the terminal
is given back, and whoever started the application gets the exception. Textual
would print a traceback with the values of all locals; those are traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.dom import DOMNode
from textual.screen import Screen

from mcpspy.io.catalog import Catalog
from mcpspy.io.store import Summary
from mcpspy.ui.tui.asides.numbers_screen import NumbersList, NumbersScreen
from mcpspy.ui.tui.asides.server_screen import ServerList, ServerScreen
from mcpspy.ui.tui.asides.timeline_screen import TimelineList, TimelineScreen
from mcpspy.ui.tui.help import Group, HelpScreen
from mcpspy.ui.tui.keymap import checked, in_force, names
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.palette import Actions
from mcpspy.ui.tui.reader.detail import Detail
from mcpspy.ui.tui.reader.searchbox import SearchBox
from mcpspy.ui.tui.session.ask import Ask
from mcpspy.ui.tui.session.filterbar import FilterInput
from mcpspy.ui.tui.session.session_screen import SessionScreen
from mcpspy.ui.tui.sessions.confirm import Confirm
from mcpspy.ui.tui.sessions.sessions import SessionList
from mcpspy.ui.tui.sessions.sessions_screen import SessionsScreen
from mcpspy.ui.tui.theme import CSS, DARK, LIGHT, PLAIN, chosen_theme, wants_colour


class Inspector(App[None]):
    """`mcpspy tui`."""

    CSS = CSS

    TITLE = "mcpspy"
    COMMANDS: ClassVar[set[type[Provider]]] = {Actions}  # type: ignore[assignment]
    COMMAND_PALETTE_BINDING = ""
    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "colon,ctrl+p",
            "command_palette",
            "commands",
            tooltip="find an action by its words",
            show=False,
            id="app.commands",
        ),
        Binding("ctrl+t", "change_theme", "themes", tooltip="choose a theme", show=False, id="app.themes"),
        Binding("T", "theme", "light or dark", show=False, id="app.theme"),
        Binding("Q,ctrl+c,ctrl+q", "quit", "quit", show=False, priority=True, id="app.quit"),
    ]

    HELP_NAME = "everywhere"

    def __init__(
        self,
        folder: str | None = None,
        summaries: Sequence[Summary] | Summary | None = None,
        keys: Mapping[str, Any] | None = None,
    ) -> None:
        """Look at a folder; open a session at once; take other keys by their names. Raises UsageError."""
        super().__init__(ansi_color=None if wants_colour() else True)
        self._catalog = Catalog(folder)
        self._summaries = [summaries] if isinstance(summaries, Summary) else summaries
        self._chosen = checked(keys or {}, names(node.BINDINGS for node in KEYED))
        self.fault: Exception | None = None
        """The internal error that ended it."""
        for theme in (DARK, LIGHT, PLAIN):
            self.register_theme(theme)
        self.set_class(not wants_colour(), "-plain")
        self.theme = chosen_theme(self.available_themes)

    def get_css_variables(self) -> dict[str, str]:
        """Have the themes of others define what ours do."""
        variables = super().get_css_variables()
        for ours, theirs in (
            ("quiet", "foreground-muted"),
            ("cursor", "primary-muted"),
            ("cursor-away", "panel"),
        ):
            variables.setdefault(ours, variables[theirs])
        return variables

    def get_default_screen(self) -> Screen[Any]:
        """Begin with the sessions."""
        return SessionsScreen(self._catalog)

    def on_mount(self) -> None:
        """Take the keys that were chosen, and open the session that was asked for."""
        self.set_keymap(self._chosen)
        if self._summaries:
            self.push_screen(SessionScreen(*self._summaries))

    def action_theme(self) -> None:
        """Change between light and dark."""
        if wants_colour():
            self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_change_theme(self) -> None:
        """Choose among all themes."""
        if wants_colour():
            super().action_change_theme()

    def action_help(self) -> None:
        """Show the keys of this screen."""
        speakers = [self.screen, *self.screen.focus_chain, self]
        groups: list[Group] = [
            (getattr(node, "HELP_NAME", ""), in_force(node.BINDINGS, self._chosen)) for node in speakers
        ]
        self.push_screen(HelpScreen(group for group in groups if group[0]))

    def _handle_exception(self, error: Exception) -> None:
        """Stop, and keep the error for the caller."""
        if self.fault is None:
            self.fault = self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


KEYED: tuple[type[DOMNode], ...] = (
    Inspector,
    SessionsScreen,
    SessionScreen,
    SessionList,
    Listing,
    Detail,
    FilterInput,
    SearchBox,
    Ask,
    Confirm,
    TimelineScreen,
    TimelineList,
    NumbersScreen,
    NumbersList,
    ServerScreen,
    ServerList,
)
"""Whose keys can be given others."""
