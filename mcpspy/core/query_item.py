"""What a filter may ask, and what its parts are.

Owns the shape of an item, of whatever a row is made of, and of the end that a
time may be counted from. Refuses to know the language.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol


class Item(Protocol):
    """What a filter asks of one row: a message, a note, or a whole exchange."""

    @property
    def at(self) -> float:
        """Seconds since the start."""

    @property
    def side(self) -> str:
        """Who sent it, of an exchange who asked: `client` or `server`; empty if nobody did."""

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error`, `malformed`, `exchange`; of a note, the note's."""

    @property
    def method(self) -> str:
        """Of an answer, that of its request; empty if it has none."""

    @property
    def subject(self) -> str:
        """Which tool, resource, prompt …; empty if none."""

    @property
    def id(self) -> str:
        """The id's JSON text; empty if it has none."""

    @property
    def status(self) -> str:
        """A `State`, or empty."""

    @property
    def latency(self) -> float | None:
        """Seconds from request to answer."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def stream(self) -> str:
        """HTTP: the session it belongs to; else empty."""

    @property
    def odd(self) -> bool:
        """Whether it has a flaw."""

    @property
    def error_code(self) -> int | None:
        """The code of a JSON-RPC error."""

    def text(self) -> bytes:
        """Return its own bytes; of an exchange, the request's and the answer's."""

    def message(self, member: str) -> bytes:
        """Return the bytes of the message whose `params`, `result` or `error` is meant; empty if there is none.

        Of an answer, the request is the one with `params`.
        """


class LintedItem(Item, Protocol):
    """One that knows what `lint` says of it."""

    @property
    def findings(self) -> Collection[str]:
        """Codes and severities, as in `ENV101 error`; of an exchange, of both messages."""


Test = Callable[[Item], bool]


class Part(NamedTuple):
    """A test, and what it costs."""

    test: Test
    reads: bool
    """Whether it asks for text."""


class End:
    """The end of a session, which a filter may count back from."""

    __slots__ = ("at", "is_asked")

    def __init__(self) -> None:
        self.at: float | None = None
        """Seconds since the start; None: whatever is asked about is the latest there is."""
        self.is_asked = False
        """Whether a filter counts back from it."""
