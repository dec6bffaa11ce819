"""Input and helpers of every exporter: sessions, wall-clock times and strict JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

import orjson
from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.core.protocol.message import Message
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change


class UserViews(Protocol):
    """The user's columns and views (docs/scripting.md). All texts are sanitized, and have a style or None."""

    @property
    def headings(self) -> Sequence[str]: ...

    def cells(self, exchange: Exchange) -> list[tuple[str, str | None]]:
        """Return a cell for each heading."""

    def views(self, data: bytes) -> list[dict[str, Any]]:
        """Return the views of a message: `pointer`, `label`, and `lines` of texts with their styles."""


class RecordedSession(NamedTuple):
    header: Header
    name: str
    """Display name; a peer's text, not sanitized."""
    changes: Iterable[Change]
    """All changes in the order of the file; each exchange is in its final state."""
    keep: Callable[[Change], bool]
    """Returns whether a change is selected; the same for a request and its response."""
    is_live: bool = False
    """True if it is still being recorded."""
    user_views: UserViews | None = None
    """For formats that show them."""

    def selected(self) -> Iterator[Change]:
        return filter(self.keep, self.changes)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the selected exchanges, in the order of their requests."""
        for change in self.changes:
            exchange = change.exchange  # A request is sent again after a redirect: one exchange.
            if exchange is not None and change.what is exchange.request and self.keep(change):
                yield exchange


class ExchangeTable(Protocol):
    """A session for formats with one line per exchange: `RecordedSession`, `streamed.StreamedSession`."""

    @property
    def header(self) -> Header: ...

    @property
    def changes(self) -> Iterable[Change]:
        """All changes in the order of the file."""

    def exchanges(self) -> Iterator[Exchange]: ...


CARRIERS = ("http", "http-end", "sse", "part")
"""Kinds of notes that only describe how messages were transported."""


def http_number(what: Message | Note | Damaged) -> int | None:
    """Return the number of the HTTP exchange that a message or note belongs to."""
    number = (
        None
        if isinstance(what, Damaged)
        else what.fields.get("http")
        if isinstance(what, Note)
        else what.frame.http
    )
    return number if isinstance(number, int) else None


def exchange_flaws(exchange: Exchange) -> list[str]:
    answer = exchange.answer
    flaws = (*exchange.flaws, *exchange.request.flaws, *(() if answer is None else answer.flaws))
    return list(dict.fromkeys(flaws))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LONGEST = 1e12
"""Seconds; a recording may have any number as a time."""


class WallClock:
    """Convert seconds since the start to UTC."""

    def __init__(self, started: str) -> None:
        """Take a header's `started`; 1970-01-01 if it is not a valid time in UTC."""
        try:
            start = datetime.fromisoformat(started)
        except ValueError:
            start = _EPOCH
        self._start = (start - _EPOCH) // timedelta(microseconds=1) if start.tzinfo is UTC else 0

    def nanoseconds(self, at: float) -> int:
        """Return nanoseconds since 1970, UTC; never negative."""
        return max(self._start + round(min(at, _LONGEST) * 1e6), 0) * 1000

    def iso(self, at: float) -> str:
        """Return a time as `2026-11-21T08:13:03.745123Z`."""
        try:
            time = _EPOCH + timedelta(microseconds=self.nanoseconds(at) // 1000)
        except OverflowError:  # After the year 9999.
            time = datetime.max
        return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def dumps(value: Any) -> str:
    """Return one line of JSON; fragments (orjson) are spliced in, integers beyond 64 bits become text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_strict(value)).decode()


def fragment(data: bytes) -> orjson.Fragment | None:
    """Return JSON that can be spliced into a line; None if it is not strict JSON."""
    try:
        orjson.loads(data)
        # JSON may contain line breaks between members, but they would end the line here.
        return orjson.Fragment(lay_out(data, indent=-1) if b"\n" in data or b"\r" in data else data)
    except (ValueError, DecodeError, RecursionError):
        return None


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return value
