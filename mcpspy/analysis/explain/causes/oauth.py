"""Authorization from the page of the sign-in on: codes that did not come, tokens of no use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import ERROR_PAGE, exchanges
from mcpspy.analysis.explain.causes.oauth_errors import (
    JUST_REGISTERED,
    is_registered,
    is_resource_unknown,
    named_as_missing,
    of_missing,
    of_resource,
)
from mcpspy.analysis.explain.causes.oauth_values import by_values, token_by_values
from mcpspy.analysis.explain.causes.sign_in import (
    RULES,
    names_of,
    sign_in_claim,
    steps_of,
    unauthorized,
    words_of,
)
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT, SERVER

_OF_KEYS = re.compile(r"(?i)\bsignatur|\bissuer|\biss\b|\bjwks?\b|\bkid\b|\bkeys?\b|\balg")
"""Words of a check of a token that its audience does not decide."""


@cause(
    "new-token-refused",
    "the server refuses the token that was just issued",
    Level.EXACT,
    rules=RULES,
    positive=ex.unauthorized(
        ex.METADATA,
        ex.oauth("token", 200, names=["grant_type", "code", "resource"]),
        ex.request("initialize"),
        ex.answered(401, {"authorization": "Bearer x"}, {"www-authenticate": 'Bearer error="invalid_token"'}),
    ),
    negative=ex.unauthorized(ex.METADATA),
)
def new_token_refused(facts: Facts) -> Iterator[Claim]:
    """The token is for another audience, or the server checks it against other keys, another issuer
    or a lost store.
    """
    issued = [step for step in steps_of(facts, "token") if step.status == 200]
    has_resource = any("resource" in names_of(step) for step in steps_of(facts, "token", "authorize"))
    # A refresh may leave resource out: it is that of the first request.
    has_resource |= bool(issued) and all("refresh_token" in names_of(step) for step in issued)
    has_worked = facts.http.token_accepted_at is not None and facts.server.messages > 1
    for exchange, _ in unauthorized(facts):
        refused_at = [exchange.at]
        refused_at += [step.at for step in steps_of(facts, "challenge") if step.fields.get("authorized")]
        since = [at - step.at for step in issued for at in refused_at if 0 <= at - step.at < 60.0]
        if exchange.status != 401 or not since or not exchange.has_token or has_worked:
            continue
        words = challenge_words(exchange.challenge) or exchange.words
        title = (
            f"the server refuses the token {min(since):.1f} s after it was issued: "
            f"{quote(words) or 'HTTP 401'}"
        )
        next_step = (
            "compare issuer, audience, keys and scopes of the token with what the server checks; signing "
            "in again brings the same"
        )
        side = SERVER if has_resource else ""  # A server that checks no audience takes it, too.
        is_page = exchange.media_type.startswith("text/html") and not ERROR_PAGE.search(words)
        if is_page and not exchange.challenge:
            side = "proxy"
            title = (
                f"something in front of the MCP server refuses the new token: its HTTP 401 has no WWW-Authenticate, "
                f"and a body that is not JSON ({quote(words) or exchange.response.get('content-type', '')})"
            )
            next_step = (
                "look at the path rule and the access control of the load balancer, gateway or identity-aware proxy: "
                "it must pass requests of the endpoint on, with their Authorization header"
            )
        elif not has_resource:
            title += "; the client asked for it without resource, so it may be for another audience"
            next_step = "let the client send resource = the URL of this server in both requests (RFC 8707)"
            if _OF_KEYS.search(words):  # A token for another audience may have another issuer and other keys.
                side = ""
                next_step += "; compare issuer and keys of the token with what the server checks"
        elif any(
            "resource" in each.fields.get("differs", ()) for each in steps_of(facts, "token", "authorize")
        ):
            side = ""  # It may differ by a slash alone, which the server can take for the same (RFC 3986, 6.2.3).
            title += "; the client had asked for it with another resource than the metadata name"
            next_step = (
                "let the client send the resource of the metadata as it is, with its path and without a slash that it does not have "
                "(RFC 9728, 7.3); and let the server take https://host and https://host/ for the same"
            )
        elif (decision := token_by_values(facts, exchange)) is not None:
            title, side, next_step = f"{title}; {decision.title}", decision.side, decision.next_step
        yield sign_in_claim(facts, title, next_step, issued[-1], side=side)
        break


@cause(
    "no-token-issued",
    "the token request was answered, and the client got no token",
    Level.SPECIFIC,
    rules=RULES,
    positive=ex.unauthorized(ex.oauth("token", 200, names=["client_id", "code"])),
)
def no_token_issued(facts: Facts) -> Iterator[Claim]:
    """Some authorization servers answer HTTP 200 with an error in place of a token. Bodies of this
    step are not recorded.
    """
    for step in steps_of(facts, "token")[-1:]:
        later = [each for each in steps_of(facts, "retry") if each.at >= step.at]
        refused = [exchange for exchange, _ in unauthorized(facts)]
        # Refusals that are alike are one symptom, at the time of the first: the last one is among the steps.
        challenges = [each for each in steps_of(facts, "challenge") if each.fields.get("authorized")]
        later += [each for each in challenges if each.at >= step.at]
        went_on = [each for each, _ in exchanges(facts) if each.has_token]
        is_used = any(max(each.at, each.last_at) >= step.at for each in went_on)
        if step.status != 200 or later or not refused or is_used:
            continue
        has_secret = "client_secret" in names_of(step) or step.fields.get("http") in facts.http.with_token
        # One that has just registered may have no secret, and its id is right.
        has_secret |= any((each.status or 400) < 300 for each in steps_of(facts, "registration"))
        secret = "" if has_secret else "; the request had no client_secret"
        title = (
            f"the token request was answered with HTTP 200, and the client sent no request with a token "
            f"after it: the answer has an error in place of a token, or the client refuses it{secret}"
        )
        next_step = (
            "look at the answer in the client's log (its body is not recorded): often the client_id or "
            "client_secret is wrong"
        )
        if has_secret:
            next_step = (
                "look in the client's log for what it misses in the answer, whose body is not recorded: it has an error in "
                "place of a token, or a member in another form (access_token, token_type, expires_in)"
            )
        hidden = [
            each for each, _ in exchanges(facts, 401, 403) if each.is_for_metadata and "resource" in each.path
        ]
        if hidden and not any(each.status == 200 for each in steps_of(facts, "resource metadata")):
            title = (
                f"the client got an answer to its token request, and never used the token: the metadata of the resource, which it has to "
                f"compare, are behind the sign-in themselves ({hidden[0].path}: HTTP {hidden[0].status})"
            )
            next_step = (
                "let the server answer /.well-known/oauth-protected-resource without a token (RFC 9728, 3): a client that cannot read it "
                f"may drop its token; else {next_step}"
            )
        elif mismatch := facts.violations("AUTH102"):
            title += f"; its metadata does not fit: {quote(mismatch[0].findings[0].message)}"
            next_step = f"let both documents and the token name one issuer (RFC 8414, 3.3; RFC 9068, 2.2); {next_step}"
        yield sign_in_claim(facts, title, next_step, step, side="")


@cause(
    "authorization-refused",
    "the authorization server sent the client back without a code",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.unauthorized(
            ex.METADATA,
            ex.http("GET", 302, 63, {}, location="http://127.0.0.1:9/callback?error=invalid_scope"),
            ex.oauth("authorize", 302, error="invalid_scope", names=["scope"]),
        ),
        ex.unauthorized(ex.METADATA, ex.oauth("authorize", 302, error="invalid_target", names=["resource"])),
        ex.unauthorized(ex.METADATA, ex.oauth("authorize", 302, error="server_error")),
        ex.unauthorized(ex.METADATA, ex.oauth("authorize", 302, error="invalid_scope", differs=["scope"])),
        ex.unauthorized(ex.METADATA, ex.oauth("authorize", 302, error="access_denied")),
        ex.unauthorized(
            ex.METADATA,
            ex.http("GET", 302, 63, {}, location="/login?next=/authorize"),
            ex.oauth("authorize", 302, 63),
        ),
        ex.unauthorized(
            ex.METADATA,
            ex.http("GET", 302, 63, {}, location="http://api:4000/authorize?state=[redacted]"),
            ex.oauth("authorize", 302, 63),
        ),
    ),
    negative=ex.unauthorized(ex.METADATA),
)
def authorization_refused(facts: Facts) -> Iterator[Claim]:
    """It refuses the scopes, the client or its redirect URI by an error in the redirect, or the
    user did not agree.
    """
    for step in steps_of(facts, "authorize")[-1:]:
        later = [each for each in steps_of(facts, "token") if each.at >= step.at]
        if not unauthorized(facts) or later or not 300 <= (step.status or 0) < 400:
            continue
        words = words_of(step)  # Empty in recordings before 2026-11-28.
        location = facts.http.locations.get(step.fields.get("http"), "")
        is_named = bool(words or re.search(r"[?&#]error=", location))
        how, next_step = _of_redirect(words, location)
        title = (
            f"the authorization server answered the request for authorization with a redirect (HTTP "
            f"{step.status}){how}, and the client never asked for a token"
        )
        if not how.startswith((" to a", " that has a code")) and "scope" in names_of(step):
            next_step += "; the request had a scope: compare it with scopes_supported of the metadata"
        side, next_step = _of_refused_authorization(facts, step, words, next_step)
        if (decision := by_values(step, words)) is not None:
            title, side, next_step = f"{title}; {decision.title}", decision.side, decision.next_step
        claim = sign_in_claim(facts, title, next_step, step, side=side if is_named else "")
        claim.level = Level.EXACT if is_named else Level.SPECIFIC
        yield claim


def _of_redirect(words: str, location: str) -> tuple[str, str]:
    """Return what a redirect of the authorization server has, in words, and the next step."""
    if words or re.search(r"[?&#]error=", location):
        how = f" that has an error and no code{clause(words)}"
        if words:
            return how, "change what the error names, and sign in again"
    elif re.search(r"[?&]code=", location):
        return " that has a code", (
            "look in the client's log for why it did not use this code: it may not have reached the client (a browser on another "
            "machine, a port at which nothing listens any more), or its state or issuer is not the one that the client expects"
        )
    elif host := _internal_host(location):
        return f" to {quote(location.partition('?')[0], 80)}, a name of the server's own network", (
            f"let the server make its addresses of the public URL, and not of the Host that it gets from its proxy ({quote(host, 40)}): a "
            f"setting for its base URL, or X-Forwarded-Host and -Proto, which it must trust"
        )
    elif LOGIN_PAGE.search(location):
        return f" to a page for signing in ({quote(location, 80)})", (
            "complete the sign-in in the browser, in the time that the client waits; if it was completed, look where the "
            "page led to then, and whether that address reaches the client"
        )
    else:
        how = ""
    return how, (
        "look at error and error_description in the address of the redirect (in the browser or the client's log)"
    )


def _internal_host(location: str) -> str:
    """Return the host of an address if no browser outside of the server's network can reach it, such as `api`; else nothing."""
    host = url_parts(location).hostname or ""
    is_internal = host.endswith((".internal", ".local", ".svc", ".lan")) or (
        "." not in host and ":" not in host
    )
    return host if host and host not in LOOPBACK and is_internal else ""


def _of_refused_authorization(facts: Facts, step: OauthStep, words: str, next_step: str) -> tuple[str, str]:
    """Return the side that the error of a redirect is about, and the next step: the given one if its words decide no more."""
    if "scope" in words:
        return "", next_step  # Clients ask for what the resource's metadata list, or for more.
    if is_resource_unknown(facts, step):
        return of_resource(facts, step)
    if (named := named_as_missing(step, words)) is not None:
        return of_missing(*named)
    if re.search(r"server_error|temporarily_unavailable", words):
        return SERVER, next_step
    if re.search(r"access_denied|_required|account_selection", words):
        return "", next_step  # What the person did, or has to do.
    if re.search(r"unauthorized_client|invalid_client", words):
        return (SERVER, JUST_REGISTERED) if is_registered(facts) else ("configuration", next_step)
    return CLIENT, next_step


LOGIN_PAGE = re.compile(
    r"(?i)(?:^|[/._-])(?:log[-_]?in|sign[-_]?in|sso|consent|saml2?|accounts?)(?=$|[/._?-])"
)
"""The address of a page for signing in."""
