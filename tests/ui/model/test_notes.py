"""The steps of an authorization are one row of the list, and shown together."""

from __future__ import annotations

import orjson
import pytest

from mcpspy.analysis.rows import BAD
from mcpspy.core.query.parser import parse
from mcpspy.ui.model.notes import oauth_flow
from mcpspy.ui.model.row_filter import FilteredView, ViewOptions
from tests.ui.model.test_session_model import CALL, FAILED, File


def step(http: int, flow: int, name: str, status: int, **more: object) -> bytes:
    fields = {"t": http / 10, "note": "oauth", "stream": "1", "http": http, "flow": flow, "step": name}
    return orjson.dumps({**fields, "status": status, **more})


STEPS = [
    step(1, 1, "challenge", 401, error="invalid_token"),
    step(2, 2, "challenge", 401),
    step(3, 3, "authorize", 302),
    step(4, 1, "token", 200, joins=[3]),
    step(5, 2, "registration", 403),
    step(6, 1, "retry", 200, chain=["challenge 401", "authorize 302", "token 200", "retry 200"]),
]


def shown(view: FilteredView) -> list[int]:
    view.advance(lambda: True)
    return list(view.rows)


def test_a_flow_is_the_row_of_its_last_step_while_the_session_grows() -> None:
    file = File()
    view = FilteredView(file.add(CALL, FAILED))
    rows = []
    for line in STEPS:
        file.add(line)
        rows.append(shown(view))
    assert rows == [[0, 2], [0, 2, 3], [0, 2, 3, 4], [0, 3, 5], [0, 5, 6], [0, 6, 7]]
    assert shown(FilteredView(file.log)) == rows[-1]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (ViewOptions(exchanges=False), [0, 1, 2, 3, 4, 5, 6, 7]),
        (ViewOptions(events=False), [0]),
        (ViewOptions(query=parse("note:oauth")), [6, 7]),
    ],
)
def test_each_step_is_a_row_where_each_message_is_one(options: ViewOptions, rows: list[int]) -> None:
    file = File()
    assert shown(FilteredView(file.add(CALL, FAILED, *STEPS), options)) == rows


def test_each_row_of_a_flow_shows_all_its_steps_and_no_others() -> None:
    file = File()
    log = file.add(CALL, FAILED, *STEPS)
    for row in (2, 4, 5, 7):
        lines = oauth_flow(log, row)
        assert lines is not None
        first, *steps, last = [text for text, _ in lines]
        assert (first, last) == ("OAuth 1: 4 steps", "")
        assert [text[2:].split(" s  ")[0] for text in steps] == [
            "401  challenge            0.100",
            "302  authorize            0.300",
            "200  token                0.400",
            "200  retry                0.600",
        ]
        assert [text[0] for text in steps] == ["▸" if place == row else " " for place in (2, 4, 5, 7)]
        assert (lines[1][0].endswith("http 1  invalid_token"), lines[1][1]) == (True, BAD)
    assert oauth_flow(log, 0) is None


def test_notes_that_another_program_wrote_are_steps_of_no_flow() -> None:
    file = File()
    notes = [
        step(1, 1, "challenge", 401),
        b'{"t":1,"note":"oauth","flow":"x","joins":7}',
        b'{"t":1,"note":"oauth"}',
    ]
    log = file.add(*notes, step(2, 1, "token", 200, joins=5))
    assert shown(FilteredView(log)) == [1, 2, 3]
    assert [oauth_flow(log, row) is None for row in range(4)] == [False, True, True, False]
