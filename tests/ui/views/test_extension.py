"""Columns and views of the user's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mcpspy
from mcpspy.core.session.exchange import Exchange
from mcpspy.errors import UsageError
from mcpspy.ui.views import extension as module
from mcpspy.ui.views.content import MAX_CONTENT, Content
from mcpspy.ui.views.extension import Extension

SECONDS = 20.0
RECORDING = Path(__file__).parents[3] / "recordings" / "everything-sdk-auto.jsonl"


def extension(folder: Path, text: str, **settings: object) -> Extension:
    (folder / "own.py").write_text(text, encoding="utf-8")
    return Extension([str(folder / "own.py")], settings)


def echo() -> Exchange:
    (exchange, *_) = mcpspy.read(RECORDING).filter("tool:echo").exchanges
    return exchange._exchange


def test_a_column_gets_the_public_exchange_and_its_text_is_one_sanitized_line(tmp_path: Path) -> None:
    own = extension(tmp_path, "def column_about(e):\n    return f'{e.tool}\\n\\x1b[31m{e.status}'\n")

    assert own.cell("about", 1, echo, SECONDS) == ("echo\\n\\x1b[31mok", None)


def test_an_error_of_a_column_is_in_its_cell_with_its_line(tmp_path: Path) -> None:
    own = extension(tmp_path, "def column_bad(e):\n    return 1 / 0\n")

    assert own.cell("bad", 1, echo, SECONDS)[0] == "ZeroDivisionError: division by zero (line 2)"


def test_an_exchange_that_is_too_large_has_no_cell(tmp_path: Path) -> None:
    own = extension(tmp_path, "def column_any(e):\n    return 'x'\n")

    assert own.cell("any", 1, lambda: None)[0] == "large"


def test_views_of_the_user_come_before_those_of_mcpspy(tmp_path: Path) -> None:
    text = "def view_own(c):\n    return [[(c.text[:3], 'ok'), ('\\x07', 'no style')]] if c.text[:1] == 'a' else None\n"
    own = extension(tmp_path, text)

    assert own.lines(Content("text/csv", b"a,b\n"), SECONDS) == [[("a,b", "ok"), ("\\x07", None)]]
    assert own.lines(Content("text/csv", b"x,y\n"), SECONDS) == [[("x  y", "title")]]
    assert own.lines(Content("text/plain", b"x"), SECONDS) is None


def test_the_settings_can_name_files_and_turn_off_the_views_of_mcpspy(tmp_path: Path) -> None:
    (tmp_path / "set.py").write_text("def view_set(c):\n    return 'of the settings'\n", encoding="utf-8")
    own = Extension([], {"scripts": [str(tmp_path / "set.py")]})

    assert own.lines(Content("", b"x"), SECONDS) == [[("of the settings", None)]]
    assert Extension([], {"builtin": False}).lines(Content("text/csv", b"a,b\n"), SECONDS) is None


def test_a_view_of_the_user_with_the_name_of_one_that_mcpspy_contains_replaces_it(tmp_path: Path) -> None:
    own = extension(tmp_path, "def view_table(c):\n    return None\n")

    assert own.lines(Content("text/csv", b"a,b\n"), SECONDS) is None


def test_a_view_that_never_returns_does_not_stop_the_other_views(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 0.2)
    text = "import threading\ndef view_never(c):\n    return threading.Event().wait(20) if c.text == 'x' else None\n"
    own = extension(tmp_path, text)

    assert own.lines(Content("", b"x"), SECONDS) == [[("not done after 0.2 s; not called again", "bad")]]
    assert own.lines(Content("text/csv", b"a,b\n"), SECONDS) == [[("a  b", "title")]]


def test_each_content_of_a_message_has_its_view_with_its_place(tmp_path: Path) -> None:
    texts = [{"type": "text", "text": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y"}, {"type": "text", "text": "plain"}]
    resource = {"type": "resource", "resource": {"uri": "x:/\x1b", "mimeType": "text/csv", "text": "a,b"}}
    image = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    message = {"jsonrpc": "2.0", "id": 1, "result": {"content": [*texts, resource, image]}}

    found = Extension(shows_images=False).views(json.dumps(message).encode(), SECONDS)

    assert [(view.pointer, view.label) for view in found] == [
        ("/result/content/0/text", "text"),
        ("/result/content/2/resource/text", "x:/\\x1b · text/csv"),
    ]
    assert found[0].lines[4] == [("+y", "ok")]
    assert found[1].lines == [[("a  b", "title")]]


@pytest.mark.parametrize(
    "body",
    ["return 1 / 0", "return 5", "return [[5]]", "raise SystemExit('no')"],
)
def test_an_error_of_a_view_takes_its_place(body: str, tmp_path: Path) -> None:
    own = extension(tmp_path, f"def view_bad(content):\n    {body}\n")

    lines = own.lines(Content("", b"x"), SECONDS)

    assert lines is not None
    ((text, style),) = lines[0]
    assert text.startswith("view_bad: ")
    assert style == "bad"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def request(e): ...\n", "defines no columns and no views"),
        ("1 / 0\n", "not loaded: ZeroDivisionError: division by zero \\(line 1\\)"),
        ("def column_x(e:\n", "not valid Python"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        extension(tmp_path, text)

    assert "\n" not in str(refused.value)


def test_the_example_of_the_page_has_a_column_and_a_view(tmp_path: Path) -> None:
    page = (RECORDING.parents[1] / "docs" / "scripting.md").read_text(encoding="utf-8")
    own = extension(tmp_path, page.split("```python\n# sales.py\n")[1].split("```")[0])

    assert own.cell("tokens", 1, echo, SECONDS)[0].isdecimal()
    assert own.lines(Content("", b"SELECT a FROM b"), SECONDS) == [
        [("", None), ("SELECT", "key"), (" a ", None), ("FROM", "key"), (" b", None)]
    ]


@pytest.mark.parametrize("files", ["a.py", [1]])
def test_files_in_the_settings_that_are_not_a_list_are_refused(files: object) -> None:
    with pytest.raises(UsageError, match=r"views\.scripts must be a list of files .*write scripts = "):
        Extension([], {"scripts": files})


def test_an_empty_or_a_huge_content_has_no_view(tmp_path: Path) -> None:
    own = extension(tmp_path, "def view_any(c):\n    return 'seen'\n")

    assert own.lines(Content("", b""), SECONDS) is None
    assert own.lines(Content("", b"x" * (MAX_CONTENT + 1)), SECONDS) is None
