"""The page of the filter language contains only valid filters."""

from __future__ import annotations

import re

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.core.query.sessions import parse_sessions
from mcpspy.core.query.syntax import SESSION_SYNTAX, SYNTAX


@pytest.mark.parametrize(("example", "meaning"), SYNTAX)
def test_every_filter_on_the_page_is_valid(example: str, meaning: str) -> None:
    parse(example, linted=True)
    for inner in re.findall(r"(?<![\w.])[\w.]+(?::|[<>]=?)[\w*-]+", meaning):
        parse(inner, linted=True)


@pytest.mark.parametrize(("example", "meaning"), SESSION_SYNTAX)
def test_every_filter_of_sessions_on_the_page_is_valid(example: str, meaning: str) -> None:
    parse_sessions(example, lambda: 0.0, lambda _: 0.0)
    for inner in re.findall(r"(?<![\w.])[\w.]+(?::|[<>]=?)[\w*-]+", meaning):
        parse_sessions(inner, lambda: 0.0, lambda _: 0.0)
