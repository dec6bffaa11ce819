"""An index that is restored from its state equals the one that read the lines."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.core.session.http_exchanges import HttpExchanges
from mcpspy.core.session.index import Index
from mcpspy.core.session.index_state import (
    COLUMNS,
    LISTS,
    StoredExchanges,
    StoredIndex,
    dump,
    restore,
    stored_tables,
)
from mcpspy.core.session.request_table import RequestTable
from tests.core.session.test_correlation import ANSWERED, ASKED, HELLO
from tests.core.session.test_http_exchanges import STREAMS
from tests.core.session.test_index import ENTRY, RECORDINGS, line_of

DERIVED = {
    *("header", "_pairing", "_count", "_room", "_text_numbers", "_recalled", "_offset_now", "_length_now")
}
"""Attributes of an index that its state lacks: it has the content of `_pairing` as `StoredTables`."""

EXIT = b'{"t":9,"note":"exit","code":0}'
PLAIN = [
    line.replace(b'"id":1', b'"id":%d' % number) for number in (1, 2, 3, 2) for line in (ASKED, ANSWERED)
]


def indexed(lines: list[bytes], index: Index | None = None) -> Index:
    """Return an index of the lines, or one to which they were added."""
    index = Index() if index is None else index
    index.begin_part()
    index.add_lines(lines, 100)
    return index


def restored(index: Index) -> Index:
    """Return a new index with the state of another one."""
    again = Index()
    restore(again, b"".join(dump(index)))
    return again


def test_the_reason_of_a_crash_is_restored_before_and_after_it() -> None:
    lines = [b'{"t":8,"note":"stderr","text":"boom"}', b'{"t":9,"note":"exit","code":1}']
    index = indexed(lines)
    assert (index.crashes, index.last_stderr) == ([0, 1], [0])
    for read in (1, 2):
        again = restored(indexed(lines[:read]))
        again.add_lines(lines[read:], 0)
        assert (again.crashes, again.last_stderr) == ([0, 1], [0])


@pytest.mark.parametrize("read", range(len(STREAMS)))
def test_a_stream_of_events_is_restored_before_and_after_each_of_its_entries(read: int) -> None:
    whole, again = indexed(STREAMS), restored(indexed(STREAMS[:read]))
    again.add_lines(STREAMS[read:], 0)
    for name in ("open", "gets", "latest", "folded", "totals"):
        assert getattr(again.http_exchanges, name) == getattr(whole.http_exchanges, name)


def content(index: Index) -> dict[str, Any]:
    """Return everything that an index holds, as plain values."""
    found: dict[str, Any] = {name: list(getattr(index, name)[: len(index)]) for name in COLUMNS}
    found |= {name: list(getattr(index, name)) for name in LISTS}
    found |= {name: getattr(index, name) for name in StoredIndex.__struct_fields__}
    found["numbers"] = index._text_numbers
    if index.exit is None:
        found["tables"] = stored_tables(index)
        found["answered"] = {key: (slot.row, slot.state) for key, slot in index._pairing.answered.items()}
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(ENTRY, max_size=30), st.integers(0, 40), st.booleans(), st.booleans())
@example([Frame(1.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"x"}')], 9, True, True)
def test_a_restored_index_equals_a_new_one_and_so_it_does_after_more_lines(
    entries: list[Entry], place: int, is_agreed: bool, has_plain: bool
) -> None:
    lines = (
        (HELLO if is_agreed else []) + (PLAIN if has_plain else []) + [line_of(entry) for entry in entries]
    )
    first, rest = lines[:place], lines[place:]
    index = indexed(first)
    again = restored(index)
    assert content(again) == content(index)
    assert content(indexed([*rest, EXIT], again)) == content(indexed([*rest, EXIT], index))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_real_session_is_restored(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")[1:-1]
    index = indexed(lines)
    assert content(restored(index)) == content(index)
    half = len(lines) // 2
    assert content(indexed(lines[half:], restored(indexed(lines[:half])))) == content(
        indexed(lines[half:], indexed(lines[:half]))
    )


def test_the_state_has_every_attribute_of_an_index_and_of_its_table() -> None:
    stored = {"http_exchanges", *StoredIndex.__struct_fields__}
    assert set(vars(Index())) == {*COLUMNS, *LISTS, *DERIVED, *stored}
    derived = {"listening", "_forgets", "_follows_all"}
    assert {*vars(HttpExchanges())} - derived == {*StoredExchanges.__struct_fields__} - {"exchanges"}
    restored_by_name = {name for name in vars(RequestTable()) if name.strip("_") in fields_of_tables()}
    assert set(vars(RequestTable())) - restored_by_name == {
        "_forgets",
        "_over",
        "_answered",
        "_is_merged",
        "recall",
    }
    typecodes = {name for name, value in vars(Index()).items() if isinstance(value, array)}
    assert typecodes == {*COLUMNS, *LISTS}


def fields_of_tables() -> set[str]:
    return set(stored_tables(Index()).__struct_fields__)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[: data.find(b"\n") + 1],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: data[data.find(b"\n") + 1 :],
        lambda data: data.replace(b'["what","B"', b'["what","H"', 1),
        lambda data: data.replace(b'"byteorder":"0', b'"byteorder":"9', 1),
        lambda data: data.replace(
            b'"open":[[[null,"client","1"],[2]]]', b'"open":[[[null,"client","1"],[3]]]', 1
        ),
        lambda data: data.replace(b'"messages":3', b'"messages":"3"', 1),
        lambda data: data.replace(b'"messages":3', b'"massages":3', 1),
    ],
    ids=range(10),
)
def test_a_damaged_state_is_refused_and_the_index_stays_new(change: Any) -> None:
    data = b"".join(dump(indexed([*HELLO, ASKED])))
    assert change(data) != data
    index = Index()
    with pytest.raises(ValueError, match=r"."):
        restore(index, change(data))
    assert content(index) == content(Index())


def test_columns_of_different_lengths_are_refused() -> None:
    data = b"".join(dump(indexed([*HELLO, ASKED])))
    shorter = data.replace(b'["what","B",3]', b'["what","B",2]', 1)
    assert shorter != data
    with pytest.raises(ValueError, match="differ in length"):
        restore(Index(), shorter[:-1])


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "\ud800"])
def test_a_value_that_json_cannot_hold_has_no_state(value: Any) -> None:
    index = indexed(HELLO)
    index.add(Note(1.0, "exit", {"code": value}), 0, 0)
    with pytest.raises(ValueError, match="JSON cannot hold"):
        dump(index)


def test_a_pending_request_is_answered_after_it_was_restored() -> None:
    index = restored(indexed([*HELLO, ASKED]))
    assert index.pending == 1
    index.add_lines([ANSWERED], 0)
    assert (index.pending, index.pair(2), index.take_plain([ASKED], 0)) == (0, 3, 0)


def test_a_crash_is_known_after_a_restore_and_so_are_the_lines_before_it() -> None:
    lines = [b'{"t":%d,"note":"stderr","text":"x"}' % (60 + number) for number in range(2)]
    crash = b'{"t":61.5,"note":"exit","code":1}'
    index = indexed([*lines, crash])
    assert (index.last_stderr, index.crashes) == ([0, 1], [0, 2])
    assert content(restored(index)) == content(index)
    later = indexed([crash], restored(indexed(lines)))
    assert (later.last_stderr, later.crashes) == ([0, 1], [0, 2])
