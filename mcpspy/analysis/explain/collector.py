"""The collector of facts: changes of a session with their findings in, facts out, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpspy.analysis.explain.ends import client_left, server_end
from mcpspy.analysis.explain.evidence import PrintedLine, evidence
from mcpspy.analysis.explain.facts import MAX_STDERR, Facts
from mcpspy.analysis.explain.outcomes import RequestOutcomes
from mcpspy.analysis.explain.side_facts import MAX_ODD_LINES, about_message
from mcpspy.analysis.explain.symptoms import RefusedExchange, Violation
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.plain_line import UnreadNotification, UnreadRequest, UnreadResult
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, NOTICED
from mcpspy.core.session.session import Change, is_injected
from mcpspy.core.session.streaming import FinalOutcomes, StreamingSession

NO_FINDINGS: list[Finding] = []

_OK = State.OK  # Reading a member of an Enum runs Python code; reading a name does not.


class FactCollector:
    def __init__(
        self, header: Header, session: StreamingSession, focus: frozenset[int] = frozenset()
    ) -> None:
        """`focus` are the numbers of the exchanges that are to be explained, each as its own symptom."""
        self.facts = Facts(header, session)
        self._requests = RequestOutcomes(self.facts, focus)
        self._outcomes = FinalOutcomes()
        self._adders: dict[type[Any], Callable[..., None]] = {
            Request: self._add_request,
            UnreadRequest: self._add_request,
            Notification: self._add_notification,
            UnreadNotification: self._add_notification,
            Result: self._add_result,
            UnreadResult: self._add_result,
            Failure: self._add_failure,
            Malformed: self._add_malformed,
        }
        """Type of a message → its method: tests against classes that are not exactly its own take as long as calls."""

    def add(  # noqa: PLR0912 - it inlines what most messages need.
        self, change: Change, place: EntryPosition, findings: list[Finding] = NO_FINDINGS
    ) -> None:
        """Add a change with the findings of its lines."""
        what: Any = change.what
        exchange, facts, refused = change.exchange, self.facts, None
        add = self._adders.get(type(what))
        if add is not None:
            frame = what.frame
            at = frame.at
            if frame.http is not None and frame.side == SERVER:
                refused = facts.http.refused(frame.http)
            if not is_injected(change):
                add(what, exchange, place, findings, refused)
            else:
                facts.http.inject(frame.http)
        else:
            at = what.at
            if isinstance(what, Note):
                self._add_note(what, place, change)
        if at > facts.last_at:  # noqa: PLR1730 - each message passes here, and a call takes longer.
            facts.last_at = at
        if findings and refused is None:
            for finding in findings:
                self.add_finding(finding)
        if exchange is not None:
            for settled in self._outcomes.take(change):
                self._requests.settle(settled)
            if self._outcomes.since:
                for settled in self._outcomes.overdue(at):
                    self._requests.settle(settled)

    def add_ordinary(self, change: Change, place: EntryPosition) -> None:
        """Add a change without findings; calls on stdio and their results, nearly all of a long session, in a short way."""
        what: Any = change.what
        exchange, kind = change.exchange, type(what)
        if (
            exchange is None
            or (kind is not UnreadResult and kind is not UnreadRequest)
            or (frame := what.frame).http is not None
            or exchange.poll_of is not None
            or exchange.continues is not None
            or (kind is UnreadResult and (exchange.state is not _OK or exchange.may_change))
            or self.facts.listed.apps.tools
        ):
            self.add(change, place)
            return
        facts, at = self.facts, frame.at
        side, sent_text = facts.sides[frame.side], facts.sent_text
        side.add(what, exchange, place, NO_FINDINGS)
        if at > facts.last_at:  # noqa: PLR1730 - each message passes here, and a call takes longer.
            facts.last_at = at
        if kind is UnreadRequest:
            side.methods[what.method] += 1
            side.last_request_at = at
            sent_text.add_sent(what.data)
            self._requests.add_call(exchange, place)
            self._outcomes.begin(exchange)
        else:
            if sent_text.misread:
                sent_text.add_received(what.data, place)
            if self._outcomes.settle(exchange):
                self._requests.add_result(exchange, at, place)
        if self._outcomes.since:
            for settled in self._outcomes.overdue(at):
                self._requests.settle(settled)

    def add_finding(self, finding: Finding) -> None:
        known = self.facts.findings.get(key := f"{finding.code} {finding.side}")
        if known is None:
            known = self.facts.findings[key] = Violation(
                at=finding.at, place=finding.place, code=finding.code, side=finding.side, count=0
            )
        known.count += 1
        if len(known.findings) < MAX_ODD_LINES:
            known.findings.append(finding)
            excerpt = f" | {finding.excerpt}" if finding.excerpt else ""
            known.add_line(evidence(finding.place, f"{finding.code} {finding.message}{excerpt}"))

    def end(self) -> None:
        """Add what is known at the end of a session that is not live, after the session's own end."""
        for settled in self._outcomes.end():
            self._requests.settle(settled)
        symptoms = self.facts.symptoms
        if (server := server_end(self.facts)) is not None:
            symptoms.append(server)
        if (client := client_left(self.facts)) is not None:
            symptoms.append(client)
        symptoms += self.facts.http.refusals()
        symptoms.sort(key=lambda symptom: (symptom.at, symptom.place))

    def _add_request(
        self,
        what: Request,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        refused: RefusedExchange | None,
    ) -> None:
        facts, frame = self.facts, what.frame
        if refused is not None and refused.method == "GET":
            return
        side = facts.sides[frame.side]
        side.add(what, exchange, place, findings, is_refusal=refused is not None)
        side.methods[what.method] += 1
        side.last_request_at = frame.at
        if frame.http is not None and frame.side == CLIENT:
            number = None if exchange is None else exchange.number
            facts.http.post(frame.http, about_message(what, exchange), number)
        if exchange is not None:
            if what.method == "tools/call":
                facts.sent_text.add_sent(what.data)
            self._requests.add_request(what, exchange, place, findings)

    def _add_notification(
        self,
        what: Notification,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        refused: RefusedExchange | None,
    ) -> None:
        facts, frame = self.facts, what.frame
        if refused is not None and refused.method == "GET":
            return
        side = facts.sides[frame.side]
        side.add(what, exchange, place, findings, is_refusal=refused is not None)
        side.methods[what.method] += 1
        if frame.http is not None and frame.side == CLIENT:
            facts.http.post(frame.http, about_message(what, exchange), None)
        if exchange is not None:
            self._requests.add_notification(what, exchange, place, findings)

    def _add_result(
        self,
        what: Result,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        refused: RefusedExchange | None,
    ) -> None:
        if refused is not None and refused.method == "GET":
            return
        side = what.frame.side
        self.facts.sides[side].add(what, exchange, place, findings, is_refusal=refused is not None)
        if exchange is not None:
            self._post(what, exchange)
            if side == SERVER and self.facts.sent_text.misread:
                self.facts.sent_text.add_received(what.data, place)
            self._requests.add_response(what, exchange, place, findings)

    def _add_failure(
        self,
        what: Failure,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        refused: RefusedExchange | None,
    ) -> None:
        if refused is not None:
            refused.words = refused.words or what.text
            if refused.method == "GET":
                return
        side = self.facts.sides[what.frame.side]
        side.add(what, exchange, place, findings, is_refusal=refused is not None)
        if exchange is not None:
            self._post(what, exchange)
            self._requests.add_response(what, exchange, place, findings)

    def _post(self, what: Result | Failure, exchange: Exchange) -> None:
        """Add the response of a client, if it was posted."""
        frame = what.frame
        if frame.http is not None and frame.side == CLIENT:
            self.facts.http.post(frame.http, about_message(what, exchange), None, is_response=True)

    def _add_malformed(
        self, what: Malformed, _: object, place: EntryPosition, __: object, refused: RefusedExchange | None
    ) -> None:
        frame, facts = what.frame, self.facts
        posted = facts.http.posted.get(frame.http or 0)
        answers_notification = frame.side == SERVER and posted is not None and posted.number is None
        is_refusal = refused is not None or answers_notification
        facts.sides[frame.side].add_odd(what, place, is_refusal=is_refusal)

    def _add_note(self, note: Note, place: EntryPosition, change: Change) -> None:
        facts, kind, fields = self.facts, note.kind, note.fields
        if kind == "http":
            facts.http.begin(note, place)
            return
        if kind == "http-end":
            ended = facts.http.end(note, change.http, self._requests.is_open)
            if ended is not None:
                self._requests.add_carrier(ended)
            return
        if kind == "stderr":
            line = PrintedLine(note.at, place, note.text)
            facts.stderr.append(line)
            facts.stderr_size += len(line.text)
            self._requests.add_stderr(line)
            if len(facts.first_stderr) < MAX_STDERR:
                facts.first_stderr.append(line)
            return
        if kind in ABOUT_MESSAGES and fields.get("action") in NOTICED:
            self._requests.add_effect(fields)
        noted = facts.notes.setdefault(kind, [])
        if len(noted) < MAX_ODD_LINES:
            noted.append((note, place))
        if kind == "eof" and (side := facts.sides.get(str(fields.get("from")))) is not None:
            side.closed_at, side.closed_place = note.at, place
            if side is facts.client and facts.server.last is not None:
                side.heard = facts.server.last[0]
        elif kind in ("exit", "end") and (facts.exit is None or fields.get("code") is not None):
            facts.exit, facts.exit_place = note, place
        elif kind == "oauth":
            facts.http.add_oauth(note, place)
