"""Scripts that mcpspy contains, each also an example, and functions for unchecked lists and schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from mcpspy import LiveExchange


def listed_tools(exchange: LiveExchange) -> Iterator[tuple[str | None, Any]]:
    """Yield the tools in a response to `tools/list`, each with its name; None for one that MCP does not allow."""
    result = exchange.result if exchange.method == "tools/list" else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        yield name if isinstance(name, str) else None, tool


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value fits a schema; True if no one can say: it is invalid, or refers to another document.

    No document that a schema names is fetched.
    """
    from jsonschema_rs import validator_for

    try:
        return validator_for(schema, retriever=_refuse).is_valid(value)
    except (ValueError, TypeError, RecursionError):
        return True


def required(options: dict[str, str], name: str) -> str:
    """Return the value of an option; raise ValueError if it is missing."""
    if name not in options:
        raise ValueError(f"{name} is missing (--script-option {name}=…)")
    return options[name]


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri}: not fetched")
