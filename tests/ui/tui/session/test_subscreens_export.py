"""Exported rows read back as in the session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from mcpspy.analysis.export.markdown import LARGEST
from mcpspy.analysis.rows import row as words
from mcpspy.core.recording.decode import Header
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import ASKED
from mcpspy.core.session.session import Change, Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.session.subscreens import jsonl, markdown, saved
from tests.ui.tui.panels.panels import HEADER, Lines, every_recording, recorded

if TYPE_CHECKING:
    from mcpspy.ui.model.session_loader import SessionLoader

Said = list[tuple[object, ...]]


def read_again(tmp_path: Path, log: SessionModel, rows: list[int]) -> Session:
    path = tmp_path / "export.jsonl"
    path.unlink(missing_ok=True)
    save(path, jsonl(log, rows))
    recording = Recording(path)
    session = Session(recording.header)
    for entry in recording:
        session.add(entry)
    session.end()
    return session


def outcomes(session: Session) -> dict[str, Said]:
    """Return the state, latency, response and progress of each exchange, by its time and bytes.

    A question is not continued if the next request is not exported.
    """
    found: dict[str, Said] = {}
    for exchange in session.exchanges:
        answer, request = exchange.answer, exchange.request
        # Without the request that answers it, a question has no continuation.
        state = State.INPUT_REQUIRED if exchange.state in ASKED else exchange.state
        found[f"{request.at}{request.data!r}"] = [
            (state, exchange.latency, answer.data if answer else None),
            tuple(report.data for report in exchange.progress),
        ]
    return found


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_each_exchange_is_the_same_in_the_export(tmp_path: Path, path: Path) -> None:
    lines = recorded(path.read_bytes())
    original, recording = Session(lines.log.header), Recording(path)
    for entry in recording:
        original.add(entry)
    original.end()
    index = lines.log.index
    every = outcomes(original)
    requests = [row for row in range(len(index)) if index.request(row) == row]
    for chosen in (requests, requests[::2], requests[1::2]):
        again = read_again(tmp_path, lines.log, chosen)
        exported = outcomes(again)
        wanted = {f"{index.at[row]}{lines.log.message(row).data!r}" for row in chosen}  # type: ignore[union-attr]
        assert {key: value for key, value in exported.items() if key in wanted} == {
            key: value for key, value in every.items() if key in wanted
        }


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_all_rows_make_the_same_file_except_its_header(path: Path) -> None:
    data = path.read_bytes()
    log = recorded(data).log
    exported = b"".join(jsonl(log, range(len(log))))

    assert exported.split(b"\n")[1:] == data.split(b"\n")[1:]
    assert recorded(exported).log.header == log.header


def test_a_response_includes_its_request_and_progress() -> None:
    lines = Lines()
    request = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}'
    )
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":%d}}'
    )
    lines.say(0.1, "client", request)
    lines.say(0.2, "server", progress % 1)
    lines.call(2, 0.3, 0.4)
    lines.say(0.5, "server", progress % 2)
    lines.answer(1, 0.6)
    exported = b"".join(jsonl(lines.log, [5])).split(b"\n")

    kept = bytes(lines.data).split(b"\n")
    assert exported[1:-1] == [kept[0], kept[1], kept[4], kept[5]]


def test_a_batch_is_one_line() -> None:
    lines = Lines()
    lines.say(
        0.1, "client", b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    )
    lines.answer(1, 0.2)

    assert b"".join(jsonl(lines.log, [0, 1])).count(b"\n") == 3


def test_a_note_that_names_another_file_is_left_out_and_the_exit_is_not() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    lines.add(b'{"t":0.300000,"note":"part","next":"x.part2.jsonl"}')
    lines.add(b'{"t":0.400000,"note":"exit","code":0,"signal":null}')
    exported = b"".join(jsonl(lines.log, [0, 2]))

    assert b'"part"' not in exported
    assert exported.endswith(b'"exit","code":0,"signal":null}\n')


def test_a_header_keeps_its_fields() -> None:
    header = Header(
        mcpspy=1,
        id="ab12cd34",
        started="2026-01-01T00:00:00.000Z",
        transport="http",
        upstream="http://127.0.0.1:1/mcp",
        cwd='/srv/"x"\n',
        name="é",
        pid=7,
    )
    assert recorded(b"".join(jsonl(Lines(header).log, []))).log.header == header


def test_it_yields_to_its_writer_regularly() -> None:
    lines = Lines()
    for number in range(5000):
        lines.call(number, number / 1000)
    pieces = list(jsonl(lines.log, [0]))

    assert pieces.count(b"") == 2


def test_a_line_missing_from_the_file_is_an_error() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    lines.data.clear()
    with pytest.raises(CannotStart, match="is missing from the recording file"):
        list(jsonl(lines.log, [0]))


def test_a_recording_replaced_during_the_export_is_an_error() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    pieces = jsonl(lines.log, [0])
    next(pieces)
    lines.log.begin_again(HEADER)
    with pytest.raises(CannotStart, match="truncated or replaced"):
        list(pieces)


def document(lines: Lines, rows: list[int], notes: dict[int, str]) -> str:
    return "".join(markdown(lines.log, rows, notes))


def test_a_document_has_a_section_for_each_row() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.3, name="forecast")
    lines.call(2, 0.5, 0.6, error=True)
    text = document(lines, [0, 2], {2: "look\nhere"})

    assert text.count("\n## ") == 2
    assert "## `tools/call` `forecast`" in text
    assert "`0.100 s` · `200.0 ms` · `ok`" in text
    assert "error -32602 invalid params: no" in text
    assert text.count("```json") == 4
    assert '  "method": "tools/call",' in text
    assert "\n> look\n> here\n" in text


def test_no_text_escapes_its_code_fence() -> None:
    lines = Lines()
    lines.say(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"x`y","params":{"a":"````\\n# no"}}')
    lines.say(0.2, "server", b"````` \x1b[31m")
    text = document(lines, [0, 1], {})

    assert "## ``x`y``" in text
    assert "\n`````json\n" in text
    assert "\n``````text\n" in text
    assert "\x1b" not in text


def test_a_large_body_is_truncated_and_reported() -> None:
    lines = Lines()
    lines.say(
        0.1,
        "client",
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":[%b]}' % b",".join([b"1234567"] * 20_000),
    )
    text = document(lines, [0], {})

    assert len(text) < LARGEST + 1000
    assert "\nCut: the first " in text


def test_pending_requests_notes_and_damaged_lines_have_sections() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.add(b'{"t":0.2,"note":"stderr","text":"a ``` word"}')
    lines.add(b"damaged")
    text = document(lines, [0, 1, 2, 77], {})

    assert "No response yet." in text
    assert "````text\na ``` word\n````" in text
    assert text.count("\n## ") == 3


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    lines.data.clear()
    with pytest.raises(CannotStart):
        save(tmp_path / "x", jsonl(lines.log, [0]))
    assert list(tmp_path.iterdir()) == []


async def test_the_suffix_of_the_file_selects_the_format(tmp_path: Path) -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.3)
    loader = cast("SessionLoader", SimpleNamespace(model=lines.log))
    page, recording = tmp_path / "a.md", tmp_path / "a.jsonl"

    shown = await saved(loader, page, [0], {0: "look"})
    assert page.read_text(encoding="utf-8") == document(lines, [0], {0: "look"})
    assert shown == f"saved {page.stat().st_size:,} bytes to {page}"
    await saved(loader, recording, [0], {})
    assert recording.read_bytes() == b"".join(jsonl(lines.log, [0]))
    with pytest.raises(UsageError, match=r"a\.txt: the file name must end in \.jsonl or \.md"):
        await saved(loader, tmp_path / "a.txt", [0], {})


def test_a_document_uses_the_texts_of_the_list() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.3)
    change = lines.log.get(1)
    assert isinstance(change, Change)
    assert f"`{words(change).latency}`" in document(lines, [1], {})


async def test_several_sessions_cannot_be_saved_as_one_recording(tmp_path: Path) -> None:
    loader = cast("SessionLoader", SimpleNamespace(model=SimpleNamespace(is_merged=True)))
    with pytest.raises(UsageError, match=r"a \.jsonl recording holds one session \(use \.md\)"):
        await saved(loader, tmp_path / "all.jsonl", [], {})
