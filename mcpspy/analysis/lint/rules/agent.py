"""Behaviour of the model and its host: loops, retries, unused tools, hidden failures."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.failure_text import is_failure, words_of
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RESPONSES, RULES, Report, RuleGroup
from mcpspy.analysis.lint.state import forget
from mcpspy.core.protocol.message import Request, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange, State

_OK = State.OK  # Reading a member of an Enum runs Python code; reading a name does not.

TOOLS = "2025-11-25/server/tools"

MANY = 12
"""Number of calls in a row, all equal or two in turns, that is reported."""


def _call(number: int, name: str, arguments: str = "{}", text: str = "3", more: str = "") -> str:
    result = f'{{"content":[{{"type":"text","text":{json.dumps(text)}}}]{more}}}'
    return (
        f'> {{"id":{number},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}\n'
        f'< {{"id":{number},"result":{result}}}\n'
    )


_FAILED = ',"isError":true'
_PATH = '{"path":"a"}'

rule = RuleGroup(RULES, page=TOOLS)
calls = rule.group(page=TOOLS + "#calling-tools", on=EventKind.REQUEST, about="tools/call")


class Calls(Struct):
    """The last two calls, by tool and arguments, the number of equal calls in a row, and that of calls by turns."""

    last: tuple[str | None, Any] = (None, None)
    before: tuple[str | None, Any] = (None, None)
    equal: int = 0
    turns: int = 0
    number: int = -1
    """The last change that was counted: two rules read it."""

    def add(self, call: tuple[str | None, Any], number: int) -> None:
        is_equal = call == self.last
        self.equal = self.equal + 1 if is_equal else 1
        is_turn = not is_equal and call == self.before and call[0] != self.last[0]
        self.turns = self.turns + 1 if is_turn else 2
        self.before, self.last, self.number = self.last, call, number


def _calls_with(event: LintEvent) -> Calls:
    """Return the calls up to this one."""
    calls = event.state.memory[Calls]
    if calls.number != event.number:
        calls.add((event.subject, event.params.get("arguments")), event.number)
    return calls


@calls.info(
    "AGENT101",
    "same call many times in a row",
    valid="".join(_call(number, "c", f'{{"n":{number % 2}}}') for number in range(3, 19)),
    invalid="".join(_call(number, "c") for number in range(3, 3 + MANY)),
)
def repeated(event: LintEvent) -> Iterable[Report]:
    """The model calls a tool again and again with the same arguments: it polls, or does not understand the result. Say in
    the result what to do next, or return a task. Reported at the 12th call in a row.
    """
    calls = _calls_with(event)
    if calls.equal != MANY:
        return ()
    return [Report(f"{event.subject} called {MANY} times in a row with the same arguments", calls.last[1])]


@calls.info(
    "AGENT102",
    "two calls by turns, many times",
    valid=(
        "".join(_call(number, "ab"[number % 2], f'{{"n":{number}}}') for number in range(3, 19)),
        "".join(_call(number, "abc"[number % 3]) for number in range(3, 19)),
    ),
    invalid="".join(_call(number, "ab"[number % 2]) for number in range(3, 3 + MANY)),
)
def alternating(event: LintEvent) -> Iterable[Report]:
    """The model calls two tools by turns, each with the same arguments every time: the result of each sends it to the other
    one. Say in both results what to do next. Reported at the 12th call.
    """
    calls = _calls_with(event)
    if calls.turns != MANY:
        return ()
    names = f"{calls.before[0]} and {calls.last[0]}"
    return [Report(f"{names} called by turns, {MANY // 2} times each", calls.last[1])]


@rule.warning(
    "AGENT103",
    "failure without isError",
    page=TOOLS + "#error-handling",
    on=EventKind.RESULT,
    about="tools/call",
    valid=(
        _call(3, "open", text="Error: ENOENT: no such file or directory, open 'a'", more=_FAILED),
        _call(3, "search_logs", text="Error: disk full\nError: disk full\nError: disk full"),
        _call(3, "check", text='{"valid":false,"error":"line 3: a name is missing"}'),
        _call(3, "deploy", text="Error handling: the job is started again after a failure."),
    ),
    invalid=(
        _call(3, "open", text="Error: ENOENT: no such file or directory, open 'a'"),
        _call(
            3,
            "sum",
            text='Traceback (most recent call last):\n  File "a.py", line 3, in sum\n    return a / b\nZeroDivisionError: division by zero',
        ),
        _call(3, "get_user", text='{"message":"Not Found","status":404}', more=',"isError":false'),
    ),
)
def hidden_failure(event: LintEvent) -> Iterable[Report]:
    """The text of the result is an error message or a stack trace, but the result does not have `isError: true`. Hosts show
    it as a success, and statistics count it as one. Most SDKs set `isError` if the handler raises an exception; a handler
    that returns the message as text must set it itself. The text of tools that search or read is judged more carefully.
    """
    if event.exchange is None or event.exchange.state is not _OK:
        return ()
    content = event.result.get("content")
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str) or not is_failure(text, event.subject or ""):
        return ()
    return [Report(f"{event.subject} reports a failure without isError: {words_of(text)[:120]}", text)]


RETRIES = 4
"""Number of retries that is reported."""

PAUSE = 1.0
"""Seconds: a longer pause before a retry is not reported."""


class _Retries(Struct):
    """A request that failed, and its retries."""

    exchange: Exchange
    """The last of them."""
    first: float
    failed_at: float | None
    """Time of the last failure; None while the retry is pending."""
    pauses: list[float] = field(default_factory=list)
    read: dict[str, Any] | None = None
    """Its params without `_meta`, once they were compared."""

    @property
    def params(self) -> dict[str, Any]:
        if self.read is None:
            self.read = _arguments(self.exchange.request.params)
        return self.read


class FailedRequests:
    """Method and subject → the last request of these that failed."""

    def __init__(self) -> None:
        self.of: OrderedDict[tuple[str, str | None], _Retries] = OrderedDict()

    def is_retry(self, key: tuple[str, str | None], params: dict[str, Any], at: float) -> bool:
        """Return whether a request repeats one that failed, after a pause that is not long enough."""
        retries = self.of.get(key)
        if retries is None or retries.failed_at is None:  # A retry is pending.
            return False
        pause = at - retries.failed_at
        if pause > PAUSE or (retries.pauses and pause >= 2 * retries.pauses[0]):
            del self.of[key]
            return False
        return _arguments(params) == retries.params

    def fail(self, key: tuple[str, str | None], exchange: Exchange, at: float) -> None:
        """Remember a request that failed."""
        retries = self.of.get(key)
        if retries is not None and retries.exchange is exchange:
            retries.failed_at = at
        else:
            self.of[key] = _Retries(exchange, exchange.request.at, at)
            forget(self.of)

    def succeed(self, key: tuple[str, str | None], exchange: Exchange) -> None:
        """Forget a failure if the request that repeated it succeeded."""
        retries = self.of.get(key)
        if retries is not None and retries.exchange is exchange:
            del self.of[key]


def _of_client(kind: EventKind, _method: str, side: str) -> bool:
    return (kind is EventKind.REQUEST) == (side == CLIENT)


@rule.warning(
    "AGENT104",
    "retries without a pause",
    page=TOOLS + "#error-handling",
    on=(EventKind.REQUEST, *RESPONSES),
    only=_of_client,
    valid=(
        "".join(_call(number, "open", _PATH, "Error", _FAILED) for number in range(3, 9)),
        "".join(
            f"+ {0.05 * 2**number}\n" + _call(number, "open", _PATH, "Error", _FAILED)
            for number in range(3, 8)
        ),
        "+ 0.1\n"
        + "".join(_call(number, "open", f'{{"n":{number}}}', "Error", _FAILED) for number in range(3, 9)),
        "+ 0.1\n" + "".join(_call(number, "open", _PATH) for number in range(3, 9)),
    ),
    invalid=(
        "+ 0.1\n" + "".join(_call(number, "open", _PATH, "Error", _FAILED) for number in range(3, 8)),
        "+ 0.2\n"
        + "".join(
            f'> {{"id":{number},"method":"resources/read","params":{{"uri":"a:b"}}}}\n'
            f'< {{"id":{number},"error":{{"code":-32603,"message":"busy"}}}}\n'
            for number in range(3, 8)
        ),
    ),
)
def hasty(event: LintEvent) -> Iterable[Report]:
    """The same request failed and was sent again at once, four times or more, each time within a second and without longer
    and longer pauses. A server that is overloaded needs these pauses, and one that refuses the request refuses it again.
    """
    requests, what, exchange = event.state.memory[FailedRequests], event.what, event.exchange
    if exchange is None or (not requests.of and (exchange.state is _OK or isinstance(what, Request))):
        return ()
    key = event.method, event.subject
    if isinstance(what, Request):
        return _retry(event, requests.of[key]) if requests.is_retry(key, event.params, event.at) else ()
    if exchange.state is _OK or (isinstance(what, Result) and not what.is_tool_error):
        requests.succeed(key, exchange)
    else:
        requests.fail(key, exchange, event.at)
    return ()


def _retry(event: LintEvent, retries: _Retries) -> Iterator[Report]:
    assert event.exchange is not None
    retries.pauses.append(event.at - (retries.failed_at or event.at))
    retries.exchange, retries.failed_at = event.exchange, None
    if len(retries.pauses) == RETRIES:
        what = f"{event.method} {event.subject or ''}".strip()
        seconds = event.at - retries.first
        yield Report(f"{what} sent {RETRIES + 1} times within {seconds:.1f} s, although it failed each time")


def _arguments(params: Any) -> dict[str, Any]:
    """Return params without `_meta`."""
    return (
        {name: value for name, value in params.items() if name != "_meta"} if isinstance(params, dict) else {}
    )


ENOUGH = 20
"""Calls of a session in which most tools should have been used."""


class _Called:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.count = 0


def _unused_example(unused: int) -> str:
    names = [chr(ord("a") + number) for number in range(unused + 2)]
    tools = ",".join(
        f'{{"name":"{name}","description":"b","inputSchema":{{"type":"object"}}}}' for name in names
    )
    listed = f'> {{"id":2,"method":"tools/list"}}\n< {{"id":2,"result":{{"tools":[{tools}]}}}}\n'
    called = "".join(_call(number, "ab"[number % 2], f'{{"n":{number}}}') for number in range(3, 3 + ENOUGH))
    return listed + called + '* eof {"from":"client"}\n* exit {"code":0}'


@rule.info(
    "AGENT105",
    "tools that are listed and never called",
    page=TOOLS + "#listing-tools",
    on=(EventKind.REQUEST, EventKind.SESSION_END),
    about=("tools/call", ""),
    valid=_unused_example(1),
    invalid=_unused_example(3),
)
def unused(event: LintEvent) -> Iterable[Report]:
    """In a session of at least 20 calls, most of the listed tools were never called. The host sends every definition to the
    model with each request. List fewer tools, or select them in the host. `mcpspy stats --context` shows what they cost.
    """
    called, tools = event.state.memory[_Called], event.state.tools
    if isinstance(event.what, Request):
        called.count += 1
        if (name := event.subject) is not None and name in tools:
            called.names.add(name)
        return ()
    rest = [name for name in tools if name not in called.names]
    if called.count < ENOUGH or 2 * len(rest) <= len(tools):
        return ()
    names = ", ".join(name[:40] for name in rest[:5]) + (", …" if len(rest) > 5 else "")
    return [
        Report(f"{len(rest)} of {len(tools)} tools were never called in {called.count} calls: {names}", "")
    ]


class _Abandoned:
    """Cursors, tasks and states that only cancelled requests returned → the method of the request."""

    def __init__(self) -> None:
        self.values: OrderedDict[tuple[str, str], str] = OrderedDict()


_LIST = '> {"id":2,"method":"prompts/list"}\n'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":2}}\n'
_PAGE = '< {"id":2,"result":{"prompts":[],"nextCursor":"p2"}}\n'
_NEXT = '> {"id":3,"method":"prompts/list","params":{"cursor":"p2"}}\n< {"id":3,"result":{"prompts":[]}}'


@rule.info(
    "AGENT106",
    "result of a cancelled request that is used",
    page="2025-11-25/basic/utilities/cancellation#behavior-requirements",
    on=(EventKind.REQUEST, EventKind.RESULT),
    only=_of_client,
    valid=_LIST + _PAGE + _CANCEL + _NEXT,
    invalid=_LIST + _CANCEL + _PAGE + _NEXT,
)
def used_after_cancellation(event: LintEvent) -> Iterable[Report]:
    """The client cancelled a request, and then uses what its late response contains: the cursor of the next page, a task, or
    the `requestState`. A client should ignore a response that arrives after the cancellation. The same holds for the result
    of a task that the client cancelled.
    """
    if isinstance(event.what, Request):
        values = event.state.memory[_Abandoned].values
        return _uses(event, values) if values else ()
    exchange = event.exchange
    if exchange is not None and outcome.of(exchange.state).is_late:
        result = event.result
        task = result.get("task")
        given = {**result, **(task if isinstance(task, dict) else {})}
        found = {"cursor": given.get("nextCursor"), "taskId": given.get("taskId")}
        found["requestState"] = given.get("requestState")
    elif event.method == "tasks/cancel" and isinstance(params := event.request.params, dict):
        found = {"taskId": params.get("taskId")}
    else:
        return ()
    values = event.state.memory[_Abandoned].values
    values.update({(name, value): event.method for name, value in found.items() if isinstance(value, str)})
    forget(values)
    return ()


def _uses(event: LintEvent, values: OrderedDict[tuple[str, str], str]) -> Iterator[Report]:
    for name in ("cursor", "taskId", "requestState"):
        value = event.params.get(name)
        method = values.get((name, value)) if isinstance(value, str) else None
        if method is not None and event.method not in ("tasks/get", "tasks/cancel"):
            yield Report(
                f"{event.method} with the {name} of a cancelled {method.replace('tasks/cancel', 'task')}",
                value,
            )


_OBJECT_NAME = re.compile(
    r"(?:\[object \w+\][\s,;]*)+|Promise \{ <?pending>? \}|<(?:\w+ )?(?:object )?[\w.<>]+ (?:object )?at 0x[0-9a-fA-F]+>|#<[A-Z][\w:]*(?::0x[0-9a-f]+)?[^>]{0,200}>"
    r"|(?:[a-z]\w*\.){1,9}[A-Z]\w*@[0-9a-f]{5,8}|System\.[A-Z][\w.]*(?:`\d)?(?:\[[\w.`,\[\] ]+\])?"
)
"""The default text of an object in JavaScript, Python, Ruby, Java and .NET."""

MAX_NAMED = 300
"""Characters of a text that may be the name of an object alone."""

_BEGINS_AS_NAME = re.compile(rb'"\s*(?:\[object |Promise |<|#<|System\.|[a-z]\w*\.[\w.]+@)')


def may_name_object(written: bytes) -> bool:
    """Return False if a text, as its JSON text shows, is not the name of an object alone."""
    return len(written) < MAX_NAMED and _BEGINS_AS_NAME.match(written) is not None


@rule.warning(
    "AGENT107",
    "name of an object in place of its text",
    page=TOOLS + "#tool-result",
    on=EventKind.RESULT,
    about="tools/call",
    valid=(_call(3, "c", text="[object Object] is what JavaScript prints"), _call(3, "c", text="a@b12345")),
    invalid=(
        _call(3, "c", text="[object Object]"),
        _call(3, "c", text="<coroutine object fetch at 0x7f3a1c2b4d40>"),
        _call(3, "c", text="com.example.Forecast@6d06d69c"),
        _call(3, "c", text="System.Collections.Generic.List`1[System.String]"),
    ),
)
def object_as_text(event: LintEvent) -> Iterator[Report]:
    """The server turned an object into text without writing it as JSON (JavaScript), or returned a coroutine that it had not
    awaited (Python): the model sees the name of a type, and nothing of the data.
    """
    content = event.result.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and len(text) < MAX_NAMED and _OBJECT_NAME.fullmatch(text.strip()):
            yield Report(
                f"the text of the result of {event.subject} is the name of an object: {text.strip()[:60]}",
                text,
            )
            return
