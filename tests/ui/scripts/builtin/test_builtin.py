"""The scripts that mcpspy contains, with messages made here."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

import mcpspy
from mcpspy.core.protocol.message import read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.io.scripts import BUILTIN, builtin_names, script_path
from mcpspy.ui.scripts.script import Script

SESSION = mcpspy.LiveSession(
    {"session": "1", "name": "weather", "transport": "stdio", "file": None},
    lambda _order, _fields: asyncio.sleep(0),
    lambda _text: None,
)


def loaded(name: str, **options: str) -> Script:
    script = Script(name, script_path(BUILTIN + name))
    script.hooks["configure"](options)
    return script


def message(side: str, at: float = 0.0, **members: Any) -> mcpspy.LiveMessage:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()
    return mcpspy.LiveMessage(SESSION, read_frame(Frame(at, side, data))[0])


def asked(script: Script, method: str = "tools/call", at: float = 0.0, **params: Any) -> dict[str, Any]:
    """Return what a script does with a request."""
    exchange = mcpspy.LiveExchange(message("client", at, method=method, params=params))
    script.hooks["request"](exchange)
    return exchange.request._effects


def answered(
    script: Script, result: dict[str, Any], method: str = "tools/call", **params: Any
) -> mcpspy.LiveExchange:
    """Return the exchange after a script has seen the response."""
    request = message("client", method=method, params=params)
    exchange = mcpspy.LiveExchange(request, message("server", result=result))
    script.hooks["response"](exchange)
    return exchange


def test_each_script_has_at_most_60_lines_and_names_its_options() -> None:
    assert (
        builtin_names()
        == "cache chaos headers latency meter metrics policy ratelimit record repair tools webhook".split()
    )
    for name in builtin_names():
        text = Path(script_path(BUILTIN + name)).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60, name
        assert text.splitlines()[2].startswith("Options: "), name


def test_the_cache_answers_repeated_calls_of_read_only_tools_for_a_while() -> None:
    script = loaded("cache", ttl="10")
    tools = [{"name": "get", "annotations": {"readOnlyHint": True}}, {"name": "put"}]
    answered(script, {"tools": tools}, "tools/list")
    for tool in ("get", "put"):
        answered(script, {"content": [tool]}, name=tool, arguments={"a": 1, "b": 2})

    assert asked(script, at=9, name="get", arguments={"b": 2, "a": 1})["result"] == {"content": ["get"]}
    assert asked(script, at=10, name="get", arguments={"a": 1, "b": 2}) == {}
    assert asked(script, at=1, name="get", arguments={"a": 2}) == {}
    assert asked(script, at=1, name="put", arguments={"a": 1, "b": 2}) == {}


def test_the_cache_keeps_no_errors() -> None:
    script = loaded("cache", tools="get")
    answered(script, {"content": [], "isError": True}, name="get")

    assert asked(script, at=1, name="get") == {}


def test_the_rate_limit_allows_calls_again_after_a_minute() -> None:
    script = loaded("ratelimit", rate="2")

    outcomes = ["error" in asked(script, at=at, name="x") for at in (0, 1, 2, 59, 60.5)]

    assert outcomes == [False, False, True, True, False]
    assert asked(script, "ping") == {}


def test_latency_is_added_within_its_jitter() -> None:
    script = loaded("latency", ms="100", jitter="50", seed="1", tool="slow")
    delays = [asked(script, name="slow")["delay"] for _ in range(50)]

    assert all(0.05 <= delay <= 0.15 for delay in delays)
    assert len(set(delays)) > 40
    assert asked(script, name="other") == {}


def test_tools_are_hidden_and_renamed_in_both_directions() -> None:
    script = loaded("tools", hide="delete_*", rename="get:fetch", prefix="w_")
    listed = answered(script, {"tools": [{"name": n} for n in ("get", "put", "delete_all")]}, "tools/list")
    called = mcpspy.LiveExchange(message("client", method="tools/call", params={"name": "w_fetch"}))
    script.hooks["request"](called)

    assert [tool["name"] for tool in listed.result["tools"]] == ["w_fetch", "w_put"]
    assert called.params == {"name": "get"}
    for name in ("w_delete_all", "delete_all", "get", "w_get"):
        assert asked(script, name=name)["error"]["message"] == f"Unknown tool: {name}"


ODD_LISTS: list[Any] = [
    None,
    {},
    [None, 1, [], {}, {"name": 1}, {"name": None}, {"name": "get", "annotations": 1}],
]
"""Lists of tools that MCP does not allow."""


@pytest.mark.parametrize("tools", ODD_LISTS)
@pytest.mark.parametrize("name", ["cache", "repair", "tools"])
def test_a_list_that_mcp_does_not_allow_fails_no_script(name: str, tools: Any) -> None:
    exchange = answered(loaded(name), {"tools": tools}, "tools/list")

    assert exchange.message._effects == {}


def test_no_member_of_a_message_that_is_not_utf8_is_replaced() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","\xff":1,"params":{"name":"fetch"}}'
    live = mcpspy.LiveMessage(SESSION, read_frame(Frame(0.0, "client", data))[0])

    with pytest.raises(mcpspy.UsageError, match="replace: neither one line nor JSON in UTF-8"):
        live.replace(params={"name": "get"})
    assert live.data == data


def test_a_tool_without_a_name_does_not_show_the_hidden_ones() -> None:
    listed = answered(
        loaded("tools", hide="b"), {"tools": [{"name": 1}, {"name": "a"}, {"name": "b"}]}, "tools/list"
    )

    assert listed.result["tools"] == [{"name": 1}, {"name": "a"}]


def test_the_policy_refuses_arguments_whose_violation_cannot_be_described(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"arguments": {"read_file": {"required": ["root"]}}}', encoding="utf-8")
    refused = asked(loaded("policy", file=str(path)), name="read_file", arguments={"path": "\ud800"})

    assert "arguments cannot be checked" in refused["error"]["message"]


def test_the_policy_checks_names_and_arguments(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    schema = {"properties": {"path": {"pattern": "^/data/"}}, "required": ["path"]}
    policy = {"allow": ["read_*", "list"], "deny": ["read_secret"], "arguments": {"read_file": schema}}
    path.write_text(json.dumps(policy), encoding="utf-8")
    script = loaded("policy", file=str(path))

    assert asked(script, name="read_file", arguments={"path": "/data/x"}) == {}
    assert asked(script, "tools/list") == {}
    assert "read_secret is not allowed" in asked(script, name="read_secret")["error"]["message"]
    assert "write is not allowed" in asked(script, name="write")["error"]["message"]
    assert "/etc" in asked(script, name="read_file", arguments={"path": "/etc/passwd"})["error"]["message"]
    assert '"path"' in asked(script, name="read_file")["error"]["message"]


async def test_the_webhook_posts_failures_only() -> None:
    posted = []

    async def take(request: web.Request) -> web.Response:
        posted.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", take)
    async with TestServer(app) as server:
        script = loaded("webhook", url=str(server.make_url("/hook")))
        script.hooks["session_started"](SESSION)
        results: list[dict[str, Any]] = [{"content": []}, {"content": [], "isError": True}]
        for result in results:
            request = message("client", method="tools/call", params={"name": "x"})
            await script.hooks["response"](mcpspy.LiveExchange(request, message("server", result=result)))
        await script.hooks["session_ended"](SESSION)

    assert posted == [
        {"text": "weather: tools/call x: tool error", "response": {"content": [], "isError": True}}
    ]


async def test_a_webhook_that_cannot_be_reached_is_a_line_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"not HTTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as closed:
            urls = [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{closed.getsockname()[1]}/"]
        for url in urls:
            script = loaded("webhook", url=url)
            script.hooks["session_started"](SESSION)
            request = message("client", method="tools/call", params={"name": "x"})
            failed = message("server", result={"content": [], "isError": True})
            await script.hooks["response"](mcpspy.LiveExchange(request, failed))
            await script.hooks["session_ended"](SESSION)

    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"webhook: {url}: ") for line, url in zip(lines, urls, strict=True)] == [
        True,
        True,
    ]
    assert "refused" in lines[1]


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("webhook", {}, "url is missing (--script-option url=…)"),
        ("policy", {}, "file is missing (--script-option file=…)"),
        ("record", {}, "filter is missing (--script-option filter=…)"),
        ("webhook", {"url": "ftp://a"}, "url=ftp://a: use http:// or https://"),
        ("chaos", {"kinds": "error,noise"}, "kinds: noise: use error, delay, drop"),
    ],
)
def test_an_invalid_or_missing_option_is_refused_with_what_is_valid(
    name: str, options: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        loaded(name, **options)


def test_the_meter_prints_the_responses_of_each_tool(capsys: pytest.CaptureFixture[str]) -> None:
    script = loaded("meter", price="1000000")
    for _ in range(2):
        answered(script, {"content": ["x" * 400]}, name="get")
    script.hooks["session_ended"](SESSION)

    assert capsys.readouterr().out == "meter: get: 2 responses, about 228 tokens, 228.0000\n"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "$defs": {"Day": {"enum": [1, 2]}}}


WEATHER = schema(
    days={"type": "integer"},
    all={"type": "boolean"},
    city={"type": "string"},
    near={"anyOf": [{"type": "number"}, {"type": "null"}]},
    day={"$ref": "#/$defs/Day"},
    place={"type": "object", "properties": {"lat": {"type": "number"}}},
    tags={"type": "array", "items": {"type": "integer"}},
)


@pytest.mark.parametrize(
    ("given", "repaired", "note"),
    [
        ({"days": "3"}, {"days": 3}, "arguments.days (str to int)"),
        ({"all": "true"}, {"all": True}, "arguments.all (str to bool)"),
        ({"near": "1.5"}, {"near": 1.5}, "arguments.near (str to float)"),
        ({"near": "null"}, {"near": None}, "arguments.near (str to NoneType)"),
        ({"day": "2"}, {"day": 2}, "arguments.day (str to int)"),
        ({"place": '{"lat": "1"}'}, {"place": {"lat": 1}}, "arguments.place (str to dict)"),
        ({"place": {"lat": "1"}}, {"place": {"lat": 1}}, "arguments.place.lat (str to int)"),
        ({"tags": ["1", 2]}, {"tags": [1, 2]}, "arguments.tags[0] (str to int)"),
        ('{"days": "3"}', {"days": 3}, "arguments (str to dict)"),
    ],
)
def test_arguments_are_repaired_if_their_text_has_one_meaning(given: Any, repaired: Any, note: str) -> None:
    script = loaded("repair")
    answered(script, {"tools": [{"name": "get", "inputSchema": WEATHER}]}, "tools/list")
    effects = asked(script, name="get", arguments=given, _meta={"a": "1"})

    params = {"name": "get", "arguments": repaired, "_meta": {"a": "1"}}
    assert json.loads(effects["text"])["params"] == params
    assert effects["notes"] == [f"changed to fit the schema: {note}"]


@pytest.mark.parametrize(
    "given",
    [
        {"city": "3"},
        {"days": 3},
        {"days": "three"},
        {"days": "3.5"},
        {"place": '{"other": NaN}'},
        {"near": "1e999"},
        {"day": "7"},
        {"other": "3"},
        {"place": "[]"},
        {"all": "yes"},
    ],
)
def test_arguments_that_fit_or_are_ambiguous_are_not_changed(given: dict[str, Any]) -> None:
    script = loaded("repair")
    answered(script, {"tools": [{"name": "get", "inputSchema": WEATHER}]}, "tools/list")

    assert asked(script, name="get", arguments=given) == {}


@pytest.mark.parametrize(
    "schema", [5, {"type": 5}, {"properties": {"a": {"$ref": "#/no"}}}, {"pattern": "("}]
)
def test_a_schema_that_is_not_valid_changes_no_arguments(schema: Any) -> None:
    script = loaded("repair")
    answered(script, {"tools": [{"name": "get", "inputSchema": schema}]}, "tools/list")

    assert asked(script, name="get", arguments={"a": "1"}) == {}


async def test_no_schema_is_fetched_that_a_server_names() -> None:
    requests: list[str] = []

    async def document(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.json_response({"type": "integer"})

    app = web.Application()
    app.router.add_get("/schema", document)
    script = loaded("repair")
    async with TestServer(app) as server:
        schema = {"properties": {"a": {"$ref": str(server.make_url("/schema"))}}}
        answered(script, {"tools": [{"name": "get", "inputSchema": schema}]}, "tools/list")
        assert await asyncio.to_thread(asked, script, name="get", arguments={"a": "1"}) == {}

    assert requests == []


async def test_metrics_count_responses_and_their_latency() -> None:
    script = loaded("metrics", port="0")
    await script.hooks["session_started"](SESSION)
    metrics = script.module.script
    try:
        for at in (0.004, 0.2):
            request = message("client", method="tools/call", params={"name": 'say "hi"'})
            script.hooks["response"](mcpspy.LiveExchange(request, message("server", at, result={})))
        async with ClientSession() as client, client.get(metrics.url) as response:
            lines = (await response.text()).splitlines()
    finally:
        await metrics.serving.__aexit__(None, None, None)

    labels = r'server="weather",method="tools/call",tool="say \"hi\""'
    assert metrics.url.startswith("http://127.0.0.1:")
    assert f'mcp_responses_total{{{labels},status="ok"}} 2' in lines
    assert f'mcp_latency_seconds_bucket{{{labels},le="0.005"}} 1' in lines
    assert f'mcp_latency_seconds_bucket{{{labels},le="+Inf"}} 2' in lines
    assert f"mcp_latency_seconds_count{{{labels}}} 2" in lines


def test_only_what_matches_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    script = loaded("record", file=str(path), filter="tool:get")
    script.hooks["session_started"](SESSION)
    calls = [
        (1, "initialize", ""),
        (2, "tools/call", "get"),
        (3, "tools/call", "put"),
        (4, "tools/call", "get"),
    ]
    for id_, method, tool in calls:
        request = message(
            "client", id_, id=id_, method=method, params={"name": tool, "token": "sk-" + "a1B2" * 12}
        )
        script.hooks["request"](mcpspy.LiveExchange(request))
        if id_ < 4:
            script.hooks["response"](
                mcpspy.LiveExchange(request, message("server", id_ + 0.5, id=id_, result={}))
            )
    script.hooks["session_ended"](SESSION)

    session = mcpspy.read(path)
    assert [(each.method, each.tool, each.status) for each in session] == [
        ("initialize", "", "ok"),
        ("tools/call", "get", "ok"),
        ("tools/call", "get", "no answer"),
    ]
    assert session.exchanges[1].latency == pytest.approx(0.5)
    assert b"a1B2" not in path.read_bytes()


def test_a_live_exchange_is_found_by_its_request_and_by_its_response() -> None:
    request = message("client", method="tools/call", params={"name": "get"})
    exchange = mcpspy.LiveExchange(request, message("server", 2, result={"content": ["cloudy"]}))
    found = ["tool:get", "text:cloudy", "latency:>1s", "status:ok", "kind:request", "tool:get text:cloudy"]

    assert [each for each in found if exchange.matches(each) and exchange.message.matches(each)] == found
    assert not any(map(exchange.matches, ["tool:put", "status:error", "kind:notification", "status:pending"]))
    assert message("client", method="ping", id=None).matches("method:ping")
    with pytest.raises(mcpspy.UsageError, match="filter, character 1"):
        exchange.matches("(")


def test_notifications_that_match_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    script = loaded("record", file=str(path), filter="text:wanted")
    script.hooks["session_started"](SESSION)
    for text in (b"wanted", b"other"):
        data = (
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}' % text
        )
        notification = mcpspy.LiveMessage(SESSION, read_frame(Frame(1.0, "server", data))[0])
        script.hooks["notification"](notification)
    script.hooks["session_ended"](SESSION)

    assert [each.data for each in mcpspy.read(path).messages] == [data.replace(b"other", b"wanted")]


def test_chaos_fails_as_many_requests_as_its_rate() -> None:
    script = loaded("chaos", rate="0.5", seed="7")
    effects = [asked(script, name="x") for _ in range(400)]
    failed = [each for each in effects if each]

    assert 150 < len(failed) < 250
    for kind in ("error", "delay", "drop"):
        assert sum(kind in each for each in failed) > 30
    assert all(asked(script, "initialize") == {} for _ in range(20))


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("tools/call", {"name": "echo", "arguments": {"a": 1}}, ("echo", {"a": 1})),
        ("tools/call", {"name": "echo", "arguments": [1]}, ("echo", {})),
        ("resources/read", {"uri": "file:///a"}, ("", {})),
    ],
)
def test_only_a_tool_call_has_a_tool(method: str, params: dict[str, Any], expected: tuple[str, Any]) -> None:
    exchange = mcpspy.LiveExchange(message("client", method=method, params=params))

    assert (exchange.tool, exchange.arguments) == expected
