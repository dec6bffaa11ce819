"""Text, objects and events in the place of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.framing import BEGUN, CONTENT_LENGTH, UNREADABLE, claim_of_lines, text_of
from mcpspy.analysis.explain.causes.leaving import SECONDS_TO_LEAVE
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.side_facts import OddLine
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    ServerEnd,
    Symptom,
    Violation,
)
from mcpspy.core.protocol.refusal import refusal_words
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER
from mcpspy.core.session.exchange import State


def _text(facts: Facts, side: str) -> list[OddLine]:
    """Return the lines of a side on stdio that are neither messages nor headers."""
    lines = [each for each in facts.sides[side].odd if each.data.strip()]
    # A message without its end: `message-broken`, `response-incomplete`.
    lines = [each for each in lines if each.is_whole or not BEGUN.search(each.data)]
    return [each for each in lines if facts.is_stdio and not CONTENT_LENGTH.match(each.data)]


def _is_apart(facts: Facts, symptom: Symptom, lines: list[OddLine]) -> bool:
    """Return whether a request has no response for another reason: none of the lines came while it waited.

    Text keeps a client from reading a response, and not the server from writing one.
    """
    if not isinstance(symptom, FailedRequest) or facts.server.odd_count > len(facts.server.odd):
        return False
    return not symptom.is_handshake and not any(
        symptom.asked_at <= each.at <= symptom.until for each in lines
    )


_OWN_URL = re.compile(r"\b(?:https?|wss?)://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d")
"""The address at which a server listens, without a word about it."""

LISTENS = re.compile(
    r"(?i)(?:listening|running|started|serving|available|uvicorn).{0,40}(?:https?://|port \d|:\d{4,5}\b)"
)
"""A server that listens on a port, in the words of uvicorn, Express and others."""

_RUNS_SCRIPTS = frozenset(("bun", "npm", "npx", "pnpm", "yarn"))
_BUILDS = frozenset("cargo dotnet gradle gradlew mvn mvnw sbt".split())
_OF_RUNNER = re.compile(
    r"^\s*(?:> |\$ |yarn run v|added \d+ packages|up to date|changed \d+ packages|Progress: resolved|Lockfile is up to date|Packages: \+)"
)
"""The words of npm, pnpm and yarn on stdout before the program: the script, and the packages."""

_OF_BUILD = re.compile(
    r"^\s*(?:\[(?:INFO|WARNING)\]|> Task |> Configure |BUILD |Starting a Gradle|Determining projects|Restored |Restore complete|Building\.{3}"
    r"|Using launch settings|Build succeeded|\[info\]|\S.{0,80}(?:succeeded|warnings?\)?) .{0,30}\(\d+[.,]\d+s\)|.{1,300}: warning )"
)
"""The words of Maven, Gradle, .NET and sbt on stdout while they build."""


_OF_CHCP = re.compile(
    r"(?i)^\s*(?:active code page|aktive codepage|page de codes active|p.gina de c.digos activa)\s*: \d+\s*$"
)


def _step_of_runner(facts: Facts, lines: list[OddLine]) -> str:
    """Return the next step if the text is that of the tool by which the command starts the server; else nothing."""
    texts = [text_of(each) for each in lines]
    if all(_OF_CHCP.search(text) for text in texts):
        return "this is what chcp prints: let the command discard it (chcp 65001 >nul)"
    if facts.program_name in _BUILDS and all(_OF_BUILD.search(text) for text in texts):
        return (
            "this is the output of the build tool: build first, and let the command start what it built (java -jar, dotnet NAME.dll, "
            "dotnet run with no build), or keep the tool quiet (mvn -q, gradle -q)"
        )
    if facts.program_name in _RUNS_SCRIPTS and all(_OF_RUNNER.search(text) for text in texts):
        return (
            "this is the output of the package manager: start the program itself (node dist/index.js), or keep the manager quiet "
            "(npm run --silent, pnpm --silent); a package that is installed beforehand has nothing to report"
        )
    return ""


def _of_runner(facts: Facts, lines: list[OddLine], claim: Claim) -> Claim:
    """Return a claim of text on stdout, with another side and next step if a tool of the command has written it."""
    if step := _step_of_runner(facts, lines):
        is_package = facts.program_name == "npx"  # The user did not choose what it prints.
        claim.next_step, claim.side = step, "" if is_package else "configuration"
    return claim


_BY_SIGNAL = (None, 130, 137, 143)
"""Exit codes of programs that were killed by a signal, as shells and the JVM report them."""


def _is_ended_by_client(facts: Facts, end: ServerEnd) -> bool:
    """Return whether the client may have ended the server: its log has no exit status, or it was killed after stdin was closed."""
    if end.code is None and end.signal is None:
        return True
    closed_at = facts.client.closed_at
    return closed_at is not None and end.at >= closed_at and end.code in _BY_SIGNAL


_TO_STDERR = "write logs to stderr (print(…, file=sys.stderr), console.error)"


_EMPTY_VALUE = re.compile(rb'null|\{\s*\}|\[\s*\]|""|undefined|None')
"""The text of nothing, as serializers write it."""


_HOLLOW = re.compile(rb'\{\s*"jsonrpc"\s*:\s*"2\.0"\s*(?:,\s*"id"\s*:\s*[^,{}]*)?\}')
"""The envelope of a message with nothing in it: serializers leave out a result that is null."""


def _is_left_at(facts: Facts, line: OddLine) -> bool:
    """Return whether the client ended the session right after a line: by closing stdin, or by a signal."""
    ends = [note.at for note, _ in facts.notes.get("signal", [])]
    ends += [] if facts.client.closed_at is None else [facts.client.closed_at]
    return bool(ends) and 0 <= min(ends) - line.at < SECONDS_TO_LEAVE


@cause(
    "stdout-noise",
    "the server writes text to stdout that is not a message",
    Level.SPECIFIC,
    rules=UNREADABLE,
    positive=(
        ex.session(
            *('@ bare command=["npm","run","start"]', ex.initialize(), "<< > notes@1.0.0 start"),
            *("<< > node dist/index.js", ex.welcome(), ex.CLIENT_CLOSED, ex.exited(0)),
        ),
        ex.session(ex.request("ping"), "<< DEBUG: start", ex.result()),
        ex.session(
            "@ bare", ex.initialize(), "<< [INFO] Scanning for projects...", ex.CLIENT_CLOSED, ex.exited(143)
        ),
        ex.session(
            "@ bare", ex.initialize(), "<< INFO: Starting", ex.note("signal", signal="SIGINT"), ex.END
        ),
    ),
    negative=(
        ex.session(ex.request("ping"), ex.stderr("DEBUG: start"), ex.result()),
        ex.session("@ bare", ex.initialize(), "<< Usage: notes FILE", ex.exited(2)),
    ),
)
def stdout_noise(facts: Facts) -> Iterator[Claim]:
    """`print`, `console.log`, a banner or a library's logger: stdout is reserved for messages."""
    lines = _text(facts, SERVER)
    if lines and facts.server.messages:
        is_before = (facts.server.first_at or 0.0) > lines[0].at
        when = "before its first message" if is_before else "between its messages"
        title = (
            f"the server writes text to stdout {when}, where only messages may be: "
            f"{quote(text_of(lines[0]), 80)}"
        )
        next_step = _TO_STDERR
        if _EMPTY_VALUE.fullmatch(lines[0].data.strip()):
            title = f"the server writes {text_of(lines[0]).strip()} to stdout, which is not a message"
            next_step = "let the server write nothing in answer to a notification, and a result or an error for each request"
        elif _HOLLOW.fullmatch(lines[0].data.strip()):
            title = f"the server writes an object without method, result and error, which is not a message: {quote(text_of(lines[0]), 80)}"
            next_step = "let the server write nothing in answer to a notification, and a result or an error for each request"
        claim = claim_of_lines(facts, SERVER, lines, title, next_step)
        claim.symptoms = [each for each in claim.symptoms if not _is_apart(facts, each, lines)]
        is_alone = facts.server.odd_count == 1 and all(isinstance(each, Violation) for each in claim.symptoms)
        if facts.has_worked and is_alone:
            claim.level = (
                Level.QUOTE
            )  # This client has read over a banner: what else is wrong is of more interest.
        yield _of_runner(facts, lines, claim)
    elif lines and facts.is_stdio:
        # The log of a host has the line that it could not read, and no exit status: the host may have ended the server.
        ends = [each for each in facts.of(ServerEnd) if not each.error and _is_ended_by_client(facts, each)]
        title = (
            f"the server writes text to stdout, where only messages may be: {quote(text_of(lines[0]), 80)}"
        )
        for end in ends:
            claim = claim_of_lines(facts, SERVER, lines, title, _TO_STDERR)
            claim.symptoms += [end, *end.during]
            yield _of_runner(facts, lines, claim)
        for failed in () if facts.of(ServerEnd) else facts.failed(State.UNANSWERED, State.CANCELLED):
            if not failed.is_handshake or failed.effects:
                continue
            if failed.took < PATIENCE and _is_left_at(facts, lines[0]):
                claim = claim_of_lines(facts, SERVER, lines, title, _TO_STDERR)
                claim.symptoms.append(failed)
                yield _of_runner(facts, lines, claim)
                break
            if failed.took >= PATIENCE:
                title = (
                    f"no answer to {failed.method} in {failed.waited}: the server wrote only text to stdout, and no message: "
                    f"{quote(text_of(lines[0]), 80)}"
                )
                next_step = f"look where it waits after this line, and {_TO_STDERR}"
                claim = claim_of_lines(facts, SERVER, lines, title, next_step)
                if any(LISTENS.search(text_of(each)) or _OWN_URL.search(text_of(each)) for each in lines):
                    claim.side = ""  # It may have an option for stdio, or none.
                    claim.next_step = "it listens on a port: start it with its option for stdio, or connect to its URL (mcpspy http --upstream URL)"
                yield claim
                break


@cause(
    "stdin-noise",
    "the client writes text to the server's stdin that is not a message",
    Level.SPECIFIC,
    rules=UNREADABLE,
    positive=ex.session(">> hello", ex.request("ping")),
)
def stdin_noise(facts: Facts) -> Iterator[Claim]:
    """Something else than an MCP client has the server's stdin, or the client writes its log there."""
    if lines := _text(facts, CLIENT):
        title = (
            f"the client writes text to the server's stdin that is not a message: "
            f"{quote(text_of(lines[0]), 80)}"
        )
        yield claim_of_lines(
            facts, CLIENT, lines, title, "correct the client: each line on stdin is one message"
        )


_ON_STDERR = re.compile(r'^\s*\{.*"jsonrpc"\s*:.*"(?:result|error)"\s*:')


@cause(
    "response-on-stderr",
    "the server writes a response to stderr",
    Level.EXACT,
    positive=ex.session(
        ex.request("ping"),
        ex.stderr('{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Unknown method"}}'),
        "+ 4",
        ex.cancelled(),
    ),
    negative=ex.session(
        ex.request("ping"), ex.stderr('{"jsonrpc":"2.0","id":9,"result":{}}'), "+ 4", ex.cancelled()
    ),
)
def response_on_stderr(facts: Facts) -> Iterator[Claim]:
    """Messages belong on stdout, errors too; stderr is for logs (2025-11-25, Transports)."""
    for failed in facts.failed(State.UNANSWERED, State.CANCELLED) if facts.is_stdio else ():
        id_ = re.compile(rf'"id"\s*:\s*{re.escape(failed.id)}\s*[,}}]')
        found = [line for line in failed.stderr if _ON_STDERR.search(line.text) and id_.search(line.text)]
        if failed.side == CLIENT and found:
            title = f"the server wrote the response to {failed.about} to stderr: {quote(found[0].text)}"
            next_step = (
                "let the server write all responses to stdout, errors too: clients take stderr for a log"
            )
            yield Claim(title, next_step, [failed], evidence=[found[0].evidence], side=SERVER)


_LACKS_TOKEN = re.compile(
    r"(?i)\b(?:authori[sz]ation|unauthori[sz]ed|api[ _-]?key|access[ _-]?token|credentials?|not logged in|sign[ _-]?in"
    r"|log[ _-]?in)\b|身份|认证|鉴权|令牌|登录|認証|トークン|ログイン"
)
"""Words for a missing sign-in. They are searched only if the request had no Authorization."""

_LOGGED = re.compile(r'"(?:level|severity|levelname|time|timestamp|ts|logger|pid|hostname)"\s*:')
"""Members of a log record in JSON."""
_FOREIGN = "ENV101 ENV102 ENV104 ENV206 ENV207"


def _answer_of_another_protocol(facts: Facts) -> Iterator[Claim]:
    """Yield a claim for a server on stdio whose messages are objects, and not those of JSON-RPC."""
    found = [
        (finding.at, finding.place, finding.excerpt)
        for violation in facts.violations("ENV104", side=SERVER)
        for finding in violation.findings
        if finding.id is None
    ]
    found += [
        (each.at, each.place, text_of(each))
        for each in facts.server.odd
        if each.why.startswith("neither") and each.data.lstrip()[:1] == b"{"
    ]
    for failed in facts.failed(State.UNANSWERED, State.CANCELLED):
        answers = [
            each
            for each in found
            if failed.asked_at <= each[0] <= failed.until and not _LOGGED.search(each[2])
        ]
        if failed.side != CLIENT or failed.effects or not answers:
            continue
        _, place, text = answers[0]
        title = (
            f"the server answered {failed.about} with an object that is not a JSON-RPC message: it has neither jsonrpc "
            f"nor the id of the request: {quote(text, 120)}"
        )
        next_step = (
            'let the server read and write JSON-RPC 2.0, as MCP has it: {"jsonrpc":"2.0","id":<the id of the request>,'
            '"result":{…}}; this server speaks another protocol on stdio'
        )
        symptoms = [failed, *facts.of(ClientLeft), *facts.violations(*_FOREIGN.split(), side=SERVER)]
        yield Claim(title, next_step, symptoms, evidence=[evidence(place, f"stdout: {text}")], side=SERVER)
        break


@cause(
    "error-without-envelope",
    "the server answers a request with an error that is not one of JSON-RPC",
    Level.EXACT,
    rules=_FOREIGN,
    positive=(
        ex.session(
            "@ http bare",
            ex.initialize(),
            ex.answered(200, {}, {"content-type": "text/event-stream"}),
            '<< {"code":1001,"msg":"Header Authorization not received"}',
            ex.note("http-end", http=1, stream="1", hung_up=None),
        ),
        ex.session(
            "@ bare", ex.initialize(), '<< {"error":{"message":"no type"},"request_id":"x"}', ex.cancelled(1)
        ),
        ex.session(ex.call(), '<< {"type":"response","ok":true}', ex.cancelled()),
    ),
    negative=(
        ex.session("@ http", ex.call(), '<< {"type":"heartbeat"}', ex.done()),
        ex.session(ex.call(), '<< {"level":"info","message":"started"}', ex.cancelled()),
    ),
)
def error_without_envelope(facts: Facts) -> Iterator[Claim]:
    """A gateway of an API answers all requests in its own form, with HTTP 200, or a server on stdio speaks another
    protocol. A client finds no response in it.
    """
    if facts.is_stdio:
        yield from _answer_of_another_protocol(facts)
        return
    odd = [each for each in facts.server.odd if each.is_whole and not each.is_refusal]
    for failed in facts.failed(State.UNANSWERED, State.CANCELLED) if odd else ():
        until = failed.until + 0.1
        if failed.carrier is not None and failed.carrier.is_plain:
            # Its body may have come later than its head.
            until = max(until, failed.carrier.ended_at or facts.last_at)
        found = next((each for each in odd if failed.asked_at <= each.at <= until), None)
        # A heartbeat is an object, too: the carrier has ended with nothing else in it.
        is_over = failed.carrier is not None and (failed.carrier.is_plain or failed.carrier.ended_at)
        words = "" if found is None else refusal_words(found.data)
        if found is None or not is_over or not words or words == text_of(found).strip() or failed.effects:
            continue
        title = (
            f"the server answered {failed.about} with an error that is not a JSON-RPC message: {quote(words)}"
        )
        side, next_step = (
            SERVER,
            "let the server answer with an error of JSON-RPC that has the id of the request",
        )
        if _LACKS_TOKEN.search(words) and failed.carrier and not failed.carrier.has_token:
            title += "; the request has no Authorization"
            side = ""
            next_step = (
                "set the header Authorization in the host's configuration, in the form that this host reads (mcpspy "
                "hosts lists the members that it does not know); the server should answer 401"
            )
        symptoms = [failed, *facts.of(ClientLeft), *facts.violations("ENV101", "ENV102", side=SERVER)]
        yield Claim(title, next_step, symptoms, side=side)


_TERMINAL = re.compile(r"-(?:it|ti|t|tt)|--tty(?:=true)?")
"""The options of docker, podman, kubectl and ssh for a terminal."""


@cause(
    "input-echoed",
    "the server's stdout repeats what the client sends",
    Level.EXACT,
    positive=ex.session(
        '@ bare command=["docker","run","-it","notes"]',
        *("+ 0.01", ex.initialize(), ex.initialize().replace(">", "<", 1)),
        '> {"id":1,"error":{"code":-32601,"message":"Method not found"}}',
        '< {"id":1,"error":{"code":-32601,"message":"Method not found"}}',
        ex.END,
    ),
    negative=ex.session(
        ex.call(), ex.asked("roots/list"), '> {"id":7,"result":{"roots":[]}}', ex.done(), ex.END
    ),
)
def input_echoed(facts: Facts) -> Iterator[Claim]:
    """A terminal echoes each line of its input (docker run -t, ssh -t), and so does a command that is not the server, such as
    cat. The client takes its own request for one of the server.
    """
    echoed = [
        each
        for each in facts.failed()
        if each.side == SERVER and each.method in METHODS and METHODS[each.method].sender == CLIENT
    ]
    if not facts.is_stdio or not echoed or not facts.client.methods[echoed[0].method]:
        return
    title = f"the server's stdout repeats what the client sends, first {echoed[0].about}: the client takes it for a request of the server"
    next_step = (
        "look for what echoes stdin to stdout: a terminal between the client and the server (docker run -t, ssh -t, script), or a "
        "command that is not the server"
    )
    side = ""
    if option := next((word for word in facts.command if _TERMINAL.fullmatch(word)), ""):
        side = "configuration"
        next_step = f"remove the terminal from the command ({quote(option, 20)}; docker needs only -i): it echoes each line of its input"
    affected = [*facts.failed(*_WITHOUT_RESULT), *facts.of(ClientLeft)]
    yield Claim(title, next_step, [*echoed, *affected], side=side)


_WITHOUT_RESULT = (State.UNANSWERED, State.CANCELLED, State.ERROR)
