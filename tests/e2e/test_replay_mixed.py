"""Clients of both eras in one HTTP recording: each is replayed in its own era, on its own connection."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.protocol.spec import MODERN
from mcpspy.core.replay.plan import plans
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.main import main
from recordings import make
from tests.e2e.conftest import SECONDS
from tests.e2e.test_http import SERVERS, free_port, serving

if TYPE_CHECKING:
    from pathlib import Path

TIMES = 2

CLIENTS = {
    "modern": [
        str(make.PEERS / "venv" / "bin" / "python"),
        str(make.CLIENTS / "sdk.py"),
        *("--script", "sdk", "--mode", "auto", "--transport", "http", "--"),
    ],
    "legacy": [str(make.PEERS / "mcp1" / "bin" / "python"), str(make.CLIENTS / "sdk1.py")],
}


def record(path: Path, url: str, order: list[str], *, at_once: bool) -> None:
    """Record these clients through `mcpspy http`, one after the other or at once."""
    listen = f"127.0.0.1:{free_port()}"
    command = ["mcpspy", "http", "--upstream", url, "--listen", listen, "--record", str(path)]
    environment = make.environment(path.parent)
    proxy = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        assert proxy.stderr is not None
        proxy.stderr.readline()  # It listens.
        clients = []
        for name in order:
            client = subprocess.Popen(
                [*CLIENTS[name], f"http://{listen}/mcp"], env=environment, stdout=subprocess.DEVNULL
            )
            clients.append(client)
            if not at_once:
                client.wait(SECONDS)
        assert [client.wait(SECONDS) for client in clients] == [0, 0]
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
        record(path, url, order, at_once=at_once)
        assert main(["export", str(path), "--format", "har", "-o", str(har)]) == 0
        assert main(["import", str(har), "-o", str(imported)]) == 0
        for recording in (path, imported):
            found = plans(Recording(recording).session())
            eras = sorted({each.request.revision for each in plan.requests} == {MODERN} for plan in found)
            assert eras == [False, True]
            for _ in range(TIMES):
                assert main(["replay", str(recording), "--no-record", "--upstream", url]) == 0
            assert main(["replay", str(recording), "--no-record", "--", "python", str(make.SDK_SERVER)]) == 0
