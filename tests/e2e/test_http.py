"""Every client with every server over HTTP: mcpspy is not noticeable, and all traffic is recorded."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

import mcpspy
from mcpspy.core.protocol.oauth import HINT
from mcpspy.core.session.exchange import State
from recordings import make
from tests.io.forward.conftest import Pki, make_pki

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Peers, Played, Read

HTTP2_SERVER = Path(__file__).parent.parent / "http2_server.mjs"

LEGACY, MODERN = "2025-11-25", "2026-07-28"

READY = 20
"""Seconds that a server may take until it listens. Servers need one."""

PEER = f"python {make.SDK_SERVER} --transport"
AUTH = f"python {make.SDK_SERVER.with_name('auth_server.py')}"

SERVERS = {
    "everything": ("mcp-server-everything streamableHttp", "/mcp"),
    "everything-sse": ("mcp-server-everything sse", "/sse"),
    "peer": (f"{PEER} streamable-http --port", "/mcp"),
    "peer-json": (f"{PEER} streamable-http --json --port", "/mcp"),
    "peer-stateless": (f"{PEER} streamable-http --stateless --port", "/mcp"),
    "peer-stateless-json": (f"{PEER} streamable-http --stateless --json --port", "/mcp"),
    "peer-sse": (f"{PEER} sse --port", "/sse"),
}
"""Commands and endpoints. The port is appended to the command unless it is in the environment."""

GUARDED = {
    "described": f"{AUTH} --port",
    "undescribed": f"{AUTH} --undescribed --port",
    "bound": f"{AUTH} --bound --port",
}
"""Servers that require a token: the metadata they serve, and whether a token is valid at one address only."""

INTRODUCTIONS = {
    "everything": "mcp-servers/everything 2.0.0",
    "peer": "sdk-peer 1.0.0",
    "sdk": "sdk-client 1.0.0",
    "inspector": "inspector-cli 2.12.0",
}

CALLS = {
    "everything": '--tool-name trigger-long-running-operation --tool-args-json {"duration":0.6,"steps":2}',
    "peer": '--tool-name add --tool-args-json {"a":2,"b":40}',
}


class Pair(NamedTuple):
    """A client with a server, in one of the client's modes."""

    client: str
    server: str
    mode: str

    @property
    def family(self) -> str:
        return self.server.partition("-")[0]

    @property
    def played(self) -> str:
        """The client's command."""
        if self.client == "sdk":
            transport = "sse" if self.server.endswith("-sse") else "http"
            script = "sdk" if self.family == "peer" else self.family
            return f"sdk.py --script {script} --mode {self.mode} --transport {transport}"
        era = "modern" if self.mode == MODERN else self.mode
        return f"inspector.sh --method tools/call {CALLS[self.family]} --format json --protocol-era {era}"

    @property
    def refused(self) -> bool:
        """Return whether the client insists on 2026-07-28, probes first, and the server does not support it."""
        return self.mode == MODERN and self.client == "inspector" and self.family == "everything"

    @property
    def revision(self) -> str | None:
        if self.refused:
            return None
        return MODERN if self.mode == MODERN or (self.mode, self.family) == ("auto", "peer") else LEGACY

    @property
    def introduces_itself(self) -> bool:
        """Return whether the server introduces itself, by a handshake or by the modern revision."""
        return self.revision == LEGACY or (self.revision == MODERN and self.family == "peer")

    @property
    def flaws(self) -> set[str]:
        """Faults of the peers, which their recording must report."""
        found = set()
        if self.server == "everything" and self.mode != "legacy":
            found.add("no id")
        if self.client == "sdk" and self.revision == LEGACY and self.server in ("peer", "peer-json"):
            found.add("answered after it was cancelled")
        return found


MODES = ("legacy", "auto", MODERN)

PAIRS = [
    Pair(("sdk", "inspector")[(s + m) % 2], server, mode)
    for s, server in enumerate(SERVERS)
    for m, mode in enumerate(MODES)
]
"""Every server in every mode, and every client with each of these. All combinations would take twice as long."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(name: str, command: str, endpoint: str, folder: Path) -> Iterator[str]:
    """Run a server on a free port. Yield its URL once it listens."""
    port = free_port()
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command.split(), *((str(port),) if command.endswith("--port") else ())],
            cwd=folder,
            env={**make.environment(folder), "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_it_listens(name, process, port)
        yield f"http://127.0.0.1:{port}{endpoint}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_it_listens(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + READY
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            try:
                code = process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"{name} ended with {code} before it listened", pytrace=False)
        return
    pytest.fail(f"{name} did not listen within {READY} s", pytrace=False)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run all servers. They serve one client after the other."""
    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as running:
        yield {name: running.enter_context(serving(name, *SERVERS[name], folder)) for name in SERVERS}


def received(played: Played) -> Played:
    """Return everything that is the same in every run. server-everything names its sessions, and its notification of
    changed tools depends on timing.
    """
    text = re.sub(r"session [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "session …", played.transcript)
    if '"mcp-servers/everything"' in text or '"script": "everything"' in text:
        text = re.sub(r'"changed": \[[^]]*\]', '"changed": …', text)
    return played._replace(transcript=text)


def flaws(read: Read) -> set[str]:
    """Return the kinds of faults in a recording."""
    return {complaint.partition(": ")[0] for complaint in read.complaints()}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
async def test_a_client_receives_the_same_through_mcpspy_and_everything_is_recorded(
    pair: Pair, peers: Peers, urls: dict[str, str]
) -> None:
    async with peers.proxied(urls[pair.server]) as through_mcpspy:
        direct, spied = await asyncio.gather(
            peers.play(pair.played, urls[pair.server]), peers.play(pair.played, through_mcpspy)
        )
    assert received(spied) == received(direct)
    assert spied.code == (1 if pair.refused else 0)
    (read,) = await peers.recorded("recorded")
    assert flaws(read) == pair.flaws, read.complaints()
    assert read.header.upstream == urls[pair.server]
    session = read.session
    assert session.exit is not None
    assert str(session.client) == INTRODUCTIONS[pair.client]
    assert session.revision == pair.revision
    assert str(session.server) == (INTRODUCTIONS[pair.family] if pair.introduces_itself else "None")
    ends = Counter(note.fields["http"] for note in read.notes("http-end"))
    assert set(ends.values()) == {1}, "every HTTP exchange ends once"
    assert {note.fields["http"] for note in read.notes("http")} <= set(ends)
    if not pair.refused:
        assert len(session.exchanges) > 1


@pytest.mark.parametrize("server", ["everything-sse", "peer-sse"])
async def test_a_client_of_the_other_transport_gets_the_refusal_of_the_server(
    server: str, peers: Peers, urls: dict[str, str]
) -> None:
    client = "sdk.py --script sdk --mode legacy"
    async with peers.proxied(urls[server]) as through_mcpspy:
        direct, spied = await asyncio.gather(
            peers.play(client, urls[server]), peers.play(client, through_mcpspy)
        )
    assert spied == direct
    assert spied.code == 1
    (read,) = await peers.recorded("recorded")
    assert [exchange.state for exchange in read.exchanges("initialize")] == [State.REFUSED]


POST_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HELLO = b"""{"jsonrpc":"2.0","id":0,"method":"initialize","params":
    {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}}"""
SESSION = "mcp-session-id"

CHANGING = {"date", "etag", SESSION, "connection", "keep-alive", "transfer-encoding"}
"""Headers that differ between responses or belong to the connection."""


class Answer(NamedTuple):
    """A response, without what differs from run to run."""

    status: int
    headers: list[tuple[str, str]]
    body: str


class Injected:
    """A client that sends requests that real clients never send."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._address = (parts.hostname, parts.port)
        self._path = parts.path
        self.session = ""

    def ask(self, method: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send one request on a new connection. An empty header is left out."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(*self._address, timeout=READY)
        try:
            sent = {name: value for name, value in (POST_HEADERS | named).items() if value}
            connection.request(method, self._path, body, sent)
            response = connection.getresponse()
            self.session = response.headers.get(SESSION) or self.session
            given = [(name.lower(), value) for name, value in response.getheaders()]
            kept = [(name, value) for name, value in given if name not in CHANGING]
            return Answer(response.status, kept, response.read().decode())
        finally:
            connection.close()

    def refusals(self) -> dict[str, Answer]:
        """Send every kind of invalid request, and one complete, valid session."""
        answers = {
            "no session": self.ask("POST", PING),
            "unknown session": self.ask("POST", PING, mcp_session_id="0badcafe" * 4),
            "no such revision": self.ask("POST", PING, mcp_protocol_version="1999-01-01"),
            "half an Accept": self.ask("POST", HELLO, Accept="application/json"),
            "text": self.ask("POST", HELLO, Content_Type="text/plain"),
            "no JSON": self.ask("POST", b"{"),
            "nothing": self.ask("POST", b""),
            "PUT": self.ask("PUT", HELLO),
            "GET of no stream": self.ask("GET", Accept="application/json", Content_Type=""),
        }
        assert self.ask("POST", HELLO).status == 200
        session = self.session
        answers["DELETE"] = self.ask("DELETE", mcp_session_id=session, mcp_protocol_version=LEGACY)
        answers["dead session"] = self.ask("POST", PING, mcp_session_id=session, mcp_protocol_version=LEGACY)
        return answers


@pytest.mark.parametrize(
    ("server", "statuses"),
    [
        ("peer", "400 404 400 406 400 400 400 405 406 200 404"),
        ("peer-json", "400 404 400 200 400 400 400 405 406 200 404"),
        ("peer-stateless", "200 200 400 406 400 400 400 405 406 405 200"),
        ("everything", "400 400 400 406 415 400 400 404 400 200 400"),
    ],
)
async def test_refusals_of_the_server_are_forwarded_unchanged(
    server: str, statuses: str, peers: Peers, urls: dict[str, str]
) -> None:
    direct = await asyncio.to_thread(Injected(urls[server]).refusals)
    assert " ".join(str(answer.status) for answer in direct.values()) == statuses
    async with peers.proxied(urls[server]) as through_mcpspy:
        assert await asyncio.to_thread(Injected(through_mcpspy).refusals) == direct
    (read,) = await peers.recorded("recorded")
    codes = [note.fields["status"] for note in read.notes("http")]
    assert [codes[at] for at in (*range(9), 10, 11)] == [answer.status for answer in direct.values()]
    # Without a matching response, the status ends a request.
    assert State.PENDING not in {exchange.state for exchange in read.session.exchanges}


@pytest.mark.parametrize(("server", "mode"), [("peer-sse", "legacy"), ("peer", MODERN)])
async def test_two_clients_with_the_same_ids_are_distinguished(
    server: str, mode: str, peers: Peers, urls: dict[str, str]
) -> None:
    pair = Pair("sdk", server, mode)
    async with peers.proxied(urls[server]) as through_mcpspy:
        direct, *spied = await asyncio.gather(
            peers.play(pair.played, urls[server]),
            peers.play(pair.played, through_mcpspy),
            peers.play(pair.played, through_mcpspy),
        )
    assert spied == [direct, direct]
    (read,) = await peers.recorded("recorded")
    assert flaws(read) == pair.flaws, read.complaints()
    echoes = read.exchanges("tools/call", "echo")
    assert [exchange.state for exchange in echoes] == [State.OK] * 6
    for number in {exchange.request.id for exchange in echoes}:
        assert [exchange.request.id for exchange in echoes].count(number) == 2


@contextmanager
def before_http2(url: str, pki: Pki) -> Iterator[str]:
    """Run a server of HTTP/2 only in front of a server. Yield its URL."""
    parts = urlsplit(url)
    command = ["node", str(HTTP2_SERVER), str(pki.key), str(pki.certificate), str(parts.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"https://127.0.0.1:{int(process.stdout.readline())}{parts.path}"
        finally:
            process.kill()


@pytest.mark.parametrize("server", ["peer", "everything"])
async def test_a_server_that_speaks_only_http2_is_reached(
    server: str, peers: Peers, urls: dict[str, str], tmp_path: Path
) -> None:
    pair, pki = Pair("sdk", server, "auto"), make_pki(tmp_path)
    with before_http2(urls[server], pki) as url:
        async with peers.proxied(url, ":0", "recorded", "--cacert", f"{pki.authority}") as through_mcpspy:
            direct, spied = await asyncio.gather(
                peers.play(pair.played, urls[server]), peers.play(pair.played, through_mcpspy)
            )
    assert (received(spied), spied.code) == (received(direct), 0)
    (read,) = await peers.recorded("recorded")
    assert flaws(read) == pair.flaws, read.complaints()
    assert {note.fields["hung_up"] for note in read.notes("http-end")} <= {None, "client"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run the servers that require a token."""
    folder = tmp_path_factory.mktemp("guarded")
    with ExitStack() as running:
        yield {
            name: running.enter_context(serving(name, command, "/mcp", folder))
            for name, command in GUARDED.items()
        }


CHAIN = ["challenge 401", "resource metadata 200", "server metadata 200", "registration 201"]
CHAIN += ["authorize 302", "token 200", "retry 200"]


def origin(url: str) -> str:
    return url.removesuffix("/mcp")


@pytest.mark.parametrize("server", ["described", "undescribed"])
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_that_knows_only_the_address_of_mcpspy_is_authorized(
    server: str, mode: str, peers: Peers, guarded: dict[str, str]
) -> None:
    async with peers.proxied(guarded[server]) as through_mcpspy:
        direct, spied = await asyncio.gather(
            peers.play(f"oauth.py --mode {mode}", guarded[server]),
            peers.play(f"oauth.py --mode {mode}", through_mcpspy),
        )
    assert direct.code == 0, direct.complaints
    assert (spied.complaints, spied.code) == (direct.complaints, 0)
    assert f"{origin(through_mcpspy)}/.well-known/" in spied.transcript
    assert spied.transcript.replace(origin(through_mcpspy), origin(guarded[server])) == direct.transcript
    (read,) = await peers.recorded("recorded")
    assert read.notes("http")[0].fields["status"] == 401
    assert read.exchanges("tools/call")[-1].state == State.OK
    found = {finding.code for finding in mcpspy.lint(mcpspy.read(read.path))} & {"AUTH104", "AUTH105"}
    assert found == (set() if server == "described" else {"AUTH104"})
    text = read.path.read_text()
    assert '"authorization":"[redacted]"' in text
    assert not re.search("bearer [a-z0-9_-]{20}", text, re.IGNORECASE)


@pytest.mark.parametrize("keeps_resource", [False, True])
async def test_the_steps_of_an_authorization_are_one_flow_without_a_secret(
    keeps_resource: bool, peers: Peers, guarded: dict[str, str], tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets.json"
    options = ("--keep-resource",) if keeps_resource else ()
    flags = "--any-resource" if keeps_resource else ""
    server = guarded["bound" if keeps_resource else "described"]
    async with peers.proxied(server, ":0", "recorded", *options) as through_mcpspy:
        played = await peers.play(f"oauth.py --secrets {secrets} {flags}", through_mcpspy)
    assert (played.complaints, played.code) == ("", 0)
    (read,) = await peers.recorded("recorded")
    assert read.notes("oauth")[-1].fields["chain"] == CHAIN
    steps = {note.fields["step"]: note.fields for note in read.notes("oauth")}
    assert steps["authorize"]["same"] == ["redirect_uri", "resource", "scope"]
    assert steps["token"]["same"] == ["redirect_uri", "code_verifier", "resource"]
    assert steps["retry"]["same"] == ["access_token"]
    assert not any("differs" in fields for fields in steps.values())
    text = read.path.read_text()
    values = json.loads(secrets.read_text())
    assert {"code", "state", "code_challenge", "code_verifier", "client_secret", "access_token"} <= set(
        values
    )
    assert [name for name, value in values.items() if value in text] == []


async def test_clients_that_authorize_at_the_same_time_have_a_flow_each(
    peers: Peers, guarded: dict[str, str]
) -> None:
    all_wait = asyncio.Barrier(3)

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await all_wait.wait()
        writer.write(b".")
        writer.close()

    async with (
        peers.proxied(guarded["described"]) as through_mcpspy,
        await asyncio.start_server(meet, "127.0.0.1", 0) as meeting,
    ):
        client = f"oauth.py --meet {meeting.sockets[0].getsockname()[1]}"
        played = await asyncio.gather(*(peers.play(client, through_mcpspy) for _ in range(3)))
    assert [(each.complaints, each.code) for each in played] == [("", 0)] * 3
    (read,) = await peers.recorded("recorded")
    notes = [note.fields for note in read.notes("oauth")]
    flows = [fields["flow"] for fields in notes]
    assert flows != sorted(flows)
    chains = {fields["flow"]: fields["chain"] for fields in notes if "chain" in fields}
    assert chains == dict.fromkeys((1, 2, 3), CHAIN)
    assert [sum(flow == number for flow in flows) for number in (1, 2, 3)] == [len(CHAIN)] * 3
    assert not {finding.code for finding in mcpspy.lint(mcpspy.read(read.path)) if finding.code[:4] == "AUTH"}


async def test_a_server_with_bound_tokens_must_know_the_address_of_mcpspy(
    peers: Peers, guarded: dict[str, str], tmp_path: Path
) -> None:
    async with peers.proxied(guarded["bound"], said=f"mcpspy: {HINT}\n") as through_mcpspy:
        refused = await peers.play("oauth.py", through_mcpspy)
    assert refused.code == 1
    (read,) = await peers.recorded("recorded")
    assert [note.fields["hint"] for note in read.notes("oauth") if "hint" in note.fields] == [HINT, HINT]
    port = free_port()
    command = f"{AUTH} --bound --public-url http://127.0.0.1:{port} --port"
    with serving("public", command, "/mcp", tmp_path) as url:
        async with peers.proxied(url, f":{port}", "second") as through_mcpspy:
            admitted = await peers.play("oauth.py", through_mcpspy)
    assert (admitted.complaints, admitted.code) == ("", 0)
    assert origin(url) not in admitted.transcript
    (read,) = await peers.recorded("second")
    assert "code=" not in re.sub("response_type=code|code=\\[redacted\\]", "", read.path.read_text())
