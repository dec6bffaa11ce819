"""Check of live messages against the lockfile, and the decision about each difference.

Only listings, the handshake, tool calls and requests that the policy limits are read. The check of a listing follows
its cursor: a removed item is noticed at the last page.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from mcpspy.core.intercept.actions import AddNote, text_field
from mcpspy.core.intercept.held import RuleDecision
from mcpspy.core.intercept.requests import AwaitedRequest, about, answer
from mcpspy.core.jsontools import canonical_bytes
from mcpspy.core.lookalikes import as_latin, mixed_words, visible
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result, loads
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import sanitize
from mcpspy.core.trust.lock import LISTINGS, TrustedItem, TrustedListing, TrustedServer, TrustPolicy

REPORT, HOLD, BLOCK = ON_CHANGE = ("report", "hold", "block")

CALL = "tools/call"

HANDSHAKES = ("initialize", "server/discover")

REFUSED = -32602
"""Error code of a refused call: invalid params, as for an unknown tool (2025-11-25, server/tools)."""

LIMITS = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""Method of a request of the server → its limit in the policy."""

MOST_PAGES = 1000
"""Maximum number of open cursors; beyond it, the oldest one is forgotten."""

_CLIENT_NEEDLES = (b"/list", b"tools/call", b"initialize", b"discover", b"\\")
"""A client's message without any of these is not decoded. A backslash may escape a method."""

_SERVER_NEEDLES = (b"sampling/", b"elicitation/", b"roots/", b"\\")


class _Params(Struct, frozen=True, gc=False):
    name: str = ""


class _Call(Struct, frozen=True, gc=False):
    """The members of a client's message that determine whether it is checked."""

    method: str = ""
    params: _Params = _Params()


_decode_call = Decoder(_Call).decode


class Difference(NamedTuple):
    texts: list[str]
    """One line each: `tool echo: description changed`."""
    replacement: bytes | None = None
    """The message with the trusted definitions."""
    error: str = ""
    """Message of the error that answers a refused request; empty for a listing."""
    is_policy: bool = False
    trusted: Any = None
    """The definitions that changed or are missing, or members of the handshake, without volatile members."""
    listed: Any = None
    """The same as the server lists them, with new ones."""


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
        self._seen: dict[tuple[str | None, str, str], set[str]] = {}
        """Stream, method and cursor → names on the pages before."""
        self._policy = _PolicyCheck(server.policy)
        self._trust(server)

    def _trust(self, server: TrustedServer) -> None:
        self._server = server
        self._allowed = frozenset(filter(self._policy.allows_any_call, server.items.get("tools", ())))
        """Tools whose calls need no check."""

    def passes(self, side: str, data: bytes) -> bool:
        """Return True if a message needs no check, without parsing all of it."""
        if side == CLIENT:
            return not any(needle in data for needle in _CLIENT_NEEDLES) or self._passes(data)
        if self._awaited:
            return False
        return not (self._policy.has_limits and any(needle in data for needle in _SERVER_NEEDLES))

    def _passes(self, data: bytes) -> bool:
        try:
            call = _decode_call(data)
        except (DecodeError, RecursionError):  # Also a batch: its messages are checked one by one.
            return False
        return call.method == CALL and call.params.name in self._allowed

    def _check(self, message: AnyMessage, request: AwaitedRequest | None) -> Difference | None:
        """Return the difference of a message from the lockfile; `request` is the one that it responds to."""
        if isinstance(message, Request):
            if message.side == SERVER:
                return self._policy.limited(message.method)
            if message.method in LISTINGS or message.method in HANDSHAKES:
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
        if method in HANDSHAKES:
            return self._handshake(message)
        if listing is None or listing.member not in self._server.listed:
            return None
        return self._listing(message, method, listing, request)

    def apply(self, message: AnyMessage, request: AwaitedRequest | None, decision: RuleDecision) -> None:
        """Report a difference, and hold or block its message as configured."""
        found = self._check(message, request)
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

    def _is_first(self, method: str, listing: TrustedListing | None) -> bool:
        """Return True if a response belongs to the first use of the server, or of this listing."""
        if self._learn is None or method == "resources/list":  # Resources change with the user's data.
            return False
        if listing is None:
            return method in HANDSHAKES and not self._server.listed
        return listing.member not in self._server.listed

    def _use_first(self, message: Result, request: AwaitedRequest, listing: TrustedListing | None) -> None:
        """Keep a handshake or a page of a listing; trust the server after the last page."""
        assert self._learn is not None
        self._first += [Frame(request.at, CLIENT, request.data, request.stream), message.frame]
        del self._first[: -2 * MOST_PAGES]
        result = message.result
        if listing is not None and isinstance(result, dict) and result.get("nextCursor") is None:
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
            found = self._policy.limited(each.get("method", "") if isinstance(each, dict) else "")
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
                texts.append(f"{name} {_manner(value, now)}")
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

    def _listing(
        self, message: Result, method: str, listing: TrustedListing, request: AwaitedRequest | None
    ) -> Difference | None:
        trusted, result = self._server.items[listing.member], message.result
        items = result.get(listing.member) if isinstance(result, dict) else None
        if not isinstance(items, list):
            everything = {listing.member: [item.definition for item in trusted.values()]}
            replacement = answer(message.id or "null", b"result", everything)
            return Difference([f"{listing.noun}s: not a list"], replacement)
        seen, is_whole = self._names_before(method, request)
        texts, kept = [], []
        was: list[Any] = []
        now: list[Any] = []
        here = {
            name
            for item in items
            if isinstance(item, dict) and isinstance(name := item.get(listing.key), str)
        }
        for item in items:
            name = item.get(listing.key) if isinstance(item, dict) else None
            known = trusted.get(name) if isinstance(name, str) else None
            if known is None or not isinstance(name, str):
                now.append(item)
                texts.append(f"{listing.noun} {name}: new{_resemblance(name, item, trusted, here | seen)}")
            elif name in seen:
                texts.append(f"{listing.noun} {name}: listed twice")
            else:
                changes = _changes(known, item)
                if changes:
                    texts += [f"{listing.noun} {name}: {change}" for change in changes]
                    was.append(known.stable(known.definition))
                    now.append(known.stable(item))
                volatile = {member: item[member] for member in known.volatile & item.keys()}
                kept.append({**known.definition, **volatile} if changes else item)
                seen.add(name)
        cursor = result.get("nextCursor")
        if isinstance(cursor, str) and is_whole:
            self._seen[message.frame.stream, method, cursor] = seen
            if len(self._seen) > MOST_PAGES:
                del self._seen[next(iter(self._seen))]
        elif not isinstance(cursor, str) and is_whole:
            for name, item in trusted.items():
                if name not in seen:
                    texts.append(f"{listing.noun} {name}: removed")
                    was.append(item.stable(item.definition))
                    kept.append(item.definition)
        if not texts:
            return None
        replacement = answer(message.id or "null", b"result", {**result, listing.member: kept})
        return Difference(texts, replacement, trusted=was, listed=now)

    def _names_before(self, method: str, request: AwaitedRequest | None) -> tuple[set[str], bool]:
        """Return the names on the pages before, and whether all of those pages are known."""
        sent = loads(request.data) if request is not None and request.data else None
        params = sent.get("params") if isinstance(sent, dict) else None
        cursor = params.get("cursor") if isinstance(params, dict) else None
        if request is None or cursor is None:
            return set(), request is not None
        seen = self._seen.get((request.stream, method, str(cursor)))
        return (set(), False) if seen is None else (set(seen), True)


class _PolicyCheck:
    """Counts calls and requests, and checks them against the policy."""

    def __init__(self, policy: TrustPolicy) -> None:
        self._policy = policy
        self._validators: dict[str, Any] = {}
        """Validators of arguments, by tool; created with its first call."""
        self._calls: deque[float] = deque()
        self._counts: Counter[str] = Counter()
        self.has_limits = any(getattr(policy, name) is not None for name in LIMITS.values())

    def allows_any_call(self, name: str) -> bool:
        """Return True if every call of a tool is allowed, whenever it comes and with any arguments."""
        is_limited = self._policy.calls_per_minute is not None or name in self._policy.arguments
        return not is_limited and self._name(name) is None

    def called(self, message: Request) -> Difference | None:
        name, policy = message.subject or "", self._policy
        if (refused := self._name(name)) is not None:
            return refused
        if name in policy.arguments:
            from jsonschema_rs import ValidationError, validator_for

            params = message.params
            arguments = params.get("arguments", {}) if isinstance(params, dict) else {}
            if name not in self._validators:
                self._validators[name] = validator_for(policy.arguments[name])
            try:
                self._validators[name].validate(arguments)
            except ValidationError as error:
                return _violation(f"tool {name}: arguments violate the policy: {error.message}")
        return self._rate(message.at)

    def _name(self, name: str) -> Difference | None:
        if any(fnmatchcase(name, each) for each in self._policy.deny):
            return _violation(f"tool {name} is denied by the policy")
        if not any(fnmatchcase(name, each) for each in self._policy.allow):
            return _violation(f"tool {name} is not allowed by the policy")
        return None

    def limited(self, method: str) -> Difference | None:
        """Count a request of the server; return the violation if it is one too many."""
        name = LIMITS.get(method)
        most = None if name is None else getattr(self._policy, name)
        if name is None or most is None:
            return None
        self._counts[name] += 1
        return _violation(f"{method}: the policy allows {most}") if self._counts[name] > most else None

    def _rate(self, at: float) -> Difference | None:
        most = self._policy.calls_per_minute
        if most is None:
            return None
        while self._calls and self._calls[0] <= at - 60:
            self._calls.popleft()
        if len(self._calls) >= most:
            return _violation(f"{CALL}: the policy allows {most} per minute")
        self._calls.append(at)
        return None


def _violation(text: str) -> Difference:
    return Difference([text], None, f"{text} (mcpspy, policy of the lockfile)", is_policy=True)


def _method_of(message: Result) -> str:
    """Return the method that the members of an unpaired result belong to; empty if there is none."""
    result = message.result
    if not isinstance(result, dict):
        return ""
    return next((method for method, listing in LISTINGS.items() if listing.member in result), "")


def _changes(trusted: TrustedItem, item: dict[str, Any]) -> list[str]:
    old, found = trusted.definition, []
    for member in sorted((old.keys() | item.keys()) - trusted.volatile):
        was, now = old.get(member), item.get(member)
        if member not in old or member not in item or canonical_bytes(was) != canonical_bytes(now):
            found.append(f"{member} {_manner(was, now)}")
    return found


def _manner(old: Any, new: Any) -> str:
    """Return how a value changed: `added`, `removed`, `changed`, with the kind of a change of text."""
    if old is None or new is None:
        return "added" if old is None else "removed"
    if not isinstance(old, str) or not isinstance(new, str):
        return "changed"
    if old.split() == new.split():
        return "changed (whitespace only)"
    if visible(old) == visible(new):
        return "changed (invisible characters)"
    if as_latin(visible(old)) == as_latin(visible(new)) or mixed_words(new) - mixed_words(old):
        return "changed (look-alike characters)"
    return "changed"


def _resemblance(name: object, item: Any, trusted: dict[str, TrustedItem], listed: set[str]) -> str:
    """Return a hint at the trusted item that a new one looks like, or has the schema of if that one is not listed."""
    if isinstance(name, str):
        look = as_latin(visible(name))
        for known in trusted:
            if known != name and as_latin(visible(known)) == look:
                return f", looks like {known} (look-alike characters)"
        if mixed_words(name):
            return ", mixes alphabets (look-alike characters)"
    schema = item.get("inputSchema") if isinstance(item, dict) else None
    if schema is None:
        return ""
    own = canonical_bytes(schema)
    for old, each in trusted.items():
        if old not in listed and canonical_bytes(each.definition.get("inputSchema")) == own:
            return f", with the schema of {old} (renamed)"
    return ""
