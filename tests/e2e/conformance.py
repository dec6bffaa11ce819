"""The public conformance suite of MCP, direct and through `mcpspy http`, check by check.

    .venv/bin/python -m tests.e2e.conformance [--server 'COMMAND {port}'] [--client COMMAND] [--only RUN]… [--agent]

Runs `@modelcontextprotocol/conformance` from `.peers`, in its current and its alpha version, in server mode and in
client mode, twice each: direct, and with mcpspy between client and server. Prints a table; exits with 1 if a check
has another outcome through mcpspy than direct and `EXPLAINED` does not name it. The default server and client are
those of tests/peers; with `--server` and `--client`, those of any SDK.

With `--agent`, the subject is `mcpspy mcp --http` itself, in server mode: exits with 1 if the checks that fail are not
exactly those in not_served.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
PYTHON = str(PEERS / "venv" / "bin" / "python")
CLIENTS = ROOT / "tests" / "peers" / "clients"

SECONDS = 300
"""Maximum seconds of one run of the suite."""

READY = 20
"""Maximum seconds until a server or a proxy listens."""


class Run(NamedTuple):
    """One selection of scenarios."""

    name: str
    mode: str
    """`server` or `client`: what is tested."""
    package: str
    options: tuple[str, ...]


RUNS = [
    Run(f"{mode} {name}", mode, package, options)
    for mode in ("server", "client")
    for name, package, options in (
        ("0.1 all", "conformance", ("--suite", "all")),
        ("0.2 2025-11-25", "conformance-alpha", ("--requirements", "2025-11-25")),
        ("0.2 2026-07-28", "conformance-alpha", ("--requirements", "2026-07-28")),
    )
]

EXPLAINED = {
    "auth/*: resource-parameter-matches-prm": "the client sends the address of mcpspy, which its metadata names",
    "auth/enterprise-managed-authorization: *": "the authorization server accepts only the server's own address",
    "sse-retry: client-sse-retry-timing": "a duration, which fails directly too if the machine is busy",
}
"""Patterns of `SCENARIO: CHECK` that may differ through mcpspy → the reason. docs/http.md explains them."""

NOT_SERVED = {
    line
    for line in (Path(__file__).parent / "not_served.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
"""Checks, as `SCENARIO: CHECK`, that fail with `mcpspy mcp`, which does not serve what they test."""

Outcome: TypeAlias = Mapping[str, Sequence[str]]
"""The checks of each scenario, as `id: STATUS`, sorted. What is only information is left out."""


def node() -> str:
    """Return the Node of the peers: the suite needs version 22 or newer."""
    return str(next((PEERS / "node24").rglob("bin/node")))


def suite(run: Run, target: str, folder: Path) -> Outcome:
    """Run the suite with a URL (server mode) or a command (client mode); return all checks."""
    script = PEERS / "node_modules" / "@modelcontextprotocol" / run.package / "dist" / "index.js"
    subject = ("--url", target) if run.mode == "server" else ("--command", target)
    # All scenarios of client mode run at once. In server mode, version 0.1 has no such option.
    patience = ("--timeout", str(SECONDS * 1000)) if run.mode == "client" else ()
    command = [node(), str(script), run.mode, *subject, *run.options, *patience, "-o", str(folder)]
    with (folder.parent / f"{folder.name}.txt").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            process.wait(SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    found = {}
    for path in folder.rglob("checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.relative_to(folder).as_posix())
        checks = json.loads(path.read_text(encoding="utf-8"))
        found[scenario] = sorted(
            f"{each['id']}: {each['status']}" for each in checks if each["status"] != "INFO"
        )
    return found


@contextmanager
def serving(command: Sequence[str], port: int, log: Path) -> Iterator[str]:
    """Run a server or a proxy until the block ends; yield the origin, once it listens."""
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            until = time.monotonic() + READY
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as attempt:
                    if attempt.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            else:
                raise RuntimeError(f"{command[0]} does not listen: {log.read_text(encoding='utf-8')}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def mcpspy() -> str:
    """Return the path of mcpspy's command."""
    return shutil.which("mcpspy", path=os.path.dirname(sys.executable)) or "mcpspy"


@contextmanager
def both_ways(server: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Run a server, and mcpspy in front of it; yield the URL of each."""
    between, record = free_port(), str(folder / "r.jsonl")
    with running(server, folder) as direct:
        options = ("--upstream", direct, "--listen", str(between), "--record", record)
        with serving((mcpspy(), "http", *options), between, folder / "proxy.log") as own:
            yield direct, f"{own}/mcp"


@contextmanager
def running(server: str, folder: Path) -> Iterator[str]:
    """Run a server; yield its URL."""
    port = free_port()
    with serving(shlex.split(server.format(port=port)), port, folder / "server.log") as origin:
        yield f"{origin}/mcp"


def both(run: Run, server: str, client: str) -> tuple[Outcome, Outcome]:
    """Return the outcome of a run, direct and through mcpspy."""
    with temporary_folder() as folder:
        if run.mode == "client":
            return suite(run, client, folder / "direct"), through(run, client, folder)
        with both_ways(server, folder) as (direct, proxied):
            return suite(run, direct, folder / "direct"), suite(run, proxied, folder / "through")


def through(run: Run, client: str, folder: Path) -> Outcome:
    """Return the outcome of a run in client mode, with an own proxy between each client and the suite."""
    between = [PYTHON, str(CLIENTS / "behind_proxy.py"), mcpspy(), str(folder)]
    return suite(run, f"{shlex.join(between)} {client}", folder / "through")


def differences(direct: Outcome, proxied: Outcome) -> list[str]:
    """Return each check that has another outcome through mcpspy, and is not in `EXPLAINED`."""
    found = []
    for scenario in sorted({*direct, *proxied}):
        before, after = set(direct.get(scenario, ())), set(proxied.get(scenario, ()))
        for check in sorted(before ^ after):
            name = f"{scenario}: {check.partition(': ')[0]}"
            if not any(fnmatchcase(name, pattern) for pattern in EXPLAINED):
                found.append(f"{scenario}: {check} only {'direct' if check in before else 'through mcpspy'}")
    return found


def failures(outcome: Outcome) -> set[str]:
    """Return the checks that failed, as `SCENARIO: CHECK`."""
    return {
        f"{scenario}: {name}"
        for scenario, checks in outcome.items()
        for name, _, status in (check.rpartition(": ") for check in checks)
        if status not in ("SUCCESS", "SKIPPED")
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The conformance suite of MCP, direct and through mcpspy.")
    parser.add_argument("--server", default=SERVER, help="the server's command; {port} is replaced")
    parser.add_argument("--client", default=CLIENT, help="the client's command; the suite appends its URL")
    parser.add_argument("--only", action="append", choices=[run.name for run in RUNS], help="run only this")
    parser.add_argument("--agent", action="store_true", help="test mcpspy mcp --http instead")
    options = parser.parse_args()
    runs = [run for run in RUNS if not options.only or run.name in options.only]
    if options.agent:
        return agent([run for run in runs if run.mode == "server" and "--requirements" in run.options])
    print("| run | scenarios | passed checks, direct | through mcpspy | different |\n|---|---|---|---|---|")
    failed = False
    for run in runs:
        direct, proxied = both(run, options.server, options.client)
        found = differences(direct, proxied)
        if run.mode == "client":
            # All clients run at once, and time out on a busy machine, directly too. What differs runs again, alone.
            revision = ("--spec-version", run.options[1]) if run.options[0] == "--requirements" else ()
            scenarios = sorted({line.partition(": ")[0] for line in found})
            alone = [run._replace(options=("--scenario", name, *revision)) for name in scenarios]
            found = [
                line for each in alone for line in differences(*both(each, options.server, options.client))
            ]
        failed |= bool(found) or not direct
        _print_row(run, len(direct), _passed(direct), _passed(proxied), len(found))
        _print_lines(found)
    return 1 if failed else 0


def agent(runs: Sequence[Run]) -> int:
    """Print the table of `mcpspy mcp --http`; return the exit code."""
    print("| run | scenarios | passed checks | not served | failed |\n|---|---|---|---|---|")
    seen: set[str] = set()
    is_complete = True
    for run in runs:
        with temporary_folder() as folder, running(AGENT, folder) as url:
            outcome = suite(run, url, folder / "agent")
        failed = failures(outcome)
        seen |= failed
        is_complete &= bool(outcome)
        other = failed - NOT_SERVED
        _print_row(run, len(outcome), _passed(outcome), len(failed - other), len(other))
        _print_lines(sorted(other))
    passed = NOT_SERVED - seen if len(runs) > 1 else set()
    _print_lines([f"not_served.txt: {line} does not fail" for line in sorted(passed)])
    return 0 if is_complete and not passed and seen <= NOT_SERVED else 1


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mcpspy-conformance-") as folder:
        yield Path(folder)


def _print_row(run: Run, *cells: object) -> None:
    print("|", " | ".join(map(str, (run.name, *cells))), "|", flush=True)


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"  {line}", file=sys.stderr)


def _passed(outcome: Outcome) -> str:
    checks = [check for each in outcome.values() for check in each]
    return f"{sum(check.endswith(': SUCCESS') for check in checks)} of {len(checks)}"


SERVER = f"{PYTHON} {ROOT}/tests/peers/servers/conformance_server.py --port {{port}}"
CLIENT = f"{PYTHON} {CLIENTS}/conformance.py"
AGENT = f"{PEERS}/mcp2/bin/python {ROOT}/tests/peers/servers/agent_server.py --port {{port}} --dir {ROOT}/recordings"

if __name__ == "__main__":
    sys.exit(main())
