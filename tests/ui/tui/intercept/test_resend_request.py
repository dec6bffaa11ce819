"""What is taken from a recording to be sent again, and the wait for its answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.intercept.resend import ResendRequest, resend_request, wait_for_response
from tests.ui.tui.intercept.conftest import call, result

OURS = '"mcpspy-test-1"'


class Said:
    """A log, and the lines it is read from."""

    def __init__(self) -> None:
        self.lines = b""
        self.log = SessionModel(
            Header(mcpspy=1, id="0badcafe", started=""),
            lambda _, start, size: self.lines[start : start + size],
        )
        self.log.begin_part()

    def say(self, side: str, data: bytes, **fields: Any) -> None:
        frame = {"t": 1.0, "from": side, **fields}
        line = json.dumps(frame)[:-1].encode() + b',"msg":' + data + b"}"
        self.log.add(read_entry(line), len(self.lines), len(line))
        self.lines += line + b"\n"


def test_a_request_is_sent_to_whom_it_went_from_any_of_its_rows() -> None:
    said = Said()
    said.say("client", call(1, path="a"), stream="2")
    said.say("server", result(1), stream="2")
    wanted = resend_request(said.log, 0)
    assert wanted == resend_request(said.log, 1)
    params = {"name": "write_file", "arguments": {"path": "a"}}
    assert wanted == ResendRequest(0, "server", "tools/call", params, "2", is_request=True)
    assert isinstance(wanted, ResendRequest)
    assert json.loads(wanted.text or "") == {"method": "tools/call", "params": params}
    assert wanted.edited('{"method":"ping"}')[2:4] == ("ping", None)


def test_what_a_server_asked_and_what_needs_no_answer_can_be_sent_again() -> None:
    said = Said()
    said.say("server", b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
    said.say("client", b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
    asked, told = resend_request(said.log, 0), resend_request(said.log, 1)
    assert isinstance(asked, ResendRequest)
    assert isinstance(told, ResendRequest)
    assert (asked.to, asked.params, asked.is_request, told.to, told.is_request) == (
        *("client", None, True),
        *("server", False),
    )


def test_what_cannot_be_sent_again_is_reported() -> None:
    said = Said()
    said.say("server", b'{"jsonrpc":"2.0","id":9,"result":{}}')
    said.say("client", b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}')
    assert resend_request(said.log, None) == resend_request(said.log, 5) == "there is no row to send again"
    assert "belongs to none" in str(resend_request(said.log, 0))
    assert "no object" in str(resend_request(said.log, 1))


async def test_the_answer_is_waited_for_in_the_recording() -> None:
    said, why = Said(), [""]
    said.say("client", call(1))
    waiting = asyncio.ensure_future(wait_for_response(said.log, OURS, 0, lambda: why[0] or None))
    await asyncio.sleep(0)
    said.say("client", call(1).replace(b'"id":1', b'"id":' + OURS.encode()), by="mcpspy")
    await asyncio.sleep(0)
    assert not waiting.done()
    said.say("server", result(1).replace(b'"id":1', b'"id":' + OURS.encode()), to="mcpspy")
    async with asyncio.timeout(30):
        assert await waiting == 1


async def test_an_answer_that_will_not_come_is_not_waited_for() -> None:
    said = Said()
    async with asyncio.timeout(30):
        assert await wait_for_response(said.log, OURS, 0, lambda: "closed") == "closed"
        said.log.end()
        assert await wait_for_response(said.log, OURS, 0, lambda: None) == "the session has ended"
