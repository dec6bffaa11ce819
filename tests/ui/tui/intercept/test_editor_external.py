"""Tests of editing in an external editor."""

from __future__ import annotations

import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart
from mcpspy.ui.tui.intercept.editor import edit_outside, editor


def script(folder: Path, body: str) -> str:
    path = folder / "an editor"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o700)
    return f"'{path}' --wait"


def test_the_editor_comes_from_the_environment() -> None:
    assert editor({"VISUAL": "code -w", "EDITOR": "vi"}) == "code -w"
    assert editor({"VISUAL": " ", "EDITOR": "vi"}) == "vi"
    assert editor({}) == ""


def test_the_saved_text_is_returned_and_the_file_deleted(tmp_path: Path) -> None:
    command = script(
        tmp_path, f'ls -l "$2" > "{tmp_path}/seen"; echo "$2" >> "{tmp_path}/seen"; printf "%s" new >> "$2"'
    )
    assert edit_outside(command, "caf\u00e9\n", nullcontext) == "caf\u00e9\nnew"
    listed, path = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    assert listed.startswith(stat.filemode(stat.S_IFREG | 0o600))
    assert path.endswith(".json")
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [("exit 3", "exit code 3"), (r'printf "\377" > "$2"', "not UTF-8"), ('rm "$2"', "No such file")],
    ids=["fails", "bytes", "deletes"],
)
def test_failures_of_the_editor_are_reported(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(CannotStart, match=why):
        edit_outside(script(tmp_path, body), "x", nullcontext)


def test_a_missing_editor_is_reported() -> None:
    with pytest.raises(CannotStart, match="no-such-editor"):
        edit_outside("no-such-editor", "x", nullcontext)
    with pytest.raises(CannotStart, match="No closing quotation"):
        edit_outside("'vi", "x", nullcontext)
