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


class Progress:
    """Outcomes of an interrupted measurement, with which the next one continues if the host has the same version."""

    def __init__(self, host: Host) -> None:
        self._path = ROOT / ".hosts" / f"{host.id}-{host.version}.json"
        self._host = host
        self.found: dict[str, Outcome] = {}
        if self._path.exists():
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self.found = {probe: Outcome(Status(status), detail) for probe, (status, detail) in kept.items()}

    def add(self, found: dict[str, Outcome]) -> None:
        for probe, (status, detail) in found.items():
            print(f"{self._host.id}: {probe}: {status} {detail}", flush=True)
        self.found |= found
        self._path.write_text(json.dumps(self.found), encoding="utf-8")

    def end(self) -> None:
        self._path.unlink(missing_ok=True)


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


def measure(host: Host, probes: tuple[Probe, ...], progress: Progress) -> None:
    """Find the outcome of each probe, served together as far as none of them drops the tools of the server."""
    probes = tuple(probe for probe in probes if probe.id not in progress.found)
    if not probes:
        return
    session = Session(host, probes)
    if not session.is_offered and len(probes) == 1:  # Once more: the server may have been too slow to start.
        session = Session(host, probes)
    if session.is_offered:
        request = next(filter(compare.is_offered, session.requests))
        progress.add({probe.id: compare.outcome(probe, session.recorded.tools, request) for probe in probes})
    elif len(probes) == 1:
        why = "" if session.requests else "no request to the model: " + session.output.strip()[-200:]
        progress.add({probes[0].id: Outcome(Status.DROPS_ALL, why)})
    else:
        middle = len(probes) // 2
        measure(host, probes[:middle], progress)
        measure(host, probes[middle:], progress)


def measure_results(host: Host, progress: Progress) -> None:
    """Find the outcomes of the results of tools, and of a list that changes."""
    if "list-changed" in progress.found:
        return
    session = Session(host, (), CALLS, host.results_model)
    for index, probe in enumerate(CALLS):  # Hosts may shorten results in later requests.
        results = next(
            (request.results for request in session.requests if len(request.results) > index), None
        )
        content = results[index] if results is not None else None
        progress.add({f"result-{probe.id}": compare.result(probe.tools[0]["name"], content)})
    if host.results_model:
        session = Session(host, (), CALLS)
    offered = session.requests[-1].tools if session.requests else []
    is_grown = any(tool.name.endswith(GROWN["name"]) for tool in offered)
    again = "tools/list again" if session.recorded.listings > 1 else "no new tools/list"
    progress.add({"list-changed": Outcome(Status.ARRIVED if is_grown else Status.DROPPED, again)})


def measured(host: Host) -> Json:
    """Return everything that is measured of a host."""
    first = Session(host, ())
    if not first.is_offered:
        sys.exit(
            f"hostlab: {host.title} did not offer the control tool to its model:\n{first.output[-2000:]}"
        )
    progress = Progress(host)
    progress.add({"instructions": compare.instructions(first.requests)})
    measure_results(host, progress)
    bulk = tuple(probe for probe in PROBES if probe.id not in ALONE)
    names = tuple(probe for probe in bulk if probe.id.startswith("name-"))
    measure(host, names, progress)
    measure(host, tuple(probe for probe in bulk if probe not in names), progress)
    for probe in PROBES:
        measure(host, (probe,) if probe.id in ALONE else (), progress)
    paged = Session(host, PROBES[:2], PROBE_PAGE="1")
    every = len(paged.recorded.tools)
    progress.add({"pages": Outcome(Status.ARRIVED) if every == 3 else Outcome(Status.CUT, str(every))})
    for revision in REVISIONS:
        if f"revision-{revision}" not in progress.found:
            is_offered = Session(host, (), PROBE_REVISION=revision).is_offered
            progress.add(
                {f"revision-{revision}": Outcome(Status.ARRIVED if is_offered else Status.DROPS_ALL)}
            )
    found = progress.found
    progress.end()
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
        "outcomes": {probe: list(found[probe]) for probe in sorted(found)},
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
