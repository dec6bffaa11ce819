"""Price of the lockfile: calls and listings under `mcpspy run --trust`, beside `mcpspy run`.

Owns the figures of trust and their bars. The server is `cat`: its answer to a call is the
call, which no check concerns, so a round trip is two messages that the lockfile lets through.

    .venv/bin/python bench/trust.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench import stdio  # noqa: E402 - the line above must come first.
from bench.measure import Chain, Report, Row, alternate, low, main, mcpspy_command, pinned  # noqa: E402
from mcpspy.core.trust.lock import digest  # noqa: E402

PLAIN, RULE = "mcpspy", "mcpspy with a rule"
POLICIES = {
    "trusted tools": "",
    "calls per minute": "calls_per_minute = 1000000000",
}
"""Policy of the lockfile, by its name in the table. The first one is that of a lockfile as it is written."""

MOST = 5.0
"""Maximum price of a message, in microseconds, with a lockfile as it is written."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    pings: int


FULL = Size(15, 4000)
QUICK = Size(7, 2000)


def calls(report: Report, size: Size) -> None:
    """Measure what the lockfile adds to a call of 200 bytes and its response, all on one CPU."""
    with tempfile.TemporaryDirectory() as folder:
        chains = {PLAIN: _mcpspy(), RULE: _mcpspy("--rule", "tool:other => delay 1s")}
        for name, policy in POLICIES.items():
            lock = Path(folder, f"{name.replace(' ', '-')}.lock")
            lock.write_text(_lock(policy), encoding="utf-8")
            chains[name] = _mcpspy("--trust", str(lock), "--on-change", "block")
        with pinned():
            times = alternate(
                {name: partial(stdio._ping, chain, size.pings) for name, chain in chains.items()}, size.rounds
            )
    p50 = {name: low([each.percentile(50) for each in of]) for name, of in times.items()}
    for name in (*POLICIES, RULE):
        added = (p50[name] - p50[PLAIN]) / 2
        most = MOST if name == next(iter(POLICIES)) else None
        figure = f"a message of a call, {name}: added p50"
        row = Row(
            figure, f"{p50[name] / 2:.1f} µs", f"{PLAIN} {p50[PLAIN] / 2:.1f} µs", added, most, unit="µs"
        )
        report.add(row)


def _mcpspy(*options: str) -> Chain:
    command = [
        *mcpspy_command(),
        "run",
        "--name",
        "cat",
        "--record",
        "{}/session.jsonl",
        *options,
        "--",
        "cat",
    ]
    return Chain(" ".join(["mcpspy", *options]), [command])


def _lock(policy: str) -> str:
    echo = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    lines = ["version = 1", "[servers.cat]", 'listed = ["tools"]', "[servers.cat.policy]", policy]
    lines += ["[[servers.cat.tools]]", f'digest = "{digest(echo)}"', f"definition = '{json.dumps(echo)}'"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main("trust", __doc__, full=FULL, quick=QUICK, figures={"calls": calls}, lacks=None)
