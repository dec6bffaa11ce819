"""`mcpspy mcp --http` for clients that cannot send its token: `agent_server.py --port PORT --dir FOLDER`.

Every request gets the token before the server checks it; the rest is the command as it is.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from mcpspy.ui.agent import mcp_server
from mcpspy.ui.cli.main import main

TOKEN = "conformance"


class Authorized(mcp_server.TokenCheck):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {TOKEN}".encode())
            scope = {**scope, "headers": [*scope["headers"], token]}
        await super().__call__(scope, receive, send)


parser = argparse.ArgumentParser()
parser.add_argument("--port", required=True)
parser.add_argument("--dir", required=True)
options = parser.parse_args()
os.environ["AGENT_TOKEN"] = TOKEN
mcp_server.TokenCheck = Authorized  # type: ignore[misc]  # The command has no option without a token.
sys.exit(main(["mcp", "--http", options.port, "--token-env", "AGENT_TOKEN", "--dir", options.dir]))
