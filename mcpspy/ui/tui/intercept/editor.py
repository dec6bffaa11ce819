"""The message editor: validation, drafts, and `$EDITOR`.

Text that is not JSON is sent only if the user confirms. JSON that violates the
protocol only causes a warning: a user who tests a peer may want to send it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, NamedTuple, NoReturn

from msgspec import DecodeError
from msgspec.json import format as lay_out
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static, TextArea

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Malformed, Notification, Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import hidden_characters, sanitize
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter


class ValidationProblem(NamedTuple):
    text: str
    is_json: bool = True
    """False if the text cannot be parsed, or cannot be sent as a request."""


def editable(data: bytes) -> str | None:
    r"""Return a message as text to edit, indented if it is JSON; None if it is not UTF-8.

    Characters that a terminal might interpret are escaped, as `\u009b`.
    """
    try:
        text = lay_out(data, indent=2).decode()
    except (DecodeError, RecursionError):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
    except UnicodeDecodeError:
        return None
    hidden = {*hidden_characters(text), *set(text) & set("\t\r\u2028\u2029")}
    return text.translate({ord(one): _escaped(one) for one in hidden})


def _escaped(character: str) -> str:
    """Return a character as escapes of JSON, which has no more than four digits in each."""
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def problems(text: str, side: str, original: bytes = b"") -> list[ValidationProblem]:
    """Return the problems of a message from this side; `original` is the message it replaces."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return [
            ValidationProblem(
                f"invalid JSON: line {error.lineno}, column {error.colno}: {error.msg}", is_json=False
            )
        ]
    except ValueError as error:
        return [ValidationProblem(f"invalid JSON: {error}", is_json=False)]
    except RecursionError:
        return [ValidationProblem("invalid JSON: nested too deeply", is_json=False)]
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return [ValidationProblem("contains a lone surrogate, which UTF-8 cannot encode", is_json=False)]
    found: list[str] = []
    for message in read_frame(Frame(0.0, side, data)):
        found += [message.why] if isinstance(message, Malformed) else []
        found += message.flaws
    if not found:
        found += _compared(data, original, side)
    return [ValidationProblem(label) for label in dict.fromkeys(found)]


def request_problems(text: str) -> list[ValidationProblem]:
    """Return the problems of a request to be sent: an object of method and params."""
    found = problems(text, "client")
    if found and not found[0].is_json:
        return found
    fields = json.loads(text)
    if not isinstance(fields, dict) or not isinstance(fields.get("method"), str) or not fields["method"]:
        return [ValidationProblem('not a request: use an object with a "method" string', is_json=False)]
    if not isinstance(fields.get("params", {}), dict):
        return [ValidationProblem('"params" is not an object', is_json=False)]
    others = ", ".join(sanitize(key) for key in fields if key not in ("method", "params"))
    return [ValidationProblem(f"ignored: {others} (only method and params are sent)")] if others else []


def _compared(data: bytes, original: bytes, side: str) -> list[str]:
    """Return the problems that arise if the message replaces the original."""
    if not original:
        return []
    new, old = _shape(data, side), _shape(original, side)
    if new == old or len(old) != 1:
        return []
    (kind, id_text), *_ = old
    if len(new) == 1 and new[0][0] == kind:
        return [f"id changed (was {sanitize(id_text or 'none')}): the response will not match its request"]
    return ["was a request: its sender may wait forever for the response"] if kind == "request" else []


def _shape(data: bytes, side: str) -> list[tuple[str, str | None]]:
    kinds = {Request: "request", Notification: "notification"}
    return [
        (kinds.get(type(message), "response"), getattr(message, "id", None))
        for message in read_frame(Frame(0.0, side, data))
    ]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


class Drafts:
    """Unsent texts, by a key of the edited message."""

    def __init__(self, screen: SessionBase) -> None:
        self._screen = screen
        self._texts: dict[Hashable, str] = {}

    def edit(
        self,
        key: Hashable,
        heading: Callable[[], list[Piece]],
        original: str,
        check: Callable[[str], Sequence[ValidationProblem]],
        send: Callable[[str], Awaitable[None]],
    ) -> None:
        """Open the editor with the unsent text of this key, if there is one. See `EditorScreen`."""

        def closed(text: str | None) -> None:
            self.forget(key)
            if text is not None and text != original:
                self._texts[key] = text
                self._screen.flash_message("not sent; the draft is kept")

        self._screen.app.push_screen(
            EditorScreen(heading, original, check, send, self._texts.get(key)), closed
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
HINT = "ctrl-s sends, esc goes back and keeps the draft"


class EditorScreen(Screen[str | None]):
    """A text editor; dismissed with the unsent text, or None if it was sent."""

    DEFAULT_CSS = """
    EditorScreen TextArea { height: 1fr; border: none; padding: 0; background: $background; }
    EditorScreen #large { height: 1fr; padding: 1 2; }
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
        Binding("ctrl+o", "outside", "$EDITOR", tooltip="open in $EDITOR", id="editor.outside"),
        Binding("ctrl+r", "restore", "restore", tooltip="restore the original text", id="editor.restore"),
    ]

    HELP_NAME = "editor"

    def __init__(
        self,
        heading: Callable[[], list[Piece]],
        original: str,
        check: Callable[[str], Sequence[ValidationProblem]],
        send: Callable[[str], Awaitable[None]],
        draft: str | None = None,
    ) -> None:
        """`heading` is polled; `send` raises McpspyError; `draft` is the unsent text of an earlier edit."""
        super().__init__()
        self._heading = heading
        self._original = original
        self._check = check
        self._send = send
        self._draft = original if draft is None else draft
        self._is_large = len(self._draft) > LARGEST
        self._title = SplitLine(id="title")
        text = "" if self._is_large else self._draft
        self._area = TextArea(text, show_line_numbers=True, tab_behavior="indent", compact=True)
        self._hint_line = Static(id="hint", markup=False)
        self._is_bad = False
        self._insists: str | None = None
        """The invalid text that the next ctrl-s sends."""

    def compose(self) -> ComposeResult:
        yield self._title
        yield Static(self._large_text(), id="large", markup=False) if self._is_large else self._area
        yield self._hint_line
        yield KeyFooter()

    def on_mount(self) -> None:
        self._tick()
        self.set_interval(TICK, self._tick)
        self._validate()
        if not self._is_large:
            self._area.focus()

    @property
    def text(self) -> str:
        return self._draft if self._is_large else self._area.text

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._insists = None
        self._validate()

    def action_send(self) -> None:
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

    def _large_text(self) -> str:
        command = editor()
        action = f"press ctrl-o to open it in {command}" if command else "set EDITOR and restart mcpspy"
        changed = "" if self._draft == self._original else " The text was edited."
        return sanitize(f"{len(self._draft):,} characters: too long to edit here; {action}.{changed}")
