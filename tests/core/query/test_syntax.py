"""The page of the filter language contains only valid filters."""

from __future__ import annotations

import re

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.core.query.syntax import SYNTAX


@pytest.mark.parametrize(("example", "meaning"), SYNTAX)
def test_every_filter_on_the_page_is_valid(example: str, meaning: str) -> None:
    parse(example, linted=True)
    for inner in re.findall(r"(?<![\w.])[\w.]+(?::|[<>]=?)[\w*-]+", meaning):
        parse(inner, linted=True)
