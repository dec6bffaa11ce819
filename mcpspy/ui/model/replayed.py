"""A recording before its replay, and its comparison with the new session after it.

`mcpspy replay` and the engine of the terminal UI share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from mcpspy.analysis.completeness import gaps
from mcpspy.analysis.diff import ChangePosition, ComparedCase, DiffOptions, SessionDiff, compare
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.replay.plan import ClientOrder, by_client
from mcpspy.core.replay.player import SentRequest
from mcpspy.core.replay.subset import as_recorded, reduced
from mcpspy.core.replay.substitution import Substitutions
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, RecordingState


def read_recorded(path: Path) -> tuple[Session, list[str]]:
    """Return a recorded session, and lines about what it lacks. Raise UsageError without any response."""
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    session.end()
    is_cut = recording.state is RecordingState.DIED
    # The new session lists again: pages that no one requested leave nothing to compare.
    warnings = [
        f"{path}: {gap.text}"
        for gap in gaps(session, torn=recording.torn, is_cut=is_cut)
        if not gap.is_listing
    ]
    asked = [exchange.answer for exchange in session.exchanges if exchange.request.side == CLIENT]
    if asked and not any(asked):
        raise UsageError(f"{path}: contains no response of the server", "did its command start?")
    return session, warnings


def compared(
    session: Session,
    new: Session,
    sent: Iterable[SentRequest],
    options: DiffOptions,
    *,
    is_complete: bool,
    carried: Iterable[Substitutions] = (),
) -> SessionDiff:
    """Compare a new session with the recorded results of the requests that were sent; positions are those recorded.

    `is_complete` is false if some requests were not sent. `carried` has the values that rules substituted.
    """
    if not is_complete:
        numbers = {request.step.exchange.number for request in sent if request.step.exchange is not None}
        session = reduced(session, numbers)
    if back := list(carried):
        new = as_recorded(new, back)
    order = by_client(session)
    found = compare(order.session, new, options)
    return structs.replace(found, cases=tuple(_with_recorded_position(case, order) for case in found.cases))


def _with_recorded_position(case: ComparedCase, order: ClientOrder) -> ComparedCase:
    """Return the case with its position in the recording."""
    if (old := case.old) is None:
        return case
    exchange = None if old.exchange is None else order.exchanges.get(old.exchange, old.exchange)
    return structs.replace(case, old=ChangePosition(order.lines.get(old.line, old.line), exchange))
