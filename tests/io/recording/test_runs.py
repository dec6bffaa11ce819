"""The sessions of one start of a host, found by its process or by the trace of their requests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io import host_process
from mcpspy.io.recording.runs import FollowedRun, Runs, find_run
from tests.io.files import EXIT, frame, note, write

if TYPE_CHECKING:
    from pathlib import Path

HOST = {"pid": 7, "program": "claude", "started": "2026-07-28T09:59:00.000Z"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def post(at: float, **fields: Any) -> bytes:
    return note(at, "http", **{"stream": "1", "method": "POST", "headers": {}, **fields})


def names(folder: Path) -> list[list[str]]:
    return [[summary.header.name for summary in each.sessions] for each in Runs(str(folder)).look()]


def test_sessions_of_http_join_a_run_by_the_process_of_their_client_or_by_a_trace(tmp_path: Path) -> None:
    write(tmp_path / "stdio.jsonl", EXIT, name="stdio", parent=HOST)
    known = post(1.0, client=HOST, headers={"traceparent": TRACE}).replace(b": ", b":").replace(b", ", b",")
    write(tmp_path / "known.jsonl", known, EXIT, name="known", id="1" * 8)
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"traceparent": TRACE}}}
    write(tmp_path / "traced.jsonl", frame(1.5, "client", message), EXIT, name="traced", id="2" * 8)
    write(tmp_path / "alone.jsonl", frame(1.5, "client", {}), EXIT, name="alone", id="3" * 8)

    (found,) = names(tmp_path)

    assert sorted(found) == ["known", "stdio", "traced"]


@pytest.mark.parametrize(
    "client", [b'{"pid":"x"}', b'{"pid":7,}', b'{"pid":7,"program":"\xff"}', b'{"pid":7,"started":5}']
)
def test_a_damaged_line_about_a_client_is_ignored(tmp_path: Path, client: bytes) -> None:
    write(tmp_path / "stdio.jsonl", EXIT, name="stdio", parent=HOST)
    line = b'{"t":1.0,"note":"http","stream":"1","client":%b}\n' % client
    write(tmp_path / "damaged.jsonl", line, EXIT, name="damaged", id="1" * 8)

    assert names(tmp_path) == [["stdio"]]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows the start of a process")
def test_a_run_may_grow_while_the_process_of_its_host_runs(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as host:
        started = host_process.start_of(host.pid)
        assert started is not None
        assert abs(time.time() - started) < 60
        text = datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds")
        parent = {"pid": host.pid, "program": "python", "started": text}
        write(tmp_path / "session.jsonl", EXIT, parent=parent)
        # The number of this process, which started before: the one of a host that has ended is used again.
        reused = {"pid": os.getpid(), "program": "python", "started": "2026-07-28T09:59:00.000Z"}
        write(tmp_path / "earlier.jsonl", EXIT, parent=reused, id="1" * 8, started="2026-07-28T09:59:01.000Z")
        runs = Runs(str(tmp_path))
        followed = [FollowedRun(runs, each) for each in runs.look()]
        assert followed[-1].run.id == find_run("run:last", str(tmp_path)).run.id
        assert [run.may_grow for run in followed] == [False, True]
        host.communicate(b"\n")
    assert [run.may_grow for run in followed] == [False, False]
    assert host_process.start_of(host.pid) is None
