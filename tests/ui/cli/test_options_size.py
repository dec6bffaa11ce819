"""Sizes, as users type them."""

from __future__ import annotations

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.cli.options import read_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("7b", 7),
        ("500k", 512_000),
        ("500KB", 512_000),
        ("100M", 104_857_600),
        ("2g", 2_147_483_648),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert read_size("--max-size", text) == size


@pytest.mark.parametrize("text", ["", "0", "0k", "-1", "1.5k", "k", "1kk", "1t", "x", "1 k", "\u00b2"])
def test_the_error_for_an_invalid_size_names_the_option(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_size("--max-size", text)
    assert str(refused.value).startswith(f"--max-size {text}: not a size")
