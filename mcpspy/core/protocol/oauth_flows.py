"""The authorization flows of a server's clients: the steps of OAuth, each in the flow of its client.

A value that only one client has proves whose step it is (a code, verifier, token or session), and so does a connection,
except that of a browser, which serves several clients. Otherwise the step belongs to the only flow that it fits: by the
client id, or by the address and the User-Agent. A step that fits several flows begins its own, and is joined to the
right one by a later proof. Values are kept as hashes, and never recorded. Sources: RFC 6749, 4.1 and 6; RFC 7636, 4;
RFC 7591, 3.2.1; RFC 8628, 3; RFC 9126, 2.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson

from mcpspy.core.protocol.oauth_values import KnownValues, challenge_of

CHALLENGE, RESOURCE, SERVER, REGISTRATION = (
    "challenge",
    "resource metadata",
    "server metadata",
    "registration",
)
AUTHORIZE, TOKEN, RETRY = "authorize", "token", "retry"

_ORDER = {CHALLENGE: 0, RESOURCE: 1, SERVER: 2, REGISTRATION: 3, AUTHORIZE: 5, TOKEN: 6, RETRY: 7}
"""The usual order of the steps; all others are between the registration and the token."""
_OTHER = 4

FORM_LIMIT = 1 << 16
"""Maximum bytes of a body in which parameters are looked for."""

MAX_STEPS = 32
"""Maximum steps of a flow in the recording; a client that retries forever adds none."""

MAX_FLOWS, MAX_PROOFS = 64, 1 << 12
"""Number of flows, and of values of their clients, that are remembered."""

MAX_WAIT = 1000
"""Maximum number of messages with a token between its issue and its first use."""

_PROOFS = {
    "code": "code",
    "code_challenge": "challenge",
    "request_uri": "request_uri",
    "device_code": "device_code",
    "access_token": "token",
    "refresh_token": "refresh_token",
}
"""Parameter, or member of a response → the kind of value, which only one client has."""


class OAuthRequest:
    """A request that may be a step of a flow, and what of its response names the client."""

    def __init__(
        self,
        target: str,
        headers: Mapping[str, str],
        form: bytes,
        *,
        is_mcp: bool,
        peer: object = None,
        location: str | None = None,
        response: bytes = b"",
    ) -> None:
        """`form` and `response` are the beginnings of the bodies, at most FORM_LIMIT bytes."""
        self.target = target
        self.is_mcp = is_mcp
        self.peer = peer
        """The address of the client."""
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._form = form
        self._location = location
        self._response = response

    @property
    def has_token(self) -> bool:
        return "authorization" in self._headers

    @property
    def names(self) -> list[str]:
        """The names of the parameters in its query, form or JSON object."""
        return sorted(self.given)

    @property
    def token(self) -> str | None:
        """The token of a message of MCP."""
        scheme, _, token = self._headers.get("authorization", "").partition(" ")
        return token if self.is_mcp and token and scheme.lower() in ("bearer", "dpop") else None

    @property
    def given(self) -> dict[str, Any]:
        """The parameters in its query, form or JSON object, with their values: never to be recorded."""
        if self._form[:1] == b"{":
            return {**dict(self._query()), **(json_members(self._form) or {})}
        return dict([*self._query(), *_pairs(self._form.decode("utf-8", "replace"))])

    @property
    def answer(self) -> dict[str, Any]:
        """The members of its response: never to be recorded."""
        return json_members(self._response) or {}

    def _query(self) -> list[tuple[str, str]]:
        return _pairs(self.target.partition("?")[2])

    def proofs(self) -> set[int]:
        """Return the hashes of the values that only this client has."""
        found: set[int] = set()
        if (session := self._headers.get("mcp-session-id")) is not None:
            found.add(hash(("session", session)))
        if self.token is not None:
            found.add(hash(("token", self.token)))
        if self.is_mcp:
            return found
        given = [*self._query(), *_pairs(self._form.decode("utf-8", "replace"))]
        given += _pairs((self._location or "").partition("?")[2].partition("#")[0])
        for name, value in [*given, *self.answer.items()]:
            if name == "code_verifier" and isinstance(value, str):
                found.add(hash(("challenge", challenge_of(value))))
                found.add(hash(("challenge", value)))  # The method `plain`.
            elif (kind := _PROOFS.get(name)) is not None and isinstance(value, str) and value:
                found.add(hash((kind, value)))
        return found

    def is_answered_with(self, name: str) -> bool:
        """Return whether the response is a JSON object with this member, a string."""
        return isinstance(self.answer.get(name), str)

    def client_id(self) -> str | None:
        """Return the id of the client, if it is named or has just been given."""
        found = self.given.get("client_id") or self.answer.get("client_id")
        if found is None and self._headers.get("authorization", "")[:6].lower() == "basic ":
            try:
                pair = b64decode(self._headers["authorization"][6:]).decode()
            except ValueError:
                return None
            found = unquote(pair.partition(":")[0])
        return found if isinstance(found, str) and found else None

    @property
    def connection(self) -> set[int]:
        """The hash of the client's address with its port; none on a Unix socket."""
        return {hash(("connection", self.peer))} if isinstance(self.peer, tuple) else set()

    @property
    def origin(self) -> int:
        """The hash of the client's address and program."""
        host = self.peer[0] if isinstance(self.peer, tuple) and self.peer else None
        return hash((host, self._headers.get("user-agent")))


class OAuthFlow:
    """The steps of one client on its way to a token."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.origins: set[int] = set()
        self.client_id: str | None = None
        self.steps: list[tuple[int, str, int]] = []
        """A number that counts the steps of all flows, the step and its status."""
        self.sent_resource = False
        """True if the client has read metadata with the proxy's address as the resource."""
        self.knows_token = False
        """True if the token was seen, so that no request with another one uses it."""
        self.values = KnownValues()
        """The values that the client registered, sent and was given, for comparison with its later steps."""

    @property
    def chain(self) -> list[str]:
        """Return the steps and their statuses."""
        return [f"{step} {status}" for _, step, status in self.steps]

    def has(self, *steps: str) -> bool:
        return any(step in steps for _, step, _ in self.steps)

    @property
    def is_over(self) -> bool:
        """Return whether the token was used."""
        return bool(self.steps) and self.steps[-1][1] == RETRY

    def is_continued_by(self, step: str) -> bool:
        """Return whether this step usually comes after those of the flow."""
        if self.is_over or (step == AUTHORIZE and self.has(AUTHORIZE) and not self.has(REGISTRATION)):
            return False  # Clients that did not register may have the same id.
        last = max((_ORDER.get(name, _OTHER) for _, name, _ in self.steps), default=0)
        return _ORDER.get(step, _OTHER) >= last


class OAuthFlows:
    """The flows of all clients of a proxy."""

    def __init__(self) -> None:
        self._flows: list[OAuthFlow] = []
        self._proofs: dict[int, OAuthFlow] = {}
        """Hash of a value or of a connection → the flow of its client."""
        self._numbers = self._steps = 0
        self.unused: set[OAuthFlow] = set()
        """Flows with a token that was not used yet. While there are none, only a refused message of MCP is a step."""
        self._waited = 0

    def retried(self, request: OAuthRequest, status: int) -> OAuthFlow | None:
        """Return the flow whose token this message of MCP is the first to use, or should."""
        if not (request.has_token or status == 401):
            return None
        for flow in self._proven(request.proofs()):
            if flow in self.unused:
                return flow
        self._waited += 1
        if self._waited > MAX_WAIT:
            self.unused.clear()
        fitting = [flow for flow in self.unused if not (flow.knows_token and request.has_token)]
        near = [flow for flow in self._proven(request.connection) if flow in fitting]
        return near[0] if near else self._only(fitting, request)

    def add(
        self, step: str, status: int, request: OAuthRequest, flow: OAuthFlow | None = None
    ) -> tuple[OAuthFlow, list[int]]:
        """Add a step to its flow, which is looked for unless it is given. Return it, and the numbers of joined ones."""
        proofs, client_id = request.proofs(), None if request.is_mcp else request.client_id()
        others: list[OAuthFlow] = []
        if flow is None:
            flow, *others = self._flows_of(step, request, proofs, client_id)
        for other in others:
            self._join(flow, other)
        flow.client_id = client_id or flow.client_id
        if step != AUTHORIZE:
            flow.origins.add(request.origin)
            proofs |= request.connection
        for proof in proofs:
            self._proofs.pop(proof, None)
            self._proofs[proof] = flow
        while len(self._proofs) > MAX_PROOFS:
            del self._proofs[next(iter(self._proofs))]
        self._steps += 1
        is_last = bool(flow.steps) and flow.steps[-1][1:] == (step, status)
        if not is_last and len(flow.steps) < MAX_STEPS:
            flow.steps.append((self._steps, step, status))
        if step == TOKEN and status < 400:
            self.unused.add(flow)
            self._waited, flow.knows_token = 0, request.is_answered_with("access_token")
        elif step == RETRY:
            self.unused.discard(flow)
        return flow, [other.number for other in others]

    def _flows_of(
        self, step: str, request: OAuthRequest, proofs: set[int], client_id: str | None
    ) -> list[OAuthFlow]:
        """Return the flow of a step, which may be new, and other flows that turn out to be parts of it."""
        proven = self._proven(proofs if step == AUTHORIZE else proofs | request.connection)
        found = [flow for flow in proven if client_id is None or flow.client_id in (None, client_id)]
        if step == CHALLENGE:
            found = [flow for flow in found if not flow.has(TOKEN, RETRY)]
        if found:
            first, *others = sorted(found, key=lambda flow: flow.number)
            return [first, *(other for other in others if not (first.is_over or other.is_over))]
        if step != CHALLENGE:
            fitting = [flow for flow in self._flows if flow.is_continued_by(step)]
            if client_id is not None:
                named = [flow for flow in fitting if flow.client_id == client_id]
                fitting = named or [flow for flow in fitting if flow.client_id is None]
            if (only := self._only(fitting, request)) is not None:
                return [only]
        self._numbers += 1
        flow = OAuthFlow(self._numbers)
        self._flows.append(flow)
        if len(self._flows) > MAX_FLOWS:
            self.unused.discard(self._flows.pop(0))
        return [flow]

    def _proven(self, proofs: set[int]) -> list[OAuthFlow]:
        """Return the flows to whose clients these values and connections belong."""
        found = (self._proofs.get(proof) for proof in proofs)
        return list(dict.fromkeys(flow for flow in found if flow is not None))

    @staticmethod
    def _only(flows: Iterable[OAuthFlow], request: OAuthRequest) -> OAuthFlow | None:
        """Return the only flow of these, or the only one of the same address and program."""
        flows = list(flows)
        same = [flow for flow in flows if request.origin in flow.origins]
        return same[0] if len(same) == 1 else flows[0] if len(flows) == 1 else None

    def _join(self, flow: OAuthFlow, other: OAuthFlow) -> None:
        """Move the steps of another flow, and what is known of its client, to a flow."""
        flow.steps = sorted([*flow.steps, *other.steps])[:MAX_STEPS]
        flow.origins |= other.origins
        flow.client_id = flow.client_id or other.client_id
        flow.sent_resource |= other.sent_resource
        flow.values.join(other.values)
        self._flows = [each for each in self._flows if each is not other]
        self.unused.discard(other)
        self._proofs = {proof: flow if of is other else of for proof, of in self._proofs.items()}


def json_members(body: bytes) -> dict[str, Any] | None:
    """Return the members of a JSON object; None for any other text."""
    try:
        document = orjson.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)
