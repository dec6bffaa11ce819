"""An agent that only has the tools finds the seeded fault of each recording in two calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median

import pytest

from mcpspy.analysis.context import count_tokens
from mcpspy.core.protocol.spec import REVISIONS
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.agent.answer import BUDGET, RenderedAnswer, rendered
from mcpspy.ui.agent.queries import ReadArguments, read
from mcpspy.ui.agent.reports import ExplainArguments, explain
from mcpspy.ui.agent.sessions import SessionStore
from tests.ui.report.faults.record import FAULTS, HERE, OBSERVED, SDKS, SIGNS_IN

MOST_TOKENS = 4_000
"""For both answers."""

LARGEST_SHARE = 0.1
"""Maximum size of the median answer, as a share of the size of its session."""


@pytest.fixture(scope="module")
def store() -> Iterator[SessionStore]:
    store = SessionStore(str(HERE))
    yield store
    store.close()


@pytest.fixture(scope="module")
def explained(store: SessionStore) -> dict[str, RenderedAnswer]:
    """Return the answer of `explain` for each fault."""
    return {
        name: rendered(explain(store, ExplainArguments(str(HERE / f"{name}.jsonl"))), BUDGET, store.gated)
        for name in FAULTS
    }


def size(answer: RenderedAnswer) -> str:
    """Return the larger one of the two forms that an agent may read."""
    return max(answer.text, json.dumps(answer.structured, ensure_ascii=False), key=len)


@pytest.mark.parametrize("name", FAULTS)
def test_explain_and_read_show_the_cause_within_the_budget(
    store: SessionStore, explained: dict[str, RenderedAnswer], name: str
) -> None:
    first = explained[name]
    assert first.structured["observations" if name in OBSERVED else "causes"][:1] == [FAULTS[name].cause]
    line = next(iter(first.structured["lines"]), 2)  # The handshake shows which revisions were compared.
    quoted = rendered(read(store, ReadArguments(line, str(HERE / f"{name}.jsonl"))), BUDGET, store.gated)
    assert count_tokens(size(first)) + count_tokens(size(quoted)) <= MOST_TOKENS


def test_the_median_answer_is_a_tenth_of_its_session(explained: dict[str, RenderedAnswer]) -> None:
    shares = [
        len(size(answer).encode()) / (HERE / f"{name}.jsonl").stat().st_size
        for name, answer in explained.items()
    ]
    assert median(shares) <= LARGEST_SHARE


def test_the_faults_cover_all_revisions_on_both_transports_and_all_sdks() -> None:
    seen = set()
    for name in FAULTS:
        recording = Recording(HERE / f"{name}.jsonl")
        seen.add((recording.header.transport, recording.session().revision))
    assert seen >= {(transport, revision) for transport in ("stdio", "http") for revision in REVISIONS}
    assert {fault.sdk for fault in FAULTS.values()} == {*SDKS, SIGNS_IN}
