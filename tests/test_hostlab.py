"""The laboratory of hosts: its stubs of model APIs, its comparison, and the files that it writes.

The requests are small and made up. The hosts themselves run in `make hostlab` only.
"""

from __future__ import annotations

import json
import tomllib
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from hostlab import compare, profiles, wrapped
from hostlab.compare import Outcome, Status
from hostlab.models import (
    ANTHROPIC,
    CHAT,
    GEMINI,
    RESPONSES,
    Api,
    ModelRequest,
    ModelServer,
    OfferedTool,
    api_of,
)
from hostlab.probe_server import ProbeServer
from hostlab.probes import CONTROL, INSTRUCTIONS, OBJECT, PROBES, TEXT, Json, Probe, counted, mark
from mcpspy.analysis.lint.host_profiles import chosen

APIS = {"anthropic": ANTHROPIC, "responses": RESPONSES, "chat": CHAT, "gemini": GEMINI}

TOOL = OfferedTool("echo", "probe echo;", {"type": "object"})

REQUESTS: dict[str, Json] = {
    "anthropic": {
        "system": [{"type": "text", "text": "the instructions"}],
        "tools": [{"name": "echo", "description": "probe echo;", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "a question"},
            {"role": "user", "content": [{"type": "tool_result", "content": "a result"}]},
        ],
    },
    "responses": {
        "instructions": "the instructions",
        "tools": [
            {
                "type": "namespace",
                "name": "mcp__probe",
                "description": "",
                "tools": [{"name": "echo", "description": "probe echo;", "parameters": {"type": "object"}}],
            }
        ],
        "input": [
            {"type": "message", "content": [{"type": "input_text", "text": "a question"}]},
            {"type": "function_call_output", "output": "a result"},
        ],
    },
    "chat": {
        "tools": [
            {"function": {"name": "echo", "description": "probe echo;", "parameters": {"type": "object"}}}
        ],
        "messages": [
            {"role": "system", "content": "the instructions"},
            {"role": "user", "content": "a question"},
            {"role": "tool", "content": "a result"},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "the instructions"}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "echo", "description": "probe echo;", "parametersJsonSchema": {"type": "object"}}
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "a question"}]},
            {"role": "user", "parts": [{"functionResponse": {"response": {"output": "a result"}}}]},
        ],
    },
}


@pytest.mark.parametrize("name", APIS)
def test_a_request_of_an_api_is_read(name: str) -> None:
    request = APIS[name].read(REQUESTS[name])

    (tool,) = request.tools
    assert tool._replace(namespace="") == TOOL
    assert tool.namespace == ("mcp__probe" if name == "responses" else "")
    assert "the instructions" in request.text
    assert "a question" in request.text
    assert "a result" not in request.text
    assert "a result" in json.dumps(request.results)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_response_is_streamed_with_the_call_and_the_text(api: Api) -> None:
    called = json.dumps([event for _, event in api.events(api.call("1", TOOL))])
    ended = json.dumps([event for _, event in api.events(api.text("the end"))])

    assert '"echo"' in called
    assert "the end" in ended


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/messages?beta=true", "anthropic"),
        ("/v1/responses", "responses"),
        ("/v1/chat/completions", "chat"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "gemini"),
        ("/v1/messages/count_tokens", None),
        ("/v1beta/models/m:countTokens", None),
    ],
)
def test_the_path_names_the_api(path: str, name: str | None) -> None:
    assert api_of(path) is (APIS[name] if name is not None else None)


def test_the_model_calls_the_planned_tools_and_ends() -> None:
    model = ModelServer((mark("echo"), mark("missing")))
    try:
        first, second = (_post(model, "/v1/messages", REQUESTS["anthropic"]) for _ in range(2))
    finally:
        model.stop()

    assert first["content"][0]["name"] == "echo"
    assert second["content"] == [{"type": "text", "text": "done"}]
    assert [path for path, _ in model.requests] == ["/v1/messages"] * 2


def _post(model: ModelServer, path: str, body: Json) -> Any:
    connection = HTTPConnection(*model.server_address[:2], timeout=10)  # type: ignore[arg-type]
    try:
        connection.request("POST", path, json.dumps(body))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_probing_server_serves_pages_and_a_changed_list() -> None:
    server = ProbeServer(["name-dot", "texts"], None, 2)
    (first,) = server.answer({"id": 1, "method": "tools/list"})
    (second,) = server.answer(
        {"id": 2, "method": "tools/list", "params": {"cursor": first["result"]["nextCursor"]}}
    )
    answers = server.answer({"id": 3, "method": "tools/call", "params": {"name": "grow"}})
    (third,) = server.answer({"id": 4, "method": "tools/list", "params": {"cursor": "2"}})

    assert [tool["name"] for tool in first["result"]["tools"]] == ["control", "name.dot"]
    assert [tool["name"] for tool in second["result"]["tools"]] == ["texts"]
    assert answers[1]["method"] == "notifications/tools/list_changed"
    assert [tool["name"] for tool in third["result"]["tools"]] == ["texts", "grown"]


def test_a_counted_text_names_the_position_of_each_number() -> None:
    text = counted(100, "start ")

    assert len(text) == 100
    assert all(text.index(number) == int(number) for number in text.removeprefix("start ").split()[:-1])


def _probe(name: str) -> Probe:
    return next(probe for probe in PROBES if probe.id == name)


def _offered(name: str, /, **changes: Any) -> tuple[Probe, list[Json], ModelRequest]:
    """Return a probe, the list that the server sent, and a request in which the probe's tool has these changes."""
    probe = _probe(name)
    sent = probe.tools[0]
    control = OfferedTool("p__control", CONTROL["description"], CONTROL["inputSchema"])
    tool = OfferedTool("p__" + sent["name"], sent.get("description", ""), sent.get("inputSchema"))
    tools = [control] if changes.pop("is_missing", False) else [control, tool._replace(**changes)]
    return probe, [CONTROL, *probe.tools], ModelRequest(tools, "", [])


@pytest.mark.parametrize(
    ("probe", "changes", "outcome"),
    [
        ("name-dot", {}, Outcome(Status.ARRIVED)),
        ("name-dot", {"name": "p__name_dot"}, Outcome(Status.RENAMED, "p__name_dot")),
        ("name-dot", {"is_missing": True}, Outcome(Status.DROPPED)),
        (
            "description-5000",
            {"description": counted(2048, "probe description-5000; ")},
            Outcome(Status.CUT, "2048"),
        ),
        ("root-not", {"schema": OBJECT}, Outcome(Status.CHANGED, "root: `not` removed")),
        ("root-no-properties", {"schema": {"type": "object", "properties": {}}}, Outcome(Status.ARRIVED)),
        ("title", {}, Outcome(Status.DROPPED, "not shown to the model")),
        ("title", {"description": "probe title; A separate title"}, Outcome(Status.ARRIVED)),
    ],
)
def test_an_outcome_is_the_difference_of_list_and_request(
    probe: str, changes: Json, outcome: Outcome
) -> None:
    found = compare.outcome(*_offered(probe, **changes))

    assert (found.status, found.detail if outcome.status != Status.CHANGED else "") == (
        outcome.status,
        outcome.detail if outcome.status != Status.CHANGED else "",
    )
    assert outcome.detail in found.detail


def test_a_change_of_every_tool_is_not_a_change_by_the_probe() -> None:
    probe, listed, request = _offered("root-not")
    wait = {"wait": {"type": "boolean"}}
    control, tool = request.tools
    both = [
        control._replace(schema={"type": "object", "properties": {**TEXT, **wait}}),
        tool._replace(schema={**tool.schema, "properties": wait}),
    ]

    assert compare.outcome(probe, listed, request._replace(tools=both)) == Outcome(Status.ARRIVED)


def test_two_tools_of_one_name_are_counted() -> None:
    probe = _probe("name-twice")
    control = OfferedTool("control", CONTROL["description"], OBJECT)
    once = ModelRequest([control, OfferedTool("name_twice", mark("name-twice"), OBJECT)], "", [])

    assert compare.outcome(probe, [*probe.tools], once) == Outcome(Status.DROPPED, "1 of 2")


def test_instructions_are_cut_where_they_end() -> None:
    request = ModelRequest([], f"# probe\n{INSTRUCTIONS[:2000]}…", [])

    assert compare.instructions([request]) == Outcome(Status.CUT, "2000")
    assert compare.instructions([request._replace(text="nothing")]) == Outcome(Status.DROPPED)
    assert compare.instructions([request._replace(text=INSTRUCTIONS)]) == Outcome(Status.ARRIVED)


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        (
            "texts",
            [{"type": "text", "text": "first text"}, {"type": "text", "text": "second text"}],
            Status.ARRIVED,
        ),
        ("texts", "first text", Status.CHANGED),
        ("audio", "audio is not supported", Status.DROPPED),
        ("text_10000", counted(10_000, "whole "), Status.ARRIVED),
        ("text_10000", counted(10_000, "whole ")[:4000] + "…", Status.CUT),
    ],
)
def test_the_outcome_of_a_result_is_what_of_it_arrives(name: str, content: Any, status: Status) -> None:
    assert compare.result(name, content).status == status


def test_the_messages_of_a_recording_are_read() -> None:
    messages: list[Json] = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "h"}}},
        {"id": 1, "method": "tools/list"},
        {"id": 1, "result": {"tools": [CONTROL], "nextCursor": "1"}},
        {"id": 2, "method": "tools/list", "params": {"cursor": "1"}},
        {"id": 2, "result": {"tools": [_probe("name-dot").tools[0]]}},
    ]
    found = compare.recorded(json.dumps({"t": 0, "from": "x", "msg": message}) for message in messages)

    assert found.client == {"clientInfo": {"name": "h"}}
    assert (found.listings, len(found.tools)) == (1, 2)


def test_limits_follow_from_outcomes() -> None:
    outcomes = {
        "name-54": ["dropped", ""],
        "name-dot": ["renamed", "a_b"],
        "name-slash": ["renamed", "a_b"],
        "root-array": ["drops all", ""],
        "nested-not": ["changed", "`not` removed"],
        "description-5000": ["cut", "2048"],
        "result-text-50000": ["cut", "20000 at its beginning, 5000 elsewhere"],
        "list-changed": ["dropped", ""],
        "revision-1999-01-01": ["drops all", ""],
        "revision-2025-06-18": ["arrived", ""],
    }
    found = {
        limit["on"]: limit for limit in profiles.limits_of({"prefix": "mcp_{server}_", "outcomes": outcomes})
    }

    assert found["name-length"] == {"on": "name-length", "effect": "drops", "max": 53 + len("mcp_probe_")}
    assert found["name"]["pattern"] == r"[A-Za-z0-9_\-\ :]*"
    assert found["root"] == {"on": "root", "effect": "drops-all", "words": ["array"]}
    assert found["keyword"] == {"on": "keyword", "effect": "changes", "words": ["not"]}
    assert found["description"]["max"] == 2048
    assert found["result"]["max"] == 40000
    assert found["notification"]["effect"] == "ignores"
    assert found["revision"]["words"] == ["2025-06-18"]


def test_a_profile_keeps_limits_with_a_source_and_replaces_measured_ones() -> None:
    measured = {"title": "H", "version": "2", "date": "d", "client": "h", "prefix": "", "outcomes": {}}
    current = (
        '[[limits]]\non = "tools"\neffect = "drops"\nmax = 80\nsource = "https://e.org"\n\n'
        '[[limits]]\non = "pages"\neffect = "drops"\n'
    )
    found = tomllib.loads(profiles.profile_of(measured, current))

    assert found["version"] == "2"
    assert [limit["on"] for limit in found["limits"]] == ["tools"]


def test_the_profiles_of_measured_hosts_are_current() -> None:
    stale = [path.name for path, text in profiles.made() if path.read_text(encoding="utf-8") != text]

    assert not stale, "run: make docs"
    assert {host.title for host in chosen("claude-code,codex,gemini-cli")} == {
        measured["title"] for measured in profiles.measurements()
    }


def test_a_run_with_mcpspy_is_compared_with_a_direct_one(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"msg":{"method":"tools/call","result":"[redacted:key#1] Resource"}}\n', encoding="utf-8"
    )
    direct = wrapped.Seen(True, ["a", "b"], ["took 0.5 seconds", "links", "done"])
    same = wrapped.Seen(True, ["a", "b"], ["took 0.7 seconds", "links", f"error {wrapped.ANSWERED}"])

    def compared(seen: wrapped.Seen) -> list[str]:
        return [text.partition(":")[0] for text in wrapped.differences(direct, seen, [path], has_rules=True)]

    assert compared(same) == []
    assert compared(same._replace(listed=False)) == ["mcp list"]
    assert compared(same._replace(tools=["a"])) == ["tools"]
    assert compared(same._replace(results=["took 1 seconds", "LINKS", wrapped.ANSWERED])) == ["results"]
    assert compared(same._replace(results=direct.results)) == ["the configured error did not reach the model"]
    path.write_text('{"msg":{"text":"Resource 1"}}\n', encoding="utf-8")
    assert compared(same) == ["the calls are not recorded", "the recording is not redacted"]
