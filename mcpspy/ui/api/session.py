"""Recorded sessions of the public API: read, filter, follow, and convert to tables."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.analysis.export.base import RecordedSession
from mcpspy.core.protocol.message import Failure, Malformed, Message, Notification, Request, Result
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Frame, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change, Session
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.recording import catalog, lookup, tail
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.api.exchange import BaseExchange, BaseMessage, read_query
from mcpspy.ui.model.filter_items import ChangeItem, exchange_filter

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

SHOWN = 50
"""Maximum number of exchanges in the HTML of a session."""


class ReadMessage(BaseMessage):
    """One message of a session. Public as `mcpspy.Message`.

    >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
    >>> message = session.messages[0]
    >>> message
    <mcpspy.Message client request server/discover>
    >>> message.side, message.kind, message.json["jsonrpc"], type(message.data)
    ('client', 'request', '2.0', <class 'bytes'>)
    >>> message.exchange.status
    'error'
    """

    __slots__ = ("_change", "_message")

    def __init__(self, change: Change, message: Message) -> None:
        self._change = change
        self._message = message

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error` or `malformed`."""
        return self._item.kind

    @property
    def method(self) -> str:
        """The method; for a response, that of its request. Empty if unknown."""
        return self._item.method

    @property
    def subject(self) -> str:
        """Name or URI of the tool, resource or prompt; empty if there is none."""
        return self._item.subject

    @property
    def data(self) -> bytes:
        """The sender's own bytes, without the line end; secrets are redacted."""
        return self._message.data

    @property
    def frame(self) -> Frame:
        """The message on the wire. Not part of the public API."""
        return self._message.frame

    @property
    def exchange(self) -> ReadExchange | None:
        """The exchange that a request or a response belongs to; None for other messages."""
        return None if self._change.exchange is None else ReadExchange(self._change.exchange)

    @property
    def _item(self) -> ChangeItem:
        return ChangeItem(self._change)

    def __repr__(self) -> str:
        words = " ".join(filter(None, (self.side, self.kind, self.method, self.subject)))
        return sanitize(f"<mcpspy.Message {words}>")


class ReadExchange(BaseExchange):
    """A request and its outcome. Public as `mcpspy.Exchange`.

    >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
    >>> exchange = session.filter("tool:echo").exchanges[0]
    >>> exchange.method, exchange.tool, exchange.arguments, exchange.status
    ('tools/call', 'echo', {'message': 'Grüße, 世界 🎈'}, 'ok')
    >>> exchange.result["content"][0]["text"], exchange.error
    ('Echo: Grüße, 世界 🎈', None)
    >>> exchange.latency < 1
    True
    """

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def number(self) -> int:
        """Position among the requests of the session, from 0."""
        return self._exchange.number

    @property
    def _asked(self) -> Request:
        return self._exchange.request

    @property
    def _answered(self) -> Result | Failure | None:
        return self._exchange.answer

    @property
    def status(self) -> str:
        """The outcome, as in the filter language: `ok`, `error`, `tool error`, `pending`, `no answer` …

        The outcome of a call that a task answers is that of the task.
        """
        return self._exchange.state.value

    @property
    def latency(self) -> float | None:
        """Seconds from request to response, or to the end of its task; None without one."""
        return self._exchange.latency

    @property
    def request_data(self) -> bytes:
        """The bytes of the request."""
        return self._asked.data

    @property
    def response_data(self) -> bytes | None:
        """The bytes of the response; None without one."""
        return None if self._answered is None else self._answered.data

    def __repr__(self) -> str:
        words = " ".join(filter(None, (self.method, self.subject)))
        return sanitize(f"<mcpspy.Exchange {self.number} {words}: {self.status}>")


class ReadSession:
    """A recorded session. Public as `mcpspy.Session`; `mcpspy.read` returns it.

    The header is read at once, the messages on first use. A live session is read as it is at that time. Iterating
    yields the exchanges: requests of both sides with their outcomes. `len` is their number.

    >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
    >>> session.transport, session.revision
    ('stdio', '2025-11-25')
    >>> [exchange.subject for exchange in session if exchange.status == "tool error"]
    ['simulate-research-query', 'get-sum', 'no-such-tool']
    """

    def __init__(self, path: Path, query: Query | None = None) -> None:
        """Read the header. Raise UsageError or CannotStart."""
        self.path: Path = path
        """The file."""
        self._query = query
        self._recording = Recording(path)

    @property
    def id(self) -> str:
        """The id of the session: hexadecimal digits, unless another tool has written the file."""
        return self._recording.header.id

    @property
    def name(self) -> str:
        """The name of the session, by default that of its server."""
        return self._recording.header.name

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return self._recording.header.transport

    @property
    def started(self) -> str:
        """Time of the start: UTC, ISO 8601 with milliseconds and `Z`."""
        return self._recording.header.started

    @property
    def client(self) -> str | None:
        """Name and version of the client; None if it did not introduce itself."""
        return None if self._session.client is None else str(self._session.client)

    @property
    def server(self) -> str | None:
        """Name and version of the server; None if it did not introduce itself."""
        return None if self._session.server is None else str(self._session.server)

    @property
    def revision(self) -> str | None:
        """The protocol revision, such as `2025-11-25`; None if unknown."""
        return self._session.revision

    @property
    def filter_text(self) -> str | None:
        """The filter of `filter`; None for the whole session."""
        return None if self._query is None else self._query.text

    def filter(self, query: str) -> ReadSession:
        """Return the session with only the matching messages and exchanges (docs/filter.md).

        A request and its response are kept together. Raise UsageError for an invalid filter, and for a second one.

        >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
        >>> calls = session.filter("method:tools/call status:ok")
        >>> {exchange.method for exchange in calls}, len(calls) < len(session)
        ({'tools/call'}, True)
        """
        if self._query is not None:
            raise UsageError("this session is filtered already", "combine the filters: 'tool:x status:error'")
        return ReadSession(self.path, read_query(query))

    @cached_property
    def messages(self) -> list[ReadMessage]:
        """The messages in the order on the wire."""
        return [
            ReadMessage(change, change.what)
            for change in self.table.selected()
            if isinstance(change.what, Request | Notification | Result | Failure | Malformed)
        ]

    @cached_property
    def exchanges(self) -> list[ReadExchange]:
        """The requests of both sides with their outcomes, in the order of the requests."""
        return [ReadExchange(exchange) for exchange in self.table.exchanges()]

    @property
    def stderr(self) -> list[str]:
        """The lines that the server wrote on stderr, whatever the filter."""
        notes = (change.what for change in self._session.changes)
        return [note.text for note in notes if isinstance(note, Note) and note.kind == "stderr"]

    def __iter__(self) -> Iterator[ReadExchange]:
        """Iterate over the exchanges."""
        return iter(self.exchanges)

    def __len__(self) -> int:
        """Return the number of exchanges."""
        return len(self.exchanges)

    def __bool__(self) -> bool:
        """Return True: a session without exchanges is a session too."""
        return True

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row per exchange, with the columns of `mcpspy export --format csv`; missing values are None.

        >>> row = mcpspy.read("recordings/everything-sdk-auto.jsonl").to_rows()[0]
        >>> row["method"], row["status"], row["latency_ms"] < 1000
        ('server/discover', 'error', True)
        """
        from mcpspy.analysis.export.exchange_lines import flat_rows

        return list(flat_rows(self.table))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows of `to_rows` as a DataFrame. Raise McpspyError if pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise McpspyError("pandas is not installed", "pip install pandas, or use to_rows") from None
        from mcpspy.analysis.export.exchange_lines import COLUMNS

        return DataFrame(self.to_rows(), columns=list(COLUMNS))

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows of `to_rows` as an Arrow table. Raise McpspyError if pyarrow is not installed.

        >>> table = mcpspy.read("recordings/everything-sdk-auto.jsonl").to_arrow()
        >>> table.column("method")[0].as_py()
        'server/discover'
        """
        try:
            from pyarrow import Table
        except ImportError:
            raise McpspyError("pyarrow is not installed", "pip install pyarrow, or use to_rows") from None
        return Table.from_pylist(self.to_rows())

    def __repr__(self) -> str:
        return sanitize(f"<mcpspy.Session {self.name or self.path.name}: {len(self)} exchanges>")

    def _repr_html_(self) -> str:
        """Return a table of the first exchanges, for notebooks."""
        body = "".join(map(_html_row, self.exchanges[:SHOWN]))
        rest = len(self) - SHOWN
        more = f"<p>and {rest} more</p>" if rest > 0 else ""
        title = escape(
            sanitize(f"{self.name or self.path.name}: {self.client or '?'} → {self.server or '?'}")
        )
        heads = "".join(f"<th>{head}</th>" for head in ("t", "from", "method", "about", "status", "latency"))
        return f"<table><caption>{title}</caption><tr>{heads}</tr>{body}</table>{more}"

    @cached_property
    def table(self) -> RecordedSession:
        """The selected part of the session, as exporters take it. Not part of the public API."""
        session = self._session
        if self._query is not None:
            self._query.end = session.last_at
        keep = exchange_filter(self._query, session.changes)
        return RecordedSession(self._recording.header, self.name, session.changes, keep)

    @property
    def query(self) -> Query | None:
        """The parsed filter. Not part of the public API."""
        return self._query

    @property
    def last_at(self) -> float:
        """Time of the last entry: seconds since the start."""
        return self._session.last_at

    @cached_property
    def _session(self) -> Session:
        return self._recording.session()


def read(path_or_id: str | os.PathLike[str] = "last", folder: str | None = None) -> ReadSession:
    """Return a session by its file, `last`, its name, its id or the beginning of its id.

    `folder` is the sessions folder, by default the user's. Raise UsageError if the session is not found or the file is
    not a recording, and CannotStart if it cannot be read.

    >>> mcpspy.read("recordings/everything-sdk-auto.jsonl").server
    'mcp-servers/everything 2.0.0'
    >>> mcpspy.read("last", folder="recordings").path.parent.name
    'recordings'
    """
    return ReadSession(lookup.find(os.fspath(path_or_id), folder))


def sessions(folder: str | os.PathLike[str] | None = None) -> list[ReadSession]:
    """Return the sessions of a folder, the newest first; by default of the user's sessions folder.

    Raise CannotStart if the folder cannot be read.

    >>> len([each for each in mcpspy.sessions("recordings") if each.transport == "stdio"]) > 5
    True
    """
    found = catalog.sessions(None if folder is None else os.fspath(folder), entries=False)
    return [ReadSession(summary.path) for summary in found]


async def follow(
    path_or_id: str | os.PathLike[str] = "last", folder: str | None = None
) -> AsyncIterator[ReadMessage]:
    """Yield the messages of a session from its start, and new ones as they arrive, until the session ends.

    Arguments and errors are those of `mcpspy.read`.

    >>> import asyncio
    >>> async def methods(path):
    ...     return [message.method async for message in mcpspy.follow(path) if message.kind == "request"]
    >>> asyncio.run(methods("recordings/everything-sdk-auto.jsonl"))[:2]
    ['server/discover', 'initialize']
    """
    path = lookup.find(os.fspath(path_or_id), folder)
    session = Session(Recording(path).header)
    async for entry in tail.follow(path):
        for change in session.add(entry):
            if isinstance(change.what, Message):
                yield ReadMessage(change, change.what)


def _html_row(exchange: ReadExchange) -> str:
    latency = "" if exchange.latency is None else f"{exchange.latency * 1000:.1f} ms"
    cells = (f"{exchange.at:.3f}", exchange.side, exchange.method, exchange.subject, exchange.status, latency)
    return f"<tr>{''.join(f'<td>{escape(sanitize(cell))}</td>' for cell in cells)}</tr>"
