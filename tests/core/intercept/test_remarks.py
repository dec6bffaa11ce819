"""The notes that say what became of a message."""

from __future__ import annotations

from mcpspy.core.intercept.remarks import about, about_request, remark, said
from mcpspy.core.intercept.steps import Remark
from mcpspy.core.intercept.waiting import Asked
from mcpspy.core.message import Request
from tests.core.intercept.desks import call, message, progress, result


def test_a_note_names_its_message_and_leaves_out_what_is_empty() -> None:
    request = message(call("a"), stream="3")
    assert isinstance(request, Request)
    asked = Asked(request, None, keep=False)
    names = {"stream": "3", "from": "client", "id": '"a"', "method": "tools/call", "subject": "echo"}

    assert about(request, asked) == about_request(asked) == names
    assert about(message(result("a"), "server", stream="3"), asked) == {**names, "from": "server"}
    assert remark("drop", about(message(progress(1), "server"), None), "lane") == Remark(
        "rule",
        {"action": "drop", "from": "server", "method": "notifications/progress", "subject": "1"},
        "lane",
    )
    assert remark("drop", about(message(b"{}", "server"), asked)).fields == {
        "action": "drop",
        "from": "server",
    }


def test_what_was_sent_is_noted_exactly() -> None:
    assert said("sent", '{"é":1.0}'.encode()) == {"sent": '{"é":1.0}'}
    assert said("sent", b'{"\xff"') == {"sent_b64": "eyL/Ig=="}
