"""Numbers with units: comparisons, and invalid numbers."""

from __future__ import annotations

import pytest

from mcpspy.core.query.parser import QueryError, parse
from tests.core.query.querying import EVERY


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (">200ms", "CALL PROMPT"),
        ("lat>200ms", "CALL PROMPT"),
        ("latency >= .25s", "CALL PROMPT"),
        ("lat:<150ms", "FAILURE"),
        ("<100001us", "FAILURE"),
        ("<100001µs", "FAILURE"),
        (">0.02min", "PROMPT"),
        (">1s -(<1h)", ""),
        (">10kb", "CALL"),
        ("size>=12k size<=0.012M", "CALL"),
        ("size:12000", "CALL"),
        ("size>12000b", ""),
        ("time>10s", "PROGRESS"),
        ("time>1.5m", ""),
        ("time=3", "CALL"),
        ("-lat>0s -note:*", "READ TOOL_ERROR REFUSED LATE STRAY PROGRESS FOUND"),
        ("since:10s", "PROGRESS"),
        ("since:3 until:0.1min", "CALL"),
    ],
)
def test_a_number_finds_matching_items(query: str, found: str) -> None:
    wants = parse(query).matches

    assert [name for name, row in EVERY.items() if wants(row)] == found.split()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("since:-10s", "PROGRESS"),
        ("since:-97s -until:-11s", "PROGRESS"),
        ("since:-97s until:-11s", "CALL"),
        ("until:-1.65min", "READ"),
        ("-since:-97s", "READ"),
    ],
)
def test_a_negative_time_counts_back_from_the_end(query: str, found: str) -> None:
    wants = parse(query)
    wants.end = 100.0

    assert [name for name in ("CALL", "READ", "PROGRESS") if wants.matches(EVERY[name])] == found.split()


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        ("size>5ms", 'size takes bytes, not "ms"', "5ms"),
        ("lat>5kb", 'lat takes a time, not "kb"', "5kb"),
        ("time<5kb", 'time takes a time, not "kb"', "5kb"),
        ("lat>5", "5 needs a unit (example: latency>200ms)", "5"),
        (">5", "5 needs a unit (example: >200ms or >10kb)", "5"),
        (">5m", "5m is ambiguous: write 5min or 5mb", "5m"),
        (">5x", 'unknown unit "x": use µs, ms, s, min or h for times, b, kb, mb or gb for sizes', "5x"),
        ("size>big", "big is not a number (example: size>10kb)", "big"),
        ("lat:200ms", "lat needs < or >: write lat>200ms", "200ms"),
        ("code>5s", 'code takes a number, not "5s"', "5s"),
        ("since:5kb", 'since takes a time, not "kb"', "5kb"),
        ("since:-soon", "-soon is not a time (example: since:-5m or since:10s)", "-soon"),
        ("until=5m", "until needs a colon: write until:5m", "5m"),
    ],
)
def test_an_invalid_number_is_one_line_with_a_position(text: str, message: str, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined
