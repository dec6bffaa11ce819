"""The server of sdk_server.py over TLS: tls_server.py CERTIFICATE KEY --port PORT (at /mcp)."""

import argparse

import uvicorn
from sdk_server import server

parser = argparse.ArgumentParser(description="A server on the Python SDK, over TLS.")
parser.add_argument("certificate")
parser.add_argument("key")
parser.add_argument("--port", type=int, required=True)
options = parser.parse_args()
uvicorn.run(
    server.streamable_http_app(),
    host="127.0.0.1",
    port=options.port,
    ssl_certfile=options.certificate,
    ssl_keyfile=options.key,
    log_level="critical",
)
