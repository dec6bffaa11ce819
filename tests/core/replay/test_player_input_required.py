"""Responses of the recorded client to requests of the live server."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.received import ServerRequests
from tests.core.replay.playing import Talk


def questions(talk: Talk) -> ServerRequests:
    talk.call(99).session.end()
    return ServerRequests(plans(talk.session)[0].questions)


def asks(questions: ServerRequests, method: str, id: Any = 5, **params: Any) -> Any:  # noqa: A002
    data = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    (message,) = read_frame(Frame(0.0, "server", data))
    assert isinstance(message, Request)
    reply = questions.reply(message)
    return None if reply.data is None else json.loads(reply.data)


def elicited(*pairs: tuple[str, str]) -> Talk:
    talk = Talk()
    for number, (message, action) in enumerate(pairs):
        talk.server(id=number, method="elicitation/create", params={"message": message})
        talk.client(id=number, result={"action": action})
    return talk


def test_the_same_request_gets_its_own_response_in_any_order() -> None:
    asked = questions(elicited(("colour?", "accept"), ("really?", "decline")))

    assert asks(asked, "elicitation/create", "x", message="really?") == {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {"action": "decline"},
    }
    assert asks(asked, "elicitation/create", message="colour?")["result"] == {"action": "accept"}


def test_one_request_with_several_responses_gets_them_in_order_and_again_from_the_first() -> None:
    asked = questions(elicited(("colour?", "accept"), ("colour?", "decline")))

    actions = [asks(asked, "elicitation/create", message="colour?")["result"]["action"] for _ in range(3)]
    assert actions == ["accept", "decline", "accept"]


def test_a_request_with_other_params_gets_the_next_response_of_its_method() -> None:
    asked = questions(elicited(("colour?", "accept"), ("really?", "decline")))

    assert asks(asked, "elicitation/create", message="Colour, please?")["result"] == {"action": "accept"}
    assert asks(asked, "elicitation/create", message="really?")["result"] == {"action": "decline"}


def test_meta_is_not_compared_and_missing_params_equal_empty_ones() -> None:
    talk = Talk().server(id=0, method="roots/list").client(id=0, result={"roots": []})

    assert asks(questions(talk), "roots/list", _meta={"progressToken": 3})["result"] == {"roots": []}


def test_an_unknown_request_gets_an_error_and_a_warning_but_a_ping_gets_a_result() -> None:
    asked = ServerRequests(())

    assert asks(asked, "sampling/createMessage")["error"]["code"] == -32601
    assert asks(asked, "ping") == {"jsonrpc": "2.0", "id": 5, "result": {}}


def test_a_request_without_a_recorded_response_gets_none() -> None:
    assert asks(questions(Talk().server(id=0, method="roots/list")), "roots/list") is None
