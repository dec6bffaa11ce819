"""Tasks in 2026-07-28, as an extension: the server begins them, and the client polls them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RESPONSES, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.extensions import client_declares
from mcpspy.analysis.lint.state import forget
from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.tasks import EXTENSION, SOURCE
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, meta_raw, text
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, SERVER

_ACKNOWLEDGED = ("tasks/update", "tasks/cancel")
_DETAILED = ("tasks/get", "notifications/tasks")
_PAYLOADS = {"result": "completed", "error": "failed", "inputRequests": "input_required"}

_COUNTED = re.compile(r"(\D*|.*\D)([1-9]\d{0,8})")
"""An id that ends with a number of up to nine digits."""

HEAD = '@ 2026-07-28 client={"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}\n'
_TASK = (
    '"taskId":"%s","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,'
)
_WORKING = _TASK % "t" + '"status":"working"'
_DONE = _TASK % "t" + '"status":"completed","result":{"content":[]}'
_FAILED = _TASK % "t" + '"status":"failed","statusMessage":"a","error":{"code":-32603,"message":"a"}'
_ASKS = (
    _TASK % "t"
    + '"status":"input_required","inputRequests":{"%s":{"method":"elicitation/create","params":{"message":"%s","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}}'
)
_CALL = (
    '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"task",%s}}\n'
)
BEGUN = HEAD + _CALL % _WORKING
_GET = '> {"id":%d,"method":"tasks/get","params":{"taskId":"t"}}\n< {"id":%d,"result":{%s}}\n'
_UPDATE = '> {"id":%d,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"%s":%s}}}\n< {"id":%d,"result":{%s}}\n'
_DECLINE = '{"action":"decline"}'
_ASKED = BEGUN + _GET % (3, 3, _ASKS % ("k", "a"))
_ANSWERED = _ASKED + _UPDATE % (4, "k", _DECLINE, 4, "")
_CANCEL = '> {"id":3,"method":"tasks/cancel","params":{"taskId":"t"}}\n< {"id":3,"result":{%s}}\n'
_GOOD = _ANSWERED + _GET % (5, 5, _DONE)
_BARE = "@ 2026-07-28\n"
_REFUSED = '> {"id":2,"method":"tasks/get","params":{"taskId":"t"}}\n< {"id":2,"error":{"code":%d,"message":"a","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}'
_LISTEN = '> {"id":3,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["t"]}}}\n< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["t"]},"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}\n'
_DISCOVER = '> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}%s}}}\n'
_PROGRESS = '< {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}\n'

rule = RuleGroup(RULES, since=MODERN, valid=_GOOD)
result = rule.group(on=EventKind.RESULT, by=SERVER)


def _server_lacks(event: LintEvent) -> bool:
    """Return whether the server has declared its capabilities, and not the extension."""
    return event.capabilities is not None and EXTENSION.id not in declared(event.capabilities)


def _is_created(event: LintEvent) -> bool:
    return event.is_result and isinstance(event.what, Result) and event.what.result_type == "task"


@result.error(
    "DATA713",
    "task for a peer that did not declare tasks",
    page=SOURCE + "#capability-negotiation",
    about="tools/call",
    beyond_plain=True,
    invalid=(_BARE + _CALL % _WORKING, HEAD + _DISCOVER % "" + _CALL % _WORKING),
)
def undeclared(event: LintEvent) -> Iterator[Report]:
    """A server may answer with a task only a request that declares the extension, whatever the client declared before.
    Other clients take the task for the result of the tool, which has no content. The server declares it, too.
    """
    if not _is_created(event):
        return
    if client_declares(event.request, EXTENSION.id) is False:
        yield Report(f"task for a request that does not declare {EXTENSION.id}")
    elif _server_lacks(event):
        yield Report(f"task of a server that did not declare {EXTENSION.id}")


@result.error(
    "DATA714",
    "resultType task where no task can begin",
    page=SOURCE + "#polymorphic-results",
    invalid=(
        BEGUN + _GET % (3, 3, '"resultType":"task",' + _WORKING),
        HEAD + (_CALL % _WORKING).replace("tools/call", "prompts/get"),
    ),
)
def misplaced(event: LintEvent) -> Iterator[Report]:
    """Only `tools/call` may begin a task. The results of `tasks/get`, `tasks/update` and `tasks/cancel` have the type
    `complete`: a client takes another one for a new task, or for an invalid response.
    """
    if _is_created(event) and event.method != "tools/call":
        yield Report(f"resultType of {event.method} is task")


@result.error(
    "DATA715",
    "acknowledgement that is not empty",
    page=SOURCE + "#task-cancellation",
    about=_ACKNOWLEDGED,
    invalid=(BEGUN + _CANCEL % _WORKING, _ASKED + _UPDATE % (4, "k", _DECLINE, 4, '"accepted":true')),
)
def full(event: LintEvent) -> Iterator[Report]:
    """The results of `tasks/update` and `tasks/cancel` say only that the server has received the request. The status of
    the task follows with `tasks/get`, or in a notification.
    """
    members = event.result.keys() - {"_meta", "resultType"}
    if members and not _is_created(event):  # DATA714 reports it.
        yield Report(f"the result of {event.method} has {', '.join(sorted(members))[:80]}")


@rule.error(
    "DATA716",
    "task with a member of another status",
    page=SOURCE + "#task-execution-errors",
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=_DETAILED,
    invalid=BEGUN + _GET % (3, 3, _FAILED + ',"result":{"content":[],"isError":true}'),
)
def other_payload(event: LintEvent) -> Iterator[Report]:
    """Only a completed task has a `result`, a failed one an `error`, one that requires input `inputRequests`. A tool
    result with `isError` is the result of a completed task; failed is for JSON-RPC errors.
    """
    for task in event.tasks:
        for member, status in _PAYLOADS.items():
            if task.get(member) is not None and task.get("status") != status:
                yield Report(f"{str(task.get('status'))[:40]} task with {member}", task)


@rule.error(
    "DATA717",
    "key of an input request used again",
    page=SOURCE + "#task-update-requests",
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=_DETAILED,
    valid=(
        _GOOD,
        _ANSWERED + _GET % (5, 5, _ASKS % ("k", "a")),
        _ANSWERED + _GET % (5, 5, _ASKS % ("l", "b")),
    ),
    invalid=(
        _ASKED + _GET % (4, 4, _ASKS % ("k", "b")),
        _ANSWERED + _GET % (5, 5, _WORKING) + _GET % (6, 6, _ASKS % ("k", "a")),
    ),
)
def reused_key(event: LintEvent) -> Iterator[Report]:
    """A key is that of one request in the whole life of a task. Clients ignore a key that they have seen, so the user
    never sees the second request, and the task never ends.
    """
    for task in event.tasks:
        history = event.state.tasks.get(str(task.get("taskId")))
        requests = task.get("inputRequests")
        for key, request in requests.items() if history and isinstance(requests, dict) else ():
            assert history is not None
            if key in history.requests and not _is_same(history.requests[key], request):
                yield Report(f"another request than before under the key {key[:60]}", request)
            elif key in history.answered and key not in history.opened:
                yield Report(f"key {key[:60]} of a request that was answered", request)


def _is_same(one: Any, other: Any) -> bool:
    try:
        return canonical(one) == canonical(other)
    except RecursionError:
        return True


@rule.error(
    "DATA718",
    "response to no open input request",
    page=SOURCE + "#request-1",
    on=EventKind.REQUEST,
    about="tasks/update",
    by=CLIENT,
    invalid=(
        _ASKED + _UPDATE % (4, "z", _DECLINE, 4, ""),
        _ANSWERED + _UPDATE % (5, "k", _DECLINE, 5, ""),
        _ASKED + _UPDATE % (4, "k", '{"action":"accept","content":{"n":"one"}}', 4, ""),
        BEGUN + _UPDATE % (3, "k", _DECLINE, 3, ""),
    ),
)
def unasked(event: LintEvent) -> Iterator[Report]:
    """Each key of `inputResponses` is that of an open input request of the task, which has no response yet; the content
    of a form conforms to its schema. Servers ignore other responses.
    """
    history, responses = event.state.tasks.get(event.subject or ""), event.params.get("inputResponses")
    if history is None or not isinstance(responses, dict):
        return
    for key, response in responses.items():
        if key not in history.requests:
            yield Report(f"response under the key {key[:60]}, which no request has", response)
        elif key in history.answered:
            yield Report(f"second response to input request {key[:60]}", response)
        elif key not in history.opened:
            yield Report(f"response to the closed input request {key[:60]}", response)
        else:
            yield from _breaches(event, key, history.requests[key], response)


def _breaches(event: LintEvent, key: str, request: Any, response: Any) -> Iterator[Report]:
    params = request.get("params") if isinstance(request, dict) else None
    schema = params.get("requestedSchema") if isinstance(params, dict) else None
    if isinstance(schema, dict) and isinstance(response, dict) and response.get("action") == "accept":
        for breach in event.state.schemas.check(schema).breaches(response.get("content", {})):
            yield Report(f"content of {key[:60]}: {breach}", response)


@rule.error(
    "DATA719",
    "task that its server does not know",
    page=SOURCE + "#task-creation",
    on=EventKind.FAILURE,
    about="tasks/get",
    by=SERVER,
    invalid=BEGUN
    + '> {"id":3,"method":"tasks/get","params":{"taskId":"t"}}\n< {"id":3,"error":{"code":-32602,"message":"a"}}',
)
def lost(event: LintEvent) -> Iterator[Report]:
    """A server returns a task only when `tasks/get` finds it, and keeps it until it ends or its `ttlMs` is over. Often
    the requests reach several instances of the server that do not share their tasks.
    """
    history = event.state.tasks.get(event.subject or "")
    if event.failure.code != -32602 or history is None or history.begun_at is None:
        return
    is_kept = history.ttl is None or event.at - history.begun_at < history.ttl
    if is_kept and not history.is_ended and not history.is_cancelled:
        age = event.at - history.begun_at
        yield Report(f"task {(event.subject or '')[:60]} is unknown {age:.1f} s after it began")


@rule.error(
    "DATA720",
    "request for tasks of a client without tasks not refused",
    page=SOURCE + "#protocol-errors",
    on=(*RESPONSES, EventKind.NOTIFICATION),
    about=(
        "tasks/get",
        *_ACKNOWLEDGED,
        "subscriptions/listen",
        "notifications/subscriptions/acknowledged",
    ),
    by=SERVER,
    valid=(_GOOD, _BARE + _REFUSED % -32021, HEAD + _LISTEN),
    invalid=(
        _BARE + _GET % (3, 3, _WORKING),
        _BARE + _REFUSED % -32602,
        _BARE + _LISTEN,
    ),
)
def not_refused(event: LintEvent) -> Iterable[Report]:
    """A request for a task, or for notifications of tasks, must declare the extension. A server refuses it otherwise
    with -32021, which names the extension, so that the client knows what to declare.
    """
    what = event.what
    if isinstance(what, Notification):
        number = text(meta_raw(what.body.meta, META + "subscriptionId"))
        requests = [
            pending.exchange.request
            for pending in event.state.open.values()
            if pending.exchange.request.id == number
            and pending.exchange.request.method == "subscriptions/listen"
            and pending.conversation is event.conversation
        ]
        accepted = event.params.get("notifications")
        if not requests or not (isinstance(accepted, dict) and accepted.get("taskIds")):
            return ()
        request = requests[-1]
    elif event.exchange is None:
        return ()
    else:
        request = event.request
    is_listening = request.method == "subscriptions/listen"
    if is_listening and (isinstance(what, Result) or not _wants_tasks(request)):
        return ()  # The result of a subscription is its end, which may follow for another reason.
    if client_declares(request, EXTENSION.id) is not False or _server_lacks(event):
        return ()
    if isinstance(what, Failure):
        if what.code in (-32021, -32020, -32022):
            return ()
        return [Report(f"error code {what.code} for a client without {EXTENSION.id}, not -32021")]
    return [Report(f"{request.method} of a client that did not declare {EXTENSION.id}")]


def _wants_tasks(request: Request) -> bool:
    params = request.params
    wanted = params.get("notifications") if isinstance(params, dict) else None
    return isinstance(wanted, dict) and "taskIds" in wanted


@rule.error(
    "DATA722",
    "progress of a task",
    page=SOURCE + "#task-status-notifications",
    on=EventKind.NOTIFICATION,
    about="notifications/progress",
    by=SERVER,
    invalid=HEAD
    + (_CALL % _WORKING).replace('"name":"a"', '"name":"a","_meta":{"progressToken":7}')
    + _PROGRESS,
)
def progress(event: LintEvent) -> Iterator[Report]:
    """Tasks have no progress: their status message has that role. Progress ends with the result that begins the task, and
    is not sent on the stream of a subscription.
    """
    answer = event.exchange.answer if event.exchange is not None else None
    if isinstance(answer, Result) and answer.result_type == "task":
        yield Report("progress of a request that has become a task")
    elif meta_raw(event.notification.body.meta, META + "subscriptionId"):
        yield Report("progress on a subscription")


@result.error(
    "DATA723",
    "tasks declared as in 2025-11-25",
    page="https://modelcontextprotocol.io/seps/2663-tasks-extension#backward-compatibility",
    about="server/discover",
    valid=_BARE + _DISCOVER % ',"extensions":{"io.modelcontextprotocol/tasks":{}}',
    invalid=_BARE + _DISCOVER % ',"tasks":{"requests":{"tools":{"call":{}}}}',
)
def legacy_capability(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 has no capability `tasks`: a server declares the extension instead, and must not declare both. A client
    could take it for a server of the tasks of 2025-11-25, which work differently.
    """
    capabilities = event.result.get("capabilities")
    if isinstance(capabilities, dict) and "tasks" in capabilities:
        yield Report("the server declares the capability tasks of 2025-11-25", capabilities)


@result.error(
    "DATA724",
    "another task than the requested one",
    page=SOURCE + "#response",
    about="tasks/get",
    since="2025-11-25",
    invalid=BEGUN + _GET % (3, 3, _TASK % "u" + '"status":"working"'),
)
def other_task(event: LintEvent) -> Iterator[Report]:
    """The result of `tasks/get` is the task with the requested id."""
    given = event.result.get("taskId")
    if isinstance(given, str) and event.is_result and event.subject is not None and given != event.subject:
        yield Report(f"task {given[:60]} instead of {event.subject[:60]}", given)


class _Numbers(OrderedDict[str, int]):
    """Beginning of the ids of tasks → the number at the end of the latest one."""


@result.warning(
    "DATA725",
    "ids of tasks that can be guessed",
    page=SOURCE + "#security-considerations",
    about="tools/call",
    beyond_plain=True,
    once=True,
    valid=(
        HEAD
        + _CALL % _WORKING.replace('"t"', '"t-1"')
        + (_CALL % _WORKING.replace('"t"', '"t-7"')).replace('"id":2', '"id":3'),
        _GOOD,
    ),
    invalid=HEAD
    + _CALL % _WORKING.replace('"t"', '"t-1"')
    + (_CALL % _WORKING.replace('"t"', '"t-2"')).replace('"id":2', '"id":3'),
)
def guessable(event: LintEvent) -> Iterator[Report]:
    """The id of a task is enough to read its result, unless the server knows its clients. So it must be random. Here one id
    leads to the next. Reported if two ids differ by 1 at their end; once for a session.
    """
    found = _COUNTED.fullmatch(str(event.result.get("taskId"))) if _is_created(event) else None
    if found is not None:
        known, (start, number) = event.state.memory[_Numbers], found.groups()
        if known.get(start) == int(number) - 1:
            yield Report(f"task {found[0][:60]} follows {start[:60]}{known[start]}", found[0])
        known[start] = int(number)
        forget(known)
