"""Tokens that are missing, refused or expired."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_overcome, said
from mcpspy.analysis.explain.causes.sign_in import RULES, names_of, sign_in_claim, steps_of, unauthorized
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT, SERVER

_EXPIRY = 'Bearer error="invalid_token", error_description="The token expired"'


_EXPIRED = re.compile(r"(?i)\bexpired?\b|invalid_token")
_UNSURE = re.compile(r"(?i)\bor\b|invalid|incorrect")
_AUDIENCE = re.compile(
    r"(?i)\baudience\b|\baud\b|not (?:intended|issued) for|resource indicator|wrong resource"
)
_SCOPE = re.compile(r"(?i)insufficient[_ ]scope|\bscopes?\b")
"""The errors of RFC 6750, 3.1, and the words of libraries that check tokens (PyJWT, jose, Spring
Security).
"""


_NOT_ABOUT_TOKENS = "a token would not help: look which check of the server or proxy refuses the request"


def _refusal(facts: Facts, exchange: RefusedExchange, words: str) -> tuple[str, str]:
    """Return why a token was refused, and the next step."""
    challenge, has_token = exchange.response.get("www-authenticate", ""), "authorization" in exchange.request
    text = f"{words} {challenge}"
    if exchange.status == 403 and _SCOPE.search(text):
        scope = re.search(r'scope="([^"]*)"', challenge)
        wanted = f"the scope {quote(scope[1], 60)}" if scope else "this scope"
        lack = "the token lacks" if has_token else "the server wants"
        next_step = f"sign in again with {wanted}; the client should do so by itself (step-up)"
        return f"{lack} a scope for {about(exchange)}", next_step
    if _AUDIENCE.search(text):
        next_step = (
            "request the token with resource = the URL of this server; mcpspy exec keeps the server's "
            "own URL, mcpspy http has another one (--keep-resource)"
        )
        return "the token is for another audience", next_step
    is_expired = "expired" in text.lower() and not _UNSURE.search(text)
    if _EXPIRED.search(text) and (is_expired or facts.server.messages > 1):
        next_step = (
            "the client should ask for a new token with its refresh token after a 401, and did not; sign "
            "in again"
        )
        if any("refresh_token" in names_of(step) for step in steps_of(facts, "token")):
            next_step = "sign in again; look why the new token is refused too"
        return "the token has expired", next_step
    if _EXPIRED.search(text):
        next_step = (
            "check the value of the Authorization header in the host's configuration: a variable that "
            "the host does not replace (${TOKEN}), a missing 'Bearer', or an old token"
        )
        return "the server refused the token with which the client began", next_step
    if not has_token:
        return f"{about(exchange)} is forbidden", _NOT_ABOUT_TOKENS
    next_step = "send a valid token: sign in again, or correct Authorization in the host's configuration"
    return "the server refused the token", next_step


@cause(
    "token-refused",
    "the server refused the token",
    Level.SPECIFIC,
    rules=RULES,
    positive=ex.session("@ http", ex.call(), ex.answered(401, ex.WITH_TOKEN, {"www-authenticate": _EXPIRY})),
    negative=ex.session("@ http", ex.call(), ex.answered(401)),
)
def token_refused(facts: Facts) -> Iterator[Claim]:
    """The token has expired, is for another audience, lacks a scope, or is not a token of this server."""
    for exchange, symptom in unauthorized(facts):
        has_token = "authorization" in exchange.request
        if not has_token and exchange.status == 401:
            continue
        words = challenge_words(exchange.response.get("www-authenticate", "")) or said(exchange, symptom)
        why, next_step = _refusal(facts, exchange, words)
        claim = sign_in_claim(facts, f"{why} (HTTP {exchange.status}){clause(words)}", next_step)
        claim.symptoms = claim.symptoms if exchange.status == 401 else [symptom]
        claim.level = Level.GENERAL if next_step == _NOT_ABOUT_TOKENS else Level.SPECIFIC
        yield claim


_REMAPPED = "x-amzn-remapped-www-authenticate"


@cause(
    "token-missing",
    "the server wants a token, and the request has none",
    Level.GENERAL,
    rules=RULES,
    positive=(
        ex.session("@ http", ex.call(), ex.answered(401)),
        ex.session("@ http", ex.call(), ex.answered(401, {}, {_REMAPPED: "Bearer"})),
    ),
    negative=ex.session("@ http", ex.call(), ex.answered(401, ex.WITH_TOKEN)),
)
def token_missing(facts: Facts) -> Iterator[Claim]:
    """The client has no token, a proxy drops Authorization, or the sign-in was not begun or not completed."""
    refused = [exchange for exchange, _ in unauthorized(facts) if "authorization" not in exchange.request]
    if not refused or any(step.status == 200 for step in steps_of(facts, "token")):
        return
    first, challenge = refused[0], refused[0].response.get("www-authenticate")
    words = challenge_words(challenge or "") or first.words
    title = f"{about(first)} was sent without a token, and the server answered HTTP {first.status}"
    title += f" ({quote(words, 80)})" if words else ""
    if facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]:
        title += ", although requests before had succeeded"
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    if _REMAPPED in first.response:
        title += f", and the gateway in front of it renamed WWW-Authenticate to {_REMAPPED}: no client finds the sign-in"
        next_step = (
            "let the gateway answer with the header's own name (Amazon API Gateway renames it in answers of an "
            "integration: set it in a gateway response, or use another kind of integration)"
        )
        yield sign_in_claim(facts, title, next_step, side="proxy")
        return
    steps = [step for step in facts.http.oauth if step.step not in ("challenge", "retry")]
    own_flow = {step.fields.get("flow") for step in steps_of(facts, "challenge") if step.at <= first.at}
    metadata = [step for step in steps if step.step.endswith("metadata") and step.status == 200]
    is_hidden = first.status == 401 and challenge is None and metadata
    if is_hidden and not any(step.fields.get("flow") in own_flow or step.step == "token" for step in steps):
        title += (
            ", without WWW-Authenticate; the metadata of a sign-in exists, and the client never asked for it: it did not "
            "know where"
        )
        next_step = (
            'let the server answer 401 with WWW-Authenticate: Bearer resource_metadata="URL" (RFC 9728, 5.1); some '
            "libraries for signing in answer 401 on their own, before the code that adds it"
        )
        yield sign_in_claim(facts, title, next_step, *metadata, side=SERVER)
        return
    if steps:
        last = steps[-1]
        title += f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})"
        next_step = "complete the sign-in in the browser; the client's log states why it stopped at this step"
        if (last.status or 0) >= 400:
            next_step = f"let the server answer the step {last.step!r}; clients stop here"
    elif challenge is None and first.status == 401:
        next_step += "; the server names no way to sign in: 401 lacks WWW-Authenticate"
    yield sign_in_claim(facts, title, next_step, *steps[-2:])


@cause(
    "signed-in",
    "a request was refused until the client had signed in",
    Level.EXACT,
    positive=ex.unauthorized(
        ex.request("initialize"),
        ex.answered(200, ex.WITH_TOKEN),
        ex.welcome(2),
        ex.INITIALIZED,
        ex.request("ping", 3),
        ex.result(3),
    ),
    negative=ex.unauthorized(),
)
def signed_in(facts: Facts) -> Iterator[Claim]:
    """The 401 with which a sign-in begins is not a failure."""
    refused = [symptom for exchange, symptom in exchanges(facts) if exchange.status in (401, 403)]
    began: list[Symptom] = [
        each for each in refused if isinstance(each, FailedRequest) and is_overcome([each])
    ]
    if steps_of(facts, "retry"):
        began += [each for exchange, each in unauthorized(facts) if "authorization" not in exchange.request]
    if began:  # Clients ask for metadata at several places; that some have none is foreseen (RFC 9728, 3.1).
        absent = [each for each in facts.of(RefusedExchange) if each.status == 404]
        began += [each for each in absent if ".well-known" in each.path]
        title = "the client signed in after HTTP 401, as it should"
        yield Claim(title=title, next_step="nothing", symptoms=began, is_observation=True)
