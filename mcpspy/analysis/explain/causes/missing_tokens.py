"""Requests without a token, and sign-ins that were not begun or not completed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_overcome, said
from mcpspy.analysis.explain.causes.requests import errors
from mcpspy.analysis.explain.causes.sign_in import RULES, names_of, sign_in_claim, steps_of, unauthorized
from mcpspy.analysis.explain.causes.sign_in_stops import REMAPPED, SignInStop, stop_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT

_RESOURCE = {"resource": f"{ex.ISSUER}/mcp", "servers": [ex.ISSUER], "address": ex.ISSUER, "path": "/mcp"}
_NAMES_ITS_SERVER = ex.oauth("resource metadata", 200, 61, **_RESOURCE)
_ASKED_AT_THE_PATH = ex.session(
    ex.first_answer(401, {}, {"www-authenticate": "Bearer"}),
    _NAMES_ITS_SERVER,
    *(
        ex.note(
            "http",
            http=62,
            method="GET",
            path="/.well-known/oauth-authorization-server/mcp",
            status=404,
            request={},
            response={},
        ),
        ex.oauth("server metadata", 404, 62),
        ex.note("http-end", http=62),
    ),
)

_NAMED_METADATA = f'Bearer resource_metadata="{ex.ISSUER}/.well-known/oauth-protected-resource/mcp"'


@cause(
    "token-missing",
    "the server wants a token, and the request has none",
    Level.GENERAL,
    rules=RULES,
    positive=(
        ex.session("@ http", ex.call(), ex.answered(401)),
        ex.session("@ http", ex.call(), ex.answered(401, {}, {REMAPPED: "Bearer"})),
        ex.first_answer(401, {"x-api-key": "[redacted]"}, "Invalid API key"),
        ex.first_answer(401, "Missing X-API-Key header"),
        ex.session(
            "@ http", ex.listed("a"), ex.call(3), ex.answered(401, {}, {"www-authenticate": _NAMED_METADATA})
        ),
        _ASKED_AT_THE_PATH,
        ex.unauthorized(
            _NAMES_ITS_SERVER,
            ex.oauth("server metadata", 200, 62, issuer=f"{ex.ISSUER}/", address=ex.ISSUER, pkce=["S256"]),
        ),
        ex.unauthorized(
            ex.oauth(
                "resource metadata", 200, 61, **{**_RESOURCE, "servers": ["https://login.example/tenant"]}
            )
        ),
    ),
    negative=ex.session("@ http", ex.call(), ex.answered(401, ex.WITH_TOKEN)),
)
def token_missing(facts: Facts) -> Iterator[Claim]:
    """The client has no token, a proxy drops Authorization, or the sign-in was not begun or not completed."""
    refused = [exchange for exchange, _ in unauthorized(facts) if not exchange.has_token]
    if not refused or any(step.status == 200 for step in steps_of(facts, "token")):
        return
    first = refused[0]
    words = challenge_words(first.challenge) or first.words
    key = _key_of(facts, first)
    sent = f"with {quote(key, 40)}" if key else "without a token"
    title = f"{about(first)} was sent {sent}, and the server answered HTTP {first.status}"
    title += f" ({quote(words, 80)})" if words else ""
    title += ", although requests before had succeeded" if facts.has_worked else ""
    # Else the host may have no token, or leave out the one that it has, or the server refuse what it should let in.
    stop = stop_of(facts, first) or SignInStop("", _give_token(first, key, words), "")
    yield sign_in_claim(facts, title + stop.title, stop.next_step, *stop.steps, side=stop.side)


def _give_token(exchange: RefusedExchange, key: str, words: str) -> str:
    """Return how to give the client what it did not send, or sent with a wrong value."""
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    if key:
        next_step = f"correct the value of {quote(key, 40)} in the host's configuration: a variable that the host does not replace, or an old key"
    elif re.search(r"(?i)\bapi[ _-]?key|\bx-[a-z][\w-]+", words):
        next_step = f"give the client in the host's configuration what the refusal names: {quote(words, 100)}"
    return next_step + (_of_challenge(exchange.challenge) if exchange.status == 401 else "")


def _of_challenge(challenge: str) -> str:
    """Return what the challenge of a 401 lacks for a sign-in, to follow a next step; the client asked for no metadata."""
    if not challenge:
        return "; the server names no way to sign in: 401 lacks WWW-Authenticate"
    if "bearer" in challenge.lower() and "resource_metadata" not in challenge:
        return (
            "; if the server has a sign-in (OAuth), its WWW-Authenticate should name the metadata (resource_metadata; RFC 9728, 5.1): "
            "this client did not look for them at /.well-known/ by itself"
        )
    return ""


_KEY = re.compile(r"(?i)(?:^|[-_])(?:api[-_]?key|key|token|secret)$")
"""The name of a header, or of a parameter of a URL, that has a key."""


def _key_of(facts: Facts, exchange: RefusedExchange) -> str:
    """Return the header, or the parameter of the URL, by which a request without Authorization has a key; else nothing."""
    names = [*exchange.request, *(part.partition("=")[0] for part in facts.endpoint.query.split("&"))]
    return next((name for name in names if _KEY.search(name)), "")


_NO_TOKEN = re.compile(
    r"(?i)\b(?:missing|no|without)\b.{0,20}\b(?:bearer|token|authori[sz]ation)|\b(?:unauthenticated|401)\b|not authenticated"
)
"""A server that found no token in the request, and answers with HTTP 200."""


def _is_left_out(facts: Facts, failed: FailedRequest) -> bool:
    """Return whether the request had no token, after others had one."""
    return not failed.is_refused and any(
        failed.asked_at <= at <= failed.until + 0.1 for at in facts.http.left_out
    )


SECONDS_OF_A_PROBE = 2.0
"""Some clients ask without a token first, and send it at once after the 401."""


@cause(
    "token-left-out",
    "the client leaves out the token that it has",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
            *(ex.call(3), ex.answered(401, "Missing bearer token")),
        ),
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
            *(ex.call(3), ex.answered(200), ex.error("401 Unauthorized: missing bearer token", number=3)),
        ),
    ),
    negative=(
        ex.unauthorized(ex.request("ping", 4), ex.answered(200, ex.WITH_TOKEN), ex.result(4)),
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
            *(ex.call(3), ex.answered(401, "Missing bearer token"), ex.METADATA),
        ),
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
            *(ex.initialize(3), ex.answered(401, {"user-agent": "another"}, "Missing bearer token")),
        ),
    ),
)
def token_left_out(facts: Facts) -> Iterator[Claim]:
    """Hosts have several paths to a server (to list its tools, to run one, to test the connection), and not each of them
    has the header that was configured.
    """
    since = facts.http.token_accepted_at
    signing_in = [step.at for step in facts.http.oauth if step.step not in ("challenge", "retry")]
    left_out = [
        (exchange, symptom)
        for exchange, symptom in exchanges(facts, 401)
        if since is not None
        and exchange.at > since
        and (exchange.method in ("POST", "GET") or facts.http.has_accepted(exchange))
        and not exchange.is_for_metadata
        and not exchange.has_token
        and exchange.agent in facts.http.agents  # Another program may have no token at all.
    ]
    next_step = (
        "let the client send the same Authorization header with each request to this server; until then look which of its "
        "functions leaves it out"
    )
    hidden = [each for each in errors(facts) if _NO_TOKEN.search(each.words) and _is_left_out(facts, each)]
    if hidden:
        title = f"{hidden[0].about} was sent without the token with which requests before had succeeded{clause(hidden[0].words)}"
        yield Claim(title=title, next_step=next_step, symptoms=[*hidden], side=CLIENT)
    if not left_out or any(at > left_out[0][0].at for at in signing_in):
        return  # A sign-in begins with a request without a token.
    first, symptom = left_out[0]
    succeeded_at = getattr(symptom, "succeeded_at", None)
    is_probe = succeeded_at is not None and succeeded_at - first.at < SECONDS_OF_A_PROBE
    words = said(first, symptom)
    title = f"{about(first)} was sent without the token with which requests before had succeeded: HTTP 401{clause(words)}"
    symptoms = [*(each for _, each in left_out), *facts.violations(*RULES.split())]
    yield Claim(title, next_step, symptoms, side=CLIENT, is_observation=is_probe)


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
        began += [each for exchange, each in unauthorized(facts) if not exchange.has_token]
    if began:  # Clients ask for metadata at several places; that some have none is foreseen (RFC 9728, 3.1).
        absent = [each for each in facts.of(RefusedExchange) if each.status == 404]
        began += [each for each in absent if each.is_for_metadata]
        title, next_step = "the client signed in after HTTP 401, as it should", "nothing"
        if any(exchange.has_token and exchange.status == 401 for exchange, _ in exchanges(facts)) and not any(
            "refresh_token" in names_of(step) for step in steps_of(facts, "token")
        ):
            title += "; after its token was refused it began a sign-in with its user again, and asked for no refresh"
            next_step = (
                "if users have to sign in often: let the client ask for a new token by its refresh token, if it got one (the scope "
                "offline_access, the grant refresh_token)"
            )
        yield Claim(title, next_step, began, is_observation=True)
