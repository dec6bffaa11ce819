"""Settings are read, and errors in them are reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.errors import McpspyError
from mcpspy.io.settings import table


def test_a_table_is_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mcpspy.toml"
    path.write_text('[keys]\n"session.back" = "x"\n', encoding="utf-8")
    assert table("keys", str(path)) == {"session.back": "x"}
    assert table("others", str(path)) == {}


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    assert table("keys", str(tmp_path / "none.toml")) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"[keys", "at end of document"), (b"keys = 5", r"write \[keys\]"), (b"\xff", "not UTF-8")],
)
def test_the_error_for_an_invalid_file_names_the_file_and_the_reason(
    tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "mcpspy.toml"
    path.write_bytes(data)
    with pytest.raises(McpspyError, match=why) as caught:
        table("keys", str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(McpspyError, match=str(tmp_path)):
        table("keys", str(tmp_path))
