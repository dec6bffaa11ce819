"""A server whose behaviour is in the JSON file of its argument: `tools`, `declares`, and `fails`, its last words."""

import json
import sys
from pathlib import Path

plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
if "fails" in plan:
    sys.exit(plan["fails"])
waiting = None


def send(**fields: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method == "initialize":
        sys.stdout.write("starting\n")
        capabilities = plan.get("declares", {"tools": {}})
        info = {"name": "versioned", "version": "1"}
        send(
            id=number,
            result={
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": info,
            },
        )
    elif method == "server/discover":
        send(id=number, result={"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    elif method == "subscriptions/listen":
        agreed = {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": number}}
        send(method="notifications/subscriptions/acknowledged", params=agreed)
    elif method == "prompts/list":
        send(id=number, result={"prompts": []})
    elif method == "tools/list":
        send(
            id=number,
            result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in plan["tools"]]},
        )
    elif method == "tools/call" and params["name"] == "ask":
        waiting = number
        send(id=0, method="roots/list")
    elif method == "tools/call" and params["name"] == "die":
        sys.stderr.write("Segmentation fault\n")
        sys.exit(7)
    elif method == "tools/call" and params["name"] != "hang":
        send(id=number, result={"content": [{"type": "text", "text": f"{plan['tools']}"}]})
    elif method is None and waiting is not None:
        send(id=waiting, result={"content": [{"type": "text", "text": json.dumps(message.get("result"))}]})
        waiting = None
