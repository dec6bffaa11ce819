"""A gateway of httpx, starlette and uvicorn, a proxy without aiohttp, as a comparison in `bench/http.py`.

Forwards streams as streams, keeps its connections, and writes a line for each body and each chunk of a stream before
it forwards them. Runs in the environment of the peers, where httpx is named httpx2.

    .peers/venv/bin/python bench/http_gateway.py UPSTREAM PORT FILE
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Iterable

import httpx2  # type: ignore[import-not-found, unused-ignore]
import uvicorn  # type: ignore[import-not-found, unused-ignore]
from starlette.applications import Starlette  # type: ignore[import-not-found, unused-ignore]
from starlette.background import BackgroundTask  # type: ignore[import-not-found, unused-ignore]
from starlette.requests import Request  # type: ignore[import-not-found, unused-ignore]
from starlette.responses import Response, StreamingResponse  # type: ignore[import-not-found, unused-ignore]
from starlette.routing import Route  # type: ignore[import-not-found, unused-ignore]

NOT_PASSED_ON = {"host", "connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}
METHODS = ["GET", "POST", "DELETE"]


def forwarded(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers to forward."""
    return {name: value for name, value in headers if name.lower() not in NOT_PASSED_ON}


def main() -> None:
    """Serve until SIGTERM."""
    upstream, port, path = sys.argv[1:]
    with open(path, "ab", buffering=0) as file:

        def record(sender: str, body: bytes) -> None:
            line = {"t": time.time(), "from": sender, "msg": body.decode()}
            file.write(json.dumps(line).encode() + b"\n")

        async def recorded(response: httpx2.Response) -> AsyncIterator[bytes]:
            async for chunk in response.aiter_raw():
                record("server", chunk)
                yield chunk

        async def handle(request: Request) -> Response:
            body = await request.body()
            if body:
                record("client", body)
            url = str(request.url.replace(scheme="", netloc=""))
            forwarded_request = client.build_request(
                request.method, upstream + url, headers=forwarded(request.headers.items()), content=body
            )
            response = await client.send(forwarded_request, stream=True)
            headers = forwarded(response.headers.items())
            if headers.get("content-type", "").startswith("text/event-stream"):
                end = BackgroundTask(response.aclose)
                return StreamingResponse(recorded(response), response.status_code, headers, background=end)
            answer = await response.aread()
            record("server", answer)
            return Response(answer, response.status_code, headers)

        client = httpx2.AsyncClient(timeout=None, limits=httpx2.Limits(), trust_env=False)
        app = Starlette(routes=[Route("/{path:path}", handle, methods=METHODS)])
        uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
