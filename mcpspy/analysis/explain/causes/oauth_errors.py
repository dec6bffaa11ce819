"""Errors of an authorization server: the side that each is about, and the next step."""

from __future__ import annotations

import re

from mcpspy.analysis.explain.causes.definition import advised
from mcpspy.analysis.explain.causes.exchanges import side_of, who_refused
from mcpspy.analysis.explain.causes.sign_in import names_of, steps_of, words_of
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import CLIENT, SERVER

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


def is_resource_unknown(facts: Facts, step: OauthStep) -> bool:
    """Return whether the authorization server refuses a resource, although metadata name one."""
    words = words_of(step)
    is_asked = "resource" in names_of(step) and "invalid_target" in words and "scope" not in words
    return is_asked and bool(_named_resources(facts))


def of_resource(facts: Facts, step: OauthStep) -> tuple[str, str]:
    """Return the side and the next step if a resource is refused. The values of parameters are not recorded."""
    words = words_of(step)
    is_quoted = any(
        re.search(rf"{re.escape(each)}(?![\w/])", words) is not None for each in _named_resources(facts)
    )
    return (SERVER, _REGISTER_RESOURCE) if is_quoted else ("", f"{_COMPARE_RESOURCES}, {_REGISTER_RESOURCE}")


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


def by_error(facts: Facts, step: OauthStep, words: str) -> tuple[str, str]:
    """Return the side that an error of a step of OAuth is about, and the next step."""
    if is_resource_unknown(facts, step):
        return of_resource(facts, step)
    if (found := _by_status(facts, step, words)) is not None:
        return found
    next_step = advised(_TOKEN_ERRORS, words)
    if "scope" in words:  # At first, clients ask for what the resource's metadata list.
        return CLIENT if "refresh_token" in names_of(step) else "", next_step
    if step.step in ("token", "authorize") and (named := named_as_missing(step, words)):
        return of_missing(*named)
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
    if _NO_GRANT.search(words):
        return CLIENT if is_registered(facts) else "", (
            "let the client register with each grant that it uses (grant_types: authorization_code and refresh_token), or allow this grant "
            "for the client in the authorization server; until then sign in again"
        )
    if (found := _by_client(facts, step, words)) is not None:
        return found
    # The request may name a client or a redirect URI that was registered by hand, or is forgotten; of its values, nothing is recorded.
    return "", next_step


_NO_GRANT = re.compile(
    r"(?i)unauthorized_client.*\bgrants?\b|not (?:allowed|authorized|permitted) to use .{0,40}grant"
)
"""An authorization server that knows the client, and for other grants (RFC 6749, 5.2)."""


def _by_client(facts: Facts, step: OauthStep, words: str) -> tuple[str, str] | None:
    """Return the side and the next step if an error is about the client or its redirect URI."""
    is_offered, is_redirect = _is_offered(facts), "redirect" in words and step.step != "token"
    if is_registered(facts):
        is_loopback = re.search(r"localhost|127\.0\.0\.1|\[::1\]", words) is not None
        side, next_step = ("", JUST_REGISTERED) if is_loopback else (CLIENT, advised(_TOKEN_ERRORS, words))
        return (side, next_step) if is_redirect else None
    if is_redirect and is_offered:
        return (SERVER if _METADATA_DOCUMENT.search(words) else ""), _COMPARE_REDIRECTS
    if "client" not in words.lower():
        return None
    if is_offered and step.step == "authorize" and not words.startswith("invalid_client"):
        return "", FORGOTTEN
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
    return "", advised(_TOKEN_ERRORS, words)  # What was registered by hand, or what the host sends of it.


def _is_nameless(facts: Facts, step: OauthStep) -> bool:
    """Return whether a token request names no client, by form or by header."""
    names = set(names_of(step))
    is_named = {"client_id", "client_assertion"} & names or step.fields.get("http") in facts.http.with_token
    return step.step == "token" and bool(names) and not is_named


def _is_offered(facts: Facts) -> bool:
    """Return whether clients can register by themselves."""
    return any("registration_endpoint" in names_of(each) for each in steps_of(facts, "server metadata"))


def is_registered(facts: Facts) -> bool:
    """Return whether the client has registered in this recording."""
    return any((each.status or 400) < 300 for each in steps_of(facts, "registration"))


_METADATA_DOCUMENT = re.compile(r"(?i)\bCIMD\b|metadata document")
"""A client that is known by the document at the address that is its id."""

_COMPARE_REDIRECTS = (
    "compare the redirect URI in the address of the request (in the browser) with those of the client's registration or metadata "
    "document: the port of a loopback address does not count, so the authorization server has to take any (RFC 8252, 7.3); "
    "another address needs a new registration: remove the stored one"
)

JUST_REGISTERED = (
    "the authorization server has just registered this client: let it use the same rules at the request for authorization "
    "(redirect URIs, grant types), or refuse the registration; look whether the store of registrations is the one that it reads here"
)

FORGOTTEN = (
    "remove what the client has stored for this server, so that it registers again: the authorization server no longer knows "
    "its client_id, and the error of a page in the browser does not reach the client; let it keep registrations longer than the "
    "tokens of their clients"
)


def of_missing(name: str, is_sent: bool) -> tuple[str, str]:
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


def named_as_missing(step: OauthStep, words: str) -> tuple[str, bool] | None:
    """Return the parameter that an error calls missing, and whether the request has it."""
    if not re.search(
        r"(?i)\bmissing\b|\brequired\b|\bnot (?:provided|present|included|found in)|must (?:have|include)",
        words,
    ):
        return None
    found = [name for name in _PARAMETERS if re.search(rf"(?i)\b{name}\b", words)]
    return (found[0], found[0] in names_of(step)) if len(found) == 1 and names_of(step) else None
