"""Authorization from the page of the sign-in on: codes, tokens, and tokens that are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.compared import by_values, token_by_values
from mcpspy.analysis.explain.causes.definition import FailureRow, advised, define
from mcpspy.analysis.explain.causes.exchanges import ERROR_PAGE, exchanges, side_of, who_refused
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
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.counted import duration
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
        if exchange.status != 401 or not since or "authorization" not in exchange.request or has_worked:
            continue
        words = challenge_words(exchange.response.get("www-authenticate", "")) or exchange.words
        title = (
            f"the server refuses the token {min(since):.1f} s after it was issued: "
            f"{quote(words) or 'HTTP 401'}"
        )
        next_step = (
            "compare issuer, audience, keys and scopes of the token with what the server checks; signing "
            "in again brings the same"
        )
        side = SERVER if has_resource else CLIENT
        is_page = exchange.media_type.startswith("text/html") and not ERROR_PAGE.search(words)
        if is_page and "www-authenticate" not in exchange.response:
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
        went_on = [each for each, _ in exchanges(facts) if "authorization" in each.request]
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
        side = "" if has_secret else "configuration"
        if mismatch := facts.violations("AUTH102"):
            title += f"; its metadata does not fit: {quote(mismatch[0].findings[0].message)}"
            next_step = f"let both documents and the token name one issuer (RFC 8414, 3.3; RFC 9068, 2.2); {next_step}"
            side = ""
        yield sign_in_claim(facts, title, next_step, step, side=side)


_REGISTER_RESOURCE = (
    "register the URL of the MCP server at the authorization server as a resource (an audience that it accepts): a client sends "
    "the one that the server's metadata name, as it must (RFC 8707)"
)
_COMPARE_RESOURCES = (
    "compare the resource that the client sent (in the address of the page) with the one that the server's metadata name: a "
    "slash at its end, or the origin alone, is the client's mistake; if they are the same"
)


def _named_resources(facts: Facts) -> list[str]:
    """Return the resources that metadata of the resource name."""
    return [
        str(each.fields["resource"])
        for each in steps_of(facts, "resource metadata")
        if each.fields.get("resource")
    ]


def _is_resource_unknown(facts: Facts, step: OauthStep) -> bool:
    """Return whether the authorization server refuses a resource, although metadata name one."""
    words = words_of(step)
    is_asked = "resource" in names_of(step) and "invalid_target" in words and "scope" not in words
    return is_asked and bool(_named_resources(facts))


def _of_resource(facts: Facts, step: OauthStep) -> tuple[str, str]:
    """Return the side and the next step if a resource is refused. The values of parameters are not recorded."""
    words = words_of(step)
    is_quoted = any(
        re.search(rf"{re.escape(each)}(?![\w/])", words) is not None for each in _named_resources(facts)
    )
    return (SERVER, _REGISTER_RESOURCE) if is_quoted else ("", f"{_COMPARE_RESOURCES}, {_REGISTER_RESOURCE}")


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


def _of_refused_authorization(facts: Facts, step: OauthStep, words: str, next_step: str) -> tuple[str, str]:
    """Return the side that the error of a redirect is about, and the next step: the given one if its words decide no more."""
    if "scope" in words:
        return "", next_step  # Clients ask for what the resource's metadata list, or for more.
    if _is_resource_unknown(facts, step):
        return _of_resource(facts, step)
    if (named := _named_as_missing(step, words)) is not None:
        return _of_missing(*named)
    if re.search(r"server_error|temporarily_unavailable", words):
        return SERVER, next_step
    if re.search(r"access_denied|_required|account_selection", words):
        return "", next_step  # What the person did, or has to do.
    if re.search(r"unauthorized_client|invalid_client", words):
        return (SERVER, _JUST_REGISTERED) if _is_registered(facts) else ("configuration", next_step)
    return CLIENT, next_step


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


LOGIN_PAGE = re.compile(
    r"(?i)(?:^|[/._-])(?:log[-_]?in|sign[-_]?in|sso|consent|saml2?|accounts?)(?=$|[/._?-])"
)
"""The address of a page for signing in."""


_TOKEN_ERRORS = (
    ("redirect", "register exactly the redirect URI that the client uses, with its port and path"),
    (
        r"public.{0,80}secret|neither .{0,40}secret",
        (
            "leave client_secret out of the request (in the client's configuration too): this client is registered as a public "
            "one, which has no secret; or register it as one with a secret"
        ),
    ),
    (
        r"secret\b.{0,20}\b(?:required|missing)|(?:required|missing)\b.{0,20}\bsecret",
        (
            "let the token endpoint want no secret from a client that registered with token_endpoint_auth_method none (a public "
            "client, with PKCE), and give it none in the answer to the registration; a client with a secret must send it"
        ),
    ),
    (
        "invalid_client|client authentication|unauthorized_client",
        (
            "configure the client_id and client_secret that the authorization server knows; it may have "
            "forgotten a registration"
        ),
    ),
    (
        "verifier|pkce|challenge",
        (
            "compare the code_verifier of this request with the code_challenge of the sign-in: a client that begins two sign-ins "
            "at once mixes them up; the authorization server may also compute S256 otherwise (RFC 7636, 4.6)"
        ),
    ),
    (
        "invalid_grant|expired|code",
        "sign in again: the code or refresh token is used up, expired, or from another client or redirect URI",
    ),
    (
        "resource|target|audience",
        (
            "send the resource that the authorization server knows (the URL of the endpoint), or let it "
            "accept the parameter resource (RFC 8707)"
        ),
    ),
    (
        "scope",
        (
            "let the client ask only for scopes that the authorization server knows and allows together; "
            "a refresh may leave scope out"
        ),
    ),
    ("grant_type", "allow this grant type for the client"),
    ("", "read the error of the authorization server; its log has more"),
)
"""Error of RFC 6749, 5.2, RFC 7636, 4.6 or RFC 8707, 2, or words of its description → the next
step; the first one counts.
"""


def _by_status(facts: Facts, step: OauthStep, words: str) -> tuple[str, str] | None:
    """Return the side and the next step if the status of a refused step, or its sender, is reason enough."""
    status = step.status or 0
    if status >= 500:
        return SERVER, "look into the log of the authorization server at this time"
    number = step.fields.get("http")
    refused = next((each for each in facts.of(RefusedExchange) if each.number == number), None)
    if refused is not None and status == 403 and not words and side_of(refused) == "proxy":
        return "proxy", (
            f"look which rule of {who_refused(refused)} refuses this request (a protection against bots, a firewall), and exempt "
            f"the addresses of the sign-in from it, as that of the endpoint"
        )
    if status == 429:
        return (
            "",
            "wait, and sign in again; let the client ask less often, or the authorization server allow more",
        )
    if status in (404, 405) and step.step == "token":
        return (
            SERVER,
            "let the metadata name the token_endpoint at which the authorization server answers POST",
        )
    if re.match(r"authorization_pending|slow_down|expired_token|access_denied", words):
        return (
            "",
            "complete the sign-in on the page that the client named, in the time that its code is valid",
        )
    return None


def _by_error(facts: Facts, step: OauthStep, words: str) -> tuple[str, str]:
    """Return the side that an error of a step of OAuth is about, and the next step."""
    if _is_resource_unknown(facts, step):
        return _of_resource(facts, step)
    if (found := _by_status(facts, step, words)) is not None:
        return found
    next_step = advised(_TOKEN_ERRORS, words)
    if "scope" in words:  # At first, clients ask for what the resource's metadata list.
        return CLIENT if "refresh_token" in names_of(step) else "", next_step
    if step.step in ("token", "authorize") and (named := _named_as_missing(step, words)):
        return _of_missing(*named)
    if _is_nameless(facts, step):
        return CLIENT, (
            "let the client name itself: by client_id in the form of the request, with or without client_secret, or by the header "
            "Authorization (RFC 6749, 2.3.1 and 3.2.1)"
        )
    if step.step == "token" and words.startswith("invalid_grant"):
        return (
            "",
            next_step,
        )  # A code or refresh token that the one has used up or kept too long, or the other lost.
    if (found := _by_client(facts, step, words)) is not None:
        return found
    # Without words, the request may name a client or a redirect URI that was registered by hand, or is forgotten.
    return SERVER if step.step == "token" else "", next_step


def _by_client(facts: Facts, step: OauthStep, words: str) -> tuple[str, str] | None:
    """Return the side and the next step if an error is about the client or its redirect URI."""
    is_offered, is_redirect = _is_offered(facts), "redirect" in words and step.step != "token"
    if _is_registered(facts):
        is_loopback = re.search(r"localhost|127\.0\.0\.1|\[::1\]", words) is not None
        side, next_step = ("", _JUST_REGISTERED) if is_loopback else (CLIENT, advised(_TOKEN_ERRORS, words))
        return (side, next_step) if is_redirect else None
    if is_redirect and is_offered:
        return (SERVER if _METADATA_DOCUMENT.search(words) else ""), _COMPARE_REDIRECTS
    if "client" not in words.lower():
        return None
    if is_offered and step.step == "authorize" and not words.startswith("invalid_client"):
        return "", _FORGOTTEN
    if is_offered and step.step == "token" and "unauthorized_client" in words:
        return "", (
            "remove what the client has stored for this server: its registration is probably lost; let the authorization server "
            "answer invalid_client for a client that it does not know (RFC 6749, 5.2), after which the client has to register again"
        )
    if is_offered:
        return CLIENT, (
            "the client registered earlier, and the authorization server no longer knows it: let the client register "
            "again after invalid_client; until then remove what it has stored for this server"
        )
    return "configuration", advised(_TOKEN_ERRORS, words)


def _is_nameless(facts: Facts, step: OauthStep) -> bool:
    """Return whether a token request names no client, by form or by header."""
    names = set(names_of(step))
    is_named = {"client_id", "client_assertion"} & names or step.fields.get("http") in facts.http.with_token
    return step.step == "token" and bool(names) and not is_named


def _is_offered(facts: Facts) -> bool:
    """Return whether clients can register by themselves."""
    return any("registration_endpoint" in names_of(each) for each in steps_of(facts, "server metadata"))


def _is_registered(facts: Facts) -> bool:
    """Return whether the client has registered in this recording."""
    return any((each.status or 400) < 300 for each in steps_of(facts, "registration"))


_METADATA_DOCUMENT = re.compile(r"(?i)\bCIMD\b|metadata document")
"""A client that is known by the document at the address that is its id."""

_COMPARE_REDIRECTS = (
    "compare the redirect URI in the address of the request (in the browser) with those of the client's registration or metadata "
    "document: the port of a loopback address does not count, so the authorization server has to take any (RFC 8252, 7.3); "
    "another address needs a new registration: remove the stored one"
)

_JUST_REGISTERED = (
    "the authorization server has just registered this client: let it use the same rules at the request for authorization "
    "(redirect URIs, grant types), or refuse the registration; look whether the store of registrations is the one that it reads here"
)


_FORGOTTEN = (
    "remove what the client has stored for this server, so that it registers again: the authorization server no longer knows "
    "its client_id, and the error of a page in the browser does not reach the client; let it keep registrations longer than the "
    "tokens of their clients"
)


def _of_missing(name: str, is_sent: bool) -> tuple[str, str]:
    """Return the side and the next step for a parameter that an error calls missing."""
    if is_sent:
        return SERVER, (
            f"let the authorization server read {quote(name, 40)} of the request, in which it is: it may expect another form, drop "
            f"it, or leave it out where it passes the request on to another authorization server"
        )
    if name in _OPTIONAL:
        return "", (
            f"let the client send {quote(name, 40)} in the request; or let the authorization server do without it"
        )
    return CLIENT, f"let the client send {quote(name, 40)} in the request"


_PARAMETERS = (
    *("code_verifier", "redirect_uri", "grant_type", "resource", "refresh_token", "code"),
    *("code_challenge", "code_challenge_method", "response_type", "audience", "scope", "state"),
)
"""Parameters of a request, beside those by which a client authenticates, which may be in a header."""

_OPTIONAL = ("audience", "scope", "state")
"""Those that a client need not send, and a server should not demand (RFC 6749, 3.3 and 4.1.1)."""


def _named_as_missing(step: OauthStep, words: str) -> tuple[str, bool] | None:
    """Return the parameter that an error calls missing, and whether the request has it."""
    if not re.search(
        r"(?i)\bmissing\b|\brequired\b|\bnot (?:provided|present|included|found in)|must (?:have|include)",
        words,
    ):
        return None
    found = [name for name in _PARAMETERS if re.search(rf"(?i)\b{name}\b", words)]
    return (found[0], found[0] in names_of(step)) if len(found) == 1 and names_of(step) else None


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
    side, next_step = _by_error(facts, step, words)
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
        if "invalid_grant" not in words and "scope" not in words:
            next_step = (
                "sign in again (remove the stored tokens): a client does so by itself only if the server "
                "answers invalid_grant for a dead refresh token"
            )
    title = f"the {what} was refused (HTTP {step.status}){clause(words)}"
    if (count := _at_once(facts, step)) > 1:
        title += f"; the client had begun {count} sign-ins at once, and each replaces the code_verifier of the one before"
        next_step, side = _ONE_SIGN_IN, CLIENT
    before = [
        step.at - each.at
        for each in steps_of(facts, "token")
        if each.status == 200 and "refresh_token" in names_of(each) and 0 <= step.at - each.at < TOGETHER
    ]
    if "refresh_token" in names and "invalid_grant" in words and before:
        title += (
            f"; the client had refreshed it {duration(min(before))} before, which used the refresh token up"
        )
        next_step = (
            "let the client refresh a token once, and all requests wait for that: servers that rotate refresh tokens "
            "revoke all of them if one is used twice (RFC 9700, 4.14.2); then sign in again"
        )
        side = CLIENT
    if step.step == "token" and _LACKS.search(words) and is_basic:
        title += "; the request has an Authorization header, and no client_id in its form"
        next_step = (
            "the client named itself by HTTP Basic (client_secret_basic): let the token endpoint read this header, as it must for "
            "clients with a secret (RFC 6749, 2.3.1); or let the client use the method that the registration answered "
            "(token_endpoint_auth_method), such as client_secret_post"
        )
    has_header = step.fields.get("http") in facts.http.with_token
    is_bare = words.startswith("invalid_client") or words == "invalid_request"
    is_twice = has_header and "client_secret" in names and is_bare
    if step.step != "authorize" and (is_twice or _TWICE.search(words)):
        form = [name for name in ("client_id", "client_secret", "client_assertion") if name in names]
        if has_header and form:
            title += f"; the request has an Authorization header, and {' and '.join(form)} in its form too"
        next_step = (
            "let the client authenticate by one method alone (RFC 6749, 2.3), the one that the registration answered "
            "(token_endpoint_auth_method): client_secret_basic is the header with neither client_id nor client_secret "
            "in the form, client_secret_post is the form without the header"
        )
        side = CLIENT
    elif has_header and "client_id" in names and words.startswith("invalid_client"):
        title += "; the request has an Authorization header, and client_id in its form too"
        next_step += "; some servers also refuse a client that names itself in both places"
    elif step.step == "token" and _is_unauthenticated(facts, step, words):
        title += (
            "; the client had registered without token_endpoint_auth_method, which means client_secret_basic (RFC 7591, "
            "2), and its request has neither an Authorization header nor a client_secret"
        )
        next_step = (
            "let the client register with token_endpoint_auth_method none if it has no secret; else let it send the "
            "secret that it got, by the method that the registration answered"
        )
        side = CLIENT
    if (decision := by_values(step, words)) is not None:
        title, side, next_step = f"{title}; {decision.title}", decision.side, decision.next_step
    yield sign_in_claim(facts, title, next_step, step, side=side)


def _of_authorize(facts: Facts, step: OauthStep, words: str, found: tuple[str, str]) -> tuple[str, str]:
    """Return the side and the next step for a refused request for authorization, if more is known of it; else what was found."""
    if step.step != "authorize":
        return found
    if _is_registered(facts) and _NOT_PERMITTED.search(words):
        return SERVER, (
            "the authorization server has just accepted this redirect URI in the registration: let it "
            "check both by one list, or refuse the registration (invalid_redirect_uri)"
        )
    is_of_client = (not words or "client" in words) and found[1] is not _FORGOTTEN
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

define(
    __name__,
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
        r"|token (?:limit|count|budget)|\bjson\b|permi(?:ssion|tted)|\bscope|not allowed|not authori[sz]ed|forbidden))"
        r".*\b(?:server_error|invalid_token|token|jwt|unauthorized)\b",
        if_refused=lambda facts, exchange: (
            facts.http.token_accepted_at is not None
            and "authorization" in exchange.request
            and facts.http.accepted.get(exchange.request.get("mcp-session-id", ""), 0.0) <= exchange.last_at
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
            _ACCEPTED,
            *(ex.call(3), ex.answered(500, ex.WITH_TOKEN), '<< {"error":"server_error"}'),
        ),
    ),
)
