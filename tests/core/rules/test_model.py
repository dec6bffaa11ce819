"""Rules: queries, descriptions, and requests to keep."""

from __future__ import annotations

import pytest

from mcpspy.core.query.parser import QueryError
from mcpspy.core.rules.model import NAMES, Rules, is_request_only
from mcpspy.core.rules.parser import read_flag


@pytest.mark.parametrize(
    "query",
    [
        "echo",
        "tool:echo",
        "method:tools/* -uri:x",
        "(prompt:a or id:7)",
        "params.arguments.text:hi",
        "not subject=a",
    ],
)
def test_a_query_about_fields_of_requests_means_the_request(query: str) -> None:
    assert is_request_only(query)


@pytest.mark.parametrize(
    "query", ["", "tool:echo kind:result", "dir:<-", "text:hi", "result.x:1", ">1kb", "is:slow", "/x/"]
)
def test_any_other_query_means_all_messages_it_finds(query: str) -> None:
    assert not is_request_only(query)


def test_an_invalid_query_is_rejected() -> None:
    with pytest.raises(QueryError):
        is_request_only("tool:")


def test_rules_are_described_with_the_seeds_that_repeat_a_run() -> None:
    rules = Rules(
        (read_flag("a => 20% seed=3 drop", 1), read_flag("b => 20% times=2 after=1 name=late hold", 2)), 9
    )

    assert rules.said() == [
        {"rule": "1", "when": "a", "action": "drop", "probability": 0.2, "seed": 3},
        {
            "rule": "late",
            "when": "b",
            "action": "hold",
            "probability": 0.2,
            "seed": 9,
            "times": 2,
            "after": 1,
        },
    ]


@pytest.mark.parametrize(
    ("flag", "wants"),
    [
        ("a => drop", False),
        ("text:a => drop", True),
        ("params.x:1 => drop", False),
        ('kind:result => replace {"result":{"x":"{{request.id}}"}}', True),
        ("kind:result => replace /result/x = {{request.id}}", True),
        ("kind:result => replace /result/x = {{id}}", False),
    ],
)
def test_requests_are_kept_only_if_a_rule_may_need_them(flag: str, wants: bool) -> None:
    assert Rules((read_flag(flag, 1),)).needs_requests == wants


def test_an_empty_set_of_rules_is_false() -> None:
    assert not Rules()
    assert Rules((read_flag("a => drop", 1),))
    assert len(set(NAMES.values())) == len(NAMES)
