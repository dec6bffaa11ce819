"""Options that several commands share."""

from __future__ import annotations

import argparse

import pytest

from mcpspy.ui.cli.options import FOLDER, RECORDING, SESSION, describe, speed


def test_a_table_becomes_switches_values_and_lists_in_its_order() -> None:
    parser = argparse.ArgumentParser(prog="x")
    table = {
        "--all": (None, "every one"),
        "-q --filter": ("QUERY", "these"),
        "--rule": ("RULE", "one"),
        **FOLDER,
    }
    describe(parser, table, repeated=("--rule",))
    given = parser.parse_args(["-q", "a", "--rule", "b", "--rule", "c"])

    assert vars(given) == {"all": False, "filter": "a", "rule": ["b", "c"], "dir": None}
    assert vars(parser.parse_args(["--all"])) == {"all": True, "filter": None, "rule": [], "dir": None}
    assert parser.format_usage() == "usage: x [-h] [--all] [-q QUERY] [--rule RULE] [--dir DIR]\n"


def test_a_session_that_is_recorded_has_all_options_of_a_recording() -> None:
    assert SESSION.items() > RECORDING.items() > FOLDER.items()


def test_a_speed_is_a_number_from_0_on() -> None:
    assert [speed(text) for text in ("0", "1.5")] == [0.0, 1.5]
    for text in ("fast", "-1", "nan", "inf"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"{text}: not a speed"):
            speed(text)
