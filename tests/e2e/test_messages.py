"""Every message of the five revisions, through `run` and `http`: kind, name, code, pairing and status.

`messages.txt` has the messages; this module adds every error code, with and without an open request.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from functools import cache
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Failure, Message
from mcpspy.core.protocol.spec import METHODS, REVISIONS, is_known
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Change
from mcpspy.ui.cli.main import main
from tests import forks
from tests.e2e.conftest import SECONDS, Read

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / ".peers"
LEGACY, MODERN = REVISIONS[:-1], REVISIONS[-1]
CLIENT, SERVER = ">", "<"

KINDS = ("request", "notification", "result")

PYTHON = str(PEERS / "venv" / "bin" / "python")
_MODELS = """import json, typing, %s as types
models = [each for each in vars(types).values() if "method" in getattr(each, "model_fields", ())]
names = {name for each in models for name in typing.get_args(each.model_fields["method"].annotation)}
codes = [each for each in vars(types).values() if type(each) is int and each < 0]
print(json.dumps(sorted(filter(lambda name: isinstance(name, str), names)) + codes))"""
_SCHEMAS = """const found = new Set();
for (const [name, each] of Object.entries(await import("%s"))) {
  const method = each?.shape?.method?.value;
  if (typeof method === "string") found.add(method);
  const codes = /Error.*Code/.test(name) ? Object.values(each) : [each];
  for (const code of codes) if (typeof code === "number" && code < 0) found.add(code);
}
console.log(JSON.stringify([...found]));"""
SDKS = {
    "Python 2": [PYTHON, "-c", _MODELS % "mcp_types"],
    "Python 1": [str(PEERS / "mcp1" / "bin" / "python"), "-c", _MODELS % "mcp.types"],
    **{
        f"TypeScript {package}": [
            "node",
            "--input-type=module",
            "-e",
            _SCHEMAS % f"@modelcontextprotocol/{package}",
        ]
        for package in ("sdk/types.js", "core", "client", "server", "ext-tasks/core/v2")
    },
}
"""SDK → the command that prints the methods and error codes in its types."""

CODES = {
    "-32700": "parse error",
    "-32600": "invalid request",
    "-32601": "method not found",
    "-32602": "invalid params",
    "-32603": "internal error",
    "-32002": "resource not found",
    "-32020": "header mismatch",
    "-32021": "missing required client capability",
    "-32022": "unsupported protocol version",
    "-32042": "url elicitation required",
    "-32800": "request cancelled",
    "-32801": "content modified",
    "-32000": "server error",
    "-32001": "server error",
    "-32019": "server error",
    "-32023": "server error",
    "-32099": "server error",
    "-32100": "",
    "-31999": "",
    "-1": "",
    "0": "",
    "404": "",
    "-32601.0": "",
    "1e3": "",
    '"ENOENT"': "",
    '"-32601"': "",
    "true": "",
    "[1]": "",
}
"""Code as JSON → its name. Receivers accept any code in any revision, so each is sent in all of them."""

MESSAGES = {'"no tide"': ": no tide", "null": "", '""': "", '{"a":1}': ': {"a":1}', "": ""}
"""Message of an error as JSON, or absent → the words that are shown."""

ERRORS = [
    *(
        (f'{{"code":{code},"message":"no"}}', f"error {code} {name}".rstrip() + ": no")
        for code, name in CODES.items()
    ),
    *(
        (
            '{"code":-32603' + (f',"message":{text}' if text else "") + "}",
            "error -32603 internal error" + shown,
        )
        for text, shown in MESSAGES.items()
    ),
    (
        '{"code":-32042,"message":"log in","data":{"elicitations":[]}}',
        "error -32042 url elicitation required: log in",
    ),
    ('{"code":null,"message":"no"}', "error: no"),
    ('{"message":"no"}', "error: no"),
    ("{}", "error"),
    ("null", "error"),
    ('"no"', "error: no"),
    ("[1]", "error: [1]"),
]
"""Error as JSON, and its description."""


class Expected(NamedTuple):
    """A message of the table, and how it is shown."""

    batch: bool
    sender: str
    kind: str
    method: str
    subject: str
    request: str
    """Id of the request that it is, answers, cancels or reports on; as JSON."""
    status: str
    data: str


def of_revision(words: str, revision: str) -> bool:
    """Return whether a message of the table belongs to a revision."""
    if words in ("all", "legacy"):
        return words == "all" or revision in LEGACY
    first, last = words, words
    if words.endswith("+"):
        first, last = words[:-1], MODERN
    elif ".." in words:
        first, last = words.split("..")
    return first <= revision <= last


def table() -> Iterator[tuple[str, Expected]]:
    """Yield the revisions and the content of each message of the file."""
    for line in (HERE / "messages.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            words, *cells, data = (cell.strip() for cell in line.split(" |", 7))
            sender, kind, method, subject, request, status = cells
            revisions = words.removesuffix(" batch")
            yield (
                revisions,
                Expected(words != revisions, sender, kind, method, subject, request, status, data),
            )


def with_members(row: Expected, revision: str) -> Expected:
    """Return a message with the members that every message of the revision has."""
    message: dict[str, Any] = {"jsonrpc": "2.0", **json.loads(row.data.replace("REVISION", revision))}
    if revision == MODERN and row.kind == "request":
        params = message.setdefault("params", {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "harbour", "version": "4"},
            **params.get("_meta", {}),
        }
    if revision == MODERN and row.kind == "result":
        message["result"].setdefault("resultType", "complete")
    return row._replace(data=json.dumps(message, separators=(",", ":")))


def errors(revision: str) -> Iterator[Expected]:
    """Yield each error as a response to an open request and without one, from each side that may respond."""
    for requester, responder in ((CLIENT, SERVER), *([(SERVER, CLIENT)] if revision in LEGACY else ())):
        for number, (error, text) in enumerate(ERRORS):
            call = f'"error-{number}"'
            request = f'{{"jsonrpc":"2.0","id":{call},"method":"acme/x"}}'
            yield Expected(False, requester, "request", "acme/x", "", call, "", request)
            for id_member, method, paired, flaw in (
                (f'"id":{call},', "acme/x", call, ""),
                (f'"id":{call},', "acme/x", call, f"; id {call} was answered before"),
                (f'"id":"unknown-{number}",', "", "", "; unsolicited response"),
                ('"id":null,', "", "", "; response without an id"),
                ("", "", "", "; response without an id"),
            ):
                data = f'{{"jsonrpc":"2.0",{id_member}"error":{error}}}'
                yield Expected(False, responder, "failure", method, "", paired, text + flaw, data)


@cache
def messages(revision: str) -> list[Expected]:
    """Return all messages of a revision, in order."""
    listed = [with_members(row, revision) for words, row in table() if of_revision(words, revision)]
    return [*listed, *errors(revision)]


def lines(revision: str) -> list[tuple[str, str]]:
    """Return the sender and the text of each line; a batch is one line."""
    found: list[tuple[str, str]] = []
    batch: list[Expected] = []
    for row in [*messages(revision), None]:
        if batch and (row is None or not row.batch or row.sender != batch[0].sender):
            found.append((batch[0].sender, "[" + ",".join(each.data for each in batch) + "]"))
            batch = []
        if row is not None and row.batch:
            batch.append(row)
        elif row is not None:
            found.append((row.sender, row.data))
    return found


@pytest.fixture(scope="module", params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def recording(revision: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record all messages of a revision."""
    return _recorded(tmp_path_factory.mktemp("messages"), lines(revision))


def _recorded(folder: Path, script: list[tuple[str, str]]) -> Path:
    """Record messages that a host and a server send in turn, as in a script that both follow."""
    folder.mkdir(exist_ok=True)
    written, path = folder / "script", folder / "r.jsonl"
    written.write_text("".join(sender + text + "\n" for sender, text in script), encoding="utf-8")
    server = [sys.executable, str(HERE.parent / "servers" / "script.py"), str(written)]
    command = [forks.command(), "run", "--no-redact", "--record", str(path), "--", *server]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(SECONDS, process.kill)
        watchdog.start()
        for sender, text in script:
            if sender == CLIENT:
                process.stdin.write(text.encode() + b"\n")
                process.stdin.flush()
            else:
                assert process.stdout.readline() == text.encode() + b"\n"
        process.stdin.close()
        assert process.wait() == 0
        watchdog.cancel()
    return path


_BATCH = re.compile(r"^(?:batch )?\[\d+/\d+\] ?")
"""The place of a message in its batch, before its status."""


_TIME = re.compile(r" (?:after|in) [\d.]+ (?:µs|ms|s)$")
"""The time at the end of a status: until a cancellation, or until a task ended."""


def shown(change: Change) -> Expected:
    """Return a message as `show` and the TUI present it, without its place in a batch and the time in its status."""
    what, row = change.what, rows.row(change)
    assert isinstance(what, Message)
    exchange = change.exchange
    return Expected(
        what.index is not None,
        CLIENT if what.side == "client" else SERVER,
        type(what).__name__.lower(),
        row.method,
        row.subject,
        exchange.request.id if exchange is not None else "",
        _TIME.sub("", _BATCH.sub("", row.status)),
        what.data.decode(),
    )


def test_each_message_has_its_kind_name_code_pairing_and_status(revision: str, recording: Path) -> None:
    found = [
        shown(change) for change in Read.of(recording).session.changes if not isinstance(change.what, Note)
    ]

    assert len(found) == len(messages(revision))
    assert [pair for pair in zip(found, messages(revision), strict=True) if pair[0] != pair[1]] == []


def test_the_index_of_the_tui_has_the_same_pairs_states_and_codes(recording: Path) -> None:
    index, session = Index(), Read.of(recording).session
    index.add_lines(recording.read_bytes().splitlines()[1:], 0)

    for row, change in enumerate(session.changes):
        what, exchange = change.what, change.exchange
        if not isinstance(what, Note):
            request = index.request(row)
            assert index.kind(row).name.lower() == type(what).__name__.lower()
            assert (None if request is None else index.id(request)) == (exchange and exchange.request.id), (
                what
            )
            status = change.status or (exchange.state if exchange is not None else "")
            assert index.status(row) == str(status), what
            assert index.codes.get(row) == (what.code if isinstance(what, Failure) else None), what


def test_show_prints_each_status(revision: str, recording: Path) -> None:
    command = [forks.command(), "show", "--width", "0", str(recording)]
    out = subprocess.run(command, capture_output=True, timeout=SECONDS, check=True).stdout.decode()
    printed = iter([_TIME.sub("", line) for line in out.splitlines()])

    for row in messages(revision):
        if row.status and row.kind != "request":
            assert any(line.endswith(f" {row.status}") for line in printed), row


DEEP = '{"a":[' * 5_000 + "1" + "]}" * 5_000
NESTED = [
    (sender, text.replace("DEEP", DEEP))
    for sender, text in (
        (CLIENT, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n","arguments":DEEP}}'),
        (SERVER, '{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":DEEP}}'),
        (CLIENT, '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":DEEP,"name":"m"}}'),
        (SERVER, '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":DEEP,"level":"info"}}'),
        (SERVER, '{"jsonrpc":"2.0","error":{"data":DEEP,"message":"no","code":-32603},"id":2}'),
        (CLIENT, '{"jsonrpc":"2.0","id":3,"method":"tools/list"}'),
        (SERVER, '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"n","inputSchema":{"not":DEEP}}]}}'),
    )
]


def test_messages_nested_ten_thousand_levels_are_paired_and_no_command_fails_on_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, again = _recorded(tmp_path / "a", NESTED), _recorded(tmp_path / "b", NESTED)
    changes = [change for change in Read.of(path).session.changes if not isinstance(change.what, Note)]

    assert [shown(change)[2:7] for change in changes] == [
        ("request", "tools/call", "n", "1", ""),
        ("result", "tools/call", "n", "1", "ok"),
        ("request", "tools/call", "m", "2", ""),
        ("notification", "notifications/message", "info", "", ""),
        ("failure", "tools/call", "m", "2", "error -32603 internal error: no"),
        ("request", "tools/list", "", "3", ""),
        ("result", "tools/list", "", "3", "ok"),
    ]
    formats = ("har", "html", "jsonl", "csv", "markdown", "mermaid", "otlp")
    for command in (
        *(
            "show",
            "show -v",
            "show --format json -v",
            "show --filter params.arguments.a.a:1",
            "stats",
            "lint",
        ),
        *(f"export --format {name}" for name in formats),
    ):
        name, *options = command.split()
        assert main([name, str(path), *options]) in (0, 1), command
    capfd.readouterr()
    assert main(["diff", str(path), str(again)]) == 0
    assert "5 of 5 unchanged" in capfd.readouterr().out
    live = [text.replace('"id":1', '"id":"live"') + "\n" for sender, text in NESTED if sender == CLIENT]
    mock = [forks.command(), "mock", str(path)]
    done = subprocess.run(
        mock, input="".join(live).encode(), capture_output=True, timeout=SECONDS, check=True
    )
    answers = done.stdout.decode().splitlines()
    assert [line for line in answers if "live" in line] == [NESTED[1][1].replace('"id":1', '"id":"live"')]
    assert len(answers) == 4


def test_every_method_of_a_revision_is_sent_and_answered_by_each_side_that_may(revision: str) -> None:
    rows_of = {
        kind: {(row.sender, row.method) for row in messages(revision) if row.kind == kind} for kind in KINDS
    }

    for name, method in METHODS.items():
        if is_known(name, revision) and method.extension is None:
            senders = {"client": CLIENT, "server": SERVER, "either": CLIENT + SERVER}[method.sender]
            if (
                revision == MODERN and method.sender == "either"
            ):  # Of the server, only notifications are left.
                senders = SERVER if name == "notifications/progress" else CLIENT
            assert {(sender, name) for sender in senders} <= rows_of[method.kind]
            if method.kind == "request":
                assert {(SERVER if sender == CLIENT else CLIENT, name) for sender in senders} <= rows_of[
                    "result"
                ]


def test_every_message_that_the_python_sdk_has_for_a_revision_is_sent(revision: str) -> None:
    """The models of mcp-types, by method and revision; it has none for tasks."""
    script = """import json, mcp_types.methods as m
pairs = (">", m.CLIENT_REQUESTS), (">", m.CLIENT_NOTIFICATIONS), ("<", m.SERVER_REQUESTS), ("<", m.SERVER_NOTIFICATIONS)
print(json.dumps([(sender, name, revision) for sender, table in pairs for name, revision in table]))"""
    listed = [(sender, name) for sender, name, of in _printed(PYTHON, "-c", script) if of == revision]
    sent = {(row.sender, row.method) for row in messages(revision)}

    assert len(listed) > 15
    assert [pair for pair in listed if pair not in sent] == []


@pytest.mark.parametrize("sdk", SDKS)
def test_every_method_and_error_code_in_the_types_of_the_sdks_is_sent(sdk: str) -> None:
    names = _printed(*SDKS[sdk])
    sent = {row.method for revision in REVISIONS for row in messages(revision) if row.kind != "malformed"}
    codes = {int(code) for code in CODES if code.lstrip("-").isdigit()}

    assert [name for name in names if isinstance(name, str) and name not in sent] == []
    assert [code for code in names if isinstance(code, int) and code not in codes] == []
    assert len(names) > 5


def _printed(*command: str) -> list[Any]:
    """Return what a program of the peers prints, as JSON."""
    out = subprocess.run(command, capture_output=True, timeout=SECONDS, check=True, cwd=PEERS).stdout
    found: list[Any] = json.loads(out)
    return found


class _Upstream(BaseHTTPRequestHandler):
    """Answers each POST with the next lines of a script, as server-sent events."""

    protocol_version = "HTTP/1.1"
    answers: Iterator[list[str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        events = "".join(f"data: {text}\n\n" for text in next(self.answers)).encode()
        self.send_response(200 if events else 202)
        self.send_header("Mcp-Session-Id", "s")
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(events)))
        self.end_headers()
        self.wfile.write(events)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_message_of_streamable_http_is_the_same(revision: str, tmp_path: Path) -> None:
    """A session: in 2026-07-28 each POST is separate, and 2024-11-05 has a separate stream for the server."""
    posts: list[tuple[str, list[str]]] = []
    for sender, text in lines(revision):
        if sender == CLIENT:
            posts.append((text, []))
        else:
            posts[-1][1].append(text)
    handler = type("_Scripted", (_Upstream,), {"answers": iter([answers for _, answers in posts])})
    path = tmp_path / "r.jsonl"
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{upstream.server_port}/mcp"
        options = ["--listen", "127.0.0.1:0", "--no-redact", "--record", str(path)]
        command = [forks.command(), "http", "--upstream", url, *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            watchdog = threading.Timer(SECONDS, process.kill)
            watchdog.start()
            assert process.stderr is not None
            host = urlsplit(process.stderr.readline().decode().split()[1]).netloc
            client = HTTPConnection(host, timeout=SECONDS)
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            for number, (text, answers) in enumerate(posts):
                client.request(
                    "POST", "/mcp", text.encode(), headers | ({"Mcp-Session-Id": "s"} if number else {})
                )
                body = client.getresponse().read().decode()
                assert body == "".join(f"data: {answer}\n\n" for answer in answers)
            client.close()
            process.terminate()
            process.wait()
            watchdog.cancel()
        upstream.shutdown()

    found = [shown(change) for change in Read.of(path).session.changes if not isinstance(change.what, Note)]
    assert [pair for pair in zip(found, messages(revision), strict=True) if pair[0] != pair[1]] == []
