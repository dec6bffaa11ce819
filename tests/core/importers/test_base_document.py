"""JSON of other tools: validated, and copied verbatim."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from mcpspy.core.importers.base import compact, read, read_lines, timestamp
from mcpspy.errors import UsageError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


class One(Struct):
    a: int
    raw: Raw = Raw(b"")


def refusal(data: bytes) -> str:
    with pytest.raises(UsageError) as refused:
        read(data, One, "tool")
    return str(refused.value)


def test_an_error_names_the_format_that_the_file_was_read_as() -> None:
    assert refusal(b"{}") == "invalid tool: object missing required field `a` (see docs/import.md)"
    assert (
        refusal(b'{"a":') == "invalid tool: input data was truncated (the file may be incomplete; "
        "save it again, or wait until the other tool has finished)"
    )
    assert refusal(b'{"a":"x"}').startswith("invalid tool: expected `int`, got `str` - at `$.a`")
    assert refusal(b"[" * 9999).startswith("invalid tool: ")
    assert refusal(b'{"a":1,"raw":' + b"[" * 99999).startswith("invalid tool: ")


def test_a_byte_order_mark_is_skipped() -> None:
    assert read(b'\xef\xbb\xbf{"a":1}', One, "tool").a == 1
    assert [one.a for _, one in read_lines(b'\xef\xbb\xbf{"a":1}\r\n\n{"a":2}', One, "tool")] == [1, 2]


def test_an_error_names_the_line_number_and_reports_a_truncated_last_line() -> None:
    def lines(data: bytes) -> str:
        with pytest.raises(UsageError) as refused:
            list(read_lines(data, One, "tool"))
        return str(refused.value)

    assert lines(b'{"a":1}\n\n{"b":1}\n').startswith("invalid tool line 3: object missing required field `a`")
    assert lines(b'{"a":1}\n{"a"').startswith("invalid tool line 2: the last line is incomplete (the file")


def test_a_fallback_reads_a_line_that_is_not_json() -> None:
    read_otherwise = read_lines(b"{a}\n", One, "tool", lambda line: One(len(line)))
    assert [one.a for _, one in read_otherwise] == [3]


@given(JSON, st.sampled_from([None, 1, "\t"]))
@settings(max_examples=50, deadline=None)
def test_compact_json_is_the_same_json_on_one_line(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert b"\n" not in compact(text)
    assert json.loads(compact(text).decode("utf-8", "surrogatepass")) == value


def test_compact_json_is_spelled_as_it_was() -> None:
    spelled = b'{\n "a": 1.0,\r\n "b": 12345678901234567890123, "c": "x \\" \\u00e9  y", "c": 1E2\n}'
    assert compact(spelled) == b'{"a":1.0,"b":12345678901234567890123,"c":"x \\" \\u00e9  y","c":1E2}'
    assert compact(Raw(b'{"a": 1}')) == b'{"a": 1}'


@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))
def test_a_moment_is_that_of_the_calendar(when: datetime) -> None:
    assert timestamp(when.isoformat(), "tool") == pytest.approx(when.timestamp(), abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T08:13:03.745Z",
        "2026-11-21T09:13:03.745+01:00",
        "2026-11-21t02:43:03,745000000-0530",
        " 2026-11-21 08:13:03.745 ",
    ],
)
def test_a_moment_is_the_same_however_it_is_written(text: str) -> None:
    assert timestamp(text, "tool") == pytest.approx(1795248783.745)


@pytest.mark.parametrize("text", ["", "today", "2026-13-41T08:13:03Z", "2026-11-21", "0000-00-00T00:00:00Z"])
def test_an_invalid_date_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^invalid tool: .* is not a (valid )?date"):
        timestamp(text, "tool")
