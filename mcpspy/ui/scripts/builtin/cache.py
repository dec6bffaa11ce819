"""Answer repeated calls of read-only tools from a cache.

Options: ttl (seconds, 60), tools (a,b: also cache these).
"""

from __future__ import annotations

import json
from typing import Any

from mcpspy import LiveExchange
from mcpspy.ui.scripts.builtin import listed_tools


class Cache:
    def configure(self, options: dict[str, str]) -> None:
        self.ttl = float(options.get("ttl", 60))
        self.tools = {name for name in options.get("tools", "").split(",") if name}
        self.results: dict[str, tuple[float, Any]] = {}

    def request(self, exchange: LiveExchange) -> None:
        at, result = self.results.get(key(exchange), (0.0, None))
        if result is not None and exchange.at - at < self.ttl:
            exchange.answer(result)
            exchange.tag("cached")

    def response(self, exchange: LiveExchange) -> None:
        for name, tool in listed_tools(exchange):
            annotations = tool.get("annotations") if name is not None else None
            if name is not None and isinstance(annotations, dict) and annotations.get("readOnlyHint") is True:
                self.tools.add(name)
        if exchange.method == "tools/call" and exchange.subject in self.tools and exchange.status == "ok":
            self.results[key(exchange)] = exchange.at, exchange.result


def key(exchange: LiveExchange) -> str:
    """Return the tool and its arguments; the order of arguments does not matter."""
    return json.dumps([exchange.method, exchange.subject, exchange.arguments], sort_keys=True)


script = Cache()
