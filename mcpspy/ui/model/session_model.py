"""A session for the screens: rows from the index, messages read from the file on demand.

Caches the last few messages, and stores one line per lint finding; for a rule with very many findings it
stores only the rows.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import orjson
from msgspec import Raw

from mcpspy.core.protocol.message import (
    AnyMessage,
    Body,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
)
from mcpspy.core.protocol.plain_line import PAYLOAD
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
from mcpspy.core.session.columns import KIND, NOTIFICATION, Columns, RowKind
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.http_exchanges import RecordedHttpExchange, http_exchange
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Change
from mcpspy.io.recording.tail import RESTARTED

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding

LARGE = 1 << 16
"""Bytes above which a row is shown from the index alone, without its message."""

KEPT = 512

PORTION = 512
"""Rows processed between two checks of the clock."""

MOST = 1000
"""Maximum findings per rule with their own message; the others get the rule's summary."""

LONGEST = 300

GONE = "the message is no longer in the file"

Read = Callable[[int, int, int], bytes]
"""Part, offset and length → bytes."""


Load = Callable[[int], AnyMessage | Note | Damaged]
"""Row → its message."""

Adopt = Callable[[Entry, int], Entry]
"""Entry and number of its file → entry of the merged session."""


class RowFinding(NamedTuple):
    code: str
    severity: str
    message: str


class Findings:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.count = 0
        self._found: dict[int, tuple[RowFinding, ...]] = {}
        self._of_rule: Counter[str] = Counter()
        self._alike: dict[str, tuple[RowFinding, ...]] = {}

    def of(self, row: int | None) -> tuple[RowFinding, ...]:
        return self._found.get(row, ()) if row is not None else ()

    def of_both(self, index: Columns, row: int, *, exchanges: bool) -> tuple[RowFinding, ...]:
        """Return the findings of a row, and of its response if both are one row."""
        answer = index.pair(row) if exchanges and index.kind(row) is RowKind.REQUEST else None
        return self.of(row) + self.of(answer)

    def add(self, row: int, finding: Finding) -> None:
        self.count += 1
        self._of_rule[finding.code] += 1
        if self._of_rule[finding.code] > MOST:
            found = self._alike.get(finding.code) or self._summary(finding)
        else:
            found = (RowFinding(finding.code, str(finding.severity), finding.message[:LONGEST]),)
        before = self._found.get(row)
        if before is None:
            insort(self.rows, row)
        elif found[0] in before:
            return
        self._found[row] = found if before is None else before + found

    def _summary(self, finding: Finding) -> tuple[RowFinding, ...]:
        from mcpspy.ui.report.lint_scan import RULES_BY_CODE

        summary = RULES_BY_CODE[finding.code].summary
        found = self._alike[finding.code] = (RowFinding(finding.code, str(finding.severity), summary),)
        return found


class SessionModel:
    """The rows of a session, in the order of the wire."""

    def __init__(
        self, header: Header, read: Read, adopt: Adopt | None = None, sessions: Sequence[str] = ()
    ) -> None:
        """`adopt` is given for merged sessions: the stream of each row begins with the name of its session."""
        self.is_merged = adopt is not None
        self._adopt = adopt or (lambda entry, _: entry)
        self.sessions = list(sessions)
        """The names of merged sessions, in order of their start."""
        self.read = read
        self._kept = lru_cache(KEPT)(self._small)
        self.generation = 0
        self.restarted = ""
        """The message of the last restart."""
        self.header = header
        self.index = Index(header, len(sessions) or 1)
        self.findings = Findings()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def is_over(self) -> bool:
        return self.index.is_over

    def begin_part(self, number: int | None = None) -> None:
        """Assign the following rows to a part; None is the next."""
        self.index.begin_part(number)

    def begin_again(self, header: Header) -> None:
        self.generation += 1
        self.restarted = RESTARTED
        self.header = header
        self.index = Index(header, len(self.sessions) or 1)
        self.findings = Findings()
        self._kept.cache_clear()

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Add consecutive lines, the first at `offset`; return the offset of the next one."""
        return self.index.add_lines(lines, offset)

    def add(self, entry: Entry, offset: int, length: int) -> None:
        self.index.add(entry, offset, length)

    def end(self) -> None:
        self.index.end()

    def get(self, row: int) -> Change | None:
        """Return a row with its message and outcome; None if it no longer exists."""
        return self._change(row, self._whole) if 0 <= row < len(self) else None

    def shown(self, row: int) -> Change:
        """Return a row as a list shows it: large messages only from the index."""
        return self._change(row, self._light)

    def message(self, row: int) -> AnyMessage | Note | Damaged:
        return self._whole(row)

    def data(self, row: int) -> bytes:
        """Return the bytes of a message, without parsing its line if they are at its end."""
        index = self.index
        where, size = index.where(row), index.size[row]
        line = self.read(where.part, where.offset, where.length)
        begin = len(line) - 1 - size
        if (
            len(line) == where.length
            and line[max(begin - len(PAYLOAD), 0) : begin] == PAYLOAD
            and line.endswith(b"}")
        ):
            return line[begin:-1]
        what = self._whole(row)
        return b"" if isinstance(what, Note) else what.data

    def names(self) -> set[tuple[str, str]]:
        """Return the methods of all messages, each with its subjects; a subject is empty if there is none."""
        index = self.index
        pairs = set(zip(index.method[: len(index)], index.subject[: len(index)], strict=True))
        return {(index.texts[method], index.texts[subject]) for method, subject in pairs}

    def other(self, row: int) -> int | None:
        """Return the row of the response to a request, else the row of the request."""
        return self.index.pair(row) if 0 <= row < len(self) else None

    def note(self, row: int) -> str:
        """Return the kind of a note; empty if the row is none."""
        index = self.index
        return index.texts[index.method[row]] if index.kind(row) is RowKind.NOTE else ""

    def is_request(self, row: int) -> bool:
        """Return whether a row is a request, also a repeated one."""
        return self.index.kind(row) is RowKind.REQUEST

    def is_notification(self, row: int) -> bool:
        return self.index.kind(row) is RowKind.NOTIFICATION

    def is_response(self, row: int) -> bool:
        return self.index.kind(row) in (RowKind.RESULT, RowKind.FAILURE)

    def is_damaged(self, row: int) -> bool:
        """Return whether a row is a line that cannot be read as an entry."""
        return self.index.kind(row) is RowKind.DAMAGED

    def is_text(self, row: int) -> bool:
        """Return whether a row is a text in place of a message: a note, or what could not be read."""
        return self.index.kind(row) in (RowKind.MALFORMED, RowKind.NOTE, RowKind.DAMAGED)

    def notifications_of(self, request: int, begin: int, end: int) -> Iterator[int]:
        """Yield the notifications about a request among the rows from `begin` to `end`: progress, cancellation."""
        what, pair = self.index.what, self.index.pair
        return (row for row in range(begin, end) if what[row] & KIND == NOTIFICATION and pair(row) == request)

    def _change(self, row: int, load: Load) -> Change:
        index = self.index
        what = load(row)
        request_row = index.request(row)
        flaws = _flaws(index.flaws.get(row), what)
        http = self._http(row, what, load)
        if request_row is None:
            is_kept = row in index.injected and isinstance(what, Result | Failure)
            return Change(row, what, None, "; ".join(flaws) or None, index.effects.get(row), http, is_kept)
        request = what if request_row == row else load(request_row)
        if not isinstance(request, Request):
            return Change(row, what, None, GONE)
        exchange = Exchange(request_row, request)
        exchange.state = index.state(row) or State.PENDING
        exchange.held = index.held_seconds.get(request_row) or 0.0
        exchange.flaws = _flaws(index.flaws.get(request_row), request)
        exchange.why, exchange.redirect = index.why.get(request_row, ""), index.redirects.get(request_row, "")
        exchange.is_injected = request_row in index.injected
        exchange.is_task = request_row in index.tasks
        exchange.ended_at = index.ended.get(request_row)
        final_row = index.finals.get(request_row)
        if final_row is not None:
            final = what if final_row == row else load(final_row)
            exchange.final = final if isinstance(final, Result | Failure) else None
        call_row = index.polls.get(request_row)
        if call_row is not None:
            call = self._change(call_row, load).exchange
            if call is not None and index.shows.get(row) == call_row and isinstance(what, Result | Failure):
                call.final = what
            exchange.poll_of = call
        answer_row = index.pair(request_row)
        if answer_row is not None:
            answer = what if answer_row == row else load(answer_row)
            exchange.answer = answer if isinstance(answer, Result | Failure) else None
        progress_row = index.progress.get(request_row)
        if progress_row is not None and isinstance(report := load(progress_row), Notification):
            exchange.progress = [report]
        rows = (request_row,) if answer_row is None else (request_row, answer_row)
        exchange.effects = [index.effects[row] for row in rows if row in index.effects]
        return Change(row, what, exchange, "; ".join(flaws) or None, index.effects.get(row), http)

    def _http(self, row: int, note: AnyMessage | Note | Damaged, load: Load) -> RecordedHttpExchange | None:
        """Return the HTTP exchange that a note begins or ends, or whose allowed refusal has an error as its text."""
        if not isinstance(note, Note):
            is_text = (
                isinstance(note, Failure) and row not in self.index.outcomes and not self.index.pair(row)
            )
            head_row = self.index.heads.get(self.index.http(row) or 0) if is_text else None
            head = load(head_row) if head_row is not None else None
            return http_exchange(head) if isinstance(head, Note) else None
        number = note.fields.get("http")
        if note.kind not in ("http", "http-end") or not isinstance(number, int):
            return None
        if (get := self.index.http_exchanges.gets.get(number)) is not None:
            return get
        head_row = self.index.heads.get(number)
        head = note if note.kind == "http" else load(head_row) if head_row is not None else None
        if not isinstance(head, Note):
            return None
        exchange = http_exchange(head, None if note.kind == "http" else note)
        if exchange is not None and head_row is not None:
            exchange.words = self.index.why.get(head_row, exchange.words)
        return exchange

    def _light(self, row: int) -> AnyMessage | Note | Damaged:
        index = self.index
        if index.is_listable(row) or (
            index.size[row] > LARGE and index.kind(row) in (RowKind.REQUEST, RowKind.RESULT)
        ):
            return self._stand_in(row)
        return self._whole(row)

    def _whole(self, row: int) -> AnyMessage | Note | Damaged:
        where = self.index.where(row)
        return self._kept(row) if where.length <= LARGE else self._load(row)

    def _small(self, row: int) -> AnyMessage | Note | Damaged:
        return self._load(row)

    def _load(self, row: int) -> AnyMessage | Note | Damaged:
        where = self.index.where(row)
        line = self.read(where.part, where.offset, where.length)
        kind = self.index.kind(row)
        if len(line) < where.length:
            return Damaged(line, GONE)
        if kind is RowKind.DAMAGED:
            return Damaged(line, self.index.flaws.get(row, ""))
        entry = self._adopt(read_entry(line), where.part)
        if isinstance(entry, Frame):
            messages = read_frame(entry)
            if where.item < len(messages):
                return messages[where.item]
        elif kind is RowKind.NOTE:
            return entry
        return Damaged(line, GONE)

    def _stand_in(self, row: int) -> Request | Result:
        """Return a message built from the index alone."""
        index = self.index
        frame = Frame(index.at[row], index.side(row), b"", index.texts[index.stream[row]] or None)
        id_text = index.id(row)
        if index.kind(row) is RowKind.RESULT:
            return Result(frame=frame, data=b"", id=id_text, raw_result=Raw(), body=Body())
        method, subject = index.texts[index.method[row]], index.texts[index.subject[row]]
        raw = Raw(orjson.dumps(subject)) if subject else Raw()
        body = Body(name=raw, uri=raw, level=raw, cursor=raw, ref=raw, message=raw, task_id=raw)
        return Request(
            frame=frame, data=b"", id=id_text or "null", method=method, raw_params=Raw(), body=body
        )


class IncrementalBuild:
    """A model that is built from all rows of a session, in slices of time."""

    def __init__(self, model: SessionModel) -> None:
        self._model = model
        self.generation = 0
        self._processed = 0
        self._restart()

    @property
    def processed(self) -> int:
        return self._processed

    @property
    def is_replaced(self) -> bool:
        """True if the session was restarted, which invalidates the whole model."""
        return self._model_generation != self._model.generation

    @property
    def is_behind(self) -> bool:
        return self.is_replaced or self._processed < len(self._model)

    def advance(self, may_continue: Callable[[], bool]) -> None:
        if self.is_replaced:
            self._restart()
        while self._processed < len(self._index):
            begin, self._processed = self._processed, self._portion(self._processed)
            self._take(begin, self._processed)
            if not may_continue():
                break

    def _restart(self) -> None:
        self.generation += 1
        self._model_generation = self._model.generation
        self._index: Index = self._model.index
        self._processed = 0
        self._begin()

    def _portion(self, begin: int) -> int:
        """Return the end of the rows that are taken together from `begin` on."""
        return min(begin + PORTION, len(self._index))

    def _begin(self) -> None:
        raise NotImplementedError

    def _take(self, begin: int, end: int) -> None:
        raise NotImplementedError


def _flaws(text: str | None, what: AnyMessage | Note | Damaged) -> list[str]:
    """Return the protocol issues of a row, except those of its message itself."""
    if text is None or isinstance(what, Note | Damaged):
        return []
    own = {*what.flaws, what.why} if isinstance(what, Malformed) else set(what.flaws)
    return [flaw for flaw in text.split("; ") if flaw not in own]
