"""Normalization of values that differ from run to run."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.analysis.diff.volatile import MARK, settled_error, settled_params, settled_result

SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "x"}}


@pytest.mark.parametrize(
    ("params", "settled"),
    [
        (None, {}),
        ([1], [1]),
        ({"name": "a", "arguments": {}}, {"name": "a"}),
        ({"name": "a", "_meta": {"progressToken": 1}}, {"name": "a"}),
        ({"cursor": "abc"}, {"cursor": MARK}),
        ({"taskId": "t", "lastUpdatedAt": "now"}, {"taskId": MARK, "lastUpdatedAt": MARK}),
        ({"createdAt": "now"}, {"createdAt": "now"}),
        ({"name": "a", "requestState": "s", "inputResponses": {}}, {"name": "a"}),
        ({"mode": "url", "elicitationId": "e"}, {"mode": "url", "elicitationId": MARK}),
        ({"arguments": {"cursor": "mine"}}, {"arguments": {"cursor": "mine"}}),
    ],
    ids=str,
)
def test_params(params: Any, settled: Any) -> None:
    assert settled_params(params) == settled


@pytest.mark.parametrize(
    ("result", "settled"),
    [
        ("text", "text"),
        ({"resultType": "complete", "_meta": SERVER_INFO}, {}),
        ({"resultType": "input_required"}, {"resultType": "input_required"}),
        ({"_meta": {"mine": 1, **SERVER_INFO}}, {"_meta": {"mine": 1}}),
        ({"nextCursor": "abc", "tools": []}, {"nextCursor": MARK, "tools": []}),
        (
            {"task": {"taskId": "t", "createdAt": "x", "status": "working"}},
            {"task": {"taskId": MARK, "createdAt": MARK, "status": "working"}},
        ),
        ({"ttlMs": 5}, {"ttlMs": 5}),
    ],
    ids=str,
)
def test_results(result: Any, settled: Any) -> None:
    assert settled_result(result) == settled


def test_errors() -> None:
    url_error = {"code": -32042, "data": {"elicitations": [{"url": "u", "elicitationId": "e"}, 7]}}

    assert settled_error(url_error)["data"] == {"elicitations": [{"url": "u", "elicitationId": MARK}, 7]}
    for error in ("text", {"code": 1}, {"data": {"elicitations": 1}}, {"data": [1]}):
        assert settled_error(error) == error
