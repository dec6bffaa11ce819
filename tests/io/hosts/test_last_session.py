"""The outcome of the last session of a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.recording import encode
from mcpspy.core.session.outcome import Verdict
from mcpspy.io.hosts.last_session import MAX_CHECKED, SessionsByName
from mcpspy.io.recording.writer import Writer


def record(folder: Path, name: str, *, code: int | None = 0, signal: str | None = None) -> Path:
    """Write a session. Without a code and a signal, it has no exit."""
    writer = start(folder, name)
    if (code, signal) != (None, None):
        writer.note(1.0, "exit", code=code, signal=signal)
    writer.close()
    return Path(writer.path)


def start(folder: Path, name: str, origin: str = "host") -> Writer:
    fields: dict[str, encode.Value] = {
        "transport": "stdio",
        "command": ["x"],
        "name": name,
        "origin": origin,
    }
    return Writer(str(folder), None, fields, say=pytest.fail)


def date(path: Path, day: bytes) -> None:
    """Set the start of a session to a day."""
    head, rest = path.read_bytes().split(b"\n", 1)
    at = head.index(b'"started":"') + len(b'"started":"')
    path.write_bytes(head[:at] + day + head[at + len(day) :] + b"\n" + rest)


@pytest.mark.parametrize(
    ("code", "signal", "verdict"),
    [
        (0, None, Verdict.FINE),
        (143, None, Verdict.FINE),
        (None, "SIGTERM", Verdict.FINE),
        (1, None, Verdict.CRASHED),
        (None, "SIGSEGV", Verdict.CRASHED),
        (None, None, Verdict.DIED),
    ],
)
def test_the_verdict_of_a_session_depends_on_its_end(
    tmp_path: Path, code: int | None, signal: str | None, verdict: Verdict
) -> None:
    path = record(tmp_path, "a", code=code, signal=signal)

    last = SessionsByName().last("a", str(tmp_path))

    assert last is not None
    assert (last.verdict, last.summary.path) == (verdict, path)


def test_a_live_session_counts_before_a_newer_one_that_ended(tmp_path: Path) -> None:
    writer = start(tmp_path, "a")
    date(record(tmp_path, "a", code=1), b"2099-01-01")
    try:
        last = SessionsByName().last("a", str(tmp_path))
        assert last is not None
        assert last.verdict is Verdict.LIVE
        assert last.summary.path == Path(writer.path)
    finally:
        writer.close()


def test_of_those_that_ended_the_newest_counts(tmp_path: Path) -> None:
    paths = [record(tmp_path, "a", code=n) for n in range(MAX_CHECKED + 2)]
    for day, path in enumerate(paths, 1):
        date(path, b"2026-01-%02d" % day)

    last = SessionsByName().last("a", str(tmp_path))

    assert last is not None
    assert last.summary.path == paths[-1]


def test_a_replay_is_not_the_last_session_of_a_server(tmp_path: Path) -> None:
    path = record(tmp_path, "a", code=1)
    start(tmp_path, "a", "replay").close()

    last = SessionsByName().last("a", str(tmp_path))

    assert last is not None
    assert last.summary.path == path


def test_a_server_without_a_session_has_none(tmp_path: Path) -> None:
    record(tmp_path, "a")
    (tmp_path / "other.jsonl").write_text("no recording\n", encoding="utf-8")
    sessions = SessionsByName()

    assert sessions.last("b", str(tmp_path)) is None
    assert sessions.last("a", str(tmp_path / "nowhere")) is None


def test_a_session_that_was_deleted_meanwhile_is_passed_over(tmp_path: Path) -> None:
    record(tmp_path, "weather", code=3)
    newest = record(tmp_path, "weather")
    named = SessionsByName()
    last = named.last("weather", str(tmp_path))
    assert last is not None
    assert last.verdict is Verdict.FINE

    newest.unlink()
    last = named.last("weather", str(tmp_path))

    assert last is not None
    assert last.verdict is Verdict.CRASHED
