"""The values of a sign-in, compared: is a parameter that of the metadata or of an earlier step?

Recordings never have values of parameters, and so do not show whether the resource of a refused request is the one that
the metadata name, nor whose mistake the refusal is. Values are kept as hashes.
Sources: RFC 8707, 2; RFC 6749, 3.3 and 4.1.3; RFC 7591, 3.2.1; RFC 8252, 7.3; RFC 7636, 4.6; RFC 7519, 4.1.4.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson

MAX_KNOWN = 256
"""Maximum values of one name that are remembered, the last ones: a client that refreshes its token for weeks has more."""

_PORT_OF_LOOPBACK = re.compile(r"^(http://(?:127\.0\.0\.1|\[::1\]|localhost)):\d{1,5}(?=/|$)")


class KnownValues:
    """Values by name, as hashes."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, None]] = {}

    def add(self, name: str, values: object) -> None:
        """Remember a value of this name, or several; anything but strings is ignored."""
        for value in values if isinstance(values, list | tuple) else [values]:
            if isinstance(value, str) and value:
                self._add(name, _hash(name, value))

    def _add(self, name: str, value: int) -> None:
        known = self._known.setdefault(name, {})
        known.pop(value, None)
        known[value] = None
        if len(known) > MAX_KNOWN:
            del known[next(iter(known))]

    def has(self, name: str, value: str) -> bool | None:
        """Return whether a value is known; None if none of its name is, or if it may have been forgotten."""
        known = self._known.get(name, {})
        if _hash(name, value) in known:
            return True
        return False if 0 < len(known) < MAX_KNOWN else None

    def is_only(self, name: str, *values: str) -> bool | None:
        """Return whether one of these is the only known value; None if none is known, or several."""
        known = self._known.get(name, {})
        return any(_hash(name, value) in known for value in values) if len(known) == 1 else None

    def join(self, other: KnownValues) -> None:
        for name, values in other._known.items():
            for value in values:
                self._add(name, value)


class IssuedTokens:
    """The tokens that clients got, as hashes: the flow of each, and the last one of each flow. At most some."""

    def __init__(self) -> None:
        self._flows: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def add(self, token: object, flow: int) -> None:
        """Remember the token of an answer; anything but a string is ignored."""
        if isinstance(token, str):
            for known, key, value in ((self._flows, hash(token), flow), (self._last, flow, hash(token))):
                known.pop(key, None)
                known[key] = value
                if len(known) > MAX_KNOWN:
                    del known[next(iter(known))]

    def is_replaced(self, token: str) -> bool:
        """Return whether the client has got another token in the same flow since, such as by a refresh."""
        flow = self._flows.get(hash(token))
        return flow is not None and self._last.get(flow, hash(token)) != hash(token)


def _hash(name: str, value: str) -> int:
    return hash(_PORT_OF_LOOPBACK.sub(r"\1", value) if name == "registered redirect_uri" else value)


def comparison(
    given: Mapping[str, str], *, named: KnownValues, own: KnownValues, is_token: bool
) -> dict[str, Any]:
    """Return which of a step's parameters are the `same` as known, and in which it `differs`, by name.

    `named` is what metadata and challenges name, and the issued tokens; `own`, what the client registered and sent. A
    request for a token (`is_token`) repeats the redirect URI of its sign-in, others have a registered one.
    """
    found: dict[str, bool | None] = {}
    for name, value in given.items():
        match name:
            case "resource" | "access_token":
                found[name] = named.has(name, value)
            case "audience of the token":
                found[name] = named.has("resource", value)
            case "scope":
                each = [named.has(name, one) for one in value.split()]
                found[name] = None if None in each else all(each)
            case "redirect_uri":
                found[name] = (
                    own.is_only(name, value) if is_token else own.has("registered redirect_uri", value)
                )
            case "code_verifier":
                found[name] = own.is_only("code_challenge", challenge_of(value), value)
    fields = {
        "same": [name for name, is_same in found.items() if is_same],
        "differs": [name for name, is_same in found.items() if is_same is False],
    }
    return {name: names for name, names in fields.items() if names}


def challenge_of(verifier: str) -> str:
    """Return the code_challenge of a code_verifier, by the method S256."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def claims_of_token(token: str) -> dict[str, Any]:
    """Return the claims of a JSON Web Token; none of another token. Its signature is not checked."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def scopes(values: Iterable[object]) -> list[str]:
    """Return the scopes in texts and lists of scopes."""
    found: list[str] = []
    for value in values:
        each = value if isinstance(value, list) else [value]
        found += [scope for text in each if isinstance(text, str) for scope in text.split()]
    return found
