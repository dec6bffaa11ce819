"""Measure hosts: run each with the probing server and a scripted model, and store what became of every probe.

    .venv/bin/python -m hostlab.run [HOST …]

The hosts are installed in .hosts/ (`make hostlab`). Writes hostlab/results/HOST.json; then `hostlab.profiles` writes
the profiles of `mcpspy lint --host` and the page of the documentation.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hostlab import compare, profiles
from hostlab.compare import Outcome, Recorded, Status
from hostlab.hosts import HOSTS, REVISIONS, ROOT, SERVER, Host, Run
from hostlab.models import ModelRequest, ModelServer, OfferedTool
from hostlab.probes import CALLS, CONTROL, GROWN, PROBES, Json, Probe, mark

BIN = Path(sys.executable).parent

ALONE = ("tools-300", "description-50000")
"""Probes that could change what becomes of others."""


class Session:
    """One run of a host, with its recording and the requests of its model."""

    def __init__(
        self,
        host: Host,
        probes: tuple[Probe, ...],
        calls: tuple[Probe, ...] = (),
        name: str = "",
        **given: str,
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="hostlab-"))
        planned: tuple[str | OfferedTool, ...] = tuple(mark(probe.id) for probe in calls)
        if name:  # The host does not show the definitions of tools to this model.
            planned = tuple(
                OfferedTool(probe.tools[0]["name"], "", None, f"mcp__{SERVER}") for probe in calls
            )
        model = ModelServer(planned)
        names = ",".join(probe.id for probe in (*probes, *calls)) or "none"
        variables = {
            "MCPSPY_DIR": str(folder / "sessions"),
            "PYTHONPATH": str(ROOT),
            "PROBES": names,
            **given,
        }
        server = [f"{name}={value}" for name, value in variables.items()]
        spied = [
            str(BIN / "mcpspy"),
            "run",
            "--name",
            SERVER,
            "--",
            sys.executable,
            "-m",
            "hostlab.probe_server",
        ]
        try:
            self.output = host.start(
                Run(folder / "home", ["/usr/bin/env", *server, *spied], model.url, name or host.model)
            )
        finally:
            model.stop()
        self.requests: list[ModelRequest] = compare.conversation(model.requests)
        lines: list[str] = []
        for path in sorted((folder / "sessions").glob("*.jsonl")):
            lines += path.read_text(encoding="utf-8").splitlines()[1:]
        self.recorded: Recorded = compare.recorded(lines)
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def is_offered(self) -> bool:
        return any(map(compare.is_offered, self.requests))


def measure(host: Host, probes: tuple[Probe, ...]) -> dict[str, Outcome]:
    """Return the outcome of each probe, served together as far as none of them drops the tools of the server."""
    session = Session(host, probes)
    if not session.is_offered and len(probes) == 1:  # Once more: the server may have been too slow to start.
        session = Session(host, probes)
    found: dict[str, Outcome] = {}
    if session.is_offered:
        request = next(filter(compare.is_offered, session.requests))
        found = {probe.id: compare.outcome(probe, session.recorded.tools, request) for probe in probes}
    elif len(probes) == 1:
        why = "" if session.requests else "no request to the model: " + session.output.strip()[-200:]
        found = {probes[0].id: Outcome(Status.DROPS_ALL, why)}
    else:
        middle = len(probes) // 2
        return measure(host, probes[:middle]) | measure(host, probes[middle:])
    for probe, (status, detail) in found.items():
        print(f"{host.id}: {probe}: {status} {detail}", flush=True)
    return found


def results_of(host: Host) -> dict[str, Outcome]:
    """Return the outcomes of the results of tools, and of a list that changes."""
    session = Session(host, (), CALLS, host.results_model)
    contents = session.requests[-1].results if session.requests else []
    found = {}
    for probe, content in zip(CALLS, contents, strict=False):
        name = probe.tools[0]["name"]
        found[f"result-{probe.id}"] = compare.result(name, content)
        print(f"{host.id}: {probe.id}: {' '.join(found[f'result-{probe.id}'])}", flush=True)
    if host.results_model:
        session = Session(host, (), CALLS)
    grown = (
        any(tool.name.endswith(GROWN["name"]) for tool in session.requests[-1].tools)
        if session.requests
        else False
    )
    again = "tools/list again" if session.recorded.listings > 1 else "no new tools/list"
    found["list-changed"] = Outcome(Status.ARRIVED if grown else Status.DROPPED, again)
    return found


def measured(host: Host) -> Json:
    """Return everything that is measured of a host."""
    first = Session(host, ())
    if not first.is_offered:
        sys.exit(
            f"hostlab: {host.title} did not offer the control tool to its model:\n{first.output[-2000:]}"
        )
    bulk = tuple(probe for probe in PROBES if probe.id not in ALONE)
    names = tuple(probe for probe in bulk if probe.id.startswith("name-"))
    found = {"instructions": compare.instructions(first.requests)}
    found |= measure(host, names) | measure(host, tuple(probe for probe in bulk if probe not in names))
    for probe in PROBES:
        if probe.id in ALONE:
            found |= measure(host, (probe,))
    found |= results_of(host)
    paged = Session(host, PROBES[:2], PROBE_PAGE="1")
    every = len(paged.recorded.tools)
    found["pages"] = Outcome(Status.ARRIVED) if every == 3 else Outcome(Status.CUT, str(every))
    for revision in REVISIONS:
        is_offered = Session(host, (), PROBE_REVISION=revision).is_offered
        found[f"revision-{revision}"] = Outcome(Status.ARRIVED if is_offered else Status.DROPS_ALL)
        print(f"{host.id}: {revision}: {is_offered}", flush=True)
    client = first.recorded.client
    return {
        "host": host.id,
        "title": host.title,
        "version": host.version,
        "date": datetime.now(UTC).date().isoformat(),
        "how": host.about,
        "client": client.get("clientInfo", {}).get("name"),
        "revision": client.get("protocolVersion"),
        "capabilities": sorted(client.get("capabilities", {})),
        "prefix": compare.prefix_of(next(filter(compare.is_offered, first.requests))).replace(
            SERVER, "{server}"
        ),
        "control": CONTROL["name"],
        "outcomes": {probe: list(outcome) for probe, outcome in found.items()},
    }


def main() -> None:
    """Measure the named hosts, by default all, and write their profiles."""
    wanted = sys.argv[1:] or [host.id for host in HOSTS]
    for host in HOSTS:
        if host.id in wanted:
            path = profiles.RESULTS / f"{host.id}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(measured(host), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(path)
    profiles.main()


if __name__ == "__main__":
    main()
