"""`mcpspy metrics`: its address, and who may read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mcpspy.analysis.metrics import PrometheusMetrics
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.extras import install_command
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import metrics as command
from mcpspy.ui.cli.main import main


def test_it_listens_on_loopback_unless_the_user_insists(capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("0.0.0.0:0", "192.168.0.7:80", "[::]:0"):
        assert main(["metrics", "--listen", address]) == 2
        assert "--i-know" in capsys.readouterr().err


def test_without_its_package_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "mcpspy.analysis.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    assert main(["metrics"]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: metrics needs prometheus-client, which is not installed ({install_command('metrics')})\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be truncated")
def test_a_session_that_is_replaced_is_reported_and_no_longer_counted(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path), None, {"name": "weather"}, say=print)
    writer.write(
        FrameEncoder("client").feed(0.1, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    )
    with subprocess.Popen(
        [sys.executable, "-m", "mcpspy", "metrics", "--listen", ":0", "--dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert any('sender="client"' in metrics(url) for _ in range(1000))
        (path := Path(writer.path)).write_bytes(b"")
        line = process.stderr.readline()
        left = metrics(url)
        with pytest.raises(HTTPError, match="404"):
            metrics(url.replace("/metrics", "/"))
        with pytest.raises(HTTPError, match="403"):
            metrics(Request(url, headers={"Host": "evil.example"}))
        process.terminate()
    writer.close()

    assert line == (
        f"mcpspy: metrics: {path}: the file was truncated or replaced, and is no longer counted\n"
    )
    assert 'live{server="weather"} 0.0' in left


def metrics(url: str | Request) -> str:
    with urlopen(url, timeout=20) as response:
        return str(response.read(), "utf-8")


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_session_that_cannot_be_read_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], *, is_deleted: bool
) -> None:
    path = tmp_path / "lost.jsonl"
    if not is_deleted:
        path.write_bytes(b'{"mcpspy":1')
    await command._follow(path, PrometheusMetrics())

    assert capfd.readouterr().err.startswith(f"mcpspy: metrics: {path}: ")
