"""A whole exchange as a filter sees it: a request, and its answer.

Owns which of the two each field looks at: time and size of both, the rest of
the answer where there is one. What the fields are is `core.query`'s.
"""

from __future__ import annotations

from mcpspy.core.exchange import Exchange
from mcpspy.core.message import Failure, Result


class ExchangeItem:
    """One exchange, as things stand now."""

    kind = "exchange"

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        request, answer = exchange.request, exchange.answer
        self.at = request.at
        self.side = request.side
        self.method = request.method
        self.subject = request.subject or ""
        self.id = request.id
        self.status = exchange.state.value
        self.latency = exchange.latency
        self.size = len(request.data) + (len(answer.data) if answer is not None else 0)
        self.stream = request.frame.stream or ""
        self.odd = bool(exchange.flaws or request.flaws or (answer is not None and answer.flaws))
        self.error_code = answer.code if isinstance(answer, Failure) else None

    def text(self) -> bytes:
        """Return the bytes of both."""
        answer = self._exchange.answer
        return self._exchange.request.data + (b"\n" + answer.data if answer is not None else b"")

    def message(self, member: str) -> bytes:
        """Return the bytes of the request for `params`, else of an answer that has `result` or `error`."""
        if member == "params":
            return self._exchange.request.data
        answer = self._exchange.answer
        return answer.data if isinstance(answer, Result if member == "result" else Failure) else b""
