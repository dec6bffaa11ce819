"""Hide and rename tools.

Options: hide (a,b or globs), rename (old:new,…), prefix (for all names).
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from mcpspy import LiveExchange
from mcpspy.ui.scripts.builtin import listed_tools


class Tools:
    def configure(self, options: dict[str, str]) -> None:
        self.hidden = [name for name in options.get("hide", "").split(",") if name]
        self.prefix = options.get("prefix", "")
        self.names = dict(pair.split(":", 1) for pair in options.get("rename", "").split(",") if pair)

    def response(self, exchange: LiveExchange) -> None:
        listed = [*listed_tools(exchange)]
        tools = [
            tool if name is None else {**tool, "name": self.shown(name)}
            for name, tool in listed
            if name is None or not self.is_hidden(name)
        ]
        if tools != [tool for _, tool in listed]:
            exchange.replace(result={**exchange.result, "tools": tools})

    def request(self, exchange: LiveExchange) -> None:
        if exchange.method != "tools/call":
            return
        name = exchange.subject.removeprefix(self.prefix)
        own = next((old for old, new in self.names.items() if new == name), name)
        if self.is_hidden(own) or self.shown(own) != exchange.subject:
            exchange.answer(error={"code": -32602, "message": f"Unknown tool: {exchange.subject}"})
        elif own != exchange.subject:
            exchange.replace(params={**exchange.params, "name": own})

    def is_hidden(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.hidden)

    def shown(self, name: str) -> str:
        return self.prefix + self.names.get(name, name)


script = Tools()
