"""The application: themes, screens, command palette, and the handling of internal errors.

After an internal error it restores the terminal and hands the exception to the
caller: Textual's own traceback prints all local variables, which contain traffic.
Screens are imported on first use, which makes the first frame faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.screen import Screen
from textual.theme import ThemeProvider
from textual.worker import Worker

from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.tui.ascii import ascii_driver
from mcpspy.ui.tui.bindings import INTERCEPT_KEYS, checked, in_force, names
from mcpspy.ui.tui.help import name
from mcpspy.ui.tui.theme import COMPONENTS, CSS, DARK, LIGHT, PLAIN, chosen_theme, wants_colour


class ActionPalette(Provider):
    async def discover(self) -> Hits:
        for description, keys, active in self._actions():
            yield DiscoveryHit(description, partial(self._run, active), help=keys)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for description, keys, active in self._actions():
            # Also match the id, which may have words that the description lacks.
            score = max(matcher.match(description), matcher.match(active.binding.id or ""))
            if score > 0:
                yield Hit(score, matcher.highlight(description), partial(self._run, active), help=keys)

    def _actions(self) -> Iterator[tuple[str, str, ActiveBinding]]:
        seen: set[str] = set()
        found = self.screen.active_bindings.values()
        for active in sorted(found, key=lambda active: active.node is not self.screen):
            binding = active.binding
            description = binding.tooltip or binding.description
            if binding.id and active.enabled and description not in seen:
                seen.add(description)
                yield description, name(binding.key), active

    async def _run(self, active: ActiveBinding) -> None:
        screen = self.app.screen_stack[-1]
        if (
            active.node is self.app or screen in active.node.ancestors_with_self
        ):  # It may be closed meanwhile.
            await self.app.run_action(active.binding.action, active.node)


class Palette(CommandPalette):
    """Textual's palette, without its failures in low terminals and for fast keys."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):  # It pages through a list that has no lines yet, or no room for any.
            super()._action_command_list(action)

    def run_worker(self, *arguments: Any, **options: Any) -> Worker[Any]:
        """Run a search, which may not end mcpspy: it fails if the palette is closed meanwhile."""
        return super().run_worker(*arguments, **{**options, "exit_on_error": False})

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close the palette once: a second click would close the screen below."""
        return super().dismiss(result) if self in self.app.screen_stack[-1:] else AwaitComplete()

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        event.prevent_default()  # Textual calls the handlers of all base classes.
        with suppress(NoWidget):  # The palette has no layout yet.
            super()._on_click(event)


class McpspyApp(App[None]):
    """`mcpspy tui`."""

    CSS = CSS

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    TITLE = "mcpspy"
    COMMANDS = {ActionPalette}  # noqa: RUF012 - App declares its type.
    COMMAND_PALETTE_BINDING = ""
    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("colon,ctrl+p", "command_palette", "command palette", show=False, id="app.commands"),
        Binding("ctrl+t", "change_theme", "select theme", show=False, id="app.themes"),
        Binding("T", "theme", "toggle light and dark theme", show=False, id="app.theme"),
        Binding("Q,ctrl+c,ctrl+q", "quit", "quit", show=False, priority=True, id="app.quit"),
    ]

    HELP_NAME = "global"

    def __init__(
        self,
        folder: str | None = None,
        summaries: Sequence[Summary] | Summary | None = None,
        keys: Mapping[str, Any] | None = None,
        unsafe_regex: bool = False,
        *,
        ascii_only: bool = False,
        uses_cache: bool = False,
    ) -> None:
        """Raise UsageError if `keys` is invalid."""
        super().__init__(ansi_color=None if wants_colour() else True)
        if ascii_only:
            self.driver_class = ascii_driver(self.driver_class)
        self._catalog = Catalog(folder)
        self._summaries = [summaries] if isinstance(summaries, Summary) else summaries
        self._chosen = checked(keys, names(node.BINDINGS for node in keyed())) if keys else {}
        self.unsafe_regex = unsafe_regex
        """True if filters and searches may use regular expressions that RE2 cannot run."""
        self.uses_cache = uses_cache
        """True if the index of a large session is read from a cache, and kept there."""
        self.fault: Exception | None = None
        """The internal error that ended the application."""
        for theme in (DARK, LIGHT, PLAIN):
            self.register_theme(theme)
        self.set_class(not wants_colour(), "-plain")
        self.theme = chosen_theme(self.available_themes)

    def get_css_variables(self) -> dict[str, str]:
        """Define mcpspy's variables for Textual's own themes."""
        variables = super().get_css_variables()
        for own, builtin in (
            ("quiet", "foreground-muted"),
            ("cursor", "primary-muted"),
            ("cursor-away", "panel"),
        ):
            variables.setdefault(own, variables[builtin])
        return variables

    def get_default_screen(self) -> Screen[Any]:
        """Return the sessions list, or an empty screen if a session is opened at once."""
        return Screen() if self._summaries else self._all_sessions()

    def on_mount(self) -> None:
        self.set_keymap(self._chosen)
        if self._summaries:
            from mcpspy.ui.tui.session.screen import SessionScreen

            self.push_screen(SessionScreen(*self._summaries))

    async def action_back(self) -> None:
        """Go to the list of sessions, which may not be on the stack yet."""
        if len(self.screen_stack) > (2 if self._summaries else 1):
            await self.pop_screen()
        else:
            await self.switch_screen(self._all_sessions())

    async def action_quit(self) -> None:
        """Quit, after a confirmation if held messages would be released."""
        from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt

        questions = [text for screen in self.screen_stack if (text := getattr(screen, "leave_question", ""))]
        if not questions or isinstance(self.screen, ConfirmPrompt):
            self.exit()
        else:
            self.push_screen(
                ConfirmPrompt(questions[-1], "quit", "stay"), lambda yes: self.exit() if yes else None
            )

    def _all_sessions(self) -> Screen[Any]:
        from mcpspy.ui.tui.sessions.screen import SessionsScreen

        return SessionsScreen(self._catalog)

    def action_theme(self) -> None:
        if wants_colour():
            self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_change_theme(self) -> None:
        if wants_colour():
            self.push_screen(Palette(providers=[ThemeProvider], placeholder="Search for themes…"))

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def action_help(self) -> None:
        from mcpspy.ui.tui.help import Group, HelpScreen

        groups: list[Group] = []
        held = in_force(INTERCEPT_KEYS, self._chosen)
        for node in (self.screen, *self.screen.focus_chain, self):
            bindings = in_force(node.BINDINGS, self._chosen)
            others = [binding for binding in bindings if binding not in held]
            groups.append((getattr(node, "HELP_NAME", ""), others))
            if len(others) < len(bindings):
                groups.append(("held messages", held))
        self.push_screen(HelpScreen(group for group in groups if all(group)))

    def _handle_exception(self, error: Exception) -> None:
        """Exit and keep the error for the caller."""
        if self.fault is None:
            self.fault = self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


def keyed() -> tuple[type[DOMNode], ...]:
    """Return the classes with remappable keys. Imports every screen, so call it only if there is a `[keys]` table."""
    from mcpspy.ui.tui.detail.pane import DetailPane
    from mcpspy.ui.tui.detail.search import SearchBox
    from mcpspy.ui.tui.diff.screen import DiffScreen
    from mcpspy.ui.tui.intercept.editor import EditorScreen
    from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesList, CapabilitiesScreen
    from mcpspy.ui.tui.panels.stats import StatsList, StatsScreen
    from mcpspy.ui.tui.panels.timeline import TimelineList, TimelineScreen
    from mcpspy.ui.tui.session.filter_bar import FilterInput
    from mcpspy.ui.tui.session.screen import SessionScreen
    from mcpspy.ui.tui.sessions.screen import SessionsScreen
    from mcpspy.ui.tui.sessions.session_list import SessionList
    from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, ErrorPrompt, TextPrompt
    from mcpspy.ui.tui.widgets.virtual_list import VirtualList

    return (
        McpspyApp,
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
