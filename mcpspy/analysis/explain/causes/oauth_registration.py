"""The registration of a client at an authorization server: refused, or not offered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.oauth_metadata import METADATA_STEPS, other_resource
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
from mcpspy.analysis.explain.evidence import clause, evidence, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.core.protocol.spec import SERVER


def _offers_registration(metadata: list[OauthStep]) -> bool:
    """Return whether metadata of an authorization server name an address for the registration, or are not known."""
    servers = [names_of(step) for step in metadata if step.step == "server metadata"]
    return not servers or any("registration_endpoint" in names for names in servers)


def _foreign_resource(facts: Facts) -> str:
    """Return the resource of metadata that no client may use: on another host, and nothing was asked where they lead."""
    if any(step.status == 200 for step in steps_of(facts, "server metadata")):
        return ""
    for step in steps_of(facts, "resource metadata"):
        resource = str(step.fields.get("resource") or "")
        own = {
            url_parts(str(url or "")).netloc for url in (facts.header.upstream, step.fields.get("address"))
        }
        if step.status == 200 and url_parts(resource).netloc not in {"", *own}:
            return resource
    return ""


_LOOPBACK = re.compile(r"(?i)\blocalhost\b|\b127\.0\.0\.1\b|\[::1\]|loopback|\bhttps\b")
"""The words of a refusal of a redirect URI of a program on a desktop."""

_UNKNOWN_MEMBER = re.compile(
    r"(?i)unrecogni[sz]ed|unknown|unexpected|additional prop|not (?:allowed|permitted|supported)"
)


def _named_member(step: OauthStep, words: str) -> str:
    """Return the member of a request that the words of its refusal name first; empty if they name none."""
    found = [
        (words.find(name), name) for name in names_of(step) if re.search(rf"\b{re.escape(name)}\b", words)
    ]
    return min(found)[1] if found else ""


@cause(
    "oauth-registration",
    "the client could not register at the authorization server",
    Level.EXACT,
    rules=RULES,
    positive=(
        ex.unauthorized(ex.METADATA, ex.oauth("registration", 403)),
        ex.unauthorized(
            ex.METADATA,
            ex.oauth("registration", 400, error="Redirect URI must use HTTPS: http://127.0.0.1:33418"),
        ),
        ex.unauthorized(ex.METADATA, ex.oauth("registration", 500)),
        ex.unauthorized(
            ex.oauth(
                "resource metadata", 200, 61, resource="https://b.example/mcp", address=ex.ISSUER, path="/mcp"
            ),
            ex.oauth("registration", 404),
        ),
    ),
    negative=ex.unauthorized(ex.METADATA, ex.oauth("registration", 201)),
)
def oauth_registration(facts: Facts) -> Iterator[Claim]:
    """Dynamic registration is refused or not offered: the client needs an id that was registered by hand."""
    found = [step for step in steps_of(facts, "resource metadata", "server metadata") if step.status == 200]
    endpoint = facts.endpoint.path
    if not unauthorized(facts) or not found or any(other_resource(step, endpoint) for step in found):
        return  # The metadata of another resource led the client away (RFC 9728, 3.3).
    if (refused := refused_step(facts, "registration")) is not None:
        yield _refused_registration(facts, refused, found)
        return
    went_on = steps_of(facts, "registration", "authorize", "token", "device authorization")
    metadata = [step for step in found if step.step == "server metadata"]
    # Without the issuer, which is required, clients refuse the whole document (RFC 8414, 2): `oauth-metadata`.
    names = names_of(metadata[-1]) if metadata else []
    if metadata and not went_on and "registration_endpoint" not in names and "issuer" in names:
        title = (
            "the metadata of the authorization server names no registration_endpoint, and the client "
            "stopped there: it has no client id"
        )
        next_step = (
            "configure a client_id that was registered by hand, or put a server that offers registration "
            "in front of the authorization server"
        )
        # Some authorization servers give out ids by hand alone, others lack it: the recording does not tell.
        claim = sign_in_claim(facts, title, next_step, side="")
        claim.evidence = [evidence(metadata[-1].place, "server metadata without registration_endpoint")]
        yield claim


def _refused_registration(facts: Facts, refused: OauthStep, metadata: list[OauthStep]) -> Claim:
    """Return the claim of a registration that was refused."""
    words = words_of(refused)
    if (found := _by_member(refused, words)) is not None:
        side, next_step = found
    elif refused.status in (404, 405) and (resource := _foreign_resource(facts)):
        title = (
            f"the server's metadata names the resource {quote(resource, 80)}, which is on another host than the "
            f"endpoint: the client asked nothing at the authorization server that it names, and its own guess for the "
            f"registration got HTTP {refused.status}"
        )
        next_step = (
            f"{METADATA_STEPS['AUTH101']} (RFC 9728, 3.3); or let the host connect to {quote(resource, 80)}"
        )
        return sign_in_claim(facts, title, next_step, refused, side=SERVER)
    elif refused.status in (401, 403):
        side = ""  # It may be protected on purpose (RFC 7591, 3).
        next_step = (
            "register the client by hand and configure its client_id: this registration wants its own token, or is "
            "closed; or let the authorization server open it"
        )
    elif refused.status in (404, 405) and not _offers_registration(metadata):
        side = ""
        next_step = (
            "register the client by hand and configure its client_id: the metadata name no registration_endpoint, and the "
            "address that the client asked was its own guess; or let the authorization server offer one"
        )
    elif refused.status in (404, 405, 501) or (refused.status or 0) >= 500:
        side = SERVER
        next_step = (
            "let the authorization server answer at its registration_endpoint, or leave it out of its metadata; "
            "until then register a client by hand and configure its client_id"
        )
    else:
        side = SERVER
        next_step = "register the client by hand and configure its client_id, or allow dynamic registration at the authorization server"
        if words == "invalid_client_metadata" and "scope" in names_of(refused):
            side = ""
            next_step += "; the registration had a scope: compare it with scopes_supported of the metadata"
    title = f"the authorization server refused to register the client (HTTP {refused.status}){clause(words)}"
    named = [names_of(step) for step in metadata if step.step == "server metadata"]
    if (
        named
        and "authorization_endpoint" not in named[-1]
        and "issuer" in named[-1]
        and refused.status in (404, 405)
    ):
        title += (
            "; its metadata lack authorization_endpoint (RFC 8414, 2), so a client may discard them and guess"
        )
        next_step = (
            f"let the metadata of the authorization server name its authorization_endpoint; {next_step}"
        )
    return sign_in_claim(facts, title, next_step, refused, side=side)


def _by_member(refused: OauthStep, words: str) -> tuple[str, str] | None:
    """Return the side and the next step if the words of a refusal name a member of the registration."""
    if _UNKNOWN_MEMBER.search(words) and (member := _named_member(refused, words)):
        # The server must ignore it, and the client need not send it.
        return "", (
            f"let the client leave {quote(member, 40)} out of its registration, or the authorization server ignore what it "
            f"does not know, as it must (RFC 7591, 2)"
        )
    if "redirect" in words.lower() and re.search(
        r"(?i)allow-?list|white-?list|recogni[sz]ed|allowed list", words
    ):
        return SERVER, (
            "the authorization server accepts only redirect URIs of a list: add that of this client to it, or register a client by hand"
        )
    if "redirect" in words.lower() and _LOOPBACK.search(words):
        return SERVER, (
            "let the authorization server accept http on the loopback address in a redirect URI, with any port: "
            "programs on a desktop have no other (RFC 8252, 7.3); until then register a client by hand"
        )
    if "redirect" in words.lower():
        # Its value is not recorded.
        return "", (
            "compare the client's redirect URI (its log has it) with what the authorization server accepts: a program on a "
            "desktop should register http on the loopback address, and the server has to accept it with any port (RFC "
            "8252, 7.3)"
        )
    if re.search(r"(?i)\bscopes?\b", words) and "scope" in names_of(refused):
        # Clients ask for what the resource's metadata list, or for scopes of OpenID Connect.
        return "", (
            "compare the scope of the registration (its value is not recorded) with scopes_supported of the metadata: the client "
            "should ask for no others, and the authorization server leave out what it does not know (RFC 7591, 2)"
        )
    return None
