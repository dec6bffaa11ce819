"""Explain a recording, or one line of it, in its current state."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from mcpspy.analysis import rows
from mcpspy.analysis.explain import Cause, Diagnosis, EvidenceLine, Explainer, LastGood
from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.core.recording.decode import Entry, Header, read_entry
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of, summarize
from mcpspy.io.recording.scan import RecordingScan

WIDTH = 100
"""Columns of text without a terminal."""

LARGEST_ASIDE = 1 << 20
"""Maximum size, in bytes, of a session that is explained although the user asked for something else: about a second."""


def explain(
    path: Path,
    *,
    line: int | None = None,
    part: int = 1,
    hosts: tuple[HostProfile, ...] | None = None,
    may_continue: Callable[[], bool] = lambda: True,
) -> Diagnosis:
    """Return what went wrong in a session, or with the request on a line of one of its files (the header is line 1).

    `hosts` are the hosts whose limits count; None for those that `clientInfo` names. Once `may_continue` is false, the
    rest is not read. Raise UsageError or CannotStart.
    """
    recording = Recording(path)
    is_live = (
        recording.state is RecordingState.LIVE
    )  # Before reading: a session that ends meanwhile counts as live.
    place = None if line is None else EntryPosition(line, part)
    focus = frozenset() if place is None else _exchanges_on(path, place, recording.header)
    explainer = Explainer(recording.header, hosts, focus)
    for lines, first in _lines(path):
        if not may_continue():
            break
        explainer.add_lines(lines, first)
    if not is_live:
        explainer.end()
    return explainer.diagnosis(place)


def first_cause(path: Path) -> Cause | None:
    """Return the most likely cause of a failure; None if there is none, or for a session that takes long to explain."""
    try:
        if summarize(path, read_header_of(path), counts=False).size > LARGEST_ASIDE:
            return None
        causes = explain(path).causes
    except (OSError, McpspyError):  # It was deleted meanwhile.
        return None
    return causes[0] if causes else None


def places_of(path: Path) -> list[EntryPosition]:
    """Return the position of the line of each row of a session; the messages of a batch have the same one."""
    session = StreamingSession(read_header_of(path))
    return [place for entry, place in _entries(path) for _ in session.add(entry)]


def _lines(path: Path) -> Iterator[tuple[list[bytes], EntryPosition]]:
    """Yield consecutive lines of a recording, with the position of the first."""
    scan = RecordingScan(path)
    number = parts = 0
    for block in scan:
        if len(scan.paths) > parts:
            parts, number = len(scan.paths), 2
        yield block.lines, EntryPosition(number, parts)
        number += len(block.lines)


def _entries(path: Path) -> Iterator[tuple[Entry, EntryPosition]]:
    """Yield the entries of a recording, each with its position."""
    for lines, first in _lines(path):
        for number, data in enumerate(lines, first.line):
            yield read_entry(data), first._replace(line=number)


def _exchanges_on(path: Path, wanted: EntryPosition, header: Header) -> frozenset[int]:
    """Return the numbers of the exchanges of the messages on a line; raise UsageError if its file has no such line."""
    session, last = StreamingSession(header), 1
    for entry, place in _entries(path):
        if place.part > wanted.part:
            break
        changes = session.add(entry)
        last = place.line if place.part == wanted.part else last
        if place == wanted:
            exchanges = [change.exchange for change in changes if change.exchange is not None]
            return frozenset((each.poll_of or each).number for each in exchanges)
    name = path.name if wanted.part == 1 else f"part {wanted.part} of {path.name}"
    raise UsageError(
        f"line {wanted.line}: {name} has the lines 2 to {last}", "mcpspy lint prints numbers of lines"
    )


def explanation_lines(diagnosis: Diagnosis, width: int) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a diagnosis, each with its tone."""
    if not diagnosis.causes:
        yield diagnosis.summary, rows.OK
    for number, cause in enumerate(diagnosis.causes, 1):
        if number > 1:
            yield "", None
        yield from wrapped(
            f"{number}. {cause.title} ({cause.code})", width, rows.BAD if number == 1 else None
        )
        for evidence in cause.evidence:
            yield from wrapped(f"   {_where(evidence)}{evidence.text}", width)
        if cause.count > len(cause.evidence):
            yield f"   and {cause.count - len(cause.evidence):,} more", rows.QUIET
        yield from wrapped(f"   next: {cause.next_step}", width, rows.QUIET)
    if diagnosis.observations:
        yield "", None
        yield "worth knowing:", None
        for each in diagnosis.observations:
            where = _where(each.evidence[0]) if each.evidence else ""
            yield from wrapped(f"   {where}{each.title} ({each.code})", width, rows.QUIET)
    if diagnosis.causes and diagnosis.last_good is not None:
        yield "", None
        for line in since_lines(diagnosis.last_good):
            yield from wrapped(line, width)


def since_lines(good: LastGood) -> Iterator[str]:
    """Yield what changed since the last good session, and which causes are older."""
    changed = "since then:" if good.changes else "nothing that matters has changed since then"
    yield f"worked in session {good.session}, {good.started}; {changed}"
    yield from (f"   {_where(change)}{change.text}" for change in good.changes)
    if good.count > len(good.changes):
        yield f"   and {good.count - len(good.changes):,} more: mcpspy diff {good.session} with this session"
    if good.known:
        yield f"   not new: {', '.join(good.known)}"


def wrapped(text: str, width: int, tone: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a text; all but the first are three columns further to the right."""
    hang = " " * (len(text) - len(text.lstrip()) + 3)
    for line in textwrap.wrap(text, width or WIDTH, subsequent_indent=hang, break_on_hyphens=False):
        yield line, tone


def _where(evidence: EvidenceLine) -> str:
    if not evidence.line:
        return ""
    return (
        f"line {evidence.line}: " if evidence.part == 1 else f"part {evidence.part}, line {evidence.line}: "
    )
