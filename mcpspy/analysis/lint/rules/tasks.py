"""Tasks: requests whose result comes later (2025-11-25), and their status (2026-07-28)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, seconds_of
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.state import ENDED, STATUSES, forget
from mcpspy.core.protocol.message import Notification, Request, Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, MODERN

TASKS = "2025-11-25/basic/utilities/tasks"

_STARTED = ("tools/call", "sampling/createMessage", "elicitation/create")
_REPORTING = ("tasks/get", "tasks/cancel", "notifications/tasks/status", "notifications/tasks")

_TASK = '"taskId":"t","status":"%s","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null'
_CAN = '"capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}'
_HELLO = (
    '@ bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    f'< {{"id":0,"result":{{"protocolVersion":"2025-11-25",{_CAN},"serverInfo":{{"name":"b","version":"1"}}}}}}\n'
    '> {"method":"notifications/initialized"}\n'
    '> {"id":1,"method":"tools/list"}\n'
    '< {"id":1,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"%s"}}]}}\n'
)
_BEGUN = (
    _HELLO % "optional"
    + '> {"id":2,"method":"tools/call","params":{"name":"a","task":{}}}\n< {"id":2,"result":{"task":{%s}}}\n'
)
_GET = '> {"id":%d,"method":"tasks/get","params":{"taskId":"t"}}\n< {"id":%d,"result":{%s}}\n'
_GOOD = _BEGUN % (_TASK % "working") + _GET % (3, 3, _TASK % "completed")
JITTER = 0.05
"""Seconds that a poll may be early, whatever the interval."""

_RESULT = '> {"id":4,"method":"tasks/result","params":{"taskId":"t"}}\n< {"id":4,"result":{"content":[]%s}}'
_RELATED = ',"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}'
_NOW = '@ 2026-07-28 client={"extensions":{"io.modelcontextprotocol/tasks":{}}}\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"task",%s}}'
_CALL = '> {"id":2,"method":"tools/call","params":{"name":"a"%s}}\n< {"id":2,"error":{"code":-32601,"message":"task"}}'


_WORKING, _COMPLETED = _TASK % "working", _TASK % "completed"
_CANCEL = '> {"id":4,"method":"tasks/cancel","params":{"taskId":"t"}}\n< {"id":4,"result":{%s}}\n'
_CANCELS = (
    _HELLO.replace('"tasks":{', '"tasks":{"cancel":{},') % "optional"
    + _BEGUN.partition("taskSupport")[2].partition("\n")[2]
)
_INPUT = '< {"method":"notifications/tasks/status","params":{%s%s}}\n'
_PING = '< {"id":7,"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}%s}}\n> {"id":7,"result":{"action":"decline"}}'
_CLIENT = _BEGUN.replace('"capabilities":{},', '"capabilities":{"elicitation":{}},', 1)

task = RuleGroup(RULES, on=(EventKind.RESULT, EventKind.NOTIFICATION), since=LEGACY, beyond_plain=True)
legacy = RuleGroup(RULES, since=LEGACY, until=LEGACY, valid=_GOOD)
result = legacy.group(on=EventKind.RESULT)
call = legacy.group(page=TASKS + "#tool-level-negotiation", on=EventKind.REQUEST, about="tools/call")


task.shape_error(
    "DATA701",
    "task without a required member",
    """A task requires `taskId`, `status` (one of five), `createdAt`, `lastUpdatedAt` and `ttl`, which is `null` for a
    task that does not expire; in 2026-07-28 it is named `ttlMs`. Clients need all of them to poll.
    """,
    page=TASKS + "#task",
    valid=(_GOOD, _NOW % (_TASK % "working").replace('"ttl"', '"ttlMs"')),
    invalid=(
        _BEGUN % '"taskId":"t","status":"working"',
        _BEGUN % (_TASK % "running"),
        _GOOD.replace('"result":{"taskId":"t"', '"result":{"taskId":7'),
        _NOW % (_TASK % "working"),
    ),
)


@result.error(
    "DATA702",
    "task without a task request",
    page=TASKS + "#creating-tasks",
    about=_STARTED,
    beyond_plain=True,
    invalid=_GOOD.replace(',"task":{}', ""),
)
def unsolicited_task(event: LintEvent) -> Iterator[Report]:
    """Until 2025-11-25, the requester decides: a response is a task only if the request had `task`. Other clients read
    the task as the tool result and find no `content`. From 2026-07-28 on the server decides.
    """
    if isinstance(event.what, Result) and event.what.is_task and not event.request.body.task:
        yield Report(f"{event.method} without task was answered with a task")


@task.warning(
    "DATA703",
    "task that changes after its end",
    page=TASKS + "#task-status-lifecycle",
    about=(*_STARTED, *_REPORTING, "tasks/result", "notifications/progress"),
    valid=_GOOD + _GET % (4, 4, _TASK % "completed"),
    invalid=(
        _GOOD + _GET % (4, 4, _TASK % "working"),
        _GOOD + _GET % (4, 4, _TASK % "failed" + ',"statusMessage":"a"'),
    ),
)
def revived(event: LintEvent) -> Iterator[Report]:
    """Completed, failed and cancelled are final, and `tasks/result` waits for them. Clients stop polling a finished task
    and never see a later change, or progress.
    """
    tasks = event.state.tasks
    if event.method == "notifications/progress":
        begun = event.exchange.answer if event.exchange is not None else None
        number = _begun(begun) if isinstance(begun, Result) and begun.is_task else None
        if number is not None and (history := tasks.get(number)) is not None and history.is_ended:
            yield Report(f"progress of task {number[:60]} after it was {history.shown}")
        return
    for task in event.tasks:
        if not isinstance(number := task.get("taskId"), str) or (history := tasks.get(number)) is None:
            continue
        before, status = history.shown, task.get("status")
        is_revived = history.is_ended if before != "answered" else status not in ENDED
        if is_revived and status in STATUSES and status != before:
            yield Report(f"task {number[:60]} is {status} after it was {before}", task)


def _begun(result: Result) -> str | None:
    """Return the id of the task that a result began."""
    whole = result.result
    task = whole.get("task", whole) if isinstance(whole, dict) else None
    number = task.get("taskId") if isinstance(task, dict) else None
    return number if isinstance(number, str) else None


@result.error(
    "DATA704",
    "task result that does not name its task",
    page=TASKS + "#related-task-metadata",
    about="tasks/result",
    valid=_GOOD + _RESULT % _RELATED,
    invalid=(_GOOD + _RESULT % "", _GOOD + _RESULT % _RELATED.replace('"t"', '"u"')),
)
def unrelated(event: LintEvent) -> Iterator[Report]:
    """`tasks/result` returns the plain tool result, which does not refer to the task. Its `_meta` must therefore
    contain `io.modelcontextprotocol/related-task`.
    """
    if not isinstance(event.what, Result):
        return
    related = loads(meta_raw(event.what.meta, META + "related-task"))
    if related is None:
        yield Report(f"_meta has no {META}related-task")
    elif isinstance(related, dict) and related.get("taskId") != event.subject:
        yield Report(f"_meta names another task than {(event.subject or '')[:60]}", related)


@call.error(
    "DATA705",
    "call as a task that is not allowed",
    invalid=(
        _HELLO % "forbidden" + _CALL % ',"task":{}',
        _HELLO.replace(_CAN, '"capabilities":{"tools":{}}') % "optional" + _CALL % ',"task":{}',
    ),
)
def forbidden(event: LintEvent) -> Iterator[Report]:
    """A tool may be called as a task only if the server declared `tasks.requests.tools.call` and the tool declares
    `execution.taskSupport` as `optional` or `required`.
    """
    if not event.request.body.task:
        return
    support = task_support(event)
    if not _server_takes_tasks(event):
        yield Report("call as a task, but the server did not declare tasks.requests.tools.call")
    elif support == "forbidden":
        yield Report(f"call as a task, but {event.subject} does not support tasks")


@call.error(
    "DATA706",
    "call not made as a task, although the tool requires it",
    valid=(
        _GOOD,
        _HELLO % "optional"
        + '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}',
    ),
    invalid=_HELLO % "required" + _CALL % "",
)
def required(event: LintEvent) -> Iterator[Report]:
    """The tool declares `execution.taskSupport: required`: clients must call it as a task, and the server rejects other
    calls (-32601).
    """
    if not event.request.body.task and task_support(event) == "required" and _server_takes_tasks(event):
        yield Report(f"{event.subject} must be called as a task")


@result.error(
    "DATA707",
    "new task that is not working, or has a known id",
    until=None,
    page=TASKS + "#task-status-lifecycle",
    about=_STARTED,
    beyond_plain=True,
    invalid=(
        _BEGUN % _COMPLETED,
        _BEGUN % _WORKING
        + _BEGUN.splitlines()[-2].replace("2", "5", 1)
        + "\n"
        + f'< {{"id":5,"result":{{"task":{{{_WORKING}}}}}}}',
    ),
)
def new_task(event: LintEvent) -> Iterator[Report]:
    """A task begins with an id that no other task has, and in 2025-11-25 as `working`."""
    if not isinstance(event.what, Result) or not event.what.is_task:
        return
    is_modern = (event.revision or "") >= MODERN
    for task in event.tasks:
        if isinstance(number := task.get("taskId"), str):
            known = event.state.known_tasks
            if number in known or (task.get("status") in STATUSES[1:] and not is_modern):
                yield Report("the new task is not working, or its id is in use", task)
            known[number] = None
            forget(known)


@legacy.warning(
    "DATA708",
    "related-task missing, or repeated",
    page=TASKS + "#associating-task-related-messages",
    on=(EventKind.REQUEST, EventKind.RESULT, EventKind.NOTIFICATION),
    about=(
        "sampling/createMessage",
        "elicitation/create",
        "tasks/get",
        "tasks/list",
        "tasks/cancel",
        "notifications/tasks/status",
    ),
    invalid=(
        _CLIENT % _WORKING + _INPUT % (_TASK % "input_required", "") + _PING % "",
        _BEGUN % _WORKING + _INPUT % (_WORKING, _RELATED),
    ),
)
def related(event: LintEvent) -> Iterator[Report]:
    """A request that a task needs names it in `_meta`, as `io.modelcontextprotocol/related-task`. Messages about a task
    that have its id in their params or result do not repeat it.
    """
    assert isinstance(event.what, Request | Result | Notification)
    is_named = bool(meta_raw(event.what.meta, META + "related-task"))
    if event.method in ("sampling/createMessage", "elicitation/create"):
        waits = any(each.status == "input_required" for each in event.state.tasks.values())
        others = any(
            not each.exchange.request.method.startswith("tasks/") for each in event.state.open.values()
        )
        if isinstance(event.what, Request) and waits and not is_named and not others:
            yield Report(f"{event.method} for a task: _meta has no {META}related-task")
    elif is_named:
        yield Report(f"{event.method}: _meta repeats the task in {META}related-task")


@legacy.error(
    "DATA709",
    "cancellation of a task that cannot succeed",
    page=TASKS + "#task-cancellation",
    until=None,
    valid=(
        _CANCELS % _WORKING + _CANCEL % (_TASK % "cancelled"),
        _NOW % (_TASK % "working").replace('"ttl"', '"ttlMs"')
        + '\n> {"id":4,"method":"tasks/cancel","params":{"taskId":"t"}}\n< {"id":4,"result":{}}',
    ),
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=("tasks/cancel", "notifications/cancelled"),
    invalid=(
        _CANCELS % _WORKING + _CANCEL % _WORKING,
        _CANCELS % _WORKING + _GET % (3, 3, _COMPLETED) + _CANCEL % _COMPLETED,
        _BEGUN % _WORKING + '> {"method":"notifications/cancelled","params":{"requestId":2}}',
    ),
)
def cancelled_task(event: LintEvent) -> Iterator[Report]:
    """A task is cancelled with `tasks/cancel`, after which its status is `cancelled`; `notifications/cancelled` has no
    effect on it. A task that has ended cannot be cancelled: the error is -32602. In 2026-07-28, the result is only an
    acknowledgement.
    """
    if event.method == "tasks/cancel":
        if (event.revision or "") >= MODERN:
            return
        before = event.state.tasks.get(event.subject or "")
        if before is not None and before.status in STATUSES[2:]:
            yield Report(f"task {(event.subject or '')[:60]} cancelled after it was {before.shown}")
        elif event.result.get("status") in STATUSES[:4]:
            yield Report(
                f"task {(event.subject or '')[:60]} is {event.result['status']} after its cancellation"
            )
    elif event.exchange is not None and event.exchange.is_task:
        yield Report("notifications/cancelled for a task")


@result.error(
    "DATA710",
    "task request answered without a task",
    page=TASKS + "#result-retrieval",
    about="tools/call",
    invalid=_BEGUN.replace('"task":{%s}', '"content":[%s]') % "",
)
def no_task(event: LintEvent) -> Iterable[Report]:
    """A server that declares tasks for tool calls answers a call as a task with the task, not with the result."""
    assert isinstance(event.what, Result)
    if event.what.is_task or not event.request.body.task or not event.capabilities:
        return ()
    is_allowed = _server_takes_tasks(event) and task_support(event) != "forbidden"
    return [Report(f"{event.method} as a task was answered without a task")] if is_allowed else ()


@legacy.warning(
    "DATA711",
    "failed task without a statusMessage",
    page=TASKS + "#task-execution-errors",
    until=None,
    on=EventKind.RESULT,
    about="tasks/get",
    invalid=_BEGUN % _WORKING + _GET % (3, 3, _TASK % "failed"),
)
def no_reason(event: LintEvent) -> Iterator[Report]:
    """A failed task should have a `statusMessage` with the reason."""
    if event.result.get("status") == "failed" and not event.result.get("statusMessage"):
        yield Report(f"task {(event.subject or '')[:60]} failed without a statusMessage")


@legacy.warning(
    "DATA712",
    "task polled faster than its pollInterval",
    page=TASKS + "#getting-tasks",
    until=None,
    on=(EventKind.REQUEST, EventKind.RESULT),
    about=("tasks/get", *_STARTED),
    beyond_plain=True,
    invalid=(
        _BEGUN % _WORKING + _GET % (3, 3, _WORKING + ',"pollInterval":9000') + _GET % (4, 4, _WORKING),
        _BEGUN % (_WORKING + ',"pollInterval":9000') + _GET % (3, 3, _WORKING),
    ),
)
def impatient(event: LintEvent) -> Iterator[Report]:
    """A requester should wait `pollInterval` (2026-07-28: `pollIntervalMs`) milliseconds before it asks for the status again."""
    polls = event.state.memory[_Polls]
    if isinstance(event.what, Result):
        for task in event.tasks:
            interval = task.get("pollIntervalMs", task.get("pollInterval"))
            polls[str(task.get("taskId"))] = event.at, seconds_of(interval) or 0.0
            forget(polls)
        return
    number = event.subject or ""
    if event.method == "tasks/get" and number in polls:
        waited, interval = event.at - polls[number][0], polls[number][1]
        if waited < interval * 0.9 and interval - waited > JITTER:
            yield Report(
                f"task {number[:60]} polled after {waited:.1f} s; its pollInterval is {interval:g} s"
            )


class _Polls(OrderedDict[str, tuple[float, float]]):
    """Task → time of its last status, and the seconds until the next may be requested."""


def task_support(event: LintEvent) -> str | None:
    """Return the `taskSupport` of a tool; None if it was not listed."""
    tool = event.tool
    if tool is None:
        return None
    execution = tool.definition.get("execution")
    return str(execution.get("taskSupport", "forbidden")) if isinstance(execution, dict) else "forbidden"


def _server_takes_tasks(event: LintEvent) -> bool:
    value: Any = event.capabilities
    for step in ("tasks", "requests", "tools", "call"):
        value = value.get(step) if isinstance(value, dict) else None
    return isinstance(value, dict) or event.capabilities is None
