"""Refusals of a request with a token, or without one, whose words name another reason than the token."""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.analysis.explain.causes.exchanges import about
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import SERVER


class _Reason(NamedTuple):
    words: str
    """A pattern of the words of the refusal, without regard to case."""
    title: str
    next_step: str
    side: str
    status: int = 0
    """The only status; 0 for all."""
    needs_token: bool = True
    """True if the request has to have a token."""
    reads_challenge: bool = False
    """True if the pattern may be in WWW-Authenticate."""


_REASONS = (
    _Reason(
        r"\b[cx]srf\b",
        "{about} was checked as a form of a web page is (CSRF)",
        "exempt the endpoint from the check of forms of its framework (Django: csrf_exempt; Rails: "
        "skip_forgery_protection): a client of MCP has no such token",
        SERVER,
        needs_token=False,
    ),
    _Reason(
        r"\bhost[ _]not[ _](?:in[ _]allow-?list|allowed\b)",  # The proxy by which a sandbox reaches the network.
        "a proxy on the way did not let {about} pass",
        "allow this host in the settings of the network of the sandbox or machine from which the request comes; the server "
        "did not see it",
        "proxy",
        403,
        needs_token=False,
    ),
    _Reason(
        r"\bIP\b|\b(?:address|country|region|location)\b.{0,20}\b(?:not|blocked|denied)\b",
        "the address from which {about} came is refused",
        "add the address from which the requests come to the list of the server or its firewall, or use one that is in it",
        "environment",
        403,
        needs_token=False,
    ),
    _Reason(
        r"\bfetch failed|failed to (?:fetch|load|retrieve|get).{0,30}(?:\bjwks?\b|\bkeys?\b|metadata|configuration)"
        r"|(?:un|not )able to (?:fetch|reach|connect)|(?:cannot|could not|can't) (?:fetch|reach|connect|load)|\bECONN\w+|ENOTFOUND"
        r"|connection (?:refused|error|failed)|\bjwks?\b.{0,30}\bfail|introspection (?:failed|error)|no matching (?:key|jwk)",
        "the server could not check the token",
        "look in the log of the server why it cannot check tokens: it has to reach its authorization server (JWKS, "
        "introspection), or to load its keys again; another token does not help",
        SERVER,
        reads_challenge=True,
    ),
    _Reason(
        r"not yet valid|\bnbf\b|issued in the future",
        "the token is not valid yet",
        "compare the clocks of the server and of its authorization server; let the server allow a minute between them",
        "",
        reads_challenge=True,
    ),
    _Reason(
        r"session.{0,40}(?:mismatch|belongs|(?:another|different|other) (?:user|client)|owner)",
        "the session was begun with another token or user",
        "let the client send initialize again when its user or its token changes; the server binds a session to the user who "
        "began it, and should not compare more than the user",
        "",
    ),
    _Reason(
        r"\bBasic (?:realm|charset)=",
        "a name and a password are wanted (Basic), and not the token",
        "give the client the name and the password that are wanted here (Authorization: Basic …), or exempt the endpoint from "
        "this protection, so that its own check of tokens is reached",
        "configuration",
        reads_challenge=True,
    ),
    _Reason(
        r"^\W*(?:403\W*)?(?:forbidden|access denied|denied)?\W*$",  # A refusal without a reason.
        "{about} is forbidden, although it has a token",
        "look in the log of the server or proxy which check refuses the request: the rights of the token's account, a scope, "
        "or the address or name from which it comes; try the same token from elsewhere to compare",
        "",
        403,
    ),
    _Reason(
        r"\binvalid_client\b|\bclient\W{1,3}(?:\S{1,40}\W{1,3})?(?:is |was )?not (?:allowed|permitted|approved|registered|supported|authori[sz]ed)"
        r"|\bunauthorized_client\b|\bunknown client\b",
        "the server does not admit this client for {about}",
        "ask the operator of the server to admit this client (its client_id, or its name and redirect URI), or use one that it "
        "admits: signing in again brings the same",
        "",
        403,
    ),
    _Reason(
        r"\bpermi(?:ssions?|tted)\b|\bno access\b|\baccess to\b|\broles?\b|not (?:allowed|authori[sz]ed)|\bprivileg|\blacks?\b"
        r"|\bowner|\bdisabled\b|\bnot (?:a )?member|\brbac\b|\b(?:your|this|current|free) plan\b|\bsubscription",
        "the account of the token may not do {about}",
        "give the account of this token the right that the refusal names, or use the token of another account; the token "
        "itself is accepted",
        "configuration",
        403,
    ),
)
"""The first one counts."""


def other_reason(exchange: RefusedExchange, words: str, text: str) -> tuple[str, str, str] | None:
    """Return the reason of a refusal that is not a fault of the token, with the next step and its side; None if it names none.

    `text` is the words with the challenge.
    """
    has_token = exchange.has_token
    words = f"{words} {exchange.response.get('x-deny-reason', '')}".strip()
    for reason in _REASONS:
        is_possible = reason.status in (0, exchange.status) and (has_token or not reason.needs_token)
        if is_possible and re.search(reason.words, text if reason.reads_challenge else words, re.IGNORECASE):
            return reason.title.format(about=about(exchange)), reason.next_step, reason.side
    return None
