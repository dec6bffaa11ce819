"""A refused step of a sign-in by its values: are they those of the metadata or of an earlier step?

The recording has both as names (`same`, `differs`). That decides whose mistake a refusal is: values are never recorded,
and the error of an authorization server names the parameter, but not who got it wrong.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from mcpspy.analysis.explain.causes.sign_in import steps_of
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER


class _Parameter(NamedTuple):
    words: str
    """A pattern of errors that are about it, without regard to case."""
    maybe: str
    """A pattern of errors that may be about it."""
    other: str
    """The difference of the request, in words."""
    correct: str
    """The next step of the client then."""
    accept: str
    """The next step of the authorization server if the request has the right value."""


_PARAMETERS = {
    "code_verifier": _Parameter(
        r"verifier|pkce|challenge",
        r"invalid_grant|^$",
        "its code_verifier does not fit the code_challenge that the client sent before",
        "let the client send the code_verifier of the sign-in that the code is from: one that begins two sign-ins mixes them up",
        "let the authorization server compute S256 as RFC 7636, 4.6, and keep the challenge with the code: this code_verifier fits",
    ),
    "redirect_uri": _Parameter(
        r"redirect",
        r"invalid_grant|invalid_request|^$",
        "its redirect_uri is not the one that the client registered or sent before",
        "let the client use one redirect URI in the registration, the request for authorization and that for the token (only "
        "the port of a loopback address may change, RFC 8252, 7.3)",
        "let the authorization server accept the redirect URI that the client registered and sent before: this is the same one",
    ),
    "resource": _Parameter(
        r"resource|invalid_target|audience",
        r"^$",
        "its resource is not the one that the server's metadata name",
        "let the client send the resource of the metadata as it is, with its path and without a slash that it does not have "
        "(RFC 9728, 7.3)",
        "register the URL of the MCP server at the authorization server as a resource (an audience that it accepts): the client "
        "sent the one that the server's metadata name, as it must (RFC 8707)",
    ),
    "scope": _Parameter(
        r"scope",
        r"^$",
        "it asks for a scope that the metadata and challenges of this server do not name",
        "let the client ask only for the scopes of the challenge, or for those of scopes_supported (2025-11-25, Authorization)",
        "let the authorization server allow this client the scopes that its metadata or the challenge name: it asked for no others",
    ),
}


class OauthDecision(NamedTuple):
    title: str
    """The comparison, for the end of a sentence."""
    side: str
    next_step: str


def by_values(step: OauthStep, words: str) -> OauthDecision | None:
    """Return what the values of a refused step decide; None if they decide nothing about this error."""
    for name, parameter in _PARAMETERS.items():
        is_about = re.search(parameter.words, words, re.IGNORECASE) is not None
        if name in step.fields.get("differs", ()) and (
            is_about or re.search(parameter.maybe, words) is not None
        ):
            return OauthDecision(parameter.other, CLIENT, parameter.correct)
        if name in step.fields.get("same", ()) and is_about:
            return OauthDecision(f"its {name} is the one that it should be", SERVER, parameter.accept)
    return None


AUDIENCE = "audience of the token"


def token_by_values(facts: Facts, exchange: RefusedExchange) -> OauthDecision | None:
    """Return what the token of a refused message of MCP decides; None if that is nothing.

    The time of expiry and the audience are claims of JSON Web Tokens: of another token, only whether it was issued in
    the recording is known.
    """
    step = next(
        (
            each
            for each in steps_of(facts, "challenge", "retry")
            if each.fields.get("http") == exchange.number
        ),
        None,
    )
    if step is None:
        return None
    differs, same = step.fields.get("differs", ()), step.fields.get("same", ())
    if "access_token" in step.fields.get("older", ()):
        return OauthDecision(
            "the client sent an older token than the last one that was issued to it",
            CLIENT,
            "let the client use the token of the last answer of the token endpoint with each request, also on connections and in "
            "sessions that it had begun with the one before; until then begin the session again after a refresh",
        )
    if (since := _expired_for(facts, step)) > 0:
        return OauthDecision(
            f"the token had expired {duration(since)} before",
            CLIENT if "access_token" in same else "",
            "let the client get a new token by its refresh token before this one expires or after a 401, and sign in "
            "again; a token that was written by hand into the host's configuration needs a new one there",
        )
    if AUDIENCE in differs:
        return OauthDecision(
            "the token is for another audience than the resource that the server's metadata name",
            _of_audience(facts),
            "request the token with resource = the URL of this server, as its metadata have it, and let the authorization server "
            "write that into the token (RFC 8707, 2.2); compare aud of the token with it",
        )
    if "access_token" in differs:
        return OauthDecision(
            "the client sent another token than the one that was issued to it in this recording",
            "",
            "let the client use the token of the last answer of the token endpoint; if it has this one from its configuration or "
            "an earlier sign-in, remove that",
        )
    return None


def _expired_for(facts: Facts, step: OauthStep) -> float:
    """Return the seconds since the token of a step expired; 0 if it had not, or if that is not known."""
    expires = step.fields.get("expires")
    try:
        started = datetime.fromisoformat(facts.header.started).timestamp()
    except ValueError:  # A recording of another program.
        return 0.0
    return max(started + step.at - expires, 0.0) if isinstance(expires, int) else 0.0


def _of_audience(facts: Facts) -> str:
    """Return whose mistake a wrong audience is: that of a client that asked for another resource, or got it for the right one."""
    asked = steps_of(facts, "token", "authorize")
    if any("resource" in step.fields.get("differs", ()) for step in asked):
        return CLIENT
    return SERVER if any("resource" in step.fields.get("same", ()) for step in asked) else ""
