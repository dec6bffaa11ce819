"""OAuth through a proxy: its steps by name, and metadata with the proxy's addresses.

Values that clients send are never recorded: only the names of their parameters. Sources: MCP basic/authorization, all
revisions since 2025-03-26; RFC 9728, 3 and 5.1; RFC 8414, 3; RFC 7591, 3; RFC 8707, 2; RFC 9207, 2; RFC 7636, 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson

from mcpspy.core.protocol.http_headers import LOOPBACK, Headers, names_only, rewritten_url
from mcpspy.core.protocol.oauth_flows import (
    AUTHORIZE,
    CHALLENGE,
    REGISTRATION,
    RESOURCE,
    RETRY,
    SERVER,
    TOKEN,
    OAuthFlow,
    OAuthFlows,
    OAuthRequest,
    json_members,
)
from mcpspy.core.protocol.oauth_values import IssuedTokens, KnownValues, claims_of_token, comparison, scopes

_WELL_KNOWN = {
    "oauth-protected-resource": RESOURCE,
    "oauth-authorization-server": SERVER,
    "openid-configuration": SERVER,
}
_ENDPOINTS = {
    "authorization_endpoint": AUTHORIZE,
    "token_endpoint": TOKEN,
    "registration_endpoint": REGISTRATION,
    "introspection_endpoint": "introspection",
    "revocation_endpoint": "revocation",
    "device_authorization_endpoint": "device authorization",
    "pushed_authorization_request_endpoint": "pushed authorization",
}
"""Member of the authorization server's metadata → the step at that URL."""

_USUAL = {
    "authorize": AUTHORIZE,
    "token": TOKEN,
    "register": REGISTRATION,
    "introspect": "introspection",
    "revoke": "revocation",
}
"""Last segment of a path → the step at it, for servers without metadata (2025-03-26)."""

_NAMED = re.compile(r'\bresource_metadata="([^"]*)"')
_ERROR = re.compile(r'\berror="([a-z_]{1,40})"')
_SCOPE = re.compile(r'\bscope="([^"]{1,2000})"')
_ISSUER = re.compile(r"([?&#]iss=)([^&#]*)")

REPLACED = "replaced"
"""The fact, which is not recorded, that the metadata got the proxy's address as the resource."""

HINT = (
    "the server refused a token that was issued for the address of mcpspy: if it checks the audience, start the client "
    "with `mcpspy exec -- COMMAND`, or use --keep-resource"
)


class OAuthTracker:
    """The authorization of one server's clients: known URLs, and the steps of each client."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.keeps_resource = False
        """True if `resource` in the metadata stays the server's own URL."""
        self._steps: dict[str, str] = {}
        """Path → the step at it, from challenges and metadata."""
        self._flows = OAuthFlows()
        self._named, self._issued = KnownValues(), IssuedTokens()
        """The values that metadata and challenges name, and the tokens that were issued."""
        self.unused_tokens = self._flows.unused
        self.hint: str | None = None
        """The next step towards a server that refuses the token, until it was printed."""
        self._has_hinted = False

    def step(self, target: str) -> str | None:
        """Return the step at a path; None for any other path."""
        path = target.partition("?")[0]
        if (known := self._steps.get(path)) is not None:
            return known
        return _well_known(path) or _USUAL.get(path.rpartition("/")[2])

    def is_metadata(self, target: str) -> bool:
        """Return whether a path is that of metadata about the server or its authorization server."""
        return self.step(target) in (RESOURCE, SERVER)

    def learn(self, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Remember the URL of the metadata that a challenge names. Return its `error` for the recording."""
        facts: dict[str, Any] = {}
        for name, value in headers:
            if name.lower() == "www-authenticate":
                for url in _NAMED.findall(value):
                    self._learn_url(url, RESOURCE)
                self._named.add("scope", scopes(_SCOPE.findall(value)))
                if (error := _ERROR.search(value)) is not None:
                    facts["error"] = error[1]
        return facts

    def _learn_url(self, url: object, step: str) -> None:
        if isinstance(url, str) and (path := rewritten_url(url, self._origin, "")) != url:
            self._steps[path.partition("?")[0] or "/"] = step

    def rewritten(self, target: str, body: bytes, proxy_origin: str) -> tuple[bytes, dict[str, Any]]:
        """Return a metadata document with the proxy's addresses, and its facts for the recording.

        An authorization server on the server's own origin gets the proxy's address too. Its sign-in pages keep theirs,
        whose cookies they need, unless cookies are shared (loopback) or the response must name the issuer (RFC 9207).
        """
        document = json_members(body)
        if document is None:
            return body, {"unreadable": True}
        is_resource = self.step(target) == RESOURCE
        changed = dict(document)
        if is_resource:
            names = ["authorization_servers", *([] if self.keeps_resource else ["resource"])]
        else:
            for name, step in _ENDPOINTS.items():
                self._learn_url(document.get(name), step)
            names = ["issuer", *(name for name in _ENDPOINTS if name != "authorization_endpoint")]
            names_issuer = document.get("authorization_response_iss_parameter_supported") is True
            if names_issuer or urlsplit(self._origin).hostname in LOOPBACK:
                names.append("authorization_endpoint")
        for name in names:
            if name in document:
                changed[name] = self._rewritten_value(document[name], proxy_origin)
        self._named.add("scope", scopes([document.get("scopes_supported")]))
        self._named.add("resource", [document.get("resource"), changed.get("resource")])
        facts = self._facts(target, changed, proxy_origin, is_resource=is_resource)
        facts[REPLACED] = changed.get("resource") != document.get("resource")
        return (body if changed == document else orjson.dumps(changed)), facts

    def _rewritten_value(self, value: Any, proxy_origin: str) -> Any:
        if isinstance(value, list):
            return [self._rewritten_value(item, proxy_origin) for item in value]
        return rewritten_url(value, self._origin, proxy_origin) if isinstance(value, str) else value

    def _facts(
        self, target: str, document: Mapping[str, Any], proxy_origin: str, *, is_resource: bool
    ) -> dict[str, Any]:
        facts: dict[str, Any] = {"names": sorted(document)}
        if is_resource:
            servers = document.get("authorization_servers")
            path = re.sub(r"/\.well-known/[^/]*", "", target.partition("?")[0])
            facts |= {"resource": document.get("resource"), "servers": servers, "address": proxy_origin}
            facts |= {"path": path} if path else {}
            if self.keeps_resource:
                facts["kept"] = True
            return facts
        path = re.sub(r"/\.well-known/[^/]*", "", target.partition("?")[0])
        methods = document.get("code_challenge_methods_supported")
        return facts | {"issuer": document.get("issuer"), "address": proxy_origin + path, "pkce": methods}

    def response_headers(self, target: str, headers: Headers, proxy_origin: str) -> Headers:
        """Return the headers of a response; `iss` of an authorization response is the issuer that the client knows."""
        if self.step(target) != AUTHORIZE:
            return headers

        def replaced(found: re.Match[str]) -> str:
            changed = rewritten_url(unquote(found[2]), self._origin, proxy_origin)
            return found[0] if changed == unquote(found[2]) else found[1] + quote(changed, safe="")

        return [
            (name, _ISSUER.sub(replaced, value) if name.lower() == "location" else value)
            for name, value in headers
        ]

    def recorded(self, target: str) -> str:
        """Return a path as it is recorded: an OAuth endpoint without the values of its query."""
        return target if self.step(target) is None else names_only(target)

    def step_fields(
        self, request: OAuthRequest, status: int, facts: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Add the step that an exchange was to its flow. Return the fields of its note; None if it is not a step."""
        if not request.is_mcp:
            step = self.step(request.target)
            return (
                None
                if step is None
                else self._record(step, status, request, {"names": request.names, **facts})
            )
        if not self.unused_tokens and status != 401:
            return None
        facts = {"authorized": request.has_token, **facts}
        if (flow := self._flows.retried(request, status)) is not None:
            return self._record(RETRY, status, request, facts, flow)
        return self._record(CHALLENGE, status, request, facts) if status == 401 else None

    def _record(
        self,
        step: str,
        status: int,
        request: OAuthRequest,
        facts: Mapping[str, Any],
        retried: OAuthFlow | None = None,
    ) -> dict[str, Any]:
        """Add a step to its flow. Return the fields of its note."""
        flow, joined = self._flows.add(step, status, request, retried)
        flow.sent_resource |= facts.get(REPLACED, False)
        fields: dict[str, Any] = {"flow": flow.number, "step": step, "status": status}
        if joined:
            fields["joins"] = joined
        fields |= {name: value for name, value in facts.items() if name != REPLACED}
        fields |= self._compared(step, status, request, flow)
        if step == RETRY:
            fields["chain"] = flow.chain
            is_scope = facts.get("error") == "insufficient_scope"
            if status in (401, 403) and flow.sent_resource and request.has_token and not is_scope:
                fields["hint"] = HINT
                if not self._has_hinted:
                    self.hint, self._has_hinted = HINT, True
        return fields

    def _compared(self, step: str, status: int, request: OAuthRequest, flow: OAuthFlow) -> dict[str, Any]:
        """Return how a step compares with what is known of its client, and remember what it adds to that."""
        fields: dict[str, Any] = {}
        if (token := request.token) is not None:
            given, claims = {"access_token": token}, claims_of_token(token)
            if isinstance(audience := claims.get("aud"), str):
                given["audience of the token"] = audience
            if isinstance(expires := claims.get("exp"), int):
                fields["expires"] = expires
            if self._issued.is_replaced(token):
                fields["older"] = ["access_token"]
        else:
            given = {name: value for name, value in request.given.items() if isinstance(value, str)}
        is_token = step == TOKEN
        fields |= comparison(given, named=self._named, own=flow.values, is_token=is_token)
        if is_token and status < 400:
            self._named.add("access_token", request.answer.get("access_token"))
            self._issued.add(request.answer.get("access_token"), flow.number)
        elif step == REGISTRATION and status < 400:
            registered = request.answer.get("redirect_uris") or request.given.get("redirect_uris")
            flow.values.add("registered redirect_uri", registered)
        elif not is_token:
            for name in ("redirect_uri", "code_challenge"):
                flow.values.add(name, given.get(name))
        return fields


def is_well_known(target: str) -> bool:
    """Return whether metadata is usually served at a path."""
    return _well_known(target) is not None


def _well_known(path: str) -> str | None:
    return next((step for name, step in _WELL_KNOWN.items() if f"/.well-known/{name}" in path), None)
