"""Negotiation of extensions: which side declared each, and which methods were used without that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mcpspy.core.protocol.extensions import EXTENSION_METHODS, EXTENSIONS, declared
from mcpspy.core.protocol.extensions.extension import FINAL


class NegotiatedExtension(NamedTuple):
    """An extension that a session names or uses."""

    id: str
    title: str
    """Its id if the extension is unknown."""
    state: str
    """`final`, `draft` or `unknown`."""
    by_client: bool
    """The client declared it."""
    by_server: bool
    """The server declared it."""
    used: tuple[str, ...]
    """Its methods in the session."""

    @property
    def status(self) -> str:
        """The declarations and the use in words."""
        sides = [
            side
            for side, is_declared in (("client", self.by_client), ("server", self.by_server))
            if is_declared
        ]
        text = f"declared by {' and '.join(sides)}" if sides else "declared by neither side"
        needs_client = (known := EXTENSIONS.get(self.id)) is not None and known.client_declares
        is_undeclared = not self.by_server or (needs_client and not self.by_client)
        return f"{text}, {'but ' if self.used and is_undeclared else ''}used" if self.used else text


def negotiated(
    client: Mapping[str, Any] | None, server: Mapping[str, Any] | None, methods: Iterable[str]
) -> list[NegotiatedExtension]:
    """Return the extensions of a session, those of the server first, from the capabilities and the methods in it.

    A method that the core has in another revision, such as `tasks/get`, or one of a draft, does not show by itself that
    its extension is used.
    """
    by_client, by_server = declared(client), declared(server)
    used: dict[str, list[str]] = {}
    for method in methods:
        if method in EXTENSION_METHODS:
            used.setdefault(EXTENSION_METHODS[method][0].id, []).append(method)
    distinctive = [
        name
        for name, found in used.items()
        if EXTENSIONS[name].state == FINAL and any(not EXTENSION_METHODS[one][1].since for one in found)
    ]
    found = []
    for name in dict.fromkeys([*by_server, *by_client, *distinctive]):
        known = EXTENSIONS.get(name)
        title, state = (known.title, known.state) if known is not None else (name, "unknown")
        methods_used = tuple(sorted(used.get(name, ())))
        found.append(
            NegotiatedExtension(name, title, state, name in by_client, name in by_server, methods_used)
        )
    return found
