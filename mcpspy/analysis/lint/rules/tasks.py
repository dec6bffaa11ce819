"""Tasks: requests whose result comes later (2025-11-25), and their status (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, LintRule, Report, RuleGroup
from mcpspy.analysis.lint.state import forget
from mcpspy.core.protocol.message import Result, meta_raw
from mcpspy.core.protocol.spec import META, MODERN

RULES: list[LintRule] = []

TASKS = "2025-11-25/basic/utilities/tasks"

STATUSES = ("working", "input_required", "completed", "failed", "cancelled")
_ENDS = ("completed", "failed", "cancelled")
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
_RESULT = '> {"id":4,"method":"tasks/result","params":{"taskId":"t"}}\n< {"id":4,"result":{"content":[]%s}}'
_RELATED = ',"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}'
_NOW = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"task",%s}}'
_CALL = '> {"id":2,"method":"tools/call","params":{"name":"a"%s}}\n< {"id":2,"error":{"code":-32601,"message":"task"}}'


def _tasks(event: LintEvent) -> list[Any]:
    """Return the tasks in a message."""
    if event.method == "tasks/list":
        tasks = event.result.get("tasks")
        return tasks if isinstance(tasks, list) else []
    if event.method in _REPORTING:
        task = event.params if event.method.startswith("notifications/") else event.result
        is_acknowledged = event.method == "tasks/cancel" and (event.revision or "") >= MODERN
        return [] if is_acknowledged else [task]
    if not isinstance(event.what, Result) or not event.what.is_task:
        return []
    return [event.result if (event.revision or "") >= MODERN else event.result.get("task")]


task = RuleGroup(RULES, on=(EventKind.RESULT, EventKind.NOTIFICATION), since=LEGACY, beyond_text=True)
legacy = RuleGroup(RULES, since=LEGACY, until=LEGACY, valid=_GOOD)
result = legacy.group(on=EventKind.RESULT)
call = legacy.group(page=TASKS + "#tool-level-negotiation", on=EventKind.REQUEST, about="tools/call")


@task.error(
    "DATA701",
    "task without a required member",
    page=TASKS + "#task",
    shape=True,
    valid=(_GOOD, _NOW % (_TASK % "working").replace('"ttl"', '"ttlMs"')),
    invalid=(
        _BEGUN % '"taskId":"t","status":"working"',
        _BEGUN % (_TASK % "running"),
        _GOOD.replace('"result":{"taskId":"t"', '"result":{"taskId":7'),
        _NOW % (_TASK % "working"),
    ),
)
def shape(event: LintEvent) -> Iterable[Report]:
    """A task requires `taskId`, `status` (one of five), `createdAt`, `lastUpdatedAt` and `ttl`, which is `null` for a
    task that does not expire; in 2026-07-28 it is named `ttlMs`. Clients need all of them to poll.
    """
    return event.violations("DATA701")


@result.error(
    "DATA702",
    "task without a task request",
    page=TASKS + "#creating-tasks",
    about=_STARTED,
    beyond_text=True,
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
    about=(*_STARTED, *_REPORTING),
    valid=_GOOD + _GET % (4, 4, _TASK % "completed"),
    invalid=(_GOOD + _GET % (4, 4, _TASK % "working"), _GOOD + _GET % (4, 4, _TASK % "failed")),
)
def revived(event: LintEvent) -> Iterator[Report]:
    """Completed, failed and cancelled are final. Clients stop polling a finished task and never see a later change."""
    for task in _tasks(event):
        if not isinstance(task, dict) or not isinstance(number := task.get("taskId"), str):
            continue
        before, status = event.state.tasks.get(number), task.get("status")
        if before in _ENDS and status in STATUSES and status != before:
            yield Report(f"task {number[:60]} is {status} after it was {before}", task)
        elif status in STATUSES:
            event.state.tasks[number] = status
            forget(event.state.tasks)


@result.error(
    "DATA704",
    "task result that does not name its task",
    page=TASKS + "#related-task-metadata",
    about="tasks/result",
    valid=_GOOD + _RESULT % _RELATED,
    invalid=_GOOD + _RESULT % "",
)
def unrelated(event: LintEvent) -> Iterator[Report]:
    """`tasks/result` returns the plain tool result, which does not refer to the task. Its `_meta` must therefore
    contain `io.modelcontextprotocol/related-task`.
    """
    if isinstance(event.what, Result) and not meta_raw(event.what.body.meta, META + "related-task"):
        yield Report(f"_meta has no {META}related-task")


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
