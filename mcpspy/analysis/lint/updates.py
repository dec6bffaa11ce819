"""Updates of the state that rules share, from the messages that they have checked, in wire order."""

from __future__ import annotations

from mcpspy.analysis.lint.event import TASK_NOTIFICATIONS, LintEvent, seconds_of
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.state import KEPT, STATUSES, PendingRequest, TaskHistory, forget
from mcpspy.core.protocol.listing import EVERY_LISTING
from mcpspy.core.protocol.mcp_headers import argument_headers
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    decoded,
    meta_raw,
)
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import META, MODERN, SERVER, other


def update_state(what: AnyMessage, event: LintEvent) -> None:
    """Update the state of the conversation from a message that the rules have checked."""
    if isinstance(what, Request | Result | Notification) and (
        event.method.startswith("tasks/")
        or event.method in TASK_NOTIFICATIONS
        or (isinstance(what, Result) and what.is_task)
    ):
        _add_tasks(what, event)
    conversation, side = event.conversation, event.side
    if isinstance(what, Request):
        _add_request(what, event)
        conversation.has_notified[side] = False
        return
    if isinstance(what, Notification):
        if what.method == "notifications/initialized":
            conversation.is_initialized = True
        elif what.method.endswith("/list_changed"):
            event.listing.is_announced = True
            if what.method == "notifications/tools/list_changed":
                event.state.is_listed, event.state.tools_changed_at = False, what.at
        conversation.has_notified[side] = True
        return
    if isinstance(what, Malformed):
        conversation.was_malformed[side] = True
    else:
        if isinstance(what, Failure) and what.id is None:
            conversation.was_malformed[other(side)] = False
        if event.pending is not None:
            _add_response(what, event, event.pending.exchange.request)
    conversation.has_notified[side] = conversation.has_notified[other(side)] = False


def _add_request(what: Request, event: LintEvent) -> None:
    conversation = event.conversation
    assert event.exchange is not None
    pending = PendingRequest(
        event.exchange, conversation, event.place, event.number, event.revision, event.subject
    )
    event.state.open[id(event.exchange)] = pending
    is_legacy = event.revision is not None and event.revision < MODERN
    pending.is_late = is_legacy and event.side == SERVER and conversation.closed_at is not None
    if meta := what.meta:
        if (token := what.progress_token) is not None:
            conversation.tokens[event.side, token] = pending
        if level := meta_raw(meta, META + "logLevel"):
            pending.log_level, conversation.logs_requested = str(decoded(level)), True
    conversation.add_request(what)
    if what.method == "tools/list":
        event.state.tools_changed_at = None
    if what.method == "initialize":
        conversation.initialize_sent, event.state.refused = True, 0


def _add_tasks(what: Request | Result | Notification, event: LintEvent) -> None:
    """Add the tasks in a message."""
    known = event.state.tasks
    subject = known.get(event.subject or "")
    if isinstance(what, Request):
        if event.method == "tasks/cancel" and subject is not None:
            subject.is_cancelled = True
        return
    if event.method == "tasks/result" and event.subject is not None:
        history = known.setdefault(event.subject, TaskHistory())
        history.status = history.status if history.is_ended else "answered"
    elif event.method == "tasks/update" and subject is not None:
        params = event.request.params
        responses = params.get("inputResponses") if isinstance(params, dict) else None
        subject.answered |= responses.keys() if isinstance(responses, dict) else set()
    for task in event.tasks:
        if not isinstance(number := task.get("taskId"), str):
            continue
        history = known.setdefault(number, TaskHistory())
        forget(known)
        status, ttl = task.get("status"), task.get("ttlMs", task.get("ttl"))
        if status in STATUSES and not history.is_ended:
            history.status = status
        history.ttl = seconds_of(ttl)
        if isinstance(what, Result) and what.is_task and history.begun_at is None:
            history.begun_at, history.tool = what.at, event.subject
        requests = task.get("inputRequests")
        if isinstance(what, Notification) or not what.is_task:
            history.opened = set(requests) if isinstance(requests, dict) else set()
            history.requests |= requests if isinstance(requests, dict) else {}


def add_page(event: LintEvent) -> None:
    """Add a page of a list; the rules that check it compare it with the pages before."""
    method = EVERY_LISTING[event.method]
    names = [name for item in event.listed(method.member) if isinstance(name := item.get(method.key), str)]
    event.listing.add(event.state.pages.add_result(event.request, event.result, names[:KEPT]))


def _add_response(what: Result | Failure, event: LintEvent, request: Request) -> None:
    conversation, method = event.conversation, request.method
    if request.meta and (token := request.progress_token) is not None:
        conversation.tokens.pop((request.side, token), None)
    conversation.add_response(what, method)
    if method.endswith("/list") and isinstance(following := event.result.get("nextCursor"), str):
        event.state.cursors[following] = event.result.get("cacheScope")
        forget(event.state.cursors)
    if isinstance(what, Failure):
        if method == "initialize":
            conversation.initialize_sent = False
    elif method in HANDSHAKE_METHODS:
        conversation.has_capabilities = True
        event.state.server_capabilities = conversation.server_capabilities
        event.state.revision = conversation.revision or event.state.revision
        conversation.is_negotiated = conversation.is_negotiated or method == "initialize"
    elif method == "logging/setLevel":
        conversation.log_level = request.subject
    elif method == "tools/list":
        event.state.learn_tools(event.result, event.place, what.data)
        event.state.is_listed = event.listing.listing.is_whole
        event.state.tools_changed_at = None  # The notification and the request for the list may cross.
        event.state.last_page = event.place, event.number, event.at


def add_to_post(what: AnyMessage, kind: EventKind, event: LintEvent, number: int) -> None:
    """Add a message to its HTTP exchange."""
    subject = what.subject if isinstance(what, Request | Notification) else None
    post = event.state.post(number, event.place, event.number, what.at)
    post.add(what, kind, event.method, subject)
    if kind is EventKind.REQUEST and event.method == "tools/call" and (tool := event.tool) is not None:
        declared = tool.param_headers
        if declared.headers and not declared.wrong:
            given = argument_headers(declared.headers, event.params.get("arguments"))
            post.param_headers = {header: given.get(header) for header in declared.headers}
