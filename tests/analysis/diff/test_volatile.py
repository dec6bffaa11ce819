"""Dates, ids and other values that change from run to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff.json_diff import deltas, fingerprint
from mcpspy.analysis.diff.volatile import Tolerance, marked_text

MARK = "\N{CALENDAR}"


def undated(text: str) -> str:
    return marked_text(text, Tolerance.DATES)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21",
        "2026-11-21T08:28:10Z",
        "2026-11-21T08:28:10.123456+01:00",
        "2026-11-21 08:28:10",
        "2026-11-21 08:28:10 UTC",
        "2026/11/21 08:28",
        "Sat, 21 Nov 2026 08:28:10 GMT",
        "Sat Nov 21 2026 08:28:10 GMT+0100 (Central European Standard Time)",
        "Sat Nov 21 08:28:10 2026",
        "21 Nov 2026",
        "Nov 21, 2026 at 8:28 AM",
        "11/21/2026, 8:28:02 AM",
        "21.11.2026",
        "8:28:02 AM",
        "08:28",
    ],
)
def test_a_date_or_a_time_is_replaced_by_a_mark(text: str) -> None:
    assert undated(text) == MARK
    assert undated(f"it was {text}, I think") == f"it was {MARK}, I think"


@pytest.mark.parametrize(
    "text",
    ["", "none", "1.2.3", "12345678", "2026", "99:99", "2026-13-45", "10.0.0.1:8080", "a1:22b", "1/3", "v2026-11-21x", "May I?"],
    ids=repr,
)  # fmt: skip
def test_text_without_a_date_is_unchanged(text: str) -> None:
    assert undated(text) == text


@given(st.text())
def test_any_text_can_be_searched_for_dates(text: str) -> None:
    assert undated(undated(text)) == undated(text)


SAME_IN_TEXTS = [
    ("id 0b8f7c9e-2d41-4c8a-9d64-51c0d4f0aa17", "id 5E7D1F60-92BE-4E0B-8C57-0C8B7F1D2A33"),
    ("at 1763760000", "at 1763769999"),
    ("at 1763760000123 ms", "at 1763769999456 ms"),
    ("1763760000.123456", "1763769999.5"),
    ("started with PID 4711", "started with PID 12"),
    ("pid=4711, ok", "pid=815, ok"),
    ("http://127.0.0.1:41231/mcp", "http://127.0.0.1:55012/mcp"),
    ("ws://localhost:41231", "ws://localhost:55012"),
    ("listening on port 41231", "listening on port 55012"),
    ("wrote /tmp/tmpa8x_2k/out.txt", "wrote /tmp/tmpzz91b/out.txt"),
    ("/var/folders/x1/ab12/T/tmp7/x", "/private/var/folders/q9/cd34/T/tmp8/x"),
    (r"C:\Users\a\AppData\Local\Temp\tmp1\x.txt", r"C:\Users\a\AppData\Local\Temp\tmp2\x.txt"),
    ("20261121T082810Z", "20261122T091500Z"),
    ("2026-11-21T08:28:10Z", "2026-11-22T09:15:00Z"),
    ("<Thing at 0x7f3a9c0d2e50>", "<Thing at 0x7fb001aa0010>"),
    ("commit 9fceb02d0ae598e9", "commit 1c002dd4b536e749"),
    ("sess_a81bc81b", "sess_77e0f2d4"),
]

DIFFERENT_IN_TEXTS = [
    ("12 items", "13 items"),
    ("version 1.2.3", "version 1.2.4"),
    ("id 0b8f7c9e-2d41-4c8a-9d64-51c0d4f0aa17", "id 9fceb02d0ae598e9"),
    ("at 1763760000", "at 1763760000123"),
    ("at 1763760000", "never"),
    ("phone 5551234567", "phone 5557654321"),
    ("feedface", "deadbeef"),
    ("a cab12", "a cab13"),
    ("http://a.example:8080/", "http://b.example:8080/"),
    ("/tmp/a in 3 steps", "/tmp/b in 4 steps"),
    ("support 1000", "support 2000"),
    ("/home/a/x", "/home/b/x"),
]


@pytest.mark.parametrize(("old", "new"), SAME_IN_TEXTS)
def test_texts_that_differ_in_volatile_values_are_equal(old: str, new: str) -> None:
    assert deltas({"a": old}, {"a": new}, tolerance=Tolerance.VOLATILE) == []
    assert fingerprint([old], Tolerance.VOLATILE) == fingerprint([new], Tolerance.VOLATILE)
    assert len(deltas({"a": old}, {"a": new})) == 1


@pytest.mark.parametrize(("old", "new"), DIFFERENT_IN_TEXTS)
def test_other_texts_are_different(old: str, new: str) -> None:
    assert len(deltas({"a": old}, {"a": new}, tolerance=Tolerance.VOLATILE)) == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "same"),
    [
        ("pid", 4711, 12, True),
        ("processId", 4711, 12, True),
        ("serverPid", 4711, 12, True),
        ("port", 41231, 55012, True),
        ("http_port", 41231, 55012, True),
        ("port", 80, 443, False),
        ("report", 41231, 55012, False),
        ("rapid", 3, 4, False),
        ("at", 1763760000, 1763769999, True),
        ("at", 1763760000.25, 1763769999, True),
        ("at", 1763760000123, 1763769999456, True),
        ("at", 1763760000, 1763760000123, False),
        ("count", 12, 13, False),
        ("at", True, False, False),
        ("at", 1763760000, None, False),
    ],
)
def test_a_number_is_volatile_by_its_size_or_its_name(
    name: str, old: object, new: object, *, same: bool
) -> None:
    one, two = {"list": [{name: old}]}, {"list": [{name: new}]}

    assert (deltas(one, two, tolerance=Tolerance.VOLATILE) == []) is same
    assert (fingerprint(one, Tolerance.VOLATILE) == fingerprint(two, Tolerance.VOLATILE)) is same
    assert deltas(one, two, tolerance=Tolerance.DATES) != []


def test_the_json_in_a_text_is_searched_as_well() -> None:
    one, two = ('{"pid": 1, "n": 2}', '{"pid": 7, "n": 3}')

    (found,) = deltas({"text": one}, {"text": two}, tolerance=Tolerance.VOLATILE)

    assert found.tokens == ("text", "n")


@given(st.text(alphabet="0123456789abcdefx-:/.T tmpidorthlcs[]\\\"'=", max_size=200))
def test_any_text_can_be_searched_and_equals_itself(text: str) -> None:
    assert deltas(text, str(text), tolerance=Tolerance.VOLATILE) == []
    marked_text(text, Tolerance.VOLATILE)


@pytest.mark.parametrize(
    "piece", ["/tmp/", "c:\\", "0x", "a1", "1:1", "pid ", "://", "[:", "12345678-", "1763760000."]
)
def test_a_long_hostile_text_takes_linear_time(piece: str) -> None:
    marked_text(piece * 50_000, Tolerance.VOLATILE)
