"""Failures that no other cause explains, in the words of the peer."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, named_error, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import other
from mcpspy.core.session.exchange import State


@cause(
    "mcpspy-rule",
    "a rule or a viewer of mcpspy changed, held or dropped a message",
    level=Level.DELIBERATE,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        * rule {"action":"drop","rule":"1","from":"client","id":"2","method":"tools/call","subject":"a"}
        > {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        > {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}
    """,
)
def mcpspy_rule(facts: Facts) -> Iterator[Claim]:
    """--rule, --rules, --call-timeout, a script or a viewer acted on this very request."""
    for failed in facts.failed():
        if failed.effects:
            yield Claim(
                title=f"mcpspy acted on {failed.about}: {quote('; '.join(dict.fromkeys(failed.effects)))}",
                next_step="remove --rule, --rules, --script and --call-timeout, and try again",
                symptoms=[failed],
                side="mcpspy",
            )


@cause(
    "request-failed",
    "a request failed, for the reason that its error names",
    level=Level.QUOTE,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32603,"message":"boom"}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def request_failed(facts: Facts) -> Iterator[Claim]:
    """The error is the best explanation there is."""
    for failed in facts.failed():
        receiver = other(failed.side)
        words = failed.words or failed.why
        kind = "tool error" if failed.state in (State.TOOL_ERROR, State.LATE_TOOL_ERROR) else "error"
        code = f" {failed.code}" if failed.code is not None else ""
        if failed.state in (State.ERROR, State.LATE_ERROR, State.TOOL_ERROR, State.LATE_TOOL_ERROR):
            title = (
                f"{failed.about} failed: {kind}{code}: {quote(words)}"
                if words
                else f"{failed.about} failed: {kind}{code}"
            )
            next_step = f"these are the words of the {receiver}: correct what they name; mcpspy show -v prints the whole message"
        else:
            title = f"{failed.about}: {failed.state}{f': {quote(words)}' if words else ''}"
            next_step = f"look into the {receiver}'s own log at this time"
        error = named_error(failed.stderr, certain=True)
        lines = [] if error is None else [evidence(error.line.place, f"stderr: {error.text}")]
        if error is not None and error.text[:60] not in words:
            title += f"; on stderr: {quote(error.text)}"
        yield Claim(title=title, next_step=next_step, symptoms=[failed], evidence=lines)


@cause(
    "http-refused",
    "an HTTP request was refused",
    level=Level.QUOTE,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * http {"http":50,"method":"PUT","path":"/mcp","status":304,"request":{},"response":{}}
        * http-end {"http":50}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def http_refused(facts: Facts) -> Iterator[Claim]:
    """The status and the text of the refusal are the best explanation there is."""
    for refusal in facts.of(RefusedExchange):
        words = refusal.error or refusal.words
        yield Claim(
            title=f"{refusal.line}{f': {quote(words)}' if words else ''}",
            next_step="look into the log of the server, or of the proxy in front of it, at this time",
            symptoms=[refusal],
        )


@cause(
    "stray-response",
    "an error that belongs to no request",
    level=Level.QUOTE,
    positive="""
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
        < {"id":2,"error":{"code":-32603,"message":"boom"}}
    """,
    negative="""
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
    """,
)
def stray_response(facts: Facts) -> Iterator[Claim]:
    """A response with the id of no open request reaches no one; if it reports an error, a request may wait for it in vain."""
    for violation in facts.violations("ENV204", "ENV205", "ENV207", "ENV208", "ENV201"):
        failed = [
            each
            for each in violation.findings
            if '"error"' in each.excerpt or '"isError":true' in each.excerpt
        ]
        if failed:
            yield Claim(
                title=f"the {violation.side} sent an error that belongs to no request: {quote(failed[0].message)}",
                next_step=f"let the {violation.side} answer each request once, with its id",
                symptoms=[violation],
                side=violation.side,
            )
