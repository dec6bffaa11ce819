"""The application: themes, screens, and how it ends.

Composes, and owns nothing else but the end of an internal error: the terminal
is given back, and whoever started the application gets the exception. Textual
would print a traceback with the values of all locals; those are traffic.
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from mcpspy.io.store import Summary
from mcpspy.ui.tui.catalog import Catalog
from mcpspy.ui.tui.help import Group, HelpScreen
from mcpspy.ui.tui.session_screen import SessionScreen
from mcpspy.ui.tui.sessions_screen import SessionsScreen
from mcpspy.ui.tui.theme import CSS, DARK, LIGHT, PLAIN, chosen_theme, wants_colour


class Inspector(App[None]):
    """`mcpspy tui`."""

    CSS = CSS

    TITLE = "mcpspy"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "theme", "light or dark", show=False),
        Binding("Q,ctrl+c,ctrl+q", "quit", "quit", show=False, priority=True),
    ]

    HELP_NAME = "everywhere"

    def __init__(self, folder: str | None = None, summary: Summary | None = None) -> None:
        super().__init__(ansi_color=None if wants_colour() else True)
        self._catalog = Catalog(folder)
        self._summary = summary
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
        """Open the session that was asked for."""
        if self._summary is not None:
            self.push_screen(SessionScreen(self._summary))

    def action_theme(self) -> None:
        """Change between light and dark."""
        if wants_colour():
            self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_help(self) -> None:
        """Show the keys of this screen."""
        speakers = [self.screen, *self.screen.focus_chain, self]
        groups: list[Group] = [(getattr(node, "HELP_NAME", ""), node.BINDINGS) for node in speakers]
        self.push_screen(HelpScreen(group for group in groups if group[0]))

    def _handle_exception(self, error: Exception) -> None:
        """Stop, and keep the error for the caller."""
        if self.fault is None:
            self.fault = self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()
