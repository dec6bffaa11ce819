"""Tokens that are refused, expired, or not about this server."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about, said
from mcpspy.analysis.explain.causes.oauth_values import token_by_values
from mcpspy.analysis.explain.causes.sign_in import RULES, names_of, sign_in_claim, steps_of, unauthorized
from mcpspy.analysis.explain.causes.token_words import other_reason
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT

_EXPIRY = 'Bearer error="invalid_token", error_description="The token expired"'

_EXPIRED = re.compile(r"(?i)\bexpired?\b|invalid_token")
_IS_OVER = re.compile(r"(?i)\b(?:is|has|was|token) expired\b(?! or\b)|\bexpired (?:access )?token")
_UNSURE = re.compile(r"(?i)\bor\b|invalid|incorrect")
_AUDIENCE = re.compile(
    r"(?i)\baudiences?\b|\baud\b|not (?:intended|issued) for|resource indicator|wrong resource"
)
_SCOPE = re.compile(r"(?i)insufficient[_ ]scope|\bscopes?\b")
"""The errors of RFC 6750, 3.1, and the words of libraries that check tokens (PyJWT, jose, Spring
Security).
"""

_AS_IF_NONE = re.compile(
    r"(?i)\b(?:authentication|authorization|log-?in|credentials?|token|api key) (?:is |are |was )?required\b"
    r"|\bnot (?:authenticated|logged in|signed in)\b|\bunauthenticated\b|\banonymous\b|\bno (?:\w+ )?(?:token|credentials?)\b"
)
"""A server that has found no token in the request."""

_EITHER = re.compile(r"(?i)\b(?:invalid or (?:missing|no)|(?:missing|no) or invalid)\b")
"""A server that does not tell whether it has found a token."""

_NOT_EXPIRED = re.compile(
    r"(?i)\bsignatur|\bissuer|\biss\b|\bmalformed|\bsegments?\b|\bkid\b|\balg\w*\b|\bclaims?\b|\bdecod|\bformat\b|\bparse"
)
"""Another reason than time."""

_NOT_ABOUT_TOKENS = (
    "look which check of the server or proxy refuses the request (its address, Host, a key, a right): for a missing token, "
    "the answer is 401"
)


def _without_token(exchange: RefusedExchange, words: str) -> tuple[str, str, str]:
    """Return why a request without a token was refused with 403."""
    if not _AS_IF_NONE.search(words):
        return f"{about(exchange)} is forbidden", _NOT_ABOUT_TOKENS, ""
    next_step = (
        "set the Authorization header in the host's configuration; the server should answer 401 in place of 403, so that "
        "clients begin to sign in"
    )
    return f"{about(exchange)} was sent without a token, and the server wants one", next_step, ""


def _in_time(facts: Facts, exchange: RefusedExchange, text: str, own: str) -> tuple[str, str, str] | None:
    """Return why a token that was called expired or invalid was refused; None if the words do not call it so."""
    is_expired = "expired" in text.lower() and not _UNSURE.search(text)
    if _NOT_EXPIRED.search(text) and not is_expired:
        next_step = (
            "compare issuer, keys and form of the token with what the server checks (both may have changed), and sign in "
            "again; or correct Authorization in the host's configuration"
        )
        return "the server refused the token", next_step, ""
    if _EXPIRED.search(text) and any(at > exchange.at for at in facts.http.session_ids.values()):
        next_step = (
            "let the client repeat the refused request after it has a new token; if it continued with the same token, the "
            "server lost its sessions, and has to answer 404 for that"
        )
        return "the server refused the token, and accepted a new session after that", next_step, ""
    if _EXPIRED.search(text) and (is_expired or facts.server.messages > 1):
        next_step = (
            "the client should ask for a new token with its refresh token after a 401, and did not; sign "
            "in again"
        )
        if any("refresh_token" in names_of(step) for step in steps_of(facts, "token")):
            next_step = "sign in again; look why the new token is refused too"
        elif own != CLIENT and all(step.step in ("challenge", "retry") for step in facts.http.oauth):
            next_step = (
                "let the client get a new token by its refresh token after a 401 (it asked for none), and sign in again; if the token was "
                "written by hand into the host's configuration, write a new one there"
            )
        elif own != CLIENT and steps_of(facts, "resource metadata", "server metadata"):
            next_step = (
                "sign in again; the client should get a new token by its refresh token after a 401: look in its log whether it "
                "has one, which the authorization server may not have issued (the scope offline_access, the grant refresh_token)"
            )
        return "the token has expired", next_step, ""  # The client may have got none to refresh it with.
    if _EXPIRED.search(text):
        next_step = (
            "check the value of the Authorization header in the host's configuration: a variable that "
            "the host does not replace (${TOKEN}), a missing 'Bearer', or an old token"
        )
        if _IS_OVER.search(text) or "resource_metadata" in exchange.challenge:
            next_step = (
                "sign in again, if the client has this token from an earlier sign-in: it should get a new one by its refresh token after "
                f"a 401, or sign in by itself; if the token was written by hand, {next_step}"
            )
        return "the server refused the token with which the client began", next_step, ""
    return None


def _refusal(facts: Facts, exchange: RefusedExchange, words: str) -> tuple[str, str, str]:
    """Return why a token was refused, the next step, and the side that has to take it."""
    is_issued = any(step.status == 200 for step in steps_of(facts, "token"))
    # Where a token is from that was not issued in the recording is not known, nor what is in it.
    own = CLIENT if is_issued else ""
    challenge, has_token = exchange.challenge, exchange.has_token
    text = f"{words} {challenge} {exchange.words}"
    if exchange.status == 403 and _SCOPE.search(text):
        scope = re.search(r'scope="([^"]*)"', challenge)
        wanted = f"the scope {quote(scope[1], 60)}" if scope else "this scope"
        lack = "the token lacks" if has_token else "the server wants"
        next_step = f"sign in again with {wanted}; the client should do so by itself (step-up)"
        asked = steps_of(facts, "authorize")
        if has_token and asked and not any("scope" in names_of(step) for step in asked):
            next_step = (
                f"let the client ask for authorization with {wanted}: that of WWW-Authenticate, else all of scopes_supported of the "
                "metadata (2025-11-25, Authorization)"
            )
            return (
                f"{lack} a scope for {about(exchange)}, and the client had asked for none",
                next_step,
                CLIENT,
            )
        # The client has to ask for more (2025-11-25, Authorization), and the account, or the authorization server, may not have it.
        return f"{lack} a scope for {about(exchange)}", next_step, ""
    if (decision := token_by_values(facts, exchange)) is not None:
        return decision.title, decision.next_step, decision.side
    if (found := other_reason(exchange, words, text)) is not None:
        return found
    if _AUDIENCE.search(text):
        next_step = (
            "request the token with resource = the URL of this server; mcpspy exec keeps the server's "
            "own URL, mcpspy http has another one (--keep-resource)"
        )
        asked = steps_of(facts, "token", "authorize")
        if not asked or any("resource" in names_of(step) for step in asked):
            next_step = (
                "compare the audience of the token (aud) with what the server accepts: it must be the URL of this server, for "
                "which the client asks by resource (RFC 8707), and not an id of a client; " + next_step
            )
            own = ""  # The authorization server wrote it, and the server compares it.
        return "the token is for another audience", next_step, own
    if (found := _in_time(facts, exchange, text, own)) is not None:
        return found
    if not has_token:
        return _without_token(exchange, words)
    is_one_or_other = _EITHER.search(words) is not None  # "Invalid or missing token"
    is_as_if_none = _AS_IF_NONE.search(words) is not None and not _UNSURE.search(words)
    if (is_as_if_none or is_one_or_other) and "invalid_token" not in challenge:
        next_step = (
            "try the same token with another program (mcpspy call, with --url): if the server takes it in no way, something "
            "between mcpspy and the code that checks it drops the header Authorization (Apache gives it to PHP and CGI only "
            "with CGIPassAuth On); if it takes it there, correct it in the host's configuration"
        )
        got = "as if it had none" if is_as_if_none else "that it is missing or invalid"
        return f"the request has a token, and the server answers {got}", next_step, ""
    next_step = "send a valid token: sign in again, or correct Authorization in the host's configuration"
    accepted_at = facts.http.token_accepted_at
    if exchange.status == 401 and not words and accepted_at is not None and accepted_at < exchange.at:
        next_step = (
            "if this token has expired, the client should get a new one by its refresh token after a 401; if not, look whether "
            "the server was restarted and keeps its tokens in memory; sign in again"
        )
        return "the server refused the token, although it had accepted one before", next_step, ""
    return "the server refused the token", next_step, ""


def _is_overcome(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether a request without a token was refused, and a token was issued after it."""
    issued = [step for step in steps_of(facts, "token") if step.status == 200 and step.at >= exchange.at]
    return bool(issued) and not exchange.has_token


@cause(
    "token-refused",
    "the server refused the token",
    Level.SPECIFIC,
    rules=RULES,
    positive=(
        ex.session("@ http", ex.call(), ex.answered(401, ex.WITH_TOKEN, {"www-authenticate": _EXPIRY})),
        ex.list_answer(401, ex.WITH_TOKEN, "Token verification failed: fetch failed"),
        ex.list_answer(
            401, ex.WITH_TOKEN, {"www-authenticate": 'Basic realm="a"'}, "401 Authorization Required"
        ),
        ex.list_answer(403, ex.WITH_TOKEN, "You have no access to this project"),
        ex.list_answer(403, ex.WITH_TOKEN, "session user mismatch"),
        ex.list_answer(403, "Not authenticated"),
        ex.list_answer(403, {}, {"x-deny-reason": "host_not_allowed"}, "Host not in allowlist"),
        ex.list_answer(403, ex.WITH_TOKEN, "IP address not allowed"),
        ex.list_answer(401, ex.WITH_TOKEN, "The token is not yet valid (nbf)"),
        ex.list_answer(403, "CSRF token missing"),
    ),
    negative=(
        ex.session("@ http", ex.call(), ex.answered(401)),
        ex.first_answer(403, ex.WITH_TOKEN, "Missing Authentication Token"),
    ),
)
def token_refused(facts: Facts) -> Iterator[Claim]:
    """The token has expired, is for another audience, lacks a scope, or is not a token of this server."""
    for exchange, symptom in unauthorized(facts):
        has_token = exchange.has_token
        if not has_token and exchange.status == 401:
            continue
        words = challenge_words(exchange.challenge) or said(exchange, symptom)
        why, next_step, side = _refusal(facts, exchange, words)
        claim = sign_in_claim(facts, f"{why} (HTTP {exchange.status}){clause(words)}", next_step, side=side)
        if exchange.status != 401:
            # The 401 with which a sign-in begins is overcome if a token was issued for it.
            began = [
                each
                for other, each in unauthorized(facts)
                if other.status == 401 and _is_overcome(facts, other)
            ]
            claim.symptoms = [symptom, *began]
        claim.level = Level.SPECIFIC
        if next_step == _NOT_ABOUT_TOKENS:
            claim.level = Level.GENERAL
        yield claim
