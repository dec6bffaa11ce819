"""Sessions of a test become its recording."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.ui.pytest_plugin.cassettes import add, is_served, recorded, replace, sessions
from tests.core.redact import corpus, unseen

if TYPE_CHECKING:
    from tests.ui.conftest import Make, Said


def echo(word: bytes) -> list[Said]:
    return [
        ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b"}}' % word),
        ("server", b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"pin":"%b"}}' % word),
    ]


def subjects(path: Path) -> list[str | None]:
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    return [exchange.request.subject for exchange in session.exchanges]


def test_sessions_come_in_the_order_in_which_they_began(make_recording: Make, tmp_path: Path) -> None:
    folder = tmp_path / "played"
    assert sessions(folder) == []

    made = []
    for number, second in enumerate((3, 1, 2)):
        path = make_recording(name=f"{number}", folder=folder)
        header, rest = path.read_bytes().split(b"\n", 1)
        started = header.replace(b'"started":"20', b'"started":"1%d' % second)
        path.write_bytes(started + b"\n" + rest)
        made.append(path)
    (folder / "empty.jsonl").touch()  # A new file, whose header follows.

    assert sessions(folder) == [made[1], made[2], made[0]]


def test_a_new_recording_takes_the_place_of_all_that_was_there(make_recording: Make, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "x.jsonl"
    first, second, third = (make_recording(echo(word)) for word in (b"a", b"b", b"c"))

    assert replace([first, second], target, RedactionOptions()) == [target, target.with_name("x.2.jsonl")]
    assert [subjects(path) for path in recorded(target)] == [["a"], ["b"]]

    assert replace([third], target, RedactionOptions()) == [target]
    assert [subjects(path) for path in recorded(target)] == [["c"]]
    assert [path.name for path in target.parent.iterdir()] == ["x.jsonl"]


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_concurrent_additions_overwrite_nothing(
    has_links: bool, make_recording: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.jsonl"
    replace([make_recording(echo(b"first"))], target, RedactionOptions())
    if not has_links:

        def link(source: str, target: str) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", link)
        for word in (b"0", b"1"):
            add([make_recording(echo(word))], target, RedactionOptions())
        assert [subjects(path) for path in recorded(target)] == [["first"], ["0"], ["1"]]
        return
    made = [make_recording(echo(b"%d" % number)) for number in range(4)]
    barrier = Barrier(len(made), timeout=10)

    def add_one(path: Path) -> None:
        barrier.wait()
        add([path], target, RedactionOptions())

    threads = [Thread(target=add_one, args=(path,)) for path in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    kept = [subjects(path)[0] for path in recorded(target)]
    assert kept[0] == "first"
    assert sorted(map(str, kept[1:])) == ["0", "1", "2", "3"]
    assert not list(target.parent.glob(".*.new"))


def test_cassettes_are_redacted_by_the_project_settings_and_private_to_the_user(
    make_recording: Make, tmp_path: Path
) -> None:
    settings = tmp_path / "mcpspy.toml"
    settings.write_text('[redact]\nkeys = ["pin"]\n', encoding="utf-8")
    redaction = RedactionOptions()
    redaction.config = str(settings)
    (path,) = replace([make_recording(echo(b"opensesame"))], tmp_path / "kept" / "x.jsonl", redaction)

    text = path.read_text(encoding="utf-8")
    assert '"pin":"[redacted:' in text
    assert Recording(path).header.redacted
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    # Placeholders of earlier redactions do not change.
    (copied,) = replace([path], tmp_path / "again.jsonl", redaction)
    assert copied.read_text(encoding="utf-8").splitlines()[1:] == text.splitlines()[1:]


def test_no_secret_is_left_in_the_folder_of_a_cassette(make_recording: Make, tmp_path: Path) -> None:
    calls = unseen.calls()
    session = make_recording([("client", case.text.encode()) for case in calls])
    replace([session], tmp_path / "kept" / "x.jsonl", RedactionOptions())
    written = "\n".join(corpus.texts(path.read_bytes()) for path in (tmp_path / "kept").iterdir())
    assert "[redacted:" in written
    assert [case.what for case in calls if any(secret in written for secret in case.secrets)] == []


def test_a_session_without_a_question_or_a_server_cannot_be_served(make_recording: Make) -> None:
    request, answered = echo(b"a")

    assert is_served(make_recording([request, answered]))
    assert not is_served(make_recording([request]))
    assert not is_served(make_recording([]))
    assert not is_served(make_recording([("server", b'{"jsonrpc":"2.0","method":"notifications/message"}')]))
