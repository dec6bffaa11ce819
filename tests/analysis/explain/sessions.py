"""Sessions in the notation of examples, and what explain makes of them."""

from __future__ import annotations

from mcpspy.analysis.explain import Explainer
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.examples import entries_of, header_of


def explained(text: str, focus: frozenset[int] = frozenset()) -> Explainer:
    """Return the explainer of a session that has ended; its first entry is on line 2."""
    explainer = Explainer(header_of(text), focus=focus)
    for number, entry in enumerate(entries_of(text), 2):
        explainer.add(entry, EntryPosition(number))
    explainer.end()
    return explainer


def facts_of(text: str, focus: frozenset[int] = frozenset()) -> Facts:
    return explained(text, focus).facts
