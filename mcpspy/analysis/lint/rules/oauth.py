"""OAuth through the proxy: metadata, PKCE, resource indicators and registration.

Checks the notes of the steps, which have names and statuses only. A flow comes before the handshake, so its revision is
not known: the rules hold in all revisions.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.core.protocol.oauth_flows import AUTHORIZE, REGISTRATION, RESOURCE, RETRY, SERVER, TOKEN

RFC = "https://www.rfc-editor.org/rfc/rfc"

_STEP = '@ http\n* oauth {"http":1,"stream":"1","flow":1,"step":"%s","status":%d,%s}'
_AUTHORIZE = _STEP % (AUTHORIZE, 302, '"names":[%s]')
_TOKEN = _STEP % (TOKEN, 200, '"names":[%s]')
_PROXY = "http://127.0.0.1:8808"
_RESOURCE = _STEP % (RESOURCE, 200, '"resource":"%s","address":"' + _PROXY + '"')
_SERVER = _STEP % (SERVER, 200, '"issuer":"%s","address":"' + _PROXY + '","pkce":%s')

step = RuleGroup(RULES, on=EventKind.NOTE, about="oauth")


def _names(event: LintEvent, expected: str) -> list[str] | None:
    """Return the names in the note of a step of this kind; None for another step."""
    fields = event.note.fields
    names = fields.get("names")
    return names if fields.get("step") == expected and isinstance(names, list) else None


def _is_served(event: LintEvent, expected: str) -> bool:
    return event.note.fields.get("step") == expected and event.note.fields.get("status") == 200


@step.error(
    "AUTH101",
    "metadata of another resource",
    page=RFC + "9728#section-3.3",
    valid=(
        _RESOURCE % f"{_PROXY}/mcp",
        (_RESOURCE % f"{_PROXY}/mcp").replace("}", ',"path":"/mcp"}'),
        (_RESOURCE % "https://a.example").replace("}", ',"kept":true}'),
    ),
    invalid=(
        _RESOURCE % "https://a.example/mcp",
        _RESOURCE % f"{_PROXY}0/mcp",
        _RESOURCE % "",
        (_RESOURCE % f"{_PROXY}/other").replace("}", ',"path":"/mcp"}'),
    ),
)
def other_resource(event: LintEvent) -> Iterator[Report]:
    """`resource` in the metadata must be the URL that the client uses: the whole one that was requested, if the metadata
    are at the path of a resource. Clients must not use the metadata of another resource, so they cannot authorize.
    """
    fields = event.note.fields
    if not _is_served(event, RESOURCE) or fields.get("kept"):
        return
    resource, address = str(fields.get("resource") or ""), str(fields.get("address"))
    if not resource:
        yield Report(f"the metadata have no resource, the client uses {address[:80]}", address)
        return
    path = str(fields.get("path") or "")
    is_same = resource.rstrip("/") == address + path.rstrip("/")
    if not is_same and (path or not resource.startswith(address + "/")):
        yield Report(f"resource is {resource[:80]}, the client uses {(address + path)[:80]}", resource)


@step.error(
    "AUTH102",
    "issuer of the metadata is not the URL it was requested from",
    page=RFC + "8414#section-3.3",
    valid=(_SERVER % (_PROXY, '["S256"]'), _SERVER % (_PROXY + "/", '["S256"]')),
    invalid=_SERVER % ("https://a.example", '["S256"]'),
)
def other_issuer(event: LintEvent) -> Iterator[Report]:
    """The issuer must equal the URL before its well-known path. Clients must not use the metadata otherwise."""
    issuer, address = (str(event.note.fields.get(name)) for name in ("issuer", "address"))
    if _is_served(event, SERVER) and issuer.rstrip("/") != address.rstrip("/"):
        what = f"issuer is {issuer[:80]}" if "issuer" in event.note.fields else "issuer is missing"
        yield Report(f"{what}, the metadata was requested from {address[:80]}", issuer)


@step.error(
    "AUTH103",
    "authorization server does not declare PKCE with S256",
    page="2025-11-25/basic/authorization#authorization-code-protection",
    valid=_SERVER % (_PROXY, '["plain","S256"]'),
    invalid=(_SERVER % (_PROXY, "null"), _SERVER % (_PROXY, '["plain"]')),
)
def no_pkce(event: LintEvent) -> Iterator[Report]:
    """Clients must not continue if `code_challenge_methods_supported` is missing, and must use S256 if they can."""
    methods = event.note.fields.get("pkce")
    if _is_served(event, SERVER) and not (isinstance(methods, list) and "S256" in methods):
        yield Report("code_challenge_methods_supported does not contain S256", methods)


class _NotServed:
    """The flows in which no metadata of a kind was served so far, although the client asked for it."""

    def __init__(self) -> None:
        self.of: set[int] = set()

    def first_use(self, event: LintEvent, wanted: str, uses: tuple[str, ...]) -> bool:
        """Return whether a step is the first of a flow that continues without the metadata it wanted."""
        step, status, flow = (event.note.fields.get(name) for name in ("step", "status", "flow"))
        if not isinstance(flow, int):
            return False
        if step == wanted and isinstance(status, int):
            (self.of.add if status >= 400 else self.of.discard)(flow)
        is_use = step in uses and flow in self.of
        if is_use:
            self.of.discard(flow)
        return is_use


class _NoResourceMetadata(_NotServed):
    """Metadata of the MCP server."""


class _NoServerMetadata(_NotServed):
    """Metadata of the authorization server."""


def _of_another_client(entries: str) -> str:
    return entries.replace('"flow":1', '"flow":2')


_S256 = '["S256"]'
_LACKS_RESOURCE = _STEP % (RESOURCE, 404, '"names":[]')
_LACKS_SERVER = _STEP % (SERVER, 404, '"names":[]')
_REGISTERS = _STEP % (REGISTRATION, 201, '"names":["redirect_uris"]')


@step.warning(
    "AUTH104",
    "metadata of the protected resource not served",
    page=RFC + "9728#section-3",
    valid=(
        f"{_LACKS_RESOURCE}\n{_RESOURCE % _PROXY}\n{_SERVER % (_PROXY, _S256)}",
        _SERVER % (_PROXY, '["S256"]'),
        f"{_LACKS_RESOURCE}\n{_of_another_client(_SERVER % (_PROXY, _S256))}",
    ),
    invalid=f"{_LACKS_RESOURCE}\n{_SERVER % (_PROXY, _S256)}",
)
def no_resource_metadata(event: LintEvent) -> Iterator[Report]:
    """Since 2025-06-18, a server that requires authorization must serve its metadata, which names its authorization
    server. Clients of 2025-03-26 continue with the server's own origin; others give up.
    """
    uses = (SERVER, REGISTRATION, AUTHORIZE, TOKEN)
    if event.state.memory[_NoResourceMetadata].first_use(event, RESOURCE, uses):
        yield Report("no path of /.well-known/oauth-protected-resource was served")


@step.warning(
    "AUTH105",
    "metadata of the authorization server not served",
    page=RFC + "8414#section-3",
    valid=(
        f"{_LACKS_SERVER}\n{_SERVER % (_PROXY, _S256)}\n{_REGISTERS}",
        _REGISTERS,
        f"{_LACKS_SERVER}\n{_of_another_client(_REGISTERS)}",
    ),
    invalid=f"{_LACKS_SERVER}\n{_REGISTERS}",
)
def no_server_metadata(event: LintEvent) -> Iterator[Report]:
    """An authorization server must serve its metadata. Without it, clients of 2025-03-26 guess /authorize, /token and
    /register; others give up.
    """
    if event.state.memory[_NoServerMetadata].first_use(event, SERVER, (REGISTRATION, AUTHORIZE, TOKEN)):
        yield Report("no well-known path of the authorization server was served")


@step.error(
    "AUTH201",
    "authorization code without PKCE",
    page=RFC + "7636#section-4.3",
    valid=(
        _AUTHORIZE % '"code_challenge","response_type","resource"',
        _AUTHORIZE % '"request_uri"',
        _TOKEN % '"code","code_verifier","resource"',
        _TOKEN % '"grant_type","refresh_token","resource"',
    ),
    invalid=(_AUTHORIZE % '"resource","response_type"', _TOKEN % '"code","resource"'),
)
def without_challenge(event: LintEvent) -> Iterator[Report]:
    """A client must send `code_challenge` with the authorization request, and `code_verifier` with the code. Without
    them, a stolen code is enough to get a token.
    """
    asked, redeemed = _names(event, AUTHORIZE), _names(event, TOKEN)
    if asked is not None and "response_type" in asked and "code_challenge" not in asked:
        yield Report("authorization request without code_challenge")
    if redeemed is not None and "code" in redeemed and "code_verifier" not in redeemed:
        yield Report("token request without code_verifier")


@step.warning(
    "AUTH202",
    "request without a resource",
    page=RFC + "8707#section-2",
    valid=(_AUTHORIZE % '"code_challenge","response_type","resource"', _AUTHORIZE % '"request_uri"'),
    invalid=(_AUTHORIZE % '"code_challenge","response_type"', _TOKEN % '"code","code_verifier"'),
)
def without_resource(event: LintEvent) -> Iterator[Report]:
    """Since 2025-06-18, a client must name the server as `resource` in authorization and token requests, so that the
    token is valid at no other server.
    """
    asked, redeemed = _names(event, AUTHORIZE), _names(event, TOKEN)
    if asked is not None and "response_type" in asked and "resource" not in asked:
        yield Report("authorization request without resource")
    if redeemed is not None and "code" in redeemed and "resource" not in redeemed:
        yield Report("token request without resource")


@step.warning(
    "AUTH203",
    "client registration refused",
    page=RFC + "7591#section-3.2.2",
    valid=_STEP % (REGISTRATION, 201, '"names":["redirect_uris"]'),
    invalid=_STEP % (REGISTRATION, 403, '"names":["redirect_uris"]'),
)
def not_registered(event: LintEvent) -> Iterator[Report]:
    """The authorization server did not register the client. Give the client an id that the server knows, or correct the
    metadata that the client sent.
    """
    status = event.note.fields.get("status")
    if event.note.fields.get("step") == REGISTRATION and isinstance(status, int) and status >= 400:
        yield Report(f"registration refused with status {status}")


@step.error(
    "AUTH204",
    "request without the token that was issued",
    page="2025-11-25/basic/authorization#token-requirements",
    valid=_STEP % (RETRY, 200, '"authorized":true'),
    invalid=_STEP % (RETRY, 401, '"authorized":false'),
)
def without_token(event: LintEvent) -> Iterator[Report]:
    """A client must send its token in the `Authorization` header of every request."""
    if event.note.fields.get("step") == RETRY and event.note.fields.get("authorized") is False:
        yield Report("request after the token was issued has no Authorization header")


@step.info(
    "AUTH106",
    "authorization server without a way to register a client",
    page="2025-11-25/basic/authorization#client-registration-approaches",
    valid=(
        _SERVER % (_PROXY, '["S256"]'),
        (_SERVER % (_PROXY, '["S256"]')).replace("}", ',"names":["issuer","registration_endpoint"]}'),
        (_SERVER % (_PROXY, '["S256"]')).replace(
            "}", ',"names":["client_id_metadata_document_supported","issuer"]}'
        ),
    ),
    invalid=(_SERVER % (_PROXY, '["S256"]')).replace("}", ',"names":["issuer","token_endpoint"]}'),
)
def no_registration(event: LintEvent) -> Iterator[Report]:
    """Its metadata name neither `registration_endpoint` nor `client_id_metadata_document_supported`: only clients whose
    id the user has registered by hand, and entered in the host, can authorize.
    """
    names = event.note.fields.get("names")
    ways = {"registration_endpoint", "client_id_metadata_document_supported"}
    if _is_served(event, SERVER) and isinstance(names, list) and ways.isdisjoint(map(str, names)):
        yield Report("neither registration_endpoint nor client_id_metadata_document_supported", names)
