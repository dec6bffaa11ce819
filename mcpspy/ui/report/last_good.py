"""The last good session of a server, and what changed between it and one that failed.

The last good session is the newest earlier one without an error in which nothing wrong is found. What changed since then
supports a diagnosis, and ranks it: a cause that another good session, which the user names, has too did not break this
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from msgspec import structs

from mcpspy.analysis.diff import ChangeKind, ComparedCase, DiffChange, DiffOptions, compare
from mcpspy.analysis.diff.model import LatencyLimit
from mcpspy.analysis.explain import Cause, Diagnosis, EvidenceLine, LastGood
from mcpspy.analysis.explain.diagnosis import SHOWN
from mcpspy.analysis.explain.evidence import MAX_QUOTE
from mcpspy.core.jsontools import pointer
from mcpspy.core.query.item import reports_failure
from mcpspy.core.recording.decode import Header
from mcpspy.core.recording.origin import HOST, OWN
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import CACHE, Catalog, sessions_of
from mcpspy.io.recording.reader import Recording, RecordingState, Summary, read_header_of, summarize
from mcpspy.ui.report.diff import about, reason, short, values
from mcpspy.ui.report.explanation import explain

CANDIDATES = 20
"""Maximum number of earlier sessions of the server whose errors are counted."""

LARGEST = 16 << 20
"""Maximum size, in bytes, of a session that is compared: both are read into memory."""

VALUE = 60
"""Characters of a value that changed."""

SLOWER = LatencyLimit(2.0, 0.2)
"""Latency that is not reported as a change."""

COMPARED = frozenset(
    {ChangeKind.INTERFACE, ChangeKind.HANDSHAKE, ChangeKind.ERROR, ChangeKind.OUTCOME, ChangeKind.LATENCY}
)
"""Kinds of changes that count. Requests and results differ between good sessions too."""


def compared_with_last_good(
    diagnosis: Diagnosis, path: Path, may_continue: Callable[[], bool] = lambda: True
) -> Diagnosis:
    """Return the diagnosis of a session with what changed since its last good one; unchanged without one.

    Once `may_continue` is false, no further sessions are read.
    """
    good = last_good(path, may_continue) if diagnosis.causes else None
    return diagnosis if good is None or not may_continue() else since_last_good(diagnosis, path, good)


def last_good(path: Path, may_continue: Callable[[], bool] = lambda: True) -> Path | None:
    """Return the newest earlier session of the same server, in the same folder, that worked; None without one.

    The same server has the same name and transport. The session is one of a host, or has the origin of the failed one
    unless that is mcpspy itself. At most `CANDIDATES` sessions are looked at.
    """
    catalog = Catalog(str(path.parent))
    failed = summarize(path, read_header_of(path), counts=False)
    origins = {HOST, failed.header.origin} - OWN
    earlier = (
        each
        for each in sessions_of(catalog, entries=False)
        if each.order < failed.order
        and each.header.name == failed.header.name
        and each.header.transport == failed.header.transport
        and each.header.origin in origins
    )
    candidates = (each for each in islice(earlier, CANDIDATES) if may_continue())
    good = next((each.path for each in candidates if _is_good(each, catalog, may_continue)), None)
    if (catalog.folder / CACHE).is_file():  # Only a folder of sessions has one.
        catalog.save()
    return good


def _is_good(summary: Summary, catalog: Catalog, may_continue: Callable[[], bool]) -> bool:
    has_failed = summary.state is not RecordingState.ENDED or summary.has_failed
    if has_failed or summary.server is None or summary.size > LARGEST:
        return False
    if summary.exit is not None and reports_failure(summary.exit):
        return False
    try:
        if catalog.counts(summary).errors:
            return False
        return not explain(summary.path, may_continue=may_continue).causes and may_continue()
    except (OSError, McpspyError):  # It was deleted meanwhile.
        return False


def since_last_good(
    diagnosis: Diagnosis, path: Path, good: Path, readable: Callable[[Path], Path] = lambda path: path
) -> Diagnosis:
    """Return the diagnosis of a session with what changed since a good one, and the causes that are new first.

    `readable` returns the file to read of a session. Unchanged if one of both is larger than `LARGEST`.
    """
    files = [readable(each) for each in (good, path)]
    if any(summarize(each, read_header_of(each), counts=False).size > LARGEST for each in files):
        return diagnosis
    old, new = (Recording(each) for each in files)
    known = {cause.code for cause in explain(files[0]).causes}
    causes = sorted(diagnosis.causes, key=lambda cause: cause.code in known)
    difference = compare(old.session(), new.session(), DiffOptions(volatile=True, slower_than=SLOWER))
    found = [
        (_relevance(case, change, causes[:1]), _evidence(case, change))
        for case, change in difference.changes
        if change.kind in COMPARED and not change.pointer.startswith("/params/")
    ]
    found.sort(key=lambda each: each[0])
    changes = [*_start_changes(old.header, new.header), *(evidence for _, evidence in found)]
    return structs.replace(
        diagnosis,
        summary=diagnosis.summary.replace(diagnosis.causes[0].title, causes[0].title, 1)
        if causes
        else diagnosis.summary,
        causes=tuple(causes),
        last_good=LastGood(
            sanitize(old.header.id),
            sanitize(old.header.started),
            tuple(changes[:SHOWN]),
            len(changes),
            tuple(cause.code for cause in causes if cause.code in known),
        ),
    )


def _relevance(case: ComparedCase, change: DiffChange, causes: Sequence[Cause]) -> tuple[bool, bool, int]:
    """Return the place of a change: about the first cause, then definitions before outcomes, then the most severe."""
    lines = {sign.line for cause in causes for sign in cause.evidence if sign.part == 1}
    tokens = pointer(change.pointer) if change.pointer else ()
    is_named = len(tokens) > 2 and any(
        tokens[2] in sign.text.replace(":", " ").split() for cause in causes for sign in cause.evidence
    )
    is_about = is_named or (case.new is not None and case.new.line in lines)
    is_definition = change.kind in (ChangeKind.INTERFACE, ChangeKind.HANDSHAKE)
    return not is_about, not is_definition, change.severity.rank


def _evidence(case: ComparedCase, change: DiffChange) -> EvidenceLine:
    old, new = values(change, VALUE)
    why = reason(change)
    text = f"{about(case)} {short(change.pointer)}{f' ({why})' if why else ''}"
    if not why or change.kind not in (ChangeKind.ERROR, ChangeKind.OUTCOME):
        text += f": {old or 'nothing'} → {new or 'nothing'}"
    return EvidenceLine(0 if case.new is None else case.new.line, text[:MAX_QUOTE])


def _start_changes(old: Header, new: Header) -> list[EvidenceLine]:
    """Return how the server is started differently."""
    found = []
    for name in ("command", "upstream", "cwd"):
        before, now = (_shown(header, name) for header in (old, new))
        if before != now:
            found.append(EvidenceLine(1, sanitize(f"{name}: {before} → {now}")[:MAX_QUOTE]))
    return found


def _shown(header: Header, name: str) -> str:
    if name == "command":
        return " ".join(redacted_command(header.command or ()))
    return redacted_url(header.upstream or "") if name == "upstream" else header.cwd or ""
