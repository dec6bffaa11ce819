"""Tests of the request that is resent from a recording, and of the wait for its response."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.ui.model.live_call import wait_for_response
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.intercept.resend import ResendRequest, resend_request
from tests.ui.tui.intercept.conftest import call, result

INJECTED = '"mcpspy-test-1"'


class Lines:
    """A session model, and the lines it reads."""

    def __init__(self) -> None:
        self.lines = b""
        self.log = SessionModel(
            Header(mcpspy=1, id="0badcafe", started=""),
            lambda _, start, size: self.lines[start : start + size],
        )
        self.log.begin_part()

    def say(self, side: str, data: bytes, **fields: Any) -> None:
        frame = {"t": 1.0, "from": side, **fields}
        self.add(json.dumps(frame)[:-1].encode() + b',"msg":' + data + b"}")

    def note(self, **fields: Any) -> None:
        self.add(
            json.dumps({"t": 1.0, "note": "rule", "viewer": "tui-1", "from": "client", **fields}).encode()
        )

    def add(self, line: bytes) -> None:
        self.log.add(read_entry(line), len(self.lines), len(line))
        self.lines += line + b"\n"


def test_a_request_is_resent_to_its_receiver_from_any_of_its_rows() -> None:
    lines = Lines()
    lines.say("client", call(1, path="a"), stream="2")
    lines.say("server", result(1), stream="2")
    wanted = resend_request(lines.log, 0)
    assert wanted == resend_request(lines.log, 1)
    text = call(1, path="a").decode()
    assert wanted == ResendRequest(0, "server", "tools/call", text, "2", is_request=True)


def test_an_edited_request_is_resent_as_it_was_forwarded() -> None:
    lines = Lines()
    lines.say("client", call(1, path="a"))
    lines.note(action="replace", rule="1", id="1", method="tools/call", sent=call(1, path="b").decode())
    wanted = resend_request(lines.log, 0)
    assert isinstance(wanted, ResendRequest)
    assert wanted.text == call(1, path="b").decode()

    lines.say("client", call(2, path="a"))
    lines.note(action="corrupt", how="truncate", id="2", method="tools/call", sent='{"jsonrpc"')
    assert resend_request(lines.log, 2) == "cannot resend: what was forwarded instead is not a request"


def test_server_requests_and_notifications_can_be_resent() -> None:
    lines = Lines()
    lines.say("server", b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
    lines.say("client", b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
    request, notification = resend_request(lines.log, 0), resend_request(lines.log, 1)
    assert isinstance(request, ResendRequest)
    assert isinstance(notification, ResendRequest)
    assert (request.to, request.is_request, notification.to, notification.is_request) == (
        *("client", True),
        *("server", False),
    )


def test_rows_that_cannot_be_resent_are_reported() -> None:
    lines = Lines()
    lines.say("server", b'{"jsonrpc":"2.0","id":9,"result":{}}')
    assert (
        resend_request(lines.log, None)
        == resend_request(lines.log, 5)
        == "nothing to resend: no row is selected"
    )
    assert "belongs to no request" in str(resend_request(lines.log, 0))
    lines.add(
        json.dumps(
            {
                "t": 2.0,
                "from": "client",
                "b64": b64encode(call(3, path="a").replace(b'"a"', b'"\xff"')).decode(),
            }
        ).encode()
    )
    assert resend_request(lines.log, 1) == "cannot resend: the message is not UTF-8"


async def test_the_response_is_found_in_the_recording() -> None:
    lines, why = Lines(), [""]
    lines.say("client", call(1))
    waiting = asyncio.ensure_future(wait_for_response(lines.log, INJECTED, 0, lambda: why[0] or None))
    await asyncio.sleep(0)
    lines.say("client", call(1).replace(b'"id":1', b'"id":' + INJECTED.encode()), by="mcpspy")
    await asyncio.sleep(0)
    assert not waiting.done()
    lines.say("server", result(1).replace(b'"id":1', b'"id":' + INJECTED.encode()), to="mcpspy")
    async with asyncio.timeout(30):
        assert await waiting == 1


async def test_the_wait_ends_if_no_response_can_arrive() -> None:
    lines = Lines()
    async with asyncio.timeout(30):
        assert await wait_for_response(lines.log, INJECTED, 0, lambda: "closed") == "closed"
        lines.log.end()
        assert await wait_for_response(lines.log, INJECTED, 0, lambda: None) == "the session has ended"
