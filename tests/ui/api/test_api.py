"""The public names, their signatures and their examples; reading, results and the mock."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

import mcpspy

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "recordings" / "everything-sdk-auto.jsonl"

SIGNATURES = {
    "Mock": "(session: 'ReadSession | str | os.PathLike[str]', *, match: 'str' = 'exact',"
    " ignore_paths: 'Sequence[str]' = ()) -> 'None'",
    "diff": "(old: 'ReadSession', new: 'ReadSession', *, ignore_paths: 'Sequence[str]' = (),"
    " dates: 'bool' = False, volatile: 'bool' = False) -> 'SessionDiff'",
    "follow": "(path_or_id: 'str | os.PathLike[str]' = 'last', folder: 'str | None' = None)"
    " -> 'AsyncIterator[ReadMessage]'",
    "lint": "(session: 'ReadSession') -> 'list[Finding]'",
    "read": "(path_or_id: 'str | os.PathLike[str]' = 'last', folder: 'str | None' = None) -> 'ReadSession'",
    "record": "(server: 'Sequence[str] | str', to: 'str | os.PathLike[str] | None' = None, *,"
    " name: 'str | None' = None, env: 'Mapping[str, str] | None' = None)"
    " -> 'AbstractAsyncContextManager[tuple[Any, Any]]'",
    "sessions": "(folder: 'str | os.PathLike[str] | None' = None) -> 'list[ReadSession]'",
    "stats": "(session: 'ReadSession') -> 'dict[str, Any]'",
}
MEMBERS = {
    "Content": "count data index media_type text",
    "Exchange": "arguments at error id latency method number params request_data response_data result side status"
    " subject tool",
    "LiveExchange": "answer arguments at delay drop error hold id latency matches message method note params replace request result"
    " session side status subject tag tool",
    "LiveHead": "add get headers note remove set tag",
    "LiveMessage": "at data delay drop hold json kind matches method note params replace side stream subject tag",
    "LiveSession": "note notify request",
    "Message": "at data exchange frame json kind method side stream subject",
    "Mock": "command send serve_http",
    "Recording": "write",
    "Session": "client exchanges filter filter_text id messages name query revision server started stderr"
    " table to_arrow to_pandas to_rows transport last_at",
}


def test_the_public_names_and_signatures_are_these() -> None:
    functions = [name for name in mcpspy.__all__ if callable(getattr(mcpspy, name)) and name in SIGNATURES]

    assert set(mcpspy.__all__) == {
        *SIGNATURES, *MEMBERS, "CannotStart", "McpspyError", "UsageError", "__version__"
    }  # fmt: skip
    assert {name: str(inspect.signature(getattr(mcpspy, name))) for name in functions} == SIGNATURES
    for name, members in MEMBERS.items():
        public = {member for member in dir(getattr(mcpspy, name)) if not member.startswith("_")}
        assert public == set(members.split()), name


def test_the_types_are_declared_for_exactly_the_public_names() -> None:
    stub = (ROOT / "mcpspy" / "__init__.pyi").read_text(encoding="utf-8")

    assert all(f'    "{name}",\n' in stub for name in mcpspy.__all__)
    assert stub.count('    "') == len(mcpspy.__all__)


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import mcpspy; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout.strip() == "['mcpspy']"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mcpspy.nothing  # type: ignore[attr-defined]


def test_the_examples_of_the_page_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    failed, attempted = doctest.testfile(
        str(ROOT / "docs" / "api.md"), module_relative=False, encoding="utf-8"
    )

    assert attempted > 15
    assert failed == 0


def test_a_filter_keeps_a_request_with_its_response() -> None:
    session = mcpspy.read(RECORDING).filter("method:tools/call")

    assert {exchange.method for exchange in session} == {"tools/call"}
    assert {message.kind for message in session.messages} >= {"request", "result"}
    assert {message.method for message in session.messages} == {"tools/call"}


def test_the_error_of_an_invalid_filter_has_its_position() -> None:
    with pytest.raises(mcpspy.UsageError, match="filter, character 1"):
        mcpspy.read(RECORDING).filter("(")


def test_a_second_filter_is_refused() -> None:
    with pytest.raises(mcpspy.UsageError, match="filtered already"):
        mcpspy.read(RECORDING).filter("status:ok").filter("tool:echo")


def test_a_file_that_does_not_exist_is_one_clear_error() -> None:
    with pytest.raises(mcpspy.McpspyError, match="no-such"):
        mcpspy.read("no-such.jsonl")


def test_the_rows_are_those_of_the_exported_table() -> None:
    session = mcpspy.read(RECORDING)
    rows = session.to_rows()

    assert len(rows) == len(session)
    assert [row["method"] for row in rows] == [exchange.method for exchange in session]


class DataFrame:
    """The part of pandas that is called: mcpspy does not depend on it."""

    def __init__(self, rows: list[dict[str, Any]], columns: list[str]) -> None:
        self.rows, self.columns = rows, columns


def test_a_data_frame_has_one_row_per_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=DataFrame))
    session = mcpspy.read(RECORDING)
    frame: Any = session.to_pandas()

    assert frame.rows == session.to_rows()
    assert all(frame.columns == list(row) for row in frame.rows)


def test_an_arrow_table_has_one_row_per_exchange() -> None:
    session = mcpspy.read(RECORDING)
    table = session.to_arrow()

    assert table.num_rows == len(session)
    assert table.column("method").to_pylist() == [exchange.method for exchange in session]


def test_without_pandas_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "pandas", "pyarrow":
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(mcpspy.McpspyError, match="pip install pandas"):
        mcpspy.read(RECORDING).to_pandas()
    with pytest.raises(mcpspy.McpspyError, match="pip install pyarrow"):
        mcpspy.read(RECORDING).to_arrow()


def test_no_text_of_a_peer_is_markup_in_a_notebook(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    data = RECORDING.read_bytes().replace(b'"name":"echo"', b'"name":"<b>echo"')
    file.write_bytes(data)
    html = mcpspy.read(file)._repr_html_()

    assert "&lt;b&gt;echo" in html
    assert "<b>" not in html


def test_findings_of_a_filtered_session_are_a_part_of_all() -> None:
    whole = mcpspy.read(RECORDING)
    codes = [finding.code for finding in mcpspy.lint(whole)]

    one = mcpspy.lint(whole)[0]
    some = mcpspy.lint(whole.filter(f"tool:{one.about.split()[1]}"))

    assert one in some
    assert len(some) < len(codes)
    assert {finding.code for finding in some} <= set(codes)


def test_a_session_is_the_same_as_itself_and_differs_from_another() -> None:
    one = mcpspy.read(RECORDING)

    assert mcpspy.diff(one, one).is_same()
    assert not mcpspy.diff(one, mcpspy.read(ROOT / "recordings" / "memory-sdk-auto.jsonl")).is_same()
    with pytest.raises(mcpspy.UsageError, match="filtered"):
        mcpspy.diff(one, one.filter("tool:echo"))


def test_the_sessions_of_a_folder_are_found() -> None:
    found = {session.path.name for session in mcpspy.sessions(ROOT / "recordings")}

    assert found == {path.name for path in (ROOT / "recordings").glob("*.jsonl")}


async def test_following_yields_what_is_recorded_and_what_arrives(tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    file.write_bytes(RECORDING.read_bytes())
    async with asyncio.timeout(10):
        messages = [message async for message in mcpspy.follow(file)]

    assert [each.data for each in messages] == [each.data for each in mcpspy.read(RECORDING).messages]


def test_the_mock_answers_from_the_recording_and_reports_the_rest() -> None:
    mock = mcpspy.Mock(RECORDING)
    (recorded,) = (each for each in mcpspy.read(RECORDING) if each.method == "tools/list")
    (answer,) = mock.send({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": recorded.params})

    assert answer["id"] == "x"
    assert answer["result"] == recorded.result
    (miss,) = mock.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "unknown"}})
    assert "error" in miss
    assert "unknown" in mock.unrecorded[0]


async def test_the_mock_serves_over_http() -> None:
    mock = mcpspy.Mock(ROOT / "recordings" / "everything-sdk-modern.jsonl")
    (recorded, *_) = (each for each in mcpspy.read(mock._path) if each.method == "tools/list")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": recorded.params}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    headers["Mcp-Method"] = "tools/list"
    async with (
        mock.serve_http() as url,
        aiohttp.ClientSession() as client,
        asyncio.timeout(10),
        client.post(url, json=body, headers=headers) as response,
    ):
        text = await response.text()

    assert response.status == 200
    assert '"tools"' in text


def test_an_unknown_match_mode_is_refused() -> None:
    with pytest.raises(mcpspy.UsageError, match="match fuzzy"):
        mcpspy.Mock(RECORDING, match="fuzzy")
