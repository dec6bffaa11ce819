"""The rows of a session in the tables of the lake, with the values of the other exports."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import orjson

from mcpspy.analysis import rows
from mcpspy.analysis.context import compact, definition, size_of
from mcpspy.analysis.export.base import WallClock, dumps, exchange_flaws
from mcpspy.analysis.export.columns import SessionColumns, milliseconds
from mcpspy.analysis.export.otlp_spans import trace_context
from mcpspy.analysis.lake.schema import DETAILS, UNKNOWN, Row, StoredRecording
from mcpspy.analysis.lint import Finding
from mcpspy.core.jsontools import canonical_bytes
from mcpspy.core.protocol.listing import ListingPages, joined
from mcpspy.core.protocol.message import Failure, Message, Notification, Request, Result
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import error_of
from mcpspy.core.session.session import Session


class SessionTables:
    """The rows of a session that has ended."""

    def __init__(self, session: Session, findings: Sequence[Finding], stored: StoredRecording) -> None:
        assert session.header is not None
        self._session, self._findings, self._stored = session, findings, stored
        self._header = session.header
        self._clock = WallClock(self._header.started)
        columns = SessionColumns(self._header)
        for change in session.changes:
            columns.add(change)
        self._client = cache(lambda stream: columns.peers(stream)["client"])
        self._clients = [*columns.clients]
        self._counts: dict[str, int] = {}

    @property
    def day(self) -> str:
        return self._clock.iso(0)[:10]

    @property
    def server(self) -> str:
        server = self._session.server
        return (server.name if server is not None else self._header.name) or UNKNOWN

    @property
    def count(self) -> int:
        """Number of rows of the tables that were read."""
        return sum(self._counts.values())

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table, in the order of time. `sessions` counts those of the tables before it."""
        found = getattr(self, f"_{table}_rows")()
        count = 0
        for row in found:
            count += 1
            yield (self._stored.key, *map(_storable, row))
        self._counts[table] = count

    def _time(self, at: float) -> int:
        return self._clock.nanoseconds(at) // 1000

    def _exchanges_rows(self) -> Iterator[Row]:
        for change in self._session.changes:
            exchange = change.opened
            if exchange is None:
                continue
            request = exchange.request
            answer, stream, context = exchange.answer, request.frame.stream, trace_context(request)
            earlier = exchange.continues
            yield (
                *(exchange.number, change.number, self._time(request.at), stream, request.side),
                *(self._client(stream), request.method, request.subject, request.id, str(exchange.state)),
                *_error(exchange),
                *(milliseconds(exchange.latency), milliseconds(exchange.held)),
                *(len(request.data), None if answer is None else len(answer.data), len(exchange.progress)),
                *(earlier and earlier.number, context and context.trace, exchange.is_injected),
                *(exchange_flaws(exchange), exchange.effects),
                *_verbatim(request, answer),
                _is_compact(request) and (answer is None or _is_compact(answer)),
                exchange.poll_of and exchange.poll_of.number,
            )

    def _messages_rows(self) -> Iterator[Row]:
        for change in self._session.changes:
            what, exchange = change.what, change.exchange
            answered = None if exchange is None else exchange.request
            if not isinstance(what, Message) or (
                exchange is not None and what in (answered, exchange.answer)
            ):
                continue
            about = what if isinstance(what, Request | Notification) else answered
            yield (
                *(change.number, self._time(what.at), what.frame.stream, what.side, what.kind),
                *(about and about.method, about and about.subject, getattr(what, "id", None)),
                *(exchange and exchange.number, len(what.data), [*what.flaws, *filter(None, [change.flaw])]),
                *_verbatim(what),
                _is_compact(what),
            )

    def _tools_rows(self) -> Iterator[Row]:
        """Yield a client's new and changed definitions, and a row without a definition for one that is gone."""
        digests: dict[str | None, dict[str, str]] = defaultdict(dict)
        pages = ListingPages[list[str]]()
        for exchange in self._session.exchanges:
            request, answer = exchange.request, exchange.answer
            result = answer.result if request.method == "tools/list" and isinstance(answer, Result) else None
            if answer is None or not isinstance(result, dict) or not isinstance(result.get("tools"), list):
                continue
            client = self._client(request.frame.stream)
            place = (exchange.number, self._time(answer.at), client)
            known = digests[client]
            names: list[str] = []
            for item in result["tools"]:
                if not isinstance(item, dict) or not isinstance(name := item.get("name"), str):
                    continue
                names.append(name)
                digest, text = hashlib.sha256(canonical_bytes(item)).hexdigest(), compact(item)
                if known.get(name) != digest:
                    known[name] = digest
                    size = size_of(definition(item))
                    yield (*place, name, digest, text, size.bytes, size.tokens)
            if (listing := pages.add_result(request, result, names)).is_whole:
                for name in sorted(known.keys() - joined(listing)):
                    del known[name]
                    yield (*place, name, None, None, None, None)

    def _findings_rows(self) -> Iterator[Row]:
        changes = self._session.changes
        for found in self._findings:
            exchange = changes[found.number].exchange if found.number < len(changes) else None
            yield (
                *(found.number, exchange and exchange.number, self._time(found.at), *found.place),
                *(
                    found.code,
                    str(found.severity),
                    found.side or None,
                    found.about,
                    found.message,
                    found.excerpt,
                ),
            )

    def _notes_rows(self) -> Iterator[Row]:
        for change in self._session.changes:
            what = change.what
            if isinstance(what, Damaged):
                yield (change.number, None, "damaged", what.why, None)
            elif isinstance(what, Note):
                row = rows.row(change)
                text = "  ".join(filter(None, (row.subject, row.status)))
                yield (change.number, self._time(what.at), what.kind, text, dumps(what.fields))

    def _sessions_rows(self) -> Iterator[Row]:
        session, header, stored = self._session, self._header, self._stored
        fields = session.exit.fields if session.exit is not None else {}
        counts = session.counts
        code, signal = fields.get("code"), fields.get("signal")
        client = self._clients[0] if self._clients else Peer("", "")
        yield (
            *(header.id, stored.digest, stored.uri, stored.size, header.name, header.transport),
            *(rows.server(header), client.name or None, client.version or None),
            *(session.server and session.server.version, session.agreed_revision),
            *(self._time(0), self._time(session.last_at), stored.state),
            *(code if isinstance(code, int) else None, signal if isinstance(signal, str) else None),
            stored.is_redacted,
            *(counts.messages, counts.errors, counts.unanswered, *map(self._counts.get, DETAILS)),
        )


def _storable(value: Any) -> Any:
    """Return a value that Parquet can store: text without lone surrogates, integers of 64 bits."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [*map(_storable, value)]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return None
    return value


def _error(exchange: Exchange) -> tuple[int | None, str | None]:
    """Return the code and the text of the error of an exchange."""
    answer = error_of(exchange)
    if answer is None:
        return None, None
    return answer.code if isinstance(answer, Failure) else None, answer.text[: rows.REASON]


def _is_compact(message: Message) -> bool:
    """Return whether every JSON parser reads the same members and values in a message.

    orjson writes it in the same way: without duplicate keys, escapes of plain characters, and unusual numbers.
    """
    try:
        return not message.flaws and orjson.dumps(orjson.loads(message.data)) == message.data
    except (ValueError, TypeError):
        return False


def _verbatim(*messages: Message | None) -> tuple[str | bytes | None, ...]:
    """Return the messages as text, then as bytes: each message is in one of the two columns."""
    texts: list[str | None] = []
    raws: list[bytes | None] = []
    for message in messages:
        try:
            texts.append(None if message is None else message.data.decode())
            raws.append(None)
        except UnicodeDecodeError:
            texts.append(None)
            raws.append(None if message is None else message.data)
    return (*texts, *raws)
