"""Drift of a server's tools over many sessions: the changes, with their clients and errors.

Listings are compared per client: a server may offer different tools to different clients. The same change met by
several clients is one change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, field

from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, DiffChange
from mcpspy.analysis.diff.listings import compare_listed
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.jsontools import pointer_text
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.message import loads


class ToolDefinition(NamedTuple):
    """A row of the table `tools`, with the version of the server."""

    session: str
    time: str
    """UTC, as `2026-11-21 08:13:03.745`."""
    client: str
    version: str
    name: str
    digest: str | None
    """None: the tool is no longer listed."""
    definition: str | None


class CallOutcomes(Struct):
    calls: int = 0
    errors: int = 0

    def add(self, other: CallOutcomes) -> None:
        self.calls += other.calls
        self.errors += other.errors


class ToolDrift(Struct, kw_only=True):
    """A change of one tool from one definition to another."""

    tool: str
    time: str
    """The time at which a client first met it."""
    session: str
    versions: tuple[str, str]
    """The server's version before and after."""
    changes: list[DiffChange]
    clients: dict[str, str] = field(default_factory=dict)
    """Clients that met it, with the time."""
    before: CallOutcomes
    """Calls of the tool in the sessions that listed the old definition."""
    after: CallOutcomes

    @property
    def severity(self) -> ChangeSeverity:
        return min((change.severity for change in self.changes), key=lambda severity: severity.rank)


Definitions = dict[str, ToolDefinition]
"""Tool → its row."""

Transition = tuple[str, str | None, str | None]
"""Tool, and the digests of its old and its new definition; None: not listed."""


Definition = tuple[str, str | None]
"""A tool, and its definition as JSON; None: not listed."""

Compare = Callable[
    [Callable[[tuple[Definition, Definition]], list[DiffChange]], Sequence[tuple[Definition, Definition]]],
    Iterable[list[DiffChange]],
]
"""Call a function for each pair of definitions, like `map`, in this process or in others."""


def drift(
    listed: Iterable[ToolDefinition],
    calls: Mapping[tuple[str, str], CallOutcomes],
    compare: Compare = map,
) -> list[ToolDrift]:
    """Return the changes in the order of time. `listed` is in the order of time; `calls` are by session and tool."""
    found: dict[Transition, ToolDrift] = {}
    outcomes: dict[tuple[str, str | None], CallOutcomes] = {}
    latest: dict[str, Definitions] = {}
    pairs: list[tuple[Definition, Definition]] = []
    for session, in_session in groupby(listed, attrgetter("session")):
        current: dict[str, Definitions] = {}
        for client, rows in groupby(in_session, attrgetter("client")):
            for state in _states(current.get(client, {}), rows):
                current[client] = state
                _compare(latest.get(client), state, client, found, pairs)
                latest[client] = state
        for name in {name for state in current.values() for name in state}:
            for digest in {state[name].digest for state in current.values() if name in state}:
                outcomes.setdefault((name, digest), CallOutcomes()).add(
                    calls.get((session, name), CallOutcomes())
                )
    for ((tool, old, new), change), changes in zip(found.items(), compare(_changes, pairs), strict=True):
        change.changes = changes
        change.before = outcomes.get((tool, old), change.before)
        change.after = outcomes.get((tool, new), change.after)
    return sorted(found.values(), key=attrgetter("time"))


def _states(state: Definitions, rows: Iterable[ToolDefinition]) -> Iterable[Definitions]:
    """Yield the definitions before each change within a session, and at its end. A listing may have several pages."""
    state = dict(state)
    for row in rows:
        if row.name in state and state[row.name].time != row.time:
            yield dict(state)
        state[row.name] = row
        if row.digest is None:
            del state[row.name]
    yield state


def _compare(
    old: Definitions | None,
    new: Definitions,
    client: str,
    found: dict[Transition, ToolDrift],
    pairs: list[tuple[Definition, Definition]],
) -> None:
    """Add the transitions to `found`, and the definitions of the new ones to `pairs`."""
    for name in sorted(new.keys() | (old or {}).keys()) if old is not None else ():
        assert old is not None
        was, now = old.get(name), new.get(name)
        digests = (was and was.digest, now and now.digest)
        if digests[0] == digests[1]:
            continue
        here = now or next(iter(new.values()), was)
        assert here is not None
        key = (name, *digests)
        if key not in found:
            found[key] = ToolDrift(
                tool=name,
                time=here.time,
                session=here.session,
                versions=((was or next(iter(old.values()), here)).version, here.version),
                changes=[],
                before=CallOutcomes(),
                after=CallOutcomes(),
            )
            pairs.append(((name, was and was.definition), (name, now and now.definition)))
        found[key].clients.setdefault(client, here.time)


def _changes(pair: tuple[Definition, Definition]) -> list[DiffChange]:
    """Return the changes of a tool; pointers begin in its definition."""
    before, now = (
        {} if definition is None else {name: loads(definition.encode())} for name, definition in pair
    )
    return [
        DiffChange(
            kind=ChangeKind.INTERFACE,
            severity=change.severity,
            why=change.why,
            pointer=pointer_text(change.tokens[1:]),
            old=change.old,
            new=change.new,
        )
        for change in compare_listed(LISTINGS["tools/list"], before, now, tolerance=Tolerance.NONE)
    ]
