"""Clients of both eras in one HTTP recording: each is replayed in its own era, on its own connection."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.protocol.spec import MODERN
from mcpspy.core.replay.plan import plans
from mcpspy.io.client import ServerCommand
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.ui.cli.main import main
from mcpspy.ui.pytest_plugin.servers import ServedEndpoint
from recordings import make
from tests.e2e.conftest import SECONDS
from tests.e2e.test_http import SERVERS, free_port, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = int(os.environ.get("REPLAY_TIMES", "1"))

CLIENTS = {
    "modern": [
        str(make.PEERS / "venv" / "bin" / "python"),
        str(make.CLIENTS / "sdk.py"),
        *("--script", "sdk", "--mode", "auto", "--transport", "http", "--"),
    ],
    "legacy": [str(make.PEERS / "mcp1" / "bin" / "python"), str(make.CLIENTS / "sdk1.py")],
}


def record(path: Path, url: str, clients: list[list[str]], *, at_once: bool) -> None:
    """Record these clients through `mcpspy http`, one after the other or at once."""
    listen = f"127.0.0.1:{free_port()}"
    command = ["mcpspy", "http", "--upstream", url, "--listen", listen, "--record", str(path)]
    environment = make.environment(path.parent)
    proxy = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        assert proxy.stderr is not None
        proxy.stderr.readline()  # It listens.
        running = []
        for words in clients:
            client = subprocess.Popen(
                [*words, f"http://{listen}/mcp"], env=environment, stdout=subprocess.DEVNULL
            )
            running.append(client)
            if not at_once:
                client.wait(SECONDS)
        assert [client.wait(SECONDS) for client in running] == [0, 0]
    finally:
        proxy.send_signal(signal.SIGINT)
        proxy.communicate(timeout=SECONDS)


@pytest.mark.parametrize(
    ("order", "at_once"),
    [(["modern", "legacy"], False), (["legacy", "modern"], False), (["modern", "legacy"], True)],
    ids=["modern-first", "legacy-first", "at-once"],
)
def test_an_unchanged_server_is_the_same_over_http_and_stdio_and_from_har(
    order: list[str], at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (make.PEERS / "mcp1").is_dir():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    for name, value in make.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    path, har, imported = (tmp_path / name for name in ("mixed.jsonl", "mixed.har", "imported.jsonl"))
    with serving("peer", *SERVERS["peer"], tmp_path) as url:
        record(path, url, [CLIENTS[name] for name in order], at_once=at_once)
        assert main(["export", str(path), "--format", "har", "-o", str(har)]) == 0
        assert main(["import", str(har), "-o", str(imported)]) == 0
        for recording in (path, imported):
            found = plans(Recording(recording).session())
            eras = sorted({each.request.revision for each in plan.requests} == {MODERN} for plan in found)
            assert eras == [False, True]
            for _ in range(TIMES):
                assert main(["replay", str(recording), "--no-record", "--upstream", url]) == 0
            assert main(["replay", str(recording), "--no-record", "--", "python", str(make.SDK_SERVER)]) == 0


UNCHANGED = {
    "everything": ("mcp-server-everything stdio", ["--volatile"]),
    "filesystem": ("mcp-server-filesystem {files}", []),
    "memory": ("mcp-server-memory", []),
    "sdk": (f"python {make.SDK_SERVER}", []),
}
"""Servers on stdio, and the options of their replay: server-everything puts the time of day into a text."""


@contextmanager
def over_http(command: list[str], folder: Path) -> Iterator[str]:
    """Serve a command over HTTP, as the pytest plugin does; yield its URL."""
    served = ServedEndpoint(ServerCommand(command), folder, RedactionOptions())
    try:
        yield served.url
    finally:
        served.close()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", UNCHANGED)
def test_an_unchanged_server_is_the_same_every_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REPLAY_TIMES=10 replays ten times."""
    files, graph = tmp_path / "files", tmp_path / "graph.json"
    for key, value in (make.environment(tmp_path) | {"MEMORY_FILE_PATH": str(graph)}).items():
        monkeypatch.setenv(key, value)
    command, options = UNCHANGED[name]
    server = command.format(files=files).split()
    python = str(make.PEERS / "venv" / "bin" / "python")
    client = [python, str(make.CLIENTS / "sdk.py"), "--script", name, "--dir", str(files)]

    def begin_again() -> None:
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        graph.unlink(missing_ok=True)

    begin_again()
    path = tmp_path / "mixed.jsonl"
    with over_http(server, tmp_path / "stdio") as url:
        record(path, url, [[*client, "--mode", mode, "--"] for mode in ("auto", "legacy")], at_once=False)
        for _ in range(TIMES):
            for target in (["--", *server], ["--upstream", url]):
                begin_again()
                assert main(["replay", str(path), "--no-record", *options, *target]) == 0
