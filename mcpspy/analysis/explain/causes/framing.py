"""The bytes of a side cannot be read by the other: framing, encoding, text between the messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.side_facts import OddLine
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, IgnoredResponse, Symptom
from mcpspy.core.protocol.spec import CLIENT, SERVER, other

_CONTENT_LENGTH = re.compile(rb"(?i)^\s*Content-Length:\s*\d+\s*$")
_UTF_16 = re.compile(rb"^(?:\xff\xfe|\xfe\xff)|^\x00?[{\[\"]?\x00.\x00")
_STREAMS = {CLIENT: "stdin", SERVER: "stdout"}


def _lines(side: str, lines: list[OddLine]) -> list[EvidenceLine]:
    return [evidence(each.place, f"{_STREAMS[side]}: {_text(each)}") for each in lines[:3]]


def _text(line: OddLine) -> str:
    return line.data.decode("utf-8", "backslashreplace")


def _affected(facts: Facts, side: str, since: float) -> list[Symptom]:
    """Return what unreadable bytes of a side bring about: its requests without a response, those that wait for it, and
    the end of the client.
    """
    found: list[Symptom] = []
    for symptom in facts.symptoms:
        match symptom:
            case FailedRequest(effects=[], refusal=None) if (
                symptom.answer_at is None or symptom.code == -32700
            ):
                if symptom.at + max(symptom.took, 0.0) >= since:
                    found.append(symptom)
            case ClientLeft() | IgnoredResponse() if side == SERVER:
                found.append(symptom)
    codes = ("ENV101", "ENV102", "ENV103", "ENV110", "ENV111", "ENV113", "ENV118", "ENV119")
    return [*found, *facts.violations(*codes, side=side)]


@cause(
    "content-length",
    "one side frames its messages with Content-Length headers",
    level=Level.EXACT,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n<< Content-Length: 36\n<< \n<< {"jsonrpc":"2.0","id":1,"result":{}}',
    negative='@ bare\n> {"id":1,"method":"initialize","params":{}}\n<< Content: 36',
)
def content_length(facts: Facts) -> Iterator[Claim]:
    """The Language Server Protocol frames its messages so. MCP on stdio has one message per line, without headers."""
    for side in (CLIENT, SERVER):
        lines = [each for each in facts.sides[side].odd if _CONTENT_LENGTH.match(each.data)]
        if facts.is_stdio and lines:
            yield Claim(
                title=f"the {side} writes Content-Length headers, and the {other(side)} expects one message per line",
                next_step=f"change the {side} to messages that end with a newline (MCP on stdio), or update its SDK",
                symptoms=_affected(facts, side, lines[0].at),
                evidence=_lines(side, lines),
                side=side,
            )


@cause(
    "wrong-encoding",
    "one side does not write UTF-8",
    level=Level.EXACT,
    positive='@ bare\n<< \\xff\\xfe{\\x00"\\x00j\\x00\n> {"id":1,"method":"ping"}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def wrong_encoding(facts: Facts) -> Iterator[Claim]:
    """Windows PowerShell writes UTF-16 or a byte order mark, and Python on Windows the code page of the system."""
    for side in (CLIENT, SERVER):
        for line in facts.sides[side].odd:
            kind = ""
            if _UTF_16.match(line.data) or line.data.count(b"\0") > len(line.data) // 4:
                kind = "UTF-16"
            elif line.data.startswith(b"\xef\xbb\xbf"):
                kind = "a byte order mark before UTF-8"
            elif "UTF-8" in line.why:
                kind = "bytes that are not UTF-8"
            if kind and facts.is_stdio:
                yield Claim(
                    title=f"the {side} writes {kind}, and MCP is UTF-8 without a mark",
                    next_step=f"let the {side} write UTF-8: PYTHONUTF8=1 for Python,"
                    " [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false) for PowerShell",
                    symptoms=_affected(facts, side, line.at),
                    evidence=_lines(side, [line]),
                    side=side,
                )
                break
        else:
            for violation in facts.violations("ENV110", "ENV111", side=side):
                if facts.is_stdio:
                    yield Claim(
                        title=f"the {side} does not write UTF-8: {quote(violation.findings[0].message)}",
                        next_step=f"let the {side} write UTF-8 without a byte order mark (PYTHONUTF8=1 for Python)",
                        symptoms=_affected(facts, side, violation.at),
                        evidence=violation.lines[:2],
                        side=side,
                    )


@cause(
    "text-misread",
    "the server reads what it is sent in another encoding than UTF-8",
    level=Level.EXACT,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"text":"Žižkov"}}}
        < {"id":2,"result":{"content":[{"type":"text","text":"Ĺ˝iĹľkov"}]}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"text":"Žižkov"}}}
        < {"id":2,"result":{"content":[{"type":"text","text":"Žižkov"}]}}
    """,
)
def text_misread(facts: Facts) -> Iterator[Claim]:
    """Nothing fails: the text is stored wrong, and is seen when it comes back. Each character outside ASCII is two or more."""
    if (changed := facts.sent_text.changed) is None:
        return
    text, place = changed
    yield Claim(
        title=f"the client sent {quote(text.sent)!r}, and the server has {quote(text.received)!r}: it reads UTF-8 as {text.encoding}",
        next_step="let the server read stdin as UTF-8 (Python: PYTHONUTF8=1 by env in the host's configuration), and repair what it"
        " has stored",
        symptoms=[],
        evidence=[evidence(place, f"{text.received} in place of {text.sent}")],
        side=SERVER,
    )


@cause(
    "message-broken",
    "a message is cut or broken, so its receiver cannot read it",
    level=Level.EXACT,
    positive='> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":\\x04',
    negative='> {"id":2,"method":"ping"}\n<< DEBUG: start\n< {"id":2,"result":{}}',
)
def message_broken(facts: Facts) -> Iterator[Claim]:
    """The line begins like a message and is not valid JSON: its end is missing, it has a line break or NaN inside, or other text
    was written into it by a second thread.
    """
    for side in (CLIENT, SERVER):
        for line in facts.sides[side].odd:
            is_message = line.data.lstrip()[:1] in (b"{", b"[") and (
                b'"jsonrpc"' in line.data or b'"id"' in line.data
            )
            if (
                not is_message
                or line.why.startswith(("neither", "not an object"))
                or "never completed" in line.why
            ):
                continue
            cut = next((each for each in facts.violations("ENV119", side=side)), None)
            why = line.why.removeprefix("not JSON: ")
            what = "was cut" if cut is not None or not line.is_whole else "is broken"
            size = f" after {line.size} bytes" if what == "was cut" else f" ({quote(why, 80)})" if why else ""
            stream = f" on {_STREAMS[side]}" if facts.is_stdio else ""
            next_step = f"let the {side} write each message as one line of JSON, in one write"
            if what == "was cut":
                next_step = f"look for a limit of the {side} or of a wrapper around it (4 KiB, 64 KiB, 1 MiB), and send whole lines"
                if not line.is_whole and side == CLIENT:
                    next_step = (
                        "the line has no newline at its end: the client must write and flush whole lines"
                    )
            yield Claim(
                title=f"a message from the {side}{stream} {what}{size}: {quote(_text(line), 80)}",
                next_step=next_step,
                symptoms=_affected(facts, side, line.at),
                evidence=[*(cut.lines[:1] if cut is not None else []), *_lines(side, [line])],
                side=side,
            )
            break


_RESULTS = (
    b'"protocolVersion"',
    b'"serverInfo"',
    b'"tools"',
    b'"content"',
    b'"resources"',
    b'"prompts"',
    b'"capabilities"',
)


@cause(
    "result-not-wrapped",
    "the server writes a result without its JSON-RPC envelope",
    level=Level.EXACT,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n<< {"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"a","version":"1"}}',
    negative='> {"id":2,"method":"ping"}\n<< {"level":"info","message":"ping"}\n< {"id":2,"result":{}}',
)
def result_not_wrapped(facts: Facts) -> Iterator[Claim]:
    """The receiver finds a response by its id; an object without `jsonrpc`, `id` and `result` is not a message."""
    for line in facts.server.odd:
        if (
            line.why.startswith("neither")
            and line.data.lstrip()[:1] == b"{"
            and any(sign in line.data for sign in _RESULTS)
        ):
            yield Claim(
                title=f"the server wrote a result without its envelope, so no request gets it: {quote(_text(line), 80)}",
                next_step='let the server write {"jsonrpc":"2.0","id":<the id of the request>,"result":{…}}',
                symptoms=_affected(facts, SERVER, line.at),
                evidence=_lines(SERVER, [line]),
                side="server",
            )
            break


@cause(
    "stdout-noise",
    "the server writes text to stdout that is not a message",
    level=Level.SPECIFIC,
    positive='> {"id":2,"method":"ping"}\n<< DEBUG: start\n< {"id":2,"result":{}}',
    negative='> {"id":2,"method":"ping"}\n* stderr {"text":"DEBUG: start"}\n< {"id":2,"result":{}}',
)
def stdout_noise(facts: Facts) -> Iterator[Claim]:
    """`print`, `console.log`, a banner or a library's logger: stdout is reserved for messages."""
    lines = [each for each in facts.server.odd if not _CONTENT_LENGTH.match(each.data) and each.data.strip()]
    if not facts.is_stdio or not lines or facts.server.messages == 0:
        return
    before = (facts.server.first_at or 0.0) > lines[0].at
    when = "before its first message" if before else "between its messages"
    yield Claim(
        title=f"the server writes text to stdout {when}, where only messages may be: {quote(_text(lines[0]), 80)}",
        next_step="write logs to stderr (print(…, file=sys.stderr), console.error)",
        symptoms=_affected(facts, SERVER, lines[0].at),
        evidence=_lines(SERVER, lines),
        side="server",
    )


@cause(
    "event-no-message",
    "the server sends events or bodies that are not messages",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        << {"type":"heartbeat"}
        < {"id":2,"result":{"content":[]}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def event_no_message(facts: Facts) -> Iterator[Claim]:
    """Clients parse the data of each event as a message. A sign of life belongs into a comment of SSE (`: keep-alive`)."""
    lines = [each for each in facts.server.odd if not each.is_refusal and each.is_whole]
    if not facts.is_stdio and lines:
        more = f" ({facts.server.odd_count} times)" if facts.server.odd_count > 1 else ""
        yield Claim(
            title=f"the server sends data that is not a JSON-RPC message{more}: {quote(_text(lines[0]), 80)}",
            next_step="let the server send only messages as data; a sign of life is a comment of SSE (': keep-alive')",
            symptoms=[*facts.of(ClientLeft), *facts.violations("ENV101", "ENV102", side=SERVER)],
            evidence=[evidence(each.place, f"data: {_text(each)}") for each in lines[:3]],
            side="server",
        )


@cause(
    "stdin-noise",
    "the client writes text to the server's stdin that is not a message",
    level=Level.SPECIFIC,
    positive='>> hello\n> {"id":2,"method":"ping"}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def stdin_noise(facts: Facts) -> Iterator[Claim]:
    """Something else than an MCP client has the server's stdin, or the client writes its log there."""
    lines = [each for each in facts.client.odd if each.data.strip() and not _CONTENT_LENGTH.match(each.data)]
    if facts.is_stdio and lines:
        yield Claim(
            title=f"the client writes text to the server's stdin that is not a message: {quote(_text(lines[0]), 80)}",
            next_step="correct the client: each line on stdin is one message",
            symptoms=_affected(facts, CLIENT, lines[0].at),
            evidence=_lines(CLIENT, lines),
            side="client",
        )
