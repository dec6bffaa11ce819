"""The runs of hosts in a folder of recordings: their sessions, and the session name `run:ID`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from mcpspy.core.recording.decode import ProcessFields
from mcpspy.core.session.runs import HostProcess, Run, RunMember, runs_of
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.host_process import start_of
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.reader import Summary, read_time
from mcpspy.io.recording.scan import FileStatus, RecordingScan

RUN = "run:"
"""The beginning of a name on the command line that is a run."""

_NOTE = re.compile(rb'\{"t":[0-9.e-]+,"note":"http(?:-end)?",')
_CLIENT = re.compile(rb'"client":(\{"pid":[^{}]*\})')
_TRACE = re.compile(rb'"traceparent":"[0-9a-f]{2}-([0-9a-f]{32})-')


class RecordedRun(NamedTuple):
    """A run, and the summaries of its sessions in order of their start."""

    run: Run
    sessions: list[Summary]


class Runs:
    """The runs of a folder, as its sessions appear and grow. Reads no line of a recording twice."""

    def __init__(self, folder: str | None = None, *, entries: bool = False) -> None:
        """With `entries`, the summaries have the number of their entries."""
        self._catalog = Catalog(folder)
        self._entries = entries
        self._evidence: dict[Path, _Evidence] = {}

    def look(self) -> list[RecordedRun]:
        """Return the current runs, the oldest first. Reads the recordings of `http` as a whole."""
        return self.among(sessions_of(self._catalog, entries=self._entries))

    def among(self, sessions: Iterable[Summary]) -> list[RecordedRun]:
        """Return the runs of these sessions, the oldest first."""
        # The name of the file is the same wherever the folder is, which keeps the id of a run.
        summaries = {summary.path.name: summary for summary in sessions}
        members = (self._member(summary) for summary in summaries.values())
        runs = runs_of(member for member in members if member is not None)
        return [RecordedRun(run, [summaries[member.id] for member in run.members]) for run in runs]

    def _member(self, summary: Summary) -> RunMember | None:
        header, path = summary.header, summary.path
        if (began := read_time(header.started)) is None:
            return None
        if header.parent is not None:
            return RunMember(path.name, began, began + summary.last, (_host(header.parent),))
        evidence = self._evidence.setdefault(path, _Evidence(path))
        evidence.read()
        return RunMember(
            path.name, began, began + summary.last, tuple(evidence.hosts), frozenset(evidence.traces)
        )


def recorded_runs(folder: str | None) -> list[RecordedRun]:
    """Return the runs of a folder, the oldest first."""
    return Runs(folder, entries=True).look()


class FollowedRun:
    """A run whose sessions are shown while others join it."""

    def __init__(self, runs: Runs, found: RecordedRun) -> None:
        self._runs = runs
        self.run = found.run
        self.sessions = found.sessions

    @property
    def name(self) -> str:
        return f"run {self.run.id} of {self.run.host.program or f'pid {self.run.host.pid}'}"

    @property
    def may_grow(self) -> bool:
        """True while the process of the host is running on this machine."""
        host = self.run.host
        started = start_of(host.pid)
        return started is not None and self.run.has_host(host._replace(started=started), self.run.ended)

    def look(self) -> list[Summary]:
        """Return the sessions that the run has now; those that it had if the folder cannot be read."""
        with suppress(McpspyError, OSError):
            found = (each for each in self._runs.look() if each.run.id == self.run.id)
            self.sessions = next((each.sessions for each in found), self.sessions)
        return self.sessions


def find_run(name: str, folder: str | None, runs: Runs | None = None) -> RecordedRun:
    """Return the run that a name on the command line means, as `named_run`."""
    return named_run(name, (runs or Runs(folder)).look())


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


class _Evidence:
    """The clients on this machine and the trace ids of a recording, from its text."""

    def __init__(self, path: Path) -> None:
        self.hosts: dict[HostProcess, None] = {}
        self.traces: set[str] = set()
        self._path = path
        self._scan: RecordingScan | None = None

    def read(self) -> None:
        """Read what was added since the last call."""
        with suppress(OSError, McpspyError):  # It was deleted in the meantime.
            if self._scan is None or self._scan.status() is FileStatus.REPLACED:
                self._scan = RecordingScan(self._path)
            for block in self._scan:
                for line in block.lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        if b'"client":{"pid":' in line and _NOTE.match(line):
            for text in _CLIENT.findall(line):
                with suppress(msgspec.DecodeError, UnicodeDecodeError):  # A damaged line does not count.
                    self.hosts[_host(msgspec.json.decode(text, type=ProcessFields))] = None
        if b'"traceparent"' in line:
            self.traces.update(trace.decode() for trace in _TRACE.findall(line))


def _host(process: ProcessFields) -> HostProcess:
    started = None if process.started is None else read_time(process.started)
    return HostProcess(process.pid, process.program, started)
