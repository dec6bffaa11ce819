"""The end of a session: a server that crashed, and a client that left because of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, ServerEnd
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.spec import SERVER

REJECTED = frozenset(
    """ENV101 ENV102 ENV104 ENV105 ENV106 ENV108 ENV110 ENV111 ENV117 ENV118 ENV201 ENV204 ENV205 ENV206 ENV207 DATA101 DATA102 DATA103
    DATA201 DATA202 DATA206 DATA302 DATA303 DATA304 DATA401 DATA402 DATA403 DATA406 DATA503 LIFE114 LIFE302 LIFE303 MOD201
    HTTP302 HTTP303""".split()
)
"""Rules whose findings make clients reject a message: their parsers check its form."""


LINE_LIMIT = 65_536
"""Bytes of a line that some readers do not exceed."""

REACTION = 0.1
"""Seconds within which a client that fails at a line ends the session."""

SLOW_SECONDS = 4.0
"""Seconds after the end of stdin within which a busy server may still be ending itself."""

_NOTIFICATION = re.compile(r"notifications/[\w/]+")
_BROKEN_PIPE = re.compile(
    r"(?i)\bEPIPE\b|broken ?pipe|write after end|ERR_STREAM_(?:WRITE_AFTER_END|DESTROYED)"
)


@cause(
    "client-gone-first",
    "the client went away first, and the server's error follows from that",
    level=Level.EXACT,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        * eof {"from":"client"}
        + 0.1
        * stderr {"text":"BrokenPipeError: [Errno 32] Broken pipe"}
        * exit {"code":1,"signal":null}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        * stderr {"text":"BrokenPipeError: [Errno 32] Broken pipe"}
        * exit {"code":1,"signal":null}
    """,
)
def client_gone_first(facts: Facts) -> Iterator[Claim]:
    """A server that writes to a pipe that no one reads any more ends with EPIPE: it is not to blame."""
    for end in facts.of(ServerEnd):
        gone = [
            (note.at, place)
            for note, place in facts.notes.get("closed", [])
            if note.fields.get("by") == "client" and note.fields.get("pipe") == "stdout"
        ]
        if facts.client.closed_at is not None:
            gone.append((facts.client.closed_at, facts.client.closed_place))
        text = "" if end.named is None else end.named.text
        first = min(gone, default=None)
        if (
            first is None
            or first[0] > end.at + 0.5
            or not (_BROKEN_PIPE.search(text) or end.signal == "SIGPIPE")
        ):
            continue
        after = (
            f", {duration(first[0] - end.during[0].asked_at)} after {end.during[0].about}"
            if end.during
            else ""
        )
        yield Claim(
            title=f"the client went away first{after}: the server then failed to write its response ({quote(text) or end.words})",
            next_step="look into the client's log why it left; the server could handle the closed pipe more quietly",
            symptoms=[end, *end.during],
            evidence=[evidence(first[1], "the client closed its end")],
            side="client",
        )


@cause(
    "crash",
    "the server ended in the middle of the session",
    level=Level.SPECIFIC,
    positive='> {"id":2,"method":"ping"}\n* stderr {"text":"TypeError: x is not a function"}\n* exit {"code":1,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def crash(facts: Facts) -> Iterator[Claim]:
    """An error that nothing caught, a kill, or a limit of memory."""
    for end in facts.of(ServerEnd):
        if not end.has_answered:
            continue
        calls = f" while {counted(len(end.during), 'request')} had no response" if end.during else ""
        if len(end.during) == 1:
            calls = f" during {end.during[0].about}"
        named = end.named
        frame = f" ({named.frame})" if named is not None and named.frame else ""
        title = f"the server ended{calls}, {end.words if end.signal else f'with {end.words}'}"
        next_step = (
            "mcpspy replay repeats the session against the server; its last lines on stderr say where it was"
        )
        lines = []
        if named is not None:
            title += f": {quote(named.text)}{frame}"
            next_step = "correct what this error names" + (f" at {named.frame}" if named.frame else "")
            lines = [evidence(named.line.place, f"stderr: {named.text}")]
        elif end.code == 0:
            title = f"the server ended by itself with exit code 0{calls}, although the client had not closed its stdin"
            next_step = "let the server wait until its transport closes: its main function returns too early"
        elif end.signal == "SIGKILL":
            next_step = "something killed it: a limit of memory (dmesg, docker inspect), or a supervisor"
        yield Claim(
            title=title, next_step=next_step, symptoms=[end, *end.during, *facts.violations("LIFE401", "LIFE403", "LIFE404")],
            evidence=lines, side=SERVER,
        )  # fmt: skip


@cause(
    "client-left",
    "the client left right after a message that it does not accept",
    level=Level.EXACT,
    positive='> {"id":2,"method":"tools/list"}\n+ 0.01\n< {"id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":null}}]}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"tools/list"}\n+ 0.01\n< {"id":2,"result":{"tools":[]}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def client_left(facts: Facts) -> Iterator[Claim]:
    """A parser that rejects a message often ends the session without a word. What lint finds in the last message, or in a
    message before the handshake was complete, is then the suspect.
    """
    for left in facts.of(ClientLeft):
        if any(
            isinstance(each, RefusedExchange | FailedRequest) and each.at > left.at for each in facts.symptoms
        ):
            continue  # What was refused after the message is why it left.
        recent = [
            finding
            for violation in facts.findings.values()
            for finding in violation.findings
            if finding.code in REJECTED and finding.side == SERVER and left.at - 2.0 <= finding.at <= left.at
        ]
        suspects = sorted(recent, key=lambda finding: -finding.at)
        if suspects:
            first = suspects[0]
            codes = {each.code for each in suspects}
            is_last = first.place == left.place
            after = (
                f"{duration(left.after)} after {left.message}"
                if is_last
                else f"soon after {first.about or left.message}"
            )
            title = f"the client left {after}: {quote(first.message)}"
            next_step = f"correct the form of this message: {first.code} (mcpspy lint explains it)"
            named = _NOTIFICATION.search(first.excerpt) if '"error"' in first.excerpt else None
            if named is not None and facts.client.methods[named[0]]:
                title = (
                    f"the client left after the server had answered {named[0]} with an error, under an id that is not its own:"
                    f" {quote(first.message)}"
                )
                next_step = "let the server answer only messages with an id: a notification gets no response, not even an error"
            yield Claim(
                title=title,
                next_step=next_step,
                symptoms=[left, *facts.violations(*codes, side=SERVER)],
                evidence=[
                    evidence(each.place, f"{each.code} {each.message} | {each.excerpt}")
                    for each in suspects[:3]
                ],
                side=SERVER,
            )
        elif not left.is_initialized and facts.server.methods and not facts.session.is_modern:
            methods = ", ".join(sorted(facts.server.methods))
            yield Claim(
                title=f"the client left {duration(left.after)} after {left.message}, without notifications/initialized:"
                f" the server had sent {methods} before the response to initialize",
                next_step="let the server send nothing but the response, pings and log messages before notifications/initialized;"
                " some clients take the first message for the response",
                symptoms=[left],
                side=SERVER,
            )
        elif not left.is_initialized and not facts.session.is_modern and facts.client.methods["initialize"]:
            how = " (its lines end with CR LF)" if facts.server.carriage_returns else ""
            yield Claim(
                title=f"the client did not continue after {left.message}: no notifications/initialized, no request{how}",
                next_step="the client did not understand or accept this response: look into its log at this time; compare the"
                " revision, capabilities and line ends of the response with what the client expects",
                symptoms=[left],
                side="",
                level=Level.GENERAL,
            )


@cause(
    "ended-after-long-line",
    "the client ended the server right after a long line",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        + 0.05
        < {"id":2,"result":{"content":[{"type":"text","text":"%s"}]}}
        * signal {"signal":"SIGTERM"}
        * exit {"code":null,"signal":"SIGTERM"}
    """
    % ("x" * 70_000),
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        + 0.05
        < {"id":2,"result":{"content":[{"type":"text","text":"x"}]}}
        * signal {"signal":"SIGTERM"}
        * exit {"code":null,"signal":"SIGTERM"}
    """,
)
def ended_after_long_line(facts: Facts) -> Iterator[Claim]:
    """Readers with a limit for a line (asyncio: 64 KiB, Go's bufio.Scanner: 64 KiB) fail at a longer one, and the client ends."""
    server = facts.server
    for note, place in facts.notes.get("oversized", []):
        closed_at = facts.client.closed_at
        if note.fields.get("from") == SERVER and closed_at is not None and closed_at <= note.at + REACTION:
            yield Claim(
                title=f"the client closed the session while a line of {note.fields.get('size'):,} bytes came from the server",
                next_step="let the server send less in one result (an image of lower resolution, pages, a link to a resource): this"
                " client reads no line as long as that",
                symptoms=facts.of(ServerEnd),
                evidence=[evidence(place, f"a line of {note.fields.get('size'):,} bytes")],
                side=SERVER,
                level=Level.EXACT,
            )
            return
    signals = facts.notes.get("signal", [])
    if server.last_at is None or server.last_size <= LINE_LIMIT or not signals or not facts.is_stdio:
        return
    note, place = signals[0]
    if 0 <= note.at - server.last_at <= REACTION:
        yield Claim(
            title=f"the client ended the server {duration(note.at - server.last_at)} after a line of {server.last_size:,} bytes,"
            " without a further request",
            next_step="if the host failed there: its reader may have a limit for a line (asyncio and Go's Scanner: 64 KiB); raise it",
            symptoms=[],
            evidence=[
                evidence(server.last_place, f"{server.last_message}: {server.last_size:,} bytes"),
                evidence(place, f"signal {note.fields.get('signal')}"),
            ],
            side="client",
            is_observation=True,
        )


@cause(
    "server-did-not-end",
    "the server did not end when the client closed its stdin",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * eof {"from":"client"}
        * signal {"signal":"SIGTERM"}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
)
def server_did_not_end(facts: Facts) -> Iterator[Claim]:
    """Threads, timers, child processes or an HTTP listener keep it running; hosts then kill it, or leave it behind."""
    left_at = facts.client.closed_at
    if left_at is not None and not facts.violations("LIFE402") and facts.exit is None:
        for note, place in facts.notes.get("signal", []):
            if note.at - left_at > PATIENCE:
                yield Claim(
                    title=f"the server still ran {duration(note.at - left_at)} after the client had closed its stdin; then came {note.fields.get('signal')}",
                    next_step="end the server at the end of stdin, also its threads, timers and child processes",
                    symptoms=[],
                    evidence=[evidence(place, f"signal: {note.fields.get('signal')}")],
                    side=SERVER,
                )
                break
    for violation in facts.violations("LIFE402"):
        # Hosts close stdin, wait about 2 s and send SIGTERM: a server that then ends at once has only been slow.
        waited = 0.0 if facts.exit is None or left_at is None else facts.exit.at - left_at
        was_killed = facts.exit is not None and facts.exit.fields.get("signal") == "SIGKILL"
        is_slow = waited < SLOW_SECONDS and not was_killed
        yield Claim(
            title=violation.findings[0].message,
            next_step="end the server at the end of stdin, also its threads, timers and child processes",
            symptoms=[violation],
            side=SERVER,
            is_observation=is_slow or bool(facts.failed()),
        )
