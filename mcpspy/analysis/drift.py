"""Drift of a server's tools and skills over many sessions: the changes, with their clients and errors.

Listings are compared per client: a server may offer different tools to different clients. The same change met by
several clients is one change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, field

from mcpspy.analysis.context import compact
from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, DiffChange
from mcpspy.analysis.diff.listings import compare_listed
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.jsontools import canonical_bytes, pointer_text
from mcpspy.core.protocol.listing import (
    LISTINGS,
    ListingPages,
    ListMethod,
    cursor_text,
    joined,
    next_cursor,
)
from mcpspy.core.protocol.message import loads


class ToolDefinition(NamedTuple):
    """A row of the table `tools`, with the version of the server; or an item of another list in the same form."""

    session: str
    time: str
    """UTC, as `2026-11-21 08:13:03.745`."""
    client: str
    version: str
    name: str
    digest: str | None
    """None: the tool is no longer listed."""
    definition: str | None


class ListedPage(NamedTuple):
    """An answered request for a list, from the table `exchanges`, with the version of the server."""

    session: str
    time: str
    client: str
    version: str
    stream: str | None
    request: str
    response: str


class CallOutcomes(Struct):
    calls: int = 0
    errors: int = 0

    def add(self, other: CallOutcomes) -> None:
        self.calls += other.calls
        self.errors += other.errors


class ToolDrift(Struct, kw_only=True):
    """A change of one tool, or of an item of another list, from one definition to another."""

    tool: str
    noun: str = "tool"
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
    method: str = "tools/list",
) -> list[ToolDrift]:
    """Return the changes in the order of time. `listed` is in the order of time; `calls` are by session and tool."""
    listing = LISTINGS[method]
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
    compared = compare(partial(_changes, listing), pairs)
    for ((tool, old, new), change), changes in zip(found.items(), compared, strict=True):
        change.changes, change.noun = changes, listing.noun
        change.before = outcomes.get((tool, old), change.before)
        change.after = outcomes.get((tool, new), change.after)
    return sorted(found.values(), key=attrgetter("time"))


def definitions(method: str, pages: Iterable[ListedPage]) -> Iterator[ToolDefinition]:
    """Yield the items of a list as rows: new and changed ones, and a row without a definition for one that is gone.

    `pages` are those of each client together, in the order of time.
    """
    listing = LISTINGS[method]
    for (session, client), of_client in groupby(pages, attrgetter("session", "client")):
        known: dict[str, str] = {}
        listings = ListingPages[list[str]]()
        for page in of_client:
            request, response = loads(page.request.encode()), loads(page.response.encode())
            params = request.get("params") if isinstance(request, dict) else None
            result = response.get("result") if isinstance(response, dict) else None
            items = result.get(listing.member) if isinstance(result, dict) else None
            if not isinstance(result, dict) or not isinstance(items, list):
                continue
            named = {
                name: item
                for item in items
                if isinstance(item, dict) and isinstance(name := item.get(listing.key), str)
            }
            place = session, page.time, client, page.version
            for name, item in named.items():
                digest = sha256(canonical_bytes(item)).hexdigest()
                if known.get(name) != digest:
                    known[name] = digest
                    yield ToolDefinition(*place, name, digest, compact(item))
            cursor = cursor_text(params.get("cursor")) if isinstance(params, dict) else None
            following = next_cursor(result)
            whole = listings.add(page.stream, method, [*named], cursor=cursor, following=following)
            for name in sorted(known.keys() - joined(whole)) if whole.is_whole else ():
                del known[name]
                yield ToolDefinition(*place, name, None, None)


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


def _changes(listing: ListMethod, pair: tuple[Definition, Definition]) -> list[DiffChange]:
    """Return the changes of an item; pointers begin in its definition."""
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
        for change in compare_listed(listing, before, now, tolerance=Tolerance.NONE)
    ]
