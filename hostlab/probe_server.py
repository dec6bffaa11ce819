"""The server of the laboratory: an MCP server on stdio whose tools have one oddity each.

    python -m hostlab.probe_server

`PROBES` names the probes that it serves, separated by commas; without it, it serves all. `PROBE_REVISION` is the
revision of its response to `initialize`, instead of the requested one; `PROBE_PAGE` is the number of tools on a page of
`tools/list`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from hostlab.probes import CALLS, CONTROL, GROWN, INSTRUCTIONS, PROBES, RESULTS


class ProbeServer:
    """Answers one client."""

    def __init__(self, names: list[str] | None, revision: str | None, page: int) -> None:
        probes = [probe for probe in (*PROBES, *CALLS) if names is None or probe.id in names]
        self._tools = [CONTROL, *(tool for probe in probes for tool in probe.tools)]
        self._revision = revision
        self._page = page

    def answer(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages that the server sends for one from the client."""
        if "id" not in message or "method" not in message:
            return []
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        found = self._result(message["method"], message.get("params") or {})
        if found is None:
            return [
                response | {"error": {"code": -32601, "message": f"{message['method']}: method not found"}}
            ]
        messages = [response | {"result": found}]
        if message["method"] == "tools/call" and message["params"].get("name") == "grow":
            self._tools.append(GROWN)
            messages.append({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return messages

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            return {
                "protocolVersion": self._revision or params.get("protocolVersion"),
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "probe", "version": "1.0"},
                "instructions": INSTRUCTIONS,
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            first = int(params.get("cursor") or 0)
            page = {"tools": self._tools[first : first + self._page]}
            return page | (
                {"nextCursor": str(first + self._page)} if first + self._page < len(self._tools) else {}
            )
        if method == "tools/call":
            return RESULTS.get(params.get("name", ""), {"content": [{"type": "text", "text": "called"}]})
        return None


def main() -> None:
    """Serve until the client closes stdin."""
    given = os.environ.get("PROBES")
    page = int(os.environ.get("PROBE_PAGE", "1000"))
    server = ProbeServer(given.split(",") if given else None, os.environ.get("PROBE_REVISION"), page)
    for line in sys.stdin:
        for message in server.answer(json.loads(line)):
            if message.get("method"):
                time.sleep(0.2)  # The host has read the response, and listens for notifications.
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
