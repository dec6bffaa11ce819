"""Hooks for HTTP heads in `mcpspy http`, before a server that returns the headers it got."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

LIMIT = 60
"""Seconds for one session."""

SECRET = "tok-8f3a9c0d17e2"

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}


async def answer(request: web.Request) -> web.Response:
    body = {"jsonrpc": "2.0", "id": (await request.json())["id"], "result": {"got": dict(request.headers)}}
    return web.json_response(body, headers={"Set-Cookie": "a=1", "X-Old": "1"})


class Proxied:
    """`mcpspy http` with scripts, and a client of it."""

    def __init__(self, folder: Path, url: str, client: ClientSession) -> None:
        self._folder = folder
        self._url = url
        self._client = client
        self.err = b""

    async def post(self, **headers: str) -> tuple[dict[str, str], Any]:
        """Return the headers that the server got, and those that the client got."""
        async with self._client.post(self._url, json=CALL, headers=headers) as response:
            return (await response.json())["result"]["got"], response.headers

    def notes(self) -> list[dict[str, Any]]:
        lines = (self._folder / "r.jsonl").read_text(encoding="utf-8").splitlines()
        return [note for note in map(json.loads, lines) if note.get("note") == "rule"]


@asynccontextmanager
async def proxied(folder: Path, *options: str, **environment: str) -> AsyncIterator[Proxied]:
    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    async with TestServer(app) as server:
        spy = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mcpspy", "http", "--upstream", str(server.make_url("/mcp"))),
            *("--listen", ":0", "--record", str(folder / "r.jsonl"), *options),
            env={**os.environ, **environment},
            stderr=asyncio.subprocess.PIPE,
        )
        assert spy.stderr is not None
        try:
            async with asyncio.timeout(LIMIT), ClientSession() as client:
                line = (await spy.stderr.readline()).decode()
                found = re.match(r"mcpspy: (http://\S+) -> ", line)
                assert found is not None, line
                session = Proxied(folder, found[1], client)
                yield session
                spy.terminate()
                session.err = (await spy.communicate())[1]
        finally:
            if spy.returncode is None:
                spy.kill()
                await spy.wait()


@pytest.mark.parametrize("messages", [False, True])
async def test_headers_are_injected_and_noted_by_name_only(messages: bool, tmp_path: Path) -> None:
    (tmp_path / "messages.py").write_text("def request(exchange): pass\n", encoding="utf-8")
    script = ("--script", str(tmp_path / "messages.py")) if messages else ()
    values = (
        *("request.Authorization=env:TOKEN", "request.X-Team=blue", "request.User-Agent="),
        *("response.x-old=2", "response.Set-Cookie="),
    )
    options = [word for value in values for word in ("--script-option", value)]
    async with proxied(tmp_path, *script, "--script", "builtin:headers", *options, TOKEN=SECRET) as session:
        got = [await session.post() for _ in range(2)]

    for asked, answered in got:
        assert (asked["Authorization"], asked["X-Team"]) == (SECRET, "blue")
        assert "User-Agent" not in asked
        assert asked["Content-Length"] == str(len(json.dumps(CALL)))
        assert (answered.getall("X-Old"), "Set-Cookie" in answered) == (["2"], False)
    heads = [
        {
            "action": "headers",
            "head": "request",
            "set": ["authorization", "x-team"],
            "removed": ["user-agent"],
        },
        {"action": "headers", "head": "response", "set": ["x-old"], "removed": ["set-cookie"]},
    ]
    assert [{k: v for k, v in note.items() if k in heads[0]} for note in session.notes()] == heads * 2
    assert [note["http"] for note in session.notes()] == [1, 1, 2, 2]
    assert SECRET not in (tmp_path / "r.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("head.set('X-A', '1'); raise ValueError('no')", "http_request: ValueError: no (line 2)"),
        (
            "head.set('Content-Length', '1')",
            "http_request: UsageError: header Content-Length: only mcpspy sets",
        ),
        ("head.add('X-A', 'a\\r\\nX-B: b')", "http_request: UsageError: header X-A: the value has control"),
        ("import time; time.sleep(99)", "hangs: no decision in time"),
        ("import os; os._exit(4)", "exited with code 4"),
    ],
)
async def test_a_head_is_forwarded_unchanged_if_the_hook_fails(body: str, why: str, tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(f"def http_request(head):\n    {body}\n", encoding="utf-8")
    async with proxied(tmp_path, "--script", str(script), "--script-timeout", "300ms") as session:
        got, _ = await session.post()

    assert "X-A" not in got
    assert why in session.err.decode()
    assert any(note["action"] == "script" and why in note["failed"] for note in session.notes())


async def test_requests_that_a_script_injects_get_the_headers_too(tmp_path: Path) -> None:
    script = tmp_path / "lists.py"
    script.write_text(
        "async def response(exchange):\n"
        "    if exchange.tool:\n"
        "        got = (await exchange.session.request('tools/list'))['got']\n"
        "        exchange.note(got['X-Team'])\n",
        encoding="utf-8",
    )
    values = ("--script-option", "request.X-Team=blue")
    options = ("--script", str(script), "--script", "builtin:headers", *values)
    async with proxied(tmp_path, *options) as session:
        await session.post()

    (note,) = [note for note in session.notes() if note["action"] == "note"]
    assert note["text"] == "blue"
    assert [note["viewer"] for note in session.notes() if note["action"] == "inject"] == ["scripts"]


async def test_heads_have_method_path_and_status(tmp_path: Path) -> None:
    script = tmp_path / "reads.py"
    script.write_text(
        "async def http_request(head):\n"
        "    head.add('X-Saw', f'{head.method} {head.path} {head.status} {head.get(\"X-ASKED\")}')\n"
        "def http_response(head):\n    head.tag(f'{head.method} {head.status}')\n",
        encoding="utf-8",
    )
    async with proxied(tmp_path, "--script", str(script)) as session:
        got, _ = await session.post(**{"X-Asked": "yes"})

    assert got["X-Saw"] == "POST /mcp None yes"
    assert [note["tag"] for note in session.notes() if note["action"] == "tag"] == ["POST 200"]
