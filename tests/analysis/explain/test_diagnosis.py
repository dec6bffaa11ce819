"""The rank of causes, and the consequences that they leave out, in sessions of a few lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.analysis.explain import CAUSES, Diagnosis, Explainer
from mcpspy.analysis.explain.causes import BY_RULE, START_SIGNS
from mcpspy.analysis.explain.diagnosis import CONSEQUENCES, SHOWN
from mcpspy.analysis.lint import RULES, EntryPosition
from mcpspy.core.recording.decode import Header, read_entry

HEADER = Header(
    mcpspy=1, id="0", started="2026-01-01T00:00:00.000Z", transport="stdio", command=["server"], name="server"
)


def explained(*entries: dict[str, Any]) -> Diagnosis:
    """Return the diagnosis of a session with these lines, 0.1 s apart."""
    explainer = Explainer(HEADER)
    for number, entry in enumerate(entries, 2):
        line = json.dumps({"t": number / 10, **entry}, separators=(",", ":")).encode()
        explainer.add(read_entry(line), EntryPosition(number))
    explainer.end()
    return explainer.diagnosis()


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(number: int) -> dict[str, Any]:
    params = {"name": "a", "arguments": {}}
    return {
        "from": "client",
        "msg": {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params},
    }


def failed(number: int, text: str) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": text}], "isError": True}
    return {"from": "server", "msg": {"jsonrpc": "2.0", "id": number, "result": result}}


def codes(diagnosis: Diagnosis) -> list[str]:
    return [cause.code for cause in diagnosis.causes]


def test_every_rule_that_is_a_sign_exists() -> None:
    assert BY_RULE.keys() <= {rule.code for rule in RULES}


def test_tables_name_known_causes() -> None:
    assert START_SIGNS.keys() <= CAUSES.keys()
    assert CONSEQUENCES.keys() | {each for every in CONSEQUENCES.values() for each in every} <= CAUSES.keys()


def test_a_server_that_did_not_start_explains_the_request_without_a_response() -> None:
    diagnosis = explained(
        call(1),
        {"note": "stderr", "text": "ModuleNotFoundError: No module named 'x'"},
        {"note": "exit", "code": 1, "signal": None},
    )
    assert codes(diagnosis) == ["module-missing"]
    assert diagnosis.causes[0].evidence[0].line == 3


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("command-not-found", "sh: 1: uvxx: not found"),
        ("command-not-found", "env: 'node': No such file or directory"),
        ("permission-denied", "Error: spawn ./server EACCES"),
        ("module-missing", "npm error 404 Not Found - GET - Not found"),
        ("module-missing", "Because mcp-wether was not found in the package registry and you require it"),
        ("module-missing", "python3: can't open file '/srv/server.py': [Errno 2] No such file or directory"),
        ("runtime-version", "You are using Node.js 16.4.0. Node.js version >= 20 is required."),
        (
            "runtime-version",
            "error: The requested interpreter resolved to Python 3.9.6, which is incompatible",
        ),
        (
            "runtime-version",
            "java.lang.UnsupportedClassVersionError: App has been compiled by a more recent version",
        ),
        ("runtime-version", "ModuleNotFoundError: No module named 'tomllib'"),
        ("configuration-missing", "Error: Missing required environment variable: DATABASE_URL"),
        ("configuration-missing", "server: error: the following arguments are required: --api-key"),
        ("start-failed", "docker: Cannot connect to the Docker daemon"),
        ("start-failed", "SyntaxError: invalid syntax"),
    ],
)
def test_stderr_explains_a_server_that_did_not_start(cause: str, text: str) -> None:
    ended = {"note": "exit", "code": 1, "signal": None}
    assert codes(explained(call(1), {"note": "stderr", "text": text}, ended)) == [cause]


def test_a_request_without_a_response_is_shown_with_the_stderr_after_it() -> None:
    ended = ({"note": "eof", "from": "client"}, {"note": "exit", "code": 0, "signal": None})
    lines = ({"note": "stderr", "text": "waiting for lock"}, {"note": "stderr", "text": "  File x, line 3"})
    cause = explained(call(1), *lines, *ended).causes[0]
    assert cause.code == "no-response"
    assert [each.text for each in cause.evidence][1:] == ["stderr: waiting for lock"]


def test_evidence_is_bounded_and_counted() -> None:
    entries = [each for number in range(1, 20) for each in (call(number), failed(number, f"no {number}"))]
    (cause,) = (each for each in explained(*entries).causes if each.code == "request-failed")
    assert len(cause.evidence) == SHOWN
    assert cause.count == 19


def test_evidence_has_no_control_characters_and_is_short() -> None:
    (cause,) = (
        each
        for each in explained(call(1), failed(1, "\x1b[31m" + "x" * 5000)).causes
        if each.code == "request-failed"
    )
    assert "\x1b" not in cause.detail
    assert len(cause.detail) <= 200


def test_a_session_without_messages_has_no_cause() -> None:
    assert (
        explained({"note": "eof", "from": "client"}, {"note": "exit", "code": 0, "signal": None}).causes == ()
    )


def post(number: int, method: str, status: int, **params: Any) -> list[dict[str, Any]]:
    """Return a message that was posted, and the head of its HTTP response."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    head = {"method": "POST", "path": "/mcp", "status": status, "request": {}, "response": {}}
    return [
        {"from": "client", "http": number, "msg": message},
        {"note": "http", "http": number, **head},
    ]


def test_a_refusal_is_forgotten_when_the_same_request_succeeds() -> None:
    refused, again = post(1, "tools/list", 401), post(2, "tools/list", 200)
    assert "authorization" not in codes(explained(*refused, *again))


def test_a_refusal_of_another_request_than_the_one_that_succeeds_is_a_cause() -> None:
    refused, ping = post(1, "tools/call", 401, name="a", arguments={}), post(2, "ping", 200)
    assert codes(explained(*refused, *ping))[0] == "authorization"


def test_a_refusal_is_forgotten_when_the_client_signs_in_and_begins_again() -> None:
    refused, again = post(1, "server/discover", 401), post(2, "initialize", 200)
    assert "authorization" not in codes(explained(*refused, *again))


def test_an_error_with_the_id_null_names_the_revision_that_the_server_refuses() -> None:
    error = {"code": -32000, "message": "Bad Request: Unsupported protocol version"}
    response = {"from": "server", "http": 1, "msg": {"jsonrpc": "2.0", "id": None, "error": error}}
    refused = post(1, "notifications/initialized", 400)
    assert codes(explained(*refused, response)) == ["version-mismatch"]


@pytest.mark.parametrize(
    ("status", "code", "text", "cause"),
    [
        (400, -32602, "Unknown tool: a", "unlisted-tool"),
        (404, -32601, "Method not found", "method-not-found"),
    ],
)
def test_a_json_rpc_error_comes_before_its_http_status(status: int, code: int, text: str, cause: str) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": text}}
    response = {"from": "server", "http": 1, "msg": error}
    assert codes(explained(*post(1, "tools/call", status, name="a", arguments={}), response))[0] == cause


def error(number: int, code: int, text: str) -> dict[str, Any]:
    return {
        "from": "server",
        "msg": {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}},
    }


def test_a_request_that_timed_out_and_one_that_failed_have_different_causes() -> None:
    assert codes(explained(call(1), error(1, -32001, "Request timed out after 60 s")))[0] == "timeout"
    assert codes(explained(call(1), error(1, -32000, "disk full")))[0] == "request-failed"


def test_the_end_of_the_connection_is_not_a_failure_of_a_subscription() -> None:
    params = {"_meta": META, "notifications": {"toolsListChanged": True}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    listen = {"from": "client", "msg": message}
    assert codes(explained(listen, error(1, -32000, "Connection closed"))) == []
    assert codes(explained(listen, error(1, -32603, "Connection closed"))) != []


def test_a_client_that_closed_the_connection_wanted_the_server_to_end() -> None:
    answered = {"from": "server", "msg": {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}}
    close, end = {"note": "eof", "from": "client"}, {"note": "exit", "code": 1, "signal": None}
    assert "crash" not in codes(explained(call(1), answered, close, end))
    assert codes(explained(call(1), answered, end))[0] == "crash"


def test_an_endpoint_that_has_answered_is_not_wrong() -> None:
    assert codes(explained(*post(1, "tools/call", 404, name="a", arguments={}))) == ["wrong-endpoint"]
    answered = {"from": "server", "http": 1, "msg": {"jsonrpc": "2.0", "id": 1, "result": {}}}
    later = post(2, "tools/call", 404, name="a", arguments={})
    assert codes(explained(*post(1, "ping", 200), answered, *later)) == ["http-error"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_client_that_notices_the_end_before_its_exit_is_recorded_did_not_cause_it(code: int) -> None:
    ended = ({"note": "eof", "from": side} for side in ("server", "client"))
    hello = {"from": "server", "msg": {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}}
    diagnosis = explained(hello, call(1), *ended, {"note": "exit", "code": code, "signal": None})
    assert codes(diagnosis)[0] == "crash"


@pytest.mark.parametrize(("seconds", "cause"), [(2.0, ["timeout"]), (0.1, [])])
def test_a_client_that_closes_the_connection_of_its_request_gave_up_waiting(
    seconds: float, cause: list[str]
) -> None:
    asked, _ = post(1, "tools/call", 200, name="a", arguments={}, _meta=META)
    asked["stream"] = "1"
    end = {"note": "http-end", "http": 1, "stream": "1", "hung_up": "client", "t": 0.2 + seconds}
    assert [code for code in codes(explained(asked, end)) if code in ("timeout", "no-response")] == cause


def test_a_revision_that_discovery_does_not_list_is_a_mismatch_unless_the_client_succeeds_without_it() -> (
    None
):
    def request(number: int, method: str) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": META}}
        return {"from": "client", "msg": message}

    def response(number: int, **result: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete", **result}}
        return {"from": "server", "msg": message}

    hints = {"capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    discovered = request(1, "server/discover"), response(1, supportedVersions=["2099-01-01"], **hints)
    listed = request(2, "tools/list"), response(2, tools=[], ttlMs=0, cacheScope="private")
    assert codes(explained(*discovered)) == ["version-mismatch"]
    assert codes(explained(*discovered, *listed)) == []


def test_a_damaged_line_is_a_lost_record_and_not_a_message() -> None:
    explainer = Explainer(HEADER)
    explainer.add(read_entry(b'{"t":0.1,"fro'), EntryPosition(2))
    explainer.end()
    assert codes(explainer.diagnosis()) == ["records-lost"]


def task(number: int, status: str, *, is_first: bool = False, **members: Any) -> dict[str, Any]:
    shown = {"taskId": "a", "status": status, **members}
    result = {"task": shown} if is_first else shown
    return {"from": "server", "msg": {"jsonrpc": "2.0", "id": number, "result": result}}


def poll(number: int, method: str = "tasks/get") -> dict[str, Any]:
    params = {"taskId": "a"}
    return {"from": "client", "msg": {"jsonrpc": "2.0", "id": number, "method": method, "params": params}}


STARTED_TASK = (call(1), task(1, "working", is_first=True))


def signs_of(code: str, diagnosis: Diagnosis) -> list[str]:
    """Return the signs of a cause."""
    return [sign.text for cause in diagnosis.causes if cause.code == code for sign in cause.evidence]


def test_a_task_that_failed_is_the_failure_of_its_call() -> None:
    ended = (poll(2), task(2, "failed", statusMessage="worker died"))
    found = explained(*STARTED_TASK, *ended)
    assert signs_of("request-failed", found) == ["tools/call a: task failed: worker died"]

    # Its result has the reason, and takes the place of the status.
    found = explained(*STARTED_TASK, *ended, poll(3, "tasks/result"), failed(3, "no memory"))
    assert signs_of("request-failed", found) == ["tools/call a: tool error: no memory"]


def test_a_task_that_still_works_at_the_end_got_no_response() -> None:
    found = explained(*STARTED_TASK, poll(2), task(2, "working", statusMessage="3 of 7"))
    assert signs_of("no-response", found) == ["tools/call a: task not finished: 3 of 7"]


def test_a_poll_that_fails_is_not_a_failure_of_its_call() -> None:
    error = {"code": -32603, "message": "busy"}
    refused = {"from": "server", "msg": {"jsonrpc": "2.0", "id": 2, "error": error}}
    completed = (poll(3), task(3, "completed"))
    assert "request-failed" not in codes(explained(*STARTED_TASK, poll(2), refused, *completed))


def test_an_injected_call_that_fails_is_not_a_sign() -> None:
    sent = {**call(1), "by": "mcpspy"}
    assert "request-failed" not in codes(explained(sent, failed(1, "boom")))
