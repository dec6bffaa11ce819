"""Count what each tool adds to the context of a model, and print it at the end.

Options: price (per million tokens).
"""

from __future__ import annotations

from collections import Counter

from mcpspy import LiveExchange, LiveSession

BYTES_PER_TOKEN = 4
"""An estimate for English text and JSON."""


class Meter:
    def configure(self, options: dict[str, str]) -> None:
        self.price = float(options["price"]) if "price" in options else None
        self.calls: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()

    def response(self, exchange: LiveExchange) -> None:
        name = exchange.subject if exchange.method == "tools/call" else exchange.method
        self.calls[name] += 1
        self.tokens[name] += len(exchange.message.data) // BYTES_PER_TOKEN

    def session_ended(self, session: LiveSession) -> None:
        for name, tokens in self.tokens.most_common():
            cost = "" if self.price is None else f", {tokens * self.price / 1e6:.4f}"
            print(f"meter: {name}: {self.calls[name]} responses, about {tokens} tokens{cost}")


script = Meter()
