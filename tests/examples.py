"""The command lines in the documentation, and the folder in which they can be run.

`Workplace` is a home with configurations of hosts, sessions of the demo's weather server, copies of real recordings
under the names that the pages use, and programs on PATH for those that the pages start. Every server in it is real: the
weather server of the demo, the memory server from npm, and the Python SDK's server over HTTP.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from recordings import make
from tests import forks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MCP2 = make.PEERS / "mcp2" / "bin" / "python"
NODE = shutil.which("node")
MEMORY, EVERYTHING = (
    make.PEERS / "node_modules" / ".bin" / f"mcp-server-{name}" for name in ("memory", "everything")
)
FILES = ROOT / "tests" / "core" / "importers" / "files"

SECONDS = 60
"""Limit for one command line."""

IN_OTHER_TESTS = {"claude-code", "claude-desktop", "codex", "cursor", "vscode", "tutorial"}
"""Pages that tests/e2e/test_getting_started.py and test_tutorial.py follow."""

PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def command_lines(page: Path) -> list[str]:
    """Return the command lines of mcpspy in the fenced blocks of a page, and the examples of its help.

    Continued lines are joined. A line of an unlabelled block counts if it begins with `$`.
    """
    found = []
    text = page.read_text(encoding="utf-8")
    for indent, language, block in re.findall(r"^( *)```(\w*)\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.removeprefix(indent).strip()
            if command.startswith("$ mcpspy ") or (language == "sh" and command.startswith("mcpspy ")):
                found.append(command.removeprefix("$ "))
            elif not language and line.startswith("  mcpspy "):  # In a help; a description may follow.
                found.append(re.split(" {2,}", command)[0])
    return found


NOT_RUN = {
    r"s3://": "a bucket; tests/io/lake/test_storage.py uses a real S3 server",
    r"tcp://": "a Dask scheduler; tests/io/lake/test_executors.py starts one",
    r"^mcpspy tui": "a terminal; tests/e2e/test_tui.py has one",
    r"export --follow": "an end: it runs until it is interrupted, as in tests/e2e/test_telemetry.py",
    r"--tls-cert": "a certificate; tests/ui/web/test_tls.py makes one",
    r"doctor .*--ask": "a terminal",
    r"^mcpspy restart": "a live session of run --watch; tests/e2e/test_tutorial.py has one",
    r"web --ssh": "another machine; tests/e2e/test_remote.py starts an SSH server",
}
"""Lines that are not run, with what they need."""

SUBSTITUTED = {
    r"http://(?:127\.0\.0\.1|localhost):3001/mcp|https://example\.com/mcp|(?<=--upstream )URL": "{upstream}",
    r"(?<=--listen )127\.0\.0\.1:\d+": "127.0.0.1:0",
    r"(?<=--http )\d+": "0",
    r"localhost:4318": "{collector}",
    r"(?<=--duration )\w+": "1s",
    r"(?<=--ramp )\w+": "100ms",
    r"^mcpspy http (?!.*--listen)": "mcpspy http --listen 127.0.0.1:0 ",
    r"^mcpspy metrics$": "mcpspy metrics --listen 127.0.0.1:0",
    r"(?<=run:)3e61|(?<=run:)3fa8": "last",
    r"(?<=--last-good )3f9a": "{session}",
    r"(?<=-- )COMMAND": "python weather.py",
    r"/shared/sessions": "recordings",
    r"^mcpspy (?=mcp )": f"{MCP2} -m mcpspy ",
    r"(?<=--session )3f9c01ab22d4": "020884ccee56",
    r"(?<=--clients )\d+": "4",
    r"(?<=--repeat )\d+": "2",
    r"(?<=--rate )\d+": "5",
    r"(?<=--script )builtin:chaos": "builtin:chaos --script-option kinds=error",
}
"""Parts that differ from machine to machine, times that are too long for a test, and dropped requests."""

FINDINGS = re.compile(
    r"mcpspy (?:lint|diff|replay|check|drift|explain|doctor|send|redact --check|trust --check|mock .*--strict)\b"
)
"""Commands that exit with 1 if they find something, or if the response is an error."""

CODES = {
    r"\(\?=7\)|kind:requests": 2,
    r"mcpspy mcp --http": -15,
}
"""Exit codes of other lines that do not exit with 0: invalid filters, and a server that SIGTERM ends."""

FIRST = {
    "README": "mkdir src",
    "howto": "mkdir -p weather/src",
    "http": "mkdir src",
    "restart": "mkdir -p src weather/src; touch pyproject.toml",
    "unwrap": "mcpspy wrap cursor --all && mcpspy wrap claude-code --all",
    "mock": "mcpspy call --format json -- python weather.py > tools.json"
    "; printf -- '- tool: stations\n  result: none\n' > answers.yaml",
    "prune": "mkdir .config/mcpspy; printf '[prune]\nkeep = 9\n' > .config/mcpspy/mcpspy.toml",
    "trust": "mcpspy trust --url {upstream}",
    "scripts": "rm guard.py test_guard.py",
}
"""Shell commands that make what the lines of a page need, and other pages must not have."""

LISTENS = re.compile(r"mcpspy (?:http|web|metrics|m(?:ock|cp) .*(?:--http|--listen))\b")
SPEAKS = re.compile(r"mcpspy (?:run|bridge|mock|mcp(?! install))\b")

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":'
    '{"roots":{}},"clientInfo":{"name":"docs","version":"1"}}}\n'
)
LIST = (
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)
HELLO = (INITIALIZE, LIST)

WEATHER = "from mcpspy.ui.demo.weather import main\n\nmain()\n"

SHIMS = {
    "python": f'exec {sys.executable} "$@"',
    "node": "exec python weather.py",
    "npx": f'case "$*" in *server-memory*) exec {NODE} {MEMORY} ;; *) exec python weather.py ;; esac',
    "claude": "exec true",
    "gh": "exec cat",
    "mlr": "exec cat",
    "pbcopy": "exec cat",
    "jq": f'command -v {shutil.which("jq") or "-"} >/dev/null && exec {shutil.which("jq")} "$@"; exec cat',
    "xdg-open": 'echo "$1"',
}
"""Programs that the pages start, and that are not on every machine."""

ENTRY = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
SERVERS = {"memory": ENTRY, "weather": {"command": "python", "args": ["weather.py"]}, "github": ENTRY}

COPIES = """weather session monday tuesday yesterday today before after golden new failure bug old shop a b
recorded host server probe run tests/weather recordings/weather"""


class Outcome(NamedTuple):
    """The end of a command line."""

    code: int
    out: str
    err: str


class Workplace:
    """A folder with all that the pages name, in which a page's lines are run one after the other."""

    def __init__(self, folder: Path, values: dict[str, str]) -> None:
        self.folder = folder
        self._values = values
        self.sessions = folder / ".local/share/mcpspy/sessions"

    @property
    def _environment(self) -> dict[str, str]:
        folders = (self.folder / "bin", Path(sys.executable).parent, make.PEERS / "node_modules" / ".bin")
        path = os.pathsep.join([*map(str, folders), os.environ["PATH"], self._values["forks"]])
        return {
            "PATH": path,
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "BROWSER": "xdg-open",
            "MCPSPY_RUNTIME": os.environ.get("MCPSPY_RUNTIME", ""),
            "MCPSPY_LAKE": str(self.folder / "lake"),
            # Those that the pages name.
            "URL": self._values["upstream"],
            "KEY": "k",
            "TOKEN": "t0ken",
            "MY_TOKEN": "t0ken",
        }

    def run(self, line: str) -> Outcome:
        """Run one line as a shell does, with a client if it serves."""
        command = line
        for pattern, value in SUBSTITUTED.items():
            command = re.sub(pattern, value.format(**self._values).replace("\\", r"\\"), command)
        earlier = set(self.sessions.glob("*"))
        made = {
            option: [self.folder / name for name in re.findall(rf" {option} (\w[\w./]*\.\w+)", command)]
            for option in ("-o", "--record")
        }
        replaced = {path: path.read_bytes() for paths in made.values() for path in paths if path.is_file()}
        for path in replaced:
            path.unlink()
        try:
            outcome = self._run(command, line)
            missing = [path.name for path in made["-o"] if not path.exists() or not path.stat().st_size]
            return outcome._replace(err=f"{outcome.err}\nnot written: {missing}") if missing else outcome
        finally:
            for path, data in replaced.items():
                path.write_bytes(data)
            for path in (
                set(self.sessions.glob("*.jsonl")) - earlier
            ):  # The session of the demo stays the newest.
                path.unlink()

    def _run(self, command: str, line: str) -> Outcome:
        if LISTENS.match(line):
            return self._listen(command, line)
        if SPEAKS.match(line):
            return self._speak(command)
        if line.startswith("mcpspy send") and "--list" not in line:
            server = f"{NODE} {EVERYTHING} stdio" if "name=echo" in line else "python weather.py"
            with self._live(f"mcpspy run --name weather -- {server}"):
                return self.end(command)
        return self.end(command)

    def _start(self, command: str, **streams: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=self.folder,
            env=self._environment,
            encoding="utf-8",
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def end(self, command: str) -> Outcome:
        """Run a command to its end."""
        process = self._start(command)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return Outcome(process.returncode, out, err)

    def _speak(self, command: str) -> Outcome:
        """Send a handshake and a request on stdin, and close it after both responses."""
        process = self._start(f"exec {command}", stdin=subprocess.PIPE)
        alarm = threading.Timer(SECONDS, process.kill)
        alarm.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            heard = ""
            for number, text in enumerate(HELLO, 1):
                process.stdin.write(text)
                process.stdin.flush()
                for line in process.stdout:
                    heard += line
                    if _id_of(line) == number:
                        break
            out, err = process.communicate()
        finally:
            alarm.cancel()
        code = process.returncode
        unanswered = {1, 2} - set(map(_id_of, heard.splitlines()))
        return Outcome(code, heard + out, err + (f"\nno response to {unanswered}" if unanswered else ""))

    def _listen(self, command: str, line: str) -> Outcome:
        """Send a request to the address that the command prints, and interrupt the command."""
        log = self.folder / "listening.log"
        with log.open("w", encoding="utf-8") as stream:
            process = self._start(f"exec {command}", stdout=stream, stderr=stream)
        deadline = time.monotonic() + SECONDS
        try:
            while not (url := re.search(r"http://[^\s\"']+", log.read_text(encoding="utf-8"))):
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
                time.sleep(0.01)
            status = (
                0 if "--forward" in line else _visit(url[0], has_body=not re.search(r"web|metrics", line))
            )
        finally:
            process.terminate()
            code = process.wait(SECONDS)
        text = log.read_text(encoding="utf-8")
        return Outcome(code, text, text + (f"\nHTTP status {status}" if status >= 500 else ""))

    @contextmanager
    def _live(self, command: str) -> Iterator[None]:
        """Run a session with a client that answers requests with an empty list of roots."""
        process = self._start(f"exec {command}", stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write("".join(HELLO))
        process.stdin.flush()
        is_ready = threading.Event()

        def answer() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line) if line.startswith("{") else {}
                if "method" in message and "id" in message:
                    result = {"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}}
                    with suppress(ValueError, OSError):  # The session is being ended.
                        process.stdin.write(json.dumps(result) + "\n")
                        process.stdin.flush()
                elif message.get("id") == 2:
                    is_ready.set()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            assert is_ready.wait(SECONDS)
            yield
        finally:
            process.terminate()  # server-everything does not end when its stdin is closed.
            process.wait(SECONDS)
            process.stdin.close()
            thread.join(SECONDS)
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()


def _id_of(line: str) -> Any:
    """Return the id of a response."""
    message = json.loads(line) if line.startswith("{") else {}
    return None if "method" in message else message.get("id")


def _visit(url: str, *, has_body: bool) -> int:
    """Return the status of the first request to a URL: a handshake, or a GET."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=SECONDS)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("POST" if has_body else "GET", target, HELLO[0] if has_body else None, headers)
    status = connection.getresponse().status
    connection.close()
    return status


class _Collector(BaseHTTPRequestHandler):
    """Accepts spans."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def collector() -> Iterator[str]:
    """Run an OpenTelemetry collector; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def lines_of_pages() -> dict[Path, list[str]]:
    """Return the lines to run by page, each of them once."""
    found: dict[Path, list[str]] = {}
    seen: set[str] = set()
    for page in PAGES:
        for line in command_lines(page):
            for part in re.split(r" && (?=mcpspy )", line):
                command = re.split(r"\s+#\s", part)[0]
                is_run = page.stem not in IN_OTHER_TESTS and not any(
                    re.search(key, command) for key in NOT_RUN
                )
                if is_run and command not in seen:
                    found.setdefault(page, []).append(command)
                    seen.add(command)
    return found


def problem(line: str, outcome: Outcome) -> str:
    """Return the fault of a line's outcome; empty if there is none."""
    expected = next((code for pattern, code in CODES.items() if re.search(pattern, line)), 0)
    if outcome.code != expected and not (outcome.code == 1 and FINDINGS.match(line)):
        return f"exit code {outcome.code}"
    # A peer's own traceback is data: one recording has it.
    if re.search(
        r"^Traceback|a bug in mcpspy|no response to|HTTP status|not written", outcome.err, re.MULTILINE
    ):
        return "error"
    may_be_silent = re.search(r"\| jq| > | -o |--dry-run|--notify", line)
    return "" if may_be_silent or f"{outcome.out}{outcome.err}".strip() else "prints nothing"


def run_page(page: Path, lines: list[str], folder: Path, values: dict[str, str]) -> list[str]:
    """Run the lines of a page in a folder; return the problems."""
    place = Workplace(folder, values)
    problems = []
    if page.stem in FIRST:
        outcome = place.end(FIRST[page.stem].format(**values))
        problems += [f"{FIRST[page.stem]}: {outcome}"] if outcome.code else []
    for line in lines:
        outcome = place.run(line)
        if found := problem(line, outcome):
            problems.append(f"{line}\n  {found}: {outcome.out[-300:]}\n  {outcome.err[-600:]}")
    return problems


def prepare(folder: Path, values: dict[str, str]) -> None:
    """Make the folder that is copied for each page."""
    for name in ("bin", "tests", "somewhere", ".mcphawk", ".config/fish/completions", "sessions"):
        (folder / name).mkdir(parents=True)
    for name, text in SHIMS.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o700)
    forks.write_command(folder / "bin" / "mcpspy")
    for name in ("weather.py", "server.py", "shop.py"):
        (folder / name).write_text(WEATHER, encoding="utf-8")
    (folder / "agent.py").write_text("", encoding="utf-8")
    (folder / "letter.txt").write_text("Dear all", encoding="utf-8")
    (folder / "policy.json").write_text('{"deny": ["delete_*"]}', encoding="utf-8")
    (folder / "sales.py").write_text(_block("scripting.md", "python", "# sales.py"), encoding="utf-8")
    (folder / "rules.py").write_text(_block("lint.md", "python"), encoding="utf-8")
    (folder / "chaos.toml").write_text(_block("rules.md", "toml"), encoding="utf-8")
    _configure(folder)
    shutil.copytree(ROOT / "recordings", folder / "recordings")
    logs = folder / "Library" / "Logs" / "Claude"
    logs.mkdir(parents=True)
    shutil.copy(FILES / "mcp-server-weather.log", logs)
    shutil.copy(FILES / "mcp-cassette.json", folder / "cassette.json")
    shutil.copy(FILES / "mcphawk.db", folder / ".mcphawk" / "mcphawk.db")
    place = Workplace(folder, values)
    for line in (
        "mcpspy demo",
        "mcpspy demo",
        "mcpspy run --record no-variable.jsonl -- python -c 'import os; os.environ[\"WEATHER_API_KEY\"]'",
        "mcpspy export weather -o session.har",
        "mcpspy lake add lake recordings weather",
        "mcpspy trust --lock mcp.lock last",
        "mcpspy scripts new guard",
    ):
        outcome = place.end(line)
        assert outcome.code in (0, 1), (line, outcome)
    first, _ = sorted(place.sessions.glob("*.jsonl"))
    for name in COPIES.split():
        shutil.copy(first, folder / f"{name}.jsonl")
    values["session"] = json.loads(first.read_bytes().split(b"\n")[0])["id"]


def _block(page: str, language: str, start: str = "") -> str:
    """Return the first fenced block of a language in a page that begins so."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(
        rf"^```{language}\n({re.escape(start)}.*?)^```", text, re.DOTALL | re.MULTILINE
    )
    return found[0]


def _configure(home: Path) -> None:
    """Write the configurations of the hosts that the pages name."""
    is_mac = sys.platform == "darwin"
    support = home / ("Library/Application Support" if is_mac else ".config")
    servers = json.dumps({"mcpServers": SERVERS}, indent=2) + "\n"
    codex = "".join(
        f'[mcp_servers.{name}]\ncommand = "{entry["command"]}"\nargs = {json.dumps(entry["args"])}\n'
        for name, entry in SERVERS.items()
    )
    for path, text in (
        (home / ".claude.json", servers),
        (home / ".cursor" / "mcp.json", servers),
        (home / "somewhere" / "mcp.json", json.dumps({"mcpServers": {"memory": ENTRY}})),
        (support / "Claude" / "claude_desktop_config.json", servers),
        (support / "Code" / "User" / "mcp.json", servers.replace("mcpServers", "servers")),
        (home / ".codex" / "config.toml", codex),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
