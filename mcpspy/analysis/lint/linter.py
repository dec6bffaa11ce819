"""Changes in, findings out: one pass over a session, live or from disk.

Owns who is asked about what, and what the rules know when they are asked.
Takes what `core.session.Session.add` returns, change by change, so that
whatever folds a session can lint it on the way; keeps no message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw

from mcpspy.analysis.lint.conversation import Asked, Conversation, Known, Post, forget
from mcpspy.analysis.lint.finding import Finding, Place
from mcpspy.analysis.lint.rule import LEGACY, Kind, Rule
from mcpspy.analysis.lint.rules import RULES
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.exchange import Exchange, State
from mcpspy.core.message import (
    AnyMessage,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    meta_raw,
    text,
)
from mcpspy.core.mirrored import wanted
from mcpspy.core.record import Damaged, Header, Note
from mcpspy.core.session import COMES_AGAIN, Change
from mcpspy.core.spec import CLIENT, META, MODERN, REVISIONS, other

EXCERPT = 200
"""Characters of an excerpt."""

_KINDS: dict[type, Kind] = {
    Request: Kind.REQUEST,
    Notification: Kind.NOTIFICATION,
    Result: Kind.RESULT,
    Failure: Kind.FAILURE,
    Malformed: Kind.MALFORMED,
}


class Linter:
    """The rules, and what they know of one recording."""

    def __init__(self, header: Header | None = None, rules: Iterable[Rule] = RULES) -> None:
        self._rules = tuple(rules)
        self._known = Known(header.upstream if header is not None else None)
        self._tables: dict[tuple[Kind, str, str | None, bool, bool], tuple[Rule, ...]] = {}
        self._open: dict[int, Asked] = {}
        self._told_once: set[tuple[str, str]] = set()
        self._revision: str | None = None
        """The revision that was agreed on last, in any conversation."""
        self._ours: set[int] = set()
        """HTTP exchanges in which mcpspy had a word: they say nothing of the peers."""

    def add(self, change: Change, place: Place = Place()) -> list[Finding]:  # noqa: B008 - it is immutable.
        """Take the next change of the session and where its entry stands; return what is wrong with it."""
        what = change.what
        if isinstance(what, Note):
            number = what.fields.get("http")
            if isinstance(number, int) and number in self._ours:
                if what.kind == "http-end":
                    self._ours.discard(number)
                return []
            return self._note(change, what, place)
        if isinstance(what, Damaged):
            fields = {"why": what.why, "text": what.data[:EXCERPT].decode("utf-8", "replace")}
            note = Note(0.0, "damaged", fields)
            return self._look(Kind.NOTE, self._seen(change, note, place, self._known.conversation(None)))
        if _is_ours(what, change.exchange):
            if what.frame.http is not None:
                self._ours.add(what.frame.http)
                self._known.posts.pop(what.frame.http, None)
            return []
        if change.flaw == COMES_AGAIN:
            return list(self._repeated(change, what, place))
        return self._message(change, what, place)

    def end(self) -> list[Finding]:
        """Nothing more will come: return what is wrong with that. Call it once, after the session's own `end`."""
        findings = []
        for asked in self._open.values():
            if (
                asked.exchange.state in (State.UNANSWERED, State.PENDING)
                and not asked.exchange.is_subscription
                and asked.exchange.request.frame.to is None
            ):
                request = asked.exchange.request
                seen = Seen(
                    request,
                    self._known,
                    asked.conversation,
                    place=asked.place,
                    number=asked.number,
                    revision=asked.revision,
                    method=request.method,
                    side=request.side,
                    exchange=asked.exchange,
                    asked=asked,
                )
                findings += self._look(Kind.END, seen)
        return findings

    def _message(self, change: Change, what: AnyMessage, place: Place) -> list[Finding]:
        frame = what.frame
        conversation = self._known.conversation(frame.stream)
        exchange = change.exchange
        asked: Asked | None = None
        method = ""
        if isinstance(what, Request):
            method = what.method
            revision = what.revision if bytes(what.body.meta) else None
            revision = revision or conversation.revision or self._revision
            if method == "initialize":
                revision = _asked_for(what)
        elif isinstance(what, Notification):
            method = what.method
            revision = conversation.revision or self._revision
        else:
            revision = conversation.revision or self._revision
            if exchange is not None and isinstance(what, Result | Failure):
                method = exchange.request.method
                asked = self._open.pop(id(exchange), None)
                if asked is not None:
                    revision = asked.revision or revision
        seen = Seen(
            what,
            self._known,
            conversation,
            place=place,
            number=change.number,
            revision=_nearest(revision),
            method=method,
            side=frame.side,
            exchange=exchange,
            flaw=change.flaw,
            asked=asked,
        )
        if frame.http is not None:
            self._carried(what, place, change.number, method)
            if method == "tools/call" and isinstance(what, Request):
                self._mirrored(seen, frame.http)
        if isinstance(what, Notification) and exchange is not None:
            seen.asked = self._open.get(id(exchange))
        found = self._look(_KINDS[type(what)], seen)
        self._hear(what, seen)
        return found

    def _hear(self, what: AnyMessage, seen: Seen) -> None:
        """Learn from a message, after the rules have looked at it."""
        conversation, side, exchange = seen.conversation, seen.side, seen.exchange
        is_notification = isinstance(what, Notification)
        if isinstance(what, Malformed):
            conversation.was_malformed[side] = True
        elif isinstance(what, Request):
            assert exchange is not None
            asked = Asked(exchange, conversation, seen.place, seen.number, seen.revision, seen.subject)
            self._open[id(exchange)] = asked
            body = what.body
            if bytes(body.meta) and (token := what.progress_token) is not None:
                conversation.tokens[side, token] = asked
            if bytes(body.meta) and bytes(meta_raw(body.meta, META + "logLevel")):
                conversation.wants_logs = True
            conversation.hear_request(what)
            if what.method == "initialize":
                conversation.has_asked = True
        elif isinstance(what, Notification):
            if what.method == "notifications/initialized":
                conversation.is_initialized = True
        elif seen.asked is not None and exchange is not None and isinstance(what, Result | Failure):
            self._hear_answer(what, seen, exchange.request)
        if isinstance(what, Failure) and what.id is None:
            conversation.was_malformed[other(side)] = False
        if conversation.has_notified[side] is not is_notification:
            conversation.has_notified[side] = is_notification
        if not isinstance(what, Request | Notification):
            conversation.has_notified[other(side)] = False

    def _hear_answer(self, what: Result | Failure, seen: Seen, request: Request) -> None:
        conversation = seen.conversation
        body = request.body
        if bytes(body.meta) and (token := request.progress_token) is not None:
            conversation.tokens.pop((request.side, token), None)
        conversation.hear_answer(what, request.method)
        if isinstance(what, Failure):
            if seen.method == "initialize":
                conversation.has_asked = False
            return
        if seen.method in ("initialize", "server/discover"):
            conversation.introduced = True
            self._known.server_capabilities = conversation.server_capabilities
            self._revision = conversation.revision or self._revision
            conversation.is_agreed = conversation.is_agreed or seen.method == "initialize"
        elif seen.method == "logging/setLevel":
            conversation.log_level = request.subject
        elif seen.method == "tools/list":
            self._known.learn_tools(seen.result, seen.place, what.data)

    def _carried(self, what: AnyMessage, place: Place, number: int, method: str) -> None:
        """Keep what an HTTP exchange carried until it ends."""
        frame = what.frame
        assert frame.http is not None
        posts = self._known.posts
        post = posts.get(frame.http)
        if post is None:
            post = posts[frame.http] = Post(place, number, what.at, [], [])
            forget(posts)
        if frame.event_id is not None:
            events = self._known.events
            events[frame.stream, frame.event_id] = hash(what.data)
            forget(events)
        if frame.side == CLIENT:
            said = what if isinstance(what, Request | Notification) else None
            revision = what.revision if isinstance(what, Request) and bytes(what.body.meta) else None
            post.posted.append(
                (_KINDS[type(what)], method, said.subject if said is not None else None, revision)
            )
            return
        post.heard += 1
        if isinstance(what, Result | Failure):
            post.answers.append(what.code if isinstance(what, Failure) else None)

    def _mirrored(self, seen: Seen, number: int) -> None:
        """Keep which headers a call has to have; of a tool that clients drop, none."""
        tool = self._known.tools.get(seen.subject or "")
        if tool is not None and tool.mirrored.headers and not tool.mirrored.wrong:
            self._known.posts[number].mirrored = wanted(tool.mirrored.headers, seen.params.get("arguments"))

    def _repeated(self, change: Change, what: AnyMessage, place: Place) -> Iterator[Finding]:
        """An event that came before: as a resumed stream has it, or another one under its id."""
        frame = what.frame
        known = self._known.events.get((frame.stream, frame.event_id or ""))
        if known is not None and known != hash(what.data):
            note = Note(
                what.at,
                "event",
                {"id": frame.event_id, "text": what.data[:EXCERPT].decode("utf-8", "replace")},
            )
            seen = self._seen(change, note, place, self._known.conversation(frame.stream), side=frame.side)
            yield from self._look(Kind.NOTE, seen)

    def _note(self, change: Change, note: Note, place: Place) -> list[Finding]:
        fields = note.fields
        stream = fields.get("stream")
        conversation = self._known.conversation(stream if isinstance(stream, str) else None)
        kind = note.kind
        found = self._look(Kind.NOTE, self._seen(change, note, place, conversation))
        if kind == "eof" and fields.get("from") == CLIENT:
            conversation.closed_at = note.at
        elif kind == "sse" and fields.get("event") == "endpoint":
            conversation.is_sse = True
        elif kind in ("http", "http-end") and isinstance(number := fields.get("http"), int):
            if change.exchange is not None:
                self._open.pop(
                    id(change.exchange), None
                )  # Refused, or cancelled by hanging up: there is no answer.
            found += self._http(change, note, place, conversation, number)
        return found

    def _http(
        self, change: Change, note: Note, place: Place, conversation: Conversation, number: int
    ) -> list[Finding]:
        posts = self._known.posts
        post = posts.get(number)
        if note.kind == "http":
            if post is None:
                post = posts[number] = Post(place, change.number, note.at, [], [])
                forget(posts)
            post.head = note.fields
            return []
        if post is None or post.head is None:
            return []
        del posts[number]
        said = next((revision for *_, revision in post.posted if revision), None)
        revision = _nearest(said or conversation.revision or self._revision)
        head = Note(post.at, "http", post.head)
        seen = Seen(
            head,
            self._known,
            conversation,
            place=post.place,
            number=post.number,
            revision=revision,
            side=CLIENT,
            post=post,
        )
        found = self._look(Kind.POST, seen)
        response = post.head.get("response")
        session_id = response.get("mcp-session-id") if isinstance(response, dict) else None
        if isinstance(session_id, str) and any(method == "initialize" for _, method, *_ in post.posted):
            self._known.session_ids.add(session_id)
        return found

    def _seen(
        self, change: Change, note: Note, place: Place, conversation: Conversation, *, side: str = ""
    ) -> Seen:
        revision = _nearest(conversation.revision or self._revision)
        return Seen(
            note,
            self._known,
            conversation,
            place=place,
            number=change.number,
            revision=revision,
            method=note.kind,
            side=side,
        )

    def _look(self, kind: Kind, seen: Seen) -> list[Finding]:
        key = kind, seen.method, seen.revision, seen.is_odd, seen.is_text
        rules = self._tables.get(key)
        if rules is None:
            rules = tuple(
                rule
                for rule in self._rules
                if kind in rule.on
                and rule.is_about(seen.method)
                and (seen.is_odd or not rule.odd)
                and not (seen.is_text and rule.beyond_text)
                and rule.holds_in(seen.revision)
            )
            if len(self._tables) < 1000:  # A method may be anything.
                self._tables[key] = rules
        found: list[Finding] = []
        for rule in rules:
            for told in rule.look(seen):
                if rule.once:
                    if (rule.code, seen.side) in self._told_once:
                        break
                    self._told_once.add((rule.code, seen.side))
                found.append(
                    Finding(
                        rule.code,
                        rule.severity,
                        told.message,
                        _excerpt(told.excerpt, seen.what),
                        seen.place,
                        seen.number,
                        seen.at,
                        seen.side,
                    )
                )
        return found


def _is_ours(what: AnyMessage, exchange: Exchange | None) -> bool:
    """Whether mcpspy said it, asked for it, or kept it because it had answered already: no peer's mistake."""
    frame = what.frame
    if frame.by is not None or (exchange is not None and exchange.request.frame.by is not None):
        return True
    return frame.to is not None and isinstance(what, Result | Failure)


def _asked_for(request: Request) -> str:
    """Return the revision of `initialize`: what it asks for, but none that has no handshake."""
    version = params.get("protocolVersion") if isinstance(params := request.params, dict) else None
    return min(version, LEGACY) if isinstance(version, str) and version[:1].isdigit() else LEGACY


def _nearest(revision: str | None) -> str | None:
    """Return the known revision that a peer's own is nearest to."""
    if revision is None or revision in REVISIONS:
        return revision
    if not revision[:1].isdigit():  # `DRAFT-2026-v1`
        return MODERN
    return max((known for known in REVISIONS if known <= revision), default=REVISIONS[0])


def _excerpt(value: Any, what: AnyMessage | Note | Damaged) -> str:
    if value is None:
        if isinstance(what, Message):
            value = what.data
        else:
            return what.text if isinstance(what, Note) else ""
    if isinstance(value, str):
        written = value
    elif isinstance(value, bytes):
        written = value[: EXCERPT * 4].decode("utf-8", "backslashreplace")
    elif isinstance(value, Raw):
        written = text(value) or ""
    else:
        try:
            written = json.dumps(value, ensure_ascii=False)
        except (ValueError, RecursionError):
            written = "…"
    return written if len(written) <= EXCERPT else written[: EXCERPT - 1] + "…"
