"""A row of the index as a filter sees it.

Owns the same answers as `ui.item`, from the columns; only `text` reads the
file. One object serves all rows: whoever filters sets `row`.
"""

from __future__ import annotations

from mcpspy.core.session.columns import FAILURE, NOTE, REQUEST, RESULT, RowKind
from mcpspy.ui.item import ChangeItem
from mcpspy.ui.tui.session.log import Log

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
    """The row of a log that `row` says: a `core.query.parser.FilterItem`, as `Item` describes it where nothing is said here."""

    __slots__ = ("_index", "_log", "exchanges", "row")

    def __init__(self, log: Log, *, exchanges: bool) -> None:
        self._log = log
        self._index = log.index
        self.exchanges = exchanges
        """Whether a request speaks for its answer too."""
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
        return "" if index.what[row] & 7 == NOTE else index.texts[index.method[row]]

    @property
    def subject(self) -> str:
        index = self._index
        return index.texts[index.subject[self.row]]

    @property
    def id(self) -> str:
        return self._index.id(self.row) or ""

    @property
    def status(self) -> str:
        """How a request went; in the order of the wire, only its answer says so."""
        index, row = self._index, self.row
        kind = index.what[row] & 7
        if kind == REQUEST:
            return index.status(row) if self.exchanges or index.pair(row) is None else ""
        return index.status(row) if kind in _ANSWERS else ""

    @property
    def latency(self) -> float | None:
        """Seconds from a request to its answer."""
        index, row = self._index, self.row
        return index.latency(row) if self.exchanges or index.what[row] & 7 != REQUEST else None

    @property
    def size(self) -> int:
        """Bytes of a message; of an exchange, of both."""
        index, row = self._index, self.row
        size = index.size[row]
        if self.exchanges and index.what[row] & 7 == REQUEST and (answer := index.pair(row)) is not None:
            return size + index.size[answer]
        return size

    @property
    def stream(self) -> str:
        return self._index.texts[self._index.stream[self.row]]

    @property
    def odd(self) -> bool:
        """Whether it breaks a rule; of an exchange, whether either message does."""
        index, row = self._index, self.row
        if row in index.flaws:
            return True
        answer = index.pair(row) if self.exchanges and index.kind(row) is RowKind.REQUEST else None
        return answer is not None and answer in index.flaws

    @property
    def error_code(self) -> int | None:
        index, row = self._index, self.row
        if self.exchanges and index.kind(row) is RowKind.REQUEST:
            row = index.pair(row) or row
        return index.codes.get(row)

    @property
    def findings(self) -> list[str]:
        """What `lint` says of it; of an exchange, of both messages."""
        found = self._log.findings.of_both(self._index, self.row, exchanges=self.exchanges)
        return [f"{each.code} {each.severity}" for each in found]

    def text(self) -> bytes:
        """Return the bytes of its message; of an exchange, of both."""
        index, log, row = self._index, self._log, self.row
        kind = index.kind(row)
        if kind is RowKind.NOTE:
            change = log.get(row)
            return b"" if change is None else ChangeItem(change).text()
        text = log.data(row)
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
