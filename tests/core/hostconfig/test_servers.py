"""Kinds of entries."""

from __future__ import annotations

import pytest

from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry, origin, read, servers
from mcpspy.errors import UsageError


def one(entry: str, layout: EntryLayout = STANDARD) -> ServerEntry:
    (server,) = servers(read(f'{{"s": {{"a": {entry}}}}}', ConfigSyntax.JSON), ("s",), layout)
    return server


@pytest.mark.parametrize(
    ("entry", "what", "why"),
    [
        ('{"command": "x"}', EntryKind.STDIO, ""),
        ('{"command": "x", "args": ["y", 8080]}', EntryKind.STDIO, ""),
        ('{"url": "http://x"}', EntryKind.URL, ""),
        ("{}", EntryKind.INVALID, "neither a command nor a URL"),
        ("null", EntryKind.INVALID, "not an object"),
        ('{"command": "x", "url": "http://x"}', EntryKind.INVALID, "both"),
        ('{"command": {"path": "x"}}', EntryKind.INVALID, "command is not a string"),
        ('{"command": "x", "args": "y"}', EntryKind.INVALID, "args are not a list"),
        ('{"command": "x", "args": null}', EntryKind.INVALID, "args are not a list"),
        ('{"url": 1}', EntryKind.INVALID, "URL is not a string"),
    ],
)
def test_an_entry_has_a_command_or_a_url(entry: str, what: EntryKind, why: str) -> None:
    server = one(entry)

    assert server.what is what
    assert why in server.why
    assert bool(server.why) is bool(why)


def test_the_first_of_several_names_for_a_url_counts() -> None:
    assert (
        one('{"url": "http://b", "httpUrl": "http://a"}', EntryLayout(url=("httpUrl", "url"))).url
        == "http://a"
    )


def test_a_wrapped_entry_is_what_it_was() -> None:
    run = one('{"command": "mcpspy", "args": ["run", "--name", "a", "--", "npx"]}')
    bridge = one(
        '{"command": "mcpspy", "args": ["bridge", "--upstream", "${U}"], "env": {"U": "http://x/?k"}}'
    )

    assert (run.what, run.proxy is not None) == (EntryKind.STDIO, True)
    assert (bridge.what, bridge.url) == (EntryKind.URL, "http://x/?k")


@pytest.mark.parametrize(
    ("entry", "disabled"),
    [
        ('{"disabled": true}', True),
        ('{"disabled": false}', False),
        ('{"enabled": false}', True),
        ('{"disabled": "true"}', False),
        ("{}", False),
    ],
)
def test_a_disabled_entry_is_known(entry: str, disabled: bool) -> None:
    assert one(entry).disabled is disabled


@pytest.mark.parametrize("text", ["", "{}", '{"s": {}}', '{"s": null}', '{"x": []}'])
def test_no_servers_are_none(text: str) -> None:
    assert servers(read(text, ConfigSyntax.JSON), ("s",), STANDARD) == []


def test_a_list_in_place_of_an_object_is_reported() -> None:
    with pytest.raises(UsageError, match=r"^a\.b is not an object of servers"):
        servers(read('{"a": {"b": []}}', ConfigSyntax.JSON), ("a", "b"), STANDARD)
    with pytest.raises(UsageError, match=r"^s is not a list of servers"):
        servers(read("s: {}", ConfigSyntax.YAML), ("s",), EntryLayout(named=True))


def test_a_list_contains_its_names() -> None:
    found = servers(
        read("s: [{name: b, command: x}, {command: y}, {name: a}]", ConfigSyntax.YAML),
        ("s",),
        EntryLayout(named=True),
    )

    assert [server.name for server in found] == ["b", "a"]


def test_the_origin_of_a_url_holds_no_secret() -> None:
    assert origin("https://me:pass@x.org:1/secret/mcp?key=2#3") == "https://x.org:1"
    assert origin("http://[") == "its URL"
