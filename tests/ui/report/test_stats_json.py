"""Statistics as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.recording.decode import read_header
from mcpspy.ui.report.stats import document
from mcpspy.ui.report.stats_table import CountedSession
from tests.analysis.stats.talking import Talk
from tests.core.session.test_index import RECORDINGS


def report_of(talk: Talk, *, is_live: bool = False) -> dict[str, Any]:
    found = document(CountedSession("x", talk.stats(is_over=not is_live), is_live, ("x.jsonl",)))
    assert found.endswith(b"\n")
    assert found.count(b"\n") == 1
    value: dict[str, Any] = json.loads(found)
    return value


def test_a_group_has_its_counts_times_and_bytes() -> None:
    report = report_of(Talk().hello().call(1, 1.0, 1.25).call(2, 2.0, 2.5, isError=True))
    echo = next(group for group in report["groups"] if group["about"] == "echo")

    assert echo["latency"] == {
        "count": 2,
        "total": 0.75,
        "mean": 0.375,
        "p50": 0.25,
        "p95": 0.5,
        "p99": 0.5,
        "max": 0.5,
    }
    assert (echo["count"], echo["errors"], echo["states"]["ok"], echo["states"]["tool error"]) == (2, 1, 1, 1)
    assert report["initialize"] == {"method": "initialize", "at": 0.5, "took": 0.5, "ready": 0.5}
    assert report["server_seconds"] == 1.25
    assert report["server_share"] == 0.5


def test_pending_requests_are_listed_with_their_original_id() -> None:
    talk = Talk().hello().ask("a", 1.0, "ping").ask(10**30, 2.0, "ping").call(3, 3.0, 4.0)

    waiting = report_of(talk, is_live=True)["waiting"]

    assert [(each["id"], each["seconds"]) for each in waiting] == [("a", 3.0), (10**30, 2.0)]


def test_values_that_json_cannot_represent_are_written_too() -> None:
    talk = Talk().ask(0, 0.0, "initialize", {"clientInfo": {"name": "\ud800", "version": "1"}})
    talk.lines.append(b'{"t":1.0,"from":"client","msg":{"jsonrpc":"2.0","id":NaN,"method":"ping"}}')

    found = report_of(talk, is_live=True)

    assert found["client"]["name"] == "\ud800"
    assert [each["id"] for each in found["waiting"]] == [0, None]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_numbers_of_a_real_session_add_up(path: Path) -> None:
    header, *lines = path.read_bytes().split(b"\n")[:-1]
    stats = StatsCollector(read_header(header))
    stats.add_lines(lines)
    stats.finish(is_over=True)
    found = json.loads(document(CountedSession("x", stats, False, (str(path),))))

    assert sum(found["messages"].values()) == sum(found["kinds"].values())
    for side, total in found["requests"].items():
        groups = [each for each in found["groups"] if (each["from"], each["kind"]) == (side, "request")]
        for key in ("count", "errors", "sent", "back"):
            assert total[key] == sum(each[key] for each in groups)
        assert total["count"] == sum(total["states"].values()) + total["apart"]
    assert found["kinds"]["request"] == sum(total["count"] for total in found["requests"].values())
    assert 0 <= found["server_share"] <= 1
    assert max(found["in_flight"]["profile"]) == found["in_flight"]["most"]
