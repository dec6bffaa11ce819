"""A row as a filter sees it.

Owns which of its words each field of the filter language looks at: what
`analysis.rows` shows, before it is made inert. What the fields are is
`core.query.parser`'s.
"""

from __future__ import annotations

from collections.abc import Collection

from mcpspy.analysis.rows import row
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.query.item import MessageItem
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.session import Change


class ChangeItem(MessageItem):
    """One change, as things stand now."""

    __slots__ = ("_change", "findings")

    def __init__(self, change: Change, findings: Collection[str] = ()) -> None:
        super().__init__(change.what, None if change.exchange is None else change.exchange.request)
        self._change = change
        self.findings = findings
        """What `lint` says of it: `ENV101 error` …"""

    @property
    def status(self) -> str:
        """How an answer went; of a request, only while it has none: each failure is found once."""
        entry, exchange = self._entry, self._change.exchange
        if exchange is None or not isinstance(entry, Request | Result | Failure):
            return ""
        return exchange.state.value if not isinstance(entry, Request) or exchange.answer is None else ""

    @property
    def odd(self) -> bool:
        """Whether it breaks a rule, by itself or where it stands in the session."""
        return super().odd or (self._change.flaw is not None and not isinstance(self._entry, Note))

    def text(self) -> bytes:
        """Return its own bytes; a note without text has the words of its row instead."""
        if isinstance(self._entry, Note) and not self._entry.text:
            shown = row(self._change)
            return f"{shown.subject} {shown.status}".encode()
        return super().text()
