"""Requests without a token, and sign-ins that were not begun or not completed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_overcome, said
from mcpspy.analysis.explain.causes.requests import errors
from mcpspy.analysis.explain.causes.sign_in import RULES, names_of, sign_in_claim, steps_of, unauthorized
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import CLIENT, SERVER

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
    steps: Sequence[OauthStep] = ()
    """Those that show it."""


def _stop(facts: Facts, last: OauthStep) -> _Stop:
    """Return why a sign-in ended after a step."""
    title, status = f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})", last.status or 0
    if status >= 400:
        is_named = any(each.fields.get("servers") for each in steps_of(facts, "resource metadata"))
        # Not all addresses of metadata need exist, unless the server names who has them.
        is_needed = "metadata" not in last.step or (is_named and last.step == "server metadata")
        side = SERVER if status >= 500 or is_needed else ""
        return _Stop(title, f"let the server answer the step {last.step!r}; clients stop here", side)
    if last.step == "server metadata" and (other := _other_issuer(facts, last)):
        title += (
            f": its issuer {quote(str(last.fields.get('issuer')), 80)} is not to the letter the authorization server that "
            f"the resource's metadata name, {quote(other, 80)}, and a client must not use it then (RFC 8414, 3.3)"
        )
        next_step = "let both documents name the authorization server in the same way, with or without the slash at the end"
        is_slash = other.rstrip("/") == str(last.fields.get("issuer")).rstrip("/")
        next_step += "; some clients take them for the same" if is_slash else ""
        return _Stop(title, next_step, "" if is_slash else SERVER)
    if last.step == "server metadata" and "registration_endpoint" in last.fields.get("names", ()):
        title += ", which names everything that a client needs: it did not register, and opened no page for signing in"
        next_step = (
            "look in the client's log for what it misses in this metadata (some compare the issuer with the address of "
            "the server, or demand a member): update the client, or give it a token (Authorization)"
        )
        if (named := _metadata_of_host(facts)) is not None:
            title += (
                f"; the 401 names the metadata at {quote(named, 80)}, the address for a resource without a path, and the endpoint has "
                f"one ({quote(facts.endpoint.path, 60)})"
            )
            next_step = (
                f"let WWW-Authenticate name /.well-known/oauth-protected-resource{quote(facts.endpoint.path, 60)} (RFC 9728, 3.1): some "
                f"clients refuse metadata from another address; else {next_step}"
            )
            return _Stop(title, next_step, "")
        return _Stop(title, next_step, CLIENT)
    if last.step == "resource metadata" and (resource := _shorter_resource(facts, last)):
        title += (
            f": these are the metadata of {quote(resource, 80)}, and not of the endpoint, and a client must not use them then "
            f"(RFC 9728, 3.3), which not all clients check"
        )
        is_of_host = (
            url_parts(resource).path.strip("/") == ""
        )  # Some clients take that of the whole host for the endpoint, too.
        next_step = (
            "let the metadata name the URL of the endpoint as its resource, with its path: at the address that WWW-Authenticate "
            "names"
        )
        return _Stop(title, next_step, "" if is_of_host else SERVER)
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
    return _Stop(title, next_step, "")


def _metadata_of_host(facts: Facts) -> str | None:
    """Return the address of metadata that a 401 names, if it is that of the whole host, and the endpoint has a path; else None."""
    for exchange, _ in unauthorized(facts):
        named = re.search(r'resource_metadata="?([^",\s]+)', exchange.challenge)
        path = "" if named is None else url_parts(named[1]).path.rstrip("/")
        if named and path == "/.well-known/oauth-protected-resource" and facts.endpoint.path.strip("/"):
            return named[1]
    return None


def _shorter_resource(facts: Facts, step: OauthStep) -> str:
    """Return the resource of metadata if its path is another than that of the endpoint; else nothing."""
    resource, endpoint = str(step.fields.get("resource") or ""), facts.endpoint.path
    return resource if resource and url_parts(resource).path.rstrip("/") != endpoint.rstrip("/") else ""


def _server_elsewhere(facts: Facts, step: OauthStep) -> str:
    """Return the authorization server that metadata name, if it is at another host than they are; else nothing."""
    servers = [str(each) for each in step.fields.get("servers") or ()]
    own = {url_parts(str(url or "")).netloc for url in (facts.header.upstream, step.fields.get("address"))}
    return servers[0] if servers and url_parts(servers[0]).netloc not in own else ""


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
    issuer = url_parts(str(named[-1].fields["servers"][0]))
    if issuer.netloc != url_parts(str(named[-1].fields.get("address") or "")).netloc:
        return None  # What is asked of another host is not recorded.
    path, paths = issuer.path.rstrip("/"), {step.path.rstrip("/") for step in asked}
    wanted = [f"/.well-known/oauth-authorization-server{path}"]
    if path:  # Keycloak has the metadata of each realm only there.
        wanted.append(f"{path}/.well-known/openid-configuration")
    return next((each for each in wanted if each not in paths), None)


def _metadata_elsewhere(facts: Facts, challenge: str) -> str:
    """Return the address of metadata that a 401 names, if it is at another host than the endpoint; else nothing."""
    named = re.search(r'resource_metadata="?([^",\s]+)', challenge)
    hosts = {facts.endpoint.hostname, first_host(facts)}
    return (
        named[1]
        if named is not None and url_parts(named[1]).hostname not in {None, *LOOPBACK, *hosts}
        else ""
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
    stop = (
        _renamed_by_gateway(first)
        or _without_address(facts, first)
        or _asked_elsewhere(facts)
        or _unfinished(facts)
        or _not_begun(facts, first.challenge)
        # The host may have no token, or leave out the one that it has, or the server refuse what it should let in.
        or _Stop("", _give_token(first, key, words), "")
    )
    yield sign_in_claim(facts, title + stop.title, stop.next_step, *stop.steps, side=stop.side)


def _give_token(exchange: RefusedExchange, key: str, words: str) -> str:
    """Return how to give the client what it did not send, or sent with a wrong value."""
    next_step = "set the Authorization header in the host's configuration, or sign in there"
    if key:
        next_step = f"correct the value of {quote(key, 40)} in the host's configuration: a variable that the host does not replace, or an old key"
    elif re.search(r"(?i)\bapi[ _-]?key|\bx-[a-z][\w-]+", words):
        next_step = f"give the client in the host's configuration what the refusal names: {quote(words, 100)}"
    return next_step + (_of_challenge(exchange.challenge) if exchange.status == 401 else "")


def _renamed_by_gateway(exchange: RefusedExchange) -> _Stop | None:
    if REMAPPED not in exchange.response:
        return None
    return _Stop(
        f", and the gateway in front of it renamed WWW-Authenticate to {REMAPPED}: no client finds the sign-in",
        "let the gateway answer with the header's own name (Amazon API Gateway renames it in answers of an "
        "integration: set it in a gateway response, or use another kind of integration)",
        "proxy",
    )


def _begun(facts: Facts) -> list[OauthStep]:
    """Return the steps of the sign-in after the refusal with which it begins."""
    return [step for step in facts.http.oauth if step.step not in ("challenge", "retry")]


def _without_address(facts: Facts, exchange: RefusedExchange) -> _Stop | None:
    """Return the stop at a 401 that names no metadata, if there are some that the client never asked for."""
    steps = _begun(facts)
    own_flow = {step.fields.get("flow") for step in steps_of(facts, "challenge") if step.at <= exchange.at}
    metadata = [step for step in steps if step.step.endswith("metadata") and step.status == 200]
    is_hidden = exchange.status == 401 and not exchange.challenge and metadata
    if not is_hidden or any(step.fields.get("flow") in own_flow or step.step == "token" for step in steps):
        return None
    return _Stop(
        ", without WWW-Authenticate; the metadata of a sign-in exists, and the client never asked for it: it did not "
        "know where",
        'let the server answer 401 with WWW-Authenticate: Bearer resource_metadata="URL" (RFC 9728, 5.1); some '
        "libraries for signing in answer 401 on their own, before the code that adds it",
        SERVER,
        metadata,
    )


def _asked_elsewhere(facts: Facts) -> _Stop | None:
    if (wanted := _elsewhere(facts)) is None:
        return None
    asked = steps_of(facts, "server metadata")
    paths = ", ".join(dict.fromkeys(step.path for step in asked))
    return _Stop(
        f"; the client asked for the metadata of the authorization server at {quote(paths, 120)} (HTTP "
        f"{asked[-1].status}), and never at {quote(wanted, 80)}, where they belong",
        "let the client ask at the address that is made of the issuer in authorization_servers (RFC 8414, 3.1), not of "
        "the path of the endpoint; until then let the server answer there too",
        CLIENT,
        asked[-2:],
    )


def _unfinished(facts: Facts) -> _Stop | None:
    steps = _begun(facts)
    return _stop(facts, steps[-1])._replace(steps=steps[-2:]) if steps else None


def _not_begun(facts: Facts, challenge: str) -> _Stop | None:
    """Return the stop before a sign-in whose metadata a 401 names."""
    if (elsewhere := _metadata_elsewhere(facts, challenge)) and not facts.has_worked:
        return _Stop(
            f", naming the metadata of its sign-in at {quote(elsewhere, 100)}, and the client sent no token after that",
            "begin the sign-in in the client, and look in its log whether it read this document: what it asks there does not "
            "pass this point; if the server takes a fixed token, set the Authorization header in the host's configuration",
            "",
        )
    if "resource_metadata" in challenge and (not facts.has_worked or facts.http.token_accepted_at is None):
        return _Stop(
            ", naming the metadata of its sign-in, which the client never asked for",
            "use a client that signs in by OAuth, or begin the sign-in in it; if the server takes a fixed token, set the "
            "Authorization header in the host's configuration",
            CLIENT,
        )
    return None


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
        and (exchange.method == "POST" or facts.http.has_accepted(exchange))
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
