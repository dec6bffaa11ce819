"""Tests of comparing two sessions or two exchanges, and of the rows of their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpspy.analysis.diff import ChangeKind, DiffOptions
from mcpspy.core.recording.decode import Entry, Note
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.recording.reader import Recording, Summary, read_header_of, summarize
from mcpspy.ui.tui.diff import comparison
from mcpspy.ui.tui.diff.comparison import ExchangePair, SessionPair
from tests.ui.tui.diff.pairs import NEW, OLD, call
from tests.ui.tui.panels.panels import HEADER, Lines

Make = Callable[..., Path]

PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}'


def summary(path: Path) -> Summary:
    return summarize(path, read_header_of(path))


def text(number: int, said: str, **arguments: object) -> list[tuple[str, bytes]]:
    return call(number, "echo", said, **arguments)


async def test_a_change_leads_to_its_row_on_both_sides(make_recording: Make) -> None:
    extra = text(9, "more")
    old, new = make_recording(OLD), make_recording([*OLD[:2], *extra, *NEW[2:]], torn=b'{"t":9,"fr')
    found = await SessionPair(summary(old), summary(new)).compare(DiffOptions())
    for path, side, rows in ((old, "old", found.old), (new, "new", found.new)):
        recording = Recording(path)
        changes = Session(recording.header).add_all(recording).changes
        for case in found.difference.changed:
            place = getattr(case, side)
            if place is None:
                assert (side, case.subject) == ("old", "echo")
                continue
            exchange = changes[rows[place]].exchange
            assert exchange is not None
            assert (exchange.request.method, exchange.request.subject) == (case.method, case.subject)
            assert changes[rows[place]].what is exchange.request
    assert [case.subject for case in found.difference.changed] == ["echo", "forecast", "words", "alerts"]
    assert found.warning == "tested: incomplete last line skipped (10 bytes)"


async def test_requests_of_one_batch_have_separate_rows(make_recording: Make) -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"roots/list"}]'
    answer = b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"%b":%b}]'
    old, new = (
        make_recording([("client", batch), ("server", answer % said)])
        for said in ((b"result", b'{"roots":[]}'), (b"error", b'{"code":1,"message":"no"}'))
    )
    found = await SessionPair(summary(old), summary(new)).compare(DiffOptions())
    (case,) = found.difference.changed
    assert case.method == "roots/list"
    assert case.new is not None
    assert found.new[case.new] == 1


async def test_a_pair_has_titles_and_can_be_reversed(make_recording: Make) -> None:
    pair = SessionPair(summary(make_recording(OLD, name="o\x1bld")), summary(make_recording(NEW, name="new")))
    assert [title.split()[0] for title in pair.titles] == ["o\\x1bld", "new"]
    assert [title.split()[0] for title in pair.reversed.titles] == ["new", "o\\x1bld"]


async def test_a_missing_or_unreadable_file_is_an_error_with_its_name(
    make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = make_recording(OLD), make_recording(NEW)
    pair = SessionPair(summary(path), summary(other))

    def broken(self: Recording) -> Iterator[Entry]:
        yield Note(0.0, "stderr", {"text": "a word"})
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Recording, "__iter__", broken)
        with pytest.raises(CannotStart, match=f"{path.name}: Input/output error"):
            await pair.compare(DiffOptions())
    path.unlink()
    with pytest.raises(McpspyError, match=path.name):
        await pair.compare(DiffOptions())


async def test_reading_stops_when_the_result_is_not_needed(
    make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "COMPARISON_SLICE", 1)
    pair, taken = SessionPair(summary(make_recording(OLD)), summary(make_recording(NEW))), []
    entries = Recording.__iter__

    def counted(self: Recording) -> Iterator[Entry]:
        for entry in entries(self):
            taken.append(entry)
            yield entry

    monkeypatch.setattr(Recording, "__iter__", counted)
    found = pair._compare(DiffOptions(), lambda: len(taken) < 3)
    assert (found.difference.cases, len(taken)) == ((), 4), (
        "the third entry of one file, the first of the other"
    )
    assert pair.progress.startswith("reading tested, ")


def exchanges() -> Lines:
    """Return two calls of one tool with different arguments, each with two progress notifications."""
    lines = Lines()
    for number, answer in ((1, b"one"), (2, b"two")):
        at, last = number / 10, 2 * number
        request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d},"_meta":{"progressToken":%d}}}'
        lines.say(at, "client", request % (number, number, number))
        for step in (1, last):
            lines.say(at, "server", PROGRESS % (number, step))
        lines.say(at, "server", b'{"jsonrpc":"2.0","id":%d,"result":{"said":"%b"}}' % (number, answer))
    return lines


async def test_a_diff_of_exchanges_includes_results_and_all_progress() -> None:
    pair = ExchangePair(exchanges().log, 0, 4)
    assert pair.titles == ("at 0.100 s, id 1", "at 0.200 s, id 2")
    assert pair.reversed.titles == ("at 0.200 s, id 2", "at 0.100 s, id 1")
    found = await pair.compare(DiffOptions())
    (case,) = found.difference.cases
    said = {change.kind: (change.pointer, change.old, change.new) for change in case.changes}
    assert said[ChangeKind.REQUEST] == ("/params/arguments/n", 1, 2)
    assert said[ChangeKind.RESULT] == ("/result/said", "one", "two")
    assert said[ChangeKind.PROGRESS] == ("/progress/1/params/progress", 2, 4)
    assert case.old is not None
    assert case.new is not None
    assert (found.old[case.old], found.new[case.new]) == (0, 4)


async def test_an_exchange_missing_from_the_file_is_an_error() -> None:
    lines = exchanges()
    lines.data.clear()
    with pytest.raises(CannotStart, match="no longer in the file"):
        await ExchangePair(lines.log, 0, 4).compare(DiffOptions())
    lines.log.begin_again(HEADER)
    assert ExchangePair(lines.log, 0, 4).titles == ("no longer in the file", "no longer in the file")
    with pytest.raises(CannotStart):
        await ExchangePair(lines.log, 0, 4).compare(DiffOptions())
