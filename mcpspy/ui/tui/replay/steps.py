"""The list of the steps of a replay; the document of one step, with marks; its differences in lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import DecodeError
from msgspec.json import decode, encode
from textual.strip import Strip

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.rows import duration
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.replay_run import MISSING, WORDS, Phase, ReplayModel, ShownStep, StepState
from mcpspy.ui.report.diff import ARROW, TONES, short
from mcpspy.ui.text.width import elide
from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.widgets.base import BaseWidget
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn, fitted
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

ROLES = {
    StepState.WAITING: rows.QUIET,
    StepState.SENT: rows.OPEN,
    StepState.SAME: rows.OK,
    StepState.NOTE: rows.QUIET,
    StepState.DIFFERENT: rows.OPEN,
    StepState.BREAKING: rows.BAD,
    StepState.LOST: rows.BAD,
    StepState.UNSENT: rows.ISSUE,
}

NOTHING = Document([DocumentPart("message", [("", None)], b"")])

REQUEST = 40
"""Characters of a request that are shown above its response."""


class StepList(VirtualList):
    HELP_NAME = "list of steps"

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("state", "outcome", 9, 9, 0),
        Column("about", "request", 16, 60, 1, enough=40, shorten=elide),
        Column("was", "was", 8, 8, 4, right=True),
        Column("now", "now", 8, 8, 3, right=True),
        Column("reason", "what differs", 12, 400, 2, enough=30),
    )

    def __init__(self, model: ReplayModel) -> None:
        super().__init__(id="steps")
        self._model = model
        self.follows = True
        """True if the cursor goes to each step that is over."""

    def select(self, index: int) -> None:
        self.follows = False
        super().select(index)

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        yield "about", self._model.about[index]

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        model = self._model
        state = StepState(model.states[index])
        reason = model.reasons.get(index, "")
        if state is StepState.OTHER:
            severity, _, reason = reason.partition(": ")
            role = TONES[ChangeSeverity(severity)]
            word = WORDS[StepState.BREAKING] if severity == ChangeSeverity.BREAKING else severity
        else:
            word, role = WORDS[state], ROLES[state]
            if index == model.next and model.phase is Phase.PAUSED:
                word, role = "next", "key"
            elif (more := model.changes.get(index, 1) - 1) > 0:
                reason = f"{reason}  (+{more})"
        strong = role if role == rows.BAD else None
        cells: list[Piece] = []
        for column, _ in placed:
            if column.name == "state":
                cells.append((word, role))
            elif column.name == "about":
                cells.append((model.about[index], strong))
            elif column.name == "reason":
                cells.append((reason, strong or (rows.QUIET if role == rows.QUIET else None)))
            else:
                seconds = (model.recorded if column.name == "was" else model.latency)[index]
                cells.append((duration(seconds) if seconds != MISSING else "", rows.QUIET))
        return cells


def document(step: ShownStep) -> Document:
    """Return the recorded and the new response of a step, with marks on what differs."""
    marks = [
        (str(change["pointer"]), TONES[ChangeSeverity(change["severity"])])
        for change in step.changes
        if change["pointer"]
    ]
    recorded = _part("recorded", step.recorded, marks)
    if not step.new:
        return Document([recorded])
    is_edited = _params(step.new) != _params(step.recorded)
    return Document([recorded, _part("edited" if is_edited else "new", step.new, marks)])


def differences(step: ShownStep) -> list[list[Piece]]:
    """Return what differs in a step, in one line each."""
    found = [_line(change) for change in step.changes]
    return [*found, [(f"{step.more:,} more differences", rows.QUIET)]] if step.more else found


def _part(name: str, messages: Sequence[str], marks: Sequence[tuple[str, str]]) -> DocumentPart:
    text = sanitize(_params(messages))
    head: list[Piece] = [
        (f"{name} request {text if len(text) <= REQUEST else f'{text[:REQUEST]}…'}", rows.QUIET),
        (f"{name} response" if len(messages) > 1 else f"{name}: no response", "title"),
    ]
    return DocumentPart("response", head, messages[1].encode() if len(messages) > 1 else b"", marks)


def _params(messages: Sequence[str]) -> str:
    """Return the parameters of a request: its id is new in each run."""
    try:
        params = decode(messages[0]).get("params", {})
    except (DecodeError, AttributeError, RecursionError):  # Not JSON, or cut.
        return messages[0]
    if isinstance(params, dict):
        params.pop("_meta", None)
    return encode(params).decode()


def _line(change: Mapping[str, Any]) -> list[Piece]:
    word = WORDS[StepState.BREAKING] if change["severity"] == ChangeSeverity.BREAKING else change["severity"]
    where = "  ".join(part for part in (change["kind"], short(change["pointer"]), change["why"]) if part)
    line: list[Piece] = [(f"{word}  ", TONES[ChangeSeverity(change["severity"])]), (where, "key")]
    if change["old"] is not None or change["new"] is not None:
        line += [
            (f"  {change['old'] or '(nothing)'}", rows.BAD),
            (f" {ARROW} ", rows.QUIET),
            (f"{change['new'] or '(nothing)'}", rows.OK),
        ]
    return line


class Differences(BaseWidget):
    """The differences of the step under the cursor, in a few lines."""

    DEFAULT_CSS = """
    Differences { height: 0; background: $background; }
    """

    MOST: ClassVar[int] = 4

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._lines: list[list[Piece]] = []

    def show(self, lines: list[list[Piece]]) -> None:
        if lines != self._lines:
            self._lines = lines
            self.styles.height = min(len(lines), self.MOST)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.outer_size.width
        line = self._lines[y] if y < len(self._lines) else []
        if y == self.MOST - 1 and len(self._lines) > self.MOST:
            line = [(f"{len(self._lines) - y:,} more differences", rows.QUIET)]
        return Strip(self.paint([("  ", None), *fitted(line, width - 3)], width), width)
