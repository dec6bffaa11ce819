"""The texts around the list, and the parts that are dropped if space is short."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.recording.tail import RESTARTED
from mcpspy.ui.model.row_filter import FilteredView, ViewOptions
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.session.labels import moment, position, sentence, title

NOW = datetime(2026, 5, 20, 15, 0, tzinfo=timezone(timedelta(hours=2)))
PING = Frame(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')


@pytest.fixture
def loader(live: Any) -> SessionLoader:
    return SessionLoader(summarize(live.path, read_header_of(live.path)))


def fed(loader: SessionLoader, *entries: Entry, over: bool = False) -> str:
    for entry in entries:
        loader.model.add(entry, 0, 0)
    if over:
        loader.model.end()
    return sentence(loader)[0]


def ended(code: int | None = 0, signal: str | None = None) -> Note:
    return Note(2.0, "exit", {"code": code, "signal": signal})


def said(pieces: tuple[list[tuple[str, str | None]], list[tuple[str, str | None]]]) -> tuple[str, str]:
    left, right = ("".join(text for text, _ in side) for side in pieces)
    return left, right


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        ("2026-05-20T11:30:00.000Z", "13:30:00"),
        ("2026-05-19T11:30:00.000Z", "May 19 13:30"),
        ("2025-05-19T11:30:00.000Z", "2025-05-19"),
        ("yester\x1bday", "yester\\x1bday"),
    ],
)
def test_a_start_time_has_its_shortest_form(started: str, shown: str) -> None:
    assert moment(started, NOW) == shown


def test_a_live_session_waits_for_its_first_message(loader: SessionLoader) -> None:
    assert fed(loader) == "waiting for the first message"
    assert fed(loader, PING) == ""


def test_a_long_session_shows_the_reading_progress(loader: SessionLoader) -> None:
    loader.size, loader.done = 4_000_000, 1_000_000
    assert fed(loader, PING) == "reading … 25 %"
    loader.done = 3_990_000
    assert fed(loader) == ""


def test_an_ended_session_shows_its_exit(loader: SessionLoader) -> None:
    assert fed(loader, PING, ended(), over=True) == "ended: exit 0 after 2.00 s; 1 unanswered request"


def test_a_killed_session_shows_the_signal(loader: SessionLoader) -> None:
    assert (
        fed(loader, ended(None, "SIGKILL"), over=True) == "ended: killed by SIGKILL after 2.00 s; no messages"
    )


def test_a_died_session_reports_its_incomplete_last_line(loader: SessionLoader) -> None:
    loader.torn = 17
    assert (
        fed(loader, over=True)
        == "died: mcpspy was killed before the server exited; incomplete last line skipped (17 bytes)"
    )


def test_problems_of_the_file_come_first(loader: SessionLoader) -> None:
    loader.model.begin_again(loader.model.header)
    assert fed(loader).startswith(RESTARTED)
    loader.is_deleted = True
    assert fed(loader) == "the file was deleted while open; new messages are still shown"
    loader.trouble = "x.jsonl: no\x1b"
    assert fed(loader) == "x.jsonl: no\\x1b"


def test_a_title_drops_the_least_important_parts_first(loader: SessionLoader) -> None:
    hello = b'"protocolVersion":"2025-11-25","capabilities":{}'
    fed(
        loader,
        Frame(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"host"},%b}}' % hello),
        Frame(0.2, "server", b'{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"weather","version":"1"},%b}}' % hello),
        PING,
        Frame(0.3, "server", b"noise"),
    )  # fmt: skip

    assert said(title(loader, FilteredView(loader.model), 120)) == (
        "live · weather 1 · host · 2025-11-25 · ● LIVE",
        "4 messages · 2 protocol issues · 1 pending",
    )
    assert said(title(loader, FilteredView(loader.model), 70)) == (
        "live · weather 1 · ● LIVE",
        "4 messages · 2 protocol issues · 1 pending",
    )
    assert said(title(loader, FilteredView(loader.model), 40)) == ("live · ● LIVE", "4 messages")
    assert said(title(loader, FilteredView(loader.model), 5)) == ("live", "")


def test_a_position_shows_the_follow_state_and_new_rows(loader: SessionLoader) -> None:
    fed(loader, PING)
    view = FilteredView(loader.model)
    view.advance(lambda: True)

    def shown(**how: Any) -> str:
        return "".join(text for text, _ in position(loader, view, 0, **how))

    assert shown(follows=True, new=0) == "1/1  following"
    assert shown(follows=False, new=37) == "1/1  paused, +37 new (End)"
    fed(loader, over=True)
    assert shown(follows=False, new=0) == "1/1"


def test_a_position_shows_the_matches_and_the_filter_progress(loader: SessionLoader) -> None:
    fed(loader, *[PING] * 2000, over=True)
    view = FilteredView(loader.model, ViewOptions(query=parse("text:ping")))

    def shown() -> str:
        return "".join(text for text, _ in position(loader, view, 0, follows=False, new=0))

    assert shown() == "no match so far · filtering 0 %"
    view.want(ViewOptions(query=parse("is:issue")))
    view.advance(lambda: True)
    assert shown() == "1/1,999 matches in 2,000 rows"
    view.want(ViewOptions(query=parse("tool:x")))
    view.advance(lambda: True)
    assert shown() == "0 matches in 2,000 rows"
