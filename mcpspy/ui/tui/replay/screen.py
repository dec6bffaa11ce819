"""The screen of a replay: its steps, the responses of one, and the keys that change its course.

An engine in another process plays and judges. The screen sends it orders, shows its model ten times a second, and
ends it when it is closed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.timer import Timer

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.settings import slug
from mcpspy.ui.model.replay_run import (
    WORDS,
    Phase,
    ReplayModel,
    ShownStep,
    StepState,
    request_text,
)
from mcpspy.ui.model.replay_settings import keep_ignored
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.width import cut_middle
from mcpspy.ui.tui.bindings import REPLAY_KEYS
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.intercept.assistance import editable, read_listings, request_problems
from mcpspy.ui.tui.intercept.editor import EditorScreen
from mcpspy.ui.tui.replay.engine_screen import EngineScreen
from mcpspy.ui.tui.replay.output import OutputScreen
from mcpspy.ui.tui.replay.steps import NOTHING, ROLES, Differences, StepList, differences, document
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

SETTLE = 0.06
"""Seconds that the cursor rests before the messages of its step are asked for."""

BAR = 20
"""Columns of the progress bar."""

NARROW = 60

_SHOWN = (
    StepState.SAME,
    StepState.NOTE,
    StepState.DIFFERENT,
    StepState.BREAKING,
    StepState.LOST,
    StepState.UNSENT,
)
"""The states that are counted in the progress line."""

_STATES = {
    Phase.STARTING: "replay-playing",
    Phase.PLAYING: "replay-playing",
    Phase.PAUSED: "replay-paused",
    Phase.ENDED: "replay-ended",
    Phase.FAILED: "replay-failed",
}

_RUNNING = frozenset(("pause", "step", "skip", "edit", "again", "stop"))
_ENDED = frozenset(("save", "report", "update"))


class ReplayScreen(EngineScreen):
    """A replay; dismissed with True if the user wants to replay again."""

    DEFAULT_CSS = """
    ReplayScreen #panes { height: 1fr; layout: vertical; }
    ReplayScreen #panes > * { width: 1fr; }
    ReplayScreen StepList { height: 2fr; }
    ReplayScreen DetailPane { height: 3fr; border-top: solid $panel; }
    ReplayScreen DetailPane:focus-within { border-top: heavy $primary; }
    ReplayScreen #panes.-list > DetailPane, ReplayScreen #panes.-list > Differences { display: none; }
    ReplayScreen #panes.-detail > StepList { display: none; }
    ReplayScreen #cause { display: none; height: auto; max-height: 5; padding: 0 1; background: $background; }
    ReplayScreen #cause.-shown { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = REPLAY_KEYS

    HELP_NAME = "replay"

    AUTO_FOCUS = "#steps"

    def __init__(self, config: dict[str, Any], name: str, source: SessionModel) -> None:
        """`config` is that of the engine, with `form`; `name` that of the session, `source` its recorded messages."""
        self.model = ReplayModel()
        self.model.patterns = list(config["ignored"])
        super().__init__(config, name, self.model)
        self._source = source
        self.listing = StepList(self.model)
        self.detail = DetailPane(id="detail", is_beside=True)
        self._differences = Differences(id="differences")
        self._progress = SplitLine(id="progress", classes="-soft")
        self._asked: tuple[int, int, float] | None = None
        """The step that the engine was asked to show last."""
        self._drawn: ShownStep | None = None
        self._settling: Timer | None = None
        self._footer: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield self._title
        with Container(id="panes"):
            yield self.listing
            yield self._differences
            yield self.detail
        yield self._cause
        yield self._progress
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        self.detail.show(NOTHING, None)

    @property
    def footer(self) -> tuple[str, ...]:
        """The tables of FOOTERS for the phase of the replay."""
        state = _STATES[self.model.phase]
        return (state, "message") if self.detail.has_focus_within else (state,)

    @property
    def ignored(self) -> list[str]:
        return self.model.patterns

    @property
    def leave_question(self) -> str:
        if self.model.is_over:
            return ""
        return f"Stop this replay? {self.model.done:,} of {counted(self.model.requests, 'request')} are over."

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of another phase."""
        phase = self.model.phase
        if action in _RUNNING:
            return not self.model.is_over
        return phase is Phase.ENDED if action in _ENDED else True

    # Events.

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        if self._settling is None:
            self._settling = self.set_timer(SETTLE, self._settled)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.detail.focus()

    # Actions of keys.

    def action_swap(self) -> None:
        zoomed = self._is_zoomed
        self._zoom(on=False)
        (self.detail if self.listing.has_focus else self.listing).focus()
        if zoomed:
            self.call_after_refresh(self._zoom, on=True)

    def action_pause(self) -> None:
        self._engine.send("resume" if self.model.phase is Phase.PAUSED else "pause")

    def action_step(self) -> None:
        self.listing.follows = True
        self._engine.send("step")

    def action_skip(self) -> None:
        self._engine.send("skip")

    def action_edit(self) -> None:
        """Pause, and ask for the text of the next request."""
        self._engine.send("pause")
        if self.model.next is None:
            self.flash_message("no request is left to edit")
        else:
            self._engine.send("source", number=self.model.numbers[self.model.next])

    def action_again(self) -> None:
        if (number := self._number) is not None:
            self._engine.send("again", number=number)

    def action_change(self, step: int) -> None:
        place = self.model.following(self.listing.cursor, step)
        if place is None:
            self.flash_message(f"no difference {'below' if step > 0 else 'above'}")
        else:
            self.listing.select(place)

    def action_ignore(self) -> None:
        """Ignore the difference under the cursor of the message, or else the most severe one of the step."""
        number = self._number
        if number is None:
            self.flash_message("this difference belongs to no response: use the options of mcpspy replay")
        elif self.detail.has_focus_within and self.detail.path:
            self._engine.send("ignore", number=number, pointer=self.detail.path)
        else:
            self._engine.send("ignore", number=number)

    def action_unignore(self) -> None:
        if patterns := self.model.patterns:
            self._engine.send("ignored", patterns=patterns[:-1])
            self.flash_message(f"compared again: {patterns[-1]}")
        else:
            self.flash_message("nothing is ignored")

    def action_follow(self) -> None:
        self.listing.follows = True
        self._follow()

    def action_output(self) -> None:
        self.app.push_screen(OutputScreen(self.model))

    def action_save(self) -> None:
        self._engine.send("save")

    def action_report(self) -> None:
        question = "Save the report to .html, .xml (JUnit) or .md (Markdown):"
        self.ask_for_report(question, f"replay-{slug(self._session_name)}.html")

    def action_update(self) -> None:
        path = sanitize(str(self._config["path"]))
        question = f"Replace {path} by the new session?\nThe old one is kept as .bak."

        def update(yes: bool | None) -> None:
            if yes:
                self._engine.send("update")

        self.app.push_screen(ConfirmPrompt(question, "replace", "keep"), update)

    def action_keep(self) -> None:
        try:
            self.flash_message(keep_ignored(self.model.patterns))
        except (McpspyError, OSError) as error:
            self.flash_message(sanitize(str(error)))

    def action_zoom(self) -> None:
        self._zoom(on=not self._is_zoomed)

    def action_leave(self) -> None:
        if self._is_zoomed:
            self._zoom(on=False)
        elif self.detail.has_focus_within:
            self.listing.focus()
        else:
            self.action_back()

    @property
    def _number(self) -> int | None:
        """Return the number of the step under the cursor; None for another row."""
        numbers, cursor = self.model.numbers, self.listing.cursor
        return numbers[cursor] if cursor < len(numbers) else None

    def _edit(self, place: int, text: str) -> None:
        """Open the editor with the next request."""
        original = editable(text.encode()) or text
        number = self.model.numbers[place]
        heading: list[Piece] = [
            (f"edit and send: {self.model.about[place]}", "title"),
            ("  the replay is paused", "quiet"),
        ]

        async def send(edited: str) -> None:
            if self.model.next != place:
                raise UsageError("this request was sent meanwhile", "esc goes back")
            self._engine.send("edit", number=number, text=request_text(text, edited))
            self.action_step()

        source = self._source
        self.app.push_screen(
            EditorScreen(
                lambda: heading, original, request_problems, send, None, lambda: read_listings(source)
            )
        )

    # Updates.

    @property
    def _is_zoomed(self) -> bool:
        panes = self.query_one("#panes")
        return panes.has_class("-list") or panes.has_class("-detail")

    def _zoom(self, *, on: bool) -> None:
        panes, is_detail = self.query_one("#panes"), self.detail.has_focus_within
        panes.set_class(on and is_detail, "-detail")
        panes.set_class(on and not is_detail, "-list")

    def _look(self) -> None:
        """Show what is new."""
        model = self.model
        if not self._keys.is_attached:  # The screen is being closed.
            return
        if self._is_changed():
            self.listing.sync(len(model))
            self.listing.refresh()
            self._follow()
            self._show_cause()
            if model.source is not None:
                source, model.source = model.source, None
                self._edit(*source)
            if self._settling is None:
                self._settled()
        if self.footer != self._footer:
            self._footer = self.footer
            self.refresh_bindings()
        self._update_lines()

    def _follow(self) -> None:
        """Go to the step that is sent next, while the cursor follows the replay."""
        model, listing = self.model, self.listing
        if not listing.follows or not model.requests:
            return
        if model.is_over:
            listing.follows = False
            first = model.following(-1, 1)
            listing.move_to(0 if first is None else first)
        elif model.next is not None:
            listing.move_to(model.next)

    def _settled(self) -> None:
        """Ask for the messages of the step under the cursor, or show them."""
        self._settling = None
        model, place = self.model, self.listing.cursor
        if place >= model.requests:
            self._drawn = None
            self._differences.show([])
            self.detail.show(NOTHING, ("none", place))
            return
        shown = model.shown if model.shown is not None and model.shown.number == place else None
        if shown is not None and shown is not self._drawn:
            before, self._drawn = self._drawn, shown
            self._differences.show(differences(shown))
            self.detail.show(document(shown), (place, len(shown.new), shown.changes))
            if before is None or (before.number, before.changes) != (place, shown.changes):
                self.detail.go_to_mark()
        what = (place, model.states[place], model.latency[place])
        if what != self._asked or (shown is None and model.is_stale):
            self._asked, model.is_stale = what, False
            self._engine.send("show", number=model.numbers[place])

    def _show_cause(self) -> None:
        lines = self.model.ending
        self._cause.set_class(bool(lines), "-shown")
        if lines:
            roles = ("role--bad", *["role--title"] * (len(lines) - 1))
            styles = [self.app.get_component_styles(role).partial_rich_style for role in roles]
            text = Text("\n").join(Text(line, style) for line, style in zip(lines, styles, strict=True))
            self._cause.update(text)

    def _update_lines(self) -> None:
        model, width = self.model, self.size.width
        name = sanitize(self._session_name) or "session"
        words = {
            Phase.STARTING: ("starting …", rows.OPEN),
            Phase.PLAYING: ("playing", rows.OPEN),
            Phase.PAUSED: ("PAUSED", "key"),
            Phase.ENDED: ("ended", rows.QUIET),
            Phase.FAILED: ("FAILED", rows.BAD),
        }[model.phase]
        room = max(width - len(name) - 40, 10)
        against: Piece = (
            f" · against {cut_middle(self.shown_target, room)}" if width >= NARROW else "",
            None,
        )
        self._title.set_text([("Replay ", "title"), (name, None), against], [words])
        self._progress.set_text(*self._counts(width))
        last = model.stderr[-1] if model.stderr else ""
        below: Piece = (
            (self._flash, None) if self.is_flashing else (f"stderr: {last}" if last else "", rows.QUIET)
        )
        ignored = f"{len(model.patterns)} ignored" if model.patterns else ""
        place = f"{self.listing.cursor + 1:,}/{len(model):,}" if len(model) else ""
        self._status.set_text([below], [("  ".join(part for part in (ignored, place) if part), rows.QUIET)])

    def _counts(self, width: int) -> tuple[list[Piece], list[Piece]]:
        """Return the progress, and how many requests ended in which way."""
        model = self.model
        full = BAR * model.done // model.requests if model.requests else 0
        bar = f"{'#' * full}{'-' * (BAR - full)} " if width >= NARROW else ""
        left: list[Piece] = [(bar, rows.QUIET), (f"{model.done:,}/{model.requests:,}", None)]
        for state in _SHOWN:
            if count := model.counts[state]:
                left += [(" · ", rows.QUIET), (f"{count:,} {WORDS[state]}", ROLES[state])]
        if others := model.counts[StepState.OTHER]:
            left += [(" · ", rows.QUIET), (f"{others:,} other differences", rows.OPEN)]
        return left, []
