"""Answer tool calls beyond a rate with an error.

Options: rate (calls per minute, 60), tool (default: all).
"""

from __future__ import annotations

from collections import deque

from mcpspy import LiveExchange


class RateLimit:
    def configure(self, options: dict[str, str]) -> None:
        self.rate = int(options.get("rate", 60))
        self.tool = options.get("tool")
        self.calls: deque[float] = deque()

    def request(self, exchange: LiveExchange) -> None:
        if exchange.method != "tools/call" or self.tool not in (None, exchange.subject):
            return
        while self.calls and self.calls[0] <= exchange.at - 60:
            self.calls.popleft()
        if len(self.calls) < self.rate:
            self.calls.append(exchange.at)
            return
        wait = 60 - (exchange.at - self.calls[0]) if self.calls else 60
        message = f"Rate limit: more than {self.rate} calls a minute; try again in {wait:.0f} s"
        exchange.answer(error={"code": -32029, "message": message})


script = RateLimit()
