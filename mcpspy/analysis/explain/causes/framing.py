"""The bytes of a side cannot be read by the other: framing, encoding, broken messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.leaving import SECONDS_TO_LEAVE
from mcpspy.analysis.explain.causes.requests import errors, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.side_facts import OddLine
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    IgnoredResponse,
    ServerEnd,
    Symptom,
)
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session.exchange import State

CONTENT_LENGTH = re.compile(rb"(?i)^\s*Content-Length:\s*\d+\s*$")
_UTF_16 = re.compile(rb"^(?:\xff\xfe|\xfe\xff)|^\x00?[{\[\"]?\x00.\x00")
BEGUN = re.compile(rb'(?s)^\s*[{\[].*"(?:jsonrpc|id)"')
_RESULT = re.compile(rb'"(?:protocolVersion|serverInfo|tools|content|resources|prompts|capabilities)"')
_STREAMS = {CLIENT: "stdin", SERVER: "stdout"}
_SIDES = (CLIENT, SERVER)
LARGE_LINE = 1 << 20
"""Bytes of a message beyond which limits of clients are the reason why they end a session."""

UNREADABLE = "ENV101 ENV102 ENV103 ENV110 ENV111 ENV113 ENV118 ENV119"


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
            case FailedRequest(effects=[], carrier=None):
                is_without = symptom.answer_at is None or symptom.code == -32700
                if is_without and symptom.at + max(symptom.took, 0.0) >= since:
                    found.append(symptom)
            case ClientLeft() | IgnoredResponse() if side == SERVER:
                found.append(symptom)
    return [*found, *facts.violations(*UNREADABLE.split(), side=side)]


def claim_of_lines(facts: Facts, side: str, lines: list[OddLine], title: str, next_step: str) -> Claim:
    symptoms, shown = _affected(facts, side, lines[0].at), _lines(side, lines)
    return Claim(title, next_step, symptoms, evidence=shown, side=side)


@cause(
    "content-length",
    "one side frames its messages with Content-Length headers",
    Level.EXACT,
    rules=UNREADABLE,
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
        lines = [each for each in facts.sides[side].odd if CONTENT_LENGTH.match(each.data)]
        # Other headers beside it are those of an HTTP exchange that a program prints.
        others = [each for each in facts.sides[side].odd if _OTHER_HEADER.match(each.data)]
        if facts.is_stdio and lines and not others:
            title = (
                f"the {side} writes Content-Length headers, and the {other(side)} expects one message "
                f"per line"
            )
            next_step = f"change the {side} to messages that end with a newline, or update its SDK"
            claim = claim_of_lines(facts, side, lines, title, next_step)
            if side == CLIENT:  # It does not understand the server's messages, either.
                claim.symptoms += [each for each in facts.of(ClientLeft) if each not in claim.symptoms]
                claim.symptoms += [each for each in facts.of(ServerEnd) if not each.has_answered]
            yield claim


_OTHER_HEADER = re.compile(
    rb"(?i)^\s*(?!content-(?:length|type:\s*application/vscode))[a-z][a-z-]{2,40}:\s*\S"
)


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
    rules=UNREADABLE,
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
                yield claim_of_lines(facts, side, [line], title, next_step)
                break
        else:
            for violation in facts.violations("ENV110", "ENV111", side=side):
                if all(each.place in texts for each in violation.findings):
                    continue
                title = f"the {side} does not write UTF-8: {quote(violation.findings[0].message)}"
                next_step = f"let the {side} write UTF-8 without a byte order mark (PYTHONUTF8=1 for Python)"
                symptoms = _affected(facts, side, violation.at)
                yield Claim(title, next_step, symptoms, evidence=violation.lines[:2], side=side)


@cause(
    "text-misread",
    "the server reads what it is sent in another encoding than UTF-8",
    Level.EXACT,
    positive=(
        ex.session(ex.request("tools/call", name="a", arguments={"text": "Žižkov"}), ex.done(2, "Ĺ˝iĹľkov")),
        ex.session(
            ex.request("tools/call", name="a", arguments={"path": "/srv/Žižkov"}),
            ex.done(2, "No such file or directory: '/srv/Ĺ˝iĹľkov'", isError=True),
        ),
        ex.session(
            ex.request("tools/call", name="a", arguments={"text": "会议纪要明天好"}),
            ex.done(2, "Typed ???????"),
        ),
    ),
    negative=ex.session(
        ex.request("tools/call", name="a", arguments={"text": "Žižkov"}), ex.done(2, "Žižkov")
    ),
)
def text_misread(facts: Facts) -> Iterator[Claim]:
    """Often nothing fails: the text is stored wrong, and is seen when it comes back. Each character
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
        if not text.encoding:
            title = (
                f"the client sent {quote(text.sent)!r}, and the server has {quote(text.received)!r}: it passes text through a code page "
                f"that does not have these characters"
            )
            next_step = (
                "let the server, and each program that it starts, read and write UTF-8: PYTHONUTF8=1 for Python, [Console]::OutputEncoding "
                "= [Text.UTF8Encoding]::new($false) for PowerShell"
            )
        lines = [evidence(place, f"{text.received} in place of {text.sent}")]
        # An error that repeats the word is about what the server has misread, such as a path that does not exist.
        words = (text.received, json.dumps(text.received)[1:-1])
        failed = [each for each in errors(facts) if any(word in each.words for word in words)]
        yield Claim(title, next_step, [*failed], evidence=lines, side=SERVER)


_OPENS = re.compile(rb"^\s*[{\[]\s*$|^\s*\{\s*\"\w+\"\s*:[^}]*,\s*$")
_MEMBER = re.compile(rb"^\s*\"(?:jsonrpc|id|method|result|error)\"\s*:")
_PRETTY = ex.session(*("<< {", '<<   "jsonrpc": "2.0",', '<<   "id": 2,', '<<   "result": {}', "<< }"))


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
                yield claim_of_lines(facts, side, [line], title, next_step)
                break


_JOINED = re.compile(rb"\}\s*\{\s*\"(?:jsonrpc|id|method|result|error)\"\s*:")
"""The end of a message, and the begin of the next one."""


LINE_LIMIT = 65_536
"""Bytes of a line that some readers do not exceed (asyncio, Go's bufio.Scanner)."""


def is_left_unread(facts: Facts, line: OddLine) -> bool:
    """Return whether a long line or event has no end because the client read no more."""
    if line.is_whole or line.size <= LINE_LIMIT or line not in facts.server.odd:
        return False
    if not facts.is_stdio:
        return any(
            failed.carrier is not None
            and failed.carrier.hung_up == CLIENT
            and failed.carrier.took < SECONDS_TO_LEAVE
            and failed.asked_at <= line.at <= failed.until
            for failed in facts.failed(State.INCOMPLETE)
        )
    return facts.client.closed_at is not None and any(
        note.fields.get("by") == CLIENT
        and note.fields.get("pipe") == "stdout"
        and note.fields.get("undelivered")
        for note, _ in facts.notes.get("closed", [])
    )


def _is_broken(line: OddLine) -> bool:
    is_json = line.why.startswith(("neither", "not an object"))
    return bool(BEGUN.search(line.data)) and not is_json and "never completed" not in line.why


@cause(
    "message-broken",
    "a message is cut, broken or written over several lines, so its receiver cannot read it",
    Level.EXACT,
    rules=UNREADABLE,
    positive=(
        ex.session(ex.request("ping"), '<< {"jsonrpc":"2.0","id":2,"result":{"x":\\x04'),
        ex.session(ex.request("ping"), _PRETTY, "+ 30", ex.cancelled()),
        ex.session('>> {"jsonrpc":"2.0","id":2,"method":"ping"}{"jsonrpc":"2.0","id":3,"method":"ping"}'),
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
        if line is None or is_left_unread(facts, line):
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
            stopped = [note.at for note, _ in facts.notes.get("signal", []) if note.at <= line.at + PATIENCE]
            if side == SERVER and stopped:
                what = f"was not complete after {line.size:,} bytes, when the host stopped the server by a signal"
                next_step = (
                    "look in the client for its limit of the size of a message, and raise it; or let the server send less at once (pages, "
                    "a file, a resource link)"
                )
            if not line.is_whole and side == CLIENT:
                next_step = "the line has no newline at its end: the client must write and flush whole lines"
        is_joined = _JOINED.search(line.data) is not None and not cut
        if is_joined:
            what = "has another one on its line, so the receiver reads neither"
            next_step = (
                f"let the {side} write each message and its newline in one write, under a lock: several threads, or several clients "
                f"that share one server behind a proxy, wrote at the same time"
            )
        stream = f" on {_STREAMS[side]}" if facts.is_stdio else ""
        title = f"a message from the {side}{stream} {what}: {quote(text_of(line), 80)}"
        claim = claim_of_lines(facts, side, [line], title, next_step)
        claim.evidence = [*(line for violation in cut for line in violation.lines[:1]), *claim.evidence]
        if side == SERVER and cut and "by a signal" in title:
            claim.side = CLIENT if line.size > LARGE_LINE else ""
        if is_joined and side == CLIENT:
            claim.side = ""  # A proxy that several clients share writes to the same pipe.
        yield claim
    yield from _over_lines(facts)


@cause(
    "result-not-wrapped",
    "the server writes a result without its JSON-RPC envelope",
    Level.EXACT,
    rules=UNREADABLE,
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
            yield claim_of_lines(facts, SERVER, [line], title, next_step)
            break


REACTION = 0.1
"""Seconds within which a client that fails at a line ends the session."""


def _ended_at_line(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a client that ended the session at a long line."""
    server, closed_at = facts.server, facts.client.closed_at
    for note, place in facts.notes.get("oversized", []):
        size = f"{note.fields.get('size'):,} bytes"
        if note.fields.get("from") == SERVER and closed_at is not None and closed_at <= note.at + REACTION:
            title = f"the client closed the session while a line of {size} came from the server"
            next_step = (
                "let the server send less in one result (an image of lower resolution, pages, a link to "
                "a resource): this client reads no line as long as that"
            )
            symptoms, lines = facts.of(ServerEnd), [evidence(place, f"a line of {size}")]
            yield Claim(title, next_step, [*symptoms], evidence=lines, side=SERVER)
            return
    for sent, place in facts.notes.get("signal", [])[:1]:
        after = sent.at - (server.last_at or sent.at)
        if facts.is_stdio and server.last_size > LINE_LIMIT and 0 <= after <= REACTION:
            size = f"{server.last_size:,} bytes"
            title = (
                f"the client ended the server {duration(after)} after a line of {size}, without a "
                f"further request"
            )
            next_step = "if the host failed there: its reader may have a limit for a line; raise it"
            lines = [evidence(server.last_place, f"{server.last_message}: {size}")]
            lines += [evidence(place, f"signal {sent.fields.get('signal')}")]
            yield Claim(title, next_step, [], evidence=lines, side=CLIENT, is_observation=True)


_UNDELIVERED = ex.note("closed", by="client", pipe="stdout", undelivered=65_536)
_TERMINATED = (ex.note("signal", signal="SIGTERM"), ex.note("exit", code=None, signal="SIGTERM"))


@cause(
    "line-not-read",
    "the client stopped reading, or ended the session, at a long line",
    Level.EXACT,
    rules="ENV101 ENV113 ENV119 LIFE202",
    positive=(
        ex.session(
            ex.call(),
            f'<< {{"result":{"x" * 70_000}\\x04',
            "+ 9",
            ex.CLIENT_CLOSED,
            _UNDELIVERED,
            ex.exited(0),
        ),
        ex.session(
            *("+ 0.01", ex.call(), f'<< {{"result":{"x" * 70_000}\\x04'),
            *(_UNDELIVERED, ex.CLIENT_CLOSED, ex.exited(0)),
        ),
        ex.session(ex.call(), "+ 0.05", ex.done(2, "x" * 70_000), *_TERMINATED),
    ),
    negative=(
        ex.session(ex.call(), f'<< {{"result":{"x" * 70_000}\\x04', "+ 9", ex.CLIENT_CLOSED, ex.exited(0)),
        ex.session(ex.call(), "+ 0.05", ex.done(2, "x"), *_TERMINATED),
    ),
)
def line_not_read(facts: Facts) -> Iterator[Claim]:
    """A reader with a limit (64 KiB in asyncio and in Go's bufio.Scanner, 10 MiB in some hosts) ends at a longer line, and
    the client with it; or the rest of the client does not notice, and each later request waits in vain.
    """
    yield from _ended_at_line(facts)
    unread = [each for each in facts.server.odd if is_left_unread(facts, each)]
    if not unread or facts.client.closed_at is None or not facts.is_stdio:
        return
    line = unread[0]
    waited = facts.client.closed_at - line.at
    waiting = [*without_response(facts, CLIENT), *facts.failed(State.INCOMPLETE)]
    waiting = [each for each in waiting if each.until >= line.at]
    about = f", probably the response to {waiting[0].about}," if waiting else ""
    title = (
        f"the client stopped reading in a line of more than {line.size:,} bytes{about} and kept the session open for "
        f"{duration(waited)}: it took nothing more from the server"
    )
    if waited < SECONDS_TO_LEAVE:
        title = f"the client went away in the middle of a line of more than {line.size:,} bytes{about.rstrip(',')}"
    next_step = (
        "raise the limit of the client's reader for a line (Go: Scanner.Buffer or bufio.Reader; Python asyncio: limit=); "
        "until then let the server send less in one result"
    )
    if waited < SECONDS_TO_LEAVE:
        next_step = f"look why the client ended there, in its log or its last output: a crash, or its user; if it failed at the line, {next_step}"
    symptoms = [*waiting, *facts.violations("ENV101", "ENV113", "ENV119", "LIFE202", side=SERVER)]
    lines = [evidence(line.place, f"a line of {line.size:,} bytes, of which the client did not read the end")]
    yield Claim(title, next_step, symptoms, evidence=lines, side=CLIENT)
