"""Comparison of handshakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity
from mcpspy.analysis.diff.results import handshake, is_across_handshake
from mcpspy.analysis.diff.steps import SessionSteps
from mcpspy.core.session.session import Session

BREAKING, DIFFERENT, NOTE = ChangeSeverity
Make = Callable[..., Session]

RESULT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}, "logging": {}},
    "serverInfo": {"name": "s", "version": "1"},
    "instructions": "be kind",
}


def initialize(result: dict[str, Any] | None, requested: str = "2025-11-25", client: str = "c") -> list[Any]:
    params = {
        "protocolVersion": requested,
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    }
    messages: list[Any] = [("client", {"id": 1, "method": "initialize", "params": params})]
    if result is not None:
        messages.append(
            ("server", {"id": 1, **({"result": result} if "code" not in result else {"error": result})})
        )
    return messages


def handshake_changes(record: Make, old: Any, new: Any) -> list[tuple[str, ChangeSeverity, str]]:
    case = handshake(SessionSteps(record(old)), SessionSteps(record(new)))
    assert case is not None
    return [(change.pointer, change.severity, change.why) for change in case.changes]


@pytest.mark.parametrize(
    ("change", "weight"),
    [
        ({}, []),
        ({"serverInfo": {"name": "s", "version": "2"}}, [("/result/serverInfo/version", NOTE, "")]),
        ({"serverInfo": {"name": "t", "version": "1"}}, [("/result/serverInfo/name", DIFFERENT, "")]),
        ({"instructions": "be quick"}, [("/result/instructions", NOTE, "")]),
        ({"protocolVersion": "2025-06-18"}, [("/result/protocolVersion", DIFFERENT, "")]),
        (
            {"capabilities": {"logging": {}}},
            [("/result/capabilities/tools", BREAKING, "lost the capability tools")],
        ),
        (
            {"capabilities": {"tools": {"listChanged": False}, "logging": {}, "prompts": {}}},
            [
                (
                    "/result/capabilities/tools/listChanged",
                    DIFFERENT,
                    "lost the capability tools.listChanged",
                ),
                ("/result/capabilities/prompts", NOTE, "gained the capability prompts"),
            ],
        ),
        (
            {"capabilities": {"tools": {"listChanged": True, "subscribe": False}, "logging": {}}},
            [],
        ),
        (
            {"capabilities": {"tools": {"listChanged": "yes"}, "logging": {}}},
            [("/result/capabilities/tools/listChanged", DIFFERENT, "")],
        ),
        (
            {"capabilities": {**RESULT["capabilities"], "experimental": {"x": {}}}},  # type: ignore[dict-item]
            [("/result/capabilities/experimental", NOTE, "")],
        ),
    ],
    ids=str,
)
def test_a_change_of_the_server_has_a_severity(
    record: Make, change: dict[str, Any], weight: list[Any]
) -> None:
    assert handshake_changes(record, initialize(RESULT), initialize({**RESULT, **change})) == weight


def test_a_change_of_the_client_is_a_note(record: Make) -> None:
    assert handshake_changes(record, initialize(RESULT), initialize(RESULT, client="d")) == [
        ("/params/clientInfo", NOTE, "")
    ]


def test_another_revision_is_a_note_if_the_client_requested_another(record: Make) -> None:
    older = {**RESULT, "protocolVersion": "2025-06-18"}

    assert handshake_changes(record, initialize(RESULT), initialize(older, requested="2025-06-18")) == [
        ("/result/protocolVersion", NOTE, "")
    ]


def test_a_handshake_that_fails_is_breaking(record: Make) -> None:
    refused = {"code": -32602, "message": "too old"}

    case = handshake(SessionSteps(record(initialize(RESULT))), SessionSteps(record(initialize(refused))))
    assert case is not None
    first = case.changes[0]
    assert (first.kind, first.severity, first.why) == (
        ChangeKind.ERROR,
        BREAKING,
        "ok → error -32602 invalid params: too old",
    )
    assert first.new == refused
    assert handshake_changes(record, initialize(RESULT), initialize(None))[0] == (
        "",
        BREAKING,
        "ok → no answer to initialize",
    )
    case = handshake(SessionSteps(record(initialize(None))), SessionSteps(record(initialize(RESULT))))
    assert case is not None
    assert case.changes[0].kind is ChangeKind.RECOVERED


def test_a_refused_probe_is_not_a_difference(record: Make) -> None:
    probe = [
        ("client", {"id": "p", "method": "server/discover", "params": {}}),
        ("server", {"id": "p", "error": {"code": -32601, "message": "no"}}),
    ]

    assert handshake_changes(record, initialize(RESULT), [*probe, *initialize(RESULT)]) == []


def test_a_revision_that_is_no_longer_supported_is_breaking(record: Make) -> None:
    def discover(versions: list[str]) -> list[Any]:
        result = {"supportedVersions": versions, "capabilities": {}, "ttlMs": len(versions)}
        return [
            ("client", {"id": 1, "method": "server/discover", "params": {}}),
            ("server", {"id": 1, "result": result}),
        ]

    both, one = discover(["2026-07-28", "2027-01-01"]), discover(["2027-01-01"])
    assert handshake_changes(record, both, one) == [("/result/supportedVersions/0", BREAKING, "")]
    assert handshake_changes(record, one, both) == [("/result/supportedVersions/0", NOTE, "")]


def test_sessions_with_and_without_a_handshake_are_distinguished(
    record: Make, recorded: Callable[[str], Session]
) -> None:
    legacy, modern = SessionSteps(recorded("peer-sdk-legacy")), SessionSteps(recorded("peer-sdk-modern"))

    assert is_across_handshake(legacy, modern)
    assert not is_across_handshake(modern, SessionSteps(recorded("peer-sdk-auto")))
    assert handshake(SessionSteps(record([])), SessionSteps(record([]))) is None


def test_across_eras_only_what_is_gone_as_a_whole_is_breaking(record: Make) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/serverInfo": RESULT["serverInfo"]}}
    requested = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}

    def discover(capabilities: dict[str, Any]) -> list[Any]:
        result = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "instructions": "be kind",
        }
        return [
            ("client", {"id": 1, "method": "server/discover", "params": requested}),
            ("server", {"id": 1, "result": {**result, "resultType": "complete", "ttlMs": 1, **meta}}),
        ]

    def server(capabilities: dict[str, Any]) -> list[Any]:
        changes = handshake_changes(record, initialize(RESULT), discover(capabilities))
        return [(pointer, weight) for pointer, weight, _ in changes if pointer.startswith("/result")]

    assert server({"tools": {}}) == [
        ("/result/protocolVersion", NOTE),
        ("/result/capabilities/tools/listChanged", NOTE),
        ("/result/capabilities/logging", NOTE),
    ]
    assert ("/result/capabilities/tools", BREAKING) in server({})


@pytest.mark.parametrize("name", ["sampling", "roots", "somethingOfItsMaker"])
def test_a_lost_capability_that_no_method_of_a_server_needs_breaks_nothing(record: Make, name: str) -> None:
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}, name: {}}
    old, new = initialize({**RESULT, "capabilities": capabilities}), initialize(RESULT)

    assert handshake_changes(record, old, new) == [(f"/result/capabilities/{name}", NOTE, "")]


def test_a_server_is_compared_where_its_revision_has_its_description(record: Make) -> None:
    """Since 2026-07-28, `serverInfo` is in `_meta` of each result."""
    server = {"name": "s", "version": "1", "description": "old"}

    def discover(description: str) -> list[Any]:
        meta = {"io.modelcontextprotocol/serverInfo": {**server, "description": description}}
        result = {"supportedVersions": ["2026-07-28"], "capabilities": RESULT["capabilities"], "_meta": meta}
        return [
            ("client", {"id": 1, "method": "server/discover", "params": {}}),
            ("server", {"id": 1, "result": {**result, "instructions": "be kind"}}),
        ]

    changed = ("/result/serverInfo/description", NOTE, "")
    assert handshake_changes(record, discover("old"), discover("new")) == [changed]
    legacy = initialize({**RESULT, "serverInfo": server})
    assert changed not in handshake_changes(record, legacy, discover("old"))
    assert changed in handshake_changes(record, legacy, discover("new"))
