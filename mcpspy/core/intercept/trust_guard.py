"""Check of live messages against the lockfile, and the decision about each difference.

Only listings, the handshake, tool calls and requests that the policy limits are read.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from mcpspy.core.intercept.actions import AddNote, text_field
from mcpspy.core.intercept.held import RuleDecision
from mcpspy.core.intercept.requests import AwaitedRequest, about, answer
from mcpspy.core.intercept.trust_listing import ListingCheck
from mcpspy.core.jsontools import canonical_bytes
from mcpspy.core.protocol.listing import LISTINGS, MAX_PAGES, ListMethod, next_cursor
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result, loads
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import sanitize
from mcpspy.core.trust.difference import Difference, manner
from mcpspy.core.trust.lock import TrustedServer
from mcpspy.core.trust.policy import PolicyCheck

REPORT, HOLD, BLOCK = ON_CHANGE = ("report", "hold", "block")

CALL = "tools/call"

REFUSED = -32602
"""Error code of a refused call: invalid params, as for an unknown tool (2025-11-25, server/tools)."""

_CALL = b"tools/call"

_CLIENT_NEEDLES = (b"/list", b"initialize", b"discover", b"\\")
"""A client's message without any of these and without a call is not decoded. A backslash may escape a method."""

_SERVER_NEEDLES = (b"sampling/", b"elicitation/", b"roots/", b"\\")


class _Params(Struct, frozen=True, gc=False):
    name: str = ""


class _Call(Struct, frozen=True, gc=False):
    """The members of a client's message that determine whether it is checked."""

    method: str = ""
    params: _Params = _Params()


_decode_call = Decoder(_Call).decode


class TrustGuard:
    """The checks of one session, on any number of streams."""

    def __init__(
        self,
        server: TrustedServer,
        on_change: str,
        say: Callable[[str], None],
        *,
        learn: Callable[[list[Frame]], TrustedServer] | None = None,
        review: str = "mcpspy trust",
    ) -> None:
        """`say` prints one line for the user; `review` is the command that trusts a change.

        `learn` returns the server after its first use: it gets the handshakes and the listings so far. Without it, a
        listing that was not reviewed is not compared.
        """
        self._on_change = on_change
        self._say = say
        self._learn = learn
        self._review = review
        self._first: list[Frame] = []
        """Requests and responses of the handshakes and listings of the first use."""
        self._said: set[str] = set()
        self._awaited: set[tuple[str | None, str]] = set()
        """Stream and id of each listing or handshake without a response."""
        self._listings = ListingCheck()
        self._policy = PolicyCheck(server.policy)
        self._trust(server)

    def _trust(self, server: TrustedServer) -> None:
        self._server = server
        self._allowed = frozenset(filter(self._policy.allows_any_call, server.items.get("tools", ())))
        """Tools whose calls need no check."""

    def passes(self, side: str, data: bytes) -> bool:
        """Return True if a message needs no check, without parsing all of it."""
        if side == CLIENT:
            if _CALL in data or any(needle in data for needle in _CLIENT_NEEDLES):
                return self._passes(data)
            return True
        if self._awaited:
            return False
        return not (self._policy.has_limits and any(needle in data for needle in _SERVER_NEEDLES))

    @property
    def passes_server(self) -> bool:
        """True if no message of the server needs a check now, whatever it is."""
        return not self._awaited and not self._policy.has_limits

    def _passes(self, data: bytes) -> bool:
        try:
            call = _decode_call(data)
        # Also for a batch: its messages are checked one by one.
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return call.method == CALL and call.params.name in self._allowed

    def _check(self, message: AnyMessage, request: AwaitedRequest | None) -> Difference | None:
        """Return the difference of a message from the lockfile; `request` is the one that it responds to."""
        if isinstance(message, Request):
            if message.side == SERVER:
                return self._policy.limited(message.method)
            if message.method in LISTINGS or message.method in HANDSHAKE_METHODS:
                self._awaited.add((message.frame.stream, message.id))
            return self._call(message) if message.method == CALL else None
        if isinstance(message, Failure):
            self._awaited.discard((message.frame.stream, message.id or ""))
        if not isinstance(message, Result) or message.side == CLIENT:
            return None
        self._awaited.discard((message.frame.stream, message.id or ""))
        if message.result_type == "input_required":
            return self._input_required(message)
        method = request.method if request is not None else _method_of(message)
        listing = LISTINGS.get(method)
        if request is not None and self._is_first(method, listing):
            self._use_first(message, request, listing)
            return None
        if method in HANDSHAKE_METHODS:
            return self._handshake(message)
        if listing is None or listing.member not in self._server.listed:
            return None
        return self._listings.check(message, listing, self._server, request)

    def apply(self, message: AnyMessage, request: AwaitedRequest | None, decision: RuleDecision) -> None:
        """Report a difference, and hold or block its message as configured."""
        try:
            found = self._check(message, request)
        except Exception as error:  # A bug must neither end the checks nor let the message pass.
            found = _unchecked(message, request, error)
        if found is None:
            return
        action = BLOCK if found.is_policy and self._on_change == REPORT else self._on_change
        fields = {**about(message, request), "action": action, "differences": found.texts}
        fields |= {"trusted": found.trusted, "listed": found.listed}
        for text in found.texts:
            if text not in self._said:
                self._said.add(text)
                verb = {REPORT: "reported", HOLD: "held", BLOCK: "blocked"}[action]
                self._say(f"trust: {sanitize(text)} ({verb}; review with {self._review})")
        if action == HOLD:
            decision.holder = "trust: " + "; ".join(found.texts)
        elif action == BLOCK and found.error and isinstance(message, Request):
            decision.answer = answer(message.id, b"error", {"code": REFUSED, "message": found.error})
            fields |= text_field("sent", decision.answer)
        elif action == BLOCK and found.replacement is not None:
            decision.data = found.replacement
            fields |= text_field("sent", found.replacement)
        decision.notes.append(AddNote("trust", {k: v for k, v in fields.items() if v is not None}))

    def _is_first(self, method: str, listing: ListMethod | None) -> bool:
        """Return True if a response belongs to the first use of the server, or of this listing."""
        if self._learn is None or method == "resources/list":  # Resources change with the user's data.
            return False
        if listing is None:
            return method in HANDSHAKE_METHODS and not self._server.listed
        return listing.member not in self._server.listed

    def _use_first(self, message: Result, request: AwaitedRequest, listing: ListMethod | None) -> None:
        """Keep a handshake or a page of a listing; trust the server after the last page."""
        assert self._learn is not None
        self._first += [Frame(request.at, CLIENT, request.data, request.stream), message.frame]
        del self._first[: -2 * MAX_PAGES]
        result = message.result
        if listing is not None and isinstance(result, dict) and next_cursor(result) is None:
            self._trust(self._learn(self._first))

    def _call(self, message: Request) -> Difference | None:
        name = message.subject or ""
        if (refused := self._policy.called(message)) is not None:
            return refused
        if "tools" not in self._server.listed or name in self._server.items["tools"]:
            return None
        text = f"tool {name}: not in the lockfile, called"
        return Difference([text], None, f"tool {name} is not trusted: review it with {self._review}")

    def _input_required(self, message: Result) -> Difference | None:
        """Check the requests that a result contains (2026-07-28, basic/utilities/mrtr)."""
        requests = loads(message.body.input_requests)
        for each in requests.values() if isinstance(requests, dict) else ():
            method = each.get("method") if isinstance(each, dict) else None
            found = self._policy.limited(method) if isinstance(method, str) else None
            if found is not None and message.id is not None:
                error = answer(message.id, b"error", {"code": REFUSED, "message": found.error})
                return found._replace(replacement=error)
        return None

    def _handshake(self, message: Result) -> Difference | None:
        result, server = message.result, self._server
        if not isinstance(result, dict) or message.id is None:
            return None
        texts, trusted = [], dict(result)
        for name, value in (
            ("instructions", server.instructions),
            ("capabilities", server.capabilities or None),
        ):
            now = result.get(name) or None
            if name not in server.volatile and canonical_bytes(now) != canonical_bytes(value):
                texts.append(f"{name} {manner(value, now)}")
                trusted[name] = value
        if not texts:
            return None
        if trusted.get("instructions") is None:
            trusted.pop("instructions", None)
        trusted["capabilities"] = trusted.get("capabilities") or {}
        was, now = {}, {}
        for name in ("instructions", "capabilities"):
            if name not in server.volatile:
                was[name], now[name] = getattr(server, name), result.get(name)
        return Difference(texts, answer(message.id, b"result", trusted), trusted=was, listed=now)


def _unchecked(message: AnyMessage, request: AwaitedRequest | None, error: Exception) -> Difference:
    """Return the difference of a message whose check failed."""
    asked = message if isinstance(message, Request) else request
    text = (
        f"{asked.method if asked is not None else 'a message'}: not checked, a bug in mcpspy ({error!r:.200})"
    )
    replacement = None
    if isinstance(message, Result) and message.id is not None:
        replacement = answer(message.id, b"error", {"code": REFUSED, "message": text})
    return Difference([text], replacement, text)


def _method_of(message: Result) -> str:
    """Return the method that the members of an unpaired result belong to; empty if there is none."""
    result = message.result
    if not isinstance(result, dict):
        return ""
    return next((method for method, listing in LISTINGS.items() if listing.member in result), "")
