"""Finding and reading recordings: complete or incomplete, ended or live."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Frame, Note
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.hosts.last_session import SessionsByName
from mcpspy.io.recording import catalog, reader
from mcpspy.io.recording.catalog import Catalog, sessions
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.reader import Recording, RecordingState, delete, read_header_of
from mcpspy.io.recording.scan import BLOCK
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.pytest_plugin import cassettes
from tests.io.files import (
    BOUND,
    CLIENT_FRAME,
    EXIT,
    SERVER_FRAME,
    elsewhere,
    frame,
    kinds,
    note,
    one_line_with_a_way_out,
    write,
)

if TYPE_CHECKING:
    pass

# Reading one


def test_a_recording_is_its_header_and_its_entries_in_order(path: Path) -> None:
    write(
        path,
        frame(1, "client", CLIENT_FRAME),
        frame(2, "server", SERVER_FRAME),
        note(3, "stderr", text="x"),
        EXIT,
    )
    recording = Recording(str(path))
    assert (recording.path, recording.header.id, recording.header.name) == (path, "ab12cd34", "srv")
    assert [(type(entry), entry.at) for entry in recording] == [
        (Frame, 1.0),
        (Frame, 2.0),
        (Note, 3.0),
        (Note, 9.0),
    ]
    assert recording.torn == 0
    assert Session(recording.header).add_all(recording).server == Peer("srv", "2")


def test_a_recording_can_be_read_twice_and_sees_what_came_in_between(path: Path, writer: Writer) -> None:
    recording = Recording(path)
    assert list(recording) == []
    writer.note(1.0, "stderr", text="x")
    assert kinds(list(recording)) == ["stderr"]
    assert kinds(list(recording)) == ["stderr"]


def test_reading_leaves_the_file_as_it_is(path: Path) -> None:
    write(path, frame(1, "client", CLIENT_FRAME), b'{"t":2,"fr')
    path.chmod(0o400)
    before, data = path.stat(), path.read_bytes()
    list(Recording(path))
    sessions(str(path.parent))
    after = path.stat()
    assert path.read_bytes() == data
    assert (after.st_mtime_ns, after.st_mode, after.st_ino) == (
        before.st_mtime_ns,
        before.st_mode,
        before.st_ino,
    )
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "torn", [b'{"t":2,"from":"client","msg":{"id', b'{"t":2,"note":"exit"}', b"\xff", b"{"]
)
def test_an_incomplete_last_line_is_skipped_and_counted(path: Path, torn: bytes) -> None:
    write(path, frame(1, "client", CLIENT_FRAME), torn)
    recording = Recording(path)
    for _ in range(2):
        assert kinds(list(recording)) == ["Frame"]
        assert recording.torn == len(torn)
    assert recording.state is RecordingState.DIED


def test_a_damaged_line_in_the_middle_loses_no_other_line(path: Path) -> None:
    write(
        path, note(1, "stderr", text="a"), b"half a li\n", b"\n", b"\x00\xff\n", note(2, "stderr", text="b")
    )
    assert kinds(list(Recording(path))) == ["stderr", "Damaged", "Damaged", "Damaged", "stderr"]


@pytest.mark.parametrize("size", [10, BLOCK - 60, BLOCK, 3 * BLOCK + 1])
def test_a_message_of_any_size_is_read_whole(path: Path, size: int) -> None:
    write(path, frame(1, "client", ["x" * size]), frame(2, "server", []), EXIT)
    first, second, last = Recording(path)
    assert isinstance(first, Frame)
    assert first.data == json.dumps(["x" * size]).encode()
    assert (second.at, last.at) == (2.0, 9.0)


def test_parts_are_read_one_after_the_other(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", note(1, "stderr", text="1"), note(2, "part", next="a.part2.jsonl"))
    write(
        tmp_path / "a.part2.jsonl", note(3, "stderr", text="2"), note(4, "part", next="a.part3.jsonl"), part=2
    )
    write(tmp_path / "a.part3.jsonl", note(5, "stderr", text="3"), EXIT, part=3)
    recording = Recording(tmp_path / "a.jsonl")
    assert [entry.at for entry in recording] == [1, 2, 3, 4, 5, 9]
    assert recording.state is RecordingState.ENDED


def test_parts_as_the_writer_makes_them_are_one_session(path: Path) -> None:
    writer = Writer(None, str(path), {"name": "srv"}, say=pytest.fail, max_size=400)
    for number in range(30):
        writer.note(float(number), "stderr", text="x" * 40)
    assert writer.path != str(path)
    told = [entry for entry in Recording(path) if isinstance(entry, Note) and entry.kind == "stderr"]
    assert [entry.at for entry in told] == list(range(30))
    assert Recording(path).state is RecordingState.LIVE
    writer.close()
    assert Recording(path).state is RecordingState.DIED


@pytest.mark.parametrize(
    "following",
    ["gone.jsonl", "../secret.jsonl", "/etc/hostname", ".", "..", "", None, 5, "a.jsonl", "x\0y", "folder"],
    ids=repr,
)
def test_a_part_that_is_not_there_ends_the_reading(tmp_path: Path, following: Any) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    write(tmp_path / "secret.jsonl", note(5, "stderr", text="secret"))
    path = write(home / "a.jsonl", note(1, "stderr", text="a"), note(2, "part", next=following))
    assert kinds(list(Recording(path))) == ["stderr", "part"]
    assert [summary.entries for summary in sessions(str(home))] == [2]


def test_parts_that_name_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", note(1, "part", next="b.jsonl"))
    write(tmp_path / "b.jsonl", note(2, "part", next="a.jsonl"), part=2)
    assert [entry.at for entry in Recording(tmp_path / "a.jsonl")] == [1, 2]
    assert [summary.entries for summary in sessions(str(tmp_path))] == [2]


def test_incomplete_lines_of_all_parts_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", note(1, "part", next="b.jsonl"), b"torn")
    write(tmp_path / "b.jsonl", note(2, "stderr", text=""), b"to", part=2)
    recording = Recording(tmp_path / "a.jsonl")
    assert [entry.at for entry in recording] == [1, 2]
    assert recording.torn == 6


# Files that cannot be read


def header_only(**more: Any) -> bytes:
    return json.dumps({"mcpspy": 1, "id": "a", "started": "b", **more}, separators=(",", ":")).encode()


UNREADABLE: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "empty", "disk full"),
    "newer": (header_only(mcpspy=2) + b"\n", "newer mcpspy (format 2", "upgrade mcpspy"),
    "cut off": (header_only()[:20], "incomplete", "cannot be read"),
    "cut off at its line end": (header_only(), "incomplete", "cannot be read"),
    "cut off at once": (b'{"mcp', "not an mcpspy recording", "first line"),
    "binary": (bytes(range(256)) * 20, "not an mcpspy recording", "first line"),
    "binary without a line end": (b"\x00" * 3000, "not an mcpspy recording", "first line"),
    "text": (b"hello\nworld\n", "not an mcpspy recording", "first line"),
    "other JSON lines": (b'{"level":"info"}\n', "not an mcpspy recording", "first line"),
    "a blank first line": (b"\n" + header_only() + b"\n", "not an mcpspy recording", "first line"),
    "a header that lacks keys": (b'{"mcpspy":1}\n', "header", "docs/format.md"),
}


@pytest.mark.parametrize(("data", "what", "hint"), UNREADABLE.values(), ids=UNREADABLE)
def test_the_error_for_a_file_that_is_not_a_recording_has_a_reason_and_a_hint(
    path: Path, data: bytes, what: str, hint: str
) -> None:
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        Recording(path)
    text = one_line_with_a_way_out(caught.value, path, 2)
    assert what in text
    assert hint in text


def test_a_missing_file_is_reported_with_a_hint(path: Path) -> None:
    with pytest.raises(UsageError, match="no such file") as caught:
        Recording(path)
    assert "mcpspy ls" in one_line_with_a_way_out(caught.value, path, 2)


def test_a_folder_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a folder, not a recording") as caught:
        Recording(tmp_path)
    assert f"mcpspy ls --dir {tmp_path}" in one_line_with_a_way_out(caught.value, tmp_path, 2)


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Remove the permission to read a path, for root too."""

    def lock(path: Path) -> None:
        for method in ("open", "listdir"):
            real = getattr(os, method)

            def refuse(which: str | Path, *args: Any, real: Callable[..., Any] = real) -> Any:
                if Path(which) == path:
                    raise PermissionError(13, "Permission denied", str(which))
                return real(which, *args)

            monkeypatch.setattr(os, method, refuse)

    return lock


def test_a_file_without_read_permission_is_not_a_usage_error(
    path: Path, locked: Callable[[Path], None]
) -> None:
    locked(write(path))
    with pytest.raises(CannotStart, match="Permission denied") as caught:
        Recording(path)
    assert "check the permissions" in one_line_with_a_way_out(caught.value, path, 3)


def test_a_path_below_a_file_is_named_in_the_error_too(path: Path) -> None:
    write(path)
    with pytest.raises(McpspyError) as caught:
        Recording(path / "x.jsonl")
    one_line_with_a_way_out(caught.value, path / "x.jsonl", caught.value.exit_code)


# Finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of recordings the default, and use another working folder."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("MCPSPY_DIR", str(home))
    monkeypatch.chdir(elsewhere)
    return home


@pytest.fixture
def three(home: Path) -> Path:
    """Three sessions whose file names are in the opposite order; the newest has several parts."""
    day = "2026-07-28T10:00:0{}.000Z".format
    write(home / "c.jsonl", EXIT, id="ab12cd34", started=day(1), name="files")
    write(home / "b.jsonl", EXIT, id="ab77cd34", started=day(2), name="files")
    write(
        home / "a.jsonl", note(1, "part", next="a.part2.jsonl"), id="ff00ff00", started=day(3), name="memory"
    )
    write(home / "a.part2.jsonl", EXIT, id="ff00ff00", started=day(3), name="memory", part=2)
    return home


@pytest.mark.parametrize(
    ("which", "file"),
    [
        ("last", "a.jsonl"),
        ("ab12cd34", "c.jsonl"),
        ("ab1", "c.jsonl"),
        ("ab7", "b.jsonl"),
        ("ff", "a.jsonl"),
        ("files", "b.jsonl"),
        ("memory", "a.jsonl"),
    ],
)
@pytest.mark.parametrize("how", ["environment", "argument"])
def test_a_session_is_found_by_its_id_its_name_or_last(
    three: Path, which: str, file: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "argument":
        monkeypatch.setenv("MCPSPY_DIR", "/nowhere")
        assert find(which, str(three)) == three / file
    else:
        assert find(which) == three / file


@pytest.mark.parametrize(
    ("which", "what", "hint"),
    [
        ("ab", "ab: 2 session ids start with this", "add characters"),
        ("f", "f: no such file or session", "mcpspy ls"),
        ("mem", "mem: no such file or session", "did you mean memory?"),
        ("ab12cd345", "ab12cd345: no such file or session", "mcpspy ls"),
        ("FF00", "FF00: no such file or session", "mcpspy ls"),
        ("a", "a: no such file or session", "mcpspy ls"),
    ],
)
@pytest.mark.usefixtures("three")
def test_the_error_for_a_session_that_is_not_found_has_a_hint(which: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(which)
    assert str(caught.value).startswith(what)
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("three")
def test_a_path_is_taken_as_it_is_whether_it_is_there_or_not(tmp_path: Path) -> None:
    Path("last").write_bytes(b"")
    Path("plain").write_bytes(b"")
    assert find("last") == Path("last"), "a file of that name takes precedence"
    assert find("plain") == Path("plain")
    assert find("missing.jsonl") == Path("missing.jsonl")
    assert find(f"some{os.sep}where") == Path("some/where")
    assert find(str(tmp_path)) == tmp_path


def test_a_newer_session_of_an_older_ones_id_or_name_does_not_hide_it(home: Path) -> None:
    write(home / "a.jsonl", id="aa00aa00", started="2026-01-01", name="x")
    write(home / "b.jsonl", id="bb00bb00", started="2026-01-02", name="aa")
    assert find("aa00aa00") == home / "a.jsonl"
    assert find("aa") == home / "b.jsonl", "a name takes precedence over the beginning of an id"


@pytest.mark.parametrize("which", ["last", "files", "ab12cd34"])
@pytest.mark.parametrize("exists", [True, False], ids=["empty folder", "no folder"])
def test_the_error_for_an_empty_folder_explains_how_to_record(home: Path, which: str, exists: bool) -> None:
    if not exists:
        home.rmdir()
    with pytest.raises(UsageError, match="no sessions in") as caught:
        find(which)
    assert str(home) in str(caught.value)
    assert "mcpspy run -- " in caught.value.hint
    assert "mcpspy demo" in caught.value.hint


@pytest.mark.usefixtures("home")
def test_a_folder_in_place_of_a_recording_is_reported() -> None:
    Path("traffic").mkdir()
    with pytest.raises(UsageError, match="traffic: a folder, not a recording"):
        find("traffic")


def test_a_folder_without_read_permission_is_reported(home: Path, locked: Callable[[Path], None]) -> None:
    locked(home)
    for look in (lambda: find("last"), sessions):
        with pytest.raises(CannotStart, match="Permission denied") as caught:
            look()
        assert "--dir" in one_line_with_a_way_out(caught.value, home, 3)


# Listing


def test_sessions_are_listed_the_newest_first_and_parts_are_one(three: Path) -> None:
    found = sessions()
    assert [summary.header.id for summary in found] == ["ff00ff00", "ab77cd34", "ab12cd34"]
    newest = found[0]
    assert newest.path == three / "a.jsonl"
    assert (newest.state, newest.entries, newest.last) == (RecordingState.ENDED, 2, 9.0)
    assert newest.size == sum((three / name).stat().st_size for name in ("a.jsonl", "a.part2.jsonl"))
    assert newest.exit is not None
    assert newest.exit.fields == {"code": 0}


def test_sessions_of_one_millisecond_have_one_order_everywhere(home: Path) -> None:
    names = ["b", "a", "d", "c"]
    for id_, name in zip(["00000002", "ff000000", "00000001", "00000002"], names, strict=True):
        write(home / f"{name}.jsonl", EXIT, id=id_, name="files")
    expected = [home / f"{name}.jsonl" for name in "acbd"]
    assert [summary.path for summary in sessions()] == expected
    assert [summary.path for summary in Catalog().look()] == expected
    assert cassettes.sessions(home) == expected[::-1]
    last = SessionsByName().last("files", None)
    assert last is not None
    assert find("last") == find("files") == last.summary.path == expected[0]


def test_a_summary_names_the_peers_and_the_revision(home: Path) -> None:
    write(
        home / "a.jsonl",
        frame(1, "client", CLIENT_FRAME),
        frame(2, "server", SERVER_FRAME),
        frame(3, "client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    )
    (summary,) = sessions()
    assert (summary.client, summary.server) == (Peer("host", "1"), Peer("srv", "2"))
    assert (summary.revision, summary.entries, summary.last) == ("2025-06-18", 3, 3.0)
    assert (summary.state, summary.exit) == (RecordingState.DIED, None)


@pytest.mark.parametrize("size", [reader.TAIL - 100, reader.TAIL, 5 * reader.TAIL, 20 * reader.TAIL])
@pytest.mark.parametrize("torn", [b"", b'{"t":99,'], ids=["whole", "torn"])
def test_the_last_entry_is_found_however_long_it_is(home: Path, size: int, torn: bytes) -> None:
    big = note(7.5, "stderr", text="x" * size)
    write(home / "a.jsonl", note(1, "stderr", text="x"), big, torn)
    write(home / "b.jsonl", note(1, "stderr", text="x"), note(8, "exit", text="x" * size), torn)
    write(home / "c.jsonl", big, torn)
    found = {summary.path.name: summary for summary in sessions()}
    assert [found[name].last for name in ("a.jsonl", "b.jsonl", "c.jsonl")] == [7.5, 8.0, 7.5]
    assert [found[name].state for name in ("a.jsonl", "b.jsonl")] == [
        RecordingState.DIED,
        RecordingState.ENDED,
    ]
    assert [found[name].entries for name in ("a.jsonl", "b.jsonl", "c.jsonl")] == [2, 2, 1]


@pytest.mark.parametrize("torn", [b"", b'{"t":1,"no'], ids=["header only", "incomplete entry"])
def test_a_session_without_an_entry_is_listed_too(home: Path, torn: bytes) -> None:
    write(home / "a.jsonl", torn)
    (summary,) = sessions()
    assert (summary.entries, summary.last, summary.exit) == (0, 0.0, None)
    assert (summary.state, summary.client, summary.revision) == (RecordingState.DIED, None, None)


def test_files_that_are_not_recordings_are_skipped(three: Path) -> None:
    for name, (data, _what, _hint) in UNREADABLE.items():
        (three / f"{name}.jsonl").write_bytes(data)
    (three / "folder.jsonl").mkdir()
    (three / "notes.txt").write_bytes((three / "c.jsonl").read_bytes())
    if sys.platform != "win32":
        (three / "loop.jsonl").symlink_to("loop.jsonl")
        (three / "dangling.jsonl").symlink_to("nowhere.jsonl")
    assert len(sessions()) == 3


def test_a_file_deleted_during_the_listing_is_skipped(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def summarize(path: Path, header: Any, *, counts: bool) -> reader.Summary:
        if path.name == "b.jsonl":
            path.unlink()
        return reader.summarize(path, header, counts=counts)

    monkeypatch.setattr(catalog, "summarize", summarize)
    assert [summary.path.name for summary in sessions()] == ["a.jsonl", "c.jsonl"]
    assert not (three / "b.jsonl").exists()


def test_a_missing_folder_contains_no_sessions(tmp_path: Path) -> None:
    assert sessions(str(tmp_path / "nowhere")) == []


def test_a_session_lives_while_someone_writes_it(path: Path) -> None:
    writer = Writer(None, str(path), {"name": "srv"}, say=pytest.fail)
    writer.note(1.0, "stderr", text="x")
    (summary,) = sessions(str(path.parent))
    assert (summary.state, Recording(path).state) == (RecordingState.LIVE, RecordingState.LIVE)
    writer.close()
    assert Recording(path).state is RecordingState.DIED


def test_a_session_has_ended_once_its_exit_is_noted(path: Path, writer: Writer) -> None:
    writer.note(1.0, "exit", code=3)
    (summary,) = sessions(str(path.parent))
    assert summary.state is RecordingState.ENDED
    assert summary.exit is not None
    assert summary.exit.fields == {"code": 3}


def test_reading_a_live_session_leaves_it_live(path: Path, writer: Writer) -> None:
    for _ in range(3):
        assert Recording(path).state is RecordingState.LIVE
    writer.note(1.0, "stderr", text="x")
    assert kinds(list(Recording(path))) == ["stderr"]


async def test_a_writer_that_was_killed_leaves_a_session_that_died(tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), elsewhere(tmp_path) as writer:
        await writer.write(frame(1, "client", CLIENT_FRAME))
        (summary,) = sessions(str(tmp_path))
        assert (summary.state, summary.path, summary.entries) == (RecordingState.LIVE, writer.path, 1)
        await writer.kill()
        (summary,) = sessions(str(tmp_path))
        assert (summary.state, summary.entries, summary.client) == (RecordingState.DIED, 1, Peer("host", "1"))


def test_the_header_is_read_without_the_rest(path: Path) -> None:
    write(path, b"x" * 100, name="ü", command=["npx", "-y", "srv"])
    header = read_header_of(path)
    assert (header.name, header.command) == ("ü", ["npx", "-y", "srv"])


def test_a_session_without_its_first_part_is_listed_with_the_next(tmp_path: Path) -> None:
    writer = Writer(None, str(tmp_path / "x.jsonl"), {"name": "srv"}, say=pytest.fail, max_size=200)
    for number in range(20):
        writer.note(number, "n")
    writer.close()
    assert [summary.path.name for summary in sessions(str(tmp_path))] == ["x.jsonl"]
    (tmp_path / "x.jsonl").unlink()
    (found,) = sessions(str(tmp_path))
    assert (found.path.name, found.header.part) == ("x.part2.jsonl", 2)
    assert find("last", str(tmp_path)) == find(writer.id, str(tmp_path)) == found.path
    delete(found)
    assert list(tmp_path.iterdir()) == []
