"""Parser of TOML."""

from __future__ import annotations

import tomllib

import pytest

from mcpspy.core.hostconfig import toml
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.errors import UsageError
from tests.core.hostconfig.configs import walk

TEXT = '''\
# top
title = "x" # "
[a]
"b c" . d = 'lit\\eral'
multi = """
say "it" \\"""
"""
'lines' = \'\'\'
# no comment ''\'\'\'
when = 1979-05-27 07:32:00
list = [ # c
  "one",
  { x = [1, 2], "y" = {} },   # d
  [[]],
]
[a.sub."k.1"]
z = -1_0.5e+3
[[array]]
in = 1
[[array]]
in = 2
[array.of.it]
x = 1
[later]
[a.other]
yes = true
'''


def content(node: Node) -> object:
    if node.kind is NodeKind.OBJECT:
        return {member.key: content(member.node) for member in node.members}
    if node.kind is NodeKind.ARRAY:
        return [content(item.node) for item in node.items]
    return node.text if node.kind is NodeKind.STRING else tomllib.loads(f"x = {node.text}")["x"]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, TEXT.rstrip()])
def test_it_reads_what_tomllib_reads_and_every_span_is_of_its_value(text: str) -> None:
    root = toml.read(text)
    expected = tomllib.loads(text.removeprefix("\ufeff"))

    assert content(root) == expected
    for node in walk(root):
        if not node.block:
            value = tomllib.loads(f"x = {text[node.start : node.end]}")["x"]
            assert content(node) == value


def test_a_table_reaches_from_its_header_to_its_last_value() -> None:
    text = '[s.x]\na = 1\n\n[ s . x . "t" ] # c\nb = 2 # d\n\n[s.x.u]\n# e\n'
    entry = toml.read(text).get("s", "x")

    assert entry is not None
    assert entry.block
    table, empty = entry.member("t"), entry.member("u")
    assert table is not None
    assert empty is not None
    assert table.is_table
    assert text[table.start : table.node.end] == '[ s . x . "t" ] # c\nb = 2'
    assert table.prefix == "s . x . "
    assert text[empty.start : empty.node.end] == "[s.x.u]"


def test_the_parts_before_the_last_one_of_a_key_are_known() -> None:
    member = toml.read('[s]\n"x y".command = "z"').get("s", "x y")

    assert member is not None
    assert [(found.key, found.prefix) for found in member.members] == [("command", '"x y".')]


@pytest.mark.parametrize("text", ["a = ", "[a", "a = 1\na = 2", "{}", "a = [" * 2000])
def test_invalid_toml_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match=r"^not TOML: "):
        toml.read(text)


def test_an_empty_file_is_an_empty_object() -> None:
    assert toml.read("").members == ()
