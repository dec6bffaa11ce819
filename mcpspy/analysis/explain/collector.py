"""The collector of facts: changes of a session with their findings in, facts out, in one pass."""

from __future__ import annotations

from mcpspy.analysis.explain.ends import client_left, server_end
from mcpspy.analysis.explain.evidence import PrintedLine, evidence
from mcpspy.analysis.explain.facts import MAX_STDERR, Facts
from mcpspy.analysis.explain.outcomes import RequestOutcomes
from mcpspy.analysis.explain.side_facts import MAX_ODD_LINES, about_message
from mcpspy.analysis.explain.symptoms import RefusedExchange, Violation
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import Failure, Malformed, Message, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, NOTICED
from mcpspy.core.session.session import Change, is_injected
from mcpspy.core.session.streaming import StreamingSession

NO_FINDINGS: list[Finding] = []

_CALLS = (Request, Notification)  # Each message passes here, and `A | B` in a call makes a new union.


class FactCollector:
    def __init__(
        self, header: Header, session: StreamingSession, focus: frozenset[int] = frozenset()
    ) -> None:
        """`focus` are the numbers of the exchanges that are to be explained, each as its own symptom."""
        self.facts = Facts(header, session)
        self._requests = RequestOutcomes(self.facts, focus)

    def add(self, change: Change, place: EntryPosition, findings: list[Finding] = NO_FINDINGS) -> None:
        """Add a change with the findings of its lines."""
        what, is_body = change.what, False
        if isinstance(what, Message):
            frame = what.frame
            self.facts.last_at = max(self.facts.last_at, frame.at)
            is_answer = frame.http is not None and frame.side == SERVER
            refused = self.facts.http.refused(frame.http) if is_answer else None
            is_body = refused is not None
            if not is_injected(change):
                self._add_message(what, change.exchange, place, findings, refused)
        else:
            self.facts.last_at = max(self.facts.last_at, what.at)
            if isinstance(what, Note):
                self._add_note(what, place, change)
        if findings and not is_body:
            for finding in findings:
                self.add_finding(finding)
        if change.exchange is not None:
            self._requests.settle(change)

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
        self._requests.end()
        symptoms = self.facts.symptoms
        if (server := server_end(self.facts)) is not None:
            symptoms.append(server)
        if (client := client_left(self.facts)) is not None:
            symptoms.append(client)
        symptoms += self.facts.http.refusals()
        symptoms.sort(key=lambda symptom: (symptom.at, symptom.place))

    def _add_message(
        self,
        what: Message,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        refused: RefusedExchange | None,
    ) -> None:
        facts, frame = self.facts, what.frame
        side, http = facts.sides[frame.side], facts.http
        if isinstance(what, Malformed):
            posted = http.posted.get(frame.http or 0)
            answers_notification = frame.side == SERVER and posted is not None and posted.number is None
            side.add_odd(what, place, is_refusal=refused is not None or answers_notification)
            return
        if refused is not None:
            if isinstance(what, Failure):
                refused.words = refused.words or what.text
            if refused.method == "GET":
                return
        side.add(what, exchange, place, findings, is_refusal=refused is not None)
        if frame.http is not None and frame.side == CLIENT and isinstance(what, _CALLS):
            number = exchange.number if isinstance(what, Request) and exchange is not None else None
            http.post(frame.http, about_message(what, exchange), number)
        if exchange is None:
            return
        if isinstance(what, Request):
            if what.method == "tools/call":
                facts.sent_text.add_sent(what.data)
        elif isinstance(what, Result) and frame.side == SERVER:
            facts.sent_text.add_received(what.data, place)
        self._requests.add(what, exchange, place, findings)

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
        elif kind in ("exit", "end") and (facts.exit is None or fields.get("code") is not None):
            facts.exit, facts.exit_place = note, place
        elif kind == "oauth":
            facts.http.add_oauth(note, place)
