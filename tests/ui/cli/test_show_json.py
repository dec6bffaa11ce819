"""`mcpspy show --format json`: every line fits docs/show.schema.json, and needs no other line."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.export.exchange_lines import COLUMNS, export_csv, export_jsonl
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session
from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.show_format import JsonFormatter
from tests.analysis.export.sessions import EVERY, call, recorded, result
from tests.analysis.export.sessions import HEADER as STDIO

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "show.schema.json").read_text(encoding="utf-8"))

HEADER = {
    "mcpspy": 1,
    "id": "a1b2c3d4",
    "started": "2026-01-01T00:00:00.000Z",
    "transport": "http",
    "name": "web",
}


@cache
def validator() -> Any:
    return jsonschema_rs.validator_for(SCHEMA)


def printed(path: Path, *options: str) -> list[dict[str, Any]]:
    """Return the lines that `show --format json` prints, each checked against the schema."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        assert main(["show", str(path), "--format", "json", *options]) == 0
    assert isinstance(out.buffer, io.BytesIO)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in out.buffer.getvalue().splitlines()]
    for line in lines:
        errors = [
            f"{error.message} at {error.instance_path} in {line}" for error in validator().iter_errors(line)
        ]
        assert errors == []
    return lines


@pytest.fixture
def two_clients(tmp_path: Path) -> Path:
    """Return an HTTP recording of two clients; the second one sends a batch."""
    entries: list[dict[str, Any]] = [HEADER]

    def add(side: str, stream: str, msg: object) -> None:
        entries.append(
            {"t": len(entries) / 8, "from": side, "stream": stream, "http": len(entries), "msg": msg}
        )

    for stream, name in (("1", "one"), ("2", "two")):
        asked = {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        }
        told = {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "serverInfo": {"name": "srv", "version": "2"},
        }
        add("client", stream, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked})
        add("server", stream, {"jsonrpc": "2.0", "id": 0, "result": told})
    call = {"name": "echo", "_meta": {"progressToken": "p"}}
    steps = {"progressToken": "p", "progress": 1.50, "total": 3, "message": "half"}
    add(
        "client",
        "2",
        [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
            {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "file:///x"}},
            {"jsonrpc": "2.0", "id": 3, "method": "prompts/get", "params": {"name": "hello"}},
        ],
    )
    add("server", "2", {"jsonrpc": "2.0", "method": "notifications/progress", "params": steps})
    failed = {"isError": True, "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "disk"}]}
    add("server", "2", {"jsonrpc": "2.0", "id": 1, "result": failed})
    add("server", "2", {"jsonrpc": "2.0", "id": 2, "error": {"code": -32002, "message": "none"}})
    add("server", "1", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what"}})
    entries.append(
        {"t": 9, "note": "http", "n": -1, "session": 7, "method": "POST", "status": 200, "stream": "2"}
    )
    path = tmp_path / "two.jsonl"
    path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
    return path


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_line_of_a_real_session_fits_the_schema(path: Path) -> None:
    lines = printed(path, "-v", "--lint")

    assert [line["n"] for line in lines] == list(range(len(lines)))
    assert {line["name"] for line in lines} == {lines[0]["name"]}
    for line in lines:
        if line["kind"] == "request" and "response_n" in line:
            answer = lines[line["response_n"]]
            assert answer["request_n"] == line["n"]
            shared = ("exchange", "status", "latency_ms", "request_bytes", "response_bytes", "code", "error")
            assert [line.get(name) for name in shared] == [answer.get(name) for name in shared]
            assert (line["bytes"], answer["bytes"]) == (line["request_bytes"], line["response_bytes"])


def test_a_request_has_its_outcome_target_batch_and_peers(two_clients: Path) -> None:
    lines = printed(two_clients)
    tool, resource, prompt = lines[4:7]

    common = {"session": "a1b2c3d4", "name": "web", "stream": "2", "client": "two 1", "server": "srv 2"}
    assert {name: tool[name] for name in common} == common
    assert (tool["revision"], tool["time"], tool["t"]) == ("2025-03-26", "2026-01-01T00:00:00.625000Z", 0.625)
    assert (tool["status"], tool["latency_ms"], tool["response_n"]) == ("tool error", 250.0, 8)
    assert tool["error"] == {"name": "tool error", "message": "no\ndisk"}
    assert (tool["tool"], tool["batch"], tool["progress_count"]) == ("echo", {"index": 0, "size": 3}, 1)
    assert (resource["uri"], resource["status"], resource["code"]) == ("file:///x", "error", -32002)
    assert resource["error"] == {"name": "resource not found", "message": "none"}
    assert (prompt["prompt"], prompt["status"], prompt["latency_ms"]) == ("hello", "no answer", None)
    assert (prompt["response_bytes"], "response_n" in prompt) == (None, False)
    assert [line["client"] for line in lines[:3]] == ["one 1", "one 1", "two 1"]


def test_progress_an_error_without_a_request_and_a_note_have_their_own_values(two_clients: Path) -> None:
    progress, *_, stray, note = printed(two_clients)[7:]

    assert progress["progress"] == {"token": "p", "progress": 1.5, "total": 3, "message": "half"}
    assert progress["exchange"] == printed(two_clients)[4]["exchange"]
    assert (stray["id"], stray["status"], stray["code"]) == (None, "error", -32700)
    assert stray["error"] == {"name": "parse error", "message": "what"}
    assert (note["n"], note["session"], note["note"], note["status"]) == (11, "a1b2c3d4", "http", 200)


def test_a_request_that_is_printed_at_once_is_pending(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    session = Session(STDIO)
    formatter = JsonFormatter(STDIO, verbose=False)
    for entry in (call(0.1), result(0.3)):
        for change in session.add(entry):
            formatter.change(change, shown=True)

    first, second = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert (first["status"], first["latency_ms"], "response_n" in first) == ("pending", None, False)
    assert (second["status"], second["latency_ms"], second["request_n"]) == ("ok", 200.0, 0)
    assert validator().is_valid(first)


def test_the_exports_have_the_same_columns(two_clients: Path) -> None:
    session = recorded(two_clients)
    requests = [line for line in printed(two_clients) if line["kind"] == "request"]
    exported = [json.loads(line) for line in "".join(export_jsonl([session])).splitlines()]

    own = {"n", "kind", "bytes", "request_n", "response_n", "flaws"}
    for line, same in zip(requests, exported, strict=True):
        columns = set(line) - own
        assert {name: line[name] for name in columns} == {name: same[name] for name in columns}
        flat = {f"{name}_{key}" for name in ("batch", "error") for key in line.get(name, ())}
        assert columns - {"batch", "error"} | flat <= set(COLUMNS)
    *_, tool, resource, prompt = "".join(export_csv([session])).splitlines()
    assert ",two 1,srv 2,2025-03-26,client,resources/read," in resource
    assert ",1,3,error,375.0,-32002,resource not found,none," in resource
    assert ",0,3,tool error,250.0,,tool error,no" in tool
    assert prompt.endswith(",no answer,73,,0,")


def test_the_schema_knows_every_status() -> None:
    known = SCHEMA["$defs"]["message"]["properties"]["status"]["enum"]

    assert {*State, None} <= set(known)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
IDS = st.one_of(
    st.integers(0, 2), st.sampled_from(["1", None, 1.0, True, 10**30, float("inf"), "\ud800"]), JSON
)
METHODS = st.sampled_from(
    ["initialize", "tools/call", "resources/read", "notifications/progress", "ping", "\ud800", 7]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": JSON,
        "uri": JSON,
        "progressToken": IDS,
        "progress": JSON,
        "total": JSON,
        "message": JSON,
        "clientInfo": st.fixed_dictionaries({"name": JSON, "version": JSON}),
        "_meta": st.fixed_dictionaries({"progressToken": IDS}),
    },
)
RESULTS = st.fixed_dictionaries(
    {"isError": st.booleans(), "content": JSON | st.lists(st.fixed_dictionaries({"text": JSON}))}
)
MESSAGE = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": IDS,
        "method": METHODS,
        "params": PARAMS | JSON,
        "result": RESULTS | JSON,
        "error": st.fixed_dictionaries({"code": JSON, "message": JSON}) | JSON,
    },
)
ENTRY = st.one_of(
    st.fixed_dictionaries(
        {
            "t": st.floats(0, 1e12),
            "from": st.sampled_from(["client", "server"]),
            "msg": MESSAGE | st.lists(MESSAGE, max_size=3),
        },
        optional={"stream": st.sampled_from(["1", "2"]), "http": st.integers(1, 3)},
    ),
    st.fixed_dictionaries(
        {"t": st.floats(-1, 1e3), "note": st.text(max_size=5) | st.just("http-end")}
    ).flatmap(
        lambda note: st.dictionaries(
            st.sampled_from(["n", "kind", "status", "text", "b64", "http"]), JSON
        ).map(lambda more: {**note, **more})
    ),
).map(lambda entry: json.dumps(entry, separators=(",", ":")).encode())
LINES = st.one_of(ENTRY, ENTRY, ENTRY, st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")))


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=12))
def test_every_line_of_any_session_fits_the_schema(lines: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_bytes(b"\n".join([orjson.dumps(HEADER), *lines, b""]))
        for options in ((), ("-v", "--follow")):
            with contextlib.redirect_stderr(sys.stdout):
                printed(path, *options)


def test_the_effect_of_a_rule_is_in_the_line_of_its_message(tmp_path: Path) -> None:
    path = tmp_path / "dropped.jsonl"
    ping = {"t": 0.1, "from": "client", "to": "mcpspy", "msg": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}
    rule = {
        "t": 0.1,
        "note": "rule",
        "from": "client",
        "id": "1",
        "method": "ping",
        "action": "drop",
        "rule": 3,
    }
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (HEADER, ping, rule)), encoding="utf-8")

    dropped, _ = printed(path)

    assert (dropped["status"], dropped["effect"]) == ("dropped", "dropped (rule 3)")
