"""Alarms of `mcpspy trust` about servers that have not changed: there should be none.

Records sessions of real servers with clients of the official SDKs, on stdio and over HTTP: a server on stdio starts
once per session, a server over HTTP once per round. The first session of a client makes the lockfile, and every
other session of that client is compared with it, also over the other transport. Servers of `tests/peers/real` are
installed into `.peers/real`, unless `--servers` names a folder that has them.

    .venv/bin/python bench/trust_listings.py [--rounds N] [--servers FOLDER] [SERVER...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from mcpspy.analysis.trust import interface_of  # noqa: E402 - the line above must come first.
from mcpspy.core.intercept.actions import AddNote  # noqa: E402
from mcpspy.core.intercept.interceptor import Interceptor  # noqa: E402
from mcpspy.core.recording.decode import Frame  # noqa: E402
from mcpspy.core.rules.model import Rules  # noqa: E402
from mcpspy.core.trust.guard import TrustGuard  # noqa: E402
from mcpspy.core.trust.lock import LISTINGS, TrustedServer, read_lock  # noqa: E402
from mcpspy.io.lockfile import ServerIdentity, updated  # noqa: E402
from mcpspy.io.recording.reader import Recording  # noqa: E402
from recordings import findings, make  # noqa: E402
from tests.e2e.test_benign import SERVERS as SDK_SERVERS  # noqa: E402
from tests.e2e.tours import Server, Tour, record  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

CLIENTS = (("python-2", "auto"), ("typescript-1", "2025-11-25"))
"""Clients, and the revisions that they offer."""

SDKS = {name: [server for key, server in SDK_SERVERS.items() if key.startswith(name)] for name in
        ("python-1", "python-2", "typescript-2")}  # fmt: skip
"""The servers of tests/peers/servers, by SDK, with each transport that the SDK has."""


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
    session = Recording(path).session()
    methods = [method for method, each in LISTINGS.items() if each.member in server.listed]
    listings = sum(each.request.method in methods for each in session.exchanges)
    alarms = []
    for entry in Recording(path):
        if isinstance(entry, Frame) and entry.by is None:
            decision = interceptor.process(entry.at, entry.side, entry.data, stream=entry.stream)
            notes = [step.fields for step in decision.steps if isinstance(step, AddNote)]
            alarms += [text for fields in notes for text in fields["differences"] if "called" not in text]
    return Counts(1, listings, [f"{path.stem}: {text}" for text in alarms])


async def measured(name: str, servers: Iterable[Server], rounds: int, folder: Path) -> Counts:
    """Record sessions of one server, with each client and transport, and compare them."""
    locks: dict[str, TrustedServer] = {}
    sessions, listings, alarms = 0, 0, list[str]()
    for number in range(rounds):
        for server in servers:
            here = folder / f"{server.name}-{number}"
            here.mkdir()
            tours = [Tour(client, server, mode) for client, mode in CLIENTS]
            for recorded in await record(server, tours, here):
                for path in recorded.paths:
                    if recorded.tour.client not in locks:
                        locks[recorded.tour.client] = trusted(path)
                        continue
                    counts = compared(locks[recorded.tour.client], path)
                    sessions, listings = sessions + counts.sessions, listings + counts.listings
                    alarms += counts.alarms
    print(f"| {name} | {sessions} | {listings} | {len(alarms)} |", flush=True)
    return Counts(sessions, listings, alarms)


def main() -> int:
    """Print the table and the alarms; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", metavar="SERVER", nargs="*")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each server over HTTP (default: 3)")
    parser.add_argument("--servers", type=Path, default=make.PEERS / "real")
    options = parser.parse_args()
    if not (options.servers / "node_modules").exists():
        findings.install(options.servers)
    real = {each.name: [*each.servers(options.servers.resolve())] for each in findings.SERVERS}
    print("| server | sessions | listings | alarms |\n|---|--:|--:|--:|", flush=True)
    every = []
    for name, servers in (SDKS | real).items():
        if not options.names or name in options.names:
            with tempfile.TemporaryDirectory(prefix="mcpspy-trust-") as folder:
                every.append(asyncio.run(measured(name, servers, options.rounds, Path(folder))))
    alarms = [alarm for each in every for alarm in each.alarms]
    total = sum(each.sessions for each in every), sum(each.listings for each in every), len(alarms)
    print("| all | {} | {} | {} |".format(*total))
    print("\n".join(alarms), file=sys.stderr)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
