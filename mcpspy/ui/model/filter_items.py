"""Items of the filter language, with original text: a change, an exchange, and a row of the index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from mcpspy.analysis.rows import BAD, outcome, row
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.query.item import ExchangeItem, MessageItem, is_near_failure, reports_failure
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import FAILURE, KIND, NOTE, REQUEST, RESULT, RowKind
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import filter_status
from mcpspy.core.session.session import Change
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import LineReader, RecordingScan
from mcpspy.ui.model.session_model import SessionModel


class ChangeItem(MessageItem):
    __slots__ = ("_change", "_changes", "findings")

    def __init__(
        self, change: Change, findings: Collection[str] = (), changes: Sequence[Change] = ()
    ) -> None:
        """`changes` are those of the session, which decide whether a line of stderr is next to a failure."""
        super().__init__(change.what, None if change.exchange is None else change.exchange.request)
        self._change = change
        self._changes = changes
        self.findings = findings
        """Findings of `lint`: `ENV101 error` …"""

    @property
    def status(self) -> str:
        """Outcome of a response, or of a request without one: so a filter finds each failure once."""
        return self._change.filter_status

    @property
    def latency(self) -> float | None:
        exchange = self._change.exchange
        if exchange is None or not isinstance(self._entry, Result | Failure):
            return None
        return exchange.latency_at(self._entry.at)

    @property
    def has_issue(self) -> bool:
        return self._change.has_issue

    @property
    def is_failed_event(self) -> bool:
        if isinstance(self._entry, Note) and self._entry.kind == "stderr":
            return is_near_failure(self._change.number, len(self._changes), self._failed)
        return super().is_failed_event

    def _failed(self, number: int) -> bool | None:
        change = self._changes[number]
        if isinstance(change.what, Note):
            return reports_failure(change.what) or None
        return isinstance(change.what, Result | Failure) and change.is_error

    def text(self) -> bytes:
        """Return the original bytes, and the text of a refusal; for a note without text, the words of its row."""
        if isinstance(self._entry, Note) and not self._entry.text:
            shown, body = row(self._change), self._entry.fields.get("body")
            text = f"{shown.subject} {shown.status}"
            return (f"{text}\n{body}" if isinstance(body, str) else text).encode("utf-8", "replace")
        opened = self._change.opened
        if opened is not None and (words := words_of_failure(opened)):
            return super().text() + b"\n" + words
        return super().text()


def words_of_failure(exchange: Exchange) -> bytes:
    """Return the words of a request that got no response, as its row shows them; empty unless that is wrong."""
    words, tone = outcome(exchange)
    return sanitize(words).encode() if exchange.answer is None and tone == BAD else b""


def exchange_item(exchange: Exchange, kind: str = "exchange", *, has_words: bool = True) -> ExchangeItem:
    """Return the item of an exchange. Without `has_words`, its text is that of its messages alone."""
    request, answer = exchange.request, exchange.answer
    item = ExchangeItem(
        at=request.at,
        side=request.side,
        kind=kind,
        method=request.method,
        subject=request.subject or "",
        size=len(request.data),
        stream=request.frame.stream or "",
        has_issue=bool(exchange.flaws or request.flaws),
        data=request.data,
        id=request.id,
        status=filter_status(exchange.state, is_counted=exchange.is_counted),
        latency=exchange.latency,
        is_batch=request.index is not None,
    )
    if has_words:
        item.answer, item.answer_member = words_of_failure(exchange), ""
    if answer is not None:
        item.size += len(answer.data)
        item.has_issue |= bool(answer.flaws)
        item.answer, item.answer_member = answer.data, "result"
        if isinstance(answer, Failure):
            item.error_code, item.answer_member = answer.code, "error"
    return item


def exchange_matches(query: Query, exchange: Exchange) -> bool:
    """Return whether a filter finds an exchange, its request or its response."""
    matches, answer = query.matches, exchange.answer
    return (
        matches(exchange_item(exchange))
        or matches(exchange_item(exchange, "request"))
        or (answer is not None and matches(ChangeItem(Change(-1, answer, exchange))))
    )


def exchange_filter(query: Query | None, changes: Sequence[Change] = ()) -> Callable[[Change], bool]:
    """Return a filter for the changes of a complete session: a request and its response are kept together."""
    if query is None:
        return lambda change: True
    matches = query.matches
    exchanges: dict[int, bool] = {}

    def keep(change: Change) -> bool:
        what, exchange = change.what, change.exchange
        if exchange is None or not (isinstance(what, Request) or what is exchange.answer):
            return matches(ChangeItem(change, changes=changes))
        number = exchange.number
        if number not in exchanges:
            exchanges[number] = exchange_matches(query, exchange)
        return exchanges[number]

    return keep


_KINDS = {
    RowKind.REQUEST: "request",
    RowKind.NOTIFICATION: "notification",
    RowKind.RESULT: "result",
    RowKind.FAILURE: "error",
    RowKind.MALFORMED: "malformed",
    RowKind.DAMAGED: "damaged",
}

_ANSWERS = (RESULT, FAILURE)
_HAVE_PARAMS = (RowKind.REQUEST, RowKind.NOTIFICATION)
_HOLDS = {"result": RowKind.RESULT, "error": RowKind.FAILURE}


class RowItem:
    """The row `row` of the model, read from the columns; only `text` reads the file. Callers set `row`."""

    __slots__ = ("_index", "_log", "exchanges", "row")

    def __init__(self, log: SessionModel, *, exchanges: bool) -> None:
        self._log = log
        self._index = log.index
        self.exchanges = exchanges
        self.row = 0

    @property
    def at(self) -> float:
        return self._index.at[self.row]

    @property
    def side(self) -> str:
        return self._index.side(self.row)

    @property
    def kind(self) -> str:
        kind = self._index.kind(self.row)
        return self._index.texts[self._index.method[self.row]] if kind is RowKind.NOTE else _KINDS[kind]

    @property
    def method(self) -> str:
        index, row = self._index, self.row
        return "" if index.what[row] & KIND == NOTE else index.texts[index.method[row]]

    @property
    def subject(self) -> str:
        index = self._index
        return index.texts[index.subject[self.row]]

    @property
    def id(self) -> str:
        index, row = self._index, self.row
        return index.id(row) or ("null" if index.what[row] & KIND in _ANSWERS else "")

    @property
    def status(self) -> str:
        """State of a request; in wire order, only the response has it."""
        return self._index.filter_status(self.row, exchanges=self.exchanges)

    @property
    def latency(self) -> float | None:
        index, row = self._index, self.row
        return index.latency(row) if self.exchanges or index.what[row] & KIND != REQUEST else None

    @property
    def size(self) -> int:
        index, row = self._index, self.row
        size = index.size[row]
        if self.exchanges and index.what[row] & KIND == REQUEST and (answer := index.pair(row)) is not None:
            return size + index.size[answer]
        return size

    @property
    def stream(self) -> str:
        return self._index.texts[self._index.stream[self.row]]

    @property
    def has_issue(self) -> bool:
        index, row = self._index, self.row
        if row in index.injected:
            return False
        if row in index.flaws:
            return True
        answer = index.pair(row) if self.exchanges and index.kind(row) is RowKind.REQUEST else None
        return answer is not None and answer in index.flaws

    @property
    def is_failed_event(self) -> bool:
        index, row = self._index, self.row
        if index.what[row] & KIND != NOTE:
            return False
        if index.texts[index.method[row]] == "stderr":
            return is_near_failure(row, len(index), self._failed)
        return bool(self._failed(row))

    def _failed(self, row: int) -> bool | None:
        index = self._index
        kind = index.what[row] & KIND
        if kind != NOTE:
            return kind in _ANSWERS and index.has_failed(row)
        if index.texts[index.method[row]] == "exit":
            note = self._log.message(row)
            return (isinstance(note, Note) and reports_failure(note)) or None
        return index.has_failed(row) or None

    @property
    def is_batch(self) -> bool:
        return self._index.is_in_batch(self.row)

    @property
    def error_code(self) -> int | None:
        index, row = self._index, self.row
        if self.exchanges and index.kind(row) is RowKind.REQUEST:
            row = index.pair(row) or row
        return index.codes.get(row)

    @property
    def findings(self) -> list[str]:
        found = self._log.findings.of_both(self._index, self.row, exchanges=self.exchanges)
        return [f"{each.code} {each.severity}" for each in found]

    def text(self) -> bytes:
        index, log, row = self._index, self._log, self.row
        kind = index.kind(row)
        if kind is RowKind.NOTE:
            change = log.get(row)
            return b"" if change is None else ChangeItem(change).text()
        text = log.data(row)
        if kind is RowKind.REQUEST and index.pair(row) is None and (change := log.get(row)) is not None:
            return ChangeItem(change).text()
        if self.exchanges and kind is RowKind.REQUEST and (answer := index.pair(row)) is not None:
            return text + b"\n" + log.data(answer)
        return text

    def message(self, member: str) -> bytes:
        index, row = self._index, self.row
        kind = index.kind(row)
        if member == "params":
            at = index.pair(row) if kind in _ANSWERS else row if kind in _HAVE_PARAMS else None
        else:
            at = index.pair(row) if self.exchanges and kind is RowKind.REQUEST else row
            at = at if at is not None and index.kind(at) is _HOLDS[member] else None
        return b"" if at is None else self._log.data(at)


class LintRowFilter:
    """Selects lint findings by a filter. It needs outcomes of requests, so it reads the recording first."""

    def __init__(self, path: Path, query: Query, show: Callable[[int, int], None]) -> None:
        """Read the recording; `show` is called with the bytes read and the total."""
        recording, lines = Recording(path), LineReader()
        is_live = recording.state is RecordingState.LIVE
        log = SessionModel(recording.header, lines.read)
        scan, part = RecordingScan(path), None
        for block in scan:
            if block.path != part:
                part = block.path
                log.begin_part(lines.begin_part(part))
            log.add_lines(block.lines, block.offset)
            show(scan.read, scan.size)
        if not is_live:
            log.end()
        query.end = log.index.last_at
        self._query = query
        self._item = RowItem(log, exchanges=False)
        self._count = len(log)
        self._lines = lines

    def has(self, number: int) -> bool:
        self._item.row = number
        return number < self._count and self._query.matches(self._item)

    def close(self) -> None:
        self._lines.close()
