"""The screen that lists what a server offers to call, with completion by name.

The calls go into the live session in front of the user, or to a server that was started for them.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.call_form import CallTarget
from mcpspy.ui.model.live_call import LiveCall
from mcpspy.ui.model.server_call import ServerCall
from mcpspy.ui.tui.bindings import help_key
from mcpspy.ui.tui.call.form import CallFormScreen, description
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter

SHOWN = 200
"""Maximum names in the list; more words find the others."""

WIDTH = 300
"""Characters of a line of the list."""


class TargetInput(Input):
    """The words to find a name; keys up and down move in the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "screen.move(1)", "next", show=False, id="call-targets.down"),
        Binding("up", "screen.move(-1)", "previous", show=False, id="call-targets.up"),
        Binding(
            "tab", "screen.complete", "complete", tooltip="complete the name", id="call-targets.complete"
        ),
    ]

    HELP_NAME = "names to call"


class CallTargetsScreen(DismissibleScreen[None]):
    """A list of tools, prompts and resources. It owns the server of a new session, which ends with this screen."""

    DEFAULT_CSS = """
    CallTargetsScreen TargetInput.-textual-compact { border: none; padding: 0 1; height: 1; background: $panel; margin: 0 0 1 0; }
    CallTargetsScreen OptionList { height: 1fr; border: none; padding: 0 1; background: $background; }
    CallTargetsScreen #about { height: auto; max-height: 8; padding: 0 1; border-top: solid $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="go back; a server that was started ends", priority=True,
            id="call-targets.back"),
        help_key("call-targets"),
    ]  # fmt: skip

    HELP_NAME = "tools to call"

    def __init__(self, call: LiveCall | ServerCall) -> None:
        super().__init__()
        self._call = call
        self._shown: list[CallTarget] = []
        self._title = SplitLine(id="title")
        self._input = TargetInput(
            placeholder="name of a tool, prompt or resource; enter opens its form", compact=True
        )
        self._list = OptionList(id="targets", markup=False)
        self._list.can_focus = False
        self._about = Static(id="about", markup=False)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._input
        yield self._list
        yield self._about
        yield KeyFooter()

    def on_mount(self) -> None:
        self._title.set_text([("Call a tool", "title"), (" · ", None), *self.heading])
        self._input.focus()
        self._find("")
        if isinstance(self._call, ServerCall) and self._call.chosen is not None:
            self._open(self._call.targets[self._call.chosen])

    async def on_unmount(self) -> None:
        await self._call.close()

    @property
    def heading(self) -> list[Piece]:
        """The server, and where the calls go."""
        call, model = self._call, self._call.model
        name = sanitize(str(model.index.server or model.header.name))
        if isinstance(call, LiveCall):
            where = "sent into the live session"
        else:
            verb = "started" if call.server.is_command else "connected to"
            where = f"a new session: {verb} {call.server.shown}"
        return [(f"{name} · ", None), (where, "open")]

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if (target := self._highlighted) is not None:
            self._open(target)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._show_about()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open(self._shown[event.option_index])

    def action_move(self, step: int) -> None:
        if self._shown:
            at = self._list.highlighted
            self._list.highlighted = min(max((at or 0) + step, 0), len(self._shown) - 1)

    def action_complete(self) -> None:
        if (target := self._highlighted) is not None:
            self._input.value = sanitize(target.key)
            self._input.cursor_position = len(self._input.value)

    def action_back(self) -> None:
        self.dismiss(None)

    @property
    def _highlighted(self) -> CallTarget | None:
        at = self._list.highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def _find(self, text: str) -> None:
        """Show the names that contain all words; those that begin with the text first."""
        words = text.casefold().split()
        found = [
            target
            for target in self._call.targets
            if all(
                word in sanitize(f"{target.key} {target.title} {target.noun}").casefold() for word in words
            )
        ]
        start = text.strip().casefold()
        found.sort(key=lambda target: not sanitize(target.key).casefold().startswith(start))
        self._shown = found[:SHOWN]
        self._list.clear_options()
        self._list.add_options(Option(self._line(target)) for target in self._shown)
        self._list.highlighted = 0 if self._shown else None
        self._show_about()

    def _line(self, target: CallTarget) -> Text:
        noun = "" if target.noun == "tool" else f"  {target.noun}"
        about = " ".join(sanitize(target.title or target.about).split())
        name = Text(sanitize(target.key)[:WIDTH], no_wrap=True, overflow="ellipsis")
        quiet = self.app.get_component_styles("role--quiet").partial_rich_style
        return name.append(f"{noun}  {about}"[:WIDTH], quiet)

    def _show_about(self) -> None:
        target, total = self._highlighted, len(self._call.targets)
        if target is None:
            self._about.update(f"No name matches: the server lists {counted(total, 'name')}.")
            return
        self._about.update(description(self, target, self._call.notes))

    def _open(self, target: CallTarget) -> None:
        self.app.push_screen(CallFormScreen(self._call, self._call.form(target), self.heading))
