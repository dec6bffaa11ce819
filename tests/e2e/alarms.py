"""Alarms of `mcpspy trust` about real servers that have not changed: there should be none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.analysis.trust import interface_of
from mcpspy.core.intercept.actions import AddNote
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.trust_guard import TrustGuard
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.model import Rules
from mcpspy.core.trust.lock import TrustedServer, read_lock
from mcpspy.io.lockfile import ServerIdentity, updated
from mcpspy.io.recording.reader import Recording
from tests.e2e.tours import Server, Tour, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Counts(NamedTuple):
    sessions: int
    listings: int
    """Listings that were compared, without the handshakes."""
    alarms: list[str]


def trusted(path: Path) -> TrustedServer:
    """Return the server as the lockfile of a recorded session has it, written and read again."""
    found = interface_of(Recording(path).session())
    text = updated("version = 1\n", "server", found, ServerIdentity("server"), listed=found.items)
    return read_lock(text, "mcp.lock")["server"]


def compared(server: TrustedServer, path: Path) -> Counts:
    """Return the alarms about a recorded session."""
    interceptor = Interceptor(Rules(), prefix="mcpspy-", trust=TrustGuard(server, "block", lambda _: None))
    methods = [method for method, each in LISTINGS.items() if each.member in server.listed]
    listings = sum(each.request.method in methods for each in Recording(path).session().exchanges)
    alarms = []
    for entry in Recording(path):
        if isinstance(entry, Frame) and entry.by is None:
            decision = interceptor.process(entry.at, entry.side, entry.data, stream=entry.stream)
            notes = [step.fields for step in decision.steps if isinstance(step, AddNote)]
            alarms += [text for fields in notes for text in fields["differences"] if "called" not in text]
    return Counts(1, listings, [f"{path.stem}: {text}" for text in alarms])


async def measured(
    servers: Iterable[Server],
    clients: Sequence[tuple[str, str]],
    folder: Path,
    *,
    rounds: int = 1,
    has_entries: bool = False,
) -> Counts:
    """Record sessions of one server on its transports, and compare each with the first one of its client.

    `clients` are their names and the revisions that they offer. `has_entries`: the server has an entry per transport.
    """
    locks: dict[tuple[str, str], TrustedServer] = {}
    sessions, listings, alarms = 0, 0, list[str]()
    for server in [each for _ in range(rounds) for each in servers]:
        here = (
            folder / "run"
        )  # Some servers describe their working folder: a user starts them in the same one.
        here.mkdir()
        for recorded in await record(server, [Tour(client, server, mode) for client, mode in clients], here):
            entry = (recorded.tour.client, server.transport if has_entries else "")
            for path in recorded.paths:
                if entry not in locks:
                    locks[entry] = trusted(path)
                    continue
                counts = compared(locks[entry], path)
                sessions, listings = sessions + counts.sessions, listings + counts.listings
                alarms += counts.alarms
        shutil.rmtree(here)
    return Counts(sessions, listings, alarms)
