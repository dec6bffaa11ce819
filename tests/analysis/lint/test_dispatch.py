"""Which rules are asked, and what becomes of what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint import EntryPosition, EventKind
from mcpspy.analysis.lint.dispatch import MOST, RuleDispatch
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup
from mcpspy.analysis.lint.state import ConversationState, LintState
from mcpspy.core.recording.decode import Note


def rulebook(look: Any, **about: Any) -> RuleDispatch:
    rules: list[LintRule] = []
    RuleGroup(rules).info(
        "ENV101",
        "wrong",
        **{"page": "2025-11-25/basic", "on": EventKind.NOTE, "valid": ("a",), "invalid": ("b",), **about},
    )(look)
    return RuleDispatch(rules)


def event(
    method: str = "a", side: str = "client", revision: str | None = "2025-11-25", **more: Any
) -> LintEvent:
    what = Note(1.5, method, {"text": "as written"})
    return LintEvent(
        what, LintState(None), ConversationState(None), EntryPosition(7), 3, revision, method, side, **more
    )


def look(_: LintEvent) -> Iterator[Report]:
    """Because."""
    yield Report("no")


def is_asked(one: LintEvent, kind: EventKind = EventKind.NOTE, **about: Any) -> bool:
    return bool(rulebook(look, **about).check(kind, one))


def test_a_rule_is_asked_about_what_concerns_it_alone() -> None:
    assert is_asked(event())
    assert not is_asked(event(), EventKind.END)
    assert is_asked(event("a"), about="a")
    assert not is_asked(event("b"), about="a")
    assert is_asked(event("rpc.x"), about="rpc.*")
    assert is_asked(event(side="server"), by="server")
    assert not is_asked(event(), by="server")
    assert not is_asked(event(), since="2026-07-28")
    assert is_asked(event(revision="2026-07-28"), since="2026-07-28")
    assert is_asked(event(is_unusual=True), unusual=True)
    assert not is_asked(event(is_unusual=False), unusual=True)


def test_what_hangs_on_kind_method_and_side_is_asked_once_for_each() -> None:
    asked: list[tuple[EventKind, str, str]] = []

    def only(kind: EventKind, method: str, side: str) -> bool:
        asked.append((kind, method, side))
        return side == "client"

    book = rulebook(look, only=only)
    found = [
        len(book.check(EventKind.NOTE, one))
        for one in (event(), event(), event("b"), event(side="server"), event("b"))
    ]

    assert found == [1, 1, 1, 0, 1]
    assert asked == [
        (EventKind.NOTE, "a", "client"),
        (EventKind.NOTE, "b", "client"),
        (EventKind.NOTE, "a", "server"),
    ]


def test_methods_without_end_take_no_memory_without_end() -> None:
    book = rulebook(look, about="m7")
    found = [book.check(EventKind.NOTE, event(f"m{number}")) for number in [*range(MOST + 50), 7]]

    assert [number for number, each in enumerate(found) if each] == [7, MOST + 50]
    assert len(book._tables) == MOST


def test_what_is_told_once_is_told_once_a_side() -> None:
    book = rulebook(look, once=True)

    assert [len(book.check(EventKind.NOTE, event(side=side))) for side in ("client", "client", "server")] == [
        1,
        0,
        1,
    ]


def test_an_excerpt_is_short_and_never_fails() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    given = [None, "x" * 500, b"\xff", {"a": "\u00fc"}, deep]

    def tells(_: LintEvent) -> Iterator[Report]:
        """Because."""
        yield from (Report("no", excerpt) for excerpt in given)

    found = rulebook(tells).check(EventKind.NOTE, event())

    assert [finding.excerpt for finding in found] == [
        "as written",
        "x" * 199 + "…",
        "\\xff",
        '{"a": "\u00fc"}',
        "…",
    ]
    assert {(finding.place, finding.number, finding.at) for finding in found} == {(EntryPosition(7), 3, 1.5)}
