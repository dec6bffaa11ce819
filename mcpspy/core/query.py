"""The filter language: what a person types, as a predicate.

Owns `and`, `or` and `not`, and that what costs a read is asked last. How a
filter is written is `core.query_syntax`'s, what a field means
`core.query_fields`'.
"""

from __future__ import annotations

from mcpspy.core.query_fields import Item, Part, Test, atom
from mcpspy.core.query_syntax import All, Atom, Node, Not, QueryError, read

__all__ = ["Item", "Query", "QueryError", "parse"]


class Query:
    """A filter, ready to be asked."""

    __slots__ = ("matches", "reads_text", "text")

    def __init__(self, text: str, matches: Test, reads_text: bool) -> None:
        self.text = text
        """As it was typed."""
        self.matches = matches
        """Whether an item is wanted."""
        self.reads_text = reads_text
        """Whether it may ask for `Item.text()`."""


def parse(text: str) -> Query:
    """Return the filter; a blank one wants everything. Raise QueryError."""
    node = read(text)
    part = Part(lambda item: True, False) if node is None else _compile(node)
    return Query(text, part.test, part.reads)


def _compile(node: Node) -> Part:
    if isinstance(node, Atom):
        part = atom(node)
        return _negated(part) if node.op == "!=" else part
    if isinstance(node, Not):
        return _negated(_compile(node.part))
    # What costs no read goes first; a sort is stable.
    parts = sorted(map(_compile, node.parts), key=lambda part: part.reads)
    tests, reads = [part.test for part in parts], parts[-1].reads
    return Part(_all(tests) if isinstance(node, All) else _either(tests), reads)


def _negated(part: Part) -> Part:
    test = part.test
    return Part(lambda item: not test(item), part.reads)


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) and two(item)

    def test(item: Item) -> bool:
        for each in tests:  # noqa: SIM110 - a generator costs more than most of the tests.
            if not each(item):
                return False
        return True

    return test


def _either(tests: list[Test]) -> Test:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) or two(item)

    def test(item: Item) -> bool:
        for each in tests:  # noqa: SIM110
            if each(item):
                return True
        return False

    return test
