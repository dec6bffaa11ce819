"""A recording is read once, up to its current end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import UsageError
from mcpspy.io.recording.scan import FileStatus, LineReader, RecordingScan

HEADER = b'{"mcpspy":1,"id":"ab12cd34","started":"2026-01-01T00:00:00.000Z"}\n'
LINES = [b'{"t":%d.0,"note":"stderr","text":"%d"}' % (number, number) for number in range(20)]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 18])
def test_the_chunk_size_does_not_change_the_lines(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEADER + b"\n".join(LINES) + b"\ntorn")
    scan = RecordingScan(path, size)
    found = list(scan)
    data = path.read_bytes()

    assert [line for block in found for line in block.lines] == LINES
    for block in found:
        offset = block.offset
        for line in block.lines:
            assert data[offset : offset + len(line) + 1] == line + b"\n"
            offset += len(line) + 1
    assert (scan.torn, scan.incomplete, scan.offset) == (4, b"torn", len(data) - 4)
    assert (scan.read, scan.size) == (len(data), len(data))


def test_parts_are_read_in_their_order_and_none_twice(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.jsonl", "a.part2.jsonl", "a.part3.jsonl")]
    for number, path in enumerate(paths):
        following = paths[(number + 1) % 3].name.encode()
        path.write_bytes(HEADER + LINES[number] + b'\n{"t":9.0,"note":"part","next":"%b"}\n' % following)
    scan = RecordingScan(paths[0])
    found = [(block.path, block.offset, block.lines[0], scan.read) for block in scan]

    ends = [sum(p.stat().st_size for p in paths[:n]) for n in (1, 2, 3)]
    assert found == list(zip(paths, [len(HEADER)] * 3, LINES[:3], ends, strict=True))
    assert scan.paths == paths


def test_a_scan_continues_where_it_stopped_though_it_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEADER + LINES[0] + b"\n" + LINES[1][:9])
    scan = RecordingScan(path)
    found = list(scan)
    with path.open("ab") as file:
        file.write(LINES[1][9:] + b"\n" + b'{"t":9.0,"note":"part","next":"b.jsonl"}\n')
    assert scan.status() is FileStatus.GROWN
    found += scan
    (tmp_path / "b.jsonl").write_bytes(HEADER + LINES[2] + b"\n")
    found += scan

    read = [(block.path.name, line) for block in found for line in block.lines]
    assert [read[at] for at in (0, 1, 3)] == [
        ("a.jsonl", LINES[0]),
        ("a.jsonl", LINES[1]),
        ("b.jsonl", LINES[2]),
    ]
    assert len(read) == 4
    assert scan.torn == 0
    assert scan.status() is FileStatus.CLOSED
    scan.close()


def test_a_file_that_grows_meanwhile_is_read_to_its_current_size(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEADER)
    with closing(RecordingScan(path)) as scan:
        scan.next()
        assert (scan.read, scan.size) == (len(HEADER),) * 2
        with path.open("ab") as file:
            file.write(LINES[0])
        scan.next()
        assert (scan.read, scan.size) == (len(HEADER + LINES[0]),) * 2


@pytest.mark.parametrize("closed", [False, True])
def test_another_file_of_the_same_name_is_noticed(tmp_path: Path, closed: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEADER + LINES[0] + b"\n")
    scan = RecordingScan(path)
    while scan.next() is not None:
        continue
    if closed:
        scan.close()
    other = tmp_path / "other"
    other.write_bytes(HEADER + b"\n".join(LINES) + b"\n")
    other.replace(path)
    assert scan.status() is FileStatus.REPLACED
    scan.restart_file()
    block = scan.next()
    assert block is not None
    assert (block.offset, block.lines) == (len(HEADER), LINES)
    scan.close()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.jsonl: no such file"):
        RecordingScan(tmp_path / "a.jsonl").next()


@given(st.data())
def test_a_second_read_returns_the_current_content_of_the_file(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("one", "two")]
        with closing(LineReader()) as lines:  # hypothesis may leave in the middle.
            for number, path in enumerate(paths):
                path.write_bytes(bytes([number]) * 40_000)
                assert lines.begin_part(path) == number
            for _ in range(10):
                part = data.draw(st.integers(0, 1))
                if data.draw(st.booleans()):
                    with paths[part].open("ab") as file:
                        file.write(bytes([data.draw(st.integers(2, 255))]) * 40_000)
                held = paths[part].read_bytes()
                offset, length = data.draw(st.integers(0, len(held))), data.draw(st.integers(0, 90_000))
                assert lines.read(part, offset, length) == held[offset : offset + length]
