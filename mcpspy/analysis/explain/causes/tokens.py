"""Tokens that are missing, refused or expired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_overcome, said, side_of
from mcpspy.analysis.explain.causes.sign_in import RULES, names_of, sign_in_claim, steps_of, unauthorized
from mcpspy.analysis.explain.causes.token_words import other_reason
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT, SERVER

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
        return f"{about(exchange)} is forbidden", _NOT_ABOUT_TOKENS, side_of(exchange)
    next_step = (
        "set the Authorization header in the host's configuration; the server should answer 401 in place of 403, so that "
        "clients begin to sign in"
    )
    return f"{about(exchange)} was sent without a token, and the server wants one", next_step, "configuration"


def _in_time(facts: Facts, exchange: RefusedExchange, text: str, own: str) -> tuple[str, str, str] | None:
    """Return why a token that was called expired or invalid was refused; None if the words do not call it so."""
    is_expired = "expired" in text.lower() and not _UNSURE.search(text)
    if _NOT_EXPIRED.search(text) and not is_expired:
        next_step = (
            "compare issuer, keys and form of the token with what the server checks (both may have changed), and sign in "
            "again; or correct Authorization in the host's configuration"
        )
        return "the server refused the token", next_step, "" if own == CLIENT else own
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
            own = ""  # Where the token is from is not in the recording.
        elif own != CLIENT and steps_of(facts, "resource metadata", "server metadata"):
            next_step = (
                "sign in again; the client should get a new token by its refresh token after a 401: look in its log whether it "
                "has one, which the authorization server may not have issued (the scope offline_access, the grant refresh_token)"
            )
            own = ""  # What the authorization server issued is not in the recording.
        return "the token has expired", next_step, own
    if _EXPIRED.search(text):
        next_step = (
            "check the value of the Authorization header in the host's configuration: a variable that "
            "the host does not replace (${TOKEN}), a missing 'Bearer', or an old token"
        )
        side = "configuration"
        if _IS_OVER.search(text) or "resource_metadata" in exchange.response.get("www-authenticate", ""):
            side = ""  # The client may have stored a token of an earlier sign-in.
            next_step = (
                "sign in again, if the client has this token from an earlier sign-in: it should get a new one by its refresh token after "
                f"a 401, or sign in by itself; if the token was written by hand, {next_step}"
            )
        return "the server refused the token with which the client began", next_step, side
    return None


def _refusal(facts: Facts, exchange: RefusedExchange, words: str) -> tuple[str, str, str]:
    """Return why a token was refused, the next step, and the side that has to take it."""
    is_issued = any(step.status == 200 for step in steps_of(facts, "token"))
    own = CLIENT if is_issued else "configuration"
    challenge, has_token = exchange.response.get("www-authenticate", ""), "authorization" in exchange.request
    text = f"{words} {challenge} {exchange.words}"
    if exchange.status == 403 and _SCOPE.search(text):
        scope = re.search(r'scope="([^"]*)"', challenge)
        wanted = f"the scope {quote(scope[1], 60)}" if scope else "this scope"
        lack = "the token lacks" if has_token else "the server wants"
        next_step = f"sign in again with {wanted}; the client should do so by itself (step-up)"
        is_asked = (
            "insufficient_scope" in challenge
        )  # The client has to ask for more (2025-11-25, Authorization).
        return f"{lack} a scope for {about(exchange)}", next_step, CLIENT if is_asked else own
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
    if _AS_IF_NONE.search(words) and not _UNSURE.search(words) and "invalid_token" not in challenge:
        next_step = (
            "try the same token with another program (mcpspy call, with --url): if the server takes it in no way, something "
            "between mcpspy and the code that checks it drops the header Authorization (Apache gives it to PHP and CGI only "
            "with CGIPassAuth On); if it takes it there, correct it in the host's configuration"
        )
        return "the request has a token, and the server answers as if it had none", next_step, ""
    next_step = "send a valid token: sign in again, or correct Authorization in the host's configuration"
    accepted_at = facts.http.token_accepted_at
    if exchange.status == 401 and not words and accepted_at is not None and accepted_at < exchange.at:
        next_step = (
            "if this token has expired, the client should get a new one by its refresh token after a 401; if not, look whether "
            "the server was restarted and keeps its tokens in memory; sign in again"
        )
        return "the server refused the token, although it had accepted one before", next_step, ""
    return "the server refused the token", next_step, "configuration"


def _is_overcome(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether a request without a token was refused, and a token was issued after it."""
    issued = [step for step in steps_of(facts, "token") if step.status == 200 and step.at >= exchange.at]
    return bool(issued) and "authorization" not in exchange.request


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
        ex.list_answer(403, ex.WITH_TOKEN, "RBAC: access denied"),
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
        has_token = "authorization" in exchange.request
        if not has_token and exchange.status == 401:
            continue
        words = challenge_words(exchange.response.get("www-authenticate", "")) or said(exchange, symptom)
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


REMAPPED = "x-amzn-remapped-www-authenticate"


def _other_issuer(facts: Facts, metadata: OauthStep) -> str:
    """Return the authorization server that the resource's metadata name, if its metadata write the issuer otherwise."""
    issuer = metadata.fields.get("issuer")
    named = [
        each.fields["servers"] for each in steps_of(facts, "resource metadata") if each.fields.get("servers")
    ]
    return str(named[-1][0]) if named and issuer is not None and issuer not in named[-1] else ""


class _Stop(NamedTuple):
    """The end of a sign-in in words, the next step, and the side that has to take it."""

    title: str
    next_step: str
    side: str


def _stop(facts: Facts, last: OauthStep) -> _Stop:
    """Return why a sign-in ended after a step."""
    title, status = f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})", last.status or 0
    if status >= 400:
        is_named = any(each.fields.get("servers") for each in steps_of(facts, "resource metadata"))
        # Not all addresses of metadata need exist, unless the server names who has them.
        is_needed = "metadata" not in last.step or (is_named and last.step == "server metadata")
        side = SERVER if status >= 500 or is_needed else "configuration"
        return _Stop(title, f"let the server answer the step {last.step!r}; clients stop here", side)
    if last.step == "server metadata" and (other := _other_issuer(facts, last)):
        title += (
            f": its issuer {quote(str(last.fields.get('issuer')), 80)} is not to the letter the authorization server that "
            f"the resource's metadata name, {quote(other, 80)}, and a client must not use it then (RFC 8414, 3.3)"
        )
        next_step = "let both documents name the authorization server in the same way, with or without the slash at the end"
        return _Stop(title, next_step, SERVER)
    if last.step == "server metadata" and "registration_endpoint" in last.fields.get("names", ()):
        title += ", which names everything that a client needs: it did not register, and opened no page for signing in"
        next_step = (
            "look in the client's log for what it misses in this metadata (some compare the issuer with the address of "
            "the server, or demand a member): update the client, or give it a token (Authorization)"
        )
        return _Stop(title, next_step, CLIENT)
    if last.step == "resource metadata" and (resource := _shorter_resource(facts, last)):
        title += (
            f": these are the metadata of {quote(resource, 80)}, and not of the endpoint, and a client must not use them then "
            f"(RFC 9728, 3.3), which not all clients check"
        )
        next_step = (
            "let the metadata name the URL of the endpoint as its resource, with its path: at the address that WWW-Authenticate "
            "names"
        )
        return _Stop(title, next_step, SERVER)
    if last.step == "resource metadata" and (elsewhere := _server_elsewhere(facts, last)):
        title = (
            f"; the metadata name the authorization server {quote(elsewhere, 80)}, and what the client asked there did not pass "
            f"this point"
        )
        next_step = (
            "look in the client's log how far the sign-in came, and complete it in the browser; compare what this "
            "authorization server offers (metadata, registration, S256) with what the client needs"
        )
        return _Stop(title, next_step, "")
    next_step = "complete the sign-in in the browser; the client's log states why it stopped at this step"
    if last.step == "registration":
        next_step += (
            "; compare the address of the page that the client opened (authorization_endpoint of the metadata) with what the browser "
            "can reach"
        )
        return _Stop(
            title, next_step, ""
        )  # That address, and what the page showed, are not in the recording.
    return _Stop(title, next_step, "configuration")


def _shorter_resource(facts: Facts, step: OauthStep) -> str:
    """Return the resource of metadata if its path is another than that of the endpoint; else nothing."""
    resource, endpoint = str(step.fields.get("resource") or ""), urlsplit(facts.header.upstream or "").path
    return resource if resource and urlsplit(resource).path.rstrip("/") != endpoint.rstrip("/") else ""


def _server_elsewhere(facts: Facts, step: OauthStep) -> str:
    """Return the authorization server that metadata name, if it is at another host than they are; else nothing."""
    servers = [str(each) for each in step.fields.get("servers") or ()]
    own = {urlsplit(str(url or "")).netloc for url in (facts.header.upstream, step.fields.get("address"))}
    return servers[0] if servers and urlsplit(servers[0]).netloc not in own else ""


def _elsewhere(facts: Facts) -> str | None:
    """Return where the metadata of the authorization server would be, if the client asked only at other addresses.

    A client must try all of them, those of OpenID Connect too (2025-11-25, Authorization).
    """
    asked = steps_of(facts, "server metadata")
    named = [
        step
        for step in steps_of(facts, "resource metadata")
        if step.status == 200 and step.fields.get("servers")
    ]
    if not named or not asked or any(step.status == 200 for step in asked):
        return None
    issuer = urlsplit(str(named[-1].fields["servers"][0]))
    if issuer.netloc != urlsplit(str(named[-1].fields.get("address") or "")).netloc:
        return None  # What is asked of another host is not recorded.
    path, paths = issuer.path.rstrip("/"), {step.path.rstrip("/") for step in asked}
    wanted = [f"/.well-known/oauth-authorization-server{path}"]
    if path:  # Keycloak has the metadata of each realm only there.
        wanted.append(f"{path}/.well-known/openid-configuration")
    return next((each for each in wanted if each not in paths), None)


def _metadata_elsewhere(facts: Facts, challenge: str) -> str:
    """Return the address of metadata that a 401 names, if it is at another host than the endpoint; else nothing."""
    named = re.search(r'resource_metadata="?([^",\s]+)', challenge)
    hosts = {urlsplit(facts.header.upstream or "").hostname, first_host(facts)}
    return (
        named[1] if named is not None and urlsplit(named[1]).hostname not in {None, *LOOPBACK, *hosts} else ""
    )


def first_host(facts: Facts) -> str:
    """Return the name by which the client calls the endpoint, without its port."""
    first = next((exchange for exchange, _ in unauthorized(facts)), None)
    return "" if first is None else first.request.get("host", "").partition(":")[0]


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
    refused = [exchange for exchange, _ in unauthorized(facts) if "authorization" not in exchange.request]
    if not refused or any(step.status == 200 for step in steps_of(facts, "token")):
        return
    first, challenge = refused[0], refused[0].response.get("www-authenticate")
    words = challenge_words(challenge or "") or first.words
    title = f"{about(first)} was sent without a token, and the server answered HTTP {first.status}"
    if key := _key_of(facts, first):
        title = f"{about(first)} was sent with {quote(key, 40)}, and the server answered HTTP {first.status}"
    title += f" ({quote(words, 80)})" if words else ""
    has_worked = facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]
    if has_worked:
        title += ", although requests before had succeeded"
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    if key:
        next_step = f"correct the value of {quote(key, 40)} in the host's configuration: a variable that the host does not replace, or an old key"
    elif re.search(r"(?i)\bapi[ _-]?key|\bx-[a-z][\w-]+", words):
        next_step = f"give the client in the host's configuration what the refusal names: {quote(words, 100)}"
    if REMAPPED in first.response:
        title += f", and the gateway in front of it renamed WWW-Authenticate to {REMAPPED}: no client finds the sign-in"
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
    if (wanted := _elsewhere(facts)) is not None:
        asked = steps_of(facts, "server metadata")
        paths = ", ".join(dict.fromkeys(step.path for step in asked))
        title += (
            f"; the client asked for the metadata of the authorization server at {quote(paths, 120)} (HTTP "
            f"{asked[-1].status}), and never at {quote(wanted, 80)}, where they belong"
        )
        next_step = (
            "let the client ask at the address that is made of the issuer in authorization_servers (RFC 8414, 3.1), not of "
            "the path of the endpoint; until then let the server answer there too"
        )
        yield sign_in_claim(facts, title, next_step, *asked[-2:], side=CLIENT)
        return
    if steps:
        stop = _stop(facts, steps[-1])
        yield sign_in_claim(facts, title + stop.title, stop.next_step, *steps[-2:], side=stop.side)
        return
    if (elsewhere := _metadata_elsewhere(facts, challenge or "")) and not has_worked:
        title += f", naming the metadata of its sign-in at {quote(elsewhere, 100)}, and the client sent no token after that"
        next_step = (
            "begin the sign-in in the client, and look in its log whether it read this document: what it asks there does not "
            "pass this point; if the server takes a fixed token, set the Authorization header in the host's configuration"
        )
        yield sign_in_claim(facts, title, next_step, side="")
        return
    if "resource_metadata" in (challenge or "") and (not has_worked or facts.http.token_accepted_at is None):
        title += ", naming the metadata of its sign-in, which the client never asked for"
        next_step = (
            "use a client that signs in by OAuth, or begin the sign-in in it; if the server takes a fixed token, set the "
            "Authorization header in the host's configuration"
        )
        yield sign_in_claim(facts, title, next_step, side=CLIENT)
        return
    if first.status == 401:
        next_step += _of_challenge(challenge)
    yield sign_in_claim(facts, title, next_step)


def _of_challenge(challenge: str | None) -> str:
    """Return what the challenge of a 401 lacks for a sign-in, to follow a next step; the client asked for no metadata."""
    if challenge is None:
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
    names = [
        *exchange.request,
        *(part.partition("=")[0] for part in urlsplit(facts.header.upstream or "").query.split("&")),
    ]
    return next((name for name in names if _KEY.search(name)), "")


SECONDS_OF_A_PROBE = 2.0
"""Some clients ask without a token first, and send it at once after the 401."""


@cause(
    "token-left-out",
    "the client leaves out the token that it has",
    Level.EXACT,
    rules=RULES,
    positive=ex.session(
        "@ http",
        *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
        *(ex.call(3), ex.answered(401, "Missing bearer token")),
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
        and (
            exchange.method == "POST"
            or exchange.request.get("mcp-session-id", "") in facts.http.accepted_count
        )
        and "authorization" not in exchange.request
        and exchange.agent in facts.http.agents  # Another program may have no token at all.
    ]
    if not left_out or any(at > left_out[0][0].at for at in signing_in):
        return  # A sign-in begins with a request without a token.
    first, symptom = left_out[0]
    succeeded_at = getattr(symptom, "succeeded_at", None)
    is_probe = succeeded_at is not None and succeeded_at - first.at < SECONDS_OF_A_PROBE
    words = said(first, symptom)
    title = f"{about(first)} was sent without the token with which requests before had succeeded: HTTP 401{clause(words)}"
    next_step = (
        "let the client send the same Authorization header with each request to this server; until then look which of its "
        "functions leaves it out"
    )
    symptoms = [*(each for _, each in left_out), *facts.violations(*RULES.split())]
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT, is_observation=is_probe)


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
