"""`mcpspy show --script`: columns and views of the user, and the views that mcpspy contains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mcpspy
from mcpspy.ui.cli.main import main

DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.fixture
def session(tmp_path: Path) -> str:
    """Return a recording of a call whose result has a table and a diff."""
    table = {"uri": "file:///c.csv", "mimeType": "text/csv", "text": "a,bb\n1,2\n"}
    content = [{"type": "resource", "resource": table}, {"type": "text", "text": DIFF}]
    path = tmp_path / "session.jsonl"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": content}}
    mcpspy.Recording.write(path, [("client", call, 0.0), ("server", answer, 0.5)])
    return str(path)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(
        "def column_who(e):\n    return f'<{e.tool}>'\n\ndef column_bad(e):\n    return e.nothing\n",
        encoding="utf-8",
    )
    return str(path)


def test_a_column_is_on_the_line_of_the_response(
    session: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", session, "--script", script]) == 0

    heads, request, response = capsys.readouterr().out.splitlines()[1:4]
    assert heads.split()[-3:] == ["who", "bad", "status"]
    assert "<echo>" not in request
    assert "<echo>" in response
    assert response.endswith("ok")
    assert "AttributeError" in response.split("<echo>")[1]


def test_json_has_the_columns_by_their_headings(
    session: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", session, "--script", script, "--format", "json"]) == 0

    request, response = map(json.loads, capsys.readouterr().out.splitlines())
    assert "columns" not in request
    assert response["columns"]["who"] == "<echo>"


def test_views_are_below_the_message_with_colours_only_if_wanted(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", session, "-v"]) == 0
    plain = capsys.readouterr().out
    assert main(["show", session, "-v", "--color", "always"]) == 0
    coloured = capsys.readouterr().out

    assert "          a  bb\n          1   2\n" in plain
    assert "          -old\n          +new\n" in plain
    assert "\x1b[31m-old\x1b[0m" in coloured


def test_without_v_and_without_a_script_no_view_is_shown(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", session]) == 0

    shown = capsys.readouterr().out
    assert "a  bb" not in shown
    assert "-old" not in shown


def test_a_script_without_columns_and_views_is_a_usage_error(
    session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.py").write_text("", encoding="utf-8")

    assert main(["show", session, "--script", str(tmp_path / "empty.py")]) == 2
    assert "defines no columns and no views" in capsys.readouterr().err
