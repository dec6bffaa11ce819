"""Refuse tool calls that a policy forbids.

Options: file (JSON with allow, deny: globs; arguments: schemas by tool).
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path

from jsonschema_rs import Validator, validator_for

from mcpspy import LiveExchange
from mcpspy.ui.scripts.builtin import required


class Policy:
    def configure(self, options: dict[str, str]) -> None:
        policy = json.loads(Path(required(options, "file")).read_text(encoding="utf-8"))
        self.allowed: list[str] = policy.get("allow", ["*"])
        self.denied: list[str] = policy.get("deny", [])
        schemas = policy.get("arguments", {})
        self.schemas: dict[str, Validator] = {tool: validator_for(schema) for tool, schema in schemas.items()}

    def request(self, exchange: LiveExchange) -> None:
        if exchange.method == "tools/call" and (why := self.refusal(exchange)):
            exchange.answer(error={"code": -32000, "message": f"Refused by policy: {why}"})
            exchange.tag("refused")

    def refusal(self, exchange: LiveExchange) -> str:
        """Return the reason for which a call is refused; empty if it is allowed."""
        tool = exchange.subject
        if not matches(tool, self.allowed) or matches(tool, self.denied):
            return f"the tool {tool} is not allowed"
        schema = self.schemas.get(tool)
        try:
            error = next(schema.iter_errors(exchange.arguments), None) if schema is not None else None
        except ValueError as why:  # A lone surrogate, or too deep nesting.
            return f"arguments cannot be checked: {why}"
        return "" if error is None else error.message


def matches(tool: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


script = Policy()
