"""HTTP requests that no session answers get the recorded response."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.mock.recordings import Recordings
from mcpspy.io.mock.loader import RecordingsLoader
from tests.core.mock.talking import modern
from tests.io.mock.speaking import Spoken, received, spoken
from tests.io.mock.test_stdio import HEADER, call, handshake

pytestmark = pytest.mark.timeout(60)

TEXT = {"content-type": "text/plain; charset=utf-8", "content-length": "36"}
SESSION = {"mcp-session-id": "s"}


class Recorded:
    """Builder of a recording over HTTP, in the form in which mcpspy writes it."""

    def __init__(self) -> None:
        self.content, self._number = HEADER % b"x" + handshake() + call(1), 10

    def exchange(
        self,
        method: str,
        status: int,
        body: Any = None,
        *,
        asked: dict[str, Any] | None = None,
        request: dict[str, str] | None = None,
        response: dict[str, str] | None = None,
    ) -> Recorded:
        """Add an exchange; a dict as its body is a message, `asked` the message of the client."""
        self._number += 1
        carried = {"stream": str(self._number), "http": self._number}
        head = {"method": method, "status": status, "request": request or {}, "response": response or {}}
        if asked is not None:
            self._add({"from": "client", **carried, "msg": {"jsonrpc": "2.0", **asked}})
        self._add({"note": "http", **carried, **head})
        if isinstance(body, dict):
            self._add({"from": "server", **carried, "msg": {"jsonrpc": "2.0", **body}})
        self._add(
            {"note": "http-end", **carried, "hung_up": None}
            | ({"body": body} if isinstance(body, str) else {})
        )
        return self

    def _add(self, entry: dict[str, Any]) -> None:
        self.content += (
            json.dumps({"t": float(self._number), **entry}, separators=(",", ":")).encode() + b"\n"
        )

    def recordings(self, folder: Path) -> Recordings:
        path = folder / "r.jsonl"
        path.write_bytes(self.content)
        return RecordingsLoader([path], [], merge=False).recordings()


async def got(mock: Spoken, **headers: str) -> tuple[int, str | None, str]:
    """Return the status, the content type and the text of the response to a GET."""
    async with await mock.get(**headers) as response:
        kind = response.headers.get("Content-Type")
        return response.status, kind, "" if response.status == 200 else await response.text()


async def deleted(mock: Spoken) -> int:
    async with await mock.client.delete(mock.url + "/mcp", headers=mock.session) as response:
        assert ("Content-Length" in response.headers) == (response.status != 204)
        return response.status


async def test_an_early_get_gets_the_recorded_refusal_and_one_with_a_session_its_stream(
    tmp_path: Path,
) -> None:
    made = Recorded().exchange("GET", 401, 'Unauthorized: "Session ID" is required', response=TEXT)
    made.exchange("GET", 200, request=SESSION, response={"content-type": "text/event-stream"})
    async with spoken(made.recordings(tmp_path)) as mock:
        refused = (401, TEXT["content-type"], 'Unauthorized: "Session ID" is required')
        assert await got(mock) == refused
        await mock.begin()
        assert (await got(mock))[0] == 200


async def test_a_server_without_sessions_refuses_the_get_of_a_session_of_the_mock(tmp_path: Path) -> None:
    error = {"id": None, "error": {"code": -32000, "message": "Method not allowed."}}
    made = Recorded().exchange(
        "GET", 405, error, response={"allow": "POST", "content-type": "application/json"}
    )
    async with spoken(made.recordings(tmp_path)) as mock:
        await mock.begin()
        async with await mock.get() as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
            assert await received(response) == {"jsonrpc": "2.0", **error}
        assert await mock.call(1, "tool 1") == "yes"


@pytest.mark.parametrize("status", [405, 204])
async def test_delete_has_the_recorded_status_and_ends_the_session_only_if_it_succeeded(
    tmp_path: Path, status: int
) -> None:
    made = Recorded().exchange("DELETE", status, request=SESSION)
    async with spoken(made.recordings(tmp_path)) as mock:
        await mock.begin()
        assert await deleted(mock) == status
        ping = await mock.say(id=1, method="ping")
        assert ping[0] == (200 if status == 405 else 404)


async def test_an_early_probe_gets_the_recorded_refusal(tmp_path: Path) -> None:
    probe = {"id": 1, "method": "server/discover", "params": {"_meta": modern()}}
    made = Recorded().exchange("POST", 400, "Bad Request: Unsupported version\n", asked=probe, response=TEXT)
    async with spoken(made.recordings(tmp_path)) as mock:
        body = json.dumps({"jsonrpc": "2.0", **probe, "id": 9}).encode()
        async with await mock.send(
            body, Mcp_Method="server/discover", MCP_Protocol_Version="2026-07-28"
        ) as response:
            assert (response.status, await response.text()) == (400, "Bad Request: Unsupported version\n")


@pytest.mark.parametrize(("recorded", "sent"), [(None, None), (1, "a")])
async def test_an_early_call_gets_the_recorded_error_with_its_own_id(
    tmp_path: Path, recorded: object, sent: object
) -> None:
    error = {"error": {"code": -32000, "message": "Bad Request: No valid session"}}
    made = Recorded().exchange(
        "POST", 400, {"id": recorded, **error}, asked={"id": 1, "method": "tools/list"}
    )
    made.exchange(
        "POST",
        200,
        {"id": 2, "result": {"tools": []}},
        asked={"id": 2, "method": "tools/list"},
        request=SESSION,
    )
    async with spoken(made.recordings(tmp_path)) as mock:
        assert await mock.say(id="a", method="tools/list") == (400, {"jsonrpc": "2.0", "id": sent, **error})
        assert (await mock.say(id="a", method="resources/list"))[1]["error"]["message"].startswith(
            "Bad Request: Mcp-Session-Id is missing"
        )


async def test_a_notification_gets_the_recorded_refusal(tmp_path: Path) -> None:
    asked = {"method": "notifications/roots/list_changed"}
    made = Recorded().exchange("POST", 400, "not supported", asked=asked, request=SESSION, response=TEXT)
    async with spoken(made.recordings(tmp_path)) as mock:
        await mock.begin()
        async with await mock.send(json.dumps({"jsonrpc": "2.0", **asked}).encode()) as response:
            assert (response.status, await response.text()) == (400, "not supported")


@pytest.mark.parametrize(
    ("status", "request_headers", "response"),
    [(401, {}, {"www-authenticate": "Bearer"}), (404, SESSION, {}), (307, {}, {"location": "/mcp/"})],
)
async def test_challenges_ended_sessions_and_redirects_are_not_repeated(
    tmp_path: Path, status: int, request_headers: dict[str, str], response: dict[str, str]
) -> None:
    made = Recorded().exchange("GET", status, "no", request=request_headers, response=response)
    async with spoken(made.recordings(tmp_path)) as mock:
        assert (await got(mock))[0] == 400
        await mock.begin()
        assert (await got(mock))[0] == 200


async def test_a_shape_that_succeeded_once_is_handled_by_the_mock(tmp_path: Path) -> None:
    made = Recorded().exchange("GET", 503, "busy", request=SESSION, response=TEXT)
    made.exchange("GET", 200, request=SESSION, response={"content-type": "text/event-stream"})
    async with spoken(made.recordings(tmp_path)) as mock:
        await mock.begin()
        assert (await got(mock))[0] == 200


async def test_the_text_of_a_refused_request_is_valid_json_in_its_error(tmp_path: Path) -> None:
    asked = {"id": 3, "method": "tools/call", "params": {"name": "a"}}
    made = Recorded().exchange("POST", 400, 'a "quoted" text', asked=asked, request=SESSION, response=TEXT)
    async with spoken(made.recordings(tmp_path)) as mock:
        await mock.begin()
        _, said = await mock.say(id=3, method="tools/call", params={"name": "a"})
        assert said["error"]["message"] == 'HTTP 400: a "quoted" text'
