"""Real hosts with and without mcpspy: what reaches their model is equal.

    .venv/bin/python -m hostlab.wrapped [HOST …]

For each host, and for server-everything on stdio and over HTTP: the host's own `mcp add`; its `mcp list` and a run with
a scripted model; `mcpspy wrap --trust`, with rules that delay, hold and answer, and with redaction; the same again;
`mcpspy unwrap`. A URL is also given to the host as that of `mcpspy http`, which has rules where the bridge has none.
The tools and results in the requests to the model must be equal, except the result that a rule replaces, and the
configuration must be as before. `make hosts` installs the hosts in .hosts/.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hostlab import compare
from hostlab.hosts import BIN, HOSTS, LONGEST, ROOT, SERVER, Host, Run
from hostlab.models import ModelRequest, ModelServer
from tests.e2e.test_http import serving

MCPSPY = str(Path(sys.executable).parent / "mcpspy")
EVERYTHING = str((ROOT / ".peers" / "node_modules" / ".bin" / "mcp-server-everything").resolve())

CALLED = ("tiny MCP logo", "resource links", "simulated resource subscription updates")
"""Parts of the descriptions of the tools that the model calls, without arguments."""

ANSWERED = "as configured"
"""The text of the error that a rule puts in place of the last result."""

OPTIONS = [
    *("--rule", "tool:get-tiny-image => delay 200ms"),
    *("--rule", "tool:get-resource-links => hold", "--hold-timeout", "300ms"),
    *("--rule", f"tool:toggle-subscriber-updates => error -32000 {ANSWERED}"),
]
REDACT = ["--redact-pattern", "Resource [0-9]+"]

ATTEMPTS = 3
"""Number of attempts for a way that differs: server-everything adds tools a moment after the handshake."""

ADD: dict[str, tuple[list[str], list[str]]] = {
    "claude-code": (
        ["mcp", "add", "--scope", "user", SERVER, "--"],
        ["mcp", "add", "--scope", "user", "--transport", "http", SERVER],
    ),
    "codex": (["mcp", "add", SERVER, "--"], ["mcp", "add", SERVER, "--url"]),
    "gemini-cli": (
        ["mcp", "add", "--trust", "-s", "user", SERVER],
        ["mcp", "add", "--trust", "-s", "user", "-t", "http", SERVER],
    ),
}
"""The host's commands that add a server on stdio, and over HTTP."""

CONFIGURATION = {
    "claude-code": ("claude-code", ".claude.json"),
    "codex": ("codex", ".codex/config.toml"),
    "gemini-cli": ("gemini", ".gemini/settings.json"),
}
"""The host's name for `mcpspy wrap`, and its file."""


class Seen(NamedTuple):
    """One run of a host: its list of servers, and the parts of the model's requests."""

    listed: bool
    """Whether `mcp list` reports the server as working."""
    tools: list[Any]
    results: list[Any]


class Laboratory:
    """One host in a home, with one server."""

    def __init__(self, host: Host, folder: Path, target: list[str], *, is_url: bool) -> None:
        self.host = host
        self.home = folder / "home"
        self.sessions = folder / "sessions"
        self.wrapped_as, file = CONFIGURATION[host.id]
        self.path = self.home / file
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self._run = Run(self.home, ["true"], "", host.model)
        host.configure(self._run)
        if host.id == "codex":  # Its configuration without the server.
            text = self.path.read_text(encoding="utf-8")
            self.path.write_text(text.partition("[mcp_servers.")[0], encoding="utf-8")
        self.command([*ADD[host.id][is_url], *target])
        if host.id == "codex":  # Otherwise it does not wait for a slow server.
            text = self.path.read_text(encoding="utf-8")
            required = f"[mcp_servers.{SERVER}]\nrequired = true\nstartup_timeout_sec = 30\n"
            self.path.write_text(text.replace(f"[mcp_servers.{SERVER}]\n", required), encoding="utf-8")

    def command(self, arguments: list[str], url: str = "") -> str:
        """Run a command of the host; return what it prints."""
        process = subprocess.run(
            [str(BIN / self.host.program), *arguments],
            cwd=self.home,
            env={
                **self.host.variables(self._run._replace(url=url or "http://127.0.0.1:9")),
                # Claude Code would send its first request without the tools of a server that is still starting.
                "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "30000",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST,
        )
        return process.stdout.decode("utf-8", "replace")

    def see(self) -> Seen:
        """Run the host with a model that calls the tools."""
        listed = self.command(["mcp", "list"])
        model = ModelServer(CALLED)
        try:
            if self.host.id == "codex":
                text = self.path.read_text(encoding="utf-8")
                text = re.sub(r'base_url = ".*"', f'base_url = "{model.url}/v1"', text)
                self.path.write_text(text, encoding="utf-8")
            arguments = [
                each
                for each in self.host.command(self._run)
                if each not in ("--mcp-config", "mcp.json", "--strict-mcp-config")
            ]
            output = self.command(arguments, model.url)
        finally:
            model.stop()
        requests: list[ModelRequest] = compare.conversation(model.requests)
        if not requests:
            sys.exit(f"hosts: {self.host.title} sent no request to its model:\n{output[-2000:]}")
        tools = sorted(tuple(map(repr, tool)) for tool in requests[-1].tools)
        works = re.search(rf"{SERVER}.*(?:\bConnected|enabled)", listed) is not None
        return Seen(works, tools, requests[-1].results)

    def servers(self) -> str:
        """Return the part of the configuration that mcpspy may change; hosts rewrite the rest."""
        text = self.path.read_text(encoding="utf-8")
        if self.path.suffix == ".toml":
            return text[text.index("[mcp_servers.") :]
        return json.dumps(json.loads(text)["mcpServers"])

    def mcpspy(self, *arguments: str) -> None:
        """Run a command of mcpspy with the home of the host."""
        environment = {**self.host.variables(self._run), "MCPSPY_DIR": str(self.sessions)}
        done = subprocess.run([MCPSPY, *arguments], env=environment, capture_output=True, timeout=LONGEST)
        if done.returncode:
            sys.exit(f"hosts: mcpspy {' '.join(arguments)}: {done.stderr.decode()}")


def differences(direct: Seen, wrapped: Seen, recordings: list[Path], *, has_rules: bool) -> list[str]:
    """Return everything that differs and was not configured."""
    found = []
    if not (direct.listed and wrapped.listed):
        found.append(f"mcp list: {direct.listed} direct, {wrapped.listed} with mcpspy")
    if direct.tools != wrapped.tools:
        found.append(f"tools: {len(direct.tools)} direct, {len(wrapped.tools)} with mcpspy, or other texts")
    expected, got = direct.results, wrapped.results
    if has_rules and len(got) == len(CALLED):
        if ANSWERED not in json.dumps(got[-1]):
            found.append(f"the configured error did not reach the model: {json.dumps(got[-1])[:200]}")
        expected, got = expected[:-1], got[:-1]
    if len(direct.results) != len(CALLED):
        found.append(f"{len(direct.results)} of {len(CALLED)} tools were called")
    if (change := first_difference(timeless(expected), timeless(got))) is not None:
        found.append("results: {} became {}".format(*change))
    texts = "".join(path.read_text(encoding="utf-8") for path in recordings)
    if "tools/call" not in texts:
        found.append("the calls are not recorded")
    if has_rules and (re.search(r"Resource \d", texts) or "redacted" not in texts):
        found.append("the recording is not redacted")
    return found


def first_difference(left: str, right: str) -> tuple[str, str] | None:
    """Return the places at which two texts begin to differ; None if they are equal."""
    if left == right:
        return None
    at = next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
    return left[max(at - 40, 0) : at + 80], right[max(at - 40, 0) : at + 80]


def timeless(results: list[Any]) -> str:
    """Return results without durations, times, random ids and paths in the home, which differ from run to run."""
    text = re.sub(r"[\d.]+ seconds|\d{1,2}:\d\d:\d\d [AP]M", "TIME", json.dumps(results))
    text = re.sub(r"_\d{13}_|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    return re.sub(r"/[^\s\"]*hosts-[^\s\"\]]*", "PATH", text)


def with_options(home: Laboratory) -> None:
    """Add the rules and the redaction to the wrapped command, as a user would by hand."""
    text = home.path.read_text(encoding="utf-8")
    options = ", ".join(map(json.dumps, [*OPTIONS, *REDACT]))
    changed = re.sub(r'"run",', lambda _: f'"run", {options},', text, count=1)
    assert changed != text, text
    home.path.write_text(changed, encoding="utf-8")


@contextmanager
def proxied(url: str, folder: Path) -> Iterator[str]:
    """Run `mcpspy http` with the same options; yield its URL."""
    lock = folder / "mcp.lock"
    log = folder / "proxy.log"
    trust = ("--trust", str(lock), "--first-use", "--on-change", "block")
    listen = ("--upstream", url, "--listen", "127.0.0.1:0", "--dir", str(folder / "sessions"))
    with log.open("wb") as stream:
        process = subprocess.Popen([MCPSPY, "http", *listen, *trust, *OPTIONS, *REDACT], stderr=stream)
    try:
        deadline = time.monotonic() + 30
        while not (found := re.search(r"http://\S+", log.read_text(encoding="utf-8"))):
            if time.monotonic() > deadline:
                sys.exit(f"hosts: mcpspy http: {log.read_text(encoding='utf-8')}")
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)


def check(host: Host, folder: Path) -> dict[str, list[str]]:
    """Return the differences of each way by which mcpspy is put between this host and the server."""
    found = {}
    folder.mkdir()
    with serving("everything", f"{EVERYTHING} streamableHttp", "/mcp", folder) as url:
        for way, target in (("run", [EVERYTHING, "stdio"]), ("bridge", [url])):
            home = Laboratory(host, folder / way, target, is_url=way == "bridge")
            direct, before = home.see(), home.servers()
            home.mcpspy("wrap", home.wrapped_as, "--server", SERVER, "--dir", str(home.sessions), "--trust")
            if way == "run":
                with_options(home)
            wrapped = home.see()
            if way == "run":  # Unwrapping needs the entry that wrapping wrote.
                home.path.write_text(_without(home.path.read_text(encoding="utf-8")), encoding="utf-8")
            home.mcpspy("unwrap", home.wrapped_as, "--server", SERVER)
            recordings = sorted(home.sessions.glob("*.jsonl"))
            found[way] = differences(direct, wrapped, recordings, has_rules=way == "run")
            if home.servers() != before:
                found[way].append("the configuration is not as before")
            if not (home.sessions / "mcp.lock").exists():
                found[way].append("no lockfile was written")
        (folder / "http").mkdir()
        with proxied(url, folder / "http") as proxy:
            wrapped = Laboratory(host, folder / "http" / "host", [proxy], is_url=True).see()
        recordings = sorted((folder / "http" / "sessions").glob("*.jsonl"))
        found["http"] = differences(direct, wrapped, recordings, has_rules=True)
    return found


def _without(text: str) -> str:
    """Return a configuration without the added options, however the host has formatted it since."""
    items = r",\s*".join(re.escape(json.dumps(each)) for each in [*OPTIONS, *REDACT])
    return re.sub(rf"\s*{items},", "", text, count=1)


def main() -> None:
    """Check the named hosts, by default all, and print a table."""
    wanted = sys.argv[1:] or [host.id for host in HOSTS]
    failed = False
    print(f"| host | version | way | {datetime.now(UTC).date()} |\n|---|---|---|---|")
    for host in HOSTS:
        if host.id not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="hosts-", ignore_cleanup_errors=True) as folder:
            found = check(host, Path(folder) / "1")
            for attempt in range(2, ATTEMPTS + 1):  # The server adds tools while the host lists them.
                if not any(found.values()):
                    break
                again = check(host, Path(folder) / str(attempt))
                found = {way: problems and again[way] for way, problems in found.items()}
            for way, problems in found.items():
                failed |= bool(problems)
                print(
                    f"| {host.title} | {host.version} | `{way}` | {'; '.join(problems) or 'equal'} |",
                    flush=True,
                )
    sys.exit(failed)


if __name__ == "__main__":
    main()
