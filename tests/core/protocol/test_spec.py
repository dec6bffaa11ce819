"""The tables, compared with a second, manual transcription of the five schemas."""

from __future__ import annotations

import pytest

from mcpspy.core.protocol.extensions import EXTENSION_METHODS
from mcpspy.core.protocol.spec import ERRORS, METHODS, MODERN, REVISIONS, error_name, is_known, other

C, S, BOTH = "client", "server", "either"

# Method, sender, first revision that has it, last revision that has it (None: still current).
REQUESTS = [
    ("initialize", C, "2024-11-05", "2025-11-25"),
    ("ping", BOTH, "2024-11-05", "2025-11-25"),
    ("server/discover", C, "2026-07-28", None),
    ("tools/list", C, "2024-11-05", None),
    ("tools/call", C, "2024-11-05", None),
    ("resources/list", C, "2024-11-05", None),
    ("resources/templates/list", C, "2024-11-05", None),
    ("resources/read", C, "2024-11-05", None),
    ("resources/subscribe", C, "2024-11-05", "2025-11-25"),
    ("resources/unsubscribe", C, "2024-11-05", "2025-11-25"),
    ("prompts/list", C, "2024-11-05", None),
    ("prompts/get", C, "2024-11-05", None),
    ("completion/complete", C, "2024-11-05", None),
    ("logging/setLevel", C, "2024-11-05", "2025-11-25"),
    ("subscriptions/listen", C, "2026-07-28", None),
    # In the core of 2025-11-25 for both sides, in an extension of 2026-07-28 for the client.
    ("tasks/get", BOTH, "2025-11-25", None),
    ("tasks/cancel", BOTH, "2025-11-25", None),
    ("tasks/result", BOTH, "2025-11-25", "2025-11-25"),
    ("tasks/list", BOTH, "2025-11-25", "2025-11-25"),
    ("tasks/update", C, "2026-07-28", None),
    # From 2026-07-28 on, these are parts of a result, not messages.
    ("sampling/createMessage", S, "2024-11-05", "2025-11-25"),
    ("roots/list", S, "2024-11-05", "2025-11-25"),
    ("elicitation/create", S, "2025-06-18", "2025-11-25"),
]
NOTIFICATIONS = [
    ("notifications/initialized", C, "2024-11-05", "2025-11-25"),
    ("notifications/cancelled", BOTH, "2024-11-05", None),
    ("notifications/progress", BOTH, "2024-11-05", None),
    ("notifications/message", S, "2024-11-05", None),
    ("notifications/tools/list_changed", S, "2024-11-05", None),
    ("notifications/prompts/list_changed", S, "2024-11-05", None),
    ("notifications/resources/list_changed", S, "2024-11-05", None),
    ("notifications/resources/updated", S, "2024-11-05", None),
    ("notifications/roots/list_changed", C, "2024-11-05", "2025-11-25"),
    ("notifications/tasks/status", BOTH, "2025-11-25", "2025-11-25"),
    ("notifications/elicitation/complete", S, "2025-11-25", "2025-11-25"),
    ("notifications/subscriptions/acknowledged", S, "2026-07-28", None),
    ("notifications/tasks", S, "2026-07-28", None),
]
ALL = [(*row, "request") for row in REQUESTS] + [(*row, "notification") for row in NOTIFICATIONS]
BY_NAME = pytest.mark.parametrize(
    ("name", "sender", "since", "until", "kind"), ALL, ids=[row[0] for row in ALL]
)

# Capability that the receiver must have declared before a request may be sent.
CAPABILITIES = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources.subscribe",
    "resources/unsubscribe": "resources.subscribe",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/list": "tasks.list",
    "tasks/cancel": "tasks.cancel",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
    "elicitation/create": "elicitation",
}

# The parameter that identifies the target of a request or notification.
SUBJECTS = {
    "tools/list": "cursor",
    "tools/call": "name",
    "resources/list": "cursor",
    "resources/templates/list": "cursor",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "prompts/list": "cursor",
    "prompts/get": "name",
    "completion/complete": "ref",
    "logging/setLevel": "level",
    "tasks/get": "taskId",
    "tasks/result": "taskId",
    "tasks/list": "cursor",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
    "elicitation/create": "message",
    "notifications/cancelled": "requestId",
    "notifications/progress": "progressToken",
    "notifications/message": "level",
    "notifications/resources/updated": "uri",
    "notifications/tasks/status": "taskId",
    "notifications/tasks": "taskId",
    "notifications/elicitation/complete": "elicitationId",
}


@BY_NAME
def test_a_method_has_its_kind_its_sender_and_its_revisions(
    name: str, sender: str, since: str, until: str | None, kind: str
) -> None:
    method = METHODS[name]
    assert (method.name, method.kind, method.sender) == (name, kind, sender)
    assert (method.since, method.until) == (since, until)


@BY_NAME
def test_a_method_is_known_in_exactly_its_revisions(
    name: str, sender: str, since: str, until: str | None, kind: str
) -> None:
    order = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    first, last = order.index(since), order.index(until or "2026-07-28")
    assert [is_known(name, revision) for revision in order] == [
        first <= place <= last for place in range(len(order))
    ]


def test_the_table_holds_every_method_once_and_no_other() -> None:
    of_extensions = {name for name, method in METHODS.items() if method.extension is not None}

    assert sorted(METHODS.keys() - of_extensions | {"tasks/update", "notifications/tasks"}) == sorted(
        row[0] for row in ALL
    )
    assert of_extensions <= EXTENSION_METHODS.keys()


def test_requests_need_the_capability_that_the_specification_names() -> None:
    assert {name: method.needs for name, method in METHODS.items() if method.needs} == CAPABILITIES


def test_methods_have_the_parameter_that_identifies_their_target() -> None:
    of_extensions = {
        name: method.subject
        for name, (_, method) in EXTENSION_METHODS.items()
        if method.subject and name in METHODS
    }

    assert {
        name: method.subject for name, method in METHODS.items() if method.subject
    } == SUBJECTS | of_extensions


@pytest.mark.parametrize("name", ["acme/frobnicate", "", "tools", "notifications/", "tools/call "])
def test_an_unknown_method_is_not_an_error(name: str) -> None:
    assert [is_known(name, revision) for revision in REVISIONS] == [False] * 5


def test_revisions_are_oldest_first_and_sort_as_text() -> None:
    assert REVISIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert list(REVISIONS) == sorted(REVISIONS)
    assert MODERN == "2026-07-28"


def test_the_error_codes_are_those_with_one_meaning() -> None:
    assert sorted(ERRORS) == [
        -32801,
        -32800,
        -32700,
        -32603,
        -32602,
        -32601,
        -32600,
        -32042,
        -32022,
        -32021,
        -32020,
        -32002,
    ]
    assert not [code for code in ERRORS if -32019 <= code <= -32000 and code != -32002], (
        "each SDK has its own meaning for these"
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-32700, "parse error"),
        (-32002, "resource not found"),
        (-32020, "header mismatch"),
        (-32800, "request cancelled"),
    ]
    + [(code, "server error") for code in (-32000, -32001, -32019, -32023, -32099)]
    + [(code, None) for code in (-31999, -32100, 0, 404, None)],
)
def test_a_code_has_a_name_if_a_specification_gives_it_one(code: int | None, name: str | None) -> None:
    assert error_name(code) == name


def test_the_other_end_of_the_other_end_is_this_one() -> None:
    assert (other("client"), other("server")) == ("server", "client")
