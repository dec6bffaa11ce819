"""Times and sizes as users type them."""

from __future__ import annotations

import pytest

from mcpspy.core.rules.model import seconds, size


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2s", 2),
        ("500ms", 0.5),
        ("5min", 300),
        ("1.5h", 5400),
        ("1m", 60),
        (" 3 S ", 3),
        (2, 2),
        (0.25, 0.25),
        ("0", 0),
    ],
)
def test_a_time_is_in_seconds_without_a_unit(written: object, meant: float) -> None:
    assert seconds(written) == pytest.approx(meant)


@pytest.mark.parametrize(
    "written", ["", "s", "2 years", "-1", -1, True, None, "nan", "inf", "1e400", "2,5s", "٣s", "99999999"]
)
def test_an_invalid_time_is_rejected(written: object) -> None:
    with pytest.raises(ValueError, match="not a time: write 2s"):
        seconds(written)


@pytest.mark.parametrize(
    ("written", "meant"), [("500kb", 512_000), ("16MB", 16 << 20), ("1g", 1 << 30), ("7b", 7), (9, 9)]
)
def test_a_size_is_in_bytes_without_a_unit(written: object, meant: int) -> None:
    assert size(written) == meant


@pytest.mark.parametrize("written", ["0", "mb", "-3mb", False, [], "2000gb"])
def test_an_invalid_size_is_rejected(written: object) -> None:
    with pytest.raises(ValueError, match="not a size: write 500kb"):
        size(written)
