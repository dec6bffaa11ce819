"""Calls of tools, their progress and their results, if no rule finds anything in them.

These are nearly all messages of a long session. `OrdinaryCalls` recognises them without making an event and asking
each rule. It knows the conditions of the rules in `KNOWN` only: with other rules about calls it recognises nothing, and
each message goes through all of them. A test compares both ways on the examples of all rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import orjson
from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from mcpspy.analysis.lint.event import is_call
from mcpspy.analysis.lint.failure_text import may_be_failure
from mcpspy.analysis.lint.finding import EntryPosition, EventKind
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules.agent import Calls, FailedRequests
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.analysis.lint.shapes import shape_of
from mcpspy.analysis.lint.state import ConversationState, LintState, ListedTool, PendingRequest
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.plain_line import ABSENT, UnreadNotification, UnreadRequest, UnreadResult
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, REVISIONS, SERVER
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change

KNOWN = frozenset(
    """AGENT101 AGENT102 AGENT103 AGENT104 DATA201 DATA301 DATA302 DATA303 DATA307 DATA411 DATA706 ENV104 ENV105 ENV108
    ENV110 ENV113 ENV117 ENV201 ENV202 ENV204 ENV205 ENV206 ENV207 HOST201 HOST202 HOST301 HOST302 LIFE102 LIFE103 LIFE106 LIFE113
    LIFE202 LIFE302 LIFE303 LIFE406
    MOD106 MOD108 MOD201 MOD305""".split()
)
"""The rules about calls and their results, beside those on shapes, whose conditions are tested here."""

CALL = "tools/call"
PROGRESS = "notifications/progress"

# Reading a member of an Enum runs Python code; reading a name does not.
_OK, _REQUEST, _RESULT = State.OK, EventKind.REQUEST, EventKind.RESULT

_EVENTS = (
    (_REQUEST, CALL, CLIENT),
    (_RESULT, CALL, SERVER),
    (EventKind.NOTIFICATION, PROGRESS, SERVER),
)


class _Text(Struct, gc=False, forbid_unknown_fields=True):
    type: Literal["text"]
    text: Raw


class _TextResult(Struct, gc=False, forbid_unknown_fields=True):
    """The result of a call that has the shape of all revisions: nothing but texts, and an object beside them."""

    content: list[_Text]
    is_error: Literal[False] = field(name="isError", default=False)
    structured: Raw = field(name="structuredContent", default=ABSENT)
    type: Literal["", "complete"] = field(name="resultType", default="")
    meta: Raw = field(name="_meta", default=ABSENT)


class _Answer(Struct, gc=False):
    result: _TextResult


_decode_answer = Decoder(_Answer).decode


class _ProgressParams(Struct, gc=False, forbid_unknown_fields=True):
    progressToken: str | int  # noqa: N815 - its name on the wire.
    progress: int | float
    total: int | float = 0
    message: str = ""


class _Progress(Struct, gc=False):
    params: _ProgressParams


_decode_progress = Decoder(_Progress).decode


class OrdinaryCalls:
    """The recognition of ordinary messages in one session, whose state it updates as the linter would."""

    def __init__(self, rules: Iterable[LintRule], state: LintState) -> None:
        self._state = state
        self._failed, self._calls = state.memory[FailedRequests].of, state.memory[Calls]
        self.is_possible = all(
            rule.code in KNOWN or rule.only_shape
            for rule in rules
            if any(rule.concerns(*event) for event in _EVENTS)
        )
        """False if there are other rules."""
        self._hosts: tuple[HostProfile, ...] = ()
        self._most = 0, 0
        """The smallest limits of the hosts: bytes of a result, and seconds until it."""

    def take(self, change: Change, place: EntryPosition) -> bool:
        """Take a change; return False, and change nothing, if some rule may report it."""
        what, exchange = change.what, change.exchange
        if (
            exchange is None
            or change.flaw is not None
            or not self.is_possible
            or exchange.request.frame.by is not None
        ):
            return False
        if isinstance(what, UnreadResult):
            return self._take_result(what, exchange)
        if isinstance(what, UnreadRequest):
            return self._take_request(change, what, place)
        return isinstance(what, UnreadNotification) and self._take_progress(what, exchange)

    def _take_request(self, change: Change, what: UnreadRequest, place: EntryPosition) -> bool:
        exchange, frame, state, subject = change.exchange, what.frame, self._state, what.about
        tool, conversation = state.tools.get(subject), state.conversations.get(frame.stream)
        if (
            tool is None
            or conversation is None
            or exchange is None
            or what.method != CALL
            or frame.side != CLIENT
            or (frame.eol != "\n" and frame.http is None)
            or conversation.client is None
            or conversation.revision is None
            or conversation.revision != conversation.agreed_revision
            or state.tools_changed_at is not None
            or tool.param_headers.headers
            or "execution" in tool.definition
            or (self._failed and (CALL, subject) in self._failed)
        ):
            return False
        declared = (
            conversation.server_capabilities if conversation.has_capabilities else state.server_capabilities
        )
        revision = conversation.revision or state.revision
        try:
            params = orjson.loads(what.data).get("params")
        except ValueError:
            return False
        if declared is None or not has_capability(declared, "tools") or not isinstance(params, dict):
            return False
        if (meta := params.get("_meta")) is not None:
            if not isinstance(meta, dict) or META + "logLevel" in meta:
                return False
            revision = meta.get(META + "protocolVersion", revision)
        if revision not in REVISIONS or not _is_usual(conversation, revision):
            return False
        arguments, calls = params.get("arguments"), self._calls
        call = subject, arguments
        if (
            not isinstance(arguments, dict)
            or not (is_call(params) or shape_of(_REQUEST, CALL, revision).accepts(params))
            or tool.arguments.accepts(arguments) is False
            or call in (calls.last, calls.before)
        ):
            return False
        calls.add(call, change.number)
        state.open[id(exchange)] = PendingRequest(
            exchange, conversation, place, change.number, revision, subject
        )
        conversation.has_notified[CLIENT] = False
        if frame.http is not None:
            state.post(frame.http, place, change.number, frame.at).add(what, _REQUEST, CALL, subject)
        return True

    def _take_result(self, what: UnreadResult, exchange: Exchange) -> bool:
        state, frame = self._state, what.frame
        pending, conversation = state.open.get(id(exchange)), state.conversations.get(frame.stream)
        if (
            pending is None
            or conversation is None
            or exchange.state is not _OK
            or (subject := pending.subject) is None
            or (revision := pending.revision) is None
            or exchange.request.method != CALL
            or frame.side != SERVER
            or (frame.eol != "\n" and frame.http is None)
            or conversation.server is None
            or conversation.revision != conversation.agreed_revision
            or not _is_usual(conversation, revision)
            or (revision >= MODERN and (state.is_legacy_server is not False or state.lacks_discover))
            or (self._failed and (CALL, subject) in self._failed)
            or (state.hosts and self._is_beyond(what, exchange))
        ):
            return False
        post = None if frame.http is None else state.posts.get(frame.http)
        if frame.http is not None and (post is None or post.status >= 400):
            return False
        tool = state.tools.get(subject)
        if not self._is_ordinary(what.data, tool, subject, revision):
            return False
        del state.open[id(exchange)]
        if conversation.tokens and (token := exchange.request.progress_token) is not None:
            conversation.tokens.pop((CLIENT, token), None)
        conversation.has_notified[CLIENT] = conversation.has_notified[SERVER] = False
        if post is not None:
            post.add(what, _RESULT, CALL, None)
        return True

    def _take_progress(self, what: UnreadNotification, exchange: Exchange) -> bool:
        state, frame = self._state, what.frame
        conversation = state.conversations.get(frame.stream)
        if (
            what.method != PROGRESS
            or conversation is None
            or frame.side != SERVER
            or (frame.eol != "\n" and frame.http is None)
            or exchange.request.side != CLIENT
            or not _is_usual(conversation, conversation.revision or "")
        ):
            return False
        post = None if frame.http is None else state.posts.get(frame.http)
        if frame.http is not None and (post is None or post.status >= 400):
            return False
        try:
            _decode_progress(what.data)
        except DecodeError:
            return False
        conversation.has_notified[SERVER] = True
        if post is not None:
            post.add(what, EventKind.NOTIFICATION, PROGRESS, None)
        return True

    def _is_ordinary(self, data: bytes, tool: ListedTool | None, subject: str, revision: str) -> bool:
        """Return whether a result is text, no error message, and what the schema of its tool demands."""
        try:
            result = _decode_answer(data).result
        except (DecodeError, RecursionError):
            return False
        structured, output = bytes(result.structured), None if tool is None else tool.output
        if bool(result.type) != (revision >= MODERN):
            return False
        if structured and (structured[:1] != b"{" or self._is_hidden()):
            return False
        if output is not None and (not structured or output.accepts(loads(structured)) is False):
            return False
        if result.meta and not shape_of(_RESULT, CALL, revision).accepts(
            {"content": [], "resultType": "complete", "_meta": loads(result.meta)}
        ):
            return False
        texts = [bytes(each.text) for each in result.content]
        if any(text[:1] != b'"' for text in texts):
            return False
        return len(texts) != 1 or not may_be_failure(texts[0], subject)

    def _is_beyond(self, what: UnreadResult, exchange: Exchange) -> bool:
        """Return whether a result is larger or later than some host allows."""
        if self._state.hosts is not self._hosts:
            self._hosts = self._state.hosts
            sizes, times = (
                [limit.max for host in self._hosts for limit in host.of(on)] for on in ("result", "timeout")
            )
            self._most = min(sizes, default=1 << 60), min(times, default=1 << 60)
        size, seconds = self._most
        return len(what.data) > size or what.frame.at - exchange.request.frame.at >= seconds

    def _is_hidden(self) -> bool:
        """Return whether some host does not show `structuredContent`."""
        limits = (limit for host in self._state.hosts for limit in host.of("content"))
        return any("structuredContent" in limit.words for limit in limits)


def _is_usual(conversation: ConversationState, revision: str) -> bool:
    """Return whether a message comes between the handshake, where there is one, and the end of the session."""
    return conversation.is_usual or (revision >= MODERN and conversation.closed_at is None)
