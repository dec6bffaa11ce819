"""Unwrapping of edited entries; test_edit has the other tests of unwrapping."""

from __future__ import annotations

import json

import pytest

from mcpspy.core.hostconfig.edit import ServersLocation, unwrapped, wrapped
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax
from mcpspy.core.hostconfig.wrap import WrapTarget

JSON = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)


def one(entry: str) -> str:
    return f'{{"mcpServers": {{"a": {entry}}}}}'


def wrap(entry: str) -> str:
    return wrapped(one(entry), JSON, ["a"], WrapTarget(["mcpspy"])).text


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('{"command": "mcpspy", "args": ["run", "--name", "a"]}', "no command follows"),
        ('{"command": "mcpspy", "args": ["run", "--name", "a", "--"]}', "no command follows"),
        ('{"command": "mcpspy", "args": ["run", "--", 1]}', "is not a command"),
        ('{"command": "mcpspy", "args": ["bridge", "--upstream", "http://x"]}', "is missing from its env"),
        (
            '{"command": "mcpspy", "args": ["bridge"], "env": {"MCPSPY_ORIGINAL": "\\"url\\": \\"x\\"", "MCPSPY_ORIGINAL_AFTER": "[]"}}',
            "is not the value that mcpspy wrote",
        ),
        (
            '{"command": "mcpspy", "args": ["bridge"], "env": {"MCPSPY_ORIGINAL": "\\"url\\": \\"x\\"", "MCPSPY_ORIGINAL_AFTER": "[\\"a"}}',
            "is not the value that mcpspy wrote",
        ),
    ],
)
def test_an_entry_that_holds_no_original_is_left_alone(entry: str, why: str) -> None:
    edited = unwrapped(one(entry), JSON, ["a"])

    assert edited.text == one(entry)
    assert why in edited.left["a"]


OLD = """{"mcpServers": {"a": {"disabled": true, "command": "mcpspy", "args": ["bridge", "--name", "a", "--upstream", \
"${MCPSPY_UPSTREAM}", "--header", "Authorization: ${MCPSPY_HEADER_AUTHORIZATION}"], "env": {\
"MCPSPY_HEADER_AUTHORIZATION": "Bearer x", "MCPSPY_UPSTREAM": "http://localhost/?k=1", "MCPSPY_ORIGINAL": \
"\\"url\\": \\"http://localhost/?k=1\\", \\"headers\\": {\\"Authorization\\": \\"Bearer x\\"}"}}}}"""
"""An entry that an older version wrapped: its arguments refer to variables."""


def test_an_entry_that_an_older_version_wrapped_is_restored() -> None:
    original = '{"disabled": true, "url": "http://localhost/?k=1", "headers": {"Authorization": "Bearer x"}}'

    assert unwrapped(OLD, JSON, ["a"]).text == one(original)
    changed = OLD.replace('"MCPSPY_HEADER_AUTHORIZATION": "Bearer x"', '"MCPSPY_HEADER_AUTHORIZATION": "new"')
    changed = changed.replace('"MCPSPY_UPSTREAM": "http://localhost/?k=1"', '"MCPSPY_UPSTREAM": "http://b/"')
    assert unwrapped(changed, JSON, ["a"]).text == one(
        original.replace("Bearer x", "new").replace("http://localhost/?k=1", "http://b/")
    )


def test_a_comma_after_the_last_argument_goes_with_it() -> None:
    made = wrap('{"command": "x", "args": []}').replace('"x"]', '"x" , ]')

    assert json.loads(unwrapped(made, JSON, ["a"]).text)["mcpServers"]["a"] == {"command": "x", "args": []}


def test_a_member_behind_a_removed_one_is_put_with_the_rest() -> None:
    made = wrap('{"url": "http://localhost/", "disabled": true, "headers": {"A": "1"}}')
    changed = made.replace(', "disabled": true', "")

    assert json.loads(unwrapped(changed, JSON, ["a"]).text)["mcpServers"]["a"] == {
        "url": "http://localhost/",
        "headers": {"A": "1"},
    }


@pytest.mark.parametrize("order", ["args first", "args last"])
def test_arguments_that_were_not_there_go_wherever_a_host_has_put_them(order: str) -> None:
    entry = json.loads(wrap('{"command": "x", "cwd": "/"}'))["mcpServers"]["a"]
    args = {"args": entry.pop("args")}
    again = {**args, **entry} if order == "args first" else {**entry, **args}

    text = unwrapped(one(json.dumps(again, indent=1)), JSON, ["a"]).text

    assert json.loads(text)["mcpServers"]["a"] == {"command": "x", "cwd": "/"}


def test_a_yaml_entry_that_was_wrapped_by_hand_without_arguments_is_unwrapped() -> None:
    text = "mcpServers:\n  a:\n    command: mcpspy\n    args:\n      - run\n      - --\n      - npx\n"
    location = ServersLocation(ConfigSyntax.YAML, ("mcpServers",), STANDARD)

    edited = unwrapped(text, location, ["a"])

    (server,) = location.servers(edited.text)
    assert (edited.done, server.proxy, server.argv) == (["a"], None, ["npx"])
