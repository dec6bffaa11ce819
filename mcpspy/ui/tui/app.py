"""The application: themes, screens, command palette, and the handling of internal errors.

After an internal error it restores the terminal and hands the exception to the
caller: Textual's own traceback prints all local variables, which contain traffic.
Screens are imported on first use, which makes the first frame faster.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from textual import events
from textual.app import App
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.screen import Screen
from textual.theme import ThemeProvider
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.runs import FollowedRun, Runs
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.tui.bindings import INTERCEPT_KEYS, SYNONYMS, checked, in_force, names
from mcpspy.ui.tui.help import name
from mcpspy.ui.tui.theme import (
    COMPONENTS,
    CSS,
    DARK,
    LIGHT,
    PLAIN,
    SIXTEEN,
    ascii_driver,
    chosen_theme,
    wants_colour,
)
from mcpspy.ui.tui.widgets.base import DismissibleScreen
from mcpspy.ui.views.extension import Extension

KEYS = 9
"""Columns of the keys in the palette."""

SEPARATORS = str.maketrans(":.-,;()", " " * 7)

EXACT = 1000.0
"""Score of an action of which a word, or a synonym, begins as typed."""


SLOW_CHECK = 1.0
"""Seconds between two looks at whether a function of the user takes too long."""

HANGUP_CHECK = 1.0
"""Seconds between two checks whether the terminal was closed."""


class PaletteAction(NamedTuple):
    description: str
    keys: str
    active: ActiveBinding

    @property
    def words(self) -> list[str]:
        """The words by which the action is found, its own before the synonyms."""
        which = self.active.binding.id or ""
        return f"{self.description} {which} {SYNONYMS.get(which, '')}".lower().translate(SEPARATORS).split()


class ActionPalette(Provider):
    async def discover(self) -> Hits:
        for action in self._actions():
            yield DiscoveryHit(self._line(action, Content(action.description)), self._run(action))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        wanted, actions = query.lower().split(), list(self._actions())
        exact = [
            action
            for action in actions
            if all(any(word.startswith(part) for word in action.words) for part in wanted)
        ]
        for action in exact or actions:  # Better than any letters in other words.
            score = matcher.match(action.description) + EXACT * bool(exact)
            if score > 0:
                yield Hit(score, self._line(action, matcher.highlight(action.description)), self._run(action))

    def _actions(self) -> Iterator[PaletteAction]:
        """Return the actions of the screen, of the focused widget, of the other ones, and of the application."""
        seen: set[str] = set()
        active = list(self.screen.active_bindings.values())
        assert isinstance(self.app, McpspyApp)
        known = {each.node for each in active}
        for node in self.screen.focus_chain:
            if node not in known:
                active += [ActiveBinding(node, binding, True) for binding in self.app.bindings_of(node)]
        order = {self.screen: 0, self.app: 2}
        for each in sorted(active, key=lambda each: order.get(each.node, 1)):
            binding = each.binding
            description = binding.tooltip or binding.description
            if binding.id and each.enabled and description not in seen:
                seen.add(description)
                yield PaletteAction(description, name(binding.key.split(",")[0]), each)

    def _line(self, action: PaletteAction, description: Content) -> Content:
        return Content.assemble((f"{action.keys:<{KEYS}} ", "$primary"), description)

    def _run(self, action: PaletteAction) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            node, screen = action.active.node, self.app.screen_stack[-1]
            if node is not self.app and screen not in node.ancestors_with_self:
                return  # It was closed meanwhile.
            if isinstance(node, Widget) and node.can_focus:
                screen.set_focus(node)  # Immediately: the action may move the focus.
            await self.app.run_action(action.active.binding.action, node)

        return run


class PaletteList(CommandList):
    async def _on_click(self, event: events.Click) -> None:
        event.prevent_default()  # Textual calls the handlers of all base classes.
        with suppress(IndexError):  # The clicked action was removed by a new search.
            await super()._on_click(event)


class Palette(CommandPalette, DismissibleScreen[None]):
    """Textual's palette, without its failures in low terminals and for fast keys."""

    def on_mount(self) -> None:
        self.query_one(CommandList).__class__ = PaletteList  # Textual makes it, with its container.

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):  # It pages through a list that has no lines yet, or no room for any.
            super()._action_command_list(action)

    def run_worker(self, *arguments: Any, **options: Any) -> Worker[Any]:
        """Run a search, which may not end mcpspy: it fails if the palette is closed meanwhile."""
        return super().run_worker(*arguments, **{**options, "exit_on_error": False})

    async def _watch__show_busy(self) -> None:
        with suppress(NoMatches):  # The widgets of a closed palette are removed before its search has ended.
            await super()._watch__show_busy()

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        event.prevent_default()
        with suppress(NoWidget):  # The palette has no layout yet.
            super()._on_click(event)


class McpspyApp(App[None]):
    """`mcpspy tui`."""

    CSS = f"{CSS}\nCommandPalette SearchIcon {{ display: none; }}"

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

    HELP_NAME = "everywhere"

    def __init__(
        self,
        folder: str | None = None,
        summaries: Sequence[Summary] | Summary | FollowedRun | None = None,
        keys: Mapping[str, Any] | None = None,
        unsafe_regex: bool = False,
        *,
        ascii_only: bool = False,
        uses_cache: bool = False,
        extension: Extension | None = None,
    ) -> None:
        """Raise UsageError if `keys` is invalid."""
        super().__init__(ansi_color=None if wants_colour() else True)
        if ascii_only:
            self.driver_class = ascii_driver(self.driver_class)
        self._catalog = Catalog(folder)
        self._run = summaries if isinstance(summaries, FollowedRun) else None
        """The run to open at once."""
        self._runs: dict[Path, Runs] = {}
        """Folder → its runs, as far as they are known."""
        shown = summaries.sessions if isinstance(summaries, FollowedRun) else summaries
        self._summaries = [shown] if isinstance(shown, Summary) else shown
        self._chosen = checked(keys, names(node.BINDINGS for node in keyed())) if keys else {}
        self.unsafe_regex = unsafe_regex
        """True if filters and searches may use regular expressions that RE2 cannot run."""
        self.extension = extension or Extension()
        """Columns and views of contents."""
        self.uses_cache = uses_cache
        """True if the index of a large session is read from a cache, and kept there."""
        self.is_remote = False
        """True if the folder is a copy of another machine's."""
        self.notices: list[str] = []
        """Lines to show at the start."""
        self.is_hung_up = False
        """True if the terminal was closed."""
        self.fault: Exception | None = None
        """The internal error that ended the application."""
        for theme in (DARK, LIGHT, SIXTEEN, PLAIN):
            self.register_theme(theme)
        self.set_class(not wants_colour(), "-plain")
        has_few = self.console.color_system == "standard"
        self.theme = chosen_theme(self.available_themes, has_few_colours=has_few)

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
        loop = asyncio.get_running_loop()

        def notify() -> None:
            with suppress(RuntimeError):  # The application has ended.
                loop.call_soon_threadsafe(self._show_results)

        self.extension.notify(notify)
        self.set_interval(SLOW_CHECK, self.extension.stop_slow_call)
        for line in self.notices:
            self.notify(sanitize(line), markup=False)
        if sys.platform != "win32" and os.isatty(0):
            self.set_interval(HANGUP_CHECK, self._exit_after_hangup)
        if self._summaries:
            from mcpspy.ui.tui.session.screen import SessionScreen

            self.push_screen(SessionScreen(*self._summaries, run=self._run))

    def _show_results(self) -> None:
        """Show the cells and views that were computed in a thread."""
        from mcpspy.ui.tui.session.panes import Panes

        for panes in self.screen.query(Panes):
            panes.listing.refresh()
            panes.detail.complete()

    def _exit_after_hangup(self) -> None:
        """Exit if the terminal was closed without a SIGHUP, as under `setsid` and `nohup`: Textual would read forever."""
        terminal = select.poll()
        terminal.register(0, select.POLLHUP)
        if terminal.poll(0):
            self.is_hung_up = True
            self.exit()

    async def action_back(self) -> None:
        """Go to the list of sessions, which may not be on the stack yet."""
        if len(self.screen_stack) > (2 if self._summaries else 1):
            await self.pop_screen()
        else:
            await self.switch_screen(self._all_sessions())

    def report(self, text: str) -> None:
        """Show a text that comes from another thread."""
        with suppress(RuntimeError):  # The application has not begun, or has ended.
            self.call_from_thread(lambda: self.notify(sanitize(text), markup=False))

    async def open_run(self, path: Path) -> str:
        """Open the run of a recording; return the reason if there is none."""
        from mcpspy.ui.tui.session.screen import SessionScreen

        runs = self._runs.setdefault(path.parent, Runs(str(path.parent)))
        try:
            known = await asyncio.to_thread(runs.look)
        except McpspyError as error:
            return str(error)
        found = [each for each in known if any(session.path == path for session in each.sessions)]
        if not found:
            return "this session is in no run: it does not name the process of its host (docs/runs.md)"
        run = FollowedRun(runs, found[-1])
        self.push_screen(SessionScreen(*run.sessions, run=run))
        return ""

    async def serve(self, path: Path) -> str:
        """Ask how to serve a recording, and serve it; return the reason if it cannot be served."""
        from mcpspy.io.recording.reader import read_header_of, summarize
        from mcpspy.ui.tui.mock.dialog import ServeDialog
        from mcpspy.ui.tui.mock.screen import MockScreen

        def summary_of(path: Path) -> Summary:
            return summarize(path, read_header_of(path), counts=False)

        # The folder of another machine's sessions is a copy, which is deleted.
        folder = sessions_folder() if self.is_remote else str(self._catalog.folder)
        try:
            summary = await asyncio.to_thread(summary_of, path)
            running = await self.push_screen_wait(ServeDialog(summary, folder))
            if running is not None:
                self.push_screen(
                    MockScreen(running, summary, await asyncio.to_thread(summary_of, running.path))
                )
        except McpspyError as error:
            return str(error)
        return ""

    async def call_server(self, header: Header | None) -> None:
        """Ask for a server, that of a recording first, and call its tools."""
        from mcpspy.ui.tui.call.servers import CallServerDialog
        from mcpspy.ui.tui.call.targets import CallTargetsScreen

        # The folder of another machine's sessions is a copy, which is deleted.
        folder = sessions_folder() if self.is_remote else str(self._catalog.folder)
        call = await self.push_screen_wait(CallServerDialog(header, folder))
        if call is not None:
            self.push_screen(CallTargetsScreen(call))

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
            hint = "Type words: stats, slow, stderr, resend … (enter: run, esc: close)"
            self.push_screen(Palette(placeholder=hint))

    def action_help(self) -> None:
        from mcpspy.core.query.syntax import SESSION_SYNTAX, SYNTAX
        from mcpspy.ui.tui.help import Group, HelpScreen, grouped

        groups: list[Group] = []
        held = in_force(INTERCEPT_KEYS, self._chosen)
        seen: set[tuple[str, str]] = set()
        for node in (self.screen, *self.screen.focus_chain, self):
            bindings = self.bindings_of(node)
            others = [
                binding
                for binding in bindings
                if binding not in held and (binding.key, binding.action) not in seen
            ]
            seen |= {(binding.key, binding.action) for binding in others}
            groups += grouped(getattr(node, "HELP_NAME", ""), others)
            if held[0] in bindings:
                groups.append(("held messages", held))
        languages = {"session": SYNTAX, "sessions": SESSION_SYNTAX}
        filters = languages.get(getattr(self.screen, "HELP_NAME", ""), ())
        is_typed = bool(filters) and isinstance(self.focused, Input)
        self.push_screen(HelpScreen(groups, filters=filters, shows_syntax=is_typed))

    def bindings_of(self, node: DOMNode) -> list[Binding]:
        return in_force(node.BINDINGS, self._chosen)

    def _handle_exception(self, error: Exception) -> None:
        """Exit and keep the error for the caller."""
        if self.fault is None:
            self.fault = self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


def keyed() -> tuple[type[DOMNode], ...]:
    """Return the classes with remappable keys. Imports every screen, so call it only if there is a `[keys]` table."""
    from mcpspy.ui.tui.call.form import CallFormScreen
    from mcpspy.ui.tui.call.servers import CallServerDialog
    from mcpspy.ui.tui.call.targets import CallTargetsScreen, TargetInput
    from mcpspy.ui.tui.detail.pane import DetailPane
    from mcpspy.ui.tui.detail.search import SearchBox
    from mcpspy.ui.tui.diff.screen import DiffScreen
    from mcpspy.ui.tui.intercept.editor import EditorScreen
    from mcpspy.ui.tui.mock.dialog import ConnectScreen, ServeDialog
    from mcpspy.ui.tui.mock.screen import MockScreen
    from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesList, CapabilitiesScreen
    from mcpspy.ui.tui.panels.stats import StatsList, StatsScreen
    from mcpspy.ui.tui.panels.timeline import TimelineList, TimelineScreen
    from mcpspy.ui.tui.replay.dialog import ReplayDialog
    from mcpspy.ui.tui.replay.load import LoadScreen
    from mcpspy.ui.tui.replay.output import OutputScreen
    from mcpspy.ui.tui.replay.screen import ReplayScreen
    from mcpspy.ui.tui.session.filter_bar import FilterInput
    from mcpspy.ui.tui.session.screen import SessionScreen
    from mcpspy.ui.tui.sessions.screen import SessionsScreen
    from mcpspy.ui.tui.sessions.session_list import SessionList
    from mcpspy.ui.tui.widgets.choice import Choice
    from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, ErrorPrompt, TextPrompt, ToggleMenu
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
        CallServerDialog,
        CallTargetsScreen,
        TargetInput,
        CallFormScreen,
        ConnectScreen,
        DiffScreen,
        EditorScreen,
        ErrorPrompt,
        MockScreen,
        ServeDialog,
        ToggleMenu,
        ReplayDialog,
        Choice,
        ReplayScreen,
        LoadScreen,
        OutputScreen,
    )
