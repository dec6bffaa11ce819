"""The options of a comparison."""

from __future__ import annotations

import pytest

from mcpspy.analysis.diff.model import DiffOptions, LatencyLimit, slower


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("2x", LatencyLimit(2.0)),
        ("1.5x", LatencyLimit(1.5)),
        ("2x+50ms", LatencyLimit(2.0, 0.05)),
        ("200ms", LatencyLimit(1.0, 0.2)),
        ("1s", LatencyLimit(1.0, 1.0)),
        ("1x+5ms", LatencyLimit(1.0, 0.005)),
        ("2000us", LatencyLimit(1.0, 0.002)),
    ],
)
def test_a_limit_is_read(text: str, limit: LatencyLimit) -> None:
    assert slower(text) == limit


@pytest.mark.parametrize("text", ["", "2", "x", "0.5x", "2x50ms", "+50ms", "2x+", "-2x", "2 x", "1h", "fast"])
def test_an_invalid_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"like 2x|at least 1"):
        slower(text)


def test_a_limit_has_a_factor_and_a_tolerance() -> None:
    limit = slower("2x+100ms")

    assert limit.allows(1.0, 2.1)
    assert not limit.allows(1.0, 2.11)
    assert limit.allows(0.001, 0.1)


def test_a_part_of_the_interface_selects_its_list_methods() -> None:
    assert DiffOptions(only=frozenset({"resources"})).methods == {
        "resources/list",
        "resources/templates/list",
    }
    assert DiffOptions().methods == frozenset()
