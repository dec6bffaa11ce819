"""Sessions of the official SDKs in which nothing fails, explained: `python -m tests.e2e.healthy`. Needs the peers.

Every client tours every server in every revision that both know, without the calls that fail on purpose. In none of these
sessions may `explain` name a cause. Prints each session with one, and the totals. Takes some minutes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from mcpspy.core.session.outcome import SessionCounts
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.report.explanation import explain
from tests.e2e.test_benign import LEGACY, MODERN, OLDER, SERVERS
from tests.e2e.tours import CALLS, CLIENTS, EVERYTHING, Server, Tour, record

FAIL = ("fail", "hang", "no-such-tool", "trigger-url-elicitation")


def server_without_failures(server: Server) -> Server:
    calls = EVERYTHING if server.calls is EVERYTHING else CALLS
    kept = [
        call
        for call in calls
        if call[0] not in FAIL and "one" not in call[1].values() and call[2] != "cancel"
    ]
    return server._replace(calls=tuple(kept))


def tours(server: Server) -> list[Tour]:
    found = []
    for client in CLIENTS:
        modes = [LEGACY, *OLDER]
        if client.endswith("2") and server.transport != "sse":
            modes.append("auto")
            if not server.name.startswith(("python-1", "typescript-1")):
                modes.append(MODERN)
        found += [Tour(client, server, mode, faultless=True) for mode in modes]
    return found


async def main() -> int:
    sessions = healthy = 0
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, server in enumerate(map(server_without_failures, SERVERS.values())):
            place = Path(folder) / str(number)
            place.mkdir()
            for each in await record(server, tours(server), place):
                for path in each.paths:
                    counts: SessionCounts = Recording(path).session().counts
                    if counts.errors or counts.unanswered:
                        failed.append(f"{path.name}: {counts.errors} errors, {counts.unanswered} unanswered")
                        continue
                    sessions += 1
                    diagnosis = explain(path)
                    healthy += not diagnosis.causes
                    for cause in diagnosis.causes:
                        print(f"{path.name}: {cause.code}: {cause.title}", flush=True)
            print(f"{server.name}: {healthy} of {sessions}", flush=True)
    print(f"{len(failed)} sessions in which something failed do not count")
    print(*failed, sep="\n")
    print(f"nothing wrong found in {healthy} of {sessions} sessions")
    return 0 if healthy == sessions else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
