"""A server on the Python SDK whose only tool requires its arguments in HTTP headers, too (`x-mcp-header`, 2026-07-28).

.peers/venv/bin/python tests/peers/servers/mirrored_server.py --port 8000
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

server = MCPServer("mirrored-peer", version="1.0.0", log_level="CRITICAL")


@server.tool()
def where(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    floor: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Floor"})] = 0,
) -> str:
    """Say where that is."""
    return f"{region} {floor}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    server.run("streamable-http", port=parser.parse_args().port, stateless_http=True, json_response=True)
