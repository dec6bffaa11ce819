"""Positions of the members of an entry, and source text of new members."""

from __future__ import annotations

import pytest

from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryText, SkippedEntry
from mcpspy.core.hostconfig.servers import read


def place(text: str, syntax: ConfigSyntax = ConfigSyntax.JSON, *keys: str) -> EntryText:
    entry = read(text, syntax).get(*keys)
    assert entry is not None
    return EntryText(text, syntax, entry)


def runs(found: EntryText, *keys: str) -> list[str]:
    return [found.text[first.start : last.node.end] for _, first, last in found.runs(keys)]


def test_neighbours_are_one_run_whatever_blanks_and_comments_part_them() -> None:
    found = place('{"a": 1, /* x */ "b": 2, // y\n "c": 3, "d": 4, "e": 5}')

    assert runs(found, "a", "b", "e") == ['"a": 1, /* x */ "b": 2', '"e": 5']
    assert [before and before.key for before, _, _ in found.runs(["a", "b", "e"])] == [None, "d"]


def test_a_value_in_several_places_is_left_alone() -> None:
    text = '[s.x]\nurl = "u"\nheaders.A = "1"\n'
    with pytest.raises(SkippedEntry, match="headers is not defined in one place"):
        place(text, ConfigSyntax.TOML, "s", "x").runs(["url", "headers"])


def test_members_that_another_table_parts_are_left_alone() -> None:
    text = '[s]\nx.url = "u"\ny.url = "v"\nx.type = "t"\n'
    with pytest.raises(SkippedEntry, match="url and type are not adjacent"):
        place(text, ConfigSyntax.TOML, "s", "x").runs(["url", "type"])


@pytest.mark.parametrize(
    ("text", "syntax", "keys", "written"),
    [
        ('{"a": 1}', ConfigSyntax.JSON, (), '"x": 1, "y z": 2'),
        ('{\r\n\t"a": 1}', ConfigSyntax.JSON, (), '"x": 1,\r\n\t"y z": 2'),
        ("s:\n- a: 1", ConfigSyntax.YAML, ("s",), None),
        ("a: 1", ConfigSyntax.YAML, (), 'x: 1\n"y z": 2'),
        ("k:\n   a: 1", ConfigSyntax.YAML, ("k",), 'x: 1\n   "y z": 2'),
        ("{a: 1}", ConfigSyntax.YAML, (), 'x: 1, "y z": 2'),
        ("[s]\n  a = 1", ConfigSyntax.TOML, ("s",), 'x = 1\n  "y z" = 2'),
        ("s = {a = 1}", ConfigSyntax.TOML, ("s",), 'x = 1, "y z" = 2'),
        ("s.a = 1", ConfigSyntax.TOML, ("s",), 's.x = 1\ns."y z" = 2'),
    ],
)
def test_new_members_are_written_as_their_neighbours_are(
    text: str, syntax: ConfigSyntax, keys: tuple[str, ...], written: str | None
) -> None:
    found = place(text, syntax, *keys)
    member = found.entry.member("a")
    if written is None:
        (item,) = found.entry.items
        assert found.column(item.node.start) == "  "
    else:
        assert member is not None
        assert found.members([("x", "1"), ("y z", "2")], member) == written


def test_an_object_of_strings_has_a_line_for_each_where_its_neighbours_have() -> None:
    lines, dense = place('{\n  "a": 1}'), place('{"a": 1}')
    (beside,), (other,) = lines.entry.members, dense.entry.members

    assert lines.table({"K": "v", "L": "w"}, beside) == '{\n    "K": "v",\n    "L": "w"\n  }'
    assert dense.table({"K": "v"}, other) == '{"K": "v"}'
