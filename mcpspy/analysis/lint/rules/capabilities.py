"""Parts of capabilities: sampling, elicitation, tasks, roots, embedded resources.

Until 2025-11-25 the server sends these requests; from 2026-07-28 on they are in `input_required` results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.analysis.lint.rules.stateless import (
    MAY_REQUIRE_INPUT,
    MRTR,
    QUESTION,
    input_requests,
    is_question,
)
from mcpspy.analysis.lint.state import forget
from mcpspy.core.protocol.message import Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, MODERN, SERVER

SAMPLING = "2025-11-25/client/sampling"
ELICITATION = "2025-11-25/client/elicitation"

_REQUESTS = ("sampling/createMessage", "elicitation/create")
_NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
_LOCAL = re.compile(r"http://(?:localhost|127\.0\.0\.1|\[::1\])[:/?]")
_LINK = re.compile(r"https?://\S")

_SAMPLE = '< {"id":7,"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[%s]%s}}\n> {"id":7,"error":{"code":-1,"message":"no"}}'
_USER = '{"role":"user","content":{"type":"text","text":"a"}}'
_USE = '{"role":"assistant","content":{"type":"tool_use","id":"u","name":"t","input":{}}},'
_RESULT = '{"type":"tool_result","toolUseId":"%s","content":[]}'
_ELICIT = '< {"id":7,"method":"elicitation/create","params":{"message":"a"%s}}\n> {"id":7,"result":{"action":"decline"}}'
_FORM = ',"requestedSchema":{"type":"object","properties":{"b":{"type":"string"%s}}}'
_URL_MODE = '@ 2025-11-25 client={"elicitation":{"url":{}}}\n'
_URL = ',"mode":"url","url":"%s","elicitationId":"e"'
_ROOTS = '< {"id":7,"method":"roots/list"}\n> {"id":7,"result":{"roots":[{"uri":"%s"}]}}'
_DONE = '\n< {"method":"notifications/elicitation/complete","params":{"elicitationId":"%s"}}'
_EMBEDDED = '@ 2025-11-25 server={%s}\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[{"type":"resource","resource":{"uri":"a:b","text":"c"}}]}}'

asked = RuleGroup(
    RULES,
    on=(EventKind.REQUEST, EventKind.RESULT),
    by=SERVER,
    about=(*_REQUESTS, *MAY_REQUIRE_INPUT),
    since=LEGACY,
    beyond_plain=True,
)
rule = RuleGroup(RULES)


def requested(event: LintEvent, method: str) -> list[dict[str, Any]]:
    """Return the params of the requests to the client in a message: a request, or an `input_required` result."""
    if not isinstance(event.what, Result):
        return [event.params] if event.method == method else []
    questions = objects([*input_requests(event).values()]) if event.what.body.input_requests else []
    return objects([question.get("params") for question in questions if question.get("method") == method])


def missing_parts(method: str, params: dict[str, Any], declared: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of capabilities that a request to the client needs, and the client did not declare."""
    needs: list[str] = []
    if method == "sampling/createMessage":
        needs += ["sampling.tools"] if params.keys() & {"tools", "toolChoice"} else []
        needs += ["sampling.context"] if params.get("includeContext", "none") != "none" else []
    elif method == "elicitation/create":
        modes = declared.get("elicitation")
        mode = str(params.get("mode", "form"))
        needs += [] if mode == "form" and not modes else [f"elicitation.{mode}"]
    if "task" in params:
        needs.append("tasks.requests." + method.replace("/", "."))
    for need in needs:
        whole = need.partition(".")[0]
        if not has_capability(declared, need) and (whole == "tasks" or has_capability(declared, whole)):
            yield need


@asked.error(
    "LIFE115",
    "request for an undeclared part of a capability",
    page=SAMPLING + "#capabilities",
    on=EventKind.REQUEST,
    until=LEGACY,
    valid=(
        _SAMPLE % (_USER, ""),
        '@ 2025-11-25 client={"sampling":{"tools":{}}}\n' + _SAMPLE % (_USER, ',"tools":[]'),
        _ELICIT % (_FORM % ""),
    ),
    invalid=(
        _SAMPLE % (_USER, ',"tools":[]'),
        _SAMPLE % (_USER, ',"includeContext":"allServers"'),
        _ELICIT % (_URL % "https://example.com/a"),
        _ELICIT % (_FORM % "" + ',"task":{}'),
    ),
)
def undeclared_part(event: LintEvent) -> Iterator[Report]:
    """Sampling with tools needs `sampling.tools`, with context `sampling.context`; an elicitation needs its mode, where
    an empty object means forms; a task needs `tasks.requests`. The client rejects the request, or ignores that part.
    """
    if event.conversation.initialize_sent:
        for need in missing_parts(event.method, event.params, event.conversation.client_capabilities):
            yield Report(f"{event.method}, but the client did not declare {need}")


@rule.error(
    "MOD305",
    "input request for an undeclared capability",
    page=MRTR + "#server-requirements-basic-workflow",
    on=EventKind.RESULT,
    since=MODERN,
    valid=QUESTION,
    about=(*MAY_REQUIRE_INPUT, "tasks/get"),
    invalid=(
        QUESTION.replace(
            '{"name":"a"}', '{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}', 1
        ),
        QUESTION.replace("elicitation/create", "tools/list"),
    ),
)
def undeclared(event: LintEvent) -> Iterator[Report]:
    """The only input requests are elicitation, sampling and roots, and only for a client that declared the capability,
    and the parts of it that they use, in the same request.
    """
    yield from event.violations("MOD305")
    requests = input_requests(event) if is_question(event) or event.method == "tasks/get" else {}
    declared = loads(meta_raw(event.request.meta, META + "clientCapabilities")) if requests else None
    for key, question in requests.items():
        method = question.get("method") if isinstance(question, dict) else None
        needs = _NEEDS.get(method) if isinstance(method, str) else None
        if needs is None or not isinstance(declared, dict):
            continue
        if needs not in declared:
            yield Report(
                f"inputRequests/{key[:40]} is {method}, but the client did not declare {needs}", question
            )
        elif isinstance(params := question.get("params"), dict):
            for part in missing_parts(str(method), params, declared):
                yield Report(
                    f"inputRequests/{key[:40]} is {method}, but the client did not declare {part}", question
                )


@asked.error(
    "DATA409",
    "tool uses and tool results that do not match",
    page=SAMPLING + "#tool-use-and-result-balance",
    valid='@ 2025-11-25 client={"sampling":{"tools":{}}}\n'
    + _SAMPLE % (_USE + '{"role":"user","content":' + _RESULT % "u" + "}", ""),
    invalid=(
        _SAMPLE % (_USE + _USER, ""),
        _SAMPLE % (_USE + '{"role":"assistant","content":' + _RESULT % "u" + "}", ""),
        _SAMPLE % (_USE + '{"role":"user","content":[' + _RESULT % "u" + ',{"type":"text","text":"a"}]}', ""),
    ),
)
def tool_results(event: LintEvent) -> Iterator[Report]:
    """Tool uses are the assistant's, their results the user's. After an assistant's message with tool uses comes a user's message with exactly their results, and nothing else.
    Model providers reject other conversations.
    """
    for params in requested(event, "sampling/createMessage"):
        used: set[str] = set()
        for message, block in _blocks(params):
            owner = {"tool_use": "assistant", "tool_result": "user"}.get(str(block.get("type")))
            if (
                owner is not None
                and message.get("role") in ("user", "assistant")
                and message["role"] != owner
            ):
                yield Report(f"{block['type']} in a message of the {message['role']}", message)
        for message in [*objects(params.get("messages")), {}]:
            content = message.get("content")
            blocks = objects(content if isinstance(content, list) else [content])
            results = _ids(blocks, "tool_result", "toolUseId")
            if results and any(each.get("type") != "tool_result" for each in blocks):
                yield Report("message with tool results and other content", message)
            elif results != used:
                yield Report(
                    f"tool use without its result, or the reverse: {min(results ^ used)[:60]}", message
                )
            used = _ids(blocks, "tool_use", "id")


def _blocks(params: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each block of the messages of a sampling request, after its message."""
    for message in objects(params.get("messages")):
        content = message.get("content")
        for block in objects(content if isinstance(content, list) else [content]):
            yield message, block


def _ids(blocks: list[dict[str, Any]], kind: str, member: str) -> set[str]:
    """Return the ids in blocks of a type, without those of the wrong type."""
    return {
        found for each in blocks if each.get("type") == kind and isinstance(found := each.get(member), str)
    }


@asked.warning(
    "DATA806",
    "elicitation with an unsafe URL",
    page=ELICITATION + "#safe-url-handling",
    valid=(_ELICIT % (_FORM % ""), _URL_MODE + _ELICIT % (_URL % "http://localhost:3000/a")),
    invalid=(
        _ELICIT % (_FORM % ',"description":"see https://example.com"'),
        _URL_MODE + _ELICIT % (_URL % "http://example.com/a"),
    ),
)
def unsafe_url(event: LintEvent) -> Iterator[Report]:
    """The URL should be `https`, except on the developer's own machine. A form should contain no URLs: users would
    follow them without the checks of URL mode.
    """
    for params in requested(event, "elicitation/create"):
        if params.get("mode") == "url":
            url = str(params.get("url"))
            if url.startswith("http:") and not _LOCAL.match(url):
                yield Report(f"URL without https: {url[:80]}", url)
        elif found := _LINK.search(f"{params.get('message')} {params.get('requestedSchema')}"):
            yield Report(f"form with a URL: {found.string[found.start() :][:60]}", params)


@rule.warning(
    "DATA410",
    "root that is not a file",
    page="2025-11-25/client/roots#root",
    on=EventKind.RESULT,
    about="roots/list",
    valid=_ROOTS % "file:///home/ada",
    invalid=_ROOTS % "https://example.com/a",
)
def root(event: LintEvent) -> Iterator[Report]:
    """The URI of a root must begin with `file://`."""
    yield from _roots(event.result)


def _roots(result: dict[str, Any]) -> Iterator[Report]:
    for each in objects(result.get("roots")):
        if isinstance(uri := each.get("uri"), str) and not uri.startswith("file://"):
            yield Report(f"root that is not a file: {uri[:80]}", uri)


@rule.error(
    "DATA805",
    "completion of an unknown elicitation",
    page=ELICITATION + "#completion-notifications-for-url-mode-elicitation",
    on=(EventKind.REQUEST, EventKind.FAILURE, EventKind.NOTIFICATION),
    by=SERVER,
    since=LEGACY,
    until=LEGACY,
    about=("elicitation/create", "notifications/elicitation/complete", *MAY_REQUIRE_INPUT),
    valid=_URL_MODE + _ELICIT % (_URL % "https://example.com/a") + _DONE % "e",
    invalid=_URL_MODE + _ELICIT % (_URL % "https://example.com/a") + _DONE % "f",
)
def unknown_elicitation(event: LintEvent) -> Iterator[Report]:
    """The notification has the `elicitationId` of an earlier URL elicitation; clients ignore others, and wait on."""
    known, error = event.state.elicitations, event.error
    data = error.get("data") if isinstance(error, dict) else None
    asked = (
        [event.params]
        if error is None
        else objects(data.get("elicitations") if isinstance(data, dict) else None)
    )
    for params in asked:
        given = params.get("elicitationId")
        if event.method == "notifications/elicitation/complete":
            if isinstance(given, str) and given not in known:
                yield Report(f"completion of unknown elicitation {given[:60]}", given)
        elif isinstance(given, str):
            known[given] = None
            forget(known)


@rule.error(
    "MOD306",
    "input responses that do not match the input requests",
    page=MRTR + "#client-requirements-basic-workflow",
    on=EventKind.REQUEST,
    about=MAY_REQUIRE_INPUT,
    since=MODERN,
    valid=QUESTION,
    invalid=(
        QUESTION.replace('"inputResponses":{"k":{"action":"decline"}}', '"inputResponses":{}'),
        QUESTION.replace('"properties":{}', '"required":["b"],"properties":{"b":{"type":"string"}}').replace(
            '"action":"decline"', '"action":"accept","content":{}'
        ),
    ),
)
def input_responses(event: LintEvent) -> Iterator[Report]:
    """A retry has a response to each input request, under the same key: the content of a form conforms to its schema,
    and roots are files.
    """
    earlier = event.exchange.continues if event.exchange is not None else None
    if earlier is None or not isinstance(earlier.answer, Result) or not earlier.answer.body.input_requests:
        return
    questions, given = loads(earlier.answer.body.input_requests), event.params.get("inputResponses")
    for key, question in questions.items() if isinstance(questions, dict) else ():
        response = given.get(key) if isinstance(given, dict) else None
        if not isinstance(response, dict):
            yield Report(f"no response to input request {key[:60]}", given)
            continue
        yield from _roots(response)
        params = question.get("params") if isinstance(question, dict) else None
        schema = params.get("requestedSchema") if isinstance(params, dict) else None
        if isinstance(schema, dict) and response.get("action") == "accept":
            for breach in event.state.schemas.check(schema).breaches(response.get("content", {})):
                yield Report(f"content of {key[:60]}: {breach}", response)


@rule.warning(
    "LIFE117",
    "embedded resource from a server without resources",
    page="2025-11-25/server/tools#embedded-resources",
    on=EventKind.RESULT,
    about="tools/call",
    since="2025-06-18",
    once=True,
    beyond_plain=True,
    valid=_EMBEDDED % '"tools":{},"resources":{}',
    invalid=_EMBEDDED % '"tools":{}',
)
def embedded(event: LintEvent) -> Iterator[Report]:
    """A server that embeds resources in tool results should declare `resources`: the client may want to read or
    subscribe to them. Reported once.
    """
    declared = event.capabilities
    if declared is not None and not has_capability(declared, "resources"):
        for block in event.listed("content"):
            if block.get("type") == "resource":
                yield Report("embedded resource, but the server did not declare resources", block)
