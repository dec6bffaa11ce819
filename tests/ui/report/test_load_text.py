"""Load reports as text, JSON and CSV."""

from __future__ import annotations

import csv
import json

from mcpspy.analysis.load import LoadResult, gate
from mcpspy.ui.report.load import document, histogram_csv, lines
from tests.analysis.test_load import START, result, sent
from tests.core.replay.playing import Stage, Talk


def loaded() -> LoadResult:
    return result(sent(0.01, 0.02, None), sent(0.04, 0.03))


def test_each_kind_of_request_has_its_line_the_slowest_first_then_all_errors_and_the_sum() -> None:
    found = loaded()
    stage = Stage(Talk().call(1, "other").session)
    stage.takes()
    stage.player.received(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}', stage.now + 1.0)
    found.add_run(list(stage.player.sent.values()), 0, None, started=START, delay=0.0)
    printed = [line.split() for line in lines(found)]

    assert printed[0] == ["request", "sent", "failed", "p50", "p90", "p95", "p99", "max", "recorded"]
    assert printed[1] == ["tools/call", "other", "1", "1", *["1.00", "s"] * 6]
    assert printed[2][:4] == ["tools/call", "echo", "5", "1"]
    assert printed[2][-4:] == ["40.0", "ms", "1.00", "s"]
    assert printed[3][:3] == ["all", "6", "2"]
    assert sorted(printed[4:6]) == [["1", "HTTP", "500"], ["1", "JSON-RPC", "error", "1"]]
    assert printed[6:9] == [
        ["seconds", "answers", "errors", "max"],
        ["0", "to", "1", "4", "1", "40.0", "ms"],
        ["1", "to", "2", "1", "1", "1.00", "s"],
    ]
    assert " ".join(printed[9]) == "3 runs · 6 requests in 4.00 s · 2 requests/s · 0.75 runs/s"


def test_the_text_merges_a_long_timeline() -> None:
    found = LoadResult()
    for second in range(60):
        found.add_run(sent(0.0, at=second), 0, None, started=START, delay=0.0)

    assert [line.split()[3] for line in lines(found) if " to " in line] == ["8"] * 7 + ["4"]


def test_the_json_document_has_every_figure_in_milliseconds() -> None:
    read = json.loads(document(loaded(), gate("p50>1ms or errors>90%")))

    assert (read["runs"], read["requests"], read["errors"]) == (2, 5, 1)
    assert read["latency_ms"]["max"] == read["histogram"][-1]["latency_ms"] == 40.0
    assert read["by_error"] == {"HTTP 500": 1}
    assert read["by_request"][0]["request"] == "tools/call echo"
    assert sum(each["answers"] for each in read["timeline"]) == 4
    assert read["fail_if"]["met"] is True
    assert [term["met"] for term in read["fail_if"]["terms"]] == [True, False]
    assert json.loads(document(loaded(), None))["fail_if"] is None


def test_the_csv_file_has_the_buckets_of_each_request_up_to_one_hundred_percent() -> None:
    rows = list(csv.DictReader(histogram_csv(loaded()).decode().splitlines()))

    assert {row["request"] for row in rows} == {"tools/call echo", "all"}
    assert (rows[-1]["latency_ms"], rows[-1]["total_count"], rows[-1]["percentile"]) == (
        "40.000",
        "4",
        "100.0000",
    )
