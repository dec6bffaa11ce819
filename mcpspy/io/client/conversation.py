"""A conversation with a server as its client: handshake, requests, and the questions of the server.

The handshake follows the clients of the SDKs: `server/discover` of 2026-07-28 first, and `initialize` if that is
refused or gets no response (MCP basic/lifecycle, 2026-07-28: backward compatibility). Questions are answered whether
they come as requests of the server (until 2025-11-25) or in a result `input_required`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from mcpspy import __version__
from mcpspy.core.jsontools import is_number
from mcpspy.core.protocol.listing import MAX_PAGES, next_cursor
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, loads, read_frame
from mcpspy.core.protocol.spec import INTERNAL_ERROR, META, METHOD_NOT_FOUND, MODERN, REVISIONS, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerAddress,
    ServerConnection,
    ServerTarget,
    connect,
)
from mcpspy.io.client.base import INITIALIZED
from mcpspy.io.client.http_exchange import excerpt

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.io.client.oauth import OAuthClient
    from mcpspy.io.recording.recorder import Recorder

Answer: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Returns the result for the params of a server's request. A McpspyError becomes an error response."""

LEGACY = REVISIONS[-2]
"""The last revision with a handshake."""

PROBE = 3.0
"""Seconds that a server has to answer `server/discover`. Servers that never answer an unknown method before
`initialize` exist; the SDKs wait as long."""

QUESTIONS = 20
"""Results `input_required` for one request after which no more are answered."""

CAPABILITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "elicitation/create": ("elicitation", {"form": {}}),
    "sampling/createMessage": ("sampling", {}),
    "roots/list": ("roots", {}),
}
"""Method of a question → the capability of a client that answers it."""


ENDED = ("completed", "failed", "cancelled", "input_required")
"""States of a task in which `tasks/result` does not wait, or in which the server asks while it is waited for."""


class ServerOffer(NamedTuple):
    """The offer of a server in the handshake."""

    revision: str
    capabilities: dict[str, Any]
    info: dict[str, Any]
    instructions: str = ""


class _LateDiscovery(Exception):  # noqa: N818 - no error.
    """A slow server answered `server/discover` after `initialize` was sent, and has chosen 2026-07-28 by that."""

    def __init__(self, response: Result) -> None:
        super().__init__()
        self.response = response


class HandshakeRefused(CannotStart):
    """The server answered `initialize`, and not with a result."""


class RequestRefused(Exception):  # noqa: N818 - The name reads well at every raise.
    """An HTTP exchange ended without a response. `status` is None if it broke off."""

    def __init__(self, why: str, status: int | None) -> None:
        super().__init__(why)
        self.status = status


class Conversation:
    """A connection in use. `begin` comes first. An async context manager: it connects, and closes."""

    def __init__(
        self,
        target: ServerTarget,
        recorder: Recorder | None,
        seconds: float,
        *,
        answers: Mapping[str, Answer] | None = None,
        notified: Callable[[Notification], None] | None = None,
        oauth: OAuthClient | None = None,
        is_examined: bool = False,
    ) -> None:
        """`seconds` limits the wait for each response; progress and questions begin it again.

        `is_examined` is for a target that the caller has examined: a URL is not tried before the first request, and a
        handshake in a revision that does not exist fails, as in the clients of the SDKs.
        """
        self.seconds = seconds
        self.offer: ServerOffer | None = None
        self._target = target
        self._recorder = recorder
        self._answers = dict(answers or {})
        self._notified = notified
        self._oauth = oauth
        self._is_examined = is_examined
        self._ids = itertools.count(1)
        self._exchanges = itertools.count(1)
        self.last_id = 0
        """Id of the last request."""
        self._probe: str | None = None
        """Id of a `server/discover` that has no response yet."""
        self._connection: ServerConnection

    async def __aenter__(self) -> Self:
        self._connection = await self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    @property
    def name(self) -> str:
        """The server's command or URL, redacted."""
        return self._connection.name

    @property
    def ended(self) -> ConnectionEnded | None:
        return self._connection.ended

    async def begin(self, revision: str | None = None) -> ServerOffer:
        """Handshake in this revision, or in the newest that both have. Raise CannotStart."""
        if revision is None:
            self.offer = await self._discover()
            revision = LEGACY
        elif revision >= MODERN:
            self.offer = await self._discover(is_required=True)
        if self.offer is None:
            try:
                self.offer = await self._initialize(revision)
            except _LateDiscovery as late:
                self.offer = _modern_offer(late.response)
                assert self.offer is not None
        return self.offer

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Result | Failure:
        """Return the final response; questions in between are answered. Raise CannotStart if there is none."""
        fields = dict(params or {})
        for _ in range(QUESTIONS):
            response = await self._final(method, fields)
            if isinstance(response, Failure) or response.result_type != "input_required":
                return response
            result = response.result
            asked = result.get("inputRequests") if isinstance(result, dict) else None
            fields["inputResponses"] = {
                name: await self._answered(question.get("method"), question.get("params") or {})
                for name, question in (asked.items() if isinstance(asked, dict) else ())
                if isinstance(question, dict)
            }
            if isinstance(result, dict) and "requestState" in result:
                fields["requestState"] = result["requestState"]
        raise CannotStart(f"{self.name}: {method}: the server still asks after {QUESTIONS} answers")

    async def task_result(self, created: Result) -> Result | Failure:
        """Poll a task (2025-11-25) until it has ended, and return its result. Raise CannotStart."""
        task = _task(created)
        while task.get("status") not in ENDED:
            await asyncio.sleep(min(max(_milliseconds(task.get("pollInterval")), 0.05), self.seconds))
            polled = await self.request("tasks/get", {"taskId": task.get("taskId")})
            if isinstance(polled, Failure):
                return polled
            task = _task(polled)
        return await self.request("tasks/result", {"taskId": task.get("taskId")})

    async def cancel_last(self, reason: str) -> None:
        """Tell the server that the last request is cancelled: no one waits for its response any more."""
        await self._notify("notifications/cancelled", {"requestId": self.last_id, "reason": reason})

    async def pages(self, method: str) -> list[dict[str, Any]]:
        """Return the results of a list, one for each page; empty for an error. Raises CannotStart."""
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(MAX_PAGES):
            response = await self.request(method, {} if cursor is None else {"cursor": cursor})
            result = response.result if isinstance(response, Result) else None
            if not isinstance(result, dict):
                break
            found.append(result)
            cursor = next_cursor(result)
            if cursor is None:
                break
        return found

    # The handshake.

    async def _discover(self, *, is_required: bool = False) -> ServerOffer | None:
        """Return the offer of a server of 2026-07-28; None if it is of an older revision."""
        self.offer = ServerOffer(MODERN, {}, {})  # Requests are sent in this revision from here on.
        why = ""
        try:
            response = await self._ask("server/discover", {}, self.seconds if is_required else PROBE)
        except RequestRefused as error:
            if is_required or error.status in (401, 403):
                raise CannotStart(f"{self.name}: server/discover: {error}") from None
            response = None
        except CannotStart:
            if is_required:
                raise
            response = None
        self.offer = None
        if isinstance(response, Result):
            if (offer := _modern_offer(response)) is not None:
                return offer
            why = f"it does not have {MODERN}"
        elif response is not None:
            why = response.description
        if is_required:
            raise CannotStart(f"{self.name}: server/discover: {why}")
        if self._connection.ended is not None:  # It ended because of the unknown method.
            await self._connection.close()
            self._connection = await self._connect()
        return None

    async def _initialize(self, revision: str) -> ServerOffer:
        client = {"name": "mcpspy", "version": __version__}
        params = {"protocolVersion": revision, "capabilities": self._capabilities(), "clientInfo": client}
        response = await self._final("initialize", params)
        result = response.result if isinstance(response, Result) else None
        if not isinstance(result, dict):
            why = response.text if isinstance(response, Failure) else "its result is not an object"
            raise HandshakeRefused(f"{self.name}: initialize failed: {why}")
        agreed = result.get("protocolVersion")
        if self._is_examined and agreed not in REVISIONS:
            raise HandshakeRefused(
                f"{self.name}: initialize: {json.dumps(agreed)[:40]} is not a revision of MCP"
            )
        await self._connection.send(INITIALIZED)
        return _offer(agreed if isinstance(agreed, str) else revision, result, result.get("serverInfo"))

    async def _connect(self) -> ServerConnection:
        if (self._oauth is not None or self._is_examined) and isinstance(self._target, ServerAddress):
            from mcpspy.io.client.http import open_http

            return await open_http(
                self._target, self._recorder, self._exchanges, self._oauth, is_reachable=self._is_examined
            )
        return await connect(self._target, self._recorder, self._exchanges)

    def _capabilities(self) -> dict[str, Any]:
        return dict(CAPABILITIES[method] for method in self._answers)

    # One request.

    async def _final(self, method: str, params: dict[str, Any]) -> Result | Failure:
        """Return the response; raise CannotStart with the reason if there is none."""
        try:
            return await self._ask(method, params)
        except RequestRefused as error:
            hint = "check the path of the URL; it is often /mcp" if error.status == 404 else ""
            raise CannotStart(f"{self.name}: {method}: {error}", hint) from None

    async def _ask(
        self, method: str, params: Mapping[str, Any], seconds: float | None = None
    ) -> Result | Failure:
        number, seconds = next(self._ids), seconds or self.seconds
        self.last_id = number
        fields = dict(params)
        meta = self._meta(number, method) | dict(fields.get("_meta") or {})
        if meta:
            fields["_meta"] = meta
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": fields}
        if method == "server/discover":
            self._probe = str(number)
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._connection.send(_json(request))
                return await self._response(str(number), method, limit, seconds)
        except TimeoutError:
            if method not in ("initialize", "server/discover"):
                reason = {"requestId": number, "reason": f"no response within {seconds:g} s"}
                await self._notify("notifications/cancelled", reason)
            raise CannotStart(
                f"{self.name}: no response to {method} within {seconds:g} s",
                "use --timeout 300 to wait longer",
            ) from None

    async def _response(
        self, number: str, method: str, limit: asyncio.Timeout, seconds: float
    ) -> Result | Failure:
        async for event in self._connection:
            if isinstance(event, ConnectionEnded):
                break
            if isinstance(event, ExchangeRefused | ExchangeLost) and event.request == number:
                raise RequestRefused(event.why, event.status if isinstance(event, ExchangeRefused) else None)
            if not isinstance(event, ReceivedMessage):
                continue
            for message in read_frame(Frame(0.0, SERVER, event.data)):
                if isinstance(message, Result | Failure) and message.id == number:
                    return message
                if isinstance(message, Result) and message.id == self._probe and _modern_offer(message):
                    raise _LateDiscovery(message)
                if isinstance(message, Request):
                    limit.reschedule(None)
                    await self._respond(message)
                elif isinstance(message, Notification) and self._notified is not None:
                    self._notified(message)
                else:
                    continue
                limit.reschedule(asyncio.get_running_loop().time() + seconds)
            if event.request == number and event.status >= 400:  # It answers the request, whatever its id.
                raise RequestRefused(f"HTTP {event.status}: {excerpt(event.data)}", event.status)
        raise CannotStart(
            f"{self.name}: the server ended before it answered {method}", self._connection.last_error
        )

    def _meta(self, number: int, method: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.offer is not None and self.offer.revision >= MODERN:
            found = {
                META + "protocolVersion": self.offer.revision,
                META + "clientInfo": {"name": "mcpspy", "version": __version__},
                META + "clientCapabilities": self._capabilities(),
            }
        return found | ({"progressToken": number} if method == "tools/call" else {})

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._connection.send(_json({"jsonrpc": "2.0", "method": method, "params": params}))

    # The server's questions.

    async def _respond(self, request: Request) -> None:
        """Answer a request of the server."""
        params = request.params
        try:
            if request.method == "ping":
                body: dict[str, Any] = {"result": {}}
            elif request.method not in self._answers:
                body = {"error": {"code": METHOD_NOT_FOUND, "message": f"no {request.method} here"}}
            else:
                body = {
                    "result": await self._answered(request.method, params if isinstance(params, dict) else {})
                }
        except McpspyError as error:
            body = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
        await self._connection.send(_json({"jsonrpc": "2.0", "id": loads(request.id.encode()), **body}))

    async def _answered(self, method: Any, params: dict[str, Any]) -> dict[str, Any]:
        if method not in self._answers:
            raise CannotStart(f"{self.name}: the server asks for {method}, which needs an answer")
        return await self._answers[method](params)


def _offer(revision: str, result: dict[str, Any], info: Any) -> ServerOffer:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return ServerOffer(
        revision,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else "",
    )


def _modern_offer(response: Result) -> ServerOffer | None:
    """Return the offer in a response to `server/discover`; None if the server does not have 2026-07-28."""
    result = response.result
    supported = result.get("supportedVersions") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(supported, list) or MODERN not in supported:
        return None
    return _offer(MODERN, result, _meta(result).get(META + "serverInfo"))


def _task(response: Result) -> dict[str, Any]:
    """Return the task in a result of `tools/call` or `tasks/get`."""
    result = response.result if isinstance(response.result, dict) else {}
    task = result.get("task", result)
    return task if isinstance(task, dict) else {}


def _milliseconds(value: Any) -> float:
    """Return seconds; one if a server does not name them."""
    return value / 1000 if is_number(value) else 1.0


def _meta(result: dict[str, Any]) -> dict[str, Any]:
    meta = result.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def offered_lists(offer: ServerOffer) -> Iterator[str]:
    """Yield the methods of the lists that a server offers by its capabilities."""
    from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS, declared
    from mcpspy.core.protocol.listing import LISTINGS

    for method in LISTINGS:
        extension = EXTENSION_LISTINGS.get(method)
        capabilities = offer.capabilities
        if (
            method.partition("/")[0] in capabilities
            if extension is None
            else extension[0].id in declared(capabilities)
        ):
            yield method
