"""Random numbers that are the same in every run."""

from __future__ import annotations

from mcpspy.core.rules.model import roll


def test_they_are_the_same_on_every_machine() -> None:
    # Fixed values: any later version of mcpspy must be able to repeat a chaos run.
    assert [round(roll(7, "1", n), 6) for n in (1, 2, 3)] == [0.294703, 0.829363, 0.624182]


def test_rules_seeds_and_matches_have_their_own_numbers() -> None:
    rolls = {roll(seed, rule, n) for seed in (1, "a") for rule in ("1", "2", "name") for n in range(1, 50)}

    assert len(rolls) == 2 * 3 * 49


def test_a_fifth_is_a_fifth() -> None:
    rolls = [roll(1, "1", n) for n in range(10_000)]

    assert all(0 <= number < 1 for number in rolls)
    assert 1900 < sum(number < 0.2 for number in rolls) < 2100
