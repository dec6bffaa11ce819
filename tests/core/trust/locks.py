"""A reviewed server, its lockfile, and listings for it."""

from __future__ import annotations

import copy
import json
from typing import Any

from mcpspy.core.trust.lock import TrustedServer, digest, read_lock

ECHO = {
    "name": "echo",
    "description": "Return the text at 10:00.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": True},
}
ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
}
TOOLS = [ECHO, ADD]
PROMPT = {"name": "greet", "description": "A greeting.", "arguments": [{"name": "who", "required": True}]}
TEMPLATE = {"uriTemplate": "file:///{path}", "name": "files"}


def tools() -> list[dict[str, Any]]:
    return copy.deepcopy(TOOLS)


def lock_text(more: str = "", volatile: str = "") -> str:
    """Return a lockfile with the server `sample`; `more` continues its table, `volatile` is for each tool."""
    lines = ["version = 1", "[servers.sample]", 'command = ["python", "sample.py"]']
    lines += ['listed = ["tools", "prompts", "resourceTemplates"]', 'instructions = "Use echo."']
    lines += ['capabilities = \'{"tools":{"listChanged":true}}\'']
    for member, items in ("tools", TOOLS), ("prompts", [PROMPT]), ("resourceTemplates", [TEMPLATE]):
        for item in items:
            lines += [f"[[servers.sample.{member}]]", f'digest = "{digest(item)}"', volatile]
            lines += [f"definition = {json.dumps(json.dumps(item))}"]
    return "\n".join([*lines, more]) + "\n"


def trusted(more: str = "", volatile: str = "") -> TrustedServer:
    return read_lock(lock_text(more, volatile), "mcp.lock")["sample"]
