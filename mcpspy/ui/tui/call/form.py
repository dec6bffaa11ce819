"""The form of a call: a field for each argument, the same as JSON, and the response beside them.

`ui/model/call_form` decides what is wrong with a text. A form with problems is sent only if the user insists: a user
who tests a server may want to send what its schema forbids.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from mcpspy.analysis import rows
from mcpspy.core.jsontools import ABSENT
from mcpspy.core.protocol.argument_fields import ArgumentField, FieldKind, choice_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError
from mcpspy.ui.model.call_form import CallForm, CallTarget, FormProblems, words_of
from mcpspy.ui.model.live_call import LiveCall
from mcpspy.ui.model.server_call import ServerCall
from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.detail.views import TEXT
from mcpspy.ui.tui.session.panes import document
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.choice import Choice
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter

WIDE = 110
TICK = 0.2
LABEL = 26
"""Columns of the names of fields."""

NAME = 60
"""Characters of the name of a target in the title."""

ABOUT = 600
"""Characters of a description that are shown."""

NOT_SET, ELSEWHERE = "not set", "as in the JSON"

EMPTY = Document([DocumentPart("message", [("The response appears here.", "quiet")], b"")])


def description(widget: Widget, target: CallTarget, notes: Sequence[str] = ()) -> Text:
    """Return the annotations, title and description of a target, and further lines."""

    def styled(words: str, role: str) -> Text:
        look = widget.app.get_component_styles(f"role--{role}").partial_rich_style
        return Text(words, look)

    parts = [
        styled(" · ".join(target.hints), "bad" if target.is_destructive else "quiet"),
        styled(sanitize(target.title), "title"),
        Text("\n".join(map(sanitize, target.about.strip()[:ABOUT].split("\n")))),
        *(styled(sanitize(note), "open") for note in notes),
    ]
    return Text("\n").join(part for part in parts if part)


class FieldRow(Vertical):
    """A field: its name and value, and a line with its type and description, or with what is wrong with it."""

    DEFAULT_CSS = """
    FieldRow { height: auto; }
    FieldRow Horizontal { height: 1; }
    FieldRow .name { width: 26; height: 1; padding: 0 1 0 0; text-wrap: nowrap; text-overflow: ellipsis; }
    FieldRow Input { border: none; padding: 0; height: 1; width: 1fr; background: $panel; }
    FieldRow Input:focus { background: $primary-muted; }
    FieldRow .words { height: 1; padding: 0 0 0 2; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, form: CallForm, field: ArgumentField, number: int) -> None:
        super().__init__()
        self.field = field
        self._form = form
        self._words = Static(classes="words role--quiet", markup=False)
        self._error: str | None = None
        self.value: Choice | Input = self._choice(number) if field.choices else self._input(number)

    def compose(self) -> ComposeResult:
        with Horizontal():
            name = " ".join(sanitize(self.field.name).split()) or '""'
            mark = ("*", "bold") if self.field.is_needed else ("", "")
            yield Static(Text.assemble(name, mark), classes="name")
            yield self.value
        yield self._words

    def on_mount(self) -> None:
        self.show_error("")

    @property
    def text(self) -> str:
        return self.value.value

    def renew(self) -> None:
        """Show the text that the form has now."""
        text = self._form.texts.get(self.field.pointer, "")
        if isinstance(self.value, Choice):
            self.value.choose(text if text in self.value.words else "")
            self.value.offer({**self.value.words, "": self._nothing})
        else:
            self.value.value = text
            self.value.placeholder = self._nothing

    def show_error(self, error: str) -> None:
        """Show type and description, and before them what is wrong."""
        if error == self._error:
            return
        self._error = error
        parts = [error, *words_of(self.field, error), self.field.about]
        shown = Text(" ".join(sanitize(" · ".join(filter(None, parts))[:ABOUT]).split()))
        if error:
            look = self.app.get_component_styles("role--bad").partial_rich_style
            shown.stylize(look, 0, len(" ".join(sanitize(error).split())))
        self._words.update(shown)

    @property
    def _nothing(self) -> str:
        """The words for a field without a text."""
        if self._form.is_elsewhere(self.field):
            return ELSEWHERE
        if self.field.default is not ABSENT:
            return sanitize(f"default {choice_text(self.field.default)}")[: LABEL * 3]
        return NOT_SET if self.field.choices else "JSON" if self.field.kind is FieldKind.JSON else ""

    def _choice(self, number: int) -> Choice:
        texts = map(choice_text, self.field.choices)
        words = {"": self._nothing} | {each: sanitize(each)[: LABEL * 3] for each in texts}
        text = self._form.texts.get(self.field.pointer, "")
        return Choice(words, text if text in words else "", id=f"field-{number}")

    def _input(self, number: int) -> Input:
        text = self._form.texts.get(self.field.pointer, "")
        place = f"field-{number}"
        return Input(text, placeholder=self._nothing, compact=True, select_on_focus=False, id=place)


class CallFormScreen(DismissibleScreen[None]):
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Screen declares its type.

    DEFAULT_CSS = """
    CallFormScreen #parts { height: 1fr; }
    CallFormScreen.-wide #parts { layout: horizontal; }
    CallFormScreen #form { height: 1fr; padding: 0 1; background: $background; scrollbar-size-vertical: 1; }
    CallFormScreen.-wide #form { width: 1fr; height: 1fr; }
    CallFormScreen TextArea { height: 1fr; border: none; padding: 0; background: $background; display: none; }
    CallFormScreen.-wide TextArea { width: 1fr; height: 1fr; }
    CallFormScreen.-json #form { display: none; }
    CallFormScreen.-json TextArea { display: block; }
    CallFormScreen DetailPane { height: 1fr; border-top: solid $panel; }
    CallFormScreen.-wide DetailPane { width: 1fr; height: 1fr; border-top: none; border-left: solid $panel; }
    CallFormScreen DetailPane:focus-within { border-top: heavy $primary; }
    CallFormScreen.-wide DetailPane:focus-within { border-top: none; border-left: heavy $primary; }
    CallFormScreen.-narrow.-empty DetailPane { display: none; }
    CallFormScreen #describes { height: auto; max-height: 6; margin: 0 0 1 0; }
    CallFormScreen #hint { height: auto; max-height: 4; padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "call", tooltip="call it with these arguments", id="call-form.send"),
        Binding("ctrl+l", "json", "JSON", tooltip="edit the arguments as JSON, or as fields", id="call-form.json"),
        Binding("down", "app.focus_next", "next field", show=False, tooltip="next field", id="call-form.next"),
        Binding("up", "app.focus_previous", "previous field", show=False, tooltip="previous field",
            id="call-form.previous"),
        Binding("escape", "leave", "back", tooltip="cancel the call that runs, or go back", priority=True,
            id="call-form.leave"),
        Binding("f1", "app.help", "help", tooltip="show help", id="call-form.help"),
    ]  # fmt: skip

    HELP_NAME = "form of a call"

    def __init__(self, call: LiveCall | ServerCall, form: CallForm, heading: list[Piece]) -> None:
        """The texts are kept in `form`."""
        super().__init__()
        self._call, self._form, self._heading = call, form, heading
        self._title = SplitLine(id="title")
        self._rows = [FieldRow(form, field, number) for number, field in enumerate(form.fields)]
        self._area = TextArea(id="json", show_line_numbers=True, tab_behavior="indent", compact=True)
        self._detail = DetailPane(id="detail")
        self._hint = Static(id="hint", markup=False)
        self._has_tried = False
        """True once the user called it: from then on, missing arguments are problems."""
        self._insists: dict[str, object] | None = None
        """The arguments with problems that the next ctrl-s sends."""
        self._since: float | None = None
        """Time at which the call that runs was sent."""
        self._is_quiet = False
        """True if the next focus does not replace the line below the fields."""

    def compose(self) -> ComposeResult:
        # The breakpoints apply after the first frame.
        self.add_class("-wide" if self.app.size.width >= WIDE else "-narrow", "-empty")
        yield self._title
        with Container(id="parts"):
            with VerticalScroll(id="form", can_focus=False):
                yield Static(description(self, self._form.target), id="describes", markup=False)
                yield from self._rows
                if not self._rows:
                    yield Static("No arguments. ctrl-s calls it.", classes="role--quiet", markup=False)
                if self._form.left_out:
                    more = f"{self._form.left_out:,} more arguments: ctrl-l edits all as JSON."
                    yield Static(more, classes="role--quiet", markup=False)
            yield self._area
            yield self._detail
        yield self._hint
        yield KeyFooter()

    def on_mount(self) -> None:
        target = self._form.target
        name: list[Piece] = [(f"{target.noun.capitalize()} ", None), (sanitize(target.key)[:NAME], "title")]
        self._title.set_text([*name, (" · ", None), *self._heading])
        self._detail.show(EMPTY, None)
        self._detail.action_view(TEXT)  # The whole message takes more lines than there may be.
        self._check()
        self.set_interval(TICK, self._tick)
        # The description stays in view, with the annotations above it.
        (self._rows[0].value if self._rows else self._detail).focus(scroll_visible=False)

    # Fields and JSON.

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(event.input)

    def on_choice_changed(self, event: Choice.Changed) -> None:
        event.stop()
        self._take(event.choice)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field."""
        event.stop()
        self.focus_next()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.has_class("-json"):
            self._insists = None
            self._read_json()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Show the whole description of the field."""
        field = next((row.field for row in self._rows if row.value is event.widget), None)
        if field is not None and not self._is_quiet:
            self._check()
        self._is_quiet = False

    def action_json(self) -> None:
        """Switch between the fields and the JSON of the same arguments."""
        if not self.has_class("-json"):
            wrong = self._form.values()[1]
            if wrong:
                self._check()
                self._show("correct the marked fields first: JSON has no such values", rows.BAD)
                return
            self.add_class("-json")
            self._area.text = self._form.json
            self._area.focus()
            self._check()
        elif self._read_json():
            self.remove_class("-json")
            for row in self._rows:
                row.renew()
            (self._rows[0].value if self._rows else self._detail).focus()
            self._check()

    def _take(self, widget: Widget) -> None:
        row = next((row for row in self._rows if row.value is widget), None)
        if row is not None and not self.has_class("-json"):
            self._insists = None
            if row.text or row.field.pointer in self._form.texts:
                self._form.set(row.field.pointer, row.text)
            self._check()

    def _focus_first(self, problems: FormProblems) -> None:
        """Go to the first field with a problem."""
        first = next(iter(problems.at), None)
        for row in self._rows:
            if row.field.pointer == first and not row.value.has_focus:
                self._is_quiet = True  # The line below shows the problem, not the description.
                row.value.focus()

    def _read_json(self) -> bool:
        """Take the JSON; return whether it is an object."""
        try:
            self._form.read_json(self._area.text)
        except UsageError as error:
            self._show(str(error), rows.BAD)
            return False
        self._check()
        return True

    def _check(self) -> FormProblems:
        """Show each problem at its field, and the others below; return them."""
        problems = self._form.problems()
        for row in self._rows:
            error = problems.at.get(row.field.pointer, "")
            # A form that was just opened is not full of errors: its marks show what is required.
            row.show_error("" if error == "required" and not self._has_tried else error)
        if self._since is not None:
            return problems
        lines = list(problems.others)
        if self.has_class("-json"):
            lines = list(problems.lines)
        if lines:
            self._show("; ".join(lines[:4]), rows.OPEN)
        else:
            field = next((row.field for row in self._rows if row.value.has_focus), None)
            about = "" if field is None else " ".join(field.about.split())[:ABOUT]
            self._show(about or "ctrl-s calls it, ctrl-l shows the JSON, esc goes back", rows.QUIET)
        return problems

    # The call.

    def action_send(self) -> None:
        if self._since is not None:  # The line below the fields shows that a call is running.
            return
        if self.has_class("-json") and not self._read_json():
            return
        arguments = self._form.values()[0]
        problems = self._form.problems()
        self._has_tried = True
        if problems.lines and (problems.has_no_value or self._insists != arguments):
            self._insists = arguments
            self._check()
            others = f" ({len(problems.lines) - 1} more)" if len(problems.lines) > 1 else ""
            more = "" if problems.has_no_value else "; press ctrl-s again to call it anyway"
            self._show(problems.lines[0] + others + more, rows.BAD)
            if not self.has_class("-json"):
                self._focus_first(problems)
            return
        self._insists = None
        self._since = time.monotonic()
        self.run_worker(self._send())

    def action_leave(self) -> None:
        if self._since is None:
            self.dismiss(None)
            return

        async def cancel() -> None:
            try:
                await self._call.cancel()
            except McpspyError as error:
                self._show(str(error), rows.BAD)

        self.run_worker(cancel())

    async def _send(self) -> None:
        self._tick()
        try:
            row = await self._call.call(self._form.target, self._form.request()[1])
        except McpspyError as error:
            self._since = None
            self._show(str(error), rows.BAD)
            return
        self._since = None
        model = self._call.model
        change = model.shown(row)
        words, tone = ("", rows.QUIET) if change.exchange is None else rows.outcome(change.exchange)
        shown = document(model, row, exchanges=True)
        self.remove_class("-empty")
        self._detail.show(shown, (model.generation, row))
        self._detail.action_top()
        if len(shown.parts) > 1:
            self._detail.action_other()
        self._show(f"{words}: row {row + 1:,} of {sanitize(model.header.name)}", tone)

    def _tick(self) -> None:
        self._detail.complete()
        if self._since is not None:
            progress = self._call.progress
            seconds = time.monotonic() - self._since
            words = f"waiting for the response, {seconds:.1f} s{f': {progress}' if progress else ''}"
            self._show(f"{words} (esc cancels the call)", rows.OPEN)

    def _show(self, text: str, role: str) -> None:
        self._hint.update(sanitize(text))
        self._hint.set_classes([f"role--{role}"])
