"""Authorization: a token that is missing, refused or expired, and each step of the sign-in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import Definition, FailureRow, advised, define
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_overcome, said
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import EvidenceLine, clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT, SERVER

_EXPIRED = re.compile(r"(?i)\bexpired?\b|invalid_token")
_UNSURE = re.compile(r"(?i)\bor\b|invalid|incorrect")
_AUDIENCE = re.compile(
    r"(?i)\baudience\b|\baud\b|not (?:intended|issued) for|resource indicator|wrong resource"
)
_SCOPE = re.compile(r"(?i)insufficient[_ ]scope|\bscopes?\b")
"""The errors of RFC 6750, 3.1, and the words of libraries that check tokens (PyJWT, jose, Spring Security)."""


_RULES = "AUTH101 AUTH102 AUTH103 AUTH104 AUTH105 AUTH201 AUTH202 AUTH203 AUTH204 HTTP502"

_Refused = tuple[RefusedExchange, Symptom]


def _unauthorized(facts: Facts) -> list[_Refused]:
    """Return the requests that were refused for lack of authorization, and did not succeed later."""
    return [each for each in exchanges(facts, 401, 403) if getattr(each[1], "succeeded_at", None) is None]


def _steps(facts: Facts, *names: str) -> list[OauthStep]:
    return [each for each in facts.http.oauth if each.step in names]


def _refused(facts: Facts, *names: str) -> OauthStep | None:
    """Return the last of these steps, if it was refused."""
    steps = _steps(facts, *names)
    return steps[-1] if steps and (steps[-1].status or 0) >= 400 else None


def _other_resource(step: OauthStep, endpoint: str) -> str:
    """Return the resource that metadata name, if it is not the endpoint with this path; else nothing."""
    resource = str(step.fields.get("resource") or "")
    is_endpoint = f"{endpoint}/".startswith(f"{urlsplit(resource).path.rstrip('/')}/")
    return resource if step.status == 200 and not is_endpoint else ""


def _names(step: OauthStep) -> list[str]:
    """Return the names of what a step had: parameters of its request, members of the metadata."""
    return list(step.fields.get("names", ()))


def _words(step: OauthStep) -> str:
    """Return the error of a step with its description; empty if it has none."""
    words = [str(step.fields[name]) for name in ("error", "error_description") if step.fields.get(name)]
    return quote(": ".join(words))


def _line(step: OauthStep) -> EvidenceLine:
    return evidence(step.place, f"{step.step}: HTTP {step.status}{clause(_words(step))}")


def _symptoms(facts: Facts) -> list[Symptom]:
    """Return all that a failed sign-in brings about: the refused requests, and the refused steps."""
    refused = [symptom for _, symptom in _unauthorized(facts)]
    steps = {key for step in facts.http.oauth for key in (step.place, step.fields.get("http"))}
    rest = [
        each
        for each in facts.of(RefusedExchange)
        if each.number in steps or each.place in steps or ".well-known" in each.path
    ]
    early = [
        symptom
        for exchange, symptom in exchanges(facts, 400, 404, 405)
        if facts.http.oauth and exchange.asked == "initialize"
    ]
    return [
        *refused,
        *(each for each in rest if each not in refused),
        *early,
        *facts.violations(*_RULES.split()),
    ]


def _claim(facts: Facts, title: str, next_step: str, *steps: OauthStep, side: str = "configuration") -> Claim:
    """Return a claim of all that a failed sign-in brings about, with these steps as its evidence."""
    lines = [_line(step) for step in steps]
    return Claim(title=title, next_step=next_step, symptoms=_symptoms(facts), evidence=lines, side=side)


def sign_in_not_offered(facts: Facts) -> Iterator[Claim]:
    """A 401 should name its metadata (RFC 9728, 5.1), and the metadata the authorization server; else clients can only guess."""
    refused = [exchange for exchange, _ in _unauthorized(facts) if exchange.status == 401]
    metadata = _steps(facts, "resource metadata", "server metadata")
    if refused and metadata and all(step.status != 200 for step in metadata):
        is_named = "resource_metadata" in refused[0].response.get("www-authenticate", "")
        challenge = "" if is_named else "its 401 has no WWW-Authenticate with resource_metadata, and "
        title = f"the server wants a token and names no way to get one: {challenge}{len(metadata)} addresses of metadata were answered with HTTP {metadata[-1].status}"
        next_step = "configure a token (header Authorization) in the host, if the server takes a fixed one; else let the server serve /.well-known/oauth-protected-resource and name it in WWW-Authenticate"
        yield _claim(facts, title, next_step, *metadata[:2], side=SERVER)


def new_token_refused(facts: Facts) -> Iterator[Claim]:
    """The token is for another audience, or the server checks it against other keys, another issuer or a lost store."""
    issued = [step for step in _steps(facts, "token") if step.status == 200]
    has_resource = any("resource" in _names(step) for step in _steps(facts, "token", "authorize"))
    has_worked = facts.http.accepted_with_token and facts.server.messages > 1
    for exchange, _ in _unauthorized(facts):
        since = [exchange.at - step.at for step in issued if 0 <= exchange.at - step.at < 60.0]
        if exchange.status != 401 or not since or "authorization" not in exchange.request or has_worked:
            continue
        words = challenge_words(exchange.response.get("www-authenticate", "")) or exchange.words
        title = f"the server refuses the token {min(since):.1f} s after it was issued: {quote(words) or 'HTTP 401'}"
        next_step = "compare issuer, audience, keys and scopes of the token with what the server checks; signing in again brings the same"
        if not has_resource:
            title += "; the client asked for it without resource, so it may be for another audience"
            next_step = "let the client send resource = the URL of this server in both requests (RFC 8707)"
        yield _claim(facts, title, next_step, issued[-1], side=SERVER if has_resource else CLIENT)
        break


def no_token_issued(facts: Facts) -> Iterator[Claim]:
    """Some authorization servers answer HTTP 200 with an error in place of a token. Bodies of this step are not recorded."""
    for step in _steps(facts, "token")[-1:]:
        later = [each for each in _steps(facts, "retry") if each.at >= step.at]
        refused = [exchange for exchange, _ in _unauthorized(facts)]
        if step.status != 200 or later or not refused or any(each.at >= step.at for each in refused):
            continue
        secret = "" if "client_secret" in _names(step) else "; the request had no client_secret"
        title = f"the token request was answered with HTTP 200, and the client sent no request with a token after it: the answer has an error in place of a token, or the client refuses it{secret}"
        next_step = "look at the answer in the client's log (its body is not recorded): often the client_id or client_secret is wrong"
        yield _claim(facts, title, next_step, step)


def authorization_refused(facts: Facts) -> Iterator[Claim]:
    """It refuses the scopes, the client or its redirect URI by an error in the redirect, or the user did not agree."""
    for step in _steps(facts, "authorize")[-1:]:
        later = [each for each in _steps(facts, "token") if each.at >= step.at]
        if not _unauthorized(facts) or later or not 300 <= (step.status or 0) < 400:
            continue
        words = _words(step)  # Empty in recordings before 2026-11-28.
        is_named = words or re.search(r"[?&#]error=", facts.http.locations.get(step.fields.get("http"), ""))
        how = f" that has an error and no code{clause(words)}" if is_named else ""
        title = f"the authorization server answered the request for authorization with a redirect (HTTP {step.status}){how}, and the client never asked for a token"
        look = "look at error and error_description in the address of the redirect (in the browser or the client's log)"
        next_step = "change what the error names, and sign in again" if words else look
        if "scope" in _names(step):
            next_step += "; the request had a scope: compare it with scopes_supported of the metadata"
        claim = _claim(facts, title, next_step, step, side=CLIENT if is_named else "")
        claim.level = Level.EXACT if is_named else Level.SPECIFIC
        yield claim


def oauth_registration(facts: Facts) -> Iterator[Claim]:
    """Dynamic registration is refused or not offered: the client needs an id that was registered by hand."""
    found = [step for step in _steps(facts, "resource metadata", "server metadata") if step.status == 200]
    endpoint = urlsplit(facts.header.upstream or "").path
    if not _unauthorized(facts) or not found or any(_other_resource(step, endpoint) for step in found):
        return  # The metadata of another resource led the client away (RFC 9728, 3.3).
    if (refused := _refused(facts, "registration")) is not None:
        next_step = "register the client by hand and configure its client_id, or allow dynamic registration at the authorization server"
        if "redirect" in _words(refused):
            next_step = "allow the client's redirect URI at the authorization server"
        title = f"the authorization server refused to register the client (HTTP {refused.status}){clause(_words(refused))}"
        yield _claim(facts, title, next_step, refused)
        return
    went_on = _steps(facts, "registration", "authorize", "token", "device authorization")
    metadata = [step for step in found if step.step == "server metadata"]
    if metadata and not went_on and "registration_endpoint" not in _names(metadata[-1]):
        title = "the metadata of the authorization server names no registration_endpoint, and the client stopped there: it has no client id"
        next_step = "configure a client_id that was registered by hand, or put a server that offers registration in front of the authorization server"
        claim = _claim(facts, title, next_step)
        claim.evidence = [evidence(metadata[-1].place, "server metadata without registration_endpoint")]
        yield claim


_METADATA_STEPS = {
    "AUTH101": "let the metadata name the URL of the endpoint as its resource, as clients use it",
    "AUTH102": "let the metadata name the issuer that it is served under, or the resource's metadata name this issuer",
    "AUTH103": "let the authorization server declare S256 in code_challenge_methods_supported",
}


def oauth_metadata(facts: Facts) -> Iterator[Claim]:
    """The issuer must be the URL that it was asked from, the resource the URL of the endpoint (RFC 8414, 3.3; RFC 9728, 3.3)."""
    has_stopped = _refused(facts, "registration") is not None
    if not (_unauthorized(facts) or has_stopped) or _steps(facts, "token", "retry"):
        return
    for step in [each for each in facts.http.oauth if each.fields.get("unreadable")][:1]:
        title = f"the address of the {step.step} is answered with HTTP {step.status} and no JSON object, such as a page of a web application"
        next_step = "let the server answer /.well-known/oauth-* with metadata, or 404 if it wants no token"
        claim = _claim(facts, title, next_step, step, side=SERVER)
        claim.symptoms += facts.of(RefusedExchange) if has_stopped else []
        yield claim
        return
    for violation in facts.violations(*_METADATA_STEPS):
        title = quote(violation.findings[0].message)
        claim = _claim(facts, title, _METADATA_STEPS[violation.code], side=SERVER)
        claim.evidence = violation.lines[:1]
        yield claim
    endpoint = urlsplit(facts.header.upstream or "").path
    for step in _steps(facts, "resource metadata"):
        if resource := _other_resource(step, endpoint):
            title = f"the metadata is that of the resource {quote(resource, 80)}, which is not the URL of the endpoint ({quote(endpoint, 60)})"
            claim = _claim(facts, title, f"{_METADATA_STEPS['AUTH101']} (RFC 9728, 3.3)", side=SERVER)
            claim.evidence = [evidence(step.place, f"resource: {resource}")]
            yield claim
            break


_NOT_PERMITTED = re.compile(r"(?i)redirect.{0,200}(?:not (?:permitted|allowed)|allow-?list|whitelist)")
"""An authorization server that has a list of redirect URIs beside the registered ones."""

_TOKEN_ERRORS = (
    ("redirect", "register exactly the redirect URI that the client uses, with its port and path"),
    ("invalid_client|client authentication|unauthorized_client", "configure the client_id and client_secret that the authorization server knows; it may have forgotten a registration"),
    ("invalid_grant|expired|code", "sign in again: the code or refresh token is used up, expired, or from another client or redirect URI"),
    ("verifier|pkce|challenge", "send the code_verifier that belongs to the code_challenge"),
    ("resource|target|audience", "send the resource that the authorization server knows (the URL of the endpoint), or let it accept the parameter resource (RFC 8707)"),
    ("scope", "let the client ask only for scopes that the authorization server knows and allows together; a refresh may leave scope out"),
    ("grant_type", "allow this grant type for the client"),
    ("", "read the error of the authorization server; its log has more"),
)  # fmt: skip
"""Error of RFC 6749, 5.2, RFC 7636, 4.6 or RFC 8707, 2, or words of its description → the next step; the first one counts."""


def oauth_token(facts: Facts) -> Iterator[Claim]:
    """The code or refresh token has expired, the client or redirect URI is another than registered, or PKCE does not fit."""
    step = _refused(facts, "token", "device authorization", "pushed authorization", "authorize")
    if step is None or not (_unauthorized(facts) or step.step != "token"):
        tokens = [each for each in _steps(facts, "token") if "refresh_token" in _names(each)]
        step = next((each for each in reversed(tokens) if (each.status or 0) >= 400), None)
    if step is None:
        return
    words, names, what = _words(step), _names(step), f"{step.step} request"
    next_step = advised(_TOKEN_ERRORS, words)
    is_basic = "client_id" not in names and step.fields.get("http") in facts.http.with_token
    if "client" in words and is_basic:
        next_step = "the client named itself by HTTP Basic (client_secret_basic), not in the body: let the token endpoint read the Authorization header, or not offer this method in token_endpoint_auth_methods_supported"
    is_of_client = not words or "client" in words
    if step.step == "authorize" and is_of_client and not _steps(facts, "registration"):
        next_step = "the client used a client_id from an earlier registration, which the authorization server may no longer know: remove the client's stored registration, so that it registers again"
    side = "configuration"
    is_registered = any((each.status or 400) < 300 for each in _steps(facts, "registration"))
    if step.step == "authorize" and is_registered and _NOT_PERMITTED.search(words):
        next_step = "the authorization server has just accepted this redirect URI in the registration: let it check both by one list, or refuse the registration (invalid_redirect_uri)"
        side = SERVER
    if "refresh_token" in names:
        what = "refresh of the token"
        if "invalid_grant" not in words and "scope" not in words:
            next_step = "sign in again (remove the stored tokens): a client does so by itself only if the server answers invalid_grant for a dead refresh token"
    title = f"the {what} was refused (HTTP {step.status}){clause(words)}"
    yield _claim(facts, title, next_step, step, side=side)


_WITH_TOKEN = {"authorization": "Bearer x"}
_EXPIRY = 'Bearer error="invalid_token", error_description="The token expired"'


def token_refused(facts: Facts) -> Iterator[Claim]:
    """The token has expired, is for another audience, lacks a scope, or is not a token of this server."""
    for exchange, symptom in _unauthorized(facts):
        has_token = "authorization" in exchange.request
        if not has_token and exchange.status == 401:
            continue
        words = challenge_words(exchange.response.get("www-authenticate", "")) or said(exchange, symptom)
        why, next_step = _refusal(facts, exchange, words)
        claim = _claim(facts, f"{why} (HTTP {exchange.status}){clause(words)}", next_step)
        claim.symptoms = claim.symptoms if exchange.status == 401 else [symptom]
        claim.level = Level.GENERAL if next_step == _NOT_ABOUT_TOKENS else Level.SPECIFIC
        yield claim


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
        next_step = "request the token with resource = the URL of this server; mcpspy exec keeps the server's own URL, mcpspy http has another one (--keep-resource)"
        return "the token is for another audience", next_step
    is_expired = "expired" in text.lower() and not _UNSURE.search(text)
    if _EXPIRED.search(text) and (is_expired or facts.server.messages > 1):
        next_step = "the client should ask for a new token with its refresh token after a 401, and did not; sign in again"
        if any("refresh_token" in _names(step) for step in _steps(facts, "token")):
            next_step = "sign in again; look why the new token is refused too"
        return "the token has expired", next_step
    if _EXPIRED.search(text):
        next_step = "check the value of the Authorization header in the host's configuration: a variable that the host does not replace (${TOKEN}), a missing 'Bearer', or an old token"
        return "the server refused the token with which the client began", next_step
    if not has_token:
        return f"{about(exchange)} is forbidden", _NOT_ABOUT_TOKENS
    next_step = "send a valid token: sign in again, or correct Authorization in the host's configuration"
    return "the server refused the token", next_step


def token_missing(facts: Facts) -> Iterator[Claim]:
    """The client has no token, a proxy drops Authorization, or the sign-in was not begun or not completed."""
    refused = [exchange for exchange, _ in _unauthorized(facts) if "authorization" not in exchange.request]
    if not refused or any(step.status == 200 for step in _steps(facts, "token")):
        return
    first, challenge = refused[0], refused[0].response.get("www-authenticate")
    words = challenge_words(challenge or "") or first.words
    title = f"{about(first)} was sent without a token, and the server answered HTTP {first.status}"
    title += f" ({quote(words, 80)})" if words else ""
    if facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]:
        title += ", although requests before had succeeded"
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    steps = [step for step in facts.http.oauth if step.step not in ("challenge", "retry")]
    if steps:
        last = steps[-1]
        title += f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})"
        next_step = "complete the sign-in in the browser; the client's log states why it stopped at this step"
        if (last.status or 0) >= 400:
            next_step = f"let the server answer the step {last.step!r}; clients stop here"
    elif challenge is None and first.status == 401:
        next_step += "; the server names no way to sign in: 401 lacks WWW-Authenticate"
    yield _claim(facts, title, next_step, *steps[-2:])


def signed_in(facts: Facts) -> Iterator[Claim]:
    """The 401 with which a sign-in begins is not a failure."""
    refused = [symptom for exchange, symptom in exchanges(facts) if exchange.status in (401, 403)]
    began: list[Symptom] = [
        each for each in refused if isinstance(each, FailedRequest) and is_overcome([each])
    ]
    if _steps(facts, "retry"):
        began += [each for exchange, each in _unauthorized(facts) if "authorization" not in exchange.request]
    if began:  # Clients ask for metadata at several places; that some have none is foreseen (RFC 9728, 3.1).
        absent = [each for each in facts.of(RefusedExchange) if each.status == 404]
        began += [each for each in absent if ".well-known" in each.path]
        title = "the client signed in after HTTP 401, as it should"
        yield Claim(title=title, next_step="nothing", symptoms=began, is_observation=True)


define(__name__,
    Definition(sign_in_not_offered, "sign-in-not-offered", "the server wants a token, and names no way to sign in", Level.EXACT,
               ex.unauthorized(ex.oauth("resource metadata", 404), ex.oauth("server metadata", 404)), ex.unauthorized(ex.METADATA)),
    Definition(new_token_refused, "new-token-refused", "the server refuses the token that was just issued", Level.EXACT,
               ex.unauthorized(ex.METADATA, ex.oauth("token", 200, names=["grant_type", "code", "resource"]), ex.request("initialize"), ex.answered(401, {"authorization": "Bearer x"}, {"www-authenticate": 'Bearer error="invalid_token"'})),
               ex.unauthorized(ex.METADATA)),
    Definition(no_token_issued, "no-token-issued", "the token request was answered, and the client got no token", Level.SPECIFIC,
               ex.unauthorized(ex.oauth("token", 200, names=["client_id", "code"]))),
    Definition(authorization_refused, "authorization-refused", "the authorization server sent the client back without a code", Level.EXACT,
               ex.unauthorized(ex.METADATA, ex.http("GET", 302, 63, {}, location="http://127.0.0.1:9/callback?error=invalid_scope"), ex.oauth("authorize", 302, error="invalid_scope", names=["scope"])),
               ex.unauthorized(ex.METADATA)),
    Definition(oauth_registration, "oauth-registration", "the client could not register at the authorization server", Level.EXACT,
               ex.unauthorized(ex.METADATA, ex.oauth("registration", 403)), ex.unauthorized(ex.METADATA, ex.oauth("registration", 201))),
    Definition(oauth_metadata, "oauth-metadata", "the metadata for the sign-in does not fit or cannot be read", Level.EXACT,
               ex.unauthorized(ex.oauth("resource metadata", 200, resource="http://127.0.0.1:3001/other")), ex.unauthorized(ex.METADATA)),
    Definition(oauth_token, "oauth-token", "the token request was refused", Level.EXACT,
               ex.unauthorized(ex.METADATA, ex.oauth("token", 400, error="invalid_grant", names=["grant_type", "code"])),
               ex.unauthorized(ex.METADATA, ex.oauth("registration", 403))),
    FailureRow("token-check-failed", "the check of the token fails with an error of the server", Level.SPECIFIC,
        "A server that answers an expired token with 500 in place of 401 gives the client no reason to refresh it.",
        "requests with the same token had been accepted, and now each gets HTTP {status}: {words}: the token has probably expired",
        'let the server answer 401 with error="invalid_token", so that the client refreshes the token; until then sign in again',
        ex.session("@ http", *(ex.call(), ex.answered(200, _WITH_TOKEN), ex.done()),
                   *(ex.call(3), ex.answered(500, _WITH_TOKEN), '<< {"error":"server_error"}')), statuses=(400, 403, 500), is_together=True,
        words=r"\b(?:server_error|invalid_token|token|jwt|unauthorized)\b", if_refused=lambda facts,
        exchange: facts.http.accepted_with_token and "authorization" in exchange.request),
    Definition(token_refused, "token-refused", "the server refused the token", Level.SPECIFIC,
               ex.session("@ http", ex.call(), ex.answered(401, _WITH_TOKEN, {"www-authenticate": _EXPIRY})), ex.session("@ http", ex.call(), ex.answered(401))),
    Definition(token_missing, "token-missing", "the server wants a token, and the request has none", Level.GENERAL,
               ex.session("@ http", ex.call(), ex.answered(401)), ex.session("@ http", ex.call(), ex.answered(401, _WITH_TOKEN))),
    Definition(signed_in, "signed-in", "a request was refused until the client had signed in", Level.EXACT,
               ex.unauthorized(ex.request("initialize"), ex.answered(200, _WITH_TOKEN), ex.welcome(2), ex.INITIALIZED, ex.request("ping", 3), ex.result(3)),
               ex.unauthorized()),
)  # fmt: skip
