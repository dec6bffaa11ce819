"""The linter: changes of a session in, findings out, in one pass, live or from disk.

Owns the order: make an event of a change, check it by the rules, then update their state from it. Takes the changes
that `core.session.session.Session.add` returns; keeps no message.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mcpspy.analysis.lint.dispatch import EXCERPT, RuleDispatch
from mcpspy.analysis.lint.event import LintEvent, is_line_limit, is_truncated, is_unusual
from mcpspy.analysis.lint.finding import EntryPosition, EventKind, Finding
from mcpspy.analysis.lint.host_profiles import HostProfile, profile_of_client
from mcpspy.analysis.lint.host_verdicts import HostVerdict, verdict_of
from mcpspy.analysis.lint.ordinary import OrdinaryCalls
from mcpspy.analysis.lint.rule import LEGACY, LintRule
from mcpspy.analysis.lint.rules import RULES
from mcpspy.analysis.lint.state import (
    ANSWERED,
    ConversationState,
    HttpPost,
    LintState,
    PendingRequest,
    forget,
)
from mcpspy.analysis.lint.updates import add_page, add_to_post, update_state
from mcpspy.core.framing import BLANK_LINE
from mcpspy.core.protocol.extensions.events import SIGNATURE, is_webhook
from mcpspy.core.protocol.listing import EVERY_LISTING
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    loads,
)
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER, era
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change
from mcpspy.core.session.translation_notes import TRANSLATION

EXPLAINS_MISSING_RESPONSES = ("LIFE401", "LIFE403", "LIFE407")
"""Rules about the end of a server; their findings count the requests without a response."""

# Reading a member of an Enum runs Python code; reading a name does not.
_RESULT, _MALFORMED = EventKind.RESULT, EventKind.MALFORMED

_KINDS = {
    Request.kind: EventKind.REQUEST,
    Notification.kind: EventKind.NOTIFICATION,
    Result.kind: EventKind.RESULT,
    Failure.kind: EventKind.FAILURE,
    Malformed.kind: EventKind.MALFORMED,
}


class Linter:
    """The rules, with their state of one recording."""

    def __init__(
        self,
        header: Header | None = None,
        rules: Iterable[LintRule] = RULES,
        hosts: tuple[HostProfile, ...] | None = None,
    ) -> None:
        """`hosts` are the hosts whose limits are checked; None for those that `clientInfo` names."""
        rules = tuple(rules)
        self._check = RuleDispatch(rules).check
        self._known = LintState(header)
        self._ordinary = OrdinaryCalls(rules, self._known)
        self.take_ordinary = self._ordinary.take
        """Take a change without findings; return False for another one, which is to be passed to `add`."""
        self._known.hosts = hosts or ()
        self._finds_hosts = hosts is None
        self._is_translated = False
        self._injected: set[int] = set()
        """HTTP exchanges with messages that mcpspy injected: the peers are not responsible for them."""

    def add(self, change: Change, place: EntryPosition = EntryPosition()) -> list[Finding]:  # noqa: B008 - it is immutable.
        """Return the findings of the next change of the session; `place` is the position of its entry."""
        what = change.what
        if isinstance(what, Note):
            number = what.fields.get("http")
            self._is_translated |= what.kind == TRANSLATION
            if isinstance(number, int) and (self._is_translated or number in self._injected):
                if what.kind == "http-end":
                    self._injected.discard(number)
                return []
            return self._add_note(change, what, place)
        if isinstance(what, Damaged):
            fields = {"why": what.why, "text": _text(what.data)}
            return self._check_note(
                change, Note(0.0, "damaged", fields), place, self._known.conversation(None)
            )
        if self._is_translated:
            return self._add_translated(change, what, place)
        frame, exchange = what.frame, change.exchange
        # Most messages are not: a call takes longer than these three.
        is_ours = frame.by or frame.to or (exchange is not None and exchange.request.frame.by)
        if is_ours and _is_injected(what, exchange):
            if what.frame.http is not None:
                self._injected.add(what.frame.http)
                self._known.posts.pop(what.frame.http, None)
            return []
        if change.flaw == REPEATED_EVENT:
            return []
        if isinstance(what, Request) and exchange is not None and what is not exchange.request:
            if frame.http is not None:  # The repetition of a redirected request, which was checked before.
                post = self._known.post(frame.http, place, change.number, what.at)
                post.add(what, EventKind.REQUEST, what.method, what.subject)
            return []
        reused = self._check_event_id(change, what, place) if frame.event_id is not None else []
        found = reused + self._add_message(change, what, place)
        if not found and self._ordinary.is_possible:
            self._ordinary.learn(what)
        return found

    def end(self) -> list[Finding]:
        """Return the findings of the end; to be called once, after the session's own `end`."""
        findings = []
        for post in self._known.posts.values():  # Their ends are missing.
            for event in post.deferred:
                findings += self._check_malformed(event)
        for pending in self._known.open.values():
            exchange, request = pending.exchange, pending.exchange.request
            if exchange.state is State.UNANSWERED and request.frame.to is None:
                event = LintEvent(
                    request,
                    self._known,
                    pending.conversation,
                    pending.place,
                    pending.number,
                    pending.revision,
                    request.method,
                    request.side,
                    exchange,
                    pending=pending,
                    data=request.data,
                )
                findings += self._check(EventKind.END, event)
        place, number, at = self._known.last_page
        conversation, revision = self._known.conversation(None), _nearest(self._known.revision)
        end = LintEvent(Note(at, "end", {}), self._known, conversation, place, number, revision, side=SERVER)
        return findings + self._check(EventKind.SESSION_END, end)

    def _add_message(self, change: Change, what: AnyMessage, place: EntryPosition) -> list[Finding]:
        known, frame, exchange = self._known, what.frame, change.exchange
        conversation = known.conversations.get(frame.stream) or known.conversation(frame.stream)
        revision = conversation.revision or known.revision
        pending: PendingRequest | None = None
        subject: str | None = None
        method = ""
        if isinstance(what, Request):
            method, subject = what.method, what.subject
            if method == "initialize":
                revision = _requested_revision(what)
            elif what.meta and what.revision is not None:
                revision = era(what.revision)
        elif isinstance(what, Notification):
            method = what.method
            pending = known.open.get(id(exchange)) if exchange is not None else None
        elif exchange is not None:
            method = exchange.request.method
            pending = known.open.pop(id(exchange), None)
            if pending is not None:
                revision, subject = pending.revision or revision, pending.subject
            else:  # It already has its response.
                subject = exchange.request.subject
        kind = _KINDS[what.kind]
        event = LintEvent(
            what,
            known,
            conversation,
            place,
            change.number,
            _nearest(revision),
            method,
            frame.side,
            exchange,
            change.flaw,
            pending,
            subject,
            is_unusual=not conversation.is_usual or is_unusual(what, change.flaw),
            data=what.data,
        )
        if frame.http is not None:
            # A webhook may have the member `error`, which is not that of a response.
            if (
                what.flaws
                and kind is EventKind.FAILURE
                and frame.side == CLIENT
                and is_webhook(event.document)
            ):
                kind = _MALFORMED
            add_to_post(what, kind, event, frame.http)
        if kind is _RESULT and method in EVERY_LISTING:
            add_page(event)
        is_checked = frame.http is None and kind is not _MALFORMED
        found = self._check(kind, event) if is_checked else self._check_message(kind, event)
        client = conversation.client
        update_state(what, event)
        if conversation.client is not client and conversation.client is not None:
            self._recognise(conversation.client)
        return found

    def _recognise(self, client: Peer) -> None:
        """Have the limits of the session's host checked, if it is known; with those of its version."""
        known, host = self._known, profile_of_client(client.name, client.version)
        if host is None:
            return
        if self._finds_hosts:
            host = host.certain
            if all(each.title != host.title for each in known.hosts):
                known.hosts = (*known.hosts, host)
        known.hosts = tuple(host if each.title == host.title else each for each in known.hosts)

    def host_verdicts(self) -> list[HostVerdict]:
        """Return a verdict for each host whose limits are checked; to be called after `end`."""
        return [verdict_of(host, self._known) for host in self._known.hosts]

    def _check_message(self, kind: EventKind, event: LintEvent) -> list[Finding]:
        """Check a message that may not be one: the body of an HTTP error, or part of a message that was cut."""
        what = event.message
        post = self._known.posts.get(what.frame.http) if what.frame.http is not None else None
        if kind is not _MALFORMED:
            is_error = post is not None and post.status >= 400 and event.side == SERVER
            answers_nothing = (
                event.exchange is None and isinstance(what, Result | Failure) and what.id is None
            )
            is_json_rpc = not (what.flaws or answers_nothing)
            return self._check(kind, event) if is_json_rpc or not is_error else []
        if post is not None and event.side == SERVER:
            if post.status < 400 and post.status != 202:  # HTTP302 reports any body of a 202.
                post.deferred.append(event)
            return []
        return self._check_malformed(event)

    def _check_malformed(self, event: LintEvent) -> list[Finding]:
        """Check data that is not a message. The rest of a cut line, and the request without a response that it causes,
        are not reported again.
        """
        run, cut = self._known.non_json[event.side], event.cut
        is_line = event.message.frame.http is None
        rest, run.cut = run.cut and is_line and run.cut + event.data, b""
        if rest:
            if is_line_limit(len(event.data)) and is_truncated(rest):
                run.cut = rest
                return []
            if loads(rest) is not None:
                return []
        if is_line and cut is not None:
            run.cut = event.data
        found = self._check(EventKind.MALFORMED, event)
        if cut is not None:
            self._forget_request_of(event)
        return found

    def _forget_request_of(self, event: LintEvent) -> None:
        """Forget the request whose response was cut: the one with its id, of its HTTP exchange, or the only one."""
        number, opened = event.message.frame.http, self._known.open
        waiting = {
            key: pending.exchange.request
            for key, pending in opened.items()
            if pending.conversation is event.conversation and pending.exchange.request.side != event.side
        }
        head = event.data[:EXCERPT].replace(b" ", b"")
        named = [
            key
            for key, request in waiting.items()
            if (number is not None and request.frame.http == number)
            or b'"id":%b,' % request.id.encode() in head
        ]
        for key in named or (waiting if len(waiting) == 1 else ()):
            del opened[key]

    def _check_event_id(self, change: Change, what: AnyMessage, place: EntryPosition) -> list[Finding]:
        """Check the id of a server-sent event: a resumed stream repeats an event unchanged, and a batch is one event."""
        frame, events = what.frame, self._known.events
        key, now = (frame.stream, frame.event_id or ""), hash(frame.data)
        before, events[key] = events.get(key, now), now
        forget(events)
        if before == now:
            return []
        note = Note(what.at, "event", {"id": frame.event_id, "text": _text(what.data)})
        return self._check_note(change, note, place, self._known.conversation(frame.stream), frame.side)

    def _add_note(self, change: Change, note: Note, place: EntryPosition) -> list[Finding]:
        fields, kind = note.fields, note.kind
        stream = fields.get("stream")
        conversation = self._known.conversation(stream if isinstance(stream, str) else None)
        found = self._check_note(change, note, place, conversation)
        if kind == "eof":
            conversation.close(fields.get("from"), note.at)
        elif kind == "signal":
            conversation.signal = str(fields.get("signal"))
        elif kind == "exit" and any(finding.code in EXPLAINS_MISSING_RESPONSES for finding in found):
            self._known.open.clear()
        elif kind == "sse" and fields.get("event") == "endpoint":
            conversation.is_sse = True
        elif kind in ("http", "http-end") and isinstance(number := fields.get("http"), int):
            exchange = change.exchange
            if exchange is not None and exchange.state is not State.REDIRECTED:
                # Refused, or cancelled by disconnecting: a response will not come.
                self._known.open.pop(id(exchange), None)
            if kind == "http":
                post = self._known.post(number, place, change.number, note.at)
                post.head, post.answered_at = fields, note.at
            else:
                hung_up = fields.get("hung_up")
                found += self._ended(number, conversation, hung_up if isinstance(hung_up, str) else None)
        return found

    def _ended(self, number: int, conversation: ConversationState, hung_up: str | None) -> list[Finding]:
        """Check an HTTP exchange that has ended; `hung_up` is the side that closed it early."""
        posts = self._known.posts
        post = posts.get(number)
        if post is None or post.head is None:
            return []
        del posts[number]
        # The same message is sent elsewhere, and checked there. After other redirects than 307 and 308, clients send a
        # GET (RFC 9110, 15.4), so a notification is lost.
        is_repeated = post.status in (307, 308) or any(each.kind is EventKind.REQUEST for each in post.posted)
        if 300 <= post.status < 400 and is_repeated:
            return []
        found: list[Finding] = []
        for malformed in post.deferred if SIGNATURE not in post.request else ():
            malformed.hung_up = hung_up
            if (
                malformed.cut is not None
                or malformed.message.frame.lacks == BLANK_LINE
                or post.category(is_sse=conversation.is_sse) not in ANSWERED
                or post.is_json
            ):
                found += self._check_malformed(malformed)
        if hung_up is not None:
            for pending in self._known.open.values():
                if pending.exchange.request.frame.http == number:
                    pending.hung_up = hung_up
        event = LintEvent(
            Note(post.at, "http", post.head),
            self._known,
            conversation,
            post.place,
            post.number,
            _nearest(post.era or conversation.revision or self._known.revision or _stated(post)),
            post.category(is_sse=conversation.is_sse),
            CLIENT,
            post=post,
        )
        found += self._check(EventKind.POST, event)
        if not found and self._ordinary.is_possible:
            self._ordinary.learn_end(post, conversation)
        session_id = post.response.get("mcp-session-id")
        if isinstance(session_id, str) and post.introduces:
            self._known.session_ids.add(session_id)
        return found

    def _add_translated(self, change: Change, what: AnyMessage, place: EntryPosition) -> list[Finding]:
        """Return the findings of a message in a session that mcpspy translates: only the host is checked.

        The server's messages are of another revision than the requests that they answer, and its HTTP exchanges are
        those of mcpspy. A response of mcpspy is one to the host, whose next messages depend on it.
        """
        exchange = change.exchange
        is_hosts = what.side == CLIENT and what.frame.by is None
        is_answer = isinstance(what, Result | Failure) and exchange is not None and not exchange.is_injected
        found = self._add_message(change, what, place) if is_hosts or is_answer else []
        if what.frame.http is not None:
            self._known.posts.pop(what.frame.http, None)
        return found if is_hosts else []

    def _check_note(
        self,
        change: Change,
        note: Note,
        place: EntryPosition,
        conversation: ConversationState,
        side: str = "",
    ) -> list[Finding]:
        revision = _nearest(conversation.revision or self._known.revision)
        event = LintEvent(note, self._known, conversation, place, change.number, revision, note.kind, side)
        return self._check(EventKind.NOTE, event)


def _is_injected(what: AnyMessage, exchange: Exchange | None) -> bool:
    """Return whether mcpspy sent or requested it, or dropped it because it had responded itself."""
    frame = what.frame
    if frame.by is not None or (exchange is not None and exchange.request.frame.by is not None):
        return True
    return frame.to is not None and isinstance(what, Result | Failure)


def _requested_revision(request: Request) -> str:
    """Return the revision that `initialize` requests, at most the last one with a handshake."""
    version = params.get("protocolVersion") if isinstance(params := request.params, dict) else None
    return min(version, LEGACY) if isinstance(version, str) and version[:1].isdigit() else LEGACY


def _stated(post: HttpPost) -> str | None:
    """Return the revision in the header of an HTTP request, if it is one."""
    version = post.request.get("mcp-protocol-version")
    return version if version in REVISIONS else None


@lru_cache(maxsize=64)  # A peer may send anything.
def _nearest(revision: str | None) -> str | None:
    """Return the known revision nearest to that of a peer."""
    if revision is None or revision in REVISIONS:
        return revision
    if not revision[:1].isdigit():  # `DRAFT-2026-v1`
        return MODERN
    return max((known for known in REVISIONS if known <= revision), default=REVISIONS[0])


def _text(data: bytes) -> str:
    return data[:EXCERPT].decode("utf-8", "replace")
