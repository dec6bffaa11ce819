"""Requests for a token that were refused, and checks of tokens that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.oauth_errors import FORGOTTEN, by_error, is_registered
from mcpspy.analysis.explain.causes.oauth_values import OauthDecision, by_values
from mcpspy.analysis.explain.causes.sign_in import (
    RULES,
    names_of,
    refused_step,
    sign_in_claim,
    steps_of,
    unauthorized,
    words_of,
)
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER

_TWICE = re.compile(
    r"(?i)(?:multiple|more than one) .{0,40}(?:auth|credential)|both .{0,60}\b(?:header|basic|body|form|post)\b"
    r"|(?:auth\w*|credentials?)\b.{0,40}(?:\btwice\b|multiple|more than one|\bboth\b)|only one .{0,30}auth"
)
"""A client that names itself by two methods, which it must not (RFC 6749, 2.3)."""

_LACKS = re.compile(r"(?i)missing|required|parameter")

_NOT_PERMITTED = re.compile(
    r"(?i)redirect.{0,200}(?:not (?:permitted|allowed)|\ballowed\b|allow-?list|whitelist|\bpatterns?\b)"
)
"""An authorization server that has a list of redirect URIs beside the registered ones."""

TOGETHER = 30.0
"""Seconds after a refresh within which another one probably used the same refresh token."""

AT_ONCE = 5.0
"""Seconds within which no person begins a sign-in twice, because the first did not work."""


@cause(
    "oauth-token",
    "the token request was refused",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.unauthorized(
            ex.METADATA, ex.oauth("token", 400, error="invalid_grant", names=["grant_type", "code"])
        ),
        ex.unauthorized(
            ex.METADATA,
            ex.http("POST", 401, 64, ex.WITH_TOKEN),
            ex.oauth("token", 401, 64, error="invalid_client", names=["client_id", "client_secret", "code"]),
        ),
        ex.unauthorized(
            ex.METADATA,
            ex.oauth("registration", 201, 64, names=["client_name", "redirect_uris"]),
            ex.oauth("token", 401, 65, error="invalid_client", names=["client_id", "code", "code_verifier"]),
        ),
        ex.unauthorized(ex.METADATA, ex.oauth("authorize", 400, names=["response_type", "state"])),
        ex.unauthorized(
            ex.METADATA,
            ex.oauth(
                *("token", 400, 65),
                error="invalid_request",
                error_description="code_verifier is required",
                names=["grant_type", "code"],
            ),
        ),
    ),
    negative=ex.unauthorized(ex.METADATA, ex.oauth("registration", 403)),
)
def oauth_token(facts: Facts) -> Iterator[Claim]:
    """The code or refresh token has expired, the client or redirect URI is another than registered,
    or PKCE does not fit.
    """
    if (step := _refused_request(facts)) is None:
        return
    words, names, what = words_of(step), names_of(step), f"{step.step} request"
    side, next_step = by_error(facts, step, words)
    is_basic = "client_id" not in names and step.fields.get("http") in facts.http.with_token
    if "client" in words and is_basic:
        next_step = (
            "the client named itself by HTTP Basic (client_secret_basic), not in the body: let the token "
            "endpoint read the Authorization header, or not offer this method in "
            "token_endpoint_auth_methods_supported"
        )
    side, next_step = _of_authorize(facts, step, words, (side, next_step))
    if "refresh_token" in names:
        what = "refresh of the token"
        if "invalid_grant" not in words and "scope" not in words and "grant" not in words:
            next_step = (
                "sign in again (remove the stored tokens): a client does so by itself only if the server "
                "answers invalid_grant for a dead refresh token"
            )
            side = SERVER if words.startswith("invalid_request") else side  # RFC 6749, 5.2
    title = f"the {what} was refused (HTTP {step.status}){clause(words)}"
    for found in (*_known_of(facts, step, words, side, next_step), by_values(step, words)):
        if found is not None:
            title += f"; {found.title}" if found.title else ""
            side, next_step = found.side, found.next_step
    yield sign_in_claim(facts, title, next_step, step, side=side)


def _known_of(
    facts: Facts, step: OauthStep, words: str, side: str, next_step: str
) -> Iterator[OauthDecision]:
    """Yield what the recording shows of a refused request beside its error; the last one decides."""
    names, has_header = names_of(step), step.fields.get("http") in facts.http.with_token
    if (count := _at_once(facts, step)) > 1:
        yield OauthDecision(
            f"the client had begun {count} sign-ins at once, and each replaces the code_verifier of the one before",
            CLIENT,
            _ONE_SIGN_IN,
        )
    before = [
        step.at - each.at
        for each in steps_of(facts, "token")
        if each.status == 200 and "refresh_token" in names_of(each) and 0 <= step.at - each.at < TOGETHER
    ]
    if "refresh_token" in names and "invalid_grant" in words and before:
        yield OauthDecision(
            f"the client had refreshed it {duration(min(before))} before, which used the refresh token up",
            "",  # A server may also accept the one before for some seconds.
            "let the client refresh a token once, and all requests wait for that: servers that rotate refresh tokens "
            "revoke all of them if one is used twice (RFC 9700, 4.14.2); then sign in again",
        )
    if step.step == "token" and _LACKS.search(words) and has_header and "client_id" not in names:
        yield OauthDecision(
            "the request has an Authorization header, and no client_id in its form",
            "",
            "the client named itself by HTTP Basic (client_secret_basic): let the token endpoint read this header, as it must for "
            "clients with a secret (RFC 6749, 2.3.1); or let the client use the method that the registration answered "
            "(token_endpoint_auth_method), such as client_secret_post",
        )
    is_bare = words.startswith("invalid_client") or words == "invalid_request"
    is_twice = has_header and "client_secret" in names and is_bare
    if step.step != "authorize" and (is_twice or _TWICE.search(words)):
        form = [name for name in ("client_id", "client_secret", "client_assertion") if name in names]
        both = f"the request has an Authorization header, and {' and '.join(form)} in its form too"
        yield OauthDecision(
            both if has_header and form else "",
            CLIENT,
            "let the client authenticate by one method alone (RFC 6749, 2.3), the one that the registration answered "
            "(token_endpoint_auth_method): client_secret_basic is the header with neither client_id nor client_secret "
            "in the form, client_secret_post is the form without the header",
        )
    elif has_header and "client_id" in names and words.startswith("invalid_client"):
        yield OauthDecision(
            "the request has an Authorization header, and client_id in its form too",
            side,
            f"{next_step}; some servers also refuse a client that names itself in both places",
        )
    elif step.step == "token" and _is_unauthenticated(facts, step, words):
        yield OauthDecision(
            "the client had registered without token_endpoint_auth_method, which means client_secret_basic (RFC 7591, "
            "2), and its request has neither an Authorization header nor a client_secret",
            CLIENT,
            "let the client register with token_endpoint_auth_method none if it has no secret; else let it send the "
            "secret that it got, by the method that the registration answered",
        )
    elif step.step == "authorize" and "response_type" in names and "client_id" not in names:
        offers = any("registration_endpoint" in names_of(each) for each in steps_of(facts, "server metadata"))
        is_skipped = offers and not steps_of(facts, "registration")
        yield OauthDecision(
            "it has no client_id, which it must have (RFC 6749, 4.1.1)"
            + (
                ", and the client did not register, although the metadata name a registration_endpoint"
                if is_skipped
                else ""
            ),
            CLIENT,
            "let the client register at the registration_endpoint of the metadata before it asks for authorization (RFC 7591), or "
            "configure a client_id that the authorization server knows",
        )
    elif (
        step.step == "authorize"
        and not words
        and "resource" not in names
        and steps_of(facts, "resource metadata")
    ):
        yield OauthDecision(
            "it has no resource (RFC 8707), which MCP demands of clients (2025-06-18, Authorization)",
            "",
            f"let the client send resource = the URL of this server: some authorization servers refuse a request without it; {next_step}",
        )
    elif _sends_no_secret(facts, step, words):
        yield OauthDecision(
            "the client had registered, and this request has neither a client_secret nor an Authorization header",
            "",
            "look whether the registration answered with a client_secret: then the client must send it, by the method that it answered "
            "(token_endpoint_auth_method); else read the error in the authorization server's log",
        )


def _sends_no_secret(facts: Facts, step: OauthStep, words: str) -> bool:
    """Return whether a refusal without a reason may be about the authentication of a client that has registered."""
    says_why = re.search(r"(?i)code|verifier|grant|redirect|resource|scope|expired|refresh", words)
    is_bare = step.step == "token" and not says_why and step.fields.get("http") not in facts.http.with_token
    has_proof = {"client_secret", "client_assertion"}.intersection(names_of(step))
    return is_bare and not has_proof and is_registered(facts)


def _of_authorize(facts: Facts, step: OauthStep, words: str, found: tuple[str, str]) -> tuple[str, str]:
    """Return the side and the next step for a refused request for authorization, if more is known of it; else what was found."""
    if step.step != "authorize":
        return found
    if is_registered(facts) and _NOT_PERMITTED.search(words):
        return SERVER, (
            "the authorization server has just accepted this redirect URI in the registration: let it "
            "check both by one list, or refuse the registration (invalid_redirect_uri)"
        )
    is_of_client = (not words or "client" in words) and found[1] is not FORGOTTEN
    if is_of_client and found[0] != CLIENT and not steps_of(facts, "registration"):
        return found[0], (
            "it does not know the client_id, or its redirect_uri is not registered (RFC 6749, 4.1.2.1): compare both "
            "with the registration or the client's metadata document, in which the port of a loopback address does "
            "not count (RFC 8252, 7.3); a registration from earlier may be lost: remove the stored one"
        )
    return found


def _at_once(facts: Facts, token: OauthStep) -> int:
    """Return how many requests for authorization with PKCE were sent within seconds, before a code was refused; else 0."""
    if token.step != "token" or "invalid_grant" not in words_of(token) or "refresh_token" in names_of(token):
        return 0
    begun = [
        each.at
        for each in steps_of(facts, "authorize")
        if each.at <= token.at and "code_challenge" in names_of(each) and (each.status or 400) < 400
    ]
    return sum(abs(at - begun[-1]) < AT_ONCE for at in begun)


_ONE_SIGN_IN = (
    "let the client begin one sign-in for a server, and all its requests wait for that; until then sign in again with one "
    "window of the client open"
)


def _refused_request(facts: Facts) -> OauthStep | None:
    """Return the refused request of a sign-in, or the last refused refresh of a token."""
    step = refused_step(facts, "token", "device authorization", "pushed authorization", "authorize")
    if step is not None and (unauthorized(facts) or step.step != "token"):
        return step
    tokens = [each for each in steps_of(facts, "token") if "refresh_token" in names_of(each)]
    return next((each for each in reversed(tokens) if (each.status or 0) >= 400), None)


def _is_unauthenticated(facts: Facts, step: OauthStep, words: str) -> bool:
    """Return whether a client that registered as one with a secret sent none."""
    proofs = {"client_secret", "client_assertion"}
    return (
        "client" in words
        and step.fields.get("http") not in facts.http.with_token
        and not proofs.intersection(names_of(step))
        and any(
            (each.status or 400) < 300 and "token_endpoint_auth_method" not in names_of(each)
            for each in steps_of(facts, "registration")
        )
    )


_ACCEPTED = ex.session("@ http", ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done())

FailureRow(
    "token-check-failed",
    "the check of the token fails with an error of the server",
    Level.SPECIFIC,
    why="A server that answers an expired token with 500 in place of 401 gives the client no "
    "reason to refresh it.",
    title="requests with the same token had been accepted, and now each gets HTTP {status}: "
    "{words}: the token has probably expired",
    next_step='let the server answer 401 with error="invalid_token", so that the client refreshes the '
    "token; until then sign in again",
    statuses=(400, 403, 500),
    # Not a token of a parser, a form or a page of results, and not what the token may do.
    words=r"^(?!.*(?:unexpected token|[cx]srf|\b(?:page|next|cursor|continuation|invite|reset|max|device|push)[ _-]tokens?\b"
    r"|token (?:limit|count|budget)|\bjson\b|permi(?:ssion|tted)|scope|privilege|not allowed|not authori[sz]ed|forbidden))"
    r".*\b(?:server_error|invalid_token|token|jwt|unauthorized)\b",
    if_refused=lambda facts, exchange: (
        facts.http.token_accepted_at is not None
        and exchange.has_token
        and facts.http.accepted_at(exchange) <= exchange.last_at
    ),
    is_together=True,
    negative=(
        ex.session(_ACCEPTED, ex.call(3), ex.answered(500, ex.WITH_TOKEN, "Unexpected token < in JSON")),
        ex.session(_ACCEPTED, ex.call(3), ex.answered(403, ex.WITH_TOKEN, "CSRF token missing")),
        ex.session(
            _ACCEPTED, ex.call(3), ex.answered(403, ex.WITH_TOKEN, "This token is not permitted to do it")
        ),
        ex.session(
            _ACCEPTED,
            *(ex.call(3), ex.answered(400, ex.WITH_TOKEN, "Invalid token")),
            *(ex.call(4), ex.answered(200, ex.WITH_TOKEN), ex.done(4)),
        ),
    ),
    positive=ex.session(
        _ACCEPTED, *(ex.call(3), ex.answered(500, ex.WITH_TOKEN), '<< {"error":"server_error"}')
    ),
).define(__name__)
