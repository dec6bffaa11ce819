"""A server whose tools die, ask, report progress, announce changes, and return the id of the process."""

import json
import os
import sys
from typing import Any


def say(**members: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)


asked = None
for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method == "initialize":
        say(
            id=number,
            result={"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}},
        )
    elif method == "server/discover":
        say(id=number, result={"supportedVersions": ["2026-07-28"]})
    elif method is None:
        say(id=asked, result={"said": message["result"]["answer"]})
    elif method != "tools/call":
        pass
    elif params["name"] == "die":
        print("out of cheese", file=sys.stderr, flush=True)
        sys.exit(7)
    elif params["name"] == "ask":
        asked = number
        say(id="q", method="elicitation/create", params={"message": "?"})
    elif params["name"] == "steps":
        say(
            method="notifications/progress",
            params={"progressToken": params["_meta"]["progressToken"], "progress": 1},
        )
        say(id=number, result={"said": "done"})
    elif params["name"] == "change":
        for _ in range(params["arguments"]["times"]):
            say(method="notifications/tools/list_changed")
        say(id=number, result={"said": "changed"})
    elif params["name"] == "pid":
        say(id=number, result={"said": os.getpid()})
