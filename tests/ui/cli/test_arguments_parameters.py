"""Request parameters, as users type them."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.ui.cli.arguments import read_parameters

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "params"),
    [
        ([], None),
        (["{}"], {}),
        (['{"name":"x"}'], {"name": "x"}),
        (["name=echo"], {"name": "echo"}),
        (["name="], {"name": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (
            ["n=7", "f=1.5", "yes=true", "no=null", 's="7"'],
            {"n": 7, "f": 1.5, "yes": True, "no": None, "s": "7"},
        ),
        (["list=[1,2]", 'o={"a":1}'], {"list": [1, 2], "o": {"a": 1}}),
        (["arguments.city=Berlin", "arguments.days=3"], {"arguments": {"city": "Berlin", "days": 3}}),
        (['{"a":{"b":1,"c":2}}', "a.b=3"], {"a": {"b": 3, "c": 2}}),
        (["a.b=3", '{"a":{"c":2}}'], {"a": {"b": 3, "c": 2}}),
        (["a=1", '{"a":{"c":2}}'], {"a": {"c": 2}}),
    ],
)
def test_words_become_an_object(words: list[str], params: dict[str, Any] | None) -> None:
    assert read_parameters(words) == params


def test_a_file_and_stdin_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.json").write_text('{"a":{"x":"é"}}', encoding="utf-8")
    (tmp_path / "text").write_text("some text\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"b":2}'))
    words = [f"@{tmp_path / 'p.json'}", "-", f"a.y=@{tmp_path / 'text'}"]
    assert read_parameters(words) == {"a": {"x": "é", "y": "some text\n"}, "b": 2}


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("name", "not a parameter"),
        ("=x", "not a parameter"),
        ("a..b=1", "not a parameter"),
        ("arguments={message:hi}", "arguments={message:hi}: begins like JSON, but is not JSON"),
        ("list=[1,", "begins like JSON"),
    ],
)
def test_invalid_parameters_are_refused(word: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)) as error:
        read_parameters([word])
    assert "arguments.text=hi" in str(error.value) or "arguments.message=hi" in str(error.value)


def test_a_text_in_a_file_may_begin_like_json(tmp_path: Path) -> None:
    (tmp_path / "draft").write_text("[draft] hello", encoding="utf-8")
    assert read_parameters([f"text=@{tmp_path / 'draft'}"]) == {"text": "[draft] hello"}


def test_a_key_of_a_value_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(UsageError, match="a is not an object"):
        read_parameters(["a=1", "a.b=2"])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"none\.json: No such file"):
        read_parameters([f"@{tmp_path / 'none.json'}"])
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_parameters([f"x=@{tmp_path / 'bytes'}"])
