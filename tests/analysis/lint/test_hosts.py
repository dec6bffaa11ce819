"""Limits of hosts: profiles, recognition by `clientInfo`, and cases from public issue threads.

A case is the part of the server's messages that its thread describes; the host in question must be named with the
cause.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.analysis.lint import EntryPosition, Finding, Linter
from mcpspy.analysis.lint.host_profiles import (
    MEASURED,
    NAMES,
    HostProfile,
    chosen,
    profile,
    profile_of_client,
)
from mcpspy.analysis.lint.host_verdicts import Fitness, HostVerdict, worst
from mcpspy.analysis.lint.rules.hosts import CHECKS, keywords, root_kind
from mcpspy.core.recording.decode import Entry, Frame, Header
from mcpspy.core.session.streaming import StreamingSession

OBJECT = {"type": "object", "properties": {}}


def tool(name: str, schema: Any = OBJECT, **parts: Any) -> dict[str, Any]:
    return {"name": name, "description": "A tool.", "inputSchema": schema, **parts}


def of_property(schema: Any, name: str = "value") -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}}


def session(
    *messages: tuple[str, dict[str, Any]], client: str = "unknown", version: str = "1", late: float = 0.0
) -> list[Entry]:
    """Return a session with a handshake and these messages; the last one comes `late` seconds later."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": client, "version": version},
    }
    answer = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    whole: list[tuple[str, dict[str, Any]]] = [
        ("client", {"id": 0, "method": "initialize", "params": hello}),
        ("server", {"id": 0, "result": answer}),
        ("client", {"method": "notifications/initialized"}),
        *messages,
    ]
    return [
        Frame(
            number + (late if number == len(whole) - 1 else 0.0),
            side,
            json.dumps({"jsonrpc": "2.0", **message}).encode(),
        )
        for number, (side, message) in enumerate(whole)
    ]


def listed(*tools: dict[str, Any], **more: Any) -> list[Entry]:
    return session(
        ("client", {"id": 1, "method": "tools/list"}),
        ("server", {"id": 1, "result": {"tools": list(tools), **more}}),
    )


def called(result: dict[str, Any], late: float = 0.0, **more: Any) -> list[Entry]:
    call = {"id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {}}}
    return session(("client", call), ("server", {"id": 1, "result": result}), late=late, **more)


def text(size: int) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "x" * size}]}


def linted(
    entries: list[Entry], hosts: tuple[HostProfile, ...] | None, server: str = "server"
) -> tuple[Linter, list[Finding]]:
    """Return the linter after the session, and the findings on limits of hosts."""
    header = Header(
        mcpspy=1, id="0e8a3b1e", started="2026-11-23T00:00:00.000Z", transport="stdio", name=server
    )
    reading, linter = StreamingSession(header), Linter(header, hosts=hosts)
    findings = [
        finding
        for number, entry in enumerate(entries, 2)
        for change in reading.add(entry)
        for finding in linter.add(change, EntryPosition(number))
    ]
    return linter, [finding for finding in findings if finding.code.startswith("HOST")]


def found(
    entries: list[Entry], hosts: tuple[HostProfile, ...] | None, server: str = "server"
) -> list[Finding]:
    """Return the findings on limits of hosts."""
    return linted(entries, hosts, server)[1]


LISTS = ("oneOf", "anyOf", "allOf")
TWO = [{"required": ["index"]}, {"required": ["coordinate_x", "coordinate_y"]}]
LIST_CHANGED = {"method": "notifications/tools/list_changed"}

CASES: dict[str, tuple[str, str, list[Entry], str, str]] = {
    # Thread: host, name of the server in its configuration, session, code, part of the message.
    "awslabs/mcp#1283": (
        "cursor",
        "awslabs.git-repo-research-mcp-server",
        listed(tool("create_research_repository")),
        "HOST101",
        "63 characters",
    ),
    "ComposioHQ/composio#2788": (
        "cursor",
        "g",
        listed(tool("GOOGLESHEETS_SPREADSHEETS_VALUES_BATCH_CLEAR_BY_DATA_FILTER")),
        "HOST101",
        "61 characters",
    ),
    "executeautomation/mcp-playwright#145": (
        "cursor",
        "github.com/executeautomation/mcp-playwright",
        listed(tool("playwright_iframe_click")),
        "HOST101",
        "more than 60",
    ),
    "PostHog/posthog#51483": (
        "cursor",
        "posthog",
        listed(tool("warehouse-saved-queries-revert-materialization-create")),
        "HOST101",
        "61 characters",
    ),
    "DaxianLee/cocos-mcp-server#11": (
        "windsurf",
        "cocos",
        listed(*(tool(f"t{number}") for number in range(157))),
        "HOST106",
        "157 tools: the limit is 100",
    ),
    "Snowflake-Labs/mcp#77": (
        "cursor",
        "snowflake",
        listed(*(tool(f"t{number}") for number in range(81))),
        "HOST106",
        "the limit is 80",
    ),
    "cursor/cursor#2980": (
        "cursor",
        "s",
        session(("server", LIST_CHANGED)),
        "HOST302",
        "ignores notifications/tools",
    ),
    "cursor/cursor#3400": (
        "cursor",
        "github",
        called(
            {
                "content": [
                    {"type": "text", "text": "successfully downloaded text file"},
                    {"type": "resource", "resource": {"uri": "repo://a/b/contents/c.js", "text": "1"}},
                ]
            }
        ),
        "HOST202",
        "does not show resource",
    ),
    "microsoft/vscode#246119": (
        "vscode",
        "package-version",
        listed(tool("check_docker_tags", of_property({"type": "array"}, "filterTags"))),
        "HOST101",
        "array without items",
    ),
    "VictoriaMetrics/mcp-victoriametrics#4": (
        "vscode",
        "victoriametrics",
        listed(tool("rules", of_property({"type": "array"}, "rule_names"))),
        "HOST101",
        "array without items",
    ),
    "InsForge/insforge-mcp#14": (
        "vscode",
        "insforge",
        listed(tool("run-raw-sql", of_property({"type": "array", "description": "Parameters"}, "params"))),
        "HOST101",
        "run-raw-sql",
    ),
    "CursorTouch/Windows-MCP#13": (
        "vscode",
        "windows-mcp",
        listed(
            tool(
                "Click-Tool", of_property({"type": "array", "prefixItems": [{"type": "integer"}] * 2}, "loc")
            )
        ),
        "HOST101",
        "array without items",
    ),
    "Automata-Labs-team/code-sandbox-mcp#16": (
        "vscode",
        "code-sandbox",
        listed(tool("sandbox_exec", of_property({"type": "array"}, "commands"))),
        "HOST101",
        "sandbox_exec",
    ),
    "microsoft/vscode#258890": (
        "vscode",
        "s",
        listed(*(tool(f"t{number}") for number in range(129))),
        "HOST106",
        "fails with 129 tools: the limit is 128",
    ),
    "DaxianLee/cocos-mcp-server#14": (
        "windsurf",
        "cocos",
        listed(tool("cocos_animation", of_property({"type": "array"}, "events"))),
        "HOST102",
        "array without items",
    ),
    "PrefectHQ/fastmcp#1036": (
        "claude-desktop",
        "s",
        called({"content": [{"type": "image", "data": "A" * (1 << 20), "mimeType": "image/png"}]}),
        "HOST201",
        "1,048,576",
    ),
    "CursorTouch/Windows-MCP#155": (
        "claude-desktop",
        "windows",
        called({"content": [{"type": "image", "data": "A" * (5 << 20), "mimeType": "image/png"}]}),
        "HOST201",
        "rejects a result of 5,242",
    ),
    "anthropics/claude-code#65643": (
        "claude-desktop",
        "s",
        called(text(1), late=260),
        "HOST301",
        "waits 240 s",
    ),
    "anthropics/claude-code#44032": (
        "claude-desktop",
        "obsidian",
        session(
            ("client", {"id": 1, "method": "tools/call", "params": {"name": "write", "arguments": {}}}),
            ("client", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
            late=239,
        ),
        "HOST301",
        "240 s",
    ),
    "evoila/meho#2745": (
        "claude-desktop",
        "meho",
        listed(tool("search"), tool("meho.broadcast.overrides.list")),
        "HOST102",
        "meho.broadcast.overrides.list",
    ),
    "barryw/ImmichMCP#3": (
        "claude-desktop",
        "immich",
        listed(*(tool(f"immich.{name}") for name in ("assets.list", "search.smart", "albums.create"))),
        "HOST102",
        "immich.assets.list and 2 more",
    ),
    "malloydata/publisher#543": (
        "claude-desktop",
        "malloy",
        listed(tool("malloy/executeQuery")),
        "HOST102",
        "malloy/",
    ),
    "NetApp/netapp-dataops-toolkit#38": (
        "claude-desktop",
        "netapp",
        listed(tool("Create CIFS Share")),
        "HOST102",
        "Create CIFS Share",
    ),
    "nspady/google-calendar-mcp#39": (
        "openai",
        "calendar",
        listed(tool("update-event", {**OBJECT, "allOf": [{"required": ["eventId"]}]})),
        "HOST102",
        "allOf in its root",
    ),
    "langchain-ai/langchainjs#9804": (
        "openai",
        "calendar",
        listed(tool("createEvent", {**OBJECT, "anyOf": TWO})),
        "HOST102",
        "anyOf in its root",
    ),
    "makenotion/notion-mcp-server#102": (
        "openai",
        "notion",
        listed(tool("notion-update-page", of_property({"allOf": [{"type": "object"}]}, "data"))),
        "HOST102",
        "allOf in a property",
    ),
    "makenotion/notion-mcp-server#340": (
        "openai",
        "notion",
        listed(tool("notion-create-attachment", {"type": "object", "anyOf": TWO})),
        "HOST102",
        "notion-create-attachment",
    ),
    "microsoft/foundry-dev-tools#201": ("openai", "s", listed(tool("t" * 65)), "HOST102", "65 characters"),
    "modelcontextprotocol/csharp-sdk#679": (
        "openai",
        "s",
        listed(tool("local.netcore server getMacroList")),
        "HOST102",
        "does not match",
    ),
    "openai/codex#8174": (
        "codex",
        "google-workspace",
        listed(tool("calendar.respondToEvent"), tool("gmail.get")),
        "HOST103",
        "calendar.respondToEvent and 1 more",
    ),
    "Dicklesworthstone/flywheel_connectors#49": (
        "codex",
        "gmail",
        listed(tool("gmail_create_draft", {**OBJECT, "anyOf": TWO})),
        "HOST102",
        "gmail_create_draft",
    ),
    "openai/codex#28234": ("codex", "s", called(text(1), late=400), "HOST301", "waits 300 s"),
    "browser-use/browser-use#4211": (
        "claude-code",
        "browser-use",
        listed(tool("browser_click", {**OBJECT, "oneOf": TWO})),
        "HOST104",
        "oneOf in its root",
    ),
    "greirson/mcp-todoist#48": (
        "claude-code",
        "todoist",
        listed(tool("task", {**OBJECT, "oneOf": [OBJECT, OBJECT]})),
        "HOST104",
        "oneOf in its root",
    ),
    "rollbar/rollbar-mcp-server#28": ("claude-code", "rollbar", called(text(122_000)), "HOST201", "122,"),
    "dbt-labs/dbt-mcp#178": ("claude-code", "dbt", called(text(680_000)), "HOST201", "680,"),
    "google-gemini/gemini-cli#13705": (
        "gemini-cli",
        "test",
        listed(
            tool(
                "test",
                {"type": "object", "properties": {"title": {"type": "string"}, "type": {"type": "string"}}},
            )
        ),
        "HOST102",
        "title and type",
    ),
    "modelcontextprotocol/inspector#875": (
        "inspector",
        "s",
        called(text(1), late=301),
        "HOST301",
        "waits 300 s",
    ),
}


@pytest.mark.parametrize("thread", CASES)
def test_a_case_from_an_issue_thread_is_named_with_its_cause(thread: str) -> None:
    host, server, entries, code, words = CASES[thread]
    findings = found(entries, chosen(host), server)

    assert [finding.code for finding in findings if words in finding.message] == [code], findings
    assert profile(host).title in findings[0].message


def test_there_are_at_least_25_cases_of_most_hosts() -> None:
    assert len(CASES) >= 25
    assert {case[0] for case in CASES.values()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_has_a_version_a_date_and_a_source_of_each_limit(name: str) -> None:
    host = profile(name)

    assert host.version
    assert len(host.date) == len("2026-11-23")
    assert host.limits
    assert all(limit.source == MEASURED or limit.source.startswith("https://") for limit in host.limits)
    others = "tools description instructions result content timeout notification revision pages".split()
    assert {limit.on for limit in host.limits} <= {*CHECKS, *others}


def test_no_client_is_in_two_profiles() -> None:
    clients = [client for name in NAMES for client in profile(name).clients]

    assert len(clients) == len(set(clients))


def test_the_host_is_recognised_by_its_client_info() -> None:
    late = session(("server", LIST_CHANGED), client="cursor-vscode")

    assert [finding.code for finding in found(late, None)] == ["HOST302"]
    assert not found(session(("server", LIST_CHANGED)), None)


def test_a_given_host_replaces_the_recognised_one_and_none_turns_it_off() -> None:
    late = session(("server", LIST_CHANGED), client="cursor-vscode")

    assert not found(late, ())
    assert not found(late, chosen("vscode"))
    assert [finding.code for finding in found(late, chosen("vscode,cursor"))] == ["HOST302"]
    assert len(found(late, chosen("codex,cursor"))) == 2


def test_a_plain_tool_has_no_finding_on_any_host() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}}}

    assert not found(listed(tool("forecast", {**schema, "required": ["city"]})), chosen("all"))


def test_the_tools_of_all_pages_count_and_those_of_the_listing_before_do_not() -> None:
    names = [f"t{number}" for number in range(120)]
    first, second = ([tool(name) for name in names[place : place + 60]] for place in (0, 60))
    pages: list[tuple[str, dict[str, Any]]] = [
        ("client", {"id": 1, "method": "tools/list"}),
        ("server", {"id": 1, "result": {"tools": first, "nextCursor": "2"}}),
        ("client", {"id": 2, "method": "tools/list", "params": {"cursor": "2"}}),
        ("server", {"id": 2, "result": {"tools": second}}),
    ]
    again: list[tuple[str, dict[str, Any]]] = [
        ("client", {"id": 1, "method": "tools/list"}),
        ("server", {"id": 1, "result": {"tools": first}}),
        ("server", LIST_CHANGED),
        ("client", {"id": 2, "method": "tools/list"}),
        ("server", {"id": 2, "result": {"tools": second}}),
    ]
    windsurf = chosen("windsurf")

    (finding,) = [each for each in found(session(*pages), windsurf) if each.code == "HOST106"]
    assert "120 tools" in finding.message
    assert "HOST106" not in [each.code for each in found(session(*again), windsurf)]


@pytest.mark.parametrize(
    ("words", "wrong"), [("cursor,netscape", "netscape"), ("", "^$"), ("none,cursor", "none")]
)
def test_an_unknown_host_is_an_error_with_its_name(words: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        chosen(words)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"inputSchema": {"type": "object"}}, "object"),
        ({"inputSchema": {}}, "no type"),
        ({"inputSchema": {"type": ["object", "null"]}}, "types"),
        ({"inputSchema": {"type": "thing"}}, "other"),
        ({"inputSchema": {"type": "array"}}, "array"),
        ({"inputSchema": None}, "null"),
        ({"inputSchema": False}, "boolean"),
        ({"inputSchema": []}, "list"),
        ({}, "missing"),
    ],
)
def test_the_kind_of_a_root(parts: dict[str, Any], kind: str) -> None:
    assert root_kind(parts) == kind


def test_keywords_are_those_of_schemas_and_not_names_of_properties() -> None:
    schema = {"type": "object", "properties": {"not": {"type": "string"}, "a": {"const": {"pattern": 1}}}}

    assert set(keywords(schema)) == {"type", "const"}


def test_schemas_that_are_not_objects_are_named_by_their_kind() -> None:
    schema = {"properties": {"a": True, "b": None, "c": 3, "d": {"type": "string"}}}

    assert set(keywords(schema)) == {"boolean schema", "null schema", "other", "type"}


def test_keywords_of_a_schema_of_many_levels_end() -> None:
    schema: dict[str, Any] = {"const": 1}
    for _ in range(500):
        schema = {"items": schema}

    assert set(keywords(schema)) == {"items"}


def test_the_limits_are_those_of_the_version_of_the_host() -> None:
    def most(version: str) -> list[int]:
        host = profile_of_client("claude-code", version)
        assert host is not None
        return [limit.max for limit in host.of("description")]

    assert most("2.1.84") == most("2.1.234") == [2048]
    assert most("2.1.330") == most("2.2") == most("") == most("dev") == [4096]


def test_a_session_of_an_old_version_has_the_limits_of_that_version() -> None:
    page = {"id": 1, "result": {"tools": [{**tool("forecast"), "description": "d" * 3000}]}}
    messages = ("client", {"id": 1, "method": "tools/list"}), ("server", page)

    old = found(session(*messages, client="claude-code", version="2.1.200"), None)
    assert [finding.code for finding in old] == ["HOST105"]
    assert not found(session(*messages, client="claude-code", version="2.1.330"), None)


def test_a_limit_under_a_condition_is_reported_only_if_the_host_is_named() -> None:
    page = {"id": 1, "result": {"tools": [{**tool("a"), "outputSchema": DRAFT_07}]}}
    own = session(("client", {"id": 1, "method": "tools/list"}), ("server", page), client="claude-code")

    assert not found(own, None)
    assert [finding.code for finding in found(own, chosen("claude-code"))] == ["HOST108"]


DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}


@pytest.mark.parametrize(
    ("host", "tools", "verdict", "words"),
    [
        ("claude-code", [tool("a")], "works", "measured with 2.1.330"),
        ("cursor", [tool("a")], "unknown", "not measured"),
        ("claude-code", [{**tool("a"), "description": "d" * 5000}], "degraded", "cuts the description of a"),
        ("claude-desktop", [{**tool("a"), "outputSchema": DRAFT_07}], "degraded", "draft-07"),
        ("claude-code", [tool("a", {"type": "string"}), tool("b" * 200)], "blocked", "; and 1 more"),
        ("gemini-cli", [{**tool("a"), "_meta": {"ui": {"resourceUri": "ui://a"}}}], "unknown", "about apps"),
        ("openai", [tool(f"t{number}") for number in range(129)], "blocked", "fails with 129 tools"),
    ],
)
def test_a_host_has_a_verdict_with_its_reason_and_source(
    host: str, tools: list[dict[str, Any]], verdict: str, words: str
) -> None:
    linter, _ = linted(listed(*tools), chosen(host), "s")

    (given,) = linter.host_verdicts()
    assert given.verdict == verdict
    assert words in f"{given.reason} ({given.source})"


def test_the_verdict_on_a_session_without_the_tools_of_its_server_is_unknown() -> None:
    linter, _ = linted(session(("client", {"id": 1, "method": "ping"})), chosen("claude-code"), "s")

    (given,) = linter.host_verdicts()
    assert (given.verdict, given.reason) == ("unknown", "the session lists no tools")


def test_the_verdict_on_several_sessions_is_the_worst() -> None:
    verdicts = [
        HostVerdict("a", fitness, "", "") for fitness in (Fitness.WORKS, Fitness.BLOCKED, Fitness.UNKNOWN)
    ]

    assert worst(verdicts) == [HostVerdict("a", Fitness.BLOCKED, "", "")]
