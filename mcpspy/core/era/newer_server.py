"""A host with a handshake (2024-11-05 to 2025-11-25) and a server of 2026-07-28.

Theory of operation. mcpspy answers what that revision has no longer: the handshake, `ping`, the log level, and
subscriptions. Each request of the host gets the `_meta` of 2026-07-28, made from the host's `initialize`, and keeps its
id. A result `input_required` becomes requests to the host; its answers go with the repeated request, under an id of
mcpspy, and the response to that has the host's id (basic/patterns/mrtr). One `subscriptions/listen` is open for the lists
that the server announces and all resources that the host subscribed to; it is replaced by another when these change
(basic/patterns/subscriptions).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct
from msgspec.json import encode

from mcpspy.core.era.commands import Command, Fail, Later, SendToHost, SendToServer, TranslationNote
from mcpspy.core.era.messages import (
    ACKNOWLEDGED,
    ASKING,
    CANCELLED,
    INITIALIZE,
    INITIALIZED,
    LEVEL,
    LISTEN,
    LISTS,
    PROGRESS,
    QUESTIONS,
    SERVER_INFO,
    SET_LEVEL,
    SUBSCRIBE_TO,
    SUBSCRIPTION,
    UNKNOWN_PEER,
    UNSUBSCRIBE,
    OwnIds,
    cancelled,
    capabilities,
    edited,
    error,
    for_older_host,
    is_modern,
    meta_of,
    object_in,
    params_of,
    request,
    request_meta,
    result,
    result_of,
    revision_of,
    without_subscription,
)
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    meta_raw,
    raw_members,
    text,
)
from mcpspy.core.protocol.spec import INTERNAL_ERROR, INVALID_PARAMS, LEVELS, METHOD_NOT_FOUND, MODERN
from mcpspy.core.rules.edit import to_json

MOST_ROUNDS = 20
"""Results `input_required` for one request after which the host gets an error: a server may ask forever."""

RETRY, LONGEST_RETRY = 1.0, 60.0
"""Seconds before a lost subscription is opened again; twice as long after each loss, at most this long."""

ANSWERED = frozenset({INITIALIZE, "ping", SET_LEVEL, SUBSCRIBE_TO, UNSUBSCRIBE})
"""Requests that mcpspy answers."""

DROPPED = frozenset({INITIALIZED, CANCELLED, PROGRESS, "notifications/roots/list_changed"})
"""Notifications that 2026-07-28 does not have over HTTP; a cancellation closes the exchange of its request."""


class _Call(Struct, eq=False):
    """A request of the host that waits for its response."""

    id: str
    method: str
    data: bytes
    """The request as the server gets it."""
    sent_id: str
    """The id under which the server has it; empty while the host is asked."""
    rounds: int = 0
    state: bytes = b""
    answers: dict[str, Raw | None] = {}
    """Key of each question → the host's answer; None while it is open."""


class NewerServer:
    """The translation. One instance for one session."""

    def __init__(self, ids: OwnIds, initialize: Request, discovered: Result) -> None:
        """`initialize` and `discovered` are the offers of the host and of the server."""
        self._ids = ids
        self._discovered = discovered
        self._level = ""
        self._calls: dict[str, _Call] = {}
        """By the host's id."""
        self._sent: dict[str, _Call] = {}
        """By the id that the server has."""
        self._questions: dict[str, tuple[_Call, str]] = {}
        """Open requests to the host → the call, and the key of the question."""
        self._uris: dict[str, None] = {}
        self._waiting: list[tuple[str, str]] = []
        """Open `resources/subscribe` requests, each with its URI."""
        self._listening = ""
        """Id of the acknowledged subscription."""
        self._opening = ""
        """Id of the subscription that follows it."""
        self._retry = RETRY
        self._take(initialize)

    def _take(self, initialize: Request) -> None:
        self.revision = revision_of(initialize)
        declared = capabilities(params_of(initialize).get("capabilities"))
        if "roots" in declared:  # `listChanged` is gone: the server asks for the roots when it needs them.
            declared["roots"] = {}
        self._host = declared
        self._meta = request_meta(initialize, declared)

    def begin(self, initialize: Request) -> list[Command]:
        """Return the commands that begin the session: a note, and the response to the host's `initialize`."""
        return [TranslationNote("begin", self.revision, MODERN), *self._initialized(initialize)]

    def has(self, id: str) -> bool:  # noqa: A002
        """Return whether the server has a request of the host under this id."""
        return id in self._sent

    def keeps(self, message: AnyMessage) -> bool:
        """Return whether a message of the host is not forwarded to the server."""
        if isinstance(message, Request):
            return message.method in ANSWERED or message.method.startswith("tasks/")
        if isinstance(message, Notification):
            return message.method in DROPPED
        return isinstance(message, Result | Failure)

    def client(self, message: AnyMessage, data: bytes, carrier: object) -> list[Command]:
        """Take a message of the host, which is recorded."""
        if isinstance(message, Request):
            return self._requested(message, data, carrier)
        if isinstance(message, Result | Failure):
            return self._answered(message)
        if not isinstance(message, Notification) or message.method not in DROPPED:
            return [SendToServer(data, carrier)]
        if message.method == INITIALIZED:
            return self._listen()
        if message.method == CANCELLED:
            return self._cancel(text(message.body.request_id) or "")
        return []

    def server(self, message: AnyMessage, data: bytes, _: str | None) -> list[Command]:
        """Take a message of the server. It is recorded; without a `SendToHost` of it, it is not forwarded."""
        if isinstance(message, Result | Failure) and message.id is not None:
            return self._responded(message, data)
        if isinstance(message, Notification):
            return self._notified(message, data)
        return [SendToHost(data, is_own=False)]

    def failed(self, id: str, why: str) -> list[Command]:  # noqa: A002
        """Take the loss of a request that the server has."""
        if id in (self._opening, self._listening):
            return self._lost(id, why)
        call = self._sent.pop(id, None)
        if call is None:
            return [] if self._ids.has(id) else [Fail(id, why)]
        return self._fail(call, why)

    # The host's requests.

    def _requested(self, message: Request, data: bytes, carrier: object) -> list[Command]:
        id, method = message.id, message.method  # noqa: A001
        if method == INITIALIZE:
            self._take(message)
            return self._initialized(message)
        if method == "ping":
            return [SendToHost(result(id, {}))]
        if method == SET_LEVEL:
            return [SendToHost(self._set_level(message))]
        if method in (SUBSCRIBE_TO, UNSUBSCRIBE):
            return self._subscribe(message)
        if method.startswith("tasks/"):
            why = "the tasks of 2025-11-25 cannot be carried to a server of 2026-07-28"
            return [SendToHost(error(id, METHOD_NOT_FOUND, why))]
        if is_modern(message):
            return [SendToServer(data, carrier)]
        members = {name: to_json(value) for name, value in self._meta.items()}
        if self._level:
            members[LEVEL] = to_json(self._level)
        data = edited(data, ("params", "_meta"), members)
        if message.body.task:
            # Receivers without the capability ignore it (basic/utilities/tasks, 2025-11-25).
            data = edited(data, ("params",), {"task": None})
        self._calls[id] = self._sent[id] = _Call(id, method, data, id)
        return [SendToServer(data, carrier)]

    def _initialized(self, message: Request) -> list[Command]:
        offered = result_of(self._discovered)
        info = offered.get("serverInfo") or meta_of(self._discovered).get(SERVER_INFO)
        value = {
            "protocolVersion": self.revision,
            "capabilities": capabilities(offered.get("capabilities")),
            "serverInfo": info or UNKNOWN_PEER,
        }
        if isinstance(instructions := offered.get("instructions"), str):
            value["instructions"] = instructions
        return [SendToHost(result(message.id, value))]

    def _set_level(self, message: Request) -> bytes:
        level = params_of(message).get("level")
        if "logging" not in self._offered:
            return error(message.id, METHOD_NOT_FOUND, "the server does not declare logging")
        if level not in LEVELS:
            return error(message.id, INVALID_PARAMS, f"{str(level)[:40]} is not a log level")
        self._level = level
        return result(message.id, {})

    @property
    def _offered(self) -> dict[str, Any]:
        return object_in(result_of(self._discovered), "capabilities")

    def _cancel(self, id: str) -> list[Command]:  # noqa: A002
        call = self._calls.pop(id, None)
        if call is None:
            return []
        self._sent.pop(call.sent_id, None)
        if call.sent_id:  # Its exchange is closed (basic/patterns/cancellation).
            return [SendToServer(cancelled(call.sent_id))]
        return self._withdraw(call, "the host cancelled the request")

    # Responses, and questions of the server.

    def _responded(self, message: Result | Failure, data: bytes) -> list[Command]:
        assert message.id is not None
        if message.id in (self._opening, self._listening):
            return self._lost(
                message.id, message.text if isinstance(message, Failure) else "the server ended it"
            )
        call = self._sent.pop(message.id, None)
        if call is None:  # A second response, or one to a request that is not translated.
            return (
                []
                if self._ids.has(message.id) or message.id in self._calls
                else [SendToHost(data, is_own=False)]
            )
        if isinstance(message, Result) and message.result_type == "input_required":
            return self._ask(call, message)
        if isinstance(message, Result) and message.is_task:
            return self._fail(call, "the server answered with a task, which the host cannot follow")
        self._calls.pop(call.id, None)
        if isinstance(message, Result):
            data = for_older_host(data, call.method)
        if call.id == message.id:
            return [SendToHost(data, is_own=False)]
        return [SendToHost(edited(data, (), {"id": call.id.encode()}))]

    def _ask(self, call: _Call, message: Result) -> list[Command]:
        """Ask the host what the server needs, and repeat the request when all is answered."""
        questions = raw_members(message.body.input_requests) if message.body.input_requests else {}
        call.rounds, call.sent_id = call.rounds + 1, ""
        call.state = bytes(message.body.request_state)
        call.answers = dict.fromkeys(questions)
        if call.method not in ASKING:
            return self._fail(call, f"the server asks for input to {call.method}, which it must not")
        if call.rounds > MOST_ROUNDS:
            return self._fail(call, f"the server still asks after {MOST_ROUNDS} answers")
        commands: list[Command] = []
        for key, question in questions.items():
            method, params = text(meta_raw(question, "method")) or "", meta_raw(question, "params")
            if (why := self._not_askable(method.strip('"'), params)) is not None:
                return self._withdraw(call, why) + self._fail(call, why)
            members: dict[str, bytes | None] = {}
            if method == '"elicitation/create"':
                members = self._elicitation(params)
            id_ = self._ids.new()
            self._questions[id_] = call, key
            asked = b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (id_.encode(), method.encode())
            if bytes(params):
                asked = edited(asked, (), {"params": edited(bytes(params), (), members)})
            commands.append(SendToHost(asked))
        return commands or self._repeat(call)

    def _not_askable(self, method: str, params: Raw) -> str | None:
        """Return why the host cannot be asked this; None if it can."""
        capability = QUESTIONS.get(method)
        if capability is None:
            return f"the server asks for {method[:60]}, which no host has"
        if capability not in self._host:
            return f"the server asks for {method}, which the host does not declare"
        if _mode(params) == "url" and "url" not in object_in(self._host, capability):
            return "the server asks the user to open a URL, which the host does not declare"
        return None

    def _elicitation(self, params: Raw) -> dict[str, bytes | None]:
        """Return the members that the host's revision needs (2025-11-25: `elicitationId`; before it, no `mode`)."""
        if _mode(params) == "url":
            return {"elicitationId": self._ids.new().encode()}
        return {"mode": None} if self.revision < "2025-11-25" else {}

    def _answered(self, message: Result | Failure) -> list[Command]:
        call, key = self._questions.pop(message.id or "", (None, ""))
        if call is None:
            return []
        if isinstance(message, Failure):
            why = f"the host did not answer the server's question: {message.description}"
            return self._withdraw(call, why) + self._fail(call, why)
        call.answers[key] = message.raw_result
        return [] if None in call.answers.values() else self._repeat(call)

    def _repeat(self, call: _Call) -> list[Command]:
        members: dict[str, bytes | None] = {}
        if call.answers:
            members["inputResponses"] = encode(call.answers)
        if call.state:
            members["requestState"] = call.state
        call.sent_id = self._ids.new()
        self._sent[call.sent_id] = call
        data = edited(call.data, (), {"id": call.sent_id.encode()})
        return [SendToServer(edited(data, ("params",), members))]

    def _withdraw(self, call: _Call, why: str) -> list[Command]:
        """Cancel the open questions of a call."""
        ids = [id_ for id_, (asking, _) in self._questions.items() if asking is call]
        for id_ in ids:
            del self._questions[id_]
        return [SendToHost(cancelled(id_, why)) for id_ in ids]

    def _fail(self, call: _Call, why: str) -> list[Command]:
        self._calls.pop(call.id, None)
        return [Fail(call.id, why)]

    # Notifications and subscriptions.

    def _notified(self, message: Notification, data: bytes) -> list[Command]:
        if message.method == ACKNOWLEDGED:
            return self._acknowledged(message)
        if message.method == CANCELLED:
            id_ = text(message.body.request_id) or ""
            return self._lost(id_, "the server ended it") if id_ in (self._opening, self._listening) else []
        if message.method == "notifications/tasks":
            return []
        subscription = text(meta_raw(message.meta, SUBSCRIPTION))
        if subscription is None:
            return [SendToHost(data, is_own=False)]
        if subscription != self._listening:  # The same one comes in the subscription that replaced it.
            return []
        self._retry = RETRY
        return [SendToHost(without_subscription(data), is_own=False)]

    def _subscribe(self, message: Request) -> list[Command]:
        uri = params_of(message).get("uri")
        if not object_in(self._offered, "resources").get("subscribe"):
            why = "the server does not declare resources.subscribe"
            return [SendToHost(error(message.id, METHOD_NOT_FOUND, why))]
        if not isinstance(uri, str):
            return [SendToHost(error(message.id, INVALID_PARAMS, "uri is missing"))]
        if message.method == SUBSCRIBE_TO:
            self._uris[uri] = None
            self._waiting.append((message.id, uri))
            return self._listen()
        answer: list[Command] = [SendToHost(result(message.id, {}))]
        if uri not in self._uris:
            return answer
        del self._uris[uri]
        return [*answer, *self._listen()]

    def again(self) -> list[Command]:
        """Open the subscription again, after a time."""
        return [] if self._opening or self._listening else self._listen()

    def _listen(self) -> list[Command]:
        """Open the subscription to what the server announces and the host wants, in place of the last one."""
        commands = self._close(self._opening)
        wanted: dict[str, Any] = {
            member: True
            for kind, member in LISTS.values()
            if object_in(self._offered, kind).get("listChanged")
        }
        if self._uris:
            wanted["resourceSubscriptions"] = list(self._uris)
        self._opening = self._ids.new() if wanted else ""
        if not wanted:
            last, self._listening = self._listening, ""
            return commands + self._close(last)
        params = {"_meta": self._meta, "notifications": wanted}
        return [*commands, SendToServer(request(self._opening, LISTEN, params))]

    def _close(self, id: str) -> list[Command]:  # noqa: A002
        return [SendToServer(cancelled(id))] if id else []

    def _acknowledged(self, message: Notification) -> list[Command]:
        if not self._opening or text(meta_raw(message.meta, SUBSCRIPTION)) != self._opening:
            return []
        last, self._listening, self._opening = self._listening, self._opening, ""
        agreed = object_in(params_of(message), "notifications").get("resourceSubscriptions")
        waiting, self._waiting = self._waiting, []
        commands = self._close(last)
        for id_, uri in waiting:
            is_agreed = isinstance(agreed, list) and uri in agreed
            if not is_agreed:
                self._uris.pop(uri, None)
            why = "the server does not send updates of this resource"
            commands.append(SendToHost(result(id_, {}) if is_agreed else error(id_, INVALID_PARAMS, why)))
        return commands

    def _lost(self, id: str, why: str) -> list[Command]:  # noqa: A002
        """Take the end of a subscription by the server. One that was in use is opened again."""
        waiting, self._waiting = self._waiting, []
        commands: list[Command] = []
        for each, uri in waiting:
            self._uris.pop(uri, None)
            commands.append(SendToHost(error(each, INTERNAL_ERROR, f"subscriptions/listen: {why}")))
        if id == self._opening:
            self._opening = ""
            return commands + (self._again() if self._retry > RETRY else [])
        self._listening = ""
        return commands + ([] if self._opening else self._again())

    def _again(self) -> list[Command]:
        after, self._retry = self._retry, min(2 * self._retry, LONGEST_RETRY)
        return [Later(after)]


def _mode(params: Raw) -> str:
    return (text(meta_raw(params, "mode")) or "").strip('"')
