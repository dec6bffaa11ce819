"""Delay requests of the client.

Options: ms (100), jitter (ms, 0), tool (default: every request), seed.
"""

from __future__ import annotations

import random

from mcpspy import LiveExchange


class Latency:
    def configure(self, options: dict[str, str]) -> None:
        self.ms = float(options.get("ms", 100))
        self.jitter = float(options.get("jitter", 0))
        self.tool = options.get("tool")
        self.random = random.Random(options.get("seed"))  # noqa: S311 - a delay, not a secret.

    def request(self, exchange: LiveExchange) -> None:
        if exchange.side == "client" and self.tool in (None, exchange.subject):
            exchange.delay(max(0.0, self.ms + self.random.uniform(-self.jitter, self.jitter)) / 1000)


script = Latency()
