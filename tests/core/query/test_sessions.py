"""The filter of sessions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.sessions import SessionItem, parse_sessions, read_age
from mcpspy.core.session.outcome import Verdict
from tests.core.query.test_parser import TYPED

NOW = 1_000_000.0


TEXTS = {
    "id": "ab12cd34",
    "name": "weather-dev",
    "server": "weather 2.0",
    "client": "host 1",
    "revision": "2025-06-18",
    "state": "ended",
    "origin": "replay",
    "command": "npx -y @acme/forecast",
}
SESSION = SessionItem(
    TEXTS, NOW - 7200, 20_000, {"errors": 2, "issues": 0}.get, lambda: Verdict.NEVER_ANSWERED
)


def read_time(text: str) -> float | None:
    return {"2001-01-01": NOW - 90_000, "2001-01-02": NOW - 3600}.get(text)


def matches(text: str, session: SessionItem = SESSION) -> bool:
    return parse_sessions(text, lambda: NOW, read_time).matches(session)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "weather",
        "forecast",
        "ab12",
        "id:ab",
        "name:*-dev",
        "server:weather client:host",
        'server="weather 2.0"',
        "client!=other",
        "revision:2025-06-18 state:ended",
        "state:live or state:ended",
        "not (state:live | state:died) -name:test",
        "errors>0 issues:0",
        "errors:2",
        "errors!=3",
        "size>10kb size<1mb",
        ">10kb",
        "origin:replay",
        "verdict:never-answered",
        "is:never-answered is:ended",
        "command:forecast",
        "since:3h",
        "since:-1d until:1h",
        "since:2001-01-01",
        "until:2001-01-01 or until:2001-01-02",
    ],
)
def test_a_condition_that_holds_matches(text: str) -> None:
    assert matches(text)
    assert not text or not matches(f"-({text})")


@pytest.mark.parametrize(
    "text",
    ["other", "12cd", "id:cd", "server:host", "errors>2", "messages>0", "since:1h", "until:1d", "size>1mb"],
)
def test_a_condition_that_does_not_hold_does_not_match(text: str) -> None:
    assert not matches(text)


def test_a_session_without_a_valid_time_is_neither_before_nor_after() -> None:
    assert not matches("since:100w or until:1s", SESSION._replace(started=None))


@pytest.mark.parametrize(
    ("counts", "verdict", "is_problem"),
    [
        ({}, Verdict.FINE, False),
        ({"errors": 1}, Verdict.FAILURES, True),
        ({"unanswered": 1}, Verdict.FAILURES, True),
        ({"issues": 1}, Verdict.FAILURES, True),
        ({"messages": 9}, Verdict.FINE, False),
        ({}, Verdict.CRASHED, True),
        ({}, Verdict.NEVER_ANSWERED, True),
        ({}, None, False),
    ],
)
def test_a_problem_is_an_error_a_missing_response_an_issue_or_a_crash(
    counts: dict[str, int], verdict: Verdict | None, is_problem: bool
) -> None:
    session = SESSION._replace(number=lambda name: counts.get(name, 0), verdict=lambda: verdict)
    assert matches("is:problem", session) == is_problem
    assert matches("-is:problem", session) != is_problem


def test_counts_are_read_last() -> None:
    session = SESSION._replace(number=pytest.fail)
    assert not matches("errors>0 (issues>0 or unanswered>0) state:live", session)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("sever:x", "did you mean server:?"),
        ("state:ran", "use one of live, ended, died, failed"),
        ("state:end", 'unknown state "end": did you mean ended? Use one of live'),
        ("is:problems", 'unknown state "problems": did you mean problem? Use one of problem, live'),
        ("origin:replai", 'unknown origin "replai": did you mean replay? Use one of host, replay'),
        ("verdict:crash", 'unknown verdict "crash": did you mean crashed? Use one of live, never-started'),
        ("since:soon", "examples: since:2h, since:2026-11-20"),
        ("since>2h", "needs a colon"),
        ("errors>many", "errors>0"),
        ("size>1x", "size>10mb"),
        (">10", "size>10mb"),
        ("name>x", "write name:x"),
        ("/x/", "no regular expressions"),
        ("params.name:x", "no regular expressions and paths"),
        ("(state:live", "unclosed ("),
    ],
)
def test_a_mistake_is_named(text: str, error: str) -> None:
    with pytest.raises(QueryError) as caught:
        matches(text)
    assert error in str(caught.value)


def test_an_age_is_relative_to_the_time_of_the_test() -> None:
    times = iter([NOW, NOW + 7200])
    query = parse_sessions("since:3h", lambda: next(times), read_time)

    assert [query.matches(SESSION), query.matches(SESSION)] == [True, False]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "name:wether",
            'No name matches "wether": did you mean weather-dev? The names are weather-dev, memory.',
        ),
        (
            "name:memry errors>0",
            'No name matches "memry": did you mean memory? The names are weather-dev, memory.',
        ),
        ("nothing", 'Nothing contains "nothing". The names are weather-dev, memory.'),
        ("server:sqlite", 'No server matches "sqlite". The servers are weather 2.0.'),
        ("(client:host or client:cursor) state:live", 'No client matches "cursor". The clients are host 1.'),
        ("weather errors>9", ""),
        ("-name:memory -name:weather", ""),
        ("state:live", ""),
    ],
)
def test_if_nothing_matches_a_name_that_no_session_has_is_reported_with_those_that_exist(
    text: str, reason: str
) -> None:
    memory = SESSION._replace(
        texts={**TEXTS, "id": "ff00", "name": "memory", "server": "", "command": "uvx mem"}
    )

    assert parse_sessions(text, lambda: NOW, read_time).no_match([SESSION, SESSION, memory]) == reason


def test_of_many_names_the_first_are_shown() -> None:
    sessions = [SESSION._replace(texts={**TEXTS, "name": f"s{number:02}"}) for number in range(12)]

    reason = parse_sessions("name:x", lambda: NOW, read_time).no_match(sessions)
    assert reason.endswith("The names are s00, s01, s02, s03, s04, s05, s06, s07 and 4 more.")
    assert parse_sessions("name:x", lambda: NOW, read_time).no_match([]) == 'No name matches "x".'


@given(TYPED)
def test_any_text_is_a_filter_or_an_error_with_a_position(text: str) -> None:
    position = 0, 0
    try:
        matches(text)
    except QueryError as error:
        position = error.start, error.end
    assert 0 <= position[0] <= position[1] <= len(text) + 1


@given(st.floats(0, 1e6), st.sampled_from(["s", "min", "h", "d", "w"]))
def test_an_age_is_a_number_with_a_unit(number: float, unit: str) -> None:
    seconds = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}[unit]
    assert read_age(f"{number:f}{unit}") == pytest.approx(float(f"{number:f}") * seconds)
    assert read_age(f"{number:f}") is None
