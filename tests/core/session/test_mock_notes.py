"""The words of notes of kind `mock`."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.session.mock_notes import about, words


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"did": "played", "interaction": 7, "recording": "r.jsonl", "place": 1, "count": 2},
            "request 7 of r.jsonl (1 of 2)",
        ),
        ({"did": "generated"}, "answered by the mock"),
        ({"did": "left", "client": 1}, "client left"),
        ({"did": "missed", "miss": "not recorded"}, "not recorded"),
        ({"did": "missed", "miss": "used up"}, "used up"),
        (
            {
                "did": "forwarded",
                "miss": "not recorded",
                "nearest": 7,
                "nearest_request": "tools/call add",
                "at": "/params/arguments/b",
                "recorded": "2",
                "sent": "3",
                "more": 1,
            },
            (
                "not recorded, passed on to the real server; nearest: request 7, tools/call add, "
                "differs at /params/arguments/b (and at 1 more): recorded 2, sent 3"
            ),
        ),
        (
            {
                "did": "answered",
                "interaction": 7,
                "recording": "r.jsonl",
                "error": {"code": -5},
                "delay": 1.5,
            },
            "error -5 in place of request 7 of r.jsonl, after 1.5 s",
        ),
        ({"did": "answered", "result": {}}, "edited result"),
        (
            {
                "did": "changed",
                "match": "exact",
                "speed": 0.0,
                "misses": "error",
                "answers": [
                    {"interaction": None, "times": 1, "delay": 2.0},
                    {"interaction": 3, "times": None, "delay": 0.0, "error": {"code": -1}},
                    {"interaction": 4, "times": 1, "delay": 0.0, "result": {}},
                ],
            },
            (
                "mock: match exact, speed 0.0, misses error; next request: after 2 s; request 3: error -1; "
                "request 4: edited result, once"
            ),
        ),
    ],
)
def test_a_note_states_what_a_request_got_or_what_changed(fields: dict[str, Any], text: str) -> None:
    assert words(fields) == text


def test_a_note_names_its_request() -> None:
    assert about({"request": "tools/call echo", "id": "7"}) == "tools/call echo, id 7"
    assert about({}) == ""
