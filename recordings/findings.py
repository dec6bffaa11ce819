"""Record real servers with the official SDKs' clients, lint the recordings, and write docs/lint-findings.md.

    .venv/bin/python recordings/findings.py [--servers FOLDER] [--keep FOLDER] [SERVER...]

Installs the servers of `tests/peers/real` into `.peers/real` (a minute or two) unless `--servers` names a folder that
has them. Each server is recorded on stdio and over HTTP, by five set-ups of clients. A finding without a judgement in
`tests/e2e/judgements.py` is printed, and the exit code is 1. The tables are only written after all servers.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recordings.make import PEERS, ROOT
from tests.e2e.judgements import REAL_SERVERS, SDK_SESSIONS, Judgement
from tests.e2e.tours import EVERYTHING, Call, Recorded, Server, Tour, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = ROOT / "docs" / "lint-findings.md"
PINS = ROOT / "tests" / "peers" / "real"

SETUPS = (
    ("python-2", "auto"),
    ("python-2", "2025-11-25"),
    ("python-1", "2025-11-25"),
    ("typescript-2", "auto"),
    ("typescript-1", "2025-11-25"),
)
"""Clients, and the revisions that they offer."""

UNKNOWN: Call = ("no-such-tool", {}, "unknown")


class Real(NamedTuple):
    """A server as its users start it."""

    name: str
    stdio: str
    http: str = ""
    """Its command for HTTP at /mcp; if empty, supergateway serves it."""
    calls: tuple[Call, ...] = ()
    environment: dict[str, str] = {}  # noqa: RUF012  # Never changed.

    def servers(self, folder: Path) -> Iterator[Server]:
        calls = (*self.calls, UNKNOWN)
        words = self.stdio.replace("{real}", str(folder))
        yield Server(f"{self.name}.stdio", tuple(words.split()), "stdio", "", self.environment, calls)
        served = tuple(self.http.replace("{real}", str(folder)).split()) or (
            *f"node {folder}/node_modules/supergateway/dist/index.js --port {{port}} --stateful".split(),
            *("--outputTransport", "streamableHttp", "--logLevel", "none", "--stdio", words),
        )
        yield Server(f"{self.name}.http", served, "http", "/mcp", self.environment, calls)


NODE = "node {real}/node_modules/"
BIN = "{real}/venv/bin/"

SERVERS = (
    Real(
        "everything",
        "mcp-server-everything stdio",
        "mcp-server-everything streamableHttp",
        calls=EVERYTHING[:-1],
    ),
    Real("filesystem", "mcp-server-filesystem {dir}", calls=(("list_allowed_directories", {}, "call"),)),
    Real("memory", "mcp-server-memory", calls=(("read_graph", {}, "call"),)),
    Real(
        "sequential-thinking",
        NODE + "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
        calls=(
            (
                "sequentialthinking",
                {"thought": "One.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                "call",
            ),
        ),
    ),
    Real(
        "playwright",
        NODE + "@playwright/mcp/cli.js --headless",
        NODE + "@playwright/mcp/cli.js --headless --port {port} --host 127.0.0.1 --allowed-hosts *",
        calls=(("browser_tabs", {"action": "none"}, "call"),),
    ),
    Real(
        "chrome-devtools",
        NODE + "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js --headless --no-usage-statistics",
    ),
    Real(
        "notion",
        NODE + "@notionhq/notion-mcp-server/bin/cli.mjs",
        NODE + "@notionhq/notion-mcp-server/bin/cli.mjs --transport http --port {port} --unsafe-disable-auth",
        environment={"NOTION_TOKEN": "none"},
    ),
    Real(
        "context7",
        NODE + "@upstash/context7-mcp/dist/index.js",
        NODE + "@upstash/context7-mcp/dist/index.js --transport http --port {port}",
    ),
    Real(
        "figma",
        NODE + "figma-developer-mcp/dist/bin.js --stdio --figma-api-key none --no-telemetry",
        NODE + "figma-developer-mcp/dist/bin.js --port {port} --figma-api-key none --no-telemetry",
    ),
    Real(
        "mongodb",
        NODE + "mongodb-mcp-server/dist/esm/index.js --telemetry disabled",
        NODE + "mongodb-mcp-server/dist/esm/index.js --telemetry disabled --transport http --httpPort {port}",
        calls=(("list-databases", {}, "call"),),
    ),
    Real("firecrawl", NODE + "firecrawl-mcp/dist/index.js", environment={"FIRECRAWL_API_KEY": "none"}),
    Real("kubernetes", NODE + "mcp-server-kubernetes/dist/index.js"),
    Real("tavily", NODE + "tavily-mcp/build/index.js", environment={"TAVILY_API_KEY": "none"}),
    Real(
        "git",
        BIN + "mcp-server-git",
        calls=(("git_status", {"repo_path": "/none"}, "call"), ("git_status", {}, "call")),
    ),
    Real(
        "time", BIN + "mcp-server-time", calls=(("get_current_time", {"timezone": "Europe/Paris"}, "call"),)
    ),
    Real("fetch", BIN + "mcp-server-fetch", calls=(("fetch", {"url": "http://127.0.0.1:9/"}, "call"),)),
    Real(
        "duckduckgo",
        BIN + "duckduckgo-mcp-server",
        BIN + "duckduckgo-mcp-server --transport streamable-http --port {port}",
        calls=(("search", {}, "call"),),
    ),
    Real(
        "excel",
        BIN + "excel-mcp-server stdio",
        BIN + "excel-mcp-server streamable-http --port {port}",
        calls=(("get_workbook_metadata", {"filepath": "none.xlsx"}, "call"),),
        environment={"EXCEL_FILES_PATH": "/tmp"},
    ),
)


def install(folder: Path) -> None:
    """Install the packages of `tests/peers/real`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_bytes((PINS / "package.json").read_bytes())
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--requirement", str(PINS / "requirements.txt")], check=True)
    npm = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    subprocess.run(npm, cwd=folder, check=True)


async def recorded(real: Real, servers: Path, keep: Path) -> list[Recorded]:
    found = []
    for server in real.servers(servers):
        folder = keep / server.name
        folder.mkdir(parents=True)
        tours = [Tour(client, server, mode) for client, mode in SETUPS]
        sessions = await record(server, tours, folder)
        for session in sessions:
            state = f"{len(session.steps)} steps" if session.steps else f"FAILED: {session.error}"
            print(f"{session.tour.name}: {state}", flush=True)
        found += sessions
    return found


def judged(sessions: Iterable[Recorded]) -> tuple[Counter[Judgement], list[str]]:
    """Return the number of findings of each judgement, and a line for each finding without one."""
    counts: Counter[Judgement] = Counter()
    unknown = []
    for session in sessions:
        where = session.tour.name
        for finding in session.findings():
            known = [each for each in REAL_SERVERS if each.covers(finding.code, finding.about, where)]
            if known:
                counts[known[0]] += 1
            else:
                unknown.append(
                    f"{where}:{finding.place.line} {finding.code} {finding.severity} {finding.about}: {finding.message}"
                )
    return counts, unknown


def tables(sessions: list[Recorded], counts: Counter[Judgement]) -> str:
    names = ", ".join(f"`{real.name}`" for real in SERVERS)
    own = ", ".join(f"`{real.name}`" for real in SERVERS if real.http)
    verdicts: Counter[str] = Counter()
    for judgement, count in counts.items():
        verdicts[judgement.verdict] += count
    rows = [f"{judgement.row[:-1]}| {counts[judgement]} |" for judgement in REAL_SERVERS]
    silent = [f"`{session.tour.name}`" for session in sessions if not session.steps]
    summary = (
        f"{len(sessions)} sessions, {sum(counts.values())} findings: {verdicts['right']} right, "
        f"{verdicts['pedantic']} pedantic"
    )
    lines = (
        f"{summary}, none wrong.",
        "",
        *wrap(
            f"Servers: {names}. Over HTTP, {own} serve themselves; users put the others behind a gateway, here "
            "supergateway.",
            120,
            break_on_hyphens=False,
        ),
        *(("", f"These clients could not begin a session: {', '.join(silent)}.") if silent else ()),
        "",
        "| rule | | why | findings |",
        "|---|---|---|--:|",
        *rows,
        "",
    )
    return "\n".join(lines)


def sdk_table() -> str:
    return "\n".join(["| rule | | why |", "|---|---|---|", *(each.row for each in SDK_SESSIONS), ""])


def write(mark: str, text: str) -> None:
    """Replace a generated part of the page."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->\n")
    assert end, mark
    PAGE.write_text(f"{before}{start}{text}{end}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Record real servers, and judge the findings.")
    parser.add_argument("names", metavar="SERVER", nargs="*")
    parser.add_argument("--servers", type=Path, default=PEERS / "real", help="where they are installed")
    parser.add_argument("--keep", type=Path, help="a new folder for the recordings")
    options = parser.parse_args()
    if not (options.servers / "node_modules").exists():
        install(options.servers)
    chosen = [real for real in SERVERS if not options.names or real.name in options.names]
    with tempfile.TemporaryDirectory(prefix="mcpspy-real-") as folder:
        keep = (options.keep or Path(folder)).resolve()
        sessions = [
            session
            for real in chosen
            for session in asyncio.run(recorded(real, options.servers.resolve(), keep))
        ]
        counts, unknown = judged(sessions)
    print("\n".join(unknown))
    print(
        f"{len(sessions)} sessions, {sum(counts.values())} findings with a judgement, {len(unknown)} without"
    )
    if unknown:
        return 1
    if not options.names:
        write("sdk sessions", sdk_table())
        write("real servers", tables(sessions, counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
