"""Requests of a host of 2026-07-28 that an older server has, and its questions in their course.

A request of the server becomes a result `input_required` for the host's request; the host repeats that with the answers
(basic/patterns/mrtr, 2026-07-28). `core.era.older_server` is the session around them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct
from msgspec.json import encode

from mcpspy.core.era.commands import Command, Fail, SendToHost, SendToServer
from mcpspy.core.era.messages import (
    ASKING,
    LEVEL,
    QUESTIONS,
    SERVER_INFO,
    UNKNOWN_PEER,
    OwnIds,
    edited,
    error,
    meta_of,
    object_in,
    params_of,
    result,
)
from mcpspy.core.protocol.message import Failure, Notification, Request, loads, raw_members, text
from mcpspy.core.protocol.spec import INTERNAL_ERROR, INVALID_PARAMS, LEVELS, META, METHOD_NOT_FOUND
from mcpspy.core.rules.edit import to_json

NOT_ASKABLE = (
    "a host of 2026-07-28 can be asked only while it waits for tools/call, prompts/get or resources/read"
)


class Call(Struct, eq=False):
    """A request of the host that the server has."""

    id: str
    """The id under which the host waits; empty while the host has been asked."""
    server_id: str
    method: str
    data: bytes
    """The request as the server got it."""
    meta: dict[str, Any]
    """`_meta` of the host's last request."""
    questions: dict[str, str] = {}
    """Key of each question that the host was asked → the id of the server's request; empty for a URL to open."""
    more: list[tuple[str, bytes]] = []
    """Requests of the server that came while the host was asked: id, and the request for the host."""
    token: str = ""
    """The progress token of the first request, which the server uses."""
    over: tuple[bytes, str] | None = None
    """The server's response, or the reason for none, if it came while the host was asked."""


class HostCalls:
    def __init__(self, ids: OwnIds) -> None:
        self._ids = ids
        self.info: dict[str, Any] = UNKNOWN_PEER
        """The server's `serverInfo`."""
        self.by_server: dict[str, Call] = {}
        """By the id that the server has."""
        self.by_host: dict[str, Call] = {}
        """By the id under which the host waits."""
        self._asked: dict[str, Call] = {}
        """By the `requestState` that the host repeats."""

    def add(self, call: Call) -> None:
        """Take a request that is sent to the server."""
        self.by_server[call.server_id] = self.by_host[call.id] = call

    def lose(self, why: str) -> None:
        """Take the end of the connection: the server answers none of them."""
        for call in self.by_server.values():
            if not call.id:
                call.over = b"", why
        self.by_server.clear()
        self.by_host.clear()

    def answer(self, call: Call, data: bytes | None, why: str = "") -> list[Command]:
        """Give the host the response to a call, or an error without one."""
        commands: list[Command] = [
            SendToServer(error(id_, INTERNAL_ERROR, "the request is over"))
            for id_ in call.questions.values()
            if id_
        ]
        if not call.id:  # The host has been asked, and finds no one who waits for its answer.
            call.over, call.questions, call.more = (data or b"", why), {}, []
            return commands
        self.by_host.pop(call.id, None)
        if data is None:
            return [*commands, Fail(call.id, why)]
        if call.id == call.server_id:
            return [*commands, SendToHost(data, is_own=False)]
        return [*commands, SendToHost(edited(data, (), {"id": call.id.encode()}))]

    def requested(self, message: Request, carrier: str | None) -> list[Command]:
        """Take a request of the server: it becomes a question in the result of a request of the host."""
        if message.method == "ping":
            return [SendToServer(result(message.id, {}))]
        call = self._asked_by(carrier)
        if (why := self._not_askable(message, call)) is not None or call is None:
            return [SendToServer(error(message.id, METHOD_NOT_FOUND, why or NOT_ASKABLE))]
        params: dict[str, bytes | None] = {}
        if message.method == "elicitation/create":
            params["elicitationId"] = None  # changelog, minor 11
        asked = b'{"method":%b}' % to_json(message.method)
        if bytes(message.raw_params):
            asked = edited(
                asked, (), {"params": edited(bytes(message.raw_params), (), {**params, "task": None})}
            )
        call.more = [*call.more, (message.id, asked)]
        return self._ask(call) if call.id else []

    def _asked_by(self, carrier: str | None) -> Call | None:
        """Return the request of the host in whose course the server asks: that of its exchange, or the latest."""
        call = self.by_server.get(carrier or "")
        if call is not None:
            return call if call.method in ASKING else None
        return next((each for each in reversed(self.by_server.values()) if each.method in ASKING), None)

    def _not_askable(self, message: Request, call: Call | None) -> str | None:
        capability = QUESTIONS.get(message.method)
        if capability is None:
            return f"a host of 2026-07-28 has no {message.method[:60]}"
        if call is None:
            return NOT_ASKABLE
        if capability not in object_in(call.meta, f"{META}clientCapabilities"):
            return f"the host does not declare {capability}"
        return None

    def _ask(self, call: Call) -> list[Command]:
        """Answer the host's request with the questions that wait."""
        state = self._ids.new()
        self._asked[state] = call
        call.questions = {str(number): id_ for number, (id_, _) in enumerate(call.more, 1)}
        asked = {str(number): Raw(question) for number, (_, question) in enumerate(call.more, 1)}
        call.more = []
        value = {
            "resultType": "input_required",
            "inputRequests": asked,
            "requestState": loads(state.encode()),
            "_meta": {SERVER_INFO: self.info},
        }
        self.by_host.pop(call.id, None)
        data = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (call.id.encode(), encode(value))
        call.id = ""
        return [SendToHost(data)]

    def ask_url(self, call: Call, message: Failure) -> list[Command] | None:
        """Ask the host to open the URLs that the server needs before the request is repeated (2025-11-25)."""
        data = message.error.get("data") if isinstance(message.error, dict) else None
        needed = data.get("elicitations") if isinstance(data, dict) else None
        if not isinstance(needed, list) or not needed or not call.id or call.method not in ASKING:
            return None
        if "url" not in object_in(object_in(call.meta, f"{META}clientCapabilities"), "elicitation"):
            return None
        for each in needed:
            params = (
                {key: value for key, value in each.items() if key != "elicitationId"}
                if isinstance(each, dict)
                else {}
            )
            call.more = [
                *call.more,
                ("", to_json({"method": "elicitation/create", "params": {**params, "mode": "url"}})),
            ]
        return self._ask(call)

    def repeated(self, message: Request) -> list[Command]:
        """Take the host's repeated request: its answers go to the server."""
        call = self._asked.pop(text(message.body.request_state) or "", None)
        if call is None:
            why = "unknown requestState: the server no longer waits for this answer"
            return [SendToHost(error(message.id, INVALID_PARAMS, why))]
        call.id, call.meta = message.id, meta_of(message)
        if call.over is not None:
            response, why = call.over
            return (
                [SendToHost(edited(response, (), {"id": call.id.encode()}))]
                if response
                else [Fail(call.id, why)]
            )
        self.by_host[call.id] = call
        answers = raw_members(message.body.input_responses) if message.body.input_responses else {}
        questions, call.questions = call.questions, {}
        commands: list[Command] = []
        is_repeated = False
        for key, id_ in questions.items():
            answer = answers.get(key)
            if not id_:
                is_repeated = True
            elif answer is None:
                commands.append(SendToServer(error(id_, INTERNAL_ERROR, "the host did not answer")))
            else:
                commands.append(
                    SendToServer(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_.encode(), bytes(answer)))
                )
        if is_repeated:
            call.server_id = self._ids.new()
            call.data = edited(call.data, (), {"id": call.server_id.encode()})
            self.by_server[call.server_id] = call
            commands.append(SendToServer(call.data))
        if call.more:
            commands += self._ask(call)
        return commands

    def progressed(self, message: Notification, data: bytes) -> list[Command]:
        token = text(message.body.progress_token) or ""
        call = next((each for each in self.by_server.values() if each.token and each.token == token), None)
        if call is None or not call.id or call.id == call.server_id:
            return [SendToHost(data, is_own=False)] if call is None or call.id else []
        live = call.meta.get("progressToken")
        if live is None:
            return []
        return [SendToHost(edited(data, ("params",), {"progressToken": to_json(live)}), is_own=False)]

    def is_wanted(self, message: Notification, carrier: str | None) -> bool:
        """Return whether a request of the host asked for a log message (server/utilities/logging)."""
        call = self.by_server.get(carrier or "")
        level = params_of(message).get("level")
        for each in [call] if call is not None else self.by_host.values():
            least = each.meta.get(LEVEL)
            if (
                each.id
                and least in LEVELS
                and (level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least))
            ):
                return True
        return False

    def withdrawn(self, id: str) -> list[Command]:  # noqa: A002
        """Forget a question that the server cancels; the host may have it already."""
        for call in self.by_server.values():
            call.more = [each for each in call.more if each[0] != id]
            call.questions = {key: each for key, each in call.questions.items() if each != id}
        return []
