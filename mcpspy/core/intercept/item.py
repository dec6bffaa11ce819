"""A message on its way, as a filter sees it.

Owns what can be asked of a message before it is known what becomes of it: an
answer has the method and subject of its request, if that was seen, and the
time it took.
"""

from __future__ import annotations

from mcpspy.core.exchange import TRANSITIONS, State
from mcpspy.core.message import Failure, Request, Result
from mcpspy.core.query_item import MessageItem
from mcpspy.core.session import event_of


class LiveItem(MessageItem):
    """One message, with the request that it answers."""

    __slots__ = ()

    @property
    def status(self) -> str:
        """The state that an answer gives its request; of a request, that it is pending."""
        entry = self._entry
        if isinstance(entry, Request):
            return State.PENDING.value
        if isinstance(entry, Result | Failure):
            return TRANSITIONS[State.PENDING][event_of(entry)].value
        return ""
