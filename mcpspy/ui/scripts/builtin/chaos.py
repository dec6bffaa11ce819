"""Fail requests of the client at random.

Options: rate (0.1), kinds (error,delay,drop), seconds (of delay, 2), seed.
"""

from __future__ import annotations

import random

from mcpspy import LiveExchange

KINDS = ("error", "delay", "drop")


class Chaos:
    def configure(self, options: dict[str, str]) -> None:
        self.rate = float(options.get("rate", 0.1))
        self.kinds = options.get("kinds", ",".join(KINDS)).split(",")
        if unknown := set(self.kinds) - set(KINDS):
            raise ValueError(f"kinds: {', '.join(unknown)}: use {', '.join(KINDS)}")
        self.seconds = float(options.get("seconds", 2))
        self.random = random.Random(options.get("seed"))  # noqa: S311 - faults, not secrets.

    def request(self, exchange: LiveExchange) -> None:
        if exchange.side != "client" or exchange.method == "initialize" or self.random.random() >= self.rate:
            return
        kind = self.random.choice(self.kinds)
        if kind == "error":
            exchange.answer(error={"code": -32603, "message": "Internal error (chaos)"})
        elif kind == "delay":
            exchange.delay(self.seconds)
        else:
            exchange.drop()
        exchange.tag("chaos")


script = Chaos()
