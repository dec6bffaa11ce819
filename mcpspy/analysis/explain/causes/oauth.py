"""Authorization: a token that is missing, refused or expired, and each step of the sign-in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes.connection import exchanges
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.refusal import challenge_words

_EXPIRED = re.compile(r"(?i)\bexpired?\b|invalid_token")
_AUDIENCE = re.compile(
    r"(?i)\baudience\b|\baud\b|not (?:intended|issued) for|resource indicator|wrong resource"
)
_SCOPE = re.compile(r"(?i)insufficient[_ ]scope|\bscopes?\b")


def _unauthorized(facts: Facts) -> list[tuple[RefusedExchange, Symptom]]:
    """Return the requests that were refused for lack of authorization, and did not succeed later."""
    found = []
    for exchange, symptom in exchanges(facts):
        if exchange.status not in (401, 403) or exchange.error:
            continue
        later = symptom.succeeded_at if isinstance(symptom, FailedRequest | RefusedExchange) else None
        if later is None:
            found.append((exchange, symptom))
    return found


def _steps(facts: Facts, *names: str) -> list[OauthStep]:
    return [each for each in facts.http.oauth if each.step in names]


def _other_resource(step: OauthStep, endpoint: str) -> str:
    """Return the resource that metadata name, if it is not the endpoint; else nothing."""
    resource = str(step.fields.get("resource") or "")
    is_endpoint = f"{endpoint}/".startswith(f"{urlsplit(resource).path.rstrip('/')}/")
    return resource if step.status == 200 and not is_endpoint else ""


def _refused(facts: Facts, *names: str) -> OauthStep | None:
    """Return the last of these steps, if it was refused."""
    steps = _steps(facts, *names)
    return steps[-1] if steps and steps[-1].status is not None and steps[-1].status >= 400 else None


def _said(step: OauthStep) -> str:
    words = [str(step.fields[name]) for name in ("error", "error_description") if step.fields.get(name)]
    return quote(": ".join(words))


def _line(step: OauthStep) -> EvidenceLine:
    said = _said(step)
    return evidence(step.place, f"{step.step}: HTTP {step.status}{f': {said}' if said else ''}")


def _symptoms(facts: Facts) -> list[Symptom]:
    """Return all that a failed sign-in brings about: the refused requests, and the refused steps."""
    refused = [symptom for _, symptom in _unauthorized(facts)]
    steps = {step.place for step in facts.http.oauth}
    numbers = {step.fields.get("http") for step in facts.http.oauth}
    rest = [
        each
        for each in facts.of(RefusedExchange)
        if each.number in numbers or each.place in steps or ".well-known" in each.path
    ]
    codes = (
        "AUTH101",
        "AUTH102",
        "AUTH103",
        "AUTH104",
        "AUTH105",
        "AUTH201",
        "AUTH202",
        "AUTH203",
        "AUTH204",
        "HTTP502",
    )
    early = [
        failed for failed in facts.failed()
        if failed.method == "initialize" and failed.refusal is not None and failed.refusal.status in (400, 404, 405) and facts.http.oauth
    ]  # fmt: skip
    return [*refused, *(each for each in rest if each not in refused), *early, *facts.violations(*codes)]


@cause(
    "sign-in-not-offered",
    "the server wants a token, and names no way to sign in",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":404}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":404}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
    """,
)
def sign_in_not_offered(facts: Facts) -> Iterator[Claim]:
    """A 401 should name its metadata in WWW-Authenticate (RFC 9728, 5.1), and the metadata the authorization server. Without
    them the client can only guess, and a token has to be configured.
    """
    unauthorized = [exchange for exchange, _ in _unauthorized(facts) if exchange.status == 401]
    metadata = _steps(facts, "resource metadata", "server metadata")
    if not unauthorized or not metadata or any(step.status == 200 for step in metadata):
        return
    has_challenge = "resource_metadata" in unauthorized[0].response.get("www-authenticate", "")
    challenge = "" if has_challenge else "its 401 has no WWW-Authenticate with resource_metadata, and "
    yield Claim(
        title=f"the server wants a token and names no way to get one: {challenge}"
        f"{len(metadata)} addresses of metadata were answered with HTTP {metadata[-1].status}",
        next_step="configure a token (header Authorization) in the host, if the server takes a fixed one; else let the server"
        " serve /.well-known/oauth-protected-resource and name it in WWW-Authenticate",
        symptoms=_symptoms(facts),
        evidence=[_line(step) for step in metadata[:2]],
        side="server",
    )


@cause(
    "new-token-refused",
    "the server refuses the token that was just issued",
    level=Level.EXACT,
    positive=r"""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * oauth {"http":63,"stream":"1","flow":1,"step":"token","status":200,"names":["grant_type","code","resource"]}
        > {"id":2,"method":"initialize","params":{}}
        = 401 {"authorization":"Bearer x"} {"www-authenticate":"Bearer error=\"invalid_token\""}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
    """,
)
def new_token_refused(facts: Facts) -> Iterator[Claim]:
    """The token is for another audience, or the server checks it against other keys, another issuer or a lost store."""
    issued = [step for step in _steps(facts, "token") if step.status == 200]
    for exchange, _ in _unauthorized(facts):
        since = [exchange.at - step.at for step in issued if 0 <= exchange.at - step.at < 60.0]
        had_worked = facts.http.accepted_with_token and facts.server.messages > 1
        if exchange.status == 401 and since and "authorization" in exchange.request and not had_worked:
            said = challenge_words(exchange.response.get("www-authenticate", "")) or exchange.words
            asked_resource = any(
                "resource" in step.fields.get("names", ()) for step in _steps(facts, "token", "authorize")
            )
            hint = (
                ""
                if asked_resource
                else "; the client asked for it without the parameter resource, so it may be for another audience"
            )
            yield Claim(
                title=f"the server refuses the token {min(since):.1f} s after it was issued: {quote(said) or 'HTTP 401'}{hint}",
                next_step="compare issuer, audience, keys and scopes of the token with what the server checks; signing in again brings the same"
                if asked_resource
                else "let the client send resource = the URL of this server with authorize and token (RFC 8707)",
                symptoms=_symptoms(facts),
                evidence=[_line(issued[-1])],
                side="server" if asked_resource else "client",
            )
            break


@cause(
    "no-token-issued",
    "the token request was answered, and the client got no token",
    level=Level.SPECIFIC,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":63,"stream":"1","flow":1,"step":"token","status":200,"names":["client_id","code"]}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def no_token_issued(facts: Facts) -> Iterator[Claim]:
    """Some authorization servers answer HTTP 200 with an error in place of a token. Bodies of this step are not recorded."""
    tokens, retries = _steps(facts, "token"), _steps(facts, "retry")
    if not tokens or tokens[-1].status != 200 or any(step.at >= tokens[-1].at for step in retries):
        return
    refused = [exchange for exchange, _ in _unauthorized(facts)]
    if refused and all(exchange.at < tokens[-1].at for exchange in refused):
        secret = (
            ""
            if "client_secret" in tokens[-1].fields.get("names", ())
            else "; the request had no client_secret"
        )
        yield Claim(
            title="the token request was answered with HTTP 200, and the client sent no request with a token after it: the"
            f" answer has an error in place of a token, or the client refuses it{secret}",
            next_step="look at the answer in the client's log (its body is not recorded): often the client_id or client_secret is"
            " wrong",
            symptoms=_symptoms(facts),
            evidence=[_line(tokens[-1])],
            side="configuration",
        )


@cause(
    "authorization-refused",
    "the authorization server sent the client back without a code",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * http {"http":63,"method":"GET","path":"/authorize","status":302,"request":{},"response":{"location":"http://127.0.0.1:9/callback?error=invalid_scope"}}
        * oauth {"http":63,"stream":"1","flow":1,"step":"authorize","status":302,"names":["scope"]}
        * http-end {"http":63}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
    """,
)
def authorization_refused(facts: Facts) -> Iterator[Claim]:
    """It refuses the scopes, the client or its redirect URI by an error in the redirect, or the user did not agree."""
    steps = _steps(facts, "authorize")
    if (
        not steps
        or not _unauthorized(facts)
        or any(step.at >= steps[-1].at for step in _steps(facts, "token"))
    ):
        return
    status = steps[-1].status
    if status is None or not 300 <= status < 400:
        return
    scope = (
        " The request had a scope: compare it with scopes_supported of the metadata."
        if "scope" in steps[-1].fields.get("names", ())
        else ""
    )
    location = facts.http.locations.get(steps[-1].fields.get("http"), "")
    named = re.search(r"[?&#]error=", location)
    yield Claim(
        title=f"the authorization server answered the request for authorization with a redirect (HTTP {status})"
        + (" that has an error and no code" if named else "")
        + ", and the client never asked for a token",
        next_step="look at error and error_description in the address of the redirect (in the browser or the client's log)."
        + scope,
        symptoms=_symptoms(facts),
        evidence=[_line(steps[-1])],
        side="client" if named else "",
        level=Level.EXACT if named else Level.SPECIFIC,
    )


@cause(
    "oauth-registration",
    "the client could not register at the authorization server",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * oauth {"http":63,"stream":"1","flow":1,"step":"registration","status":403}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * oauth {"http":63,"stream":"1","flow":1,"step":"registration","status":201}
    """,
)
def oauth_registration(facts: Facts) -> Iterator[Claim]:
    """Dynamic registration is refused, or the authorization server does not offer it. Then the client needs an id that was
    registered by hand, or a document of its metadata.
    """
    endpoint = urlsplit(facts.header.upstream or "").path
    if any(_other_resource(step, endpoint) for step in _steps(facts, "resource metadata")):
        return  # The client was led to another place, or turned away from it (RFC 9728, 3.3).
    if not _unauthorized(facts):
        return
    refused = _refused(facts, "registration")
    if refused is not None and not any(
        step.status == 200 for step in _steps(facts, "resource metadata", "server metadata")
    ):
        return
    if refused is not None:
        said = _said(refused)
        is_uri = re.search(r"redirect", said)
        yield Claim(
            title=f"the authorization server refused to register the client (HTTP {refused.status})"
            + (f": {said}" if said else ""),
            next_step="allow the client's redirect URI at the authorization server"
            if is_uri
            else "register the client by hand and configure its client_id, or allow dynamic registration at the authorization server",
            symptoms=_symptoms(facts),
            evidence=[_line(refused)],
            side="configuration",
        )
        return
    metadata = [step for step in _steps(facts, "server metadata") if step.status == 200]
    went_on = _steps(facts, "registration", "authorize", "token", "device authorization")
    if metadata and not went_on and "registration_endpoint" not in metadata[-1].fields.get("names", ()):
        yield Claim(
            title="the metadata of the authorization server names no registration_endpoint, and the client stopped there: it has no client id",
            next_step="configure a client_id that was registered by hand, or put a server that offers registration in front of the authorization server",
            symptoms=_symptoms(facts),
            evidence=[evidence(metadata[-1].place, "server metadata without registration_endpoint")],
            side="configuration",
        )


@cause(
    "oauth-metadata",
    "the metadata for the sign-in does not fit or cannot be read",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/other","address":"http://127.0.0.1:3001"}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
    """,
)
def oauth_metadata(facts: Facts) -> Iterator[Claim]:
    """The issuer must be the URL that it was asked from, the resource the URL of the endpoint (RFC 8414, 3.3; RFC 9728, 3.3)."""
    stopped = _refused(facts, "registration") is not None
    if not (_unauthorized(facts) or stopped):
        return
    if _steps(facts, "token", "retry"):
        return
    unreadable = [step for step in facts.http.oauth if step.fields.get("unreadable")]
    if unreadable:
        yield Claim(
            title=f"the address of the {unreadable[0].step} is answered with HTTP {unreadable[0].status} and no JSON object, such as a page of a web application",
            next_step="let the server answer /.well-known/oauth-* with metadata, or with 404 if it wants no token",
            symptoms=[
                *_symptoms(facts),
                *(each for each in facts.of(RefusedExchange) if stopped),
            ],
            evidence=[_line(unreadable[0])],
            side="server",
        )
        return
    for violation in facts.violations("AUTH101", "AUTH102", "AUTH103"):
        finding = violation.findings[0]
        next_step = {
            "AUTH101": "let the metadata name the URL of the endpoint as its resource, as clients use it",
            "AUTH102": "let the metadata name the issuer that it is served under, or the resource's metadata name this issuer",
            "AUTH103": "let the authorization server declare S256 in code_challenge_methods_supported",
        }[violation.code]
        yield Claim(
            title=quote(finding.message),
            next_step=next_step,
            symptoms=_symptoms(facts),
            evidence=violation.lines[:1],
            side="server",
        )
    endpoint = urlsplit(facts.header.upstream or "").path
    for step in _steps(facts, "resource metadata"):
        if resource := _other_resource(step, endpoint):
            yield Claim(
                title=f"the metadata is that of the resource {quote(resource, 80)}, which is not the URL of the endpoint ({quote(endpoint, 60)})",
                next_step="let the metadata name the URL of the endpoint as its resource, as clients use it (RFC 9728, 3.3)",
                symptoms=_symptoms(facts),
                evidence=[evidence(step.place, f"resource: {resource}")],
                side="server",
            )
            break


@cause(
    "oauth-token",
    "the token request was refused",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * oauth {"http":63,"stream":"1","flow":1,"step":"token","status":400,"error":"invalid_grant","names":["grant_type","code"]}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        * oauth {"http":61,"stream":"1","flow":1,"step":"resource metadata","status":200,"resource":"http://127.0.0.1:3001/mcp","address":"http://127.0.0.1:3001"}
        * oauth {"http":62,"stream":"1","flow":1,"step":"server metadata","status":200,"issuer":"http://127.0.0.1:3001","address":"http://127.0.0.1:3001","pkce":["S256"],"names":["issuer","registration_endpoint"]}
        * oauth {"http":63,"stream":"1","flow":1,"step":"registration","status":403}
    """,
)
def oauth_token(facts: Facts) -> Iterator[Claim]:
    """The code or refresh token is not valid any more, the client or its redirect URI is not the one that was registered, or
    PKCE does not fit.
    """
    refused = _refused(facts, "token", "device authorization", "pushed authorization", "authorize")
    refreshes = [
        step
        for step in _steps(facts, "token")
        if (step.status or 0) >= 400 and "refresh_token" in step.fields.get("names", ())
    ]
    if refused is None or not (_unauthorized(facts) or refused.step != "token"):
        if not refreshes:
            return
        refused = refreshes[-1]
    said = _said(refused)
    next_step = "read the error of the authorization server; its log has more"
    for pattern, advice in (
        ("redirect", "register exactly the redirect URI that the client uses, with its port and path"),
        ("invalid_client|client authentication|unauthorized_client", "configure the client_id and client_secret that the authorization server knows; it may have forgotten a registration"),
        ("invalid_grant|expired|code", "sign in again: the code or refresh token is used up, expired, or from another client or redirect URI"),
        ("verifier|pkce|challenge", "send the code_verifier that belongs to the code_challenge"),
        ("resource|target|audience", "send the resource that the authorization server knows (the URL of the endpoint), or let it accept the parameter resource (RFC 8707)"),
        ("scope", "let the client ask only for scopes that the authorization server knows and allows together; a refresh may leave scope out"),
        ("grant_type", "allow this grant type for the client"),
    ):  # fmt: skip
        if re.search(pattern, said, re.IGNORECASE):
            next_step = advice
            break
    names = refused.fields.get("names", ())
    if (
        re.search("invalid_client|client", said)
        and "client_id" not in names
        and refused.fields.get("http") in facts.http.with_token
    ):
        next_step = (
            "the client named itself by HTTP Basic (client_secret_basic), not in the body: let the token endpoint read the"
            " Authorization header, or not offer this method in token_endpoint_auth_methods_supported"
        )
    registered = _steps(facts, "registration")
    if refused.step == "authorize" and not registered and re.search(r"^$|client", said):
        next_step = (
            "the client used a client_id from an earlier registration, which the authorization server may no longer know: remove"
            " the client's stored registration, so that it registers again"
        )
    side = "configuration"
    if (
        refused.step == "authorize"
        and re.search(r"redirect.{0,200}(?:not (?:permitted|allowed)|allow-?list|whitelist)", said)
        and any((step.status or 0) < 300 for step in registered)
    ):
        next_step = (
            "the authorization server has just accepted this redirect URI in the registration: let it check both by one list, or"
            " refuse the registration (invalid_redirect_uri)"
        )
        side = "server"
    what = f"{refused.step} request"
    if "refresh_token" in names:
        what = "refresh of the token"
        if "invalid_grant" not in said and "scope" not in said:
            next_step = "sign in again (remove the stored tokens): a client does so by itself only if the server answers invalid_grant for a dead refresh token"
    yield Claim(
        title=f"the {what} was refused (HTTP {refused.status})" + (f": {said}" if said else ""),
        next_step=next_step,
        symptoms=_symptoms(facts),
        evidence=[_line(refused)],
        side=side,
    )


@cause(
    "token-check-failed",
    "the check of the token fails with an error of the server",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {"authorization":"x"}
        < {"id":2,"result":{"content":[]}}
        > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 500 {"authorization":"x"}
        << {"error":"server_error"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def token_check_failed(facts: Facts) -> Iterator[Claim]:
    """A server that answers an expired token with 500 in place of 401 gives the client no reason to refresh it."""
    failed = [
        (exchange, symptom)
        for exchange, symptom in exchanges(facts)
        if exchange.status in (500, 403, 400) and "authorization" in exchange.request
        and re.search(r"\b(?:server_error|invalid_token|token|jwt|unauthorized)\b", f"{exchange.words} {getattr(symptom, 'words', '')}", re.IGNORECASE)
    ]  # fmt: skip
    if failed and facts.http.accepted_with_token:
        exchange, symptom = failed[0]
        said = getattr(symptom, "words", "") or exchange.words
        yield Claim(
            title=f"requests with the same token had been accepted, and now each gets HTTP {exchange.status}: {quote(said)}: the token has probably expired",
            next_step='let the server answer 401 with error="invalid_token", so that the client refreshes the token; until then sign in again',
            symptoms=[each for _, each in failed],
            side="server",
        )


@cause(
    "token-refused",
    "the server refused the token",
    level=Level.SPECIFIC,
    positive=r"""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 401 {"authorization":"Bearer x"} {"www-authenticate":"Bearer error=\"invalid_token\", error_description=\"The token expired\""}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 401
    """,
)
def token_refused(facts: Facts) -> Iterator[Claim]:
    """The token has expired, is for another audience, lacks a scope, or is not a token of this server."""
    for exchange, symptom in _unauthorized(facts):
        challenge = exchange.response.get("www-authenticate", "")
        words = symptom.words if isinstance(symptom, FailedRequest) else ""
        said = challenge_words(challenge) or words or exchange.words
        has_token = "authorization" in exchange.request
        if not has_token and not said and exchange.status == 401:
            continue
        if not has_token and exchange.status == 401:
            continue
        text = f"{said} {challenge}"
        next_step = "send a valid token: sign in again, or correct the Authorization header in the host's configuration"
        title = f"the server refused the token (HTTP {exchange.status})"
        level = Level.SPECIFIC
        if exchange.status == 403 and _SCOPE.search(text):
            scope = re.search(r'scope="([^"]*)"', challenge)
            lack = "the token lacks" if has_token else "the server wants"
            title = f"{lack} a scope for {exchange.asked or exchange.method} (HTTP 403)"
            next_step = (
                "sign in again with "
                + (f"the scope {quote(scope[1], 60)}" if scope else "this scope")
                + "; the client should do so by itself (step-up)"
            )
        elif _AUDIENCE.search(text):
            title = f"the token is for another audience (HTTP {exchange.status})"
            next_step = "request the token with resource = the URL of this server; mcpspy exec keeps the server's own URL, mcpspy http has another one (--keep-resource)"
        elif _EXPIRED.search(text):
            had_worked = facts.server.messages > 1
            if had_worked or (
                "expired" in text.lower() and not re.search(r"(?i)\bor\b|invalid|incorrect", text)
            ):
                title = f"the token has expired (HTTP {exchange.status})"
                next_step = "the client should ask for a new token with its refresh token after a 401, and did not; sign in again"
                if any("refresh_token" in step.fields.get("names", ()) for step in _steps(facts, "token")):
                    next_step = "sign in again; look why the new token is refused too"
            else:
                title = f"the server refused the token with which the client began (HTTP {exchange.status})"
                next_step = (
                    "check the value of the Authorization header in the host's configuration: a variable that the host does not"
                    " replace (${TOKEN}), a missing 'Bearer', or an old token"
                )
        elif not has_token:
            title = f"{exchange.asked or exchange.method} is forbidden (HTTP {exchange.status})"
            next_step = "a token would not help: look which check of the server or proxy refuses the request"
            level = Level.GENERAL
        yield Claim(
            title=f"{title}{f': {quote(said)}' if said else ''}",
            next_step=next_step,
            symptoms=_symptoms(facts) if exchange.status == 401 else [symptom],
            side="configuration",
            level=level,
        )


@cause(
    "token-missing",
    "the server wants a token, and the request has none",
    level=Level.GENERAL,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 401
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 401 {"authorization":"Bearer x"}
    """,
)
def token_missing(facts: Facts) -> Iterator[Claim]:
    """The client has no token, a proxy drops Authorization, or the sign-in was not begun or not completed."""
    unauthorized = [
        (exchange, symptom)
        for exchange, symptom in _unauthorized(facts)
        if "authorization" not in exchange.request
    ]
    if not unauthorized or any(step.status == 200 for step in _steps(facts, "token")):
        return
    exchange, _ = unauthorized[0]
    steps = [step for step in facts.http.oauth if step.step not in ("challenge", "retry")]
    challenge = exchange.response.get("www-authenticate")
    said = challenge_words(challenge or "") or exchange.words
    title = f"{exchange.asked or exchange.method} was sent without a token, and the server answered HTTP {exchange.status}"
    title += f" ({quote(said, 80)})" if said else ""
    if facts.answered["client", "tools/list"] or facts.answered["client", "tools/call"]:
        title += ", although requests before had succeeded"
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    if steps:
        last = steps[-1]
        title += f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})"
        next_step = (
            "complete the sign-in in the browser; look into the client's log why it stopped at this step"
        )
        if last.status is not None and last.status >= 400:
            next_step = f"let the server answer the step {last.step!r}; clients stop here"
    elif challenge is None and exchange.status == 401:
        next_step += "; the server names no way to sign in: 401 lacks WWW-Authenticate"
    yield Claim(
        title=title,
        next_step=next_step,
        symptoms=_symptoms(facts),
        evidence=[_line(step) for step in steps[-2:]],
        side="configuration",
    )


@cause(
    "signed-in",
    "a request was refused until the client had signed in",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
        > {"id":2,"method":"initialize","params":{}}
        = 200 {"authorization":"Bearer x"}
        < {"id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        > {"method":"notifications/initialized"}
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 401 {} {"www-authenticate":"Bearer"}
    """,
)
def signed_in(facts: Facts) -> Iterator[Claim]:
    """The 401 with which a sign-in begins is not a failure."""
    overcome: list[Symptom] = [
        symptom
        for exchange, symptom in exchanges(facts)
        if exchange.status in (401, 403)
        and isinstance(symptom, FailedRequest)
        and symptom.succeeded_at is not None
    ]
    if _steps(facts, "retry"):
        overcome += [
            symptom for exchange, symptom in _unauthorized(facts) if "authorization" not in exchange.request
        ]
    if (
        overcome
    ):  # Clients ask for metadata at several places; that some have none is foreseen (RFC 9728, 3.1).
        overcome += [
            each for each in facts.of(RefusedExchange) if ".well-known" in each.path and each.status == 404
        ]
    if overcome:
        yield Claim(
            title="the client signed in after HTTP 401, as it should",
            next_step="nothing",
            symptoms=overcome,
            is_observation=True,
        )
