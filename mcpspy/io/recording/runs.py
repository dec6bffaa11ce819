"""The runs of hosts in a folder of recordings: their sessions, and the session name `run:ID`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from mcpspy.core.recording.decode import ProcessFields
from mcpspy.core.session.runs import HostProcess, Run, RunMember, runs_of
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.scan import RecordingScan

RUN = "run:"
"""The beginning of a name on the command line that is a run."""

_NOTE = re.compile(rb'\{"t":[0-9.e-]+,"note":"http(?:-end)?",')
_CLIENT = re.compile(rb'"client":(\{"pid":[^{}]*\})')
_TRACE = re.compile(rb'"traceparent":"[0-9a-f]{2}-([0-9a-f]{32})-')


class RecordedRun(NamedTuple):
    """A run, and the summaries of its sessions in order of their start."""

    run: Run
    sessions: list[Summary]


def recorded_runs(folder: str | None) -> list[RecordedRun]:
    """Return the runs of a folder, the oldest first. Reads the recordings of `http` as a whole."""
    return runs_among(sessions_of(Catalog(folder)))


def runs_among(sessions: Iterable[Summary]) -> list[RecordedRun]:
    """Return the runs of these sessions, the oldest first."""
    summaries = {str(summary.path): summary for summary in sessions}
    runs = runs_of(_members(summaries))
    return [RecordedRun(run, [summaries[member.id] for member in run.members]) for run in runs]


def find_run(name: str, folder: str | None) -> RecordedRun:
    """Return the run that a name on the command line means, as `named_run`."""
    return named_run(name, recorded_runs(folder))


def named_run(name: str, runs: Sequence[RecordedRun]) -> RecordedRun:
    """Return the run that a name means: `run:` and the beginning of its id, or `run:last`. Raises UsageError."""
    wanted = name.removeprefix(RUN)
    found = (
        runs[-1:]
        if wanted == "last"
        else [each for each in runs if wanted and each.run.id.startswith(wanted)]
    )
    if len(found) != 1:
        why = "no run has this id" if not found else f"{len(found)} runs have ids that begin so"
        raise UsageError(f"{name}: {why}", "mcpspy runs lists them")
    return found[0]


def _members(summaries: dict[str, Summary]) -> Iterator[RunMember]:
    for key, summary in summaries.items():
        header = summary.header
        if (began := _time(header.started)) is None:
            continue
        if header.parent is not None:
            yield RunMember(key, began, began + summary.last, (_host(header.parent),))
        else:
            yield RunMember(key, began, began + summary.last, *_evidence(summary.path, summary.size))


@lru_cache(4096)
def _evidence(path: Path, size: int) -> tuple[tuple[HostProcess, ...], frozenset[str]]:
    """Return the clients on this machine and the trace ids of a recording of this size, from its text."""
    hosts: dict[HostProcess, None] = {}
    traces: set[str] = set()
    try:
        for block in RecordingScan(path):
            for line in block.lines:
                if b'"client":{"pid":' in line and _NOTE.match(line):
                    hosts.update((host, None) for host in map(_decoded, _CLIENT.findall(line)))
                if b'"traceparent"' in line:
                    traces.update(trace.decode() for trace in _TRACE.findall(line))
    except (OSError, McpspyError):  # It was deleted in the meantime.
        pass
    return tuple(hosts), frozenset(traces)


def _decoded(text: bytes) -> HostProcess:
    return _host(msgspec.json.decode(text, type=ProcessFields))


def _host(process: ProcessFields) -> HostProcess:
    started = None if process.started is None else _time(process.started)
    return HostProcess(process.pid, process.program, started)


def _time(text: str) -> float | None:
    """Return the seconds since the epoch; None for text that is not a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
