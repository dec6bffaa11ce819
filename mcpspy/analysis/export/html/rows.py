"""Data of the page: one row per exchange, and the bodies separately.

Bodies are not parsed here, so that duplicate keys and thirty-digit integers reach the reader.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from mcpspy.analysis import rows
from mcpspy.analysis.apps import AppLinks
from mcpspy.analysis.context import ContextCollector, summary
from mcpspy.analysis.export.base import CARRIERS, RecordedSession, http_number
from mcpspy.core.protocol.message import Failure, Malformed, Message, Notification, Request, Result
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.query.item import is_near_failure, reports_failure
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change
from mcpspy.core.session.tasks import REPORTS

BLOCK = 1 << 20
"""Characters of bodies that the page parses together when it shows one of them."""

SHOWN_BY_REQUEST = frozenset({"notifications/progress", "notifications/cancelled", *REPORTS})
"""Methods of notifications that the row of their request shows."""

NONE = -1
"""Body number of a row without a body."""


class HtmlRows:
    def __init__(self, session: RecordedSession) -> None:
        self._session = session
        self._bodies: list[str] = []
        self._pending = 0
        self._exit: Note | None = None
        self._changes: list[Change] = []
        self._answer_flaws: dict[int, str] = {}
        self._peers = Peers()
        self._last_at = 0.0
        self._context = ""
        self._apps = AppLinks()
        self.rows: list[list[Any]] = []
        self.cells: dict[int, list[tuple[str, str | None]]] = {}
        """The user's cells by the number of the row."""
        self.views: dict[int, list[dict[str, Any]]] = {}
        """The views of a message by the number of its body."""
        self.starts = [0]
        """The number of the first body of each block."""
        self.counts = dict.fromkeys(("all", "messages", "requests", "errors", "unanswered", "pending"), 0)

    def blocks(self) -> Iterator[list[str]]:
        """Yield the bodies in blocks; rows and facts are complete afterwards."""
        changes = self._changes = list(self._session.changes)
        peers = Peers()
        for change in changes:
            if isinstance(change.what, Request):
                peers.add_request(change.what)
            self._apps.add(change, peers.client_capabilities)
            if change.flaw and change.exchange is not None and _is_in_request_row(change):
                self._answer_flaws[change.exchange.number] = change.flaw
        self._last_at = max((change.what.at for change in changes), default=0.0)
        context = ContextCollector()
        context.add_exchanges(
            "",
            (change.exchange for change in changes if isinstance(change.what, Request) and change.exchange),
        )
        self._context = summary(context.report())
        for change in changes:
            self._count(change)
            if self._session.keep(change) and not _is_in_request_row(change) and not _is_repeated(change):
                self.rows.append(self._row(change))
                if self._pending >= BLOCK:
                    yield self._take()
        if self._bodies:
            yield self._take()

    def facts(self) -> dict[str, Any]:
        header, peers = self._session.header, self._peers
        ending = rows.row(Change(0, self._exit)) if self._exit is not None else None
        return {
            "name": sanitize(self._session.name or header.name) or "session",
            "id": sanitize(header.id),
            "started": sanitize(header.started),
            "transport": sanitize(header.transport),
            "target": target(header),
            "cwd": sanitize(header.cwd or ""),
            "redacted": header.redacted,
            "client": sanitize(str(peers.client or "")),
            "server": sanitize(str(peers.server or "")),
            "revision": sanitize(peers.revision_text),
            "lasted": self._last_at,
            "ending": rows.ending(self._exit),
            "endingTone": ending.tone if ending is not None else rows.ISSUE,
            "counts": self.counts,
            "context": self._context,
            "columns": [] if self._session.user_views is None else list(self._session.user_views.headings),
        }

    def _count(self, change: Change) -> None:
        what, exchange, counts = change.what, change.exchange, self.counts
        counts["all"] += not _is_repeated(change)
        if isinstance(what, Damaged):
            return
        if isinstance(what, Note):
            self._exit = what if what.kind == "exit" else self._exit
            return
        counts["messages"] += 1
        counts["errors"] += change.is_error
        if isinstance(what, Request):
            self._peers.add_request(what)
        if (opened := change.opened) is not None:
            counts["requests"] += 1
            judged = outcome.of(opened.state)
            counts["unanswered"] += opened.is_counted and judged.unanswered
            counts["pending"] += opened.is_counted and judged.is_open and not opened.is_subscription
        elif exchange is not None and what is exchange.answer:
            self._peers.add_response(exchange.answer, exchange.request.method)

    def _row(self, change: Change) -> list[Any]:
        what, exchange = change.what, change.exchange
        answer = exchange.answer if isinstance(what, Request) and exchange is not None else None
        sizes = _size(what), _size(answer) if answer is not None else None
        body = self._add(body_text(what))
        answer_body = self._add(body_text(answer)) if answer is not None else NONE
        flaw = (
            self._answer_flaws.get(exchange.number) if answer is not None and exchange is not None else None
        )
        row = page_row(change, (body, answer_body), sizes, self._last_at, flaw)
        if self._session.user_views is not None:
            if exchange is not None and what is exchange.request:
                self.cells[change.number + 1] = self._session.user_views.cells(exchange)
            for number, shown in (body, what), (answer_body, answer):
                if isinstance(shown, Message) and (views := self._session.user_views.views(shown.data)):
                    self.views[number] = views
        row = row._replace(failed=self._is_failed_event(change))
        if (link := self._apps.links.get(change.number)) is not None:
            page = None if link.is_page or link.page is None else link.page + 1
            row = row._replace(status=rows.with_link(row.status, link.words), page=page)
        return [*row]

    def _is_failed_event(self, change: Change) -> bool:
        """Return whether `is:problem` finds an event: a crash, lost entries, stderr next to a failure."""
        if not isinstance(change.what, Note):
            return False
        if change.what.kind == "stderr":
            return is_near_failure(change.number, len(self._changes), self._failed)
        return reports_failure(change.what)

    def _failed(self, number: int) -> bool | None:
        change = self._changes[number]
        if isinstance(change.what, Note):
            return reports_failure(change.what) or None
        return isinstance(change.what, Result | Failure) and change.is_error

    def _add(self, text: str) -> int:
        self._bodies.append(text)
        self._pending += len(text)
        return self.starts[-1] + len(self._bodies) - 1

    def _take(self) -> list[str]:
        taken, self._bodies, self._pending = self._bodies, [], 0
        self.starts.append(self.starts[-1] + len(taken))
        return taken


class PageRow(NamedTuple):
    """A row of the page: of a request with its response, or of any other message or note. The script uses these names."""

    number: int
    at: float
    kind: str
    side: str
    method: str
    subject: str
    id: str
    status: str
    tone: str
    state: str
    end: float | None
    """The time of a request's outcome; None while it is open, and if it got none."""
    body: int
    """The number of its body."""
    size: int
    answer: int
    """The number of the body of its response, or NONE."""
    answerSize: int  # noqa: N815 - a name of the script.
    exchange: int | None
    continues: int | None
    """The number of the exchange whose question it answers."""
    http: int | None
    stream: str
    flaws: list[str]
    latency: float | None
    code: int | None
    """The code of its error, or of that of the response in it."""
    batch: bool
    apart: bool
    """True if its outcome counts nowhere, so that filters for failures do not find it."""
    shownBy: int | None = None  # noqa: N815
    """The number of the exchange that shows it instead: of the call whose task it polls, or whose progress it is."""
    page: int | None = None
    """The number of the row that read the page of a call (MCP Apps)."""
    failed: bool = False
    """True if `is:problem` finds an event: a crash, lost entries, stderr next to a failure."""


def page_row(
    change: Change,
    bodies: tuple[int, int],
    sizes: tuple[int, int | None],
    now: float,
    answer_flaw: str | None = None,
) -> PageRow:
    """Return the row of a message or note.

    `bodies` are the numbers of the bodies of a request and its response, `sizes` their bytes; `now` is seconds since
    the start. `answer_flaw` is a protocol issue of the response that is not in its message.
    """
    what, exchange = change.what, change.exchange
    request = exchange if isinstance(what, Request) else None
    row = rows.exchange_row(change, sizes, now) if request is not None else rows.row(change)
    return PageRow(
        number=change.number + 1,
        at=round(what.at, 6),
        kind=_kind(change),
        side="" if isinstance(what, Note | Damaged) else what.side,
        method=row.method or "(response)",
        subject=row.subject or ("" if row.method else f"id {row.id}"),
        id=row.id,
        status=row.status,
        tone=row.tone,
        state=str(change.status or "") if request is None else str(request.state),
        end=_end(request),
        body=bodies[0],
        size=sizes[0],
        answer=bodies[1],
        answerSize=sizes[1] or 0,
        exchange=None if exchange is None else exchange.number,
        continues=None if request is None or request.continues is None else request.continues.number,
        http=_http(what),
        stream=sanitize(_stream(what)),
        flaws=_flaws(change, answer_flaw),
        latency=_latency(change),
        code=_code(change),
        batch=not isinstance(what, Note | Damaged) and what.index is not None,
        apart=_is_apart(change),
        shownBy=_shown_by(change),
    )


def _shown_by(change: Change) -> int | None:
    """Return the exchange whose row shows a message: polls of its task, and its progress and cancellation."""
    what, exchange = change.what, change.exchange
    if exchange is None:
        return None
    if exchange.poll_of is not None:
        return exchange.poll_of.number
    is_shown = isinstance(what, Notification) and what.method in SHOWN_BY_REQUEST and not change.has_issue
    return exchange.number if is_shown else None


def _is_apart(change: Change) -> bool:
    """Return whether the outcome of a row counts nowhere, so that filters for failures do not find it."""
    exchange = change.opened
    state = change.status if exchange is None else exchange.state
    return state is not None and not outcome.filter_status(state, is_counted=change.is_counted)


def target(header: Header) -> str:
    return sanitize(
        shlex.join(redacted_command(header.command))
        if header.command
        else redacted_url(header.upstream or "")
    )


def _is_repeated(change: Change) -> bool:
    """Return whether it is a request that was sent again after a redirect: the row of the first one has its outcome."""
    return isinstance(change.what, Request) and change.exchange is not None and change.opened is None


def _is_in_request_row(change: Change) -> bool:
    return change.exchange is not None and change.what is change.exchange.answer


def _kind(change: Change) -> str:
    what, http = change.what, change.http
    if isinstance(what, Note):
        if http is not None and http.is_get and what.kind == "http" and not http.is_folded:
            return "note"
        return "http" if what.kind in CARRIERS else "stderr" if what.kind == "stderr" else "note"
    return what.kind


def _size(what: Any) -> int:
    return len(what.text.encode("utf-8", "surrogatepass")) if isinstance(what, Note) else len(what.data)


def body_text(what: Any) -> str:
    """Return the original text; invalid UTF-8 and lone surrogates are escaped."""
    if not isinstance(what, Note):
        return str(what.data.decode("utf-8", "backslashreplace"))
    if what.text:
        return what.text.encode("utf-8", "backslashreplace").decode()
    try:
        return orjson.dumps(what.fields).decode()
    except TypeError:  # Lone surrogates, or integers beyond 64 bits.
        return json.dumps(what.fields)


def _end(exchange: Exchange | None) -> float | None:
    """Return the time of a request's outcome; None while it is open, and if it got none."""
    if exchange is None or exchange.is_open or exchange.state is State.UNFINISHED:
        return None
    if exchange.state is State.CLOSED and exchange.cancel is None:
        return round(exchange.request.at, 6)
    last = exchange.answer or exchange.cancel
    at = exchange.ended_at if exchange.ended_at is not None or last is None else last.at
    return None if at is None else round(at, 6)


def _latency(change: Change) -> float | None:
    what, exchange = change.what, change.exchange
    if exchange is None or not isinstance(what, Request | Result | Failure):
        return None
    return exchange.latency if isinstance(what, Request) else exchange.latency_at(what.at)


def _code(change: Change) -> int | None:
    """Return the code of the error of a row, or of the response in it."""
    what, exchange = change.what, change.exchange
    answer = exchange.answer if isinstance(what, Request) and exchange is not None else what
    return answer.code if isinstance(answer, Failure) else None


def _http(what: Any) -> int | None:
    """Return the number of the HTTP exchange if JavaScript can represent it."""
    number = http_number(what)
    return number if number is not None and abs(number) < 1 << 53 else None


def _stream(what: Any) -> str:
    if isinstance(what, Note):
        return str(what.fields.get("stream", ""))
    return "" if isinstance(what, Damaged) else what.frame.stream or ""


def _flaws(change: Change, answer_flaw: str | None) -> list[str]:
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        return []
    found = [what.why] if isinstance(what, Damaged | Malformed) else []
    if not isinstance(what, Damaged):
        found += what.flaws
    if change.flaw:
        found.append(change.flaw)
    if isinstance(what, Request) and exchange is not None:
        found += [*exchange.flaws, *(exchange.answer.flaws if exchange.answer is not None else ())]
        found += [answer_flaw] if answer_flaw else []
    return [sanitize(flaw) for flaw in dict.fromkeys(found)]
