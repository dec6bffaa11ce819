"""Make the arguments of tool calls fit the input schema, where their text has one meaning: "3" to 3.

Options: tool (default: all).
"""

from __future__ import annotations

import json
from typing import Any

from mcpspy import LiveExchange
from mcpspy.ui.scripts.builtin import fits, listed_tools

DEFINITIONS = ("$schema", "$defs", "definitions")


class Repair:
    def configure(self, options: dict[str, str]) -> None:
        self.tool = options.get("tool")
        self.schemas: dict[str, Any] = {}

    def response(self, exchange: LiveExchange) -> None:
        for name, tool in listed_tools(exchange):
            if name is not None and isinstance(schema := tool.get("inputSchema"), dict):
                self.schemas[name] = schema

    def request(self, exchange: LiveExchange) -> None:
        schema = self.schemas.get(exchange.tool)
        if schema is None or self.tool not in (None, exchange.tool) or "arguments" not in exchange.params:
            return
        changed: list[str] = []
        shared = {key: schema[key] for key in DEFINITIONS if key in schema}
        arguments = repaired(exchange.params["arguments"], schema, shared, "arguments", changed)
        if changed:
            exchange.replace(params={**exchange.params, "arguments": arguments})
            exchange.note(f"changed to fit the schema: {', '.join(changed)}")


def repaired(value: Any, schema: Any, shared: dict[str, Any], path: str, changed: list[str]) -> Any:
    """Return a value in which each text that does not fit is decoded, if the decoded value fits."""
    if not isinstance(schema, dict) or fits(value, schema | shared):
        return value
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {k: repaired(v, known.get(k), shared, f"{path}.{k}", changed) for k, v in value.items()}
    if isinstance(value, list):
        items = enumerate(value)
        return [repaired(v, schema.get("items"), shared, f"{path}[{k}]", changed) for k, v in items]
    try:
        decoded = json.loads(value, parse_constant=int)  # Refuses NaN.
    except (TypeError, ValueError):
        return value
    decoded = repaired(decoded, schema, shared, path, [])
    if not fits(decoded, schema | shared):
        return value
    changed.append(f"{path} ({type(value).__name__} to {type(decoded).__name__})")
    return decoded


script = Repair()
