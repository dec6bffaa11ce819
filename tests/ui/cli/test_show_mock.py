"""`mcpspy show --mock`: the requests that a mock can answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.show import MockListingEntry, mock_entries
from tests.core.mock.talking import Talk

RECORDING = str(Path(__file__).parents[3] / "recordings" / "peer-sdk-legacy.jsonl")


def test_requests_are_counted_by_target_and_responses_one_by_one() -> None:
    talk = Talk().handshake().call(1, n=1).call(2, n=1).call(3, n=2).call(4, "other")
    talk.client(id=5, method="tools/list").client(id=6, method="tools/call", params={"name": "hang"})
    talk.server(id=5, result={"tools": []})
    assert mock_entries(talk.recordings().interactions) == [
        MockListingEntry("tools/call", "echo", 2, 3),
        MockListingEntry("tools/call", "other", 1, 1),
        MockListingEntry("tools/list", None, 1, 1),
        MockListingEntry("tools/call", "hang", 1, 0),
    ]


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RECORDING, "--mock"]) == 0
    head, *table, _, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["method", "target", "requests", "answers"]
    assert "tools/call echo 3 3".split() in [row.split() for row in table]
    assert total == "26 requests, plus the handshake"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_numbers_are_visible_on_a_narrow_terminal(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RECORDING, "--mock", "--width", str(width)]) == 0
    _, *table, _, _ = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width and all(map(str.isdecimal, line.split()[-2:])) for line in table)


def test_programs_get_one_json_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RECORDING, "--mock", "--json"]) == 0
    first, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"method": "tools/list", "about": None, "requests": 1, "answers": 1}


def test_the_whole_recording_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RECORDING, "--mock", "--follow"]) == 2
    assert (
        "show: --mock and --follow exclude each other (--mock counts the whole recording)"
        in capsys.readouterr().err
    )
