"""Split a session into steps, one for each logical request.

The pages of a list are one step. A 2026-07-28 request that needs input and its retry are one step, and the
input is a server request, as in earlier revisions. Progress, cancellations and subscription messages belong
to their request.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.analysis.diff.model import ChangePosition
from mcpspy.core.protocol.listing import LISTINGS, Listing, ListingPages, cursor_of
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result, loads
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import METHODS, SERVER
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.outcome import ASKED
from mcpspy.core.session.session import Session, change_lines, is_injected

_NAMING = frozenset(("name", "uri", "ref"))
"""Parameters that name a thing; others, such as a level or a cursor, only describe the request."""


class StandaloneMessage(Struct, eq=False):
    """A message outside any exchange: a notification, an unsolicited response or a malformed line."""

    side: str
    method: str
    """In parentheses if the message has none."""
    subject: str | None
    params: Any
    position: ChangePosition
    latency: float | None = None

    @property
    def name(self) -> str | None:
        return self.subject


class RequestStep(StandaloneMessage, eq=False):
    """A request and its outcome. The latency is the sum over all of its exchanges."""

    state: State = State.PENDING
    results: list[bytes] = []
    """JSON of the result; one item per page."""
    error: bytes | None = None
    error_description: str = ""
    progress: list[Notification] = []
    is_subscription: bool = False
    listing: Listing[RequestStep] | None = None
    """The listing up to its last page, if another page may follow."""

    @property
    def name(self) -> str | None:
        """The tool, resource or prompt; None for other requests."""
        known = METHODS.get(self.method)
        return self.subject if known is not None and known.subject in _NAMING else None

    @property
    def result(self) -> Any:
        """The result, with the lists of all pages concatenated."""
        first, *rest = map(loads, self.results)
        listing = LISTINGS.get(self.method)
        if not rest or listing is None or not isinstance(first, dict):
            return first
        pages = [page.get(listing.member) for page in (first, *rest) if isinstance(page, dict)]
        items = [item for page in pages if isinstance(page, list) for item in page]
        last = rest[-1] if isinstance(rest[-1], dict) else {}
        whole: dict[str, Any] = {**first, listing.member: items}
        whole.pop("nextCursor", None)
        return {**whole, "nextCursor": last["nextCursor"]} if "nextCursor" in last else whole

    def take(self, exchange: Exchange) -> None:
        self.state = exchange.state
        self.progress += exchange.progress
        self.is_subscription = exchange.is_subscription
        answer = exchange.answer
        self.error = bytes(answer.raw_error) if isinstance(answer, Failure) else None
        self.error_description = answer.description if isinstance(answer, Failure) else ""
        if isinstance(answer, Result) and exchange.state not in ASKED:
            self.results.append(bytes(answer.raw_result))
        if (latency := exchange.latency) is not None:
            self.latency = (self.latency or 0.0) + latency


class SessionSteps:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps: list[RequestStep] = []
        self.standalone: list[StandaloneMessage] = []
        self.introductions: list[tuple[Exchange, ChangePosition]] = []
        self.exit: tuple[Note, ChangePosition] | None = None
        self.is_signalled = False
        """True if the host ended mcpspy by a signal."""
        self._result_lines: dict[int, int] = {}
        """Exchange → line of its response."""
        self._pages = ListingPages[RequestStep]()
        lines = change_lines(session)
        for change, line in zip(session.changes, lines, strict=True):
            exchange = change.exchange
            if isinstance(change.what, Result | Failure) and exchange is not None:
                self._result_lines.setdefault(exchange.number, line)
        for change, line in zip(session.changes, lines, strict=True):
            what, exchange = change.what, change.exchange
            if change.flaw == REPEATED_EVENT or is_injected(change):
                continue
            if isinstance(what, Request):
                assert exchange is not None
                self._request(exchange, ChangePosition(line, exchange.number))
            elif isinstance(what, Note):
                if what.kind == "exit":
                    self.exit = what, ChangePosition(line)
                self.is_signalled |= what.kind == "signal"
            elif not isinstance(what, Damaged):
                self._standalone(what, exchange, ChangePosition(line))

    def _request(self, exchange: Exchange, position: ChangePosition) -> None:
        request = exchange.request
        if request.method in HANDSHAKE_METHODS:
            self.introductions.append((exchange, position))
        elif exchange.continues is None and not self._add_page(exchange):
            step = step_of(exchange, position)
            self.steps.append(step)
            self._open(step, exchange)
            while (following := exchange.continued_by) is not None:
                self._input_requests(exchange, following)
                step.take(following)
                exchange = following
            if exchange.state in ASKED:
                self._input_requests(exchange, None)

    def _add_page(self, exchange: Exchange) -> bool:
        """Add a page to its list; return False if it is not a further page."""
        request = exchange.request
        if request.method not in LISTINGS or (cursor := cursor_of(request)) is None:
            return False
        before = self._pages.before(request.frame.stream, request.method, cursor)
        if before is None or before.page.listing is not before:  # Unknown, or this page has been added.
            return False
        before.page.take(exchange)
        self._open(before.page, exchange)
        return True

    def _open(self, step: RequestStep, exchange: Exchange) -> None:
        step.listing = None
        if step.method in LISTINGS and isinstance(answer := exchange.answer, Result):
            page = answer.result
            if isinstance(page, dict):
                step.listing = self._pages.add_result(exchange.request, page, step)

    def _input_requests(self, exchange: Exchange, following: Exchange | None) -> None:
        """Turn the input requests of a result into server requests, as they were before 2026-07-28."""
        assert isinstance(exchange.answer, Result)
        requests = loads(exchange.answer.body.input_requests)
        responses = loads(following.request.body.input_responses) if following is not None else None
        for key, request in requests.items() if isinstance(requests, dict) else ():
            if not isinstance(request, dict):
                continue
            position = ChangePosition(self._result_lines.get(exchange.number, 0), exchange.number)
            step = RequestStep(SERVER, str(request.get("method")), None, request.get("params"), position)
            step.state = State.UNANSWERED
            if isinstance(responses, dict) and key in responses:
                step.state = State.OK
                step.results.append(fingerprint(responses[key]).encode("utf-8", "surrogatepass"))
            self.steps.append(step)

    def _standalone(
        self,
        what: Notification | Result | Failure | Malformed,
        exchange: Exchange | None,
        position: ChangePosition,
    ) -> None:
        subject = None
        if isinstance(what, Notification):
            if exchange is not None:
                return
            method, subject, params = what.method, what.subject, what.params
        elif isinstance(what, Malformed):
            method, params = f"({what.why})", {"text": what.data.decode("utf-8", "backslashreplace")}
        elif exchange is None or exchange.answer is not what:
            params = {"error": what.error} if isinstance(what, Failure) else {"result": what.result}
            method = "(unsolicited response)"
        else:
            return
        self.standalone.append(StandaloneMessage(what.side, method, subject, params, position))


def step_of(exchange: Exchange, position: ChangePosition) -> RequestStep:
    request = exchange.request
    step = RequestStep(request.side, request.method, request.subject, request.params, position)
    step.take(exchange)
    return step
