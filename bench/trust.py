"""Price of the lockfile: calls under `mcpspy run --trust` and `mcpspy http --trust`, beside the same without it.

Owns the figures of trust and their bars. On stdio the server is `cat`: its answer to a call is the
call, which no check concerns, so a round trip is two messages that the lockfile lets through. Over
HTTP it is the fast server of bench/http.py, and a second proxy without a lockfile shows the noise.

    .venv/bin/python bench/trust.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench import http, stdio  # noqa: E402 - the line above must come first.
from bench.measure import Chain, Report, Row, alternate, low, main, mcpspy_command, pinned  # noqa: E402
from mcpspy.core.trust.lock import digest  # noqa: E402

PLAIN, RULE = "mcpspy", "mcpspy with a rule"
AGAIN, TRUST = "mcpspy again", "mcpspy with a lockfile"
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
    calls: int


FULL = Size(15, 4000, 1000)
QUICK = Size(7, 2000, 300)


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


def over_http(report: Report, size: Size) -> None:
    """Measure what the lockfile adds to a call over HTTP, beside two proxies without it."""
    options: dict[str, list[str]] = {
        PLAIN: [],
        AGAIN: [],
        TRUST: ["--trust", "{}/mcp.lock", "--on-change", "block"],
    }
    with tempfile.TemporaryDirectory() as folder, http.fast_server() as server, ExitStack() as running:
        Path(folder, "mcp.lock").write_text(_lock(""), encoding="utf-8")
        subjects = {"direct": server}
        for name, more in options.items():
            url = f"http://127.0.0.1:{server.port}{server.path}"
            record = Path(folder, f"{name.replace(' ', '-')}.jsonl")
            command = [*mcpspy_command(), "http", "--upstream", url, "--listen", ":0", "--name", "cat"]
            command += ["--record", str(record), *(word.format(folder) for word in more)]
            spy = running.enter_context(http.started(command, r"mcpspy: http://127\.0\.0\.1:(\d+)/"))
            subjects[name] = http.Endpoint(int(spy.output), server.path, record, spy.pid)
        times = http.measured(http._times, subjects, size.calls, size.rounds)
    p50 = {name: low([each.p50 for each in of]) * 1000 for name, of in times.items()}
    noise = abs(p50[AGAIN] - p50[PLAIN])
    shown = f"{PLAIN} {p50[PLAIN]:.0f} µs; a second one differs by {noise:.0f} µs"
    report.add(
        Row("a call over HTTP: added p50", f"{p50[TRUST]:.0f} µs", shown, p50[TRUST] - p50[PLAIN], unit="µs")
    )


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
    main("trust", __doc__, full=FULL, quick=QUICK, figures={"calls": calls, "http": over_http}, lacks=None)
