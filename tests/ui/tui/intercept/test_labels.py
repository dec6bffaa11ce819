"""Tests of the texts about held messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.index import Index
from mcpspy.ui.tui.intercept.labels import bar, cell, clock, countdown, host_timeout, short_name, unreachable
from tests.ui.tui.intercept.conftest import INITIALIZE, call
from tests.ui.tui.intercept.test_connection_messages import read

if TYPE_CHECKING:
    from mcpspy.ui.model.session_loader import SessionLoader


def index_of(*frames: tuple[float, str, bytes]) -> Index:
    index = Index()
    for number, (at, side, data) in enumerate(frames):
        index.add(Frame(at, side, data), number * 100, 99)
    return index


def line(query: str | None, count: int, width: int = 200, seconds: float = 110.0) -> str:
    first = read(rule="", viewer="tui") if count else None
    host = ("Cline times out in 0:48", None) if count else None
    return "".join(text for text, _ in bar(query, count, first, host, now=seconds, width=width))


def test_a_clock_counts_down_to_zero() -> None:
    assert [clock(seconds) for seconds in (-3, 0.9, 59.9, 299, 3600)] == [
        "0:00",
        "0:00",
        "0:59",
        "4:59",
        "1:00:00",
    ]


def test_the_row_shows_the_age_and_the_line_the_remaining_time() -> None:
    assert cell(read(), 112.5)[0] == "HELD 0:12"
    assert countdown(read(), 112.5) == ("auto-releases in 4:47", "quiet")
    assert countdown(read(), 390.0) == ("auto-releases in 0:10", "bad")


def test_the_line_drops_the_least_important_parts_first() -> None:
    whole = "intercepting tool:x · 1 held · tools/call write_file · auto-releases in 4:50 · Cline times out in 0:48"
    assert line("tool:x", 1) == whole
    assert line("tool:x", 1, len(whole)) == whole
    assert (
        line("tool:x", 1, len(whole) - 1)
        == "intercepting tool:x · 1 held · auto-releases in 4:50 · Cline times out in 0:48"
    )
    assert line("tool:x", 1, 60) == "intercepting tool:x · 1 held · Cline times out in 0:48"
    assert line("tool:x", 1, 10) == "intercepting tool:x · 1 held"
    assert line("", 0) == "intercepting all messages · 0 held"
    assert line(None, 0) == ""


def test_text_of_peers_is_sanitized_and_truncated() -> None:
    assert short_name(read(subject="\x1b]0;x")) == "tools/call \\x1b]0;x"
    assert len(short_name(read(subject="x" * 100))) == 40
    assert "\x1b" not in line("tool:\x1b", 0)


def test_a_host_times_out_a_known_time_after_its_request() -> None:
    hello = str(INITIALIZE).replace("'", '"').encode()
    index = index_of(
        (0.0, "client", b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}' % hello),
        (2.0, "client", call(1)),
        (3.0, "server", b'{"jsonrpc":"2.0","id":5,"method":"roots/list"}'),
    )
    assert host_timeout(index, 1, 12.0) == ("Cline times out in 0:50", "open")
    assert host_timeout(index, 1, 52.0) == ("Cline times out in 0:10", "bad")
    assert host_timeout(index, 1, 62.5) == ("Cline has timed out", "bad")
    assert host_timeout(index, 2, 12.0) is None, "the server waits, not the host"
    assert host_timeout(index, None, 12.0) is None


def test_the_reason_why_a_session_cannot_be_reached_names_the_way_out() -> None:
    for is_merged, why in ((True, "open one alone (O)"), (False, "the session has ended")):
        loader = cast("SessionLoader", SimpleNamespace(model=SimpleNamespace(is_merged=is_merged)))
        assert why in unreachable(loader)
