"""The step at which a sign-in stopped that was not begun or not completed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mcpspy.analysis.explain.causes.sign_in import steps_of, unauthorized
from mcpspy.analysis.explain.evidence import quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.spec import CLIENT, SERVER

REMAPPED = "x-amzn-remapped-www-authenticate"


def stop_of(facts: Facts, exchange: RefusedExchange) -> SignInStop | None:
    """Return where the sign-in stopped that this refusal should begin; None if it names no way to sign in."""
    return (
        _renamed_by_gateway(exchange)
        or _without_address(facts, exchange)
        or _asked_elsewhere(facts)
        or _unfinished(facts)
        or _not_begun(facts, exchange.challenge)
    )


def _other_issuer(facts: Facts, metadata: OauthStep) -> str:
    """Return the authorization server that the resource's metadata name, if its metadata write the issuer otherwise."""
    issuer = metadata.fields.get("issuer")
    named = [
        each.fields["servers"] for each in steps_of(facts, "resource metadata") if each.fields.get("servers")
    ]
    return str(named[-1][0]) if named and issuer is not None and issuer not in named[-1] else ""


class SignInStop(NamedTuple):
    """The end of a sign-in in words, the next step, and the side that has to take it."""

    title: str
    next_step: str
    side: str
    steps: Sequence[OauthStep] = ()
    """Those that show it."""


def _stop_after(facts: Facts, last: OauthStep) -> SignInStop:
    """Return why a sign-in ended after a step."""
    title, status = f"; the sign-in ended after the step {last.step!r} (HTTP {last.status})", last.status or 0
    if status >= 400:
        is_named = any(each.fields.get("servers") for each in steps_of(facts, "resource metadata"))
        # Not all addresses of metadata need exist, unless the server names who has them.
        is_needed = "metadata" not in last.step or (is_named and last.step == "server metadata")
        side = SERVER if status >= 500 or is_needed else ""
        return SignInStop(title, f"let the server answer the step {last.step!r}; clients stop here", side)
    if last.step == "server metadata" and (other := _other_issuer(facts, last)):
        title += (
            f": its issuer {quote(str(last.fields.get('issuer')), 80)} is not to the letter the authorization server that "
            f"the resource's metadata name, {quote(other, 80)}, and a client must not use it then (RFC 8414, 3.3)"
        )
        next_step = "let both documents name the authorization server in the same way, with or without the slash at the end"
        is_slash = other.rstrip("/") == str(last.fields.get("issuer")).rstrip("/")
        next_step += "; some clients take them for the same" if is_slash else ""
        return SignInStop(title, next_step, "" if is_slash else SERVER)
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
            return SignInStop(title, next_step, "")
        return SignInStop(title, next_step, CLIENT)
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
        return SignInStop(title, next_step, "" if is_of_host else SERVER)
    if last.step == "resource metadata" and (elsewhere := _server_elsewhere(facts, last)):
        title = (
            f"; the metadata name the authorization server {quote(elsewhere, 80)}, and what the client asked there did not pass "
            f"this point"
        )
        next_step = (
            "look in the client's log how far the sign-in came, and complete it in the browser; compare what this "
            "authorization server offers (metadata, registration, S256) with what the client needs"
        )
        return SignInStop(title, next_step, "")
    next_step = "complete the sign-in in the browser; the client's log states why it stopped at this step"
    if last.step == "registration":
        next_step += (
            "; compare the address of the page that the client opened (authorization_endpoint of the metadata) with what the browser "
            "can reach"
        )
        return SignInStop(
            title, next_step, ""
        )  # That address, and what the page showed, are not in the recording.
    return SignInStop(title, next_step, "")


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
    hosts = {facts.endpoint.hostname, _first_host(facts)}
    return (
        named[1]
        if named is not None and url_parts(named[1]).hostname not in {None, *LOOPBACK, *hosts}
        else ""
    )


def _first_host(facts: Facts) -> str:
    """Return the name by which the client calls the endpoint, without its port."""
    first = next((exchange for exchange, _ in unauthorized(facts)), None)
    return "" if first is None else first.request.get("host", "").partition(":")[0]


def _renamed_by_gateway(exchange: RefusedExchange) -> SignInStop | None:
    if REMAPPED not in exchange.response:
        return None
    return SignInStop(
        f", and the gateway in front of it renamed WWW-Authenticate to {REMAPPED}: no client finds the sign-in",
        "let the gateway answer with the header's own name (Amazon API Gateway renames it in answers of an "
        "integration: set it in a gateway response, or use another kind of integration)",
        "proxy",
    )


def _begun(facts: Facts) -> list[OauthStep]:
    """Return the steps of the sign-in after the refusal with which it begins."""
    return [step for step in facts.http.oauth if step.step not in ("challenge", "retry")]


def _without_address(facts: Facts, exchange: RefusedExchange) -> SignInStop | None:
    """Return the stop at a 401 that names no metadata, if there are some that the client never asked for."""
    steps = _begun(facts)
    own_flow = {step.fields.get("flow") for step in steps_of(facts, "challenge") if step.at <= exchange.at}
    metadata = [step for step in steps if step.step.endswith("metadata") and step.status == 200]
    is_hidden = exchange.status == 401 and not exchange.challenge and metadata
    if not is_hidden or any(step.fields.get("flow") in own_flow or step.step == "token" for step in steps):
        return None
    return SignInStop(
        ", without WWW-Authenticate; the metadata of a sign-in exists, and the client never asked for it: it did not "
        "know where",
        'let the server answer 401 with WWW-Authenticate: Bearer resource_metadata="URL" (RFC 9728, 5.1); some '
        "libraries for signing in answer 401 on their own, before the code that adds it",
        SERVER,
        metadata,
    )


def _asked_elsewhere(facts: Facts) -> SignInStop | None:
    if (wanted := _elsewhere(facts)) is None:
        return None
    asked = steps_of(facts, "server metadata")
    paths = ", ".join(dict.fromkeys(step.path for step in asked))
    return SignInStop(
        f"; the client asked for the metadata of the authorization server at {quote(paths, 120)} (HTTP "
        f"{asked[-1].status}), and never at {quote(wanted, 80)}, where they belong",
        "let the client ask at the address that is made of the issuer in authorization_servers (RFC 8414, 3.1), not of "
        "the path of the endpoint; until then let the server answer there too",
        CLIENT,
        asked[-2:],
    )


def _unfinished(facts: Facts) -> SignInStop | None:
    steps = _begun(facts)
    return _stop_after(facts, steps[-1])._replace(steps=steps[-2:]) if steps else None


def _not_begun(facts: Facts, challenge: str) -> SignInStop | None:
    """Return the stop before a sign-in whose metadata a 401 names."""
    if (elsewhere := _metadata_elsewhere(facts, challenge)) and not facts.has_worked:
        return SignInStop(
            f", naming the metadata of its sign-in at {quote(elsewhere, 100)}, and the client sent no token after that",
            "begin the sign-in in the client, and look in its log whether it read this document: what it asks there does not "
            "pass this point; if the server takes a fixed token, set the Authorization header in the host's configuration",
            "",
        )
    if "resource_metadata" in challenge and (not facts.has_worked or facts.http.token_accepted_at is None):
        return SignInStop(
            ", naming the metadata of its sign-in, which the client never asked for",
            "use a client that signs in by OAuth, or begin the sign-in in it; if the server takes a fixed token, set the "
            "Authorization header in the host's configuration",
            "",  # Its user may have to begin it.
        )
    return None
