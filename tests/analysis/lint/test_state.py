"""The state of the rules."""

from __future__ import annotations

from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.state import KEPT, LintState


def test_each_stream_has_a_conversation_and_only_the_latest_are_kept() -> None:
    known = LintState(None)
    first = known.conversation("0")

    assert known.conversation("0") is first
    for number in range(1, KEPT + 1):
        known.conversation(str(number))
    assert len(known.conversations) == KEPT
    assert known.conversation("0") is not first


def test_tools_are_learned_page_by_page() -> None:
    known = LintState(None)
    known.learn_tools({"tools": [{"name": "a"}, {"name": 7}, None], "nextCursor": "b"}, EntryPosition(4), b"")
    known.learn_tools({"tools": [{"name": "b", "outputSchema": {"type": "object"}}]}, EntryPosition(6), b"")

    assert list(known.tools) == ["a", "b"]
    assert known.tools["a"].place == EntryPosition(4)
    assert known.tools["a"].output is None
    assert known.tools["b"].output is not None
