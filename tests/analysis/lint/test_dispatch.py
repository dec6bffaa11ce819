"""Selection of the rules for an event, and the findings of their reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from mcpspy.analysis.lint import EntryPosition, EventKind
from mcpspy.analysis.lint.dispatch import MOST, RuleDispatch
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup
from mcpspy.analysis.lint.state import ConversationState, LintState
from mcpspy.core.recording.decode import Note


def dispatch_of(check: Any, **about: Any) -> RuleDispatch:
    rules: list[LintRule] = []
    RuleGroup(rules).info(
        "ENV101",
        "wrong",
        **{"page": "2025-11-25/basic", "on": EventKind.NOTE, "valid": ("a",), "invalid": ("b",), **about},
    )(check)
    return RuleDispatch(rules)


def event(
    method: str = "a", side: str = "client", revision: str | None = "2025-11-25", **more: Any
) -> LintEvent:
    what = Note(1.5, method, {"text": "as written"})
    return LintEvent(
        what, LintState(None), ConversationState(None), EntryPosition(7), 3, revision, method, side, **more
    )


def check(_: LintEvent) -> Iterator[Report]:
    """Because."""
    yield Report("no")


def checks(one: LintEvent, kind: EventKind = EventKind.NOTE, **about: Any) -> bool:
    return bool(dispatch_of(check, **about).check(kind, one))


def test_a_rule_checks_only_what_concerns_it() -> None:
    assert checks(event())
    assert not checks(event(), EventKind.END)
    assert checks(event("a"), about="a")
    assert not checks(event("b"), about="a")
    assert checks(event("rpc.x"), about="rpc.*")
    assert checks(event(side="server"), by="server")
    assert not checks(event(), by="server")
    assert not checks(event(), since="2026-07-28")
    assert checks(event(revision="2026-07-28"), since="2026-07-28")
    assert checks(event(is_unusual=True), unusual=True)
    assert not checks(event(is_unusual=False), unusual=True)


def test_a_condition_on_kind_method_and_side_is_evaluated_once_for_each() -> None:
    evaluated: list[tuple[EventKind, str, str]] = []

    def only(kind: EventKind, method: str, side: str) -> bool:
        evaluated.append((kind, method, side))
        return side == "client"

    book = dispatch_of(check, only=only)
    found = [
        len(book.check(EventKind.NOTE, one))
        for one in (event(), event(), event("b"), event(side="server"), event("b"))
    ]

    assert found == [1, 1, 1, 0, 1]
    assert evaluated == [
        (EventKind.NOTE, "a", "client"),
        (EventKind.NOTE, "b", "client"),
        (EventKind.NOTE, "a", "server"),
    ]


def test_methods_without_end_take_no_memory_without_end() -> None:
    book = dispatch_of(check, about="m7")
    found = [book.check(EventKind.NOTE, event(f"m{number}")) for number in [*range(MOST + 50), 7]]

    assert [number for number, each in enumerate(found) if each] == [7, MOST + 50]
    assert len(book._tables) == MOST


def test_a_rule_with_once_reports_once_per_side() -> None:
    book = dispatch_of(check, once=True)

    assert [len(book.check(EventKind.NOTE, event(side=side))) for side in ("client", "client", "server")] == [
        1,
        0,
        1,
    ]


def test_reports_of_one_event_with_the_same_message_are_one_finding_with_their_number() -> None:
    def tells(_: LintEvent) -> Iterator[Report]:
        """Because."""
        yield from (Report(message, number) for number, message in enumerate(("a", "b", "a", "a")))

    found = dispatch_of(tells).check(EventKind.NOTE, event())

    assert [(finding.message, finding.excerpt) for finding in found] == [("a (3 times)", "0"), ("b", "1")]


def test_an_excerpt_is_short_and_never_fails() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    given = [None, "x" * 500, b"\xff", {"a": "\u00fc"}, deep, Raw(b'"a\\u0062"')]

    def tells(_: LintEvent) -> Iterator[Report]:
        """Because."""
        yield from (Report(f"no {at}", excerpt) for at, excerpt in enumerate(given))

    found = dispatch_of(tells).check(EventKind.NOTE, event())

    assert [finding.excerpt for finding in found] == [
        "as written",
        "x" * 199 + "…",
        "\\xff",
        '{"a":"\u00fc"}',
        "…",
        '"ab"',
    ]
    assert {(finding.place, finding.number, finding.at) for finding in found} == {(EntryPosition(7), 3, 1.5)}
