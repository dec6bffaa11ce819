"""A recording before its replay, and its comparison with the new session after it.

`mcpspy replay` and the engines of the viewers share it. A configuration is that of an engine: `ReplayForm.config`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from mcpspy.analysis.completeness import gaps
from mcpspy.analysis.diff import ChangePosition, ComparedCase, DiffOptions, SessionDiff, compare, ignored
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.replay.plan import ClientOrder, by_client, plans
from mcpspy.core.replay.player import PlayerOptions, SentRequest
from mcpspy.core.replay.subset import as_recorded, needed, reduced
from mcpspy.core.replay.substitution import Substitutions
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from mcpspy.io.client import ServerAddress, ServerCommand, ServerTarget
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import ReplayOptions, ReplayWatcher


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


def prepare_replay(
    config: Mapping[str, Any], where: RecordingTarget, watcher: ReplayWatcher | None = None
) -> tuple[Session, list[str], ReplayOptions]:
    """Return the session of a configuration, lines about what it lacks, and its replay. Raise UsageError or CannotStart."""
    path = Path(config["path"])
    session, warnings = read_recorded(path)
    if (rows := config.get("rows")) is not None:
        session = reduced(session, needed(session, _exchanges_of(session, rows)))
    steps = plans(session)
    if not steps:
        raise UsageError(f"{path}: contains no messages of a client", "record a session with requests")
    player = PlayerOptions(
        speed=config.get("speed", 0.0),
        timeout=config.get("timeout", 30.0),
        serial=config.get("serial", False),
        secrets=config.get("secrets", {}),
    )
    name = session.header.name if session.header is not None else ""
    return session, warnings, ReplayOptions(target_of(config), steps, player, where, name, watcher=watcher)


def diff_options(config: Mapping[str, Any]) -> DiffOptions:
    """Return how the sessions of a configuration are compared."""
    return DiffOptions(
        volatile=config.get("volatile", False),
        dates=config.get("dates", False),
        ignored=tuple(map(ignored, config.get("ignored", ()))),
    )


def target_of(config: Mapping[str, Any]) -> ServerTarget:
    """Return the server of a configuration."""
    if "url" in config:
        return ServerAddress(config["url"], tuple(map(tuple, config.get("headers", ()))))
    return ServerCommand(config["command"], config.get("cwd") or None, config.get("environment", {}))


def _exchanges_of(session: Session, rows: Iterable[int]) -> set[int]:
    """Return the numbers of the client's exchanges on these rows. Raise UsageError if there is none."""
    changes = session.changes
    found = {
        exchange.number
        for row in rows
        if row < len(changes)
        and (exchange := changes[row].exchange) is not None
        and exchange.request.side == CLIENT
    }
    if not found:
        raise UsageError("these rows contain no request of the client", "choose rows with requests")
    return found


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
