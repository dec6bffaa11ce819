"""Parser of YAML."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from mcpspy.core.hostconfig import yaml
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.errors import UsageError
from tests.core.hostconfig.configs import walk

TEXT = """\
# top - with dashes
top: plain words
list:
  - one # c
  # - not this one
  - 'two - 2'

  - {a: [b, "c"], d: null}
  -
    nested: |
      block - text
    more: 7

# between
flow: [x,
  y]
folded: >-
  a
  b
last:
- - deep
"""


def value(node: Node) -> object:
    if node.kind is NodeKind.OBJECT:
        return {member.key: value(member.node) for member in node.members}
    if node.kind is NodeKind.ARRAY:
        return [value(item.node) for item in node.items]
    return node.text


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, TEXT.rstrip()])
def test_it_reads_what_ruamel_reads_with_scalars_as_they_are_written(text: str) -> None:
    expected = YAML(typ="safe", pure=True).load(text.removeprefix("\ufeff"))
    root = yaml.read(text)

    assert value(root) == {
        **expected,
        "list": ["one", "two - 2", {"a": ["b", "c"], "d": "null"}, {"nested": "block - text\n", "more": "7"}],
    }
    for node in walk(root):
        if node.kind is NodeKind.STRING and "\n" not in text[node.start : node.end]:
            assert text[node.start : node.end].strip("'\"") == node.text
        for item in node.items:
            assert not node.block or text[item.start] == "-"


def test_a_block_ends_with_its_last_value() -> None:
    node = yaml.read(TEXT).get("list")

    assert node is not None
    assert TEXT[node.start : node.end].endswith("more: 7")


def test_a_value_that_is_defined_elsewhere_is_not_changed() -> None:
    root = yaml.read("a: &x [1]\nb: *x\nc: {<<: &m {k: v}}\nd: [*x, 2]\ne:\n- *x\n- 3\n")
    kinds = {member.key: member.node.kind for member in root.members}

    assert kinds["a"] is NodeKind.ARRAY
    assert kinds["b"] is NodeKind.OTHER
    assert kinds["d"] is NodeKind.OTHER
    assert kinds["e"] is NodeKind.OTHER


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [", "line 1, column 5"),
        ("a: 1\na: 2", "line 2, column 1"),
        ("a: *x", "line 1, column 4"),
        ("- a\nb: 1", "line 2, column 1"),
        ("--- 1\n--- 2", "line 2, column 1"),
        ("a: \x07", "line 1"),
    ],
)
def test_invalid_yaml_is_reported_with_its_place(text: str, where: str) -> None:
    with pytest.raises(UsageError, match=f"^({where}.*: )?not YAML: "):
        yaml.read(text)


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff"])
def test_an_empty_file_is_an_empty_object(text: str) -> None:
    assert yaml.read(text).kind is NodeKind.OBJECT
