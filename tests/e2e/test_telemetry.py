"""Telemetry of real clients and servers at real backends: Arize Phoenix, Prometheus, and a collector."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from recordings import make
from tests.otlp_receiver import Receiver

PEERS = make.PEERS
CLIENT = [str(PEERS / "venv" / "bin" / "python"), str(make.ROOT / "tests" / "peers" / "clients" / "sdk.py")]
SERVER = str(make.ROOT / "tests" / "peers" / "servers" / "sdk_server.py")
MCPSPY = [sys.executable, "-m", "mcpspy"]
SECONDS = 60
DASHBOARD = make.ROOT / "docs" / "grafana.json"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a user whose exporter ends with the test."""
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    yield {**os.environ}
    lock = tmp_path / "state" / "mcpspy" / "telemetry" / "lock"
    if lock.exists():
        with suppress(ProcessLookupError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def eventually(condition: Callable[[], Any], bound: float = SECONDS) -> Any:
    """Return the first true value of a condition that depends on another process."""
    until = time.monotonic() + bound
    while not (found := condition()):
        assert time.monotonic() < until, "the condition did not hold in time"
        time.sleep(0.1)
    return found


def fetched(url: str) -> Any:
    """Return JSON, or None if nothing listens yet."""
    try:
        with urlopen(url, timeout=5) as response:
            text = response.read()
    except (URLError, OSError):
        return None
    return json.loads(text) if text[:1] in (b"{", b"[") else text


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def play(environment: dict[str, str], folder: Path, name: str) -> None:
    """Run the SDK's client with its server behind mcpspy."""
    # The client passes only a few variables to its server, as hosts do.
    passed = [f"{key}={value}" for key, value in environment.items() if key.startswith(("XDG_", "MCPSPY_"))]
    server = ["env", *passed, *MCPSPY, "run", "--dir", str(folder), "--name", name, "--", CLIENT[0], SERVER]
    command = [*CLIENT, "--script", "sdk", "--mode", "legacy", "--", *server]
    subprocess.run(command, env=environment, check=True, timeout=SECONDS, capture_output=True)


def test_the_setting_starts_one_exporter_that_sends_the_sessions_of_all_proxies(
    environment: dict[str, str], tmp_path: Path
) -> None:
    receiver = Receiver()
    environment["MCPSPY_TELEMETRY"] = receiver.url
    play(environment, tmp_path / "one", "first")
    lock = tmp_path / "state" / "mcpspy" / "telemetry" / "lock"
    first_pid = eventually(lambda: lock.exists() and lock.read_text())
    play(environment, tmp_path / "two", "second")

    def roots() -> set[str]:
        return {span.name for span in receiver.spans if not span.parent_span_id}

    receiver.until(lambda: roots() == {"session first", "session second"}, SECONDS)
    receiver.until(lambda: receiver.items["logs"] and receiver.items["metrics"], SECONDS)
    assert lock.read_text() == first_pid
    assert len({span.span_id for span in receiver.spans}) == len(receiver.spans)
    exported = subprocess.run(
        [*MCPSPY, "export", str(tmp_path / "one"), str(tmp_path / "two"), "--format", "otlp"],
        env=environment,
        check=True,
        capture_output=True,
    )
    expected = {
        bytes.fromhex(span["spanId"])
        for of in json.loads(exported.stdout)["resourceSpans"]
        for scope in of["scopeSpans"]
        for span in scope["spans"]
    }
    assert {span.span_id for span in receiver.spans} == expected
    receiver.close()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_nothing_is_missing_after_a_collector_was_killed_and_slowed_under_load(protocol: str) -> None:
    command = [sys.executable, "bench/telemetry.py", "--seconds", "4", "--protocol", protocol, "--no-latency"]
    done = subprocess.run(command, cwd=make.ROOT, capture_output=True, timeout=SECONDS, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing missing" in done.stdout


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_collector_forwards_spans_metrics_and_logs_of_a_session(
    environment: dict[str, str], tmp_path: Path, protocol: str
) -> None:
    ports = {"http": free_port(), "grpc": free_port()}
    receiver = Receiver()
    (agent,) = (PEERS / "venv" / "lib").glob("python*/site-packages/rotel/rotel-agent")
    rotel = {
        **environment,
        **{f"ROTEL_OTLP_{name.upper()}_ENDPOINT": f"127.0.0.1:{port}" for name, port in ports.items()},
        "ROTEL_EXPORTER": "otlp",
        "ROTEL_OTLP_EXPORTER_ENDPOINT": receiver.grpc_url,
        "ROTEL_BATCH_TIMEOUT": "100ms",
        "ROTEL_PID_FILE": str(tmp_path / "pid"),
        "ROTEL_LOG_FILE": str(tmp_path / "log"),
    }
    play(environment, tmp_path / "sessions", "collected")
    with running([str(agent), "start"], rotel, tmp_path / "rotel.log") as process:
        endpoint = f"http://127.0.0.1:{ports[protocol]}"
        command = [*MCPSPY, "export", "--follow", str(tmp_path / "sessions"), "--endpoint", endpoint]
        done = subprocess.run(
            [*command, "--protocol", protocol], env=environment, timeout=SECONDS, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        sent = re.search(rb"sent (\d+) traces, (\d+) metrics, (\d+) logs", done.stdout)
        assert sent is not None
        receiver.until(lambda: len({span.span_id for span in receiver.spans}) == int(sent[1]), SECONDS)
        receiver.until(lambda: len(receiver.items["logs"]) == int(sent[3]) > 0, SECONDS)

        def points() -> int:
            return sum(len(metric.histogram.data_points) for _, metric in receiver.items["metrics"])

        receiver.until(lambda: points() == int(sent[2]), SECONDS)
        process.kill()  # After a signal, it would wait for ten seconds.
    receiver.close()


@pytest.mark.timeout(400)  # It takes half a minute of CPU time to start.
def test_phoenix_shows_the_calls_of_a_session_below_its_root_over_http_and_grpc(
    environment: dict[str, str], tmp_path: Path
) -> None:
    port, grpc_port = free_port(), free_port()
    phoenix = {
        **environment,
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc_port),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with running([str(PEERS / "phoenix" / "bin" / "phoenix"), "serve"], phoenix, tmp_path / "phoenix.log"):
        for protocol in ("http", "grpc"):
            play(environment, tmp_path / protocol, protocol)
        eventually(lambda: fetched(f"{url}/healthz") is not None, 240)
        for protocol, endpoint in (("http", url), ("grpc", f"http://127.0.0.1:{grpc_port}")):
            environment["OTEL_RESOURCE_ATTRIBUTES"] = f"openinference.project.name={protocol}"
            command = [*MCPSPY, "export", "--follow", str(tmp_path / protocol), "--endpoint", endpoint]
            for _ in range(2):  # The second time, nothing new appears.
                done = subprocess.run(
                    [*command, "--protocol", protocol], env=environment, timeout=SECONDS, capture_output=True
                )
                assert done.returncode == 0, done.stderr
            assert b"does not accept metrics" in done.stderr
            sent = int(re.search(rb"sent (\d+) traces", done.stdout)[1])  # type: ignore[index]

            def shown(project: str = protocol, count: int = sent) -> Any:
                found = fetched(f"{url}/v1/projects/{project}/spans?limit=1000")
                return found and len(found["data"]) >= count and found["data"]

            spans = eventually(shown)
            ids = {span["context"]["span_id"] for span in spans}
            (root,) = [span for span in spans if span["parent_id"] is None]
            assert (len(ids), len(spans)) == (sent, sent), "no span twice"
            assert root["name"] == f"session {protocol}"
            assert {span["parent_id"] for span in spans if span is not root} <= ids
            errors = [span for span in spans if span["status_code"] == "ERROR"]
            assert "tool_error" in {span["attributes"].get("error.type") for span in errors}


def leave_unanswered(environment: dict[str, str], sessions: Path) -> None:
    """Record a session whose server never answers its request."""
    command = [*MCPSPY, "run", "--dir", str(sessions), "--", "sh", "-c", "cat >/dev/null"]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    subprocess.run(command, input=ping, env=environment, check=True, capture_output=True, timeout=SECONDS)


async def test_prometheus_answers_the_queries_of_the_dashboard(
    environment: dict[str, str], tmp_path: Path
) -> None:
    sessions, port = tmp_path / "sessions", free_port()
    metrics = await asyncio.create_subprocess_exec(
        *(*MCPSPY, "metrics", "--listen", "127.0.0.1:0", "--dir", str(sessions)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert metrics.stdout is not None
    try:
        target = re.sub(r"https?://|/metrics", "", (await metrics.stdout.readline()).decode().strip())
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: { scrape_interval: 250ms, scrape_timeout: 200ms }\n"
            f'scrape_configs: [{{ job_name: mcpspy, static_configs: [{{ targets: ["{target}"] }}] }}]\n',
            encoding="utf-8",
        )
        command = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with running(command, environment, tmp_path / "prometheus.log"):

            def value(query: str) -> Any:
                found = fetched(f"http://127.0.0.1:{port}/api/v1/query?{urlencode({'query': query})}")
                assert not isinstance(found, dict) or found["status"] == "success", (query, found)
                return found and found["data"]["result"]

            await asyncio.to_thread(eventually, lambda: value("up == 1"))
            for number in range(2):  # A rate needs the value before and after.
                await asyncio.to_thread(play, environment, sessions, "files")
                await asyncio.to_thread(leave_unanswered, environment, sessions)
                count = f"sum(mcp_client_session_duration_seconds_count) > {number}"
                await asyncio.to_thread(eventually, partial(value, count))
            board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
            for panel in board["panels"]:
                for each in panel["targets"]:
                    query = each["expr"].replace("$server", ".*").replace("$__rate_interval", "1m")
                    query = query.replace("$__range", "1m").replace("${server}", ".*")
                    assert await asyncio.to_thread(eventually, partial(value, query)), query
    finally:
        metrics.terminate()
        await metrics.wait()
