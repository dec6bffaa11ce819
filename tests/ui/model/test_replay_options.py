"""The options of a replay: texts of the dialog, proposals, and those of the last replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from mcpspy.core.recording.decode import Header
from mcpspy.errors import UsageError
from mcpspy.ui.model.replay_options import ReplayForm, proposals, redacted_keys, remember, remembered
from tests.io.files import frame

HEADER = Header(
    mcpspy=1, id="0", started="2026-01-01T00:00:00.000Z", command=["node", "a b.js"], name="weather"
)


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TOKEN", "t0")


def test_a_command_has_a_folder_and_variables() -> None:
    form = ReplayForm(
        server="node 'a b.js' ${TOKEN}", cwd="/srv", environment="A=1 B='x y'", secrets="key= tag=${TOKEN}"
    )
    config = form.config()
    assert config["command"] == ["node", "a b.js", "t0"]
    assert (config["cwd"], config["environment"]) == ("/srv", {"A": "1", "B": "x y"})
    assert config["secrets"] == {"tag": "t0"}
    assert (config["serial"], config["volatile"], config["timeout"]) == (False, True, 30.0)


def test_a_url_has_headers() -> None:
    form = ReplayForm(
        server="http://127.0.0.1:1/mcp", headers="Authorization: Bearer ${TOKEN}; X-A: 1", order="serial"
    )
    config = form.config()
    assert config["url"] == "http://127.0.0.1:1/mcp"
    assert config["headers"] == [("Authorization", "Bearer t0"), ("X-A", "1")]
    assert config["serial"]
    assert "command" not in config


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"server": ""}, "server: missing"),
        ({"server": "a [redacted:00000000]"}, "redacted value"),
        ({"server": "http://"}, "not a URL"),
        ({"server": "a 'b"}, "no closing quotation"),
        ({"server": "a ${NOT_SET_HERE}"}, "NOT_SET_HERE is not set"),
        ({"server": "a", "environment": "x"}, "not NAME=VALUE"),
        ({"server": "http://a/", "headers": "x"}, "not NAME: VALUE"),
        ({"server": "a", "ignored": "result"}, "ignored values"),
        ({"server": "a", "timeout": "soon"}, "timeout"),
    ],
)
def test_mistakes_are_named(fields: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ReplayForm(**fields).config()


def test_the_recorded_server_and_those_of_hosts_are_proposed(tmp_path: Path) -> None:
    servers = {
        "weather": {
            "command": "mcpspy",
            "args": ["run", "--name", "weather", "--", "node", "w.js"],
            "env": {"A": "1"},
        },
        "far": {"url": "https://far.example/mcp", "headers": {"X": "y"}},
    }
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    first, *others = proposals(HEADER)
    assert first.server == "node 'a b.js'"
    mine = {each.title: each for each in others}
    assert (mine["cursor: weather"].server, mine["cursor: weather"].environment) == ("node w.js", "A=1")
    assert (mine["cursor: far"].server, mine["cursor: far"].headers) == ("https://far.example/mcp", "X: y")


def test_a_command_that_was_offered_over_http_is_proposed_in_place_of_its_url() -> None:
    offered = structs.replace(HEADER, transport="http", upstream="http://127.0.0.1:8808/mcp")
    assert next(iter(proposals(offered))).server == "node 'a b.js'"


def test_options_are_remembered_per_server_without_secrets() -> None:
    form = ReplayForm(
        server="node b.js", environment="A=1", headers="A: 1", secrets="a=1", speed="1", values="all"
    )
    remember(HEADER, form)
    assert remembered(HEADER) == ReplayForm(server="node b.js", speed="1", values="all")
    remember(HEADER, ReplayForm(server="node b.js --api-key sk-ant-api03-0123456789abcdef0123456789abcdef"))
    assert remembered(HEADER).server == ""
    other = Header(mcpspy=1, id="0", started="2026-01-01T00:00:00.000Z", command=["x"], name="weather")
    assert remembered(other) == ReplayForm()


def test_redacted_values_are_named_by_their_key_or_tag(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    params = {"arguments": {"api_key": "[redacted:00000001]", "text": "x [redacted:00000002]"}}
    header = json.dumps({"mcpspy": 1, "id": "0", "started": "2026-01-01T00:00:00.000Z"}).encode() + b"\n"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    path.write_bytes(
        header + frame(0.1, "client", message) + frame(0.2, "server", {"a": "[redacted:00000003]"})
    )
    assert redacted_keys(path) == ["api_key", "00000002"]
    assert redacted_keys(tmp_path / "none.jsonl") == []
