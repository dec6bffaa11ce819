"""Severities and places."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.lint import EntryPosition, Finding, Severity


def made(message: str = "not JSON", excerpt: str = "DEBUG", **more: object) -> Finding:
    fields = {"place": EntryPosition(3), "number": 1, "at": 1.0, "side": "server", "about": "tools/call a"}
    return Finding("ENV101", Severity.ERROR, message, excerpt, **{**fields, **more})  # type: ignore[arg-type]  # Made for the test.


def test_the_most_severe_finding_ranks_first() -> None:
    assert [severity.rank for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)] == [0, 1, 2]


def test_an_uncounted_position_is_line_0_of_the_first_part() -> None:
    assert EntryPosition() == (0, 1)


@given(st.integers(1), st.integers(0), st.floats(0, 1e6), st.integers(0))
def test_a_fingerprint_does_not_depend_on_position_time_and_ids(
    line: int, row: int, at: float, name: int
) -> None:
    excerpt = '{"jsonrpc":"2.0","id":%s,"method":"ping"}'
    moved = made(
        f"response to unknown request id {name}", excerpt % name, place=EntryPosition(line), number=row, at=at
    )

    assert moved.fingerprint("s") == made("response to unknown request id 7", excerpt % 7).fingerprint("s")


@given(st.lists(st.text(string.ascii_letters + "_-", min_size=1), min_size=2, max_size=2, unique=True))
def test_findings_with_other_words_have_other_fingerprints(words: list[str]) -> None:
    one, other = (made(f"tool {word} is not listed").fingerprint("s") for word in words)

    assert one != other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"id":"req-7-x","a":1}', '{"id":"req-8-y","a":1}'),
        ('{"progressToken":"ab","p":1.5}', '{"progressToken": "cd","p":20}'),
        (
            "session 0e8a3b1e-11f1-4c9e-8f3e-7d0a5c1b2e3f lost",
            "session 1f9b4c2e-22a2-4d0f-9a4f-8e1b6d2c3f40 lost",
        ),
        ("2026-11-21T08:28:03.928Z ready", "2026-11-22T17:01:59Z ready"),
        ("sent 5 bytes in 0.25 s", "sent 1234 bytes in 3 s"),
    ],
    ids=["id", "token", "UUID", "time", "numbers"],
)
def test_a_fingerprint_ignores_ids_times_and_numbers(one: str, other: str) -> None:
    assert made(excerpt=one).fingerprint("s") == made(excerpt=other).fingerprint("s")


@pytest.mark.parametrize(
    ("message", "more"),
    [
        ("tool sum2 is not listed", {}),
        ("tool sum-1 is not listed", {}),
        ("tool sum1 is not listed", {"side": "client"}),
        ("tool sum1 is not listed", {"about": "tools/call b"}),
        ("tool sum1 is not listed", {"excerpt": "other"}),
    ],
    ids=["digit of a name", "name", "side", "subject", "excerpt"],
)
def test_another_finding_has_another_fingerprint(message: str, more: dict[str, str]) -> None:
    first = made("tool sum1 is not listed")

    assert made(message, **more).fingerprint("s") != first.fingerprint("s")
    assert first.fingerprint("other server") != first.fingerprint("s")


def test_the_beginning_of_a_whole_message_does_not_count() -> None:
    assert made(excerpt="a", is_whole=True).fingerprint("s") == made(excerpt="b", is_whole=True).fingerprint(
        "s"
    )
