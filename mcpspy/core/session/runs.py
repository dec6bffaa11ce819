"""Runs: which sessions belong to one process of a host, such as one start of an agent.

The evidence is the process of the host that a session names: its pid, and its start. Without the start (macOS,
Windows), sessions of a pid belong together if they follow each other closely, because pids are used again. A session
that names no process joins the run with which it shares a trace (W3C trace context, `traceparent`). There is no guess:
sessions that only have the same client at the same time stay apart, since two users may run the same host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

SAME_START = 2.0
"""Seconds by which two readings of the start of a process may differ: the clock may have been set in between."""

GAP = 60.0
"""Seconds between two sessions of a pid without a start."""


class HostProcess(NamedTuple):
    """The process of a host."""

    pid: int
    program: str = ""
    started: float | None = None
    """Seconds since the epoch; None if it is not known."""


class RunMember(NamedTuple):
    """The evidence of one session."""

    id: str
    began: float
    """Seconds since the epoch."""
    ended: float
    hosts: tuple[HostProcess, ...] = ()
    """The process that started it; of a session over HTTP, those of its clients."""
    traces: frozenset[str] = frozenset()
    """Trace ids in its messages."""


class Run:
    """The sessions of one process, in order of their start."""

    def __init__(self, host: HostProcess, first: RunMember) -> None:
        self.host = host
        self.members = [first]
        self.traces = set(first.traces)
        self._key = f"{host.pid} {first.id}"

    @property
    def id(self) -> str:
        """Eight hex digits, which stay the same while its first session exists."""
        return hashlib.sha256(self._key.encode()).hexdigest()[:8]

    @property
    def began(self) -> float:
        return self.members[0].began

    @property
    def ended(self) -> float:
        return max(member.ended for member in self.members)

    def has_host(self, host: HostProcess, began: float) -> bool:
        """Return whether this is the process that a session names, which began at that time."""
        if host.pid != self.host.pid:
            return False
        if host.started is None or self.host.started is None:
            return host.started == self.host.started and began - self.ended <= GAP
        return abs(host.started - self.host.started) <= SAME_START


def runs_of(members: Iterable[RunMember]) -> list[Run]:
    """Return the runs in order of their start. Sessions without evidence are in none."""
    runs: list[Run] = []
    by_pid: dict[int, list[Run]] = {}
    rest: list[RunMember] = []
    for member in sorted(members, key=lambda each: (each.began, each.id)):
        if not member.hosts:
            rest.append(member)
        for host in member.hosts:
            known = by_pid.setdefault(host.pid, [])
            run = next((each for each in known if each.has_host(host, member.began)), None)
            if run is None:
                run = Run(host, member)
                known.append(run)
                runs.append(run)
            elif run.members[-1] is not member:
                run.members.append(member)
                run.traces |= member.traces
    for member in rest:
        joined = [run for run in runs if run.traces & member.traces]
        if len(joined) == 1:
            joined[0].members.append(member)
            joined[0].members.sort(key=lambda each: (each.began, each.id))
    return sorted(runs, key=lambda run: run.began)
