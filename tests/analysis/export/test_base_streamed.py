"""Sessions that are exported while they are read: the text of a session in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.export import base
from mcpspy.analysis.export.base import StreamedSession
from mcpspy.analysis.export.exchange_lines import export_csv, export_jsonl
from mcpspy.core.recording.decode import Entry, Header, Note, read_entry
from mcpspy.core.session.streaming import HEAVY
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.sessions import EVERY, HEADER, call, note, recorded, result, server, session_of
from tests.core.session.test_index import ENTRY, line_of

WINDOWS = [(1, 0), (2, 1 << 20), (1000, 300), (4096, 1 << 24)]
"""Exchanges and bytes in the window."""

END = st.builds(Note, st.floats(0, 100), st.just("exit"), st.just({"code": 0}))


def streamed_session(
    entries: Iterable[Entry], header: Header = HEADER, *, is_live: bool = False
) -> StreamedSession:
    kept = list(entries)
    return StreamedSession(header, lambda _: kept, lambda _: True, is_live=is_live)


@pytest.mark.parametrize(("newest", "size"), WINDOWS)
@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_a_recording_has_the_same_lines_as_in_memory(path: Path, newest: int, size: int) -> None:
    header, entries = Recording(path).header, list(Recording(path))
    with patch.multiple(base, NEWEST=newest, WINDOW_BYTES=size):
        for export in (export_csv, export_jsonl):
            text = "".join(export([streamed_session(entries, header)]))
            assert text == "".join(export([recorded(path)]))


@settings(max_examples=300, deadline=None)
@given(st.lists(ENTRY | END, max_size=24), st.sampled_from(WINDOWS), st.booleans())
def test_any_entries_have_the_same_lines_as_in_memory(
    drawn: list[Entry],
    window: tuple[int, int],
    is_live: bool,
) -> None:
    entries = [read_entry(line_of(entry)) for entry in drawn]
    with patch.multiple(base, NEWEST=window[0], WINDOW_BYTES=window[1]):
        for export in (export_csv, export_jsonl):
            text = "".join(export([streamed_session(entries, is_live=is_live)]))
            assert text == "".join(export([session_of(*entries, is_over=not is_live)]))


def test_messages_that_have_left_the_window_are_not_kept() -> None:
    large = b'"content":"%b"' % (b"x" * HEAVY)
    entries = [each for n in range(99) for each in (call(n, n), result(n + 0.5, n, large))]
    with patch.object(base, "NEWEST", 4):
        seen = []
        for exchange in streamed_session(entries).exchanges():
            assert exchange.answer is not None
            assert len(exchange.answer.data) > HEAVY
            seen.append(exchange)

    assert [each.number for each in seen if each.answer is not None and each.answer.data] == [95, 96, 97, 98]


def test_a_live_recording_that_grows_between_the_passes_is_exported_as_it_was() -> None:
    entries: list[Entry] = [call(0.1, 1), result(0.2, 1)]

    def growing(again: bool) -> Iterable[Entry]:
        yield from entries
        if again:
            yield call(0.3, 2)

    session = StreamedSession(HEADER, growing, lambda _: True, is_live=True)

    assert [exchange.number for exchange in session.exchanges()] == [0]


def test_an_exchange_that_ends_long_after_its_request_is_in_its_final_state() -> None:
    waiting = (call(0.2, n) for n in range(2, 9))
    entries: list[Entry] = [call(0.1, 1), *waiting, result(0.9, 1), note(1.0, "exit", code=0)]
    with patch.object(base, "NEWEST", 2):
        states = [str(exchange.state) for exchange in streamed_session(entries).exchanges()]

    assert states == ["ok", *["no answer"] * 7]


def test_progress_long_after_a_large_response_is_added_to_it() -> None:
    task = b'"task":{"taskId":"t","status":"working"},"content":"%b"' % (b"x" * HEAVY)
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    )
    entries: list[Entry] = [
        call(0.1, 1, more=b',"task":{},"_meta":{"progressToken":7}'),
        server(0.2, progress),
        result(0.3, 1, task),
        *(each for n in range(2, 9) for each in (call(n, n), result(n + 0.5, n))),
        server(9.0, progress),
    ]
    with patch.object(base, "NEWEST", 2):
        first = next(iter(streamed_session(entries).exchanges()))

    assert [each.at for each in first.progress] == [0.2, 9.0]
    assert first.answer is not None
    assert len(first.answer.data) > HEAVY
