"""Calls of tools, their progress and their results, if no rule finds anything in them.

These are nearly all messages of a long session. `OrdinaryCalls` recognises them without making an event and asking
each rule. It knows the conditions of the rules in `KNOWN` only: with other rules about calls it recognises nothing, and
each message goes through all of them. A test compares both ways on the examples of all rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import orjson
from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from mcpspy.analysis.lint.failure_text import may_be_failure
from mcpspy.analysis.lint.finding import EntryPosition, EventKind
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules.agent import Calls, FailedRequests, may_name_object
from mcpspy.analysis.lint.rules.http import SESSION, VERSION
from mcpspy.analysis.lint.rules.http_requests import METHOD, NAME
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.analysis.lint.shapes import shape_of
from mcpspy.analysis.lint.state import (
    REQUESTS,
    ConversationState,
    HttpPost,
    LintState,
    ListedTool,
    PendingRequest,
    PostedMessage,
)
from mcpspy.core.protocol.mcp_headers import is_sentinel
from mcpspy.core.protocol.message import AnyMessage, Failure, loads
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.plain_line import ABSENT, UnreadNotification, UnreadRequest, UnreadResult
from mcpspy.core.protocol.spec import CLIENT, META, METHOD_NOT_FOUND, MODERN, REVISIONS, SERVER
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change

KNOWN = frozenset(
    """AGENT101 AGENT102 AGENT103 AGENT104 AGENT107 DATA201 DATA301 DATA302 DATA303 DATA305 DATA307 DATA411 DATA603 DATA706 ENV104 ENV105 ENV106 ENV107 ENV108
    ENV110 ENV113 ENV117 ENV201 ENV202 ENV204 ENV205 ENV206 ENV207 ENV208 HOST201 HOST202 HOST301 HOST302 LIFE102 LIFE103 LIFE106 LIFE113
    HTTP101 HTTP102 HTTP103 HTTP104 HTTP106 HTTP202 HTTP205 HTTP302 HTTP303 HTTP304 HTTP307 HTTP502
    LIFE202 LIFE302 LIFE303 LIFE406
    MOD106 MOD108 MOD201 MOD305""".split()
)
"""The rules about calls, their results and their HTTP exchanges, beside those on shapes, whose conditions are tested here."""

MOST = 64
"""Maximum number of each thing that is remembered."""

CALL = "tools/call"
PROGRESS = "notifications/progress"

# Reading a member of an Enum runs Python code; reading a name does not.
_OK, _TOOL_ERROR, _ERROR = State.OK, State.TOOL_ERROR, State.ERROR
_REQUEST, _RESULT = EventKind.REQUEST, EventKind.RESULT

_EVENTS = (
    (_REQUEST, CALL, CLIENT),
    (_RESULT, CALL, SERVER),
    (EventKind.FAILURE, CALL, SERVER),
    (EventKind.NOTIFICATION, PROGRESS, SERVER),
    (EventKind.POST, REQUESTS, CLIENT),
    *((EventKind.NOTE, kind, side) for kind in ("http", "http-end") for side in ("", CLIENT, SERVER)),
)


class _Text(Struct, gc=False, forbid_unknown_fields=True):
    type: Literal["text"]
    text: Raw


class _TextResult(Struct, gc=False, forbid_unknown_fields=True):
    """The result of a call that has the shape of all revisions: nothing but texts, and an object beside them."""

    content: list[_Text]
    is_error: bool = field(name="isError", default=False)
    structured: Raw = field(name="structuredContent", default=ABSENT)
    type: Literal["", "complete"] = field(name="resultType", default="")
    meta: Raw = field(name="_meta", default=ABSENT)


class _Answer(Struct, gc=False):
    result: _TextResult


_decode_answer = Decoder(_Answer).decode


class _Error(Struct, gc=False):
    code: int
    message: str


class _ErrorResponse(Struct, gc=False):
    error: _Error


_decode_error = Decoder(_ErrorResponse).decode


class _ProgressParams(Struct, gc=False, forbid_unknown_fields=True):
    progressToken: str | int  # noqa: N815 - its name on the wire.
    progress: int | float
    total: int | float = 0
    message: str = ""


class _Progress(Struct, gc=False):
    params: _ProgressParams


_decode_progress = Decoder(_Progress).decode


class _KnownMeta(NamedTuple):
    """The `_meta` of a request in which the rules found nothing."""

    members: dict[str, Any]
    """Without the progress token."""
    peers: Peers
    """The description of the client in it."""


class OrdinaryCalls:
    """The recognition of ordinary messages in one session, whose state it updates as the linter would.

    Over HTTP, each POST of 2026-07-28 is a conversation, which is described in `_meta`; and each HTTP exchange is checked
    as a whole at its end. Both are the same again and again, so those in which the rules found nothing are remembered.
    """

    def __init__(self, rules: Iterable[LintRule], state: LintState) -> None:
        self._state = state
        self._failed, self._calls = state.memory[FailedRequests], state.memory[Calls]
        self.is_possible = all(
            rule.code in KNOWN or rule.only_shape
            for rule in rules
            if any(rule.concerns(*event) for event in _EVENTS)
        )
        """False if there are other rules."""
        self._hosts: tuple[HostProfile, ...] = ()
        self._most = 0, 0
        """The smallest limits of the hosts: bytes of a result, and seconds until it."""
        self._with_tools: dict[str, Any] | None = None
        """The latest capabilities of a server that has tools."""
        self._metas: list[_KnownMeta] = []
        self._result_metas: dict[bytes, Peer | None] = {}
        """`_meta` of a first result in a conversation → the server."""
        self._shaped_metas: list[tuple[str, dict[str, Any]]] = []
        """Revision, and `_meta` of requests that has its shape, without the progress token."""
        self._shaped_result_metas: set[tuple[str, bytes]] = set()
        """Revision, and `_meta` of results that has its shape."""
        self._ends: set[tuple[object, ...]] = set()
        """Common traits of HTTP exchanges in which the rules found nothing (`_end_key`)."""

    def take(self, change: Change, place: EntryPosition) -> bool:
        """Take a change; return False, and change nothing, if some rule may report it."""
        what, exchange = change.what, change.exchange
        if not self.is_possible or change.flaw is not None:
            return False
        if exchange is None:
            return type(what) is Note and self._take_note(what)
        if exchange.request.frame.by is not None:
            return False
        # A test of an object against a class that is not exactly its own takes as long as a call.
        if type(what) is UnreadResult:
            return self._take_result(what, exchange)
        if type(what) is UnreadRequest:
            return self._take_request(change, what, exchange, place)
        if type(what) is Failure:
            return self._take_failure(what, exchange)
        return type(what) is UnreadNotification and self._take_progress(what, exchange)

    def learn(self, what: AnyMessage) -> None:
        """Remember the `_meta` of a message of an HTTP exchange in which the rules found nothing."""
        frame = what.frame
        conversation = self._state.conversations.get(frame.stream)
        if frame.http is None or conversation is None or (conversation.revision or "") < MODERN:
            return
        if isinstance(what, UnreadRequest) and what.method == CALL:
            meta = _members(what).get("_meta")
            if isinstance(meta, dict) and META + "logLevel" not in meta:
                meta.pop("progressToken", None)
                peers = Peers()
                peers.take_client(conversation)
                self._metas = [_KnownMeta(meta, peers), *self._metas[: MOST - 1]]
        elif isinstance(what, UnreadResult) and len(self._result_metas) < MOST:
            with suppress(DecodeError, RecursionError):
                self._result_metas[bytes(_decode_answer(what.data).result.meta)] = conversation.server

    def learn_end(self, post: HttpPost, conversation: ConversationState) -> None:
        """Remember an HTTP exchange in which the rules found nothing."""
        if len(self._ends) < MOST and (key := self._end_key(post, conversation)) is not None:
            self._ends.add(key)

    def _known_meta(self, meta: dict[str, Any]) -> _KnownMeta | None:
        """Return what is known of the `_meta` of a request; None if the rules have not checked one like it."""
        if "progressToken" in meta:
            meta = {name: value for name, value in meta.items() if name != "progressToken"}
        return next((known for known in self._metas if known.members == meta), None)

    def _take_request(
        self, change: Change, what: UnreadRequest, exchange: Exchange, place: EntryPosition
    ) -> bool:
        frame, state, subject = what.frame, self._state, what.about
        tool, conversation = state.tools.get(subject), state.conversations.get(frame.stream)
        if (
            tool is None
            or what.method != CALL
            or frame.side != CLIENT
            or (frame.eol != "\n" and frame.http is None)
            or state.tools_changed_at is not None
            or tool.param_headers.headers
            or "execution" in tool.definition
        ):
            return False
        params = _members(what)
        meta, known = params.pop("_meta", None), None
        if conversation is None:
            known = self._known_meta(meta) if frame.http is not None and isinstance(meta, dict) else None
            revision = None if known is None else known.peers.revision
            declared = state.server_capabilities
        else:
            revision = _stated_revision(conversation, meta)
            has_own = conversation.has_capabilities
            declared = conversation.server_capabilities if has_own else state.server_capabilities
        if declared is None or revision not in REVISIONS:
            return False
        if declared is not self._with_tools:
            if not has_capability(declared, "tools"):
                return False
            self._with_tools = declared
        arguments, calls = params.get("arguments"), self._calls
        call = subject, arguments
        if (
            not isinstance(arguments, dict)
            or (conversation is not None and not _is_usual(conversation, revision))
            or len(params) != 2  # Its name, which is that of the tool, and its arguments.
            or not (meta is None or known is not None or self._is_shaped(params, meta, revision))
            or tool.arguments.accepts(arguments) is False
            or call in (calls.last, calls.before)
            or (self._failed.of and self._failed.is_retry((CALL, subject), params, frame.at))
        ):
            return False
        calls.add(call, change.number)
        if conversation is None:
            conversation = state.conversation(frame.stream)
            assert known is not None
            conversation.take_client(known.peers)
        state.open[id(exchange)] = PendingRequest(
            exchange, conversation, place, change.number, revision, subject
        )
        conversation.has_notified[CLIENT] = False
        if frame.http is not None:
            post = state.post(frame.http, place, change.number, frame.at)
            if known is None:
                post.add(what, _REQUEST, CALL, subject)
            else:
                has_capabilities = META + "clientCapabilities" in known.members
                post.posted.append(PostedMessage(_REQUEST, CALL, subject, revision, has_capabilities))
        return True

    def _take_result(self, what: UnreadResult, exchange: Exchange) -> bool:
        state, frame = self._state, what.frame
        pending, conversation = state.open.get(id(exchange)), state.conversations.get(frame.stream)
        if (
            pending is None
            or conversation is None
            or exchange.state is not (_TOOL_ERROR if what.is_tool_error else _OK)
            or (subject := pending.subject) is None
            or (revision := pending.revision) is None
            or exchange.request.method != CALL
            or frame.side != SERVER
            or (frame.eol != "\n" and frame.http is None)
            or not _is_usual(conversation, revision)
            or (revision >= MODERN and (state.is_legacy_server is not False or state.lacks_discover))
            or (state.hosts and self._is_beyond(what, exchange))
        ):
            return False
        try:
            result = _decode_answer(what.data).result
        except (DecodeError, RecursionError):
            return False
        meta = bytes(result.meta)
        is_first = conversation.server is None or conversation.revision != conversation.agreed_revision
        if is_first and (frame.http is None or revision < MODERN or meta not in self._result_metas):
            return False
        post = None if frame.http is None else state.posts.get(frame.http)
        if frame.http is not None and (post is None or post.status >= 400):
            return False
        if result.is_error is not what.is_tool_error:
            return False
        if not self._is_ordinary(result, state.tools.get(subject), subject, revision, is_known=is_first):
            return False
        if is_first:
            conversation.accept_revision()
            conversation.server = self._result_metas[meta]
        self._settle(pending, what.frame.at)
        if post is not None:
            post.received += 1
            post.answers.append(None)
        return True

    def _take_failure(self, what: Failure, exchange: Exchange) -> bool:
        """Take the JSON-RPC error of a call on stdio, if it has the form of all revisions."""
        state, frame = self._state, what.frame
        pending, conversation = state.open.get(id(exchange)), state.conversations.get(frame.stream)
        if (
            pending is None
            or conversation is None
            or exchange.state is not _ERROR
            or pending.subject is None
            or (revision := pending.revision) is None
            or exchange.request.method != CALL
            or (frame.side, frame.eol, frame.http) != (SERVER, "\n", None)
            or what.id is None
            or what.index is not None
            or what.flaws
            or not _is_usual(conversation, revision)
            or (revision >= MODERN and state.is_legacy_server is not False)
            or (state.hosts and self._is_beyond(what, exchange))
        ):
            return False
        try:
            code = _decode_error(what.data).error.code
        except (DecodeError, RecursionError):
            return False
        if code == METHOD_NOT_FOUND:
            return False
        self._settle(pending, frame.at)
        return True

    def _settle(self, pending: PendingRequest, at: float) -> None:
        """Take that a call has its response."""
        exchange, conversation, call = pending.exchange, pending.conversation, (CALL, pending.subject)
        if exchange.state is not _OK:
            self._failed.fail(call, exchange, at)
        elif self._failed.of:
            self._failed.succeed(call, exchange)
        del self._state.open[id(exchange)]
        if conversation.tokens and (token := exchange.request.progress_token) is not None:
            conversation.tokens.pop((CLIENT, token), None)
        conversation.has_notified[CLIENT] = conversation.has_notified[SERVER] = False

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
            post.received += 1
        return True

    def _take_note(self, note: Note) -> bool:
        """Take the head or the end of an HTTP exchange with a call and its result."""
        number: Any = note.fields.get("http")
        posts = self._state.posts
        post = posts.get(number) if isinstance(number, int) else None
        if post is None or len(post.posted) != 1 or post.posted[0].method != CALL:
            return False
        if note.kind == "http":
            post.head, post.answered_at = note.fields, note.at
            return True
        if note.kind != "http-end":
            return False
        stream = note.fields.get("stream")
        conversation = self._state.conversations.get(stream if isinstance(stream, str) else None)
        if conversation is None or self._end_key(post, conversation) not in self._ends:
            return False
        posts.pop(number, None)
        return True

    def _end_key(self, post: HttpPost, conversation: ConversationState) -> tuple[object, ...] | None:
        """Return all that the rules about HTTP exchanges read of one with a call and its result, and of the state.

        None if it is not such an exchange, or if some rule compares its headers with the call.
        """
        head, state = post.head, self._state
        posted = post.posted[0] if len(post.posted) == 1 else None
        if (
            head is None
            or posted is None
            or posted.method != CALL
            or post.answers != [None]
            or head.get("status") != 200
            or post.deferred
            or post.param_headers
            or conversation.is_sse
        ):
            return None
        request, response = post.request, post.response
        name = request.get(NAME)
        is_plain = isinstance(name, str) and name.isascii() and name.isprintable() and not is_sentinel(name)
        if name is not None and not (is_plain and name == posted.subject):
            return None
        tool = state.tools.get(posted.subject or "")
        if tool is not None and (tool.param_headers.headers or tool.param_headers.wrong):
            return None
        session_id = request.get(SESSION)
        return (
            head.get("method"),
            head.get("path"),
            *map(request.get, (VERSION, METHOD, SESSION, "accept")),
            name is not None,
            "authorization" in request,
            response.get("content-type"),
            response.get(SESSION),
            posted.revision,
            conversation.revision,
            state.revision,
            bool(state.session_ids),
            session_id in state.session_ids,
            session_id in state.authorized,
        )

    def _is_ordinary(
        self, result: _TextResult, tool: ListedTool | None, subject: str, revision: str, *, is_known: bool
    ) -> bool:
        """Return whether a result is text, what the schema of its tool demands, and no error message without `isError`.

        `is_known`: its `_meta` has been checked.
        """
        structured, output = bytes(result.structured), None if tool is None else tool.output
        if bool(result.type) != (revision >= MODERN):
            return False
        if structured and (structured[:1] != b"{" or not result.content or self._is_hidden()):
            return False
        if output is not None and (
            output.accepts(loads(structured)) is False if structured else not result.is_error
        ):
            return False
        if result.meta and not is_known and not self._is_shaped_result_meta(bytes(result.meta), revision):
            return False
        text = b""
        for each in result.content:
            text = bytes(each.text)
            if text[:1] != b'"' or may_name_object(text):
                return False
        return result.is_error or len(result.content) != 1 or not may_be_failure(text, subject)

    def _is_shaped(self, params: dict[str, Any], meta: dict[str, Any], revision: str) -> bool:
        """Return whether a request with these params has the shape of the revision. Most have the same `_meta`."""
        token = meta.get("progressToken", "")
        rest = {name: value for name, value in meta.items() if name != "progressToken"}
        if type(token) in (str, int) and (revision, rest) in self._shaped_metas:
            return True
        if not shape_of(_REQUEST, CALL, revision).accepts({**params, "_meta": meta}):
            return False
        self._shaped_metas = [(revision, rest), *self._shaped_metas[:3]]
        return True

    def _is_shaped_result_meta(self, meta: bytes, revision: str) -> bool:
        """Return whether the `_meta` of a result has the shape of the revision."""
        key = revision, meta
        if key in self._shaped_result_metas:
            return True
        example = {"content": [], "resultType": "complete", "_meta": loads(meta)}
        if not shape_of(_RESULT, CALL, revision).accepts(example):
            return False
        if len(self._shaped_result_metas) < MOST:
            self._shaped_result_metas.add(key)
        return True

    def _is_beyond(self, what: UnreadResult | Failure, exchange: Exchange) -> bool:
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


def _members(what: UnreadRequest) -> dict[str, Any]:
    """Return the params of a request; empty if they are not an object."""
    try:
        params = orjson.loads(what.data).get("params")
    except ValueError:
        return {}
    return params if isinstance(params, dict) else {}


def _stated_revision(conversation: ConversationState, meta: object) -> str | None:
    """Return the revision of a request with this `_meta`; None if it has to be checked."""
    revision = conversation.revision
    if conversation.client is None or revision is None or revision != conversation.agreed_revision:
        return None
    if meta is None:
        return revision
    if not isinstance(meta, dict) or META + "logLevel" in meta:
        return None
    stated = meta.get(META + "protocolVersion", revision)
    return stated if isinstance(stated, str) else None


def _is_usual(conversation: ConversationState, revision: str) -> bool:
    """Return whether a message comes between the handshake, where there is one, and the end of the session."""
    has_begun = revision >= MODERN or (conversation.is_negotiated and conversation.is_initialized)
    return has_begun and conversation.closed_at is None
