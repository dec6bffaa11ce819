"""Explaining lines of a recording, as it is read, and single entries."""

from __future__ import annotations

import pytest

from mcpspy.analysis.explain import CAUSES, Explainer
from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.examples import entries_of, header_of
from tests.analysis.explain.sessions import explained
from tests.analysis.explain.test_generated_sessions import HEADS, session
from tests.analysis.recorded import recorded


def by_lines(text: str) -> Explainer:
    explainer = Explainer(header_of(text))
    explainer.add_lines(recorded(entries_of(text)), EntryPosition(2))
    explainer.end()
    return explainer


@pytest.mark.parametrize("head", HEADS)
def test_lines_are_explained_as_their_entries_are(head: str) -> None:
    for seed in range(20):
        text = session(head, seed)
        assert by_lines(text).diagnosis() == explained(text).diagnosis(), text


def test_the_examples_of_causes_have_the_same_diagnosis_by_lines() -> None:
    for kind in CAUSES:
        for text in (*kind.positive, *kind.negative):
            assert by_lines(text).diagnosis() == explained(text).diagnosis(), text
