"""An agent that only has the tools finds the seeded fault of each recording in two calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpspy.ui.agent.answer import rendered
from mcpspy.ui.agent.queries import ReadArguments, read
from mcpspy.ui.agent.reports import ExplainArguments, ExplainFacts, explain
from mcpspy.ui.agent.sessions import SessionStore
from tests.ui.report.faults.record import FAULTS, HERE

MOST_CHARACTERS = 4 * 4_000
"""4,000 tokens, at four characters each."""


@pytest.fixture(scope="module")
def store() -> Iterator[SessionStore]:
    store = SessionStore(str(HERE))
    yield store
    store.close()


@pytest.mark.parametrize("name", FAULTS)
def test_explain_and_read_show_the_cause_within_the_budget(store: SessionStore, name: str) -> None:
    session = str(HERE / f"{name}.jsonl")
    explained = explain(store, ExplainArguments(session))
    assert isinstance(explained.facts, ExplainFacts)
    assert explained.facts.causes[:1] == [FAULTS[name].cause]
    quoted = read(store, ReadArguments(explained.facts.lines[0], session))
    size = sum(len(str(rendered(answer, 1_500, str))) for answer in (explained, quoted))
    assert size <= MOST_CHARACTERS
