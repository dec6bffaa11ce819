"""The message editor: its screen, unsent drafts, and `$EDITOR`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static, TextArea

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.ui.tui.intercept.assistance import Assistance, ValidationProblem, position_at, schema_lines
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece, fitted
from mcpspy.ui.tui.widgets.footer import KeyFooter


class Drafts:
    """Unsent texts, by a key of the edited message."""

    def __init__(self, screen: SessionBase) -> None:
        self._screen = screen
        self._texts: dict[Hashable, str] = {}

    def edit(  # noqa: PLR0917 - The two functions have the same parameters.
        self,
        key: Hashable,
        heading: Callable[[], list[Piece]],
        original: str,
        check: Callable[[str], Sequence[ValidationProblem]],
        send: Callable[[str], Awaitable[None]],
        assist: Callable[[], Awaitable[Assistance]] | None = None,
    ) -> None:
        """Open the editor with the unsent text of this key, if there is one. See `EditorScreen`."""

        def closed(text: str | None) -> None:
            self.forget(key)
            if text is not None and text != original:
                self._texts[key] = text
                self._screen.flash_message("not sent; the draft is kept")

        self._screen.app.push_screen(
            EditorScreen(heading, original, check, send, self._texts.get(key), assist), closed
        )

    def forget(self, key: Hashable) -> None:
        self._texts.pop(key, None)


def editor(environ: Mapping[str, str] = os.environ) -> str:
    """Return the editor command; empty if none is set."""
    return environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()


def edit_outside(command: str, text: str, suspended: Callable[[], AbstractContextManager[None]]) -> str:
    """Run an external editor; return the saved text, or raise CannotStart. `suspended` frees the terminal."""
    descriptor, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".json")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        with suspended():
            code = subprocess.run([*shlex.split(command), path], check=False).returncode
        if code != 0:
            raise CannotStart(f"{command}: exit code {code}", "the text is unchanged")
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CannotStart(f"{command}: the saved file is not UTF-8", "the text is unchanged") from None
    except (OSError, ValueError) as error:  # ValueError: unbalanced quotes.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStart(f"{command}: {why}", "set EDITOR to another editor") from None
    finally:
        Path(path).unlink(missing_ok=True)


LARGEST = 64_000
"""Maximum number of characters to edit here: longer texts make every key press slower."""

TICK = 0.25
WIDE = 110
SHOWN = 60
"""Maximum characters of a completion in the line of completions."""

HINT = "ctrl-s sends, esc goes back and keeps the draft"


class EditorArea(TextArea):
    """A text area in which Tab completes, where there is something to complete."""

    async def _on_key(self, event: events.Key) -> None:
        screen = self.screen
        if event.key == "tab" and isinstance(screen, EditorScreen) and screen.complete():
            event.stop()
            event.prevent_default()  # Otherwise the handler of the base class inserts blanks.


class EditorScreen(DismissibleScreen[str | None]):
    """A text editor; dismissed with the unsent text, or None if it was sent."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Screen declares its type.

    DEFAULT_CSS = """
    EditorScreen #text { height: 1fr; }
    EditorScreen.-wide #text { layout: horizontal; }
    EditorScreen TextArea { height: 1fr; border: none; padding: 0; background: $background; }
    EditorScreen.-wide TextArea { width: 3fr; }
    EditorScreen #schema { display: none; height: auto; max-height: 40%; padding: 0 1; background: $background;
                           border-top: solid $panel; scrollbar-size-vertical: 1; }
    EditorScreen.-wide #schema { width: 2fr; height: 1fr; max-height: 100%; border-top: none;
                                 border-left: solid $panel; }
    EditorScreen #schema.-shown { display: block; }
    EditorScreen #large { height: 1fr; padding: 1 2; }
    EditorScreen #completions { display: none; height: 1; padding: 0 1; background: $background; }
    EditorScreen #completions.-shown { display: block; }
    EditorScreen #hint { height: auto; max-height: 6; padding: 0 1; background: $background; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "send", tooltip="send this text", id="editor.send"),
        Binding(
            "escape",
            "leave",
            "back",
            tooltip="go back and keep the draft",
            priority=True,  # Otherwise it would only remove the focus from the text.
            id="editor.leave",
        ),
        Binding(
            "ctrl+@,ctrl+space",
            "complete",
            "complete",
            tooltip="complete a name or value; again for the next one (also tab)",
            key_display="tab",
            id="editor.complete",
        ),
        Binding("ctrl+o", "outside", "$EDITOR", tooltip="open in $EDITOR", id="editor.outside"),
        Binding("ctrl+r", "restore", "restore", tooltip="restore the original text", id="editor.restore"),
    ]

    HELP_NAME = "editor"

    def __init__(  # noqa: PLR0917 - See `Drafts.edit`.
        self,
        heading: Callable[[], list[Piece]],
        original: str,
        check: Callable[[str], Sequence[ValidationProblem]],
        send: Callable[[str], Awaitable[None]],
        draft: str | None = None,
        assist: Callable[[], Awaitable[Assistance]] | None = None,
    ) -> None:
        """`heading` is polled; `send` raises McpspyError; `draft` is the unsent text of an earlier edit.

        `assist` reads the listings of the server, which may take a while.
        """
        super().__init__()
        self._heading = heading
        self._original = original
        self._check = check
        self._send = send
        self._draft = original if draft is None else draft
        self._is_large = len(self._draft) > LARGEST
        self._title = SplitLine(id="title")
        text = "" if self._is_large else self._draft
        self._area = EditorArea(text, show_line_numbers=True, tab_behavior="indent", compact=True)
        self._assist = assist
        self._assistance: Assistance | None = None
        self._schema_text = Static(markup=False)
        self._schema = VerticalScroll(self._schema_text, id="schema", can_focus=False)
        self._completion_line = Static(id="completions", markup=False)
        self._inserted: tuple[str, int, int, list[str]] | None = None
        """The text after a completion, its range, and the other completions, of which Tab selects the next one."""
        self._hint_line = Static(id="hint", markup=False)
        self._is_bad = False
        self._insists: str | None = None
        """The invalid text that the next ctrl-s sends."""

    def compose(self) -> ComposeResult:
        yield self._title
        self.set_class(self.app.size.width >= WIDE, "-wide")  # The breakpoints apply after the first frame.
        if self._is_large:
            yield Static(self._large_text(), id="large", markup=False)
        else:
            with Container(id="text"):
                yield self._area
                yield self._schema
        yield self._completion_line
        yield self._hint_line
        yield KeyFooter()

    def on_mount(self) -> None:
        self._tick()
        self.set_interval(TICK, self._tick)
        self._validate()
        if not self._is_large:
            self._area.focus()
            self._go_to_arguments()
            if self._assist is not None:
                self.run_worker(self._load(self._assist))

    @property
    def text(self) -> str:
        return self._draft if self._is_large else self._area.text

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._insists = None
        self._validate()
        self._show_schema()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._show_completions()

    def on_resize(self) -> None:
        self._show_schema()

    def complete(self) -> bool:
        """Insert the first completion, or instead of it the next one; return whether there is one."""
        area = self._area
        start, end, found = self._completions()
        if not found:
            return False
        first, *others = found
        rest = self.text[end:].lstrip()
        if rest.startswith(":"):
            first = first.removesuffix(": ")
        comma = "," if first.endswith(": ") and rest.startswith('"') else ""
        first_end = start + len(first)
        area.replace(first + comma, self._location(start), self._location(end))
        area.move_cursor(self._location(first_end))
        self._inserted = (self.text, start, first_end, [*others, first]) if others else None
        self._show_completions()
        return True

    def action_complete(self) -> None:
        if not self._is_large and not self.complete():
            self._show_hint("nothing to complete here", rows.QUIET)

    def action_send(self) -> None:
        if any(problem.is_fatal for problem in self._check(self.text)):
            self._validate()
            return
        if self._is_bad and self._insists != self.text:
            self._insists = self.text
            self._validate("; press ctrl-s again to send anyway")
            return
        self.run_worker(self._sent(self.text), exclusive=True)

    def action_leave(self) -> None:
        self.dismiss(self.text)

    def action_restore(self) -> None:
        self._put(self._original)

    def action_outside(self) -> None:
        command = editor()
        if not command:
            self._show_hint("no editor: set EDITOR and restart mcpspy", rows.OPEN)
            return
        try:
            text = edit_outside(command, self.text, self.app.suspend)
        except CannotStart as error:
            self._show_hint(str(error), rows.BAD)
        except SuspendNotSupported:
            self._show_hint("cannot run an editor: this terminal does not allow suspending mcpspy", rows.BAD)
        else:
            # Editors add a newline at the end.
            self._put(text if self.text.endswith("\n") else text.removesuffix("\n"))

    def _put(self, text: str) -> None:
        if self._is_large:
            self._draft = text
            self.query_one("#large", Static).update(self._large_text())
            self._validate()
        else:
            self._area.text = text

    async def _sent(self, text: str) -> None:
        try:
            await self._send(text)
        except McpspyError as error:
            self._show_hint(str(error), rows.BAD)
        else:
            self.dismiss(None)

    def _validate(self, more: str = "") -> None:
        found = list(self._check(self.text))
        if self._assistance is not None and all(problem.is_json for problem in found):
            found += map(ValidationProblem, self._assistance.problems(self.text))
        self._is_bad = any(not problem.is_json for problem in found)
        if found:
            label = "; ".join(problem.text for problem in found)
            self._show_hint(label + more, rows.BAD if self._is_bad else rows.OPEN)
        else:
            self._show_hint(f"unchanged; {HINT}" if self.text == self._original else HINT, rows.QUIET)

    def _show_hint(self, text: str, role: str) -> None:
        self._hint_line.update(sanitize(text))
        self._hint_line.set_classes([f"role--{role}"])

    def _tick(self) -> None:
        self._title.set_text(self._heading())

    @property
    def _offset(self) -> int:
        """The cursor's offset in the text, whose lines end in LF: `TextArea` converts others."""
        row, column = self._area.cursor_location
        return sum(len(line) + 1 for line in self._area.document.lines[:row]) + column

    def _location(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n"), offset - before.rfind("\n") - 1

    def _go_to_arguments(self) -> None:
        """Put the cursor into the arguments of a call, else into the params."""
        for key in ("arguments", "params"):
            found = re.search(rf'"{key}"\s*:\s*(?:[{{\[]\s*)?', self._area.text)
            if found is not None:
                self._area.move_cursor(self._location(found.end()), center=True)
                return

    async def _load(self, assist: Callable[[], Awaitable[Assistance]]) -> None:
        self._assistance = await assist()
        self._validate()
        self._show_schema()
        self._show_completions()

    def _show_schema(self) -> None:
        if self._assistance is None:
            return
        heading, fields = self._assistance.heading_and_fields(self.text)
        self._schema.set_class(bool(fields), "-shown")
        is_wide, room = self.has_class("-wide"), self.app.size.width
        width = max(room * 2 // 5 - 4 if is_wide else room - 3, 20)
        lines = schema_lines(heading, fields, width, is_wide=is_wide)
        self._schema_text.update(Text("\n").join(self._styled(fitted(line, width)) for line in lines))

    def _styled(self, pieces: list[Piece]) -> Text:
        look = self.app.get_component_styles
        parts = (
            Text(text, look(f"role--{role}").partial_rich_style if role else "") for text, role in pieces
        )
        return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")

    def _completions(self) -> tuple[int, int, list[str]]:
        """Return the range that a completion replaces, and the texts that begin like the text before the cursor.

        Right after a completion, return its range and the others.
        """
        text, offset = self.text, self._offset
        if self._inserted is not None and (self._inserted[0], self._inserted[2]) == (text, offset):
            return self._inserted[1:]
        if self._assistance is None:
            return offset, offset, []
        position = position_at(text, offset)
        typed = text[position.start : offset].strip('"').casefold()
        whole = text[position.start : position.end]
        found = [
            each
            for each in self._assistance.completions(text, position)
            if each.strip('"').casefold().startswith(typed) and each != whole
        ]
        return position.start, position.end, [f"{each}: " for each in found] if position.is_key else found

    def _show_completions(self) -> None:
        _, _, found = self._completions()
        self._completion_line.set_class(bool(found), "-shown")
        shown = "  ".join(sanitize(each.removesuffix(": "))[:SHOWN] for each in found)
        self._completion_line.update(Text(f"tab: {shown}", no_wrap=True, overflow="ellipsis"))

    def _large_text(self) -> str:
        command = editor()
        action = f"press ctrl-o to open it in {command}" if command else "set EDITOR and restart mcpspy"
        changed = "" if self._draft == self._original else " The text was edited."
        return sanitize(f"{len(self._draft):,} characters: too long to edit here; {action}.{changed}")
