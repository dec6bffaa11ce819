"""Tests are served from a listing and from fixtures, without a recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from mcpspy.errors import McpspyError, UsageError
from mcpspy.ui.pytest_plugin import MODES
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.pytest_plugin.options import PluginOptions
from tests.ui.pytest_plugin.conversing import call, call_over_http
from tests.ui.pytest_plugin.test_options import Request, mark, read

if TYPE_CHECKING:
    from tests.ui.conftest import Make, Said

ADD = {
    "name": "add",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}

WRITTEN = """\
- tool: add
  arguments: {a: 1}
  result: three
"""

Begin = Callable[..., McpRecording]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Begin a test with a listing and fixtures in its folder."""
    (tmp_path / "tools.json").write_text(json.dumps([ADD]), encoding="utf-8")
    (tmp_path / "fixtures.yaml").write_text(WRITTEN, encoding="utf-8")

    def begin(mode: str = "none", **options: Any) -> McpRecording:
        fields: dict[str, Any] = {"test": "test_a", "path": tmp_path / "x.jsonl", "mode": mode}
        return McpRecording(PluginOptions(**fields, **options), tmp_path / "run")

    return begin


def end(recording: McpRecording) -> str:
    recording.has_passed = True
    return recording.finish()


@pytest.mark.parametrize("mode", ["none", "all"])
def test_a_listing_is_served_and_nothing_is_recorded(mode: str, begin: Begin, tmp_path: Path) -> None:
    written = {"listing": tmp_path / "tools.json", "fixtures": (tmp_path / "fixtures.yaml",)}
    test = begin(mode, **written)
    assert not test.records_all
    over_http = call_over_http(test.url, ("add", {"a": 1}), ("add", {"a": 2}))
    assert over_http[0] == "three"
    if mode == "all":
        assert call(test.command, ("add", {"a": 1}), ("add", {"a": 2})) == over_http
    assert end(test) == ""
    assert not (tmp_path / "x.jsonl").exists()


def test_a_request_that_nothing_answers_fails_the_test_with_the_names_of_the_files(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = begin(fixtures=(tmp_path / "fixtures.yaml",))
    call_over_http(test.url, ("add", {"a": 1}), ("subtract", {"a": 5}))
    headline, *_ = end(test).splitlines()
    assert headline == "mcpspy: 1 request without a response in fixtures.yaml"


def test_fixtures_answer_before_an_existing_recording(
    begin: Begin, tmp_path: Path, make_recording: Make
) -> None:
    hello = b'"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    result = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}'
    ask = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":%d}}}'
    said: list[Said] = [
        (
            "client",
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%b"clientInfo":{"name":"c","version":"1"}}}'
            % hello,
        ),
        (
            "server",
            b'{"jsonrpc":"2.0","id":0,"result":{%b"serverInfo":{"name":"s","version":"1"}}}' % hello,
        ),
        ("client", ask % (1, 1)),
        ("server", result % (1, b"recorded")),
        ("client", ask % (2, 2)),
        ("server", result % (2, b"recorded")),
    ]
    make_recording(said).rename(tmp_path / "x.jsonl")
    test = begin("all", fixtures=(tmp_path / "fixtures.yaml",))
    assert call_over_http(test.url, ("add", {"a": 1}), ("add", {"a": 2})) == ["three", "recorded"]
    assert end(test) == ""


def test_a_listing_that_cannot_be_read_is_an_error_before_the_test(begin: Begin, tmp_path: Path) -> None:
    with pytest.raises(McpspyError, match=r"gone\.yaml: No such file"):
        begin(fixtures=(tmp_path / "gone.yaml",))
    with pytest.raises(McpspyError, match=r"gone\.json"):
        begin(listing=tmp_path / "gone.json")


def test_a_listing_of_the_marker_needs_neither_a_recording_nor_a_server(tmp_path: Path) -> None:
    asked = Request(tmp_path, mark(listing="tools.json", fixtures=["a.yaml"]), mark("far.jsonl", mode="none"))
    options = read(asked)
    assert (options.listing, options.fixtures) == (tmp_path / "tools.json", (tmp_path / "a.yaml",))
    assert not any(structs.replace(options, mode=mode).records for mode in MODES)
    assert asked.asked_for == []
    near = read(Request(tmp_path, mark("near.jsonl", server=["s"], mode="once"), mark(listing="tools.json")))
    assert (near.path, near.listing) == (tmp_path / "near.jsonl", None)
    with pytest.raises(UsageError, match="a recording and a listing exclude each other"):
        read(Request(tmp_path, mark("x.jsonl", listing="tools.json")))
    with pytest.raises(UsageError, match="listing=3: not the path of a listing"):
        read(Request(tmp_path, mark(listing=3)))
    with pytest.raises(UsageError, match=r"fixtures='a\.yaml': not a list"):
        read(Request(tmp_path, mark(fixtures="a.yaml")))
