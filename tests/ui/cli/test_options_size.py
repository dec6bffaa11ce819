"""Sizes, as users type them."""

from __future__ import annotations

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.cli.options import MAX_BODY


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
    assert MAX_BODY.value_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "0k", "-1", "1.5k", "k", "1kk", "1t", "x", "1 k", "\u00b2"])
def test_the_error_for_an_invalid_size_names_it(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        MAX_BODY.value_of(text)
    assert str(refused.value) == f"{text}: not a size (use 500k, 100M or 2G)"
