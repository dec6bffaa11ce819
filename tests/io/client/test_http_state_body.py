"""The pending requests of a body, and the event after which its stream would resume."""

from __future__ import annotations

import pytest

from mcpspy.core.protocol.message import Failure, Result, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.io.client.http_exchange import ResponsePart
from mcpspy.io.client.http_state import EVENTS_KEPT, BodyState

ONE = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
BATCH = b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":"1","method":"b"}]'


def body_state(data: bytes) -> BodyState:
    return BodyState(read_frame(Frame(0.0, "client", data)), None)


def answer(data: bytes) -> Result | Failure:
    (found,) = read_frame(Frame(0.0, "server", data))
    assert isinstance(found, Result | Failure)
    return found


def test_one_request_waits_for_its_own_answer() -> None:
    one = body_state(ONE)
    assert (one.only_request_id, one.is_initialize, one.pending) == ("1", True, ["1"])

    one.settle(answer(b'{"jsonrpc":"2.0","id":2,"result":{}}'), 200)
    assert one.pending == ["1"]
    one.settle(answer(b'{"jsonrpc":"2.0","id":1,"result":{}}'), 200)
    assert one.pending == []


def test_a_batch_waits_for_each_of_its_requests() -> None:
    batch = body_state(BATCH)
    assert (batch.only_request_id, batch.is_initialize) == (None, False)

    batch.settle(answer(b'{"jsonrpc":"2.0","id":"1","result":{}}'), 200)
    assert batch.pending == ["1"]
    batch.settle(answer(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batch"}}'), 400)
    assert batch.pending == ["1"]


@pytest.mark.parametrize(("status", "left"), [(200, ["1"]), (400, [])])
def test_an_error_status_answers_whatever_its_id(status: int, left: list[str]) -> None:
    one = body_state(ONE)
    one.settle(answer(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'), status)

    assert one.pending == left


def test_only_the_last_events_are_recognised_when_they_are_repeated() -> None:
    one = body_state(ONE)
    events = [ResponsePart(b"%d" % number, id=str(number)) for number in range(EVENTS_KEPT + 1)]
    assert not any(one.is_repeated(event) for event in events)
    assert [one.is_repeated(events[number]) for number in (1, EVENTS_KEPT, 0)] == [True, True, False]
