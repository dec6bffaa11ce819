"""`mcpspy import`: files written by other tools become recordings; other files are reported in one line."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpspy.analysis.diff import compare
from mcpspy.core.importers.formats import FORMATS
from mcpspy.core.recording.decode import Damaged
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.cli.main import main
from tests.core.mock.test_session import recorded, replayed

ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests" / "core" / "importers" / "files"

SESSIONS = {
    "mcp-rec.jsonl": [65],
    "mcp-rec-modern.jsonl": [66],
    "mcp-cassette.json": [65],
    "mcp-cassette-http.json": [66],
    "mcp-recorder.json": [9],
    "mcp-recorder-http.json": [9],
    "mcphawk.db": [65, 11],
    "mitmproxy.har": [11],
    "inspector-protocol.json": [15],
    "inspector-network.json": [15],
    "mcpsnoop.jsonl": [8, 4],
    "mcp-vcr.yaml": [65],
    "mcp-vcr.ndjson": [65],
    "mcp-server-weather.log": [1, 6],
    "mcp.log": [2, 1, 2],
    "vscode.log": [6, 1],
    "otlp.json": [4, 2],
}
"""The messages of each session of each file."""

EVERY_FILE = pytest.mark.parametrize("name", SESSIONS)


def imported(name: str, folder: Path, *options: str) -> list[Path]:
    """Import a file; return the recordings, in the order of its sessions."""
    before = set(folder.glob("*.jsonl"))
    source = FILES / name
    assert main(["import", str(source), "-o", f"{folder}/", *options]) == 0
    written = sorted(set(folder.glob("*.jsonl")) - before, key=lambda path: Recording(path).header.started)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in written)
    return written


def read(path: Path) -> Session:
    recording = Recording(path)
    assert not any(isinstance(entry, Damaged) for entry in recording)
    assert recording.torn == 0
    return Session(recording.header).add_all(recording)


def header(path: Path) -> dict[str, Any]:
    first: dict[str, Any] = json.loads(path.read_bytes().partition(b"\n")[0])
    return first


@EVERY_FILE
def test_an_imported_session_is_whole_lints_and_exports_and_mocks(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = imported(name, tmp_path)
    printed = capfd.readouterr()
    assert [line.rpartition(": ")[2] for line in printed.out.splitlines()] == [
        f"{messages} messages" for messages in SESSIONS[name]
    ]
    assert printed.err.startswith("mcpspy: ")
    assert " does not contain: " in printed.err
    for path in paths:
        about = header(path)["imported"]
        assert about["from"] in FORMATS
        assert about["lacks"]
        assert Recording(path).state == RecordingState.ENDED
        session = read(path)
        # Missing responses in a file are not a fault of the import, and neither are mistakes of the peers.
        assert main(["lint", str(path), "--format", "json"]) in (0, 1)
        rules = {finding["code"] for finding in json.loads(capfd.readouterr().out)["findings"]}
        assert not rules & {"LIFE401", "REC101"}
        assert main(["export", str(path), "-o", str(tmp_path / f"{path.stem}.har")]) == 0
        capfd.readouterr()
        if all(exchange.answer is not None for exchange in session.exchanges) or not name.endswith(".log"):
            assert replayed(session, 0.0) == recorded(session)


@pytest.mark.parametrize(
    "name", ["mcp-rec.jsonl", "mcp-cassette.json", "mcphawk.db", "mcp-vcr.yaml", "mcp-vcr.ndjson"]
)
def test_a_session_recorded_by_another_tool_equals_the_mcpspy_recording(name: str, tmp_path: Path) -> None:
    imported_path, mcpspy_path = imported(name, tmp_path)[0], ROOT / "recordings" / "peer-sdk-legacy.jsonl"
    found = compare(read(mcpspy_path), read(imported_path))
    assert [case.method for case in found.cases if case.changes] == []


def test_one_of_another_tool_is_replayed_against_a_real_server(tmp_path: Path) -> None:
    server = [str(ROOT / ".peers/venv/bin/python"), str(ROOT / "tests/peers/servers/sdk_server.py")]
    (path,) = imported("inspector-protocol.json", tmp_path)
    assert main(["replay", str(path), "--no-record", "--", *server]) == 0
    (path,) = imported("mcp-recorder.json", tmp_path)
    # The file has no progress notifications, so the live server sends more messages.
    done = main(
        ["replay", str(path), "--no-record", "--ignore-path", "notifications/progress", "--", *server]
    )
    assert done == 0


# Incomplete and unknown files


HEAD = b'{"mcpspy":1,"id":"00000000","started":"2026-11-21T08:00:00.000Z"}\n'
HAR = b'{"log":{"version":"1.2","entries":[]}}'
REFUSED = {
    "no format": (
        b"hello",
        "unknown format: neither JSON nor SQLite (use --from with one of har, mcp-cassette,",
    ),
    "other JSON": (
        b'[{"a":1,"b":[]}]',
        "unknown format: JSON, whose first object has a, b (",
    ),
    "no object": (b"[1]", "unknown format: JSON, whose first object has no members ("),
    "empty": (b"", "the file is empty"),
    "ours": (HEAD, "already an mcpspy recording (mcpspy show reads it directly)"),
    "HAR 2": (b'{"log":{"version":"2.0","entries":[]}}', "unsupported HAR '2.0' (mcpspy reads 1.1 and 1.2)"),
    "HAR of something": (HAR, "HAR 1.2: none of the 0 entries posts JSON-RPC (check that "),
    "HAR without a part": (
        b'{"log":{"version":"1.2"}}',
        "invalid HAR 1.2: object missing required field `entries`",
    ),
    "cassette 4": (
        b'{"format_version":4,"recorded_at":""}',
        "unsupported mcp-cassette format '4' (mcpspy reads 1 to 3)",
    ),
    "cassette without a part": (
        b'{"format_version":3,"recorded_at":"2026-11-21T08:00:00Z"}',
        "invalid mcp-cassette format 3: object missing required field `messages`",
    ),
    "recorder 2": (
        b'{"version":"2.0","metadata":{}}',
        "unsupported mcp-recorder format '2.0' (mcpspy reads 1)",
    ),
    "mcpsnoop of tomorrow": (
        b'{"session_id":"a","seq":1,"ts":"2026-11-21T08:00:00Z","direction":"x2y"}',
        "invalid mcpsnoop line 1: unknown direction 'x2y' (mcpspy reads files of mcpsnoop up to 0.16)",
    ),
    "mcp-rec without a part": (
        b'{"ts":1,"dir":"client->server","msg":{}}\n{"ts":1,"dir":"up","msg":{}}\n',
        "invalid mcp-rec line 2: invalid enum value 'up' - at `$.dir` (see docs/import.md)",
    ),
    "no messages": (
        b'{"ts":1,"dir":"client->server","msg":{"_raw":" ","_unparsed":true}}',
        "mcp-rec file without messages",
    ),
    "transcript 2": (
        b'{"_type":"meta","version":2,"recorded_at":"","session_id":"","server_command":[]}',
        "unsupported mcp-vcr format 2 (mcpspy reads 0 and 1)",
    ),
    "log of VS Code at the level Info": (
        b"2026-11-21 09:00:00.031 [info] Starting server weather\n",
        "log without messages (set the log level of the server's output to Trace, and start it again)",
    ),
    "log of Claude Desktop without messages": (
        b"2026-11-21T08:00:00.001Z [info] [weather] Initializing server...\n",
        "claude-desktop file without messages",
    ),
    "spans of others": (b'{"resourceSpans":[]}', "contains no MCP spans (see docs/import.md)"),
    "no database": (b"SQLite format 3\0" + b"x" * 99, "mcphawk database: "),
}


def refused(
    name: str, arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str], code: int = 2
) -> str:
    """Import an invalid file; return the one line of the error."""
    out = folder / "written"
    assert main(["import", *arguments, "--dir", str(out)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert not out.exists()
    (line,) = printed.err.splitlines()
    return line.removeprefix(f"mcpspy: {name}: ")


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_in_no_known_format_is_reported_in_one_line(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, printed = REFUSED[what]
    path = tmp_path / "given"
    path.write_bytes(data)
    assert refused(str(path), [str(path)], tmp_path, capsys).startswith(printed)


@pytest.mark.parametrize("name", [name for name in SESSIONS if not name.endswith(".log")])
def test_half_a_file_is_recognised_and_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (FILES / name).read_bytes()
    half = tmp_path / name
    half.write_bytes(data[: len(data) // 2])
    line = refused(str(half), [str(half)], tmp_path, capsys)
    tool = "Inspector" if name.startswith("inspector") else name.partition(".")[0].removesuffix("-http")
    assert {"mitmproxy": "HAR", "mcp-rec-modern": "mcp-rec"}.get(tool, tool) in line
    assert name == "mcphawk.db" or "incomplete" in line


@pytest.mark.parametrize("version", [0, 2])
def test_a_database_of_another_schema_is_refused(
    version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mcphawk.db"
    shutil.copy(FILES / "mcphawk.db", path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")
    line = refused(str(path), [str(path)], tmp_path, capsys)
    assert line == f"unsupported mcphawk schema {version} (mcpspy reads 1, that of mcphawk 1.0)"


def test_no_file_is_overwritten_and_none_that_is_not_there_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, source = tmp_path / "x.jsonl", str(FILES / "mcp-rec.jsonl")
    there.write_bytes(b"mine")
    printed = refused("", [source, "-o", str(there)], tmp_path, capsys)
    assert printed == f"mcpspy: {there}: file exists (use another name)"
    assert there.read_bytes() == b"mine"
    printed = refused("gone", ["gone"], tmp_path, capsys)
    assert printed == "no such file"


def test_a_disk_that_is_full_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, out = os.write, tmp_path / "x.jsonl"

    def full(fd: int, data: bytes) -> int:
        if b'"from":' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    line = refused("", [str(FILES / "mcp-rec.jsonl"), "-o", str(out)], tmp_path, capsys, 3)
    assert line == f"mcpspy: cannot write {out}: No space left on device (this session was not imported)"
    assert not out.exists()


# Selection of sessions, and output files


def test_one_session_of_several_is_chosen_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = str(FILES / "mcpsnoop.jsonl"), tmp_path / "one.jsonl"
    line = refused(source, [source, "-o", str(out)], tmp_path, capsys)
    assert line == "2 sessions cannot be written to one file (use --session with 1f0c52aa9be4, 77aa01c4d2ef)"
    line = refused(source, [source, "--session", "nope"], tmp_path, capsys)
    assert line == "contains no session nope (use 1f0c52aa9be4, 77aa01c4d2ef)"
    assert main(["import", source, "--session", "77aa01c4d2ef", "-o", str(out), "--name", "mine"]) == 0
    assert header(out)["name"] == "mine"
    assert [exchange.request.frame.stream for exchange in read(out).exchanges] == ["1", "2"]
    capsys.readouterr()
    assert main(["show", str(out)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("exit unknown")


def test_stdin_is_imported_and_the_report_is_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (FILES / "mcp-rec.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert main(["import", "-", "--format", "json", "--dir", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    (session,) = report.pop("sessions")
    assert report == {"in": "-", "format": "mcp-rec", "lost": 0}
    path = Path(session["out"])
    assert path.parent == tmp_path
    assert (session["messages"], session["session"], session["changed"]) == (65, None, [])
    assert header(path)["imported"] == {"from": "mcp-rec", "lacks": session["lacks"], "changed": []}
    assert header(path)["name"] == "mcp-rec"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((FILES / "mcphawk.db").read_bytes())))
    line = refused("stdin", ["-"], tmp_path, capsys)
    assert line == "a database cannot be read from a pipe (name the file)"


def test_a_format_that_is_named_is_not_looked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(FILES / "mcp-rec.jsonl")
    line = refused(source, [source, "--from", "mcpsnoop"], tmp_path, capsys)
    assert line.startswith("invalid mcpsnoop line 1: expected `str`, got `float` - at `$.ts`")
    line = refused(source, [source, "--from", "mcphawk"], tmp_path, capsys)
    assert line.startswith("mcphawk database: file is not a database")


def test_a_secret_in_an_imported_file_is_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"arguments": {"password": "swordfish"}},
    }
    path.write_text(json.dumps({"ts": 1.5, "dir": "client->server", "msg": call}) + "\n", encoding="utf-8")
    assert main(["import", str(path), "-o", str(out)]) == 0
    assert b"swordfish" not in out.read_bytes()
    assert header(out)["redacted"] is True
    assert main(["import", str(path), "-o", f"{out}2", "--no-redact"]) == 0
    assert b"swordfish" in Path(f"{out}2").read_bytes()


# Export and import again


def test_an_otlp_export_contains_no_message_bodies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = tmp_path / "x.otlp.json"
    assert main(["export", str(ROOT / MCPSPY_LINES[0]), "-o", str(spans)]) == 0
    capsys.readouterr()
    line = refused(str(spans), [str(spans)], tmp_path, capsys)
    assert line.startswith("contains no message bodies, only the names and times of 37 MCP spans (")


MCPSPY_LINES = [
    "recordings/peer-sdk-legacy.jsonl",
    "recordings/everything-sdk-legacy.jsonl",
    "recordings/peer-sdk-auto.jsonl",
    "tests/analysis/export/recordings/peer-http-legacy.jsonl",
    "tests/analysis/export/recordings/peer-http-modern.jsonl",
    "tests/analysis/export/recordings/peer-sse-legacy.jsonl",
]


@pytest.mark.parametrize("name", MCPSPY_LINES)
def test_a_har_export_is_imported_without_changes(name: str, tmp_path: Path) -> None:
    mcpspy_path, har, back = ROOT / name, tmp_path / "x.har", tmp_path / "x.jsonl"
    assert main(["export", str(mcpspy_path), "-o", str(har)]) == 0
    assert main(["import", str(har), "-o", str(back)]) == 0
    found = compare(read(mcpspy_path), read(back))
    assert [case.method for case in found.cases if case.changes] == []
    assert header(back)["name"] == header(mcpspy_path)["name"]
    assert header(back)["transport"] == header(mcpspy_path)["transport"]
    assert header(back).get("upstream") == header(mcpspy_path).get("upstream")


def test_an_http_export_is_imported_with_its_heads_and_streams(tmp_path: Path) -> None:
    (first,) = imported("mitmproxy.har", tmp_path)
    har, back = tmp_path / "x.har", tmp_path / "x.jsonl"
    assert main(["export", str(first), "-o", str(har)]) == 0
    assert main(["import", str(har), "-o", str(back)]) == 0
    lines = [path.read_bytes().split(b"\n")[1:] for path in (first, back)]
    assert [shorn(line) for line in lines[0]] == [shorn(line) for line in lines[1]]


def shorn(line: bytes) -> bytes:
    """Return a line of a recording without its times, which are rounded, and names and ends of events, which exports omit."""
    gone = (b'{"t":', b'"asked_at":', b'"event":"message"', b'"event_end":')
    return b",".join(part for part in line.split(b",") if not part.startswith(gone))


# Any content


BROKEN = st.sampled_from(sorted(SESSIONS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.lists(
            st.tuples(st.integers(0, 1 << 30), st.integers(1, 60), st.binary(max_size=4)),
            min_size=1,
            max_size=4,
        ),
    )
)


@given(broken=BROKEN)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_makes_a_traceback(
    broken: tuple[str, list[tuple[int, int, bytes]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, edits = broken
    data = (FILES / name).read_bytes()
    for place, length, other in edits:
        at = place % len(data)
        data = data[:at] + other + data[at + length :]
    path, out = tmp_path / "x", tmp_path / "out.jsonl"
    path.write_bytes(data)
    out.unlink(missing_ok=True)
    code = main(["import", str(path), "-o", str(out)])
    printed = capsys.readouterr().err
    assert code in (0, 2), printed
    if code == 2:
        assert len(printed.splitlines()) == 1
        assert not out.exists()
    else:
        read(out)
