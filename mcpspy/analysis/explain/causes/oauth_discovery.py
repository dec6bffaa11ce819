"""The way of a client to the metadata of a sign-in: addresses, and pages in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import who_refused
from mcpspy.analysis.explain.causes.sign_in import (
    RULES,
    sign_in_claim,
    steps_of,
    unauthorized,
)
from mcpspy.analysis.explain.causes.sign_in_stops import REMAPPED
from mcpspy.analysis.explain.causes.walls import is_bot_wall
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import CLIENT, SERVER

_ANSWERS = {
    "registration": (
        "let it answer with JSON, 201 or an error such as invalid_redirect_uri (RFC 7591, 3.2): frameworks redirect if "
        "the check of a form fails. A frequent reason is a redirect URI with a custom scheme (cursor://), or with a "
        "loopback address: compare redirect_uris of the request with what the server allows"
    ),
    "token": (
        "let it answer with JSON, 200 or an error (RFC 6749, 5): look whether the site's sign-in, its check of forms "
        "(CSRF) or a catch-all route is before the token endpoint"
    ),
    "metadata": (
        "let it answer with the JSON document, or 404: exclude /.well-known/ from the site's sign-in and from its "
        "catch-all routes"
    ),
}
"""The end of a step's name → the next step if it was answered with a redirect or a page."""


def _other_answer(facts: Facts, step: OauthStep) -> str:
    """Return by what a step was answered in place of JSON: a redirect or a page; empty if by neither."""
    number = step.fields.get("http")
    if 300 <= (step.status or 0) < 400:
        location = facts.http.locations.get(number)
        return f"a redirect (HTTP {step.status}{f' → {quote(location, 100)}' if location else ''})"
    is_page = (step.status or 0) < 300 and number in facts.http.pages and "metadata" not in step.step
    return f"a page (HTTP {step.status}, text/html)" if is_page else ""


@cause(
    "oauth-answer-not-json",
    "a step of the sign-in was answered with a redirect or a page in place of JSON",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.unauthorized(
            ex.METADATA, ex.http("POST", 302, 63, {}, location="/"), ex.oauth("registration", 302)
        ),
        ex.unauthorized(
            ex.METADATA,
            ex.http("POST", 200, 63, {}, content_type="text/html"),
            ex.oauth("token", 200, names=["code"]),
        ),
    ),
    negative=(
        ex.unauthorized(ex.METADATA, ex.oauth("registration", 201)),
        ex.unauthorized(ex.http("GET", 302, 60, {}), ex.oauth("server metadata", 302, 60), ex.METADATA),
    ),
)
def oauth_answer_not_json(facts: Facts) -> Iterator[Claim]:
    """Web frameworks redirect if the check of a form fails, gateways and sites redirect to their
    sign-in; a client that follows finds a page.
    """
    steps = [each for each in facts.http.oauth if each.step != "challenge"]
    metadata = steps_of(facts, "resource metadata", "server metadata")
    went_on = [each for each in steps if each not in metadata and (each.status or 400) < 300]
    has_none = not went_on and all(each.status != 200 for each in metadata)
    asked = [*(metadata if has_none else ()), *steps[-1:]]  # Without metadata, clients try other addresses.
    found = [each for each in asked if each.step not in ("authorize", "retry") and _other_answer(facts, each)]
    for step in found[:1] if unauthorized(facts) else ():
        what = _other_answer(facts, step)
        kind = next((end for end in _ANSWERS if step.step.endswith(end)), "token")
        again = [each for each in facts.of(RefusedExchange) if each.at >= step.at and each.method == "GET"]
        title = (
            f"the authorization server answered the step {step.step!r} with {what} in place of JSON, and the "
            f"client stopped there"
        )
        claim = sign_in_claim(facts, title, _ANSWERS[kind], step, side=SERVER)
        claim.symptoms += again
        yield claim


_NAMED = re.compile(r'resource_metadata="?([^",\s]+)')


def _read(facts: Facts) -> list[OauthStep]:
    """Return the steps in which the client read metadata of the resource; if it got none, those in which it asked."""
    steps = steps_of(facts, "resource metadata")
    return [step for step in steps if step.status == 200 and step.path] or steps


def _not_asked(facts: Facts) -> str | None:
    """Return the first address of metadata that a 401 names, if the client asked at others."""
    asked = {step.path.rstrip("/") for step in _read(facts)}
    if not asked or "" in asked:
        return None
    challenges = (exchange.challenge for exchange, _ in unauthorized(facts))
    named = (found[1] for found in map(_NAMED.search, challenges) if found)
    return next((url for url in named if url_parts(url).path.rstrip("/") not in asked), None)


_CHALLENGED = ex.http("GET", 403, 61, {"user-agent": "a"}, content_type="text/html", cf_mitigated="challenge")


@cause(
    "sign-in-not-offered",
    "the server wants a token, and names no way to sign in",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.unauthorized(ex.oauth("resource metadata", 404), ex.oauth("server metadata", 404)),
        ex.session(
            ex.first_answer(401, ex.WITH_TOKEN, "Invalid API key"),
            *(ex.oauth("resource metadata", 404), ex.oauth("server metadata", 404)),
        ),
        ex.unauthorized(_CHALLENGED, ex.oauth("resource metadata", 403, 61)),
    ),
    negative=ex.unauthorized(ex.METADATA),
)
def sign_in_not_offered(facts: Facts) -> Iterator[Claim]:
    """A 401 should name its metadata (RFC 9728, 5.1), and the metadata the authorization server;
    else clients can only guess.
    """
    refused = [exchange for exchange, _ in unauthorized(facts) if exchange.status == 401]
    metadata = steps_of(facts, "resource metadata", "server metadata")
    if _not_asked(facts) is not None or any(REMAPPED in exchange.response for exchange in refused):
        return  # `oauth-metadata-not-followed`, `token-missing`
    if (wall := _blocked(facts, metadata)) is not None:
        title = (
            f"{who_refused(wall)} blocked {wall.method} {quote(wall.path, 100)} before it reached the server (HTTP {wall.status}), "
            f"and the client found no way to sign in"
        )
        next_step = (
            "exempt the addresses of the sign-in (/.well-known/, registration, token) from the rule that refused this request (a "
            "protection against bots, a firewall), as that of the endpoint; a browser passes there, and a program does not"
        )
        yield sign_in_claim(facts, title, next_step, *metadata[:2], side="proxy")
        return
    if refused and metadata and all(step.status != 200 for step in metadata):
        named = _NAMED.search(refused[0].challenge)
        title = (
            f"the server wants a token and names no way to get one: its 401 has no WWW-Authenticate with "
            f"resource_metadata, and {len(metadata)} addresses of metadata were answered with HTTP {metadata[-1].status}"
        )
        if named is not None:
            title = (
                f"the server wants a token, and its 401 names metadata ({quote(named[1], 100)}) that lead nowhere: "
                f"{len(metadata)} addresses of metadata were answered with HTTP {metadata[-1].status}"
            )
        next_step = (
            "configure a token (header Authorization) in the host, if the server takes a fixed one; else "
            "let the server serve /.well-known/oauth-protected-resource and name it in WWW-Authenticate"
        )
        if named is None and not steps_of(facts, "server metadata"):
            title += "; the client did not ask for those of an authorization server at the same host"
            next_step += "; older servers have only /.well-known/oauth-authorization-server (2025-03-26): let the client ask there too"
        if refused[0].has_token and named is None:
            title = f"the server refused the token{clause(refused[0].words)}, and names no way to sign in: {title.partition(': ')[2]}"
            next_step = (
                "correct the token in the host's configuration (header Authorization): this server takes only one that was "
                "made by hand, and has no sign-in for clients"
            )
        # Metadata that the challenge names should be there; without them, the server may take only fixed tokens.
        side = SERVER if named is not None else ""
        yield sign_in_claim(facts, title, next_step, *metadata[:2], side=side)


def _blocked(facts: Facts, metadata: list[OauthStep]) -> RefusedExchange | None:
    """Return the first request for metadata that a protection against bots answered, if none got its document."""
    if not metadata or any(step.status == 200 for step in metadata):
        return None
    numbers = {step.fields.get("http") for step in metadata}
    asked = [each for each in facts.of(RefusedExchange) if each.number in numbers or each.is_for_metadata]
    return next((each for each in asked if is_bot_wall(each)), None)


def _other_document(path: str, status: int = 200) -> str:
    """Return a session whose 401 names the document at the root, and whose client asks for the one at a path."""
    named = f'Bearer resource_metadata="{ex.ISSUER}/.well-known/oauth-protected-resource"'
    head = {"http": 61, "method": "GET", "path": path, "status": status, "request": {}, "response": {}}
    return ex.session(
        ex.first_answer(401, {}, {"www-authenticate": named}),
        ex.note("http", **head),
        ex.METADATA if status == 200 else ex.oauth("resource metadata", status, 61),
        ex.note("http-end", http=61),
        ex.oauth("registration", 404),
    )


@cause(
    "oauth-metadata-not-followed",
    "the client reads other metadata than the server's 401 names",
    Level.EXACT,
    rules=RULES,
    positive=(
        _other_document("/.well-known/oauth-protected-resource/mcp"),
        _other_document("/.well-known/oauth-protected-resource/mcp", 404),
    ),
    negative=_other_document("/.well-known/oauth-protected-resource"),
)
def oauth_metadata_not_followed(facts: Facts) -> Iterator[Claim]:
    """A client must use the address in WWW-Authenticate if there is one (2025-11-25, Authorization); at the address
    that is made of the path may be an old document.
    """
    if (named := _not_asked(facts)) is None:
        return
    read = _read(facts)
    if not url_parts(named).scheme:
        title = f"the server's 401 names its metadata by an address without a host ({quote(named, 100)}), which clients do not find"
        next_step = "let the server write the whole URL, with https:// and its host, as resource_metadata (RFC 9728, 5.1)"
        yield sign_in_claim(facts, title, next_step, *read[:2], side=SERVER)
        return
    title = f"the server's 401 names its metadata ({quote(named, 100)}), and the client "
    next_step = "let the client read the document that resource_metadata of WWW-Authenticate names"
    if read[0].status == 200:
        servers = read[-1].fields.get("servers") or ["none"]
        title += (
            f"read another document ({quote(min(step.path for step in read), 100)}), which names the authorization "
            f"server {quote(str(servers[0]), 80)}"
        )
        next_step += (
            "; until then let the server answer the other address with the same document, or with 404"
        )
    else:
        title += f"never asked there, but at {quote(read[0].path, 100)} (HTTP {read[0].status})"
    yield sign_in_claim(facts, title, next_step, *read[:2], side=CLIENT)
