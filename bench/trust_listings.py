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

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from recordings import findings, make  # noqa: E402 - the line above must come first.
from tests.e2e.alarms import measured  # noqa: E402
from tests.e2e.test_benign import SERVERS as SDK_SERVERS  # noqa: E402

CLIENTS = (("python-2", "auto"), ("typescript-1", "2025-11-25"))
"""Clients, and the revisions that they offer."""

SDKS = ("python-1", "python-2", "typescript-2")
"""The servers of tests/peers/servers, with each transport that the SDK has."""

ENTRY_PER_TRANSPORT = ("mongodb",)
"""Servers that name their transport in `_meta` of each tool: they need an entry for their command and one for their URL."""


def main() -> int:
    """Print the table and the alarms; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", metavar="SERVER", nargs="*")
    parser.add_argument("--rounds", type=int, default=2, help="starts of each server over HTTP (default: 2)")
    parser.add_argument("--servers", type=Path, default=make.PEERS / "real")
    options = parser.parse_args()
    if not (options.servers / "node_modules").exists():
        findings.install(options.servers)
    every = {name: [each for key, each in SDK_SERVERS.items() if key.startswith(name)] for name in SDKS}
    every |= {real.name: [*real.servers(options.servers.resolve())] for real in findings.SERVERS}
    print("| server | sessions | listings compared | alarms |\n|---|--:|--:|--:|", flush=True)
    sessions, listings, alarms = 0, 0, list[str]()
    for name in options.names or every:
        with tempfile.TemporaryDirectory(prefix="mcpspy-trust-") as folder:
            has_entries = name in ENTRY_PER_TRANSPORT
            work = measured(
                every[name], CLIENTS, Path(folder), rounds=options.rounds, has_entries=has_entries
            )
            counts = asyncio.run(work)
        print(f"| {name} | {counts.sessions} | {counts.listings} | {len(counts.alarms)} |", flush=True)
        sessions, listings = sessions + counts.sessions, listings + counts.listings
        alarms += counts.alarms
    print(f"| all | {sessions} | {listings} | {len(alarms)} |")
    print("\n".join(alarms), file=sys.stderr)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
