"""Discovery of live sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import client as module
from mcpspy.io.control.client import ControlClient, LiveSession, find_session, live_sessions, missing_session
from mcpspy.io.control.socket import ControlSocket

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.io.control.server_poll import ThreadedServer


def test_a_session_is_found_by_its_id_and_by_its_recording(opened: ThreadedServer, tmp_path: Path) -> None:
    recording = tmp_path / "weather.jsonl"
    recording.write_text(
        '{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z"}\n', encoding="utf-8"
    )
    assert find_session("0badcafe") == find_session(recording) == find_session(str(recording)) == opened.path


def test_the_error_for_a_session_that_is_not_live_has_a_hint(runtime: Path) -> None:
    with pytest.raises(CannotStart, match="mcpspy send --list"):
        find_session("0badcafe")


def test_the_live_sessions_are_listed_and_the_dead_ones_removed(
    opened: ThreadedServer, runtime: Path
) -> None:
    dead = ControlSocket.open("deadbeef")
    dead.listening.close()
    (runtime / "notes.txt").touch()
    assert [(path, hello["name"]) for path, hello in live_sessions()] == [(opened.path, "weather")]
    assert sorted(file.name for file in runtime.iterdir()) == ["0badcafe.sock", "notes.txt"]


def test_a_stopped_session_is_left_alone_and_left_out(
    silent: str, opened: ThreadedServer, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GREETING_TIMEOUT", 0.05)
    assert [path for path, _ in live_sessions()] == [opened.path]
    assert (runtime / "deadbeef.sock").exists()
    with pytest.raises(CannotStart, match="is its mcpspy suspended"):
        ControlClient(silent)


def test_nothing_is_listed_from_a_folder_that_others_can_write_to(
    opened: ThreadedServer, runtime: Path
) -> None:
    runtime.chmod(0o777)
    assert live_sessions() == []
    runtime.chmod(0o700)


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ([], "no live session in /a (start one with mcpspy run -- COMMAND)"),
        (["/b"], "no live session in /a; 1 live session in another folder: use --dir /b"),
        (["/b c", "/b c"], "no live session in /a; 2 live sessions in another folder: use --dir '/b c'"),
        (
            ["/b", "/c", "/d", "/e", "/b"],
            "no live session in /a; 5 live sessions in 4 other folders: use --dir /b or --dir /c or --dir /d …",
        ),
    ],
)
def test_sessions_of_other_folders_are_counted_and_their_folders_named(
    folders: list[str], message: str
) -> None:
    found = [LiveSession("x.sock", {"folder": folder}) for folder in folders]
    assert str(missing_session("/a", found)) == message


def test_a_session_belongs_to_the_folder_of_its_recording(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for hello in ({"folder": str(tmp_path)}, {"file": str(tmp_path / "x.jsonl")}):
        assert LiveSession("x.sock", hello).is_in(str(tmp_path / "link"))
        assert not LiveSession("x.sock", hello).is_in(str(tmp_path / "other"))
    assert not LiveSession("x.sock", {"file": None}).is_in(str(tmp_path))
