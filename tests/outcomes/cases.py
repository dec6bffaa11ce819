"""Tricky requests, each as a scene: the lines of the recording, and what every surface has to say of them.

A case is a session of one scene or of several. The definitions: `errors` are the requests that failed, and error
responses that settled no request; `unanswered` are the requests without a response when the session ended; `issues`
are the messages with a protocol issue. What a viewer injected is in none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.outcomes.tape import ANY, HOST, Case, Scene, Tape

STDIO: dict[str, Scene] = {}
MODERN: dict[str, Scene] = {}
HTTP: dict[str, Scene] = {}
MODERN_HTTP: dict[str, Scene] = {}
ENDS: dict[str, Scene] = {}
"""Scenes that end the session, or have to be its last."""
LIVE: dict[str, Scene] = {}


def scene(table: dict[str, Scene], name: str) -> Callable[[Scene], Scene]:
    def add(function: Scene) -> Scene:
        table[name] = function
        return function

    return add


# One request and its response.


@scene(STDIO, "a result is a success")
def _ok(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number)
    tape.expect(number, "ok", tape.answer(number) - begin, "ok")


@scene(STDIO, "a tool error is a failure")
def _tool_error(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "toolerr")
    tape.expect(number, "tool error", tape.fail_tool(number) - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(STDIO, "a JSON-RPC error is a failure")
def _error(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "rpcerr")
    tape.expect(number, "error", tape.fail(number) - begin, "-32000", "server down")
    tape.causes.add("request-failed")


@scene(STDIO, "a request without a response is unanswered")
def _silent(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "silent")
    tape.expect(number, "no answer", None, "no answer")


@scene(STDIO, "an error with the id null leaves its request unanswered, and counts")
def _null_id(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "nullid")
    tape.fail(None, "Parse error", code=-32700)
    tape.expect(number, "no answer", None, "no answer")
    tape.strays += 1
    tape.issues += 1


@scene(STDIO, "a result with another id leaves the request unanswered")
def _wrong_id(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "wrongid")
    tape.answer(number + 7000)
    tape.expect(number, "no answer", None, "no answer")
    tape.issues += 1


@scene(STDIO, "an error without a request is an error")
def _stray_error(tape: Tape) -> None:
    tape.fail(tape.number() + 7000, "without a request")
    tape.strays += 1
    tape.issues += 1


@scene(STDIO, "a tool error without a request is an error")
def _stray_tool_error(tape: Tape) -> None:
    tape.fail_tool(tape.number() + 7000)
    tape.strays += 1
    tape.issues += 1


@scene(STDIO, "a result without a request is an issue, not an error")
def _stray_result(tape: Tape) -> None:
    tape.answer(tape.number() + 7000)
    tape.issues += 1


@scene(STDIO, "a second response that is an error counts beside the first")
def _twice(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "twice")
    tape.expect(number, "ok", tape.answer(number) - begin, "ok")
    tape.fail(number, "again")
    tape.strays += 1
    tape.issues += 1


@scene(STDIO, "two requests with one id in flight have an outcome each")
def _same_id(tape: Tape) -> None:
    number = tape.number()
    first = tape.ask(number, "dup")
    second = tape.ask(number, "dup")
    tape.expect(number, "ok", tape.answer(number) - first, "ok")
    tape.expect(number, "error", tape.fail(number, "dup failed", code=-32001) - second, "dup failed")
    tape.issues += 3  # The second request, and the responses that are paired by order.


@scene(STDIO, "a response with a result and an error has one outcome")
def _both(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "both")
    error = {"code": -32000, "message": "both"}
    end = tape.say("server", {"jsonrpc": "2.0", "id": number, "result": {"content": []}, "error": error})
    tape.expect(number, "error", end - begin, "both")
    tape.issues += 1


@scene(STDIO, "a request that the client fails is an error")
def _client_fails(tape: Tape) -> None:
    begin = tape.ask("s1", method="roots/list", side="server")
    end = tape.fail("s1", "no roots", code=-32601, side="client")
    tape.expect("s1", "error", end - begin, "no roots", server=True)


@scene(STDIO, "a request that the client never answers is unanswered")
def _client_silent(tape: Tape) -> None:
    tape.ask("s2", method="ping", side="server")
    tape.expect("s2", "no answer", None, "no answer", server=True)


@scene(STDIO, "noise on stdout is an issue, not an error")
def _noise(tape: Tape) -> None:
    tape.noise("server", "plain text")
    tape.issues += 1


@scene(STDIO, "a damaged line is an issue, not an error")
def _damaged(tape: Tape) -> None:
    tape.lines.append(b'{"t":1.0,"from":"server"')
    tape.issues += 1


@scene(STDIO, "an error of an unknown method is a failure")
def _unknown_method(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, method="prompts/list")
    end = tape.fail(number, "Method not found", code=-32601)
    tape.expect(number, "error", end - begin, "-32601")
    tape.causes.add("method-not-found")


# Cancellations.


@scene(STDIO, "a cancelled request without a response has not failed")
def _cancelled(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "gone")
    tape.wait(2.4)
    tape.cancel(number)
    tape.expect(number, "cancelled", None, "cancelled", "by the client", "2.5")


@scene(STDIO, "a cancellation after the response changes nothing")
def _cancelled_after(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number)
    tape.expect(number, "ok", tape.answer(number) - begin, "ok")
    tape.cancel(number)
    tape.issues += 1


@scene(STDIO, "a cancellation after a tool error changes nothing")
def _cancelled_after_error(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "toolerr")
    tape.expect(number, "tool error", tape.fail_tool(number) - begin, "tool error", "boom")
    tape.cancel(number)
    tape.issues += 1


@scene(STDIO, "a server may cancel its own request")
def _cancelled_by_server(tape: Tape) -> None:
    tape.ask("s3", method="sampling/createMessage", params={"messages": [], "maxTokens": 1}, side="server")
    tape.cancel("s3", side="server")
    tape.expect("s3", "cancelled", None, "cancelled", "by the server", server=True)


@scene(STDIO, "a server cannot cancel the client's request")
def _cancelled_by_other(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "silent")
    tape.cancel(number, side="server")
    tape.expect(number, "no answer", None, "no answer")
    tape.issues += 1


@scene(STDIO, "a late result is not a failure")
def _late_ok(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "lateok")
    tape.cancel(number)
    tape.expect(number, "answered late", tape.answer(number) - begin, "late")
    tape.issues += 1


@scene(STDIO, "a late tool error is a failure")
def _late_tool_error(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "latebad")
    tape.cancel(number)
    tape.expect(number, "late tool error", tape.fail_tool(number) - begin, "late", "boom")
    tape.issues += 1
    tape.causes.add("timeout")


@scene(STDIO, "a late error is a failure")
def _late_error(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "laterpc")
    tape.cancel(number)
    tape.expect(
        number, "late error", tape.fail(number, "late failure") - begin, "late", "late failure", "-32000"
    )
    tape.issues += 1
    tape.causes.add("timeout")


# Interception and injected requests.


def rule(tape: Tape, action: str, number: Any, tool: str, **fields: Any) -> None:
    about = {"from": "client", "id": str(number), "method": "tools/call", "subject": tool}
    tape.note("rule", action=action, **about, **({"rule": "1"} | fields))


@scene(STDIO, "a dropped request is neither failed nor unanswered")
def _dropped(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "dropme", to="mcpspy")
    rule(tape, "drop", number, "dropme")
    tape.expect(number, "dropped", None, "dropped")
    tape.is_kept_back = True
    tape.causes.add("mcpspy-rule")


@scene(STDIO, "the error of a rule is a failure: the client received it")
def _rule_error(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "ruleerr", to="mcpspy")
    rule(tape, "error", number, "ruleerr", sent="{}")
    tape.fail(number, "by rule", code=-32050, by="mcpspy")
    tape.expect(number, "error", None, "by rule")
    tape.causes.add("mcpspy-rule")


@scene(STDIO, "the tool error of a rule is a failure")
def _rule_tool_error(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "respond", to="mcpspy")
    rule(tape, "respond", number, "respond", sent="{}")
    tape.fail_tool(number, "rule", by="mcpspy")
    tape.expect(number, "tool error", None, "tool error", "rule")
    tape.causes.add("mcpspy-rule")


@scene(STDIO, "the latency of a held request is without the time it was held")
def _held(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "held")
    rule(tape, "hold", number, "held", ticket=number)
    tape.wait(5.0)
    rule(tape, "release", number, "held", ticket=number, why="accepted", seconds=5.0)
    tape.expect(number, "ok", tape.answer(number) - begin - 5.0, "ok")


@scene(STDIO, "a request that a viewer drops is neither failed nor unanswered")
def _dropped_by_viewer(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "held")
    rule(tape, "hold", number, "held", ticket=number)
    tape.wait(1.0)
    rule(tape, "release", number, "held", ticket=number, why="dropped", seconds=1.0, viewer="tui")
    tape.expect(number, "dropped", None, "dropped")
    tape.is_kept_back = True


@scene(STDIO, "a timed-out request fails with the error of mcpspy, and its own response is swallowed")
def _timed_out(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, "slow")
    end = tape.fail(number, "timed out", by="mcpspy")
    rule(tape, "timeout", number, "slow", seconds=0.1)
    tape.answer(number, to="mcpspy")
    rule(tape, "swallowed", number, "slow")
    tape.expect(number, "error", end - begin, "timed out")
    tape.causes.add("mcpspy-rule")


@scene(STDIO, "an injected call that fails is not a failure of the session")
def _injected(tape: Tape) -> None:
    number = f"mcpspy-{tape.number()}"
    tape.ask(number, "inj", by="mcpspy")
    rule(tape, "inject", f'"{number}"', "inj", viewer="send")
    tape.fail_tool(number, to="mcpspy")
    tape.expect(number, "tool error", None, injected=True)
    tape.injected += 1


@scene(STDIO, "an injected call with a JSON-RPC error is not a failure of the session")
def _injected_error(tape: Tape) -> None:
    number = f"mcpspy-{tape.number()}"
    tape.ask(number, "inj", by="mcpspy")
    rule(tape, "inject", f'"{number}"', "inj", viewer="send")
    tape.fail(number, to="mcpspy")
    tape.expect(number, "error", None, injected=True)
    tape.injected += 1


@scene(STDIO, "an injected call without a response is not unanswered")
def _injected_silent(tape: Tape) -> None:
    number = f"mcpspy-{tape.number()}"
    tape.ask(number, "inj", by="mcpspy")
    rule(tape, "inject", f'"{number}"', "inj", viewer="send")
    tape.expect(number, "no answer", None, injected=True)
    tape.injected += 1


# Batches (2025-03-26).


@scene(STDIO, "one failure in a batch is one error")
def _batch(tape: Tape) -> None:
    one, two = tape.number(), tape.number()
    call = {"jsonrpc": "2.0", "method": "tools/call"}
    begin = tape.say(
        "client",
        [
            {**call, "id": one, "params": {"name": "b1", "arguments": {}}},
            {**call, "id": two, "params": {"name": "b2", "arguments": {}}},
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        ],
    )
    text = [{"type": "text", "text": "boom"}]
    end = tape.say(
        "server",
        [
            {"jsonrpc": "2.0", "id": one, "result": {"content": []}},
            {"jsonrpc": "2.0", "id": two, "result": {"content": text, "isError": True}},
        ],
    )
    tape.expect(one, "ok", end - begin, "ok")
    tape.expect(two, "tool error", end - begin, "tool error", "boom")
    tape.causes.add("request-failed")


# Tasks of 2025-11-25.


def task(name: str, status: str, **members: Any) -> dict[str, Any]:
    return {"taskId": name, "status": status, "createdAt": AT, "lastUpdatedAt": AT, "ttl": 60000, **members}


AT = "2026-11-22T08:00:00Z"


def call_task(tape: Tape, number: Any, name: str, status: str = "working") -> float:
    """Add a call that is answered by a task; return the time of the call."""
    begin = tape.ask(number, name, params={"task": {"ttl": 60000}})
    tape.answer(number, {"task": task(name, status)})
    return begin


@scene(STDIO, "a failed task is the failure of its call")
def _task_failed(tape: Tape) -> None:
    number = tape.number()
    begin = call_task(tape, number, "tdead")
    end = tape.poll(tape.number(), "tasks/get", "tdead", task("tdead", "failed", statusMessage="worker died"))
    tape.expect(number, "task failed", end - begin, "task failed", "worker died")
    tape.causes.add("task-failed")


@scene(STDIO, "a failed task with an error as its result is an error, once")
def _task_error(tape: Tape) -> None:
    number, result = tape.number(), tape.number()
    begin = call_task(tape, number, "tfail")
    end = tape.poll(tape.number(), "tasks/get", "tfail", task("tfail", "failed", statusMessage="worker died"))
    tape.ask_about(result, "tasks/result", "tfail")
    tape.fail(result, "worker died", code=-32603)
    tape.expect(number, "error", end - begin, "worker died")
    tape.causes.add("request-failed")


@scene(STDIO, "a failed task with a tool error as its result is a tool error, once")
def _task_tool_error(tape: Tape) -> None:
    number, result = tape.number(), tape.number()
    begin = call_task(tape, number, "tbad")
    end = tape.poll(tape.number(), "tasks/get", "tbad", task("tbad", "failed", statusMessage="tool error"))
    tape.ask_about(result, "tasks/result", "tbad")
    tape.fail_tool(result)
    tape.expect(number, "tool error", end - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(STDIO, "a task that completed with isError is a tool error")
def _task_completed_badly(tape: Tape) -> None:
    number, result = tape.number(), tape.number()
    begin = call_task(tape, number, "tdone")
    end = tape.poll(tape.number(), "tasks/get", "tdone", task("tdone", "completed"))
    tape.ask_about(result, "tasks/result", "tdone")
    tape.fail_tool(result)
    tape.expect(number, "tool error", end - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(STDIO, "the latency of a task runs to its terminal state")
def _task_ok(tape: Tape) -> None:
    number = tape.number()
    begin = call_task(tape, number, "tok")
    tape.poll(tape.number(), "tasks/get", "tok", task("tok", "working", statusMessage="fetching"))
    tape.wait(2.0)
    end = tape.poll(tape.number(), "tasks/get", "tok", task("tok", "completed"))
    tape.wait(1.0)
    tape.poll(tape.number(), "tasks/result", "tok")
    tape.expect(number, "ok", end - begin, "ok", "task")


@scene(STDIO, "a result of a task ends it, also without a poll before")
def _task_blocking(tape: Tape) -> None:
    number, result = tape.number(), tape.number()
    begin = call_task(tape, number, "tblock")
    tape.ask_about(result, "tasks/result", "tblock")
    tape.wait(3.0)
    end = tape.fail_tool(result)
    tape.expect(number, "tool error", end - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(STDIO, "a notification may report the end of a task")
def _task_notified(tape: Tape) -> None:
    number = tape.number()
    begin = call_task(tape, number, "tnote")
    end = tape.notify("server", "notifications/tasks/status", task("tnote", "failed", statusMessage="killed"))
    tape.expect(number, "task failed", end - begin, "task failed", "killed")
    tape.causes.add("task-failed")


@scene(STDIO, "a cancelled task is a cancelled call")
def _task_cancelled(tape: Tape) -> None:
    number = tape.number()
    call_task(tape, number, "tcancel")
    tape.poll(tape.number(), "tasks/cancel", "tcancel", task("tcancel", "cancelled"))
    tape.expect(number, "cancelled", ANY, "cancelled")


@scene(STDIO, "a task that still works at the end is unanswered")
def _task_never(tape: Tape) -> None:
    number = tape.number()
    call_task(tape, number, "tnever")
    tape.poll(tape.number(), "tasks/get", "tnever", task("tnever", "working"))
    tape.expect(number, "task not finished", ANY, "not finished", "working")


@scene(STDIO, "a poll that fails once is not a failure of the session")
def _task_poll_fails(tape: Tape) -> None:
    number, poll = tape.number(), tape.number()
    begin = call_task(tape, number, "tflaky")
    tape.ask_about(poll, "tasks/get", "tflaky")
    tape.fail(poll, "busy")
    end = tape.poll(tape.number(), "tasks/get", "tflaky", task("tflaky", "completed"))
    tape.poll(tape.number(), "tasks/result", "tflaky")
    tape.expect(number, "ok", end - begin, "ok")


@scene(STDIO, "a poll without a response leaves only its call unanswered")
def _task_poll_silent(tape: Tape) -> None:
    number = tape.number()
    call_task(tape, number, "tquiet")
    tape.ask_about(tape.number(), "tasks/result", "tquiet")
    tape.expect(number, "task not finished", ANY, "not finished")


@scene(STDIO, "a request about an unknown task is an ordinary one")
def _task_unknown(tape: Tape) -> None:
    number = tape.number()
    begin = tape.ask(number, method="tasks/get", params={"taskId": "nobody's"})
    tape.expect(number, "error", tape.fail(number, "no such task", code=-32602) - begin, "no such task")
    tape.causes.add("request-failed")


@scene(STDIO, "a client may answer with a task, too")
def _task_of_client(tape: Tape) -> None:
    params = {"messages": [], "maxTokens": 1, "task": {"ttl": 60000}}
    begin = tape.ask("s4", method="sampling/createMessage", params=params, side="server")
    tape.answer("s4", {"task": task("t-client", "working")}, side="client")
    tape.polls.add('server:"s5"')
    tape.ask("s5", method="tasks/get", params={"taskId": "t-client"}, side="server")
    end = tape.answer("s5", task("t-client", "failed", statusMessage="no model"), side="client")
    tape.expect("s4", "task failed", end - begin, "task failed", "no model", server=True)


# Tasks of the extension of 2026-07-28.


def flat(name: str, status: str, **members: Any) -> dict[str, Any]:
    return {"taskId": name, "status": status, "createdAt": AT, "lastUpdatedAt": AT, "ttlMs": 60000, **members}


def call_flat(tape: Tape, number: Any, name: str) -> float:
    begin = tape.ask(number, name)
    tape.answer(number, {"resultType": "task", **flat(name, "working")})
    return begin


@scene(MODERN, "a task that failed with an error inline is a failure (2026-07-28)")
def _flat_failed(tape: Tape) -> None:
    number = tape.number()
    begin = call_flat(tape, number, "tk-1")
    error = {"code": -32603, "message": "out of cheese"}
    end = tape.poll(tape.number(), "tasks/get", "tk-1", flat("tk-1", "failed", error=error))
    tape.expect(number, "error", end - begin, "out of cheese")
    tape.causes.add("request-failed")


@scene(MODERN, "a task that completed with isError inline is a tool error (2026-07-28)")
def _flat_bad(tape: Tape) -> None:
    number = tape.number()
    begin = call_flat(tape, number, "tk-2")
    result = {"content": [{"type": "text", "text": "boom"}], "isError": True}
    end = tape.poll(tape.number(), "tasks/get", "tk-2", flat("tk-2", "completed", result=result))
    tape.expect(number, "tool error", end - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(MODERN, "a task that asked for input and completed has not failed (2026-07-28)")
def _flat_input(tape: Tape) -> None:
    number = tape.number()
    begin = call_flat(tape, number, "tk-3")
    asked = {"a": {"method": "elicitation/create", "params": {"message": "m"}}}
    tape.poll(tape.number(), "tasks/get", "tk-3", flat("tk-3", "input_required", inputRequests=asked))
    update = tape.number()
    tape.polls.add(str(update))
    answers = {"taskId": "tk-3", "inputResponses": {"a": {"action": "accept", "content": {}}}}
    tape.ask(update, method="tasks/update", params=answers)
    tape.answer(update, {})
    result = {"content": [{"type": "text", "text": "fine"}]}
    end = tape.poll(tape.number(), "tasks/get", "tk-3", flat("tk-3", "completed", result=result))
    tape.expect(number, "ok", end - begin, "ok", "task")


@scene(MODERN, "a task that still works at the end is unanswered (2026-07-28)")
def _flat_never(tape: Tape) -> None:
    number = tape.number()
    call_flat(tape, number, "tk-4")
    tape.poll(tape.number(), "tasks/get", "tk-4", flat("tk-4", "working"))
    tape.expect(number, "task not finished", ANY, "not finished", "working")


@scene(MODERN, "a cancelled task is a cancelled call (2026-07-28)")
def _flat_cancelled(tape: Tape) -> None:
    number = tape.number()
    call_flat(tape, number, "tk-5")
    tape.poll(tape.number(), "tasks/cancel", "tk-5", {})
    tape.poll(tape.number(), "tasks/get", "tk-5", flat("tk-5", "cancelled"))
    tape.expect(number, "cancelled", ANY, "cancelled")


# Questions of 2026-07-28.

QUESTION = {
    "resultType": "input_required",
    "inputRequests": {
        "a": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}}
    },
}


@scene(MODERN, "a question that the client answers is not a failure")
def _continued(tape: Tape) -> None:
    first, second = tape.number(), tape.number()
    begin = tape.ask(first, "asks")
    end = tape.answer(first, {**QUESTION, "requestState": "s2"})
    tape.expect(first, "input required", end - begin, "input required")
    answers = {"inputResponses": {"a": {"action": "accept", "content": {"n": 1}}}, "requestState": "s2"}
    begin = tape.ask(second, "asks", params=answers)
    tape.expect(second, "ok", tape.answer(second) - begin, "ok")


@scene(MODERN, "a question that is answered and then fails is one error")
def _continued_badly(tape: Tape) -> None:
    first, second = tape.number(), tape.number()
    begin = tape.ask(first, "asks")
    end = tape.answer(first, {**QUESTION, "requestState": "s3"})
    tape.expect(first, "input required", end - begin, "input required")
    answers = {"inputResponses": {"a": {"action": "accept", "content": {"n": 1}}}, "requestState": "s3"}
    begin = tape.ask(second, "asks", params=answers)
    tape.expect(second, "tool error", tape.fail_tool(second) - begin, "tool error", "boom")
    tape.causes.add("request-failed")


@scene(MODERN, "a question without an answer leaves its request unanswered")
def _not_continued(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "needs")
    tape.answer(number, {**QUESTION, "requestState": "s1"})
    tape.expect(number, "not continued", ANY, "input required")


@scene(MODERN, "a subscription may end without a response")
def _subscription(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, method="subscriptions/listen", params={"notifications": {"toolsListChanged": True}})
    tape.expect(number, "closed", None, "closed")


@scene(MODERN, "a modern request may be cancelled by its client")
def _modern_cancelled(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "slow")
    tape.cancel(number)
    tape.expect(number, "cancelled", None, "cancelled")


# HTTP.


def posted(tape: Tape, tool: str, status: int | None = 200, **response: str) -> tuple[int, float]:
    """Add a request in a new HTTP exchange, and the head of the response; return its id and its time."""
    number = tape.number()
    tape.post()
    begin = tape.ask(number, tool)
    tape.wait(0.05)
    tape.head(status, **response)
    return number, begin


@scene(HTTP, "a response over HTTP")
def _http_ok(tape: Tape) -> None:
    number, begin = posted(tape, "ok", content_type="application/json")
    tape.expect(number, "ok", tape.answer(number) - begin, "ok")
    tape.end()


@scene(HTTP, "an error status without a message refuses the request")
def _http_401(tape: Tape) -> None:
    number, _ = posted(tape, "r401", 401, content_length="0", www_authenticate="Bearer")
    tape.note("oauth", **tape.carrier, flow=1, step="challenge", status=401, authorized=False)
    tape.end()
    tape.expect(number, "refused", None, "refused", "401")
    tape.causes.add("token-missing")


@scene(HTTP, "a server error without a message refuses the request")
def _http_500(tape: Tape) -> None:
    number, _ = posted(tape, "r500", 500, content_type="text/html")
    tape.end()
    tape.expect(number, "refused", None, "refused", "500")
    tape.causes.add("server-error")


@scene(HTTP, "a refusal has the text of its body")
def _http_502(tape: Tape) -> None:
    number, _ = posted(tape, "r502", 502, content_type="text/html", server="nginx")
    tape.end(body="<html><head><title>502 Bad Gateway</title></head><h1>502 Bad Gateway</h1>", size=73)
    tape.expect(number, "refused", None, "refused", "HTTP 502: 502 Bad Gateway")
    tape.causes.add("http-status")


@scene(HTTP, "a server that offers no GET stream fails nothing")
def _no_stream(tape: Tape) -> None:
    for message in ({"code": -32000, "message": "Method not allowed."}, None):
        tape.post()
        tape.head(405, method="GET", allow="POST", content_type="application/json")
        if message is not None:
            tape.say("server", {"jsonrpc": "2.0", "id": None, "error": message}, **tape.carrier)
        tape.end()


@scene(HTTP, "a GET stream that is opened again fails nothing")
def _stream(tape: Tape) -> None:
    for count in (2, 0, 0):
        tape.post()
        tape.head(200, method="GET", content_type="text/event-stream")
        for _ in range(count):
            tape.notify("server", "notifications/tools/list_changed")
        tape.wait(1.0)
        tape.end(None if count else "client")


@scene(HTTP, "an error status with a JSON-RPC error is that error, once")
def _http_400(tape: Tape) -> None:
    number, begin = posted(tape, "j400", 400, content_type="application/json")
    tape.expect(number, "error", tape.fail(number, "bad", code=-32602) - begin, "bad")
    tape.end()
    tape.causes.add("invalid-arguments")


@scene(HTTP, "an error with the id null in the response to a POST is that of its request")
def _http_400_null(tape: Tape) -> None:
    number, begin = posted(tape, "n400", 400, content_type="application/json")
    tape.expect(number, "error", tape.fail(None, "no id") - begin, "no id")
    tape.end()
    tape.issues += 1
    tape.causes.add("request-refused")


@scene(HTTP, "a 202 to a request leaves it unanswered")
def _http_202(tape: Tape) -> None:
    number, _ = posted(tape, "r202", 202)
    tape.end()
    tape.expect(number, "no answer", None, "no answer", "202")


@scene(HTTP, "a stream that ends without the response leaves it unanswered")
def _sse_end(tape: Tape) -> None:
    number, _ = posted(tape, "sseend", content_type="text/event-stream")
    tape.end()
    tape.expect(number, "no answer", None, "no answer")


@scene(HTTP, "an event that was cut is not a response")
def _sse_cut(tape: Tape) -> None:
    number, _ = posted(tape, "ssecut", content_type="text/event-stream")
    tape.notify("server", "notifications/message", {"level": "info", "data": "x"}, event="message")
    cut = f'{{"jsonrpc":"2.0","id":{number},"resu'
    tape.noise("server", cut, **tape.carrier, event="message", eol="")
    tape.end("server")
    tape.expect(number, "incomplete", None, "no answer", "never completed", str(len(cut)))
    tape.issues += 1


@scene(HTTP, "an event without its blank line is not a response")
def _sse_incomplete(tape: Tape) -> None:
    number, _ = posted(tape, "sseopen", content_type="text/event-stream")
    tape.answer(number, event="message", eol="")
    tape.end("server")
    tape.expect(number, "incomplete", None, "no answer", "never completed", "blank line")
    tape.issues += 1


@scene(HTTP, "an event that was cut within a line lacks its newline")
def _sse_cut_in_line(tape: Tape) -> None:
    number, _ = posted(tape, "ssecut", content_type="text/event-stream")
    cut = f'{{"jsonrpc":"2.0","id":{number},"resu'
    tape.noise("server", cut, **tape.carrier, event="message", eol="", lacks="newline", size=1520)
    tape.end("server")
    tape.expect(number, "incomplete", None, "no answer", "never completed", "1520", "newline")
    tape.issues += 1


@scene(HTTP, "a response above the limit of recorded sizes has an unknown outcome")
def _oversized(tape: Tape) -> None:
    number, _ = posted(tape, "large", content_type="application/json")
    tape.note("oversized", **tape.carrier, **{"from": "server"}, size=9_000_000, sha256="ab")
    tape.end()
    tape.expect(number, "unknown", None, "unknown")


@scene(HTTP, "a body that ended early is not a response")
def _body_cut(tape: Tape) -> None:
    number, _ = posted(tape, "bodycut", content_type="application/json", content_length="900")
    cut = f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":['
    tape.noise("server", cut, **tape.carrier, eol="", lacks="rest of body", size=len(cut))
    tape.end("server")
    tape.expect(number, "incomplete", None, "no answer", "never completed", str(len(cut)), "rest of body")
    tape.issues += 1


@scene(HTTP, "a redirect that the client follows is one request")
def _redirected(tape: Tape) -> None:
    number, begin = posted(tape, "moved", 307, location="/mcp/")
    tape.end()
    tape.post()
    tape.ask(number, "moved")
    tape.head(200, path="/mcp/", content_type="application/json")
    tape.expect(number, "ok", tape.answer(number) - begin, "307 → /mcp/", "ok")
    tape.end()


@scene(HTTP, "a redirect that the client follows to an error is one failure")
def _redirected_badly(tape: Tape) -> None:
    number, begin = posted(tape, "moved", 308, location="/mcp/")
    tape.end()
    tape.post()
    tape.ask(number, "moved")
    tape.head(200, path="/mcp/", content_type="application/json")
    tape.expect(number, "tool error", tape.fail_tool(number) - begin, "308 → /mcp/", "boom")
    tape.end()
    tape.causes.add("request-failed")


@scene(HTTP, "a redirect that no one follows leaves the request unanswered")
def _not_followed(tape: Tape) -> None:
    number, _ = posted(tape, "moved", 307, location="/mcp/")
    tape.end()
    tape.expect(number, "redirected", None, "307", "/mcp/")


@scene(HTTP, "a client that disconnects leaves its request unanswered before 2026-07-28")
def _hung_up(tape: Tape) -> None:
    number, _ = posted(tape, "slow", None)
    tape.end("client")
    tape.expect(number, "no answer", None, "no answer")


@scene(HTTP, "a request whose sender disconnected while it was held is neither failed nor unanswered")
def _abandoned(tape: Tape) -> None:
    number = tape.number()
    tape.post()
    tape.ask(number, "held")
    rule(tape, "hold", number, "held", ticket=number, **tape.carrier)
    tape.wait(0.8)
    tape.head(None)
    tape.end("client")
    rule(tape, "release", number, "held", ticket=number, why="connection closed", seconds=0.8, **tape.carrier)
    tape.expect(number, "abandoned")
    tape.is_kept_back = True


@scene(HTTP, "a rule that disconnects the client is not a failure of the server")
def _disconnected(tape: Tape) -> None:
    number = tape.number()
    tape.post()
    tape.ask(number, "disc", to="mcpspy")
    rule(tape, "disconnect", number, "disc", **tape.carrier)
    tape.head(None)
    tape.end("mcpspy")
    tape.expect(number, "dropped")
    tape.never.add("mcpspy was stopped")
    tape.is_kept_back = True
    tape.causes.add("mcpspy-rule")


@scene(HTTP, "a repeated event is not a second response")
def _repeated(tape: Tape) -> None:
    number, begin = posted(tape, "resumed", content_type="text/event-stream")
    result = {"content": [{"type": "text", "text": "boom"}], "isError": True}
    message, head = {"jsonrpc": "2.0", "id": number, "result": result}, {**tape.carrier, "id": f"e{number}"}
    end = tape.say("server", message, event="message", **head)
    tape.say("server", message, event="message", **head)
    tape.end()
    tape.expect(number, "tool error", end - begin, "tool error", "boom")
    tape.issues += 1
    tape.causes.add("request-failed")


@scene(HTTP, "a response that was cut and sent again on a resumed stream is complete")
def _resumed(tape: Tape) -> None:
    number, begin = posted(tape, "resumed", content_type="text/event-stream")
    cut = f'{{"jsonrpc":"2.0","id":{number},"resu'
    tape.noise("server", cut, **tape.carrier, event="message", eol="")
    tape.end("server")
    tape.post()
    tape.head(200, method="GET", content_type="text/event-stream")
    tape.expect(number, "ok", tape.answer(number, event="message") - begin, "ok")
    tape.end()
    tape.issues += 1


@scene(MODERN_HTTP, "a redirect that a client of 2026-07-28 follows is one request")
def _redirected_modern(tape: Tape) -> None:
    number, begin = posted(tape, "moved", 307, location="/mcp/")
    tape.end()
    tape.post()
    tape.ask(number, "moved")
    tape.head(200, path="/mcp/", content_type="application/json")
    tape.expect(number, "ok", tape.answer(number) - begin, "307 → /mcp/", "ok")
    tape.end()


@scene(MODERN_HTTP, "a client that disconnects cancels its request since 2026-07-28")
def _hung_up_modern(tape: Tape) -> None:
    number, _ = posted(tape, "slow", None)
    tape.end("client")
    tape.expect(number, "cancelled", None, "cancelled", "by the client")


# Ends of a session.


@scene(ENDS, "a crash leaves every open request unanswered")
def _crash(tape: Tape) -> None:
    for tool in ("open1", "open2", "open3"):
        number = tape.number()
        tape.ask(number, tool)
        tape.expect(number, "no answer", None, "no answer")
    tape.note("eof", **{"from": "server"})
    tape.wait(0.1)
    tape.note("exit", code=None, signal="SIGKILL")
    tape.causes.add("crash")


@scene(ENDS, "a response without its newline is not a response")
def _line_without_end(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "torn")
    tape.answer(number, eol="")
    tape.expect(number, "incomplete", None, "no answer", "never completed", "newline")
    tape.issues += 1
    tape.bye(1)


@scene(ENDS, "a response that was cut is not a response")
def _line_cut(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "torn")
    cut = f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":['
    tape.noise("server", cut, eol="")
    tape.expect(number, "incomplete", None, "no answer", "never completed", str(len(cut)))
    tape.issues += 1
    tape.bye(1)


@scene(ENDS, "a request that is held when the session ends is unanswered")
def _held_at_end(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "held")
    rule(tape, "hold", number, "held", ticket=number)
    tape.wait(1.0)
    rule(tape, "release", number, "held", ticket=number, why="session ended", seconds=1.0)
    tape.expect(number, "no answer", None, "no answer")
    tape.bye()


@scene(ENDS, "mcpspy was killed: open requests are unanswered")
def _died(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "open")
    tape.expect(number, "no answer", None, "no answer")


@scene(ENDS, "lost entries make the outcome of open requests unknown, and are not errors")
def _lost(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "open")
    tape.note("lost", entries=3, since=tape.now, why="disk full")
    tape.expect(number, "unknown", None, "unknown")
    tape.bye()


# Sessions that never got to their first call.


def _refused_version() -> Tape:
    tape = Tape()
    begin = tape.ask(0, method="initialize", params={"protocolVersion": "2099-01-01", "capabilities": {}})
    end = tape.fail(0, "Unsupported protocol version", code=-32602)
    tape.expect(0, "error", end - begin, "Unsupported protocol version")
    tape.causes.add("version-mismatch")
    tape.bye()
    return tape


def _silent_start() -> Tape:
    tape = Tape()
    tape.ask(0, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}})
    tape.expect(0, "no answer", None, "no answer to initialize")
    tape.never.add("not accepted")
    tape.bye()
    return tape


def _redirected_start() -> Tape:
    tape = Tape("http")
    version = {"protocolVersion": "2025-11-25", "capabilities": {}}
    tape.post()
    begin = tape.ask(0, method="initialize", params={**version, "clientInfo": HOST})
    tape.head(307, location="/mcp/")
    tape.end()
    tape.post()
    tape.ask(0, method="initialize", params={**version, "clientInfo": HOST})
    tape.head(200, path="/mcp/", content_type="application/json")
    end = tape.answer(0, {**version, "serverInfo": {"name": "server", "version": "2"}})
    tape.end()
    tape.expect(0, "ok", end - begin, "307 → /mcp/", "ok")
    tape.bye()
    return tape


def _not_started() -> Tape:
    tape = Tape()
    tape.wait(0.1)
    tape.note("error", text="cannot start nosuch: No such file or directory")
    tape.bye(127)
    tape.causes.add("command-not-found")
    return tape


STARTS = {
    "a refused version is an error": _refused_version,
    "a redirected handshake is one request": _redirected_start,
    "a server that is silent after initialize leaves it unanswered": _silent_start,
    "a server that could not be started has no request that failed": _not_started,
}


# Sessions that are still being recorded.


@scene(LIVE, "an open request of a live session is pending")
def _live_pending(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, "open")
    tape.expect(number, "pending", None, "pending")


@scene(LIVE, "a working task of a live session is pending")
def _live_task(tape: Tape) -> None:
    number = tape.number()
    call_task(tape, number, "tlive")
    tape.poll(tape.number(), "tasks/get", "tlive", task("tlive", "working", statusMessage="fetching"))
    tape.expect(number, "working", ANY, "working", "fetching")


@scene(LIVE, "a subscription of a live session is open, and not pending")
def _live_subscription(tape: Tape) -> None:
    number = tape.number()
    tape.ask(number, method="subscriptions/listen", params={"notifications": {}})
    tape.expect(number, "pending", None, "open")
    tape.subscriptions += 1


def _session(name: str, scenes: list[Scene], **kind: Any) -> Case:
    tape = Tape(**kind)
    tape.hello()
    for each in scenes:
        each(tape)
    if not any(each in ENDS.values() for each in scenes):
        tape.bye()
    return tape.case(name)


def _live(name: str, each: Scene) -> Case:
    tape = Tape()
    tape.hello()
    each(tape)
    tape.is_live = True
    return tape.case(name)


MODERN_REVISION = "2026-07-28"

SINGLE = [
    *(_session(name, [each]) for name, each in STDIO.items()),
    *(_session(name, [each], revision=MODERN_REVISION) for name, each in MODERN.items()),
    *(_session(name, [each], transport="http") for name, each in HTTP.items()),
    *(
        _session(name, [each], transport="http", revision=MODERN_REVISION)
        for name, each in MODERN_HTTP.items()
    ),
    *(_session(name, [each]) for name, each in ENDS.items()),
    *(build().case(name) for name, build in STARTS.items()),
    *(_live(name, each) for name, each in LIVE.items()),
]

_STDIO_OF_2025 = (
    *(_ok, _tool_error, _late_tool_error, _cancelled, _late_ok, _late_error, _silent, _null_id, _same_id),
    *(_batch, _error, _both, _twice, _stray_result, _stray_error, _client_fails, _client_silent, _noise),
)
_INTERCEPTED = (_ok, _dropped, _rule_error, _rule_tool_error, _injected, _crash)
_TASKS = (_task_error, _task_tool_error, _task_cancelled, _task_never, _task_ok, _task_completed_badly)
_MODERN_CALLS = (_not_continued, _continued_badly, _subscription, _flat_failed, _flat_bad, _modern_cancelled)
_POSTS = (
    *(_http_ok, _http_401, _http_500, _http_400, _http_400_null, _http_202, _sse_end, _sse_cut, _hung_up),
    *(_abandoned, _disconnected, _redirected, _not_followed),
)
_MODERN_POSTS = (_http_ok, _hung_up_modern, _http_401, _sse_cut, _sse_end, _http_ok)

WHOLE = [
    _session("calls of every outcome on stdio", [*_STDIO_OF_2025]),
    _session("rules, an injected call and a crash", [*_INTERCEPTED]),
    _session("tasks of every outcome", [*_TASKS]),
    _session("questions, a subscription and tasks of 2026-07-28", [*_MODERN_CALLS], revision=MODERN_REVISION),
    _session("posts of every outcome", [*_POSTS], transport="http"),
    _session("posts of 2026-07-28", [*_MODERN_POSTS], transport="http", revision=MODERN_REVISION),
]

CASES = [*SINGLE, *WHOLE]
