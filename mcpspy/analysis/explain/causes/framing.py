"""The bytes of a side cannot be read by the other: framing, encoding, text between the messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.side_facts import OddLine
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, IgnoredResponse, ServerEnd, Symptom
from mcpspy.core.protocol.refusal import refusal_words
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session.exchange import State

_CONTENT_LENGTH = re.compile(rb"(?i)^\s*Content-Length:\s*\d+\s*$")
_UTF_16 = re.compile(rb"^(?:\xff\xfe|\xfe\xff)|^\x00?[{\[\"]?\x00.\x00")
_BEGUN = re.compile(rb'(?s)^\s*[{\[].*"(?:jsonrpc|id)"')
_RESULT = re.compile(rb'"(?:protocolVersion|serverInfo|tools|content|resources|prompts|capabilities)"')
_WRAPPED = re.compile(
    r'(?s)\s*\{\s*"(\w+)"\s*:\s*"(?:[^"\\]|\\[rnt])*(?:data:\s*)?\{\s*\\"(?:jsonrpc|result|id)\\"'
)
"""An object whose first member has a message, or an SSE event with one, as text."""
_STREAMS = {CLIENT: "stdin", SERVER: "stdout"}
_SIDES = (CLIENT, SERVER)
_UNREADABLE = "ENV101 ENV102 ENV103 ENV110 ENV111 ENV113 ENV118 ENV119"


def text_of(line: OddLine) -> str:
    return line.data.decode("utf-8", "backslashreplace")


def _lines(side: str, lines: list[OddLine]) -> list[EvidenceLine]:
    return [evidence(each.place, f"{_STREAMS[side]}: {text_of(each)}") for each in lines[:3]]


def _affected(facts: Facts, side: str, since: float) -> list[Symptom]:
    """Return what unreadable bytes of a side bring about: requests without a response, and the end
    of the client.
    """
    found: list[Symptom] = []
    for symptom in facts.symptoms:
        match symptom:
            case FailedRequest(effects=[], refusal=None):
                is_without = symptom.answer_at is None or symptom.code == -32700
                if is_without and symptom.at + max(symptom.took, 0.0) >= since:
                    found.append(symptom)
            case ClientLeft() | IgnoredResponse() if side == SERVER:
                found.append(symptom)
    return [*found, *facts.violations(*_UNREADABLE.split(), side=side)]


def _claim(facts: Facts, side: str, lines: list[OddLine], title: str, next_step: str) -> Claim:
    symptoms, shown = _affected(facts, side, lines[0].at), _lines(side, lines)
    return Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=shown, side=side)


@cause(
    "content-length",
    "one side frames its messages with Content-Length headers",
    Level.EXACT,
    rules=_UNREADABLE,
    positive=ex.session(
        "@ bare",
        ex.request("initialize", 1),
        "<< Content-Length: 36",
        "<< ",
        '<< {"jsonrpc":"2.0","id":1,"result":{}}',
    ),
    negative=ex.session("@ bare", ex.request("initialize", 1), "<< Content: 36"),
)
def content_length(facts: Facts) -> Iterator[Claim]:
    """The Language Server Protocol frames its messages so. MCP on stdio has one message per line,
    without headers.
    """
    for side in _SIDES:
        lines = [each for each in facts.sides[side].odd if _CONTENT_LENGTH.match(each.data)]
        if facts.is_stdio and lines:
            title = (
                f"the {side} writes Content-Length headers, and the {other(side)} expects one message "
                f"per line"
            )
            next_step = f"change the {side} to messages that end with a newline, or update its SDK"
            yield _claim(facts, side, lines, title, next_step)


def _encoding(line: OddLine) -> str:
    """Return what a line is written in, in words; empty if in UTF-8."""
    if _UTF_16.match(line.data) or line.data.count(b"\0") > len(line.data) // 4:
        return "UTF-16"
    if line.data.startswith(b"\xef\xbb\xbf"):
        return "a byte order mark before UTF-8"
    return "bytes that are not UTF-8" if "UTF-8" in line.why else ""


def _is_foreign_text(line: OddLine) -> bool:
    """Return whether a line is a text in a code page, and no message: that it is there is the mistake."""
    is_text = b"\0" not in line.data and line.data.lstrip()[:1] not in (b"{", b"[")
    return is_text and not line.data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))


@cause(
    "wrong-encoding",
    "one side does not write UTF-8",
    Level.EXACT,
    rules=_UNREADABLE,
    positive=ex.session("@ bare", '<< \\xff\\xfe{\\x00"\\x00j\\x00', ex.request("ping", 1)),
    negative=ex.session(ex.request("ping"), "<< D\\xe9marrage du serveur", ex.result()),
)
def wrong_encoding(facts: Facts) -> Iterator[Claim]:
    """Windows PowerShell writes UTF-16 or a byte order mark, and Python on Windows the code page of
    the system.
    """
    for side in _SIDES if facts.is_stdio else ():
        texts = {each.place for each in facts.sides[side].odd if _is_foreign_text(each)}
        for line in facts.sides[side].odd:
            if line.place not in texts and (kind := _encoding(line)):
                title = f"the {side} writes {kind}, and MCP is UTF-8 without a mark"
                next_step = (
                    f"let the {side} write UTF-8: PYTHONUTF8=1 for Python, [Console]::OutputEncoding = "
                    f"[Text.UTF8Encoding]::new($false) for PowerShell"
                )
                yield _claim(facts, side, [line], title, next_step)
                break
        else:
            for violation in facts.violations("ENV110", "ENV111", side=side):
                if all(each.place in texts for each in violation.findings):
                    continue
                title = f"the {side} does not write UTF-8: {quote(violation.findings[0].message)}"
                next_step = f"let the {side} write UTF-8 without a byte order mark (PYTHONUTF8=1 for Python)"
                symptoms = _affected(facts, side, violation.at)
                lines = violation.lines[:2]
                yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)


@cause(
    "text-misread",
    "the server reads what it is sent in another encoding than UTF-8",
    Level.EXACT,
    positive=ex.session(
        ex.request("tools/call", name="a", arguments={"text": "Žižkov"}), ex.done(2, "Ĺ˝iĹľkov")
    ),
    negative=ex.session(
        ex.request("tools/call", name="a", arguments={"text": "Žižkov"}), ex.done(2, "Žižkov")
    ),
)
def text_misread(facts: Facts) -> Iterator[Claim]:
    """Nothing fails: the text is stored wrong, and is seen when it comes back. Each character
    outside ASCII is two or more.
    """
    if (changed := facts.sent_text.changed) is not None:
        text, place = changed
        title = (
            f"the client sent {quote(text.sent)!r}, and the server has {quote(text.received)!r}: it "
            f"reads UTF-8 as {text.encoding}"
        )
        next_step = (
            "let the server read stdin as UTF-8 (Python: PYTHONUTF8=1 by env in the host's "
            "configuration), and repair what it has stored"
        )
        lines = [evidence(place, f"{text.received} in place of {text.sent}")]
        yield Claim(title=title, next_step=next_step, symptoms=[], evidence=lines, side=SERVER)


_OPENS = re.compile(rb"^\s*[{\[]\s*$|^\s*\{\s*\"\w+\"\s*:[^}]*,\s*$")
_MEMBER = re.compile(rb"^\s*\"(?:jsonrpc|id|method|result|error)\"\s*:")
_PRETTY = ex.session(
    *("<< {", '<<   "jsonrpc": "2.0",', '<<   "id": 2,', '<<   "result": {}', "<< }"),
)


def _over_lines(facts: Facts) -> Iterator[Claim]:
    """Yield a claim for each side that writes a message over several lines: on stdio each line is one message."""
    for side in _SIDES if facts.is_stdio else ():
        odd = facts.sides[side].odd
        for number, line in enumerate(odd):
            after = odd[number + 1 : number + 4]
            if _OPENS.search(line.data) and any(_MEMBER.search(each.data) for each in after):
                title = (
                    f"the {side} writes a message over several lines, and on stdio each line is one: "
                    f"{quote(' '.join(text_of(each) for each in (line, *after)), 80)}"
                )
                next_step = f"let the {side} write JSON without line breaks (no indentation, no pretty printing), and one at its end"
                yield _claim(facts, side, [line], title, next_step)
                break


def _is_broken(line: OddLine) -> bool:
    is_json = line.why.startswith(("neither", "not an object"))
    return bool(_BEGUN.search(line.data)) and not is_json and "never completed" not in line.why


@cause(
    "message-broken",
    "a message is cut, broken or written over several lines, so its receiver cannot read it",
    Level.EXACT,
    rules=_UNREADABLE,
    positive=(
        ex.session(ex.request("ping"), '<< {"jsonrpc":"2.0","id":2,"result":{"x":\\x04'),
        ex.session(ex.request("ping"), _PRETTY, "+ 30", ex.cancelled()),
        ex.session("@ bare", _PRETTY.replace("<<", ">>").replace("result", "params"), "+ 30", ex.END),
    ),
    negative=(
        ex.session(ex.request("ping"), "<< DEBUG: start", ex.result()),
        ex.session(ex.request("ping"), "<< {", "<<   level: info", "<< }", ex.result()),
    ),
)
def message_broken(facts: Facts) -> Iterator[Claim]:
    """The line begins like a message, but its end is missing, or a line break or the text of another thread is inside.
    Serializers with indentation (json.dumps(…, indent=2), WriteIndented) break lines, too.
    """
    for side in _SIDES:
        line = next((each for each in facts.sides[side].odd if _is_broken(each)), None)
        if line is None:
            continue
        cut = facts.violations("ENV119", side=side)[:1]
        why = line.why.removeprefix("not JSON: ")
        what = f"is broken ({quote(why, 80)})" if why else "is broken"
        next_step = f"let the {side} write each message as one line of JSON, in one write"
        if cut or not line.is_whole:
            what = f"was cut after {line.size} bytes"
            next_step = (
                f"look for a limit of the {side} or of a wrapper around it (4 KiB, 64 KiB, 1 MiB), and "
                f"send whole lines"
            )
            if not line.is_whole and side == CLIENT:
                next_step = "the line has no newline at its end: the client must write and flush whole lines"
        stream = f" on {_STREAMS[side]}" if facts.is_stdio else ""
        title = f"a message from the {side}{stream} {what}: {quote(text_of(line), 80)}"
        claim = _claim(facts, side, [line], title, next_step)
        claim.evidence = [*(line for violation in cut for line in violation.lines[:1]), *claim.evidence]
        yield claim
    yield from _over_lines(facts)


@cause(
    "result-not-wrapped",
    "the server writes a result without its JSON-RPC envelope",
    Level.EXACT,
    rules=_UNREADABLE,
    positive=ex.session(
        "@ bare", ex.request("initialize", 1), '<< {"protocolVersion":"2024-11-05","capabilities":{}}'
    ),
    negative=ex.session(ex.request("ping"), '<< {"level":"info","message":"ping"}', ex.result()),
)
def result_not_wrapped(facts: Facts) -> Iterator[Claim]:
    """The receiver finds a response by its id; an object without `jsonrpc`, `id` and `result` is
    not a message.
    """
    for line in facts.server.odd:
        if line.why.startswith("neither") and line.data.lstrip()[:1] == b"{" and _RESULT.search(line.data):
            title = (
                f"the server wrote a result without its envelope, so no request gets it: "
                f"{quote(text_of(line), 80)}"
            )
            next_step = 'let the server write {"jsonrpc":"2.0","id":<the id of the request>,"result":{…}}'
            yield _claim(facts, SERVER, [line], title, next_step)
            break


def _text(facts: Facts, side: str) -> list[OddLine]:
    """Return the lines of a side on stdio that are neither messages nor headers."""
    lines = [each for each in facts.sides[side].odd if each.data.strip()]
    return [each for each in lines if facts.is_stdio and not _CONTENT_LENGTH.match(each.data)]


def _is_apart(facts: Facts, symptom: Symptom, lines: list[OddLine]) -> bool:
    """Return whether a request has no response for another reason: none of the lines came while it waited.

    Text keeps a client from reading a response, and not the server from writing one.
    """
    if not isinstance(symptom, FailedRequest) or facts.server.odd_count > len(facts.server.odd):
        return False
    return not symptom.is_handshake and not any(
        symptom.asked_at <= each.at <= symptom.until for each in lines
    )


LISTENS = re.compile(
    r"(?i)(?:listening|running|started|serving|available|uvicorn).{0,40}(?:https?://|port \d|:\d{4,5}\b)"
)
"""A server that listens on a port, in the words of uvicorn, Express and others."""

_RUNS_SCRIPT = re.compile(r"(?:^|[/\\])(?:npm|pnpm|yarn|bun|npx)(?:\.cmd|\.exe)?$")
_BUILDS = re.compile(r"(?:^|[/\\])(?:mvnw?|gradlew?|dotnet|sbt|cargo)(?:\.cmd|\.bat|\.exe)?$")
_OF_RUNNER = re.compile(
    r"^\s*(?:> |\$ |yarn run v|added \d+ packages|up to date|changed \d+ packages|Progress: resolved|Lockfile is up to date|Packages: \+)"
)
"""The words of npm, pnpm and yarn on stdout before the program: the script, and the packages."""

_OF_BUILD = re.compile(
    r"^\s*(?:\[(?:INFO|WARNING)\]|> Task |> Configure |BUILD |Starting a Gradle|Determining projects|Restored |Restore complete|Building\.{3}"
    r"|Using launch settings|Build succeeded|\[info\]|\S.{0,80}(?:succeeded|warnings?\)?) .{0,30}\(\d+[.,]\d+s\)|.{1,300}: warning )"
)
"""The words of Maven, Gradle, .NET and sbt on stdout while they build."""


def _step_of_runner(facts: Facts, lines: list[OddLine]) -> str:
    """Return the next step if the text is that of the tool by which the command starts the server; else nothing."""
    command = facts.program
    texts = [text_of(each) for each in lines]
    if _BUILDS.search(command) and all(_OF_BUILD.search(text) for text in texts):
        return (
            "this is the output of the build tool: build first, and let the command start what it built (java -jar, dotnet NAME.dll, "
            "dotnet run with no build), or keep the tool quiet (mvn -q, gradle -q)"
        )
    if _RUNS_SCRIPT.search(command) and all(_OF_RUNNER.search(text) for text in texts):
        return (
            "this is the output of the package manager: start the program itself (node dist/index.js), or keep the manager quiet "
            "(npm run --silent, pnpm --silent); a package that is installed beforehand has nothing to report"
        )
    return ""


def _of_runner(facts: Facts, lines: list[OddLine], claim: Claim) -> Claim:
    """Return a claim of text on stdout, with another side and next step if a tool of the command has written it."""
    if step := _step_of_runner(facts, lines):
        is_package = "npx" in facts.program  # The user did not choose what it prints.
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


@cause(
    "stdout-noise",
    "the server writes text to stdout that is not a message",
    Level.SPECIFIC,
    rules=_UNREADABLE,
    positive=(
        ex.session(
            *('@ bare command=["npm","run","start"]', ex.initialize(), "<< > notes@1.0.0 start"),
            *("<< > node dist/index.js", ex.welcome(), ex.CLIENT_CLOSED, ex.exited(0)),
        ),
        ex.session(ex.request("ping"), "<< DEBUG: start", ex.result()),
        ex.session(
            "@ bare", ex.initialize(), "<< [INFO] Scanning for projects...", ex.CLIENT_CLOSED, ex.exited(143)
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
        claim = _claim(facts, SERVER, lines, title, _TO_STDERR)
        claim.symptoms = [each for each in claim.symptoms if not _is_apart(facts, each, lines)]
        yield _of_runner(facts, lines, claim)
    elif lines and facts.is_stdio:
        # The log of a host has the line that it could not read, and no exit status: the host may have ended the server.
        ends = [each for each in facts.of(ServerEnd) if not each.error and _is_ended_by_client(facts, each)]
        title = (
            f"the server writes text to stdout, where only messages may be: {quote(text_of(lines[0]), 80)}"
        )
        for end in ends:
            claim = _claim(facts, SERVER, lines, title, _TO_STDERR)
            claim.symptoms += [end, *end.during]
            yield _of_runner(facts, lines, claim)
        for failed in () if facts.of(ServerEnd) else facts.failed(State.UNANSWERED, State.CANCELLED):
            if failed.is_handshake and failed.took >= PATIENCE and not failed.effects:
                title = (
                    f"no answer to {failed.method} in {failed.waited}: the server wrote only text to stdout, and no message: "
                    f"{quote(text_of(lines[0]), 80)}"
                )
                next_step = f"look where it waits after this line, and {_TO_STDERR}"
                if any(LISTENS.search(text_of(each)) for each in lines):
                    next_step = "it listens on a port: start it with its option for stdio, or connect to its URL (mcpspy http --upstream URL)"
                yield _claim(facts, SERVER, lines, title, next_step)
                break


@cause(
    "stdin-noise",
    "the client writes text to the server's stdin that is not a message",
    Level.SPECIFIC,
    rules=_UNREADABLE,
    positive=ex.session(">> hello", ex.request("ping")),
)
def stdin_noise(facts: Facts) -> Iterator[Claim]:
    """Something else than an MCP client has the server's stdin, or the client writes its log there."""
    if lines := _text(facts, CLIENT):
        title = (
            f"the client writes text to the server's stdin that is not a message: "
            f"{quote(text_of(lines[0]), 80)}"
        )
        yield _claim(facts, CLIENT, lines, title, "correct the client: each line on stdin is one message")


@cause(
    "event-no-message",
    "the server sends events or bodies that are not messages",
    Level.SPECIFIC,
    rules="ENV101 ENV102",
    positive=ex.session("@ http", ex.call(), '<< {"type":"heartbeat"}', ex.done()),
)
def event_no_message(facts: Facts) -> Iterator[Claim]:
    """Clients parse the data of each event as a message. A sign of life belongs into a comment of
    SSE (`: keep-alive`).
    """
    lines = [each for each in facts.server.odd if not each.is_refusal and each.is_whole]
    if not facts.is_stdio and lines:
        more = f" ({facts.server.odd_count} times)" if facts.server.odd_count > 1 else ""
        title = f"the server sends data that is not a JSON-RPC message{more}: {quote(text_of(lines[0]), 80)}"
        next_step = "let the server send only messages as data; a sign of life is a comment (': keep-alive')"
        side, level = SERVER, Level.SPECIFIC
        symptoms: list[Symptom] = [*facts.of(ClientLeft)]
        if wrapped := _WRAPPED.match(text_of(lines[0])):
            side, level = "proxy", Level.EXACT
            title = (
                f"a response is not a JSON-RPC message, but an object whose member {quote(wrapped[1], 40)!r} has "
                f"the message as text{more}: something between client and server wrapped it"
            )
            next_step = "let the gateway pass on body and Content-Type of the server unchanged, also text/event-stream"
            symptoms += [each for each in facts.failed(State.UNANSWERED, State.CANCELLED) if not each.effects]
        symptoms += facts.violations("ENV101", "ENV102", side=SERVER)
        shown = [evidence(each.place, f"data: {text_of(each)}") for each in lines[:3]]
        yield Claim(
            title=title, next_step=next_step, symptoms=symptoms, evidence=shown, side=side, level=level
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
            lines = [found[0].evidence]
            yield Claim(title=title, next_step=next_step, symptoms=[failed], evidence=lines, side=SERVER)


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
        lines = [evidence(place, f"stdout: {text}")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=SERVER)
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
        ex.session("@ bare", ex.initialize(), '<< {"status":"error","message":"bad request"}', "+ 9", ex.END),
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
        if failed.refusal is not None and failed.refusal.is_plain:
            # Its body may have come later than its head.
            until = max(until, failed.refusal.ended_at or facts.last_at)
        found = next((each for each in odd if failed.asked_at <= each.at <= until), None)
        # A heartbeat is an object, too: the carrier has ended with nothing else in it.
        is_over = failed.refusal is not None and (failed.refusal.is_plain or failed.refusal.ended_at)
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
        if _LACKS_TOKEN.search(words) and failed.refusal and not failed.refusal.has_token:
            title += "; the request has no Authorization"
            side = "configuration"
            next_step = (
                "set the header Authorization in the host's configuration, in the form that this host reads (mcpspy "
                "hosts lists the members that it does not know); the server should answer 401"
            )
        symptoms = [failed, *facts.of(ClientLeft), *facts.violations("ENV101", "ENV102", side=SERVER)]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)
