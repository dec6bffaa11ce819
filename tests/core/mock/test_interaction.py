"""Interactions and their steps."""

from __future__ import annotations

from mcpspy.core.mock.interaction import Interaction
from tests.core.mock.talking import Talk, interactions


def test_an_interaction_has_a_response_or_stays_open() -> None:
    (call,) = interactions(Talk().call(1).session)
    assert call.answer is not None
    assert call.steps[-1].is_answer
    assert not call.is_subscription
    (listen,) = interactions(Talk().client(id="l", method="subscriptions/listen", params={}).session)
    assert listen.is_subscription
    assert listen.answer is None
    assert Interaction(None, []).answer is None
