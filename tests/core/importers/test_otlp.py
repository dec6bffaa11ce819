"""Spans of MCP tool calls; files/otlp.json has examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.export.otlp import export
from mcpspy.core.importers.otlp import sessions
from mcpspy.errors import UsageError
from tests.analysis.export.sessions import client, server, session_of
from tests.core.importers.reading import frames, notes

SAMPLE = (Path(__file__).parent / "files" / "otlp.json").read_bytes()

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(OBJECTS, max_size=2)},
    optional={"isError": st.booleans(), "structuredContent": OBJECTS},
)
ERRORS = st.fixed_dictionaries({"code": st.integers(-40000, -1), "message": st.text()})
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["forecast", "écho"]),
        OBJECTS,
        RESULTS.map(lambda value: {"result": value}) | ERRORS.map(lambda value: {"error": value}),
    ),
    min_size=1,
    max_size=4,
)
IDS = st.sampled_from([lambda number: number, lambda number: f"id {number}"])


@given(calls=CALLS, make_id=IDS)
@settings(max_examples=60, deadline=None)
def test_calls_of_an_export_with_bodies_are_imported_unchanged(calls: list[Any], make_id: Any) -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    bodies: dict[str, list[tuple[str, Any]]] = {}
    for number, (name, arguments, answer) in enumerate(calls):
        head = {"jsonrpc": "2.0", "id": make_id(number)}
        params = {"name": name, "arguments": arguments}
        said += [
            ("client", {**head, "method": "tools/call", "params": params}),
            ("server", {**head, **answer}),
        ]
        bodies[str(make_id(number))] = [("arguments", arguments), ("result", answer.get("result"))]
    frame = {"client": client, "server": server}
    text = "".join(
        export(
            [
                session_of(
                    *(frame[side](at, json.dumps(data).encode()) for at, (side, data) in enumerate(said))
                )
            ]
        )
    )
    document = json.loads(text)
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        pairs = {each["key"]: each["value"] for each in span["attributes"]}
        number = pairs.get("jsonrpc.request.id", {}).get("stringValue")  # The session itself has none.
        for name, body in bodies.get(number, []):
            if body is not None:
                value = {"stringValue": json.dumps(body)}
                span["attributes"].append({"key": f"gen_ai.tool.call.{name}", "value": value})
    (session,) = sessions(json.dumps(document).encode())
    assert [(side, json.loads(data)) for _, side, data in frames(session)] == said
    assert session.changed == []
    assert session.name == "weather"


def test_the_servers_span_of_a_call_completes_the_clients() -> None:
    first, second = sessions(SAMPLE)
    assert [(side, data) for _, side, data in frames(first)][:2] == [
        (
            "client",
            (
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
                b'"params":{"name":"forecast","arguments":{"city":"Bern","days":2.0}}}'
            ),
        ),
        (
            "server",
            b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"sunny"}],"isError":false}}',
        ),
    ]
    assert (first.key, first.name, first.transport) == ("s1", "agent", "http")
    assert (second.key, second.transport, second.messages) == ("weather", "stdio", 2)


def test_typed_arguments_and_errors_are_read() -> None:
    first, _ = sessions(SAMPLE)
    request, response = (json.loads(data) for _, _, data in frames(first)[2:])
    assert request["params"]["arguments"] == {"city": "Atlantis", "days": 3, "units": ["K"]}
    assert response == {"jsonrpc": "2.0", "id": "b-2", "error": {"code": -32602, "message": "unknown city"}}


def test_substitutes_are_reported() -> None:
    _, second = sessions(SAMPLE)
    assert [data for _, _, data in frames(second)] == [
        (
            b'{"jsonrpc":"2.0","id":"import-1","method":"tools/call",'
            b'"params":{"name":"echo","arguments":{"text":"hi"}}}'
        ),
        b'{"jsonrpc":"2.0","id":"import-1","result":{"content":[{"type":"text","text":"hi"}]}}',
    ]
    assert second.changed == [
        "request ids numbered, because the file has none: 1 request",
        "results that are not MCP results, as text content: 1 response",
    ]
    assert notes(second, "exit")


def one(**values: str | int) -> bytes:
    pairs = {
        "mcp.method.name": "tools/call",
        **{key.replace("__", "."): value for key, value in values.items()},
    }
    attributes = [
        {
            "key": key,
            "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)},
        }
        for key, value in pairs.items()
    ]
    span = {"startTimeUnixNano": 1, "endTimeUnixNano": "2", "attributes": attributes}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def test_missing_bodies_are_counted() -> None:
    (session,) = sessions(one(jsonrpc__request__id="1", gen_ai__tool__call__arguments="{}"))
    assert session.changed == ["requests whose response is not in the file: 1 request"]
    (session,) = sessions(one(jsonrpc__request__id="1", mcp__response__value='{"content":[]}'))
    assert session.changed == ["requests whose arguments are not in the file: 1 request"]


def imported(method: str, **values: str | int) -> tuple[list[Any], list[str]]:
    """Return the messages of one span, each after its sender, and the notes of the import."""
    (session,) = sessions(one(mcp__method__name=method, jsonrpc__request__id="1", **values))
    return [(side, json.loads(data)) for _, side, data in frames(session)], session.changed


def test_prompts_are_imported_with_their_messages() -> None:
    prompt: dict[str, str | int] = {
        "gen_ai__prompt__name": "greet",
        "mcp__request__argument__name": '"greet"',
        "mcp__request__argument__style": '"warm"',
        "mcp__prompt__result__message_count": 1,
        "mcp__prompt__result__message_role": "user",
        "mcp__prompt__result__message_content": "Say {hello}.",
        "mcp__prompt__result__description": "A greeting",
    }
    messages, changed = imported("prompts/get", **prompt)
    assert messages == [
        (
            "client",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "prompts/get",
                "params": {"name": "greet", "arguments": {"style": "warm"}},
            },
        ),
        (
            "server",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {
                    "description": "A greeting",
                    "messages": [{"role": "user", "content": {"type": "text", "text": "Say {hello}."}}],
                },
            },
        ),
    ]
    assert changed == []


def test_a_prompt_with_several_messages_is_imported_only_if_all_are_texts() -> None:
    prompt: dict[str, str | int] = {
        "mcp__prompt__name": "greet",
        "mcp__request__argument__style": '"warm"',
        "mcp__prompt__result__message_count": 2,
        "mcp__prompt__result__0__role": "user",
        "mcp__prompt__result__0__content": "one",
        "mcp__prompt__result__1__role": "assistant",
    }
    messages, changed = imported("prompts/get", **prompt)
    assert [side for side, _ in messages] == ["client"]
    assert changed == ["requests whose response is not in the file: 1 request"]

    messages, _ = imported("prompts/get", **prompt, mcp__prompt__result__1__content="two")
    assert [each["content"]["text"] for each in messages[1][1]["result"]["messages"]] == ["one", "two"]


def test_any_request_with_a_result_is_imported() -> None:
    contents = {"contents": [{"uri": "note://a", "text": "x"}]}
    messages, changed = imported(
        "resources/read", mcp__resource__uri="note://a", mcp__response__value=json.dumps(contents)
    )
    assert [data.get("params", data.get("result")) for _, data in messages] == [{"uri": "note://a"}, contents]
    assert changed == []

    messages, changed = imported("tools/list", mcp__response__value='{"tools":[]}')
    assert [data.get("params", data.get("result")) for _, data in messages] == [{}, {"tools": []}]
    assert changed == ["requests whose arguments are not in the file: 1 request"]

    messages, changed = imported("tools/list", mcp__response__value="[1, 2]")
    assert [side for side, _ in messages] == ["client"], "a list is not a result"


def test_a_span_with_the_whole_request_has_its_params() -> None:
    request = {"method": "sampling/createMessage", "params": {"maxTokens": 5, "messages": []}}
    messages, changed = imported(
        "sampling/createMessage",
        mcp__request__argument=json.dumps(request),
        mcp__response__value='{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}',
    )
    assert [side for side, _ in messages] == ["server", "client"], "the server sends this request"
    assert messages[0][1]["params"] == request["params"]
    assert changed == []


def test_a_call_in_the_span_of_another_method_is_separate() -> None:
    outer = json.loads(one(mcp__method__name="resources/read", mcp__response__value='{"contents":[]}'))
    inner = json.loads(one(gen_ai__tool__call__arguments="{}", gen_ai__tool__name="a"))
    spans = [each["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for each in (outer, inner)]
    spans[0] |= {"spanId": "1", "kind": 3}
    spans[1] |= {"spanId": "2", "parentSpanId": "1", "kind": 2}
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    (session,) = sessions(data)
    requests = [json.loads(line) for _, side, line in frames(session) if side == "client"]
    assert sorted(request["method"] for request in requests) == ["resources/read", "tools/call"]


@pytest.mark.parametrize(
    "values",
    [
        {"mcp__method__name": "resources/read", "mcp__resource__uri": "note://a"},
        {"mcp__method__name": "notifications/message", "mcp__response__value": "{}"},
        {"mcp__method__name": "prompts/get", "gen_ai__prompt__name": "greet"},
    ],
)
def test_names_without_bodies_and_notifications_are_not_imported(values: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="contains no message bodies"):
        sessions(one(**values))


def test_a_span_of_the_conventions_for_rpc_names_its_method_too() -> None:
    data = json.loads(one(gen_ai__tool__name="a", gen_ai__tool__call__arguments="{}"))
    attributes = data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    attributes[0]["key"] = "rpc.method"
    with pytest.raises(UsageError):
        sessions(json.dumps(data).encode())
    attributes.append({"key": "rpc.system", "value": {"stringValue": "mcp"}})
    (session,) = sessions(json.dumps(data).encode())
    assert json.loads(frames(session)[0][2])["method"] == "tools/call"


def test_each_line_of_the_file_exporter_is_a_request() -> None:
    line = one(jsonrpc__request__id="1", gen_ai__tool__call__arguments="{}") + b"\n"
    assert sessions(line + line)[0].messages == 2


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (one(), "contains no message bodies, only the names and times of 1 MCP span"),
        (b'{"resourceSpans":[{}]}', "contains no MCP spans"),
        (
            one(gen_ai__tool__call__result="x").replace(b'"2"', b'"soon"'),
            "invalid otlp: 'soon' is not a time",
        ),
    ],
)
def test_spans_without_calls_are_refused(data: bytes, error: str) -> None:
    with pytest.raises(UsageError, match=rf"^{error}"):
        sessions(data)
