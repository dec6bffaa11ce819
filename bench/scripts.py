"""Price of a script that does nothing, beside mitmproxy with an addon that does nothing.

Owns the figures of scripts and their bars. mcpspy records in each row; mitmproxy does
not. The script has the hooks `request` and `response`, so every message visits its
process; the addon has the same two hooks.

    .venv/bin/python bench/scripts.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench import http, stdio  # noqa: E402 - the line above must come first.
from bench.measure import Chain, Report, Row, alternate, high, low, main, mcpspy_command  # noqa: E402

PLAIN, SCRIPT, ADDON = "mcpspy", "mcpspy with a script", "mitmproxy with an addon"
HOOKS = "def request(_): pass\ndef response(_): pass\n"


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    calls: int
    flood: int


FULL = Size(7, 1000, 5000)
QUICK = Size(3, 300, 1500)


def mitmdump() -> str | None:
    """Return mitmproxy's command: of this environment (the extra `mitm`), or of bench/rivals.sh."""
    beside = Path(sys.executable).with_name("mitmdump")
    found = [beside, http.RIVALS / "bin" / "mitmdump"]
    return next((str(path) for path in found if path.exists()), shutil.which("mitmdump"))


@contextmanager
def proxies(upstream: http.Endpoint, folder: Path) -> Iterator[http.Subjects]:
    """Run mcpspy without and with a script, and mitmproxy with an addon, in front of a server."""
    (folder / "noop.py").write_text(HOOKS, encoding="utf-8")
    origin = f"http://127.0.0.1:{upstream.port}"
    with ExitStack() as running:
        subjects = {"direct": upstream}
        for name, options in ((PLAIN, []), (SCRIPT, ["--script", str(folder / "noop.py")])):
            path = folder / f"{name.replace(' ', '-')}.jsonl"
            server = ["--upstream", origin + upstream.path, "--listen", ":0", "--record", str(path)]
            command = [*mcpspy_command(), "http", *server, *options]
            spy = running.enter_context(http.started(command, r"mcpspy: http://127\.0\.0\.1:(\d+)/"))
            subjects[name] = http.Endpoint(int(spy.output), upstream.path, path, spy.pid)
        if (program := mitmdump()) is not None:
            port = http.free_port()
            listen = ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
            addon = ["-q", "-s", str(folder / "noop.py"), "--mode", f"reverse:{origin}"]
            found = running.enter_context(http.started([program, *addon, *listen]))
            http.until_it_listens(port)
            subjects[ADDON] = http.Endpoint(port, upstream.path, None, found.pid)
        yield subjects


def over_http(report: Report, size: Size) -> None:
    """Measure what each adds to a call, and calls of many connections."""
    with (
        tempfile.TemporaryDirectory() as folder,
        http.fast_server() as server,
        proxies(server, Path(folder)) as subjects,
    ):
        times = http.measured(http._times, subjects, size.calls, size.rounds)
        floods = http.measured(http._flood, subjects, size.flood, size.rounds)
        http._expect_recorded(subjects, 2 * (size.calls + size.flood) * size.rounds, b'"msg":')
    p50 = {name: low([one.p50 for one in of]) * 1000 for name, of in times.items()}
    added = {name: value - p50["direct"] for name, value in p50.items()}
    rates = {name: high([one.rate for one in of]) for name, of in floods.items()}
    for base in (PLAIN, ADDON):
        if base not in added:
            report.add(
                Row("HTTP call with a script: added p50", f"{added[SCRIPT]:.0f} µs", f"{base}: missing", None)
            )
            continue
        most, least = (0.5, 2.0) if base == ADDON else (None, None)
        report.add(
            Row(
                "HTTP call with a script: added p50",
                f"{added[SCRIPT]:.0f} µs",
                f"{base} {added[base]:.0f} µs",
                added[SCRIPT] / added[base],
                most,
            ),
            Row(
                f"HTTP calls with a script, {http.CONNECTIONS} connections",
                f"{rates[SCRIPT]:.0f} calls/s",
                f"{base} {rates[base]:.0f} calls/s",
                rates[SCRIPT] / rates[base],
                least=least,
            ),
        )
    on_stdio(report, size, added.get(ADDON))


def on_stdio(report: Report, size: Size, addon: float | None) -> None:
    """Measure what a script adds to a round trip through `cat`, both of whose messages visit it."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "noop.py"
        script.write_text(HOOKS, encoding="utf-8")
        run = [*mcpspy_command(), "run", "--record", "{}/session.jsonl"]
        chains = {
            "direct": stdio.direct("cat"),
            PLAIN: stdio.mcpspy("cat"),
            SCRIPT: Chain(SCRIPT, [[*run, "--script", str(script), "--", "cat"]]),
        }
        pings = alternate(
            {name: partial(stdio._ping, chain, size.calls) for name, chain in chains.items()}, size.rounds
        )
    p50 = {name: low([sample.percentile(50) for sample in of]) for name, of in pings.items()}
    added = p50[SCRIPT] - p50["direct"]
    shown = f"{added:.0f} µs"
    plain = p50[PLAIN] - p50["direct"]
    report.add(
        Row("stdio round trip with a script: added p50", shown, f"{PLAIN} {plain:.0f} µs", added / plain)
    )
    if addon is not None:
        base = f"{ADDON}, over HTTP {addon:.0f} µs"
        report.add(Row("stdio round trip with a script: added p50", shown, base, added / addon, most=0.5))


if __name__ == "__main__":
    about = "Price of a script that does nothing, beside mitmproxy with an addon that does nothing."
    figures = {"scripts": over_http}
    sys.exit(main("mcpspy --script", about, full=FULL, quick=QUICK, figures=figures, lacks=None))
