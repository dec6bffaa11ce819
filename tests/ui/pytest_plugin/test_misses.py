"""The report on an unrecorded request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.selector import MatchMode
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.pytest_plugin.misses import unrecorded, unsent

if TYPE_CHECKING:
    from typing import Any

    from tests.ui.conftest import Make, Said


def call(city: object, **more: object) -> Said:
    arguments = {"city": city, **more}
    params = {"name": "forecast", "arguments": arguments}
    return "client", orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def refused(text: str, *differs: str, method: str = "tools/call", about: Any = "forecast") -> Said:
    data = {"nearest": [{"method": method, "about": about, "differs": list(differs)}]}
    error = {"code": -32603, "message": f"mcpspy mock: {text}", "data": data}
    return "server", orjson.dumps({"jsonrpc": "2.0", "id": 1, "error": error})


ANSWERED: Said = ("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')


def described(make: Make, played: list[Said], recorded: list[Said], *ignored: str) -> list[str]:
    sessions = [Recording(make(text)).session() for text in (played, recorded)]
    return unrecorded(sessions[:1], sessions[1:], [pointer(text) for text in ignored])


def test_the_values_that_differ_are_reported(make_recording: Make) -> None:
    played = [
        call("Bergen", days=3),
        refused("not recorded: tools/call forecast", "/params/arguments/city", "/params/arguments/days"),
    ]

    (text,) = described(make_recording, played, [call("Nairobi", days=3), ANSWERED, call("Oslo"), ANSWERED])
    assert text == (
        "not recorded: tools/call forecast\n"
        '  sent: {"name":"forecast","arguments":{"city":"Bergen","days":3}}\n'
        "  nearest: tools/call forecast\n"
        '    /params/arguments/city: recorded "Oslo", sent "Bergen"\n'
        "    /params/arguments/days: recorded nothing, sent 3"
    )


def test_ignored_params_are_not_reported_as_differences(make_recording: Make) -> None:
    played = [call("Bergen", now=2), refused("not recorded: tools/call forecast", "/params/arguments/city")]
    (text,) = described(make_recording, played, [call("Oslo", now=1)], "/params/arguments/now")

    assert '  sent: {"name":"forecast","arguments":{"city":"Bergen"}}\n' in text
    assert text.endswith('/params/arguments/city: recorded "Oslo", sent "Bergen"')


def test_without_the_request_that_the_mock_means_its_pointers_are_reported(make_recording: Make) -> None:
    played = [
        call("Bergen"),
        refused("not recorded: tools/call forecast", "/method", method="tools/list", about=None),
    ]

    (text,) = described(make_recording, played, [call("Oslo")])
    assert text.endswith("\n  nearest: tools/list, differs at /method")


def test_responses_and_recorded_errors_of_a_server_are_not_misses(make_recording: Make) -> None:
    own = ("server", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"out of order"}}')

    assert described(make_recording, [call("Oslo"), ANSWERED], []) == []
    assert described(make_recording, [call("Oslo"), own], []) == []


def test_an_error_that_only_looks_like_the_mocks_is_reported_without_harm(make_recording: Make) -> None:
    for data in (b"3", b'{"nearest":3}', b'{"nearest":[3,{"method":"a"},{"method":3,"differs":[]}]}'):
        error = (
            b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"mcpspy mock: \\u001b[2J","data":%b}}'
            % data
        )
        (text,) = described(make_recording, [call("\x1b[31m"), ("server", error)], [])

        assert text.startswith("\\x1b[2J\n")
        assert all(line.isprintable() for line in text.splitlines())


def asked(number: int, action: str, id: int) -> list[Said]:  # noqa: A002
    """Return a call during which the user gives an answer; `id` is that of the server's request."""
    messages: list[tuple[str, dict[str, object]]] = [
        ("client", {"id": number, "method": "tools/call", "params": {"name": "ask"}}),
        ("server", {"id": id, "method": "elicitation/create", "params": {"message": "Sure?"}}),
        ("client", {"id": id, "result": {"action": action}}),
        ("server", {"id": number, "result": {"said": action}}),
    ]
    return [(side, orjson.dumps({"jsonrpc": "2.0", **members})) for side, members in messages]


def handshake() -> list[Said]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    return [
        ("client", orjson.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})),
        ("server", b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'),
    ]


def test_a_call_counts_as_sent_if_the_user_gave_the_recorded_answer(make_recording: Make) -> None:
    recorded = make_recording([*handshake(), *asked(1, "accept", 70), *asked(2, "decline", 71)])
    recordings = RecordingsLoader([recorded], [], merge=False).recordings()
    for played, number in ((["decline"], 1), (["accept", "accept"], 3)):
        calls = [message for id, action in enumerate(played, 1) for message in asked(id, action, id)]  # noqa: A001
        session = Recording(make_recording([*handshake(), *calls])).session()
        (line,) = unsent([session], recordings, MatchMode.EXACT)
        assert line.startswith(f"tools/call ask (request {number} of ")


def test_an_answer_that_was_not_recorded_is_reported_with_its_values(make_recording: Make) -> None:
    text = (
        "not recorded: tools/call ask with this answer to elicitation/create; "
        'nearest: elicitation/create Sure? differs at /result/action: recorded "accept", sent "decline"'
    )
    played = [call("Oslo"), refused(text, "/result/action", method="elicitation/create", about="Sure?")]
    (report,) = described(make_recording, played, [])
    assert report.splitlines()[0] == text
    assert len(report.splitlines()) == 2
