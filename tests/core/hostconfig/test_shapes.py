"""Shapes of configurations, and the members of entries in those that are not the standard one."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mcpspy.core.hostconfig.edit import ServersLocation, unwrapped, wrapped
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.hostconfig.servers import read
from mcpspy.core.hostconfig.shapes import (
    AMP,
    CONTINUE,
    CRUSH,
    DEVCONTAINER,
    GOOSE,
    LIBRECHAT,
    OPENCODE,
    OPENCODE_2,
    PLUGIN,
    SHAPES,
    locate,
    places,
)
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.core.hostconfig.yaml import resolved
from tests.core.hostconfig import configs

HOW = WrapTarget(["/bin/mcpspy"])
STDIO: dict[str, Any] = {"command": "x"}
LOCAL = {"type": "local", "command": ["x", "y"]}
REMOTE = {"type": "remote", "url": "http://localhost:1/mcp"}
HTTP = {"type": "http", "url": "http://localhost:1/mcp"}


def found(text: str, syntax: ConfigSyntax = ConfigSyntax.JSON) -> ServersLocation | None:
    return locate(read(text, syntax), [shape for shape in SHAPES if shape.syntax is syntax])


@pytest.mark.parametrize(
    ("document", "keys", "is_list"),
    [
        ({"mcp": {"a": LOCAL}}, OPENCODE.keys, True),
        ({"mcp": {"a": REMOTE}}, OPENCODE.keys, True),
        ({"mcp": {"a": STDIO}}, CRUSH.keys, False),
        ({"mcp": {"a": HTTP}}, CRUSH.keys, False),
        ({"mcp": {"servers": LOCAL}}, OPENCODE.keys, True),
        ({"mcp": {"timeout": {"catalog": 1}, "servers": {"a": LOCAL}}}, OPENCODE_2.keys, True),
        ({"mcp": {"servers": {"a": REMOTE}}}, OPENCODE_2.keys, True),
        ({"mcp": {"servers": {"a": STDIO}}}, ("mcp", "servers"), False),
        ({"amp.mcpServers": {"a": STDIO}, "amp.x": 1}, AMP.keys, False),
        ({"customizations": {"vscode": {"mcp": {"servers": {"a": STDIO}}}}}, DEVCONTAINER.keys, False),
        ({"$schema": "x", "a": STDIO, "b": HTTP}, PLUGIN.keys, False),
        ({"mcpServers": {}, "servers": {"a": STDIO}}, ("servers",), False),
        (
            {"servers": [{"url": "https://api.example.com"}], "mcpServers": {"a": STDIO}},
            ("mcpServers",),
            False,
        ),
        ({"mcpServers": {}}, ("mcpServers",), False),
        ({"mcpServers": None}, ("mcpServers",), False),
    ],
    ids=str,
)
def test_the_servers_of_a_file_are_found_by_its_content(
    document: object, keys: tuple[str, ...], is_list: bool
) -> None:
    location = found(json.dumps(document))

    assert location is not None
    assert (location.keys, location.layout.is_list) == (keys, is_list)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcpServers: [{name: a, command: x}]", CONTINUE),
        ("version: 1\nmcpServers:\n  a: {command: x}\n", LIBRECHAT),
        ("GOOSE_MODE: auto\nextensions:\n  developer: {type: builtin}\n", GOOSE),
    ],
    ids=["continue", "librechat", "goose"],
)
def test_files_in_yaml_are_recognised_by_their_content(text: str, expected: ServersLocation) -> None:
    assert found(text, ConfigSyntax.YAML) == expected


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"name": "x", "scripts": {"build": "tsc"}},
        {"a": STDIO, "b": {"unrelated": 1}},
        {"mcpServers": 7},
        [],
    ],
    ids=str,
)
def test_a_file_without_servers_has_no_location(document: object) -> None:
    assert found(json.dumps(document)) is None


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.keys], ids=lambda s: ".".join(s.keys))
@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32), number=st.sampled_from([1, 3]))
def test_a_wrapped_file_has_the_shape_that_it_had_before(
    shape: ServersLocation, seed: int, number: int
) -> None:
    rng = Random(seed)
    made = configs.entries(rng, shape, number)
    text = configs.text(rng, shape, made)
    names = [name for name, _ in made]

    location = found(text, shape.syntax)

    assert location is not None
    assert location.keys == shape.keys
    edited = wrapped(text, location, names, HOW._replace(insists=True))
    assert found(edited.text, shape.syntax) == location
    assert unwrapped(edited.text, location, edited.done).text == text


def test_the_places_that_are_searched_are_listed_once() -> None:
    assert places(ConfigSyntax.YAML) == "mcpServers, extensions"
    assert "amp.mcpServers" in places(ConfigSyntax.JSON).split(", ")
    assert "" not in places(ConfigSyntax.JSON).split(", ")


def test_a_command_that_is_a_list_gets_its_words_in_front() -> None:
    text = '{"mcp": {"a": {"type": "local", "command": [\n  "npx",\n  "-y"\n], "environment": {"K": "v"}}}}'

    edited = wrapped(text, OPENCODE, ["a"], HOW)

    assert json.loads(edited.text)["mcp"]["a"] == {
        "type": "local",
        "command": ["/bin/mcpspy", "run", "--name", "a", "--", "npx", "-y"],
        "environment": {"K": "v"},
    }
    assert unwrapped(edited.text, OPENCODE, ["a"]).text == text


def test_a_remote_server_of_opencode_becomes_a_local_one_that_its_schema_accepts() -> None:
    entry = {**REMOTE, "headers": {"X": "{env:KEY}"}, "oauth": False, "enabled": True, "timeout": 5}
    text = json.dumps({"mcp": {"a": entry}}, indent=2)

    edited = wrapped(text, OPENCODE, ["a"], HOW)

    made = json.loads(edited.text)["mcp"]["a"]
    assert made.keys() == {"type", "command", "environment", "enabled", "timeout"}
    assert made["type"] == "local"
    assert made["command"][-2:] == ["--header-env", "X=MCPSPY_HEADER_X"]
    assert made["environment"]["MCPSPY_HEADER_X"] == "{env:KEY}"
    assert unwrapped(edited.text, OPENCODE, ["a"]).text == text


@pytest.mark.parametrize(("oauth", "is_wrapped"), [(False, True), ({}, False), (True, False)])
def test_a_server_whose_login_is_switched_off_needs_no_insisting(oauth: object, is_wrapped: bool) -> None:
    entry = {"type": "remote", "url": "https://x.org/mcp", "oauth": oauth}

    edited = wrapped(json.dumps({"mcp": {"a": entry}}), OPENCODE, ["a"], HOW)

    assert (edited.done == ["a"]) is is_wrapped


@pytest.mark.parametrize(
    ("command", "why"),
    [("x", "not a list of strings"), ([], "not a list of strings"), (["x", 1], "not a list of strings")],
    ids=str,
)
def test_a_command_that_should_be_a_list_is_a_reason(command: object, why: str) -> None:
    text = json.dumps({"mcp": {"a": {"type": "local", "command": command}}})

    assert why in wrapped(text, OPENCODE, ["a"], HOW).left["a"]


def test_a_wrapped_list_without_its_command_is_left_alone() -> None:
    text = '{"mcp": {"a": {"type": "local", "command": ["mcpspy", "run", "--name", "a", "--"]}}}'

    assert "no command follows" in unwrapped(text, OPENCODE, ["a"]).left["a"]


GOOSE_CONFIG = """\
extensions:
  developer:
    enabled: true
    type: builtin
  github:
    type: stdio
    cmd: npx  # mine
    args:
      - -y
      - server-github
    envs: {}
    env_keys: [GITHUB_TOKEN]
  far:
    type: streamable_http
    uri: http://localhost:1/mcp
    headers:
      X-Key: k3y
  keyring:
    type: streamable_http
    uri: http://localhost:1/mcp
    headers: {Authorization: Bearer $TOKEN}
"""


def test_extensions_of_goose_keep_its_names_of_members() -> None:
    edited = wrapped(GOOSE_CONFIG, GOOSE, ["developer", "github", "far", "keyring"], HOW)

    document: Any = resolved(edited.text)
    made = document["extensions"]
    assert edited.done == ["github", "far"]
    assert edited.left == {
        "developer": "it is a part of the host (type builtin)",
        "keyring": "it uses variables of the host, which the host does not fill in for the bridge",
    }
    assert made["github"] == {
        "type": "stdio",
        "cmd": "/bin/mcpspy",
        "args": ["run", "--name", "github", "--", "npx", "-y", "server-github"],
        "envs": {},
        "env_keys": ["GITHUB_TOKEN"],
    }
    assert made["far"].keys() == {"type", "cmd", "args", "envs"}
    assert (made["far"]["type"], made["far"]["envs"]["MCPSPY_HEADER_X_KEY"]) == ("stdio", "k3y")
    assert unwrapped(edited.text, GOOSE, ["github", "far"]).text == GOOSE_CONFIG


def test_the_file_of_a_plugin_is_wrapped_without_a_key_around_it() -> None:
    text = '{\n  "db": {"command": "${CLAUDE_PLUGIN_ROOT}/db", "args": ["--fast"]},\n  "far": {"url": "http://localhost:1/"}\n}\n'

    edited = wrapped(text, PLUGIN, ["db", "far"], HOW)

    assert edited.done == ["db", "far"]
    assert json.loads(edited.text)["db"]["args"][-2:] == ["${CLAUDE_PLUGIN_ROOT}/db", "--fast"]
    assert unwrapped(edited.text, PLUGIN, ["db", "far"]).text == text
