"""A recorded client, and a server that the test controls."""

from __future__ import annotations

import itertools
import json
from typing import Any

from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.player import Player, PlayerOptions
from mcpspy.core.session.session import Session
from tests.core.mock.talking import Json, Talk

__all__ = ["Json", "Stage", "Talk"]


class Stage:
    """A player with a clock that the test sets."""

    def __init__(self, session: Session, **options: Any) -> None:
        session.end()
        (plan,) = plans(session)
        self.now = 100.0
        self.player = Player(plan, PlayerOptions(**options), itertools.count(1), self.now)

    def takes(self) -> list[Json]:
        """Return the messages that are due now."""
        return [json.loads(data) for data in self.player.take(self.now)]

    def hears(self, **members: Any) -> list[Json]:
        """Deliver a message of the server; return the messages that are due then."""
        data = json.dumps({"jsonrpc": "2.0", **members}).encode()
        assert self.player.received(data, self.now)
        return self.takes()

    def waits(self) -> float:
        """Advance the clock until a message is due; return the seconds."""
        due = self.player.next_at
        assert due is not None
        waited, self.now = due - self.now, due
        return waited
