"""The filter language: what a person types, as a predicate.

Owns `and`, `or` and `not`, and that what costs a read is asked last. How a
filter is written is `core.query_syntax`'s, what a field means
`core.query_fields`'.
"""

from __future__ import annotations

from mcpspy.core.query_fields import atom, is_linted
from mcpspy.core.query_item import End, Item, Part, Test
from mcpspy.core.query_syntax import All, Node, Not, read
from mcpspy.core.query_tokens import Atom, QueryError

__all__ = ["Item", "Query", "QueryError", "parse"]


class Query:
    """A filter, ready to be asked."""

    __slots__ = ("_end", "asks_findings", "matches", "reads_text", "text")

    def __init__(self, text: str, matches: Test, reads_text: bool, end: End, asks_findings: bool) -> None:
        self.text = text
        """As it was typed."""
        self.matches = matches
        """Whether an item is wanted."""
        self.reads_text = reads_text
        """Whether it may ask for `Item.text()`, or `Item.message()`."""
        self.asks_findings = asks_findings
        """Whether it asks for `LintedItem.findings`."""
        self._end = end

    @property
    def counts_back(self) -> bool:
        """Whether it asks how long before the end something was, as `since:-5m` does: then the end should be said."""
        return self._end.is_asked

    @property
    def end(self) -> float | None:
        """Seconds from the start to where it counts back from; None: everything is the latest when it is asked about."""
        return self._end.at

    @end.setter
    def end(self, at: float | None) -> None:
        self._end.at = at


def parse(text: str, *, linted: bool = False) -> Query:
    """Return the filter; a blank one wants everything. Raise QueryError.

    `linted`: the items are `LintedItem`, so that it may ask for findings.
    """
    node, end = read(text), End()
    compiler = _Compiler(end, linted=linted)
    part = Part(lambda item: True, False) if node is None else compiler.part(node)
    return Query(text, part.test, part.reads, end, compiler.asks_findings)


class _Compiler:
    """Trees in, tests out."""

    def __init__(self, end: End, *, linted: bool) -> None:
        self._end = end
        self._linted = linted
        self.asks_findings = False

    def part(self, node: Node) -> Part:
        if isinstance(node, Atom):
            if is_linted(node):
                self.asks_findings = True
                if not self._linted:
                    node.fail("findings are not known here: mcpspy tui and mcpspy show --lint know them")
            part = atom(node, self._end)
            return _negated(part) if node.op == "!=" else part
        if isinstance(node, Not):
            return _negated(self.part(node.part))
        # What costs no read goes first; a sort is stable.
        parts = sorted(map(self.part, node.parts), key=lambda part: part.reads)
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
