"""Failures that no other cause explains, in the words of the peer."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.calls import ERRORS
from mcpspy.analysis.explain.causes.definition import Definition, define
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import clause, named_error, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import CLIENT, other
from mcpspy.core.session.exchange import State

_DROPPED = ex.note(
    "rule",
    **{"action": "drop", "rule": "1", "from": CLIENT, "id": "2", "method": "tools/call", "subject": "a"},
)


def mcpspy_rule(facts: Facts) -> Iterator[Claim]:
    """--rule, --rules, --call-timeout, a script or a viewer acted on this very request."""
    for failed in facts.failed():
        if failed.effects:
            title = f"mcpspy acted on {failed.about}: {quote('; '.join(dict.fromkeys(failed.effects)))}"
            next_step = "remove --rule, --rules, --script and --call-timeout, and try again"
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side="mcpspy")


def request_failed(facts: Facts) -> Iterator[Claim]:
    """The error is the best explanation there is."""
    for failed in facts.failed():
        receiver, words = other(failed.side), failed.words or failed.why
        title = f"{failed.about}: {failed.state}{clause(words)}"
        next_step = f"look into the {receiver}'s own log at this time"
        if failed.state in ERRORS:
            kind = "tool error" if failed.state in (State.TOOL_ERROR, State.LATE_TOOL_ERROR) else "error"
            code = f" {failed.code}" if failed.code is not None else ""
            title = f"{failed.about} failed: {kind}{code}{clause(words)}"
            next_step = f"these are the words of the {receiver}: correct what they name; mcpspy show -v prints the whole message"
        on_stderr = named_error(failed.stderr, certain=True)
        if on_stderr is not None and on_stderr.text[:60] not in words:
            title += f"; on stderr: {quote(on_stderr.text)}"
        lines = [] if on_stderr is None else [on_stderr.evidence]
        yield Claim(title=title, next_step=next_step, symptoms=[failed], evidence=lines)


def http_refused(facts: Facts) -> Iterator[Claim]:
    """The status and the text of the refusal are the best explanation there is."""
    for refusal in facts.of(RefusedExchange):
        title = f"{refusal.line}{clause(refusal.error or refusal.words)}"
        next_step = "look into the log of the server, or of the proxy in front of it, at this time"
        yield Claim(title=title, next_step=next_step, symptoms=[refusal])


define(__name__,
    Definition(mcpspy_rule, "mcpspy-rule", "a rule or a viewer of mcpspy changed, held or dropped a message", Level.DELIBERATE,
               ex.session(ex.call(), _DROPPED, ex.cancelled()), ex.session(ex.call(), ex.cancelled())),
    Definition(request_failed, "request-failed", "a request failed, for the reason that its error names", Level.QUOTE, ex.session(ex.call(), ex.error("boom"))),
    Definition(http_refused, "http-refused", "an HTTP request was refused", Level.QUOTE, ex.session("@ http", ex.call(), ex.done(), ex.http("PUT", 304, head={}))),
)  # fmt: skip
