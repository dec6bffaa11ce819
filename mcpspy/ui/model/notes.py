"""Notes that mean more than their text: steps of an authorization, differences from the lockfile."""

from __future__ import annotations

from mcpspy.analysis import rows
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.rule_notes import TRUST
from mcpspy.ui.model.session_model import SessionModel

OAUTH = "oauth"

Flow = tuple[int, int]
"""The number of the session's file and that of the flow."""


class FlowRows:
    """The rows of each flow, found while the session grows."""

    def __init__(self, model: SessionModel) -> None:
        self._model = model
        self._read = 0
        self._flows: dict[int, Flow] = {}
        """Row of a step → its flow."""
        self._steps: dict[Flow, list[int]] = {}

    def update(self, end: int) -> set[int]:
        """Read the steps before row `end`. Return earlier rows that are no longer the last of their flows."""
        index, begin = self._model.index, self._read
        passed: set[int] = set()
        while (row := self._next(end)) is not None:
            note = self._model.message(row)
            number = note.fields.get("flow") if isinstance(note, Note) else None
            if not isinstance(note, Note) or not isinstance(number, int):
                continue
            part = index.where(row).part if self._model.is_merged else 0
            flow, joins = (part, number), note.fields.get("joins")
            joined = [(part, other) for other in joins] if isinstance(joins, list) else []
            steps = sorted({row, *(step for each in (flow, *joined) for step in self._steps.pop(each, ()))})
            self._steps[flow] = steps
            self._flows.update(dict.fromkeys(steps, flow))
            passed.update(steps[:-1])
        self._read = max(end, self._read)
        return {row for row in passed if row < begin}

    def _next(self, end: int) -> int | None:
        """Return the next row of a step before `end`."""
        index = self._model.index
        kind = index.text_number(OAUTH)
        while kind is not None:
            try:
                row = index.method.index(kind, self._read, end)
            except ValueError:
                return None
            self._read = row + 1
            if index.kind(row) is RowKind.NOTE:
                return row
        return None

    def is_last(self, row: int) -> bool:
        """Return whether a row is the last step of its flow so far."""
        return row not in self._flows or self.steps(row)[-1] == row

    def steps(self, row: int) -> list[int]:
        """Return the rows of the flow to which a row belongs; none if it is not a step."""
        return self._steps.get(self._flows.get(row, (-1, -1)), [])


def flow_steps(model: SessionModel, row: int) -> list[int]:
    """Return the rows of the flow to which a row belongs; none if it is not a step."""
    if model.note(row) != OAUTH:
        return []
    flows = FlowRows(model)
    flows.update(len(model))
    return flows.steps(row)


def oauth_flow(model: SessionModel, row: int) -> list[tuple[str, str | None]] | None:
    """Return the lines that show the steps of a flow, with their tones; None if the row is not one of them."""
    notes = [(step, note) for step in flow_steps(model, row) if isinstance(note := model.message(step), Note)]
    if not notes:
        return None
    lines: list[tuple[str, str | None]] = [
        (sanitize(f"OAuth {notes[-1][1].fields['flow']}: {len(notes)} steps"), "title")
    ]
    for step, note in notes:
        fields, status = note.fields, note.fields.get("status")
        mark = "▸" if step == row else " "
        text = f"{mark} {status!s:<4} {fields.get('step')!s:<20} {note.at:.3f} s  http {fields.get('http')}"
        why = [str(fields[name]) for name in ("error", "error_description", "hint") if fields.get(name)]
        is_refused = isinstance(status, int) and status >= 400
        lines.append((sanitize("  ".join([text, *why])), rows.BAD if is_refused else None))
    return [*lines, ("", None)]


def trust_note(model: SessionModel, row: int) -> Note | None:
    """Return the note about the differences of a message from the lockfile: it comes next, or is the row itself."""
    index = model.index
    for place in (row, row + 1)[: len(index.at) - row]:
        if model.note(place) == TRUST:
            found = model.message(place)
            return found if isinstance(found, Note) and "trusted" in found.fields else None
    return None


def trust_differences(note: Note) -> list[tuple[str, str | None]]:
    """Return the lines that such a note shows, with their tones."""
    # Not at the top: few sessions have such a note.
    from mcpspy.analysis.diff import ChangeSeverity
    from mcpspy.analysis.trust import noted
    from mcpspy.ui.report.diff import terminal

    return [
        (sanitize(line), tone) for line, tone in terminal(noted(note.fields), fail_on=ChangeSeverity.NOTE)
    ]
