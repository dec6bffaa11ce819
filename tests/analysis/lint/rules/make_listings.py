"""Record what real servers say of themselves and their tools, as the benign side of the security rules.

    .venv/bin/python tests/analysis/lint/rules/make_listings.py FOLDER...

Each FOLDER contains commands of servers (`node_modules/.bin` of npm, `bin` of a virtual environment). Servers that are
not found keep their entries. Nothing is sent but `initialize` and lists; the keys in the environment are not real.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("listings.jsonl.xz")

SERVERS = """mcp-server-everything|mcp-server-filesystem .|mcp-server-memory|chrome-devtools-mcp|context7-mcp
mcp-server-github|mcp-server-gitlab|mcp-server-google-maps|mcp-server-kubernetes|mcp-server-puppeteer
mcp-server-sequential-thinking|mcp-server-slack|notion-mcp-server|playwright-mcp|tavily-mcp|firecrawl-mcp
mongodb-mcp-server|figma-developer-mcp --stdio --figma-api-key x|mcp-server-fetch|mcp-server-time|mcp-server-git"""

KEYS = """GITHUB_PERSONAL_ACCESS_TOKEN GITLAB_PERSONAL_ACCESS_TOKEN GOOGLE_MAPS_API_KEY SLACK_BOT_TOKEN SLACK_TEAM_ID
TAVILY_API_KEY FIRECRAWL_API_KEY NOTION_TOKEN"""

SECONDS = 60.0


def listing(command: list[str], folder: str) -> dict[str, Any]:
    """Return what a server lists, without output schemas."""
    environment = {**os.environ, "HOME": folder, "TZ": "UTC", **dict.fromkeys(KEYS.split(), "x")}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
    ) as process:
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "a", "version": "1"},
            }
            answer = ask(process, 0, "initialize", hello)
            write(process, {"method": "notifications/initialized"})
            found: dict[str, Any] = {
                "serverInfo": {name: answer["serverInfo"].get(name) for name in ("name", "version")}
            }
            if "instructions" in answer:
                found["instructions"] = answer["instructions"]
            for number, kind in enumerate(("tools", "prompts", "resources"), 1):
                items = (
                    ask(process, number, f"{kind}/list", {}).get(kind)
                    if kind in answer["capabilities"]
                    else None
                )
                if items:
                    found[kind] = [
                        {key: item[key] for key in item if key != "outputSchema"} for item in items
                    ]
            return found
        finally:
            timer.cancel()
            process.kill()


def ask(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    write(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line) if line.startswith(b"{") else {}
        if message.get("id") == number and "method" not in message:
            result: dict[str, Any] = message.get("result", {})
            return result
    raise SystemExit(f"{process.args!r}: no response to {method}")


def write(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def main() -> None:
    kept = (
        [json.loads(line) for line in lzma.decompress(FILE.read_bytes()).splitlines()]
        if FILE.exists()
        else []
    )
    found = {each["serverInfo"]["name"]: each for each in kept}
    for words in (line.split() for line in SERVERS.replace("\n", "|").split("|")):
        command = shutil.which(words[0], path=os.pathsep.join(sys.argv[1:]))
        if command is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            each = listing([os.path.abspath(command), *words[1:]], folder)
        text = json.dumps(each, ensure_ascii=False).replace(os.path.realpath(folder), "/tmp/demo")
        found[each["serverInfo"]["name"]] = json.loads(text)
        print(each["serverInfo"], len(each.get("tools", ())))
    lines = (json.dumps(found[name], ensure_ascii=False, separators=(",", ":")) for name in sorted(found))
    FILE.write_bytes(lzma.compress("".join(line + "\n" for line in lines).encode(), preset=9))


if __name__ == "__main__":
    main()
