"""The structure of a plan."""

from __future__ import annotations

from mcpspy.core.replay.plan import plans
from tests.core.replay.playing import Talk


def test_a_plan_lists_its_requests_without_cancellations() -> None:
    talk = Talk().handshake().client(id=1, method="tools/call", params={"name": "hang"})
    talk.client(method="notifications/cancelled", params={"requestId": 1})
    talk.session.end()
    (plan,) = plans(talk.session)

    assert [exchange.request.method for exchange in plan.requests] == ["initialize", "tools/call"]
    assert len(plan.steps) == 4
