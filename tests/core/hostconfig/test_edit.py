"""Wrapping and unwrapping in configurations of all hosts."""

from __future__ import annotations

import json
import tomllib
from argparse import ArgumentParser
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mcpspy.core.hostconfig import wrap
from mcpspy.core.hostconfig.edit import UNSAFE, ServersLocation, unwrapped, wrapped
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.servers import EntryKind
from mcpspy.core.hostconfig.shapes import SHAPES
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.io.hosts import HOSTS
from mcpspy.ui.cli import bridge
from mcpspy.ui.cli.parser import describe
from mcpspy.ui.cli.run import parse
from tests.core.hostconfig import configs

BRIDGE = ArgumentParser()
describe(BRIDGE, bridge.OPTIONS)
HOW = WrapTarget(["/opt/my tools/mcpspy"], ["--dir", "/data"], insists=True)
JSON = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)
TOML = next(host.location for host in HOSTS if host.name == "codex")
YAML_ = next(host.location for host in HOSTS if host.name == "continue")

HOMES = [pytest.param(host.location, id=host.name) for host in HOSTS]
HOMES += [
    pytest.param(shape, id=f"{shape.syntax} {'.'.join(shape.keys)} {number}")
    for number, shape in enumerate(SHAPES)
    if shape.keys
]
"""The shape of every host, and all that mcpspy looks for in the file of an unknown host."""


def read(text: str, home: ServersLocation) -> dict[str, Any]:
    """Read a configuration with an independent parser; JSON must have no comments."""
    text = text.removeprefix("\ufeff")
    if home.syntax is ConfigSyntax.TOML:
        return tomllib.loads(text)
    found = json.loads(text) if home.syntax is ConfigSyntax.JSON else YAML(typ="safe", pure=True).load(text)
    assert isinstance(found, dict)
    return found


def entries(value: Any, home: ServersLocation) -> dict[str, Any]:
    for key in home.keys:
        value = value[key]
    return {entry["name"]: entry for entry in value} if home.layout.named else value


def names(text: str, home: ServersLocation) -> list[str]:
    return [server.name for server in home.servers(text)]


@pytest.mark.parametrize("home", HOMES)
# Shrinking a seed is useless. Shapes of hosts are alike: 12 examples of each are some 800.
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32), number=st.sampled_from([0, 1, 3, 6]))
def test_wrapping_and_unwrapping_restores_every_byte(home: ServersLocation, seed: int, number: int) -> None:
    rng = Random(seed)
    made = configs.entries(rng, home, number)
    text = configs.text(rng, home, made)
    all_names = [name for name, _ in made]

    edited = wrapped(text, home, all_names, HOW)

    assert edited.left == {}
    assert sorted(edited.done) == sorted(all_names)
    assert unwrapped(edited.text, home, all_names).text == text
    again = wrapped(edited.text, home, all_names, HOW)
    assert again.text == edited.text
    assert sorted(again.already) == sorted(edited.done)
    starts = {server.name: server for server in home.servers(edited.text)}
    for name, entry in made:
        check(starts[name].argv, name, entry, home.layout)


def check(argv: list[str], name: str, entry: dict[str, Any], layout: EntryLayout) -> None:
    """Assert that the command line starts the entry, according to the parser of `run`."""
    assert argv[0] == HOW.program[0]
    if layout.command in entry:
        assert argv[1] == "run"
        options = parse(argv[2:])
        assert options is not None
        assert (options.name, options.folder) == (name, "/data")
        original = entry[layout.command]
        assert options.command == (original if layout.is_list else [original, *entry.get(layout.args, [])])
    else:
        assert argv[1] == "bridge"
        assert "Bearer" not in " ".join(argv), "no secret in a command line"
        assert "key=1" not in " ".join(argv)
        assert "$" not in " ".join(argv), "no variable that a host would fill in"
        parsed = BRIDGE.parse_args(argv[2:])
        assert parsed.upstream or parsed.upstream_env


@pytest.mark.parametrize("home", [JSON, TOML, YAML_], ids=["json", "toml", "yaml"])
@pytest.mark.parametrize("seed", [1, 2])
def test_fifty_servers_are_fifty_wrapped_servers(home: ServersLocation, seed: int) -> None:
    rng = Random(seed)
    made = [(name, configs.stdio(rng)) for name, _ in configs.entries(rng, home, 50)]
    text = configs.text(rng, home, made)

    edited = wrapped(text, home, names(text, home), HOW)

    assert len(edited.done) == 50
    assert unwrapped(edited.text, home, names(text, home)).text == text


@pytest.mark.parametrize("home", [JSON, TOML, YAML_], ids=["json", "toml", "yaml"])
@pytest.mark.parametrize("seed", range(8))
def test_other_parsers_read_the_edit_and_the_rest_of_the_file(home: ServersLocation, seed: int) -> None:
    rng = Random(seed)
    made = configs.entries(rng, home, 5)
    plain = json.dumps(configs.document(home, made), indent=2)
    text = plain if home.syntax is ConfigSyntax.JSON else configs.text(rng, home, made)
    before = read(text, home)

    edited = wrapped(text, home, names(text, home), HOW)

    after = read(edited.text, home)
    known = entries(after, home)
    for name, entry in entries(before, home).items():
        now = known[name]
        if "command" in entry:
            assert now["args"][-len(entry.get("args", [])) - 1 :] == [
                entry["command"],
                *entry.get("args", []),
            ]
            assert {**now, "command": 0, "args": 0} == {**entry, "command": 0, "args": 0}
        else:
            assert now.get("disabled") == entry.get("disabled")
            assert now.get("unknown") == entry.get("unknown")
            assert "url" not in now
        # Everything else is unchanged.
        now.clear()
        entry.clear()
    assert after == before


@pytest.mark.parametrize("seed", range(12))
def test_a_file_that_a_host_has_rewritten_is_unwrapped_to_the_same_meaning(seed: int) -> None:
    rng = Random(seed)
    made = configs.entries(rng, JSON, 5)
    before = configs.document(JSON, made)
    text = json.dumps(before)
    edited = wrapped(text, JSON, names(text, JSON), HOW)
    again = json.dumps(json.loads(edited.text), indent=rng.choice([2, "\t", None]), sort_keys=seed % 2 == 0)

    restored = unwrapped(again, JSON, names(text, JSON))

    assert read(restored.text, JSON) == before
    assert restored.left == {}


def one(entry: str) -> str:
    return f'{{"mcpServers": {{"a": {entry}}}}}'


def test_members_that_changed_while_wrapped_keep_the_change() -> None:
    text = one(
        '{"url": "http://localhost:1/a", "disabled": false, "headers": {"X": "old"}, "alwaysAllow": []}'
    )
    made = wrapped(text, JSON, ["a"], HOW).text
    changed = (
        made.replace('"disabled": false', '"disabled": true')
        .replace('"alwaysAllow": []', '"alwaysAllow": ["tool"]')
        .replace('"MCPSPY_HEADER_X": "old"', '"MCPSPY_HEADER_X": "new"')
        .replace('"--upstream", "http://localhost:1/a"', '"--upstream", "http://localhost:2/b"')
    )
    expected = (
        text.replace("false", "true")
        .replace("[]", '["tool"]')
        .replace('"old"', '"new"')
        .replace("localhost:1/a", "localhost:2/b")
    )

    assert unwrapped(changed, JSON, ["a"]).text == expected


def test_arguments_that_were_added_while_wrapped_stay() -> None:
    made = wrapped(one('{"command": "npx"}'), JSON, ["a"], HOW).text
    changed = made.replace('"npx"]', '"npx", "--verbose"]')

    assert unwrapped(changed, JSON, ["a"]).text == one('{"command": "npx", "args": ["--verbose"]}')


def test_options_of_run_that_were_added_by_hand_go_with_it() -> None:
    made = wrapped(one('{"command": "npx", "args": ["-y"]}'), JSON, ["a"], HOW).text
    changed = made.replace('"run", ', '"run", "--no-record", "--record", "--", "--max-size=1M", ')

    assert unwrapped(changed, JSON, ["a"]).text == one('{"command": "npx", "args": ["-y"]}')


def test_a_server_that_was_wrapped_by_hand_can_be_unwrapped() -> None:
    text = one('{"command": "mcpspy", "args": ["run", "--", "npx", "-y", "x"]}')

    assert wrapped(text, JSON, ["a"], HOW).already == ["a"]
    assert unwrapped(text, JSON, ["a"]).text == one('{"command": "npx", "args": ["-y", "x"]}')


def test_an_anchor_that_is_used_elsewhere_is_not_moved_from_under_it() -> None:
    text = "mcpServers:\n  - name: a\n    command: npx\n    args: &shared [x]\n  - name: b\n    command: y\n    args: *shared\n"

    edited = wrapped(text, YAML_, ["a", "b"], HOW)

    assert edited.text == text
    assert edited.left == {"a": UNSAFE, "b": "its args are not a list"}


def test_a_server_that_would_not_unwrap_to_the_same_bytes_is_not_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wrap, "unwrap_stdio", lambda *_: [])
    text = one('{"command": "npx"}')

    edited = wrapped(text, JSON, ["a"], HOW)

    assert (edited.text, edited.left) == (text, {"a": UNSAFE})


@pytest.mark.parametrize("entry", ['{"command": "npx"}', '{"url": "http://localhost/mcp"}'])
def test_a_server_is_not_wrapped_with_a_program_that_unwrap_would_not_recognise(entry: str) -> None:
    edited = wrapped(one(entry), JSON, ["a"], WrapTarget(["spy"]))

    assert (edited.text, edited.left) == (one(entry), {"a": UNSAFE})


def test_a_url_entry_keeps_the_members_that_it_merges_from_an_anchor() -> None:
    text = "base: &b\n  timeout: 3\nmcpServers:\n  - name: a\n    url: http://localhost/mcp\n    <<: *b\n"

    edited = wrapped(text, YAML_, ["a"], HOW)

    assert edited.done == ["a"]
    assert "\n    <<: *b\n" in edited.text
    assert unwrapped(edited.text, YAML_, ["a"]).text == text


def test_a_server_is_wrapped_beside_one_that_cannot_be() -> None:
    text = "mcpServers:\n- {name: a, command: x}\n- name: b\n  command: |\n    y\n- {name: c, command: z}\n"

    edited = wrapped(text, YAML_, ["a", "b", "c"], HOW)

    assert (edited.done, edited.left) == (["a", "c"], {"b": UNSAFE})
    assert unwrapped(edited.text, YAML_, ["a", "b", "c"]).text == text


def test_of_duplicate_keys_the_last_is_wrapped_as_it_is_the_one_that_counts() -> None:
    text = one('{"command": "no", "command": "yes", "args": [1], "args": ["x"]}')

    edited = wrapped(text, JSON, ["a"], HOW)

    assert '"command": "no", "command": "/opt' in edited.text
    assert '"args": [1], "args": ["run"' in edited.text
    assert unwrapped(edited.text, JSON, ["a"]).text == text


def test_only_the_named_servers_change() -> None:
    text = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}'

    edited = wrapped(text, JSON, ["b"], HOW)

    assert [(server.name, server.proxy is not None) for server in JSON.servers(edited.text)] == [
        ("a", False),
        ("b", True),
    ]
    assert unwrapped(edited.text, JSON, ["a"]).text == edited.text


def test_a_command_of_windows_is_data() -> None:
    text = one(
        r'{"command": "cmd", "args": ["/c", "npx", "-y", "C:\\Users\\Ada Lovelace\\x", "%PATH%", "a&b"]}'
    )

    (server,) = JSON.servers(wrapped(text, JSON, ["a"], HOW).text)

    assert server.what is EntryKind.STDIO
    assert server.argv[-7:] == ["cmd", "/c", "npx", "-y", r"C:\Users\Ada Lovelace\x", "%PATH%", "a&b"]


def test_a_table_of_headers_becomes_the_table_of_the_environment() -> None:
    text = '[mcp_servers.a]\nurl = "http://localhost/"\n\n[mcp_servers.a.http_headers]\nX = "1" # x\n[z]\n'

    edited = wrapped(text, TOML, ["a"], HOW)

    assert tomllib.loads(edited.text)["mcp_servers"]["a"]["env"]["MCPSPY_HEADER_X"] == "1"
    assert "http_headers" not in tomllib.loads(edited.text)["mcp_servers"]["a"]
    assert unwrapped(edited.text, TOML, ["a"]).text == text


def test_an_entry_whose_original_is_gone_is_left_alone() -> None:
    made = wrapped(one('{"url": "http://localhost:1/"}'), JSON, ["a"], HOW).text.replace(
        "MCPSPY_ORIGINAL", "X"
    )

    edited = unwrapped(made, JSON, ["a"])

    assert edited.text == made
    assert "MCPSPY_ORIGINAL is missing" in edited.left["a"]


def test_a_shape_without_a_word_for_stdio_gets_none() -> None:
    home = JSON._replace(layout=EntryLayout(stdio=None))
    text = one('{"type": "http", "url": "http://localhost:1/"}')

    edited = wrapped(text, home, ["a"], HOW)

    assert "type" not in read(edited.text, home)["mcpServers"]["a"]
    assert unwrapped(edited.text, home, ["a"]).text == text
