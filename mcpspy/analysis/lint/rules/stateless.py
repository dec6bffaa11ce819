"""2026-07-28: no handshake, everything in `_meta`; input requests in results, and responses to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RESPONSES, RULES, Report, RuleGroup
from mcpspy.core.protocol.extensions import EXTENSIONS, RESULT_TYPES, declared
from mcpspy.core.protocol.message import Failure, Result, meta_raw
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, REVISIONS, SERVER

BASIC = "2026-07-28/basic#"
CALL = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
DONE = '< {"id":2,"result":{"content":[]}}'
GOOD = CALL + DONE
_LISTED = '@ 2026-07-28\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]%s}}'
_STATED = (
    '@ 2026-07-28\n>> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",%s}}}\n'
    + DONE
)
_REFUSED = (
    '> {"id":%d,"method":"x/y"}\n< {"id":%d,"error":{"code":-32000,"message":"Server not initialized"}}'
)
_MODERN_ERRORS = (-32601, -32603, -32020, -32021, -32022)
_CACHED = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")  # fmt: skip


MRTR = "2026-07-28/basic/patterns/mrtr"
_ASKS = '< {"id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}}}}}}\n'
_RETRY = '> {"id":%d,"method":"tools/call","params":{"name":"a","inputResponses":{"k":{"action":"decline"}}%s}}\n< {"id":%d,"result":{"content":[]}}'
QUESTION = CALL + _ASKS + _RETRY % (3, ',"requestState":"s"', 3)
_QUESTION_OF = (
    CALL
    + '< {"id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"%s","params":{%s}}}}}'
)
_DEPRECATED = {"sampling/createMessage": "sampling", "roots/list": "roots"}
MAY_REQUIRE_INPUT = ("tools/call", "prompts/get", "resources/read")

modern = RuleGroup(RULES, since=MODERN, by=SERVER)
stateless = RuleGroup(RULES, since=MODERN, valid=GOOD)
request = stateless.group(page=BASIC + "meta", on=EventKind.REQUEST, by=CLIENT)
result = stateless.group(page=BASIC + "resulttype", on=EventKind.RESULT)
mrtr = RuleGroup(RULES, since=MODERN, valid=QUESTION)
retry = mrtr.group(
    page=MRTR + "#client-requirements-basic-workflow", on=EventKind.REQUEST, about=MAY_REQUIRE_INPUT
)
question = mrtr.group(page=MRTR + "#server-requirements-basic-workflow", on=EventKind.RESULT)


request.shape_error(
    "MOD101",
    "request without its revision or the client's capabilities",
    """Without a handshake, every request must carry its revision and the client's capabilities in `_meta`, even if
    there are none (`{}`). A server must reject a request without them (-32602).
    """,
    only=lambda _, method, __: method != "initialize",
    invalid=(
        GOOD
        + '\n>> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}\n< {"id":3,"result":{"content":[]}}',
        _STATED % '"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}',
    ),
)


@request.info(
    "MOD102",
    "client without clientInfo",
    once=True,
    invalid=_STATED % '"io.modelcontextprotocol/clientCapabilities":{}',
)
def client_info(event: LintEvent) -> Iterator[Report]:
    """`clientInfo` should be in the `_meta` of every request. Reported once."""
    meta = event.request.meta
    if meta_raw(meta, META + "protocolVersion") and not meta_raw(meta, META + "clientInfo"):
        yield Report(f"_meta has no {META}clientInfo")


@result.info(
    "MOD103",
    "server without serverInfo",
    page=BASIC + "meta",
    by=SERVER,
    once=True,
    invalid=CALL + '<< {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}',
)
def server_info(event: LintEvent) -> Iterator[Report]:
    """`serverInfo` should be in the `_meta` of every result. Reported once."""
    assert isinstance(event.what, Result)
    if event.is_result and not _is_legacy(event) and not meta_raw(event.what.meta, META + "serverInfo"):
        yield Report(f"_meta has no {META}serverInfo")


@result.error(
    "MOD106",
    "2026-07-28 client at a server of an earlier revision",
    page="2026-07-28/basic/versioning#compatibility-matrix",
    by=SERVER,
    once=True,
    on=RESPONSES,
    valid=(
        GOOD,
        '@ 2026-07-28\n> {"id":1,"method":"x/y"}\n< {"id":1,"error":{"code":-32602,"message":"no"}}',
    ),
    invalid=(
        '@ 2026-07-28\n> {"id":2,"method":"tools/list"}\n<< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}',
        "@ 2026-07-28\n" + _REFUSED % (2, 2) + "\n" + _REFUSED % (3, 3),
    ),
)
def legacy_server(event: LintEvent) -> Iterator[Report]:
    """The server's results have none of the members that 2026-07-28 added, or it refuses even lists, more than once (a
    client that supports both falls back after the first error). Clients should send `server/discover` first. Reported
    once, instead of a finding for each missing member.
    """
    if isinstance(event.what, Failure):
        failure, is_list = (
            event.what,
            event.method.endswith("/list") and event.what.code not in _MODERN_ERRORS,
        )
        if event.state.is_legacy_server is None and (is_list or "initializ" in failure.text.lower()):
            event.state.refused += 1
        if event.state.refused > 1:
            yield Report(f"the server probably requires initialize: {failure.description[:100]}")
    elif event.is_result and _is_legacy(event):
        yield Report("the server responds as in an earlier revision: no resultType, no serverInfo")


@modern.error(
    "MOD104",
    "request from the server",
    page=MRTR,
    on=EventKind.REQUEST,
    valid=QUESTION,
    invalid=(
        GOOD
        + '\n< {"id":0,"method":"x/ask"}\n> {"id":9,"method":"tools/list"}\n< {"id":9,"result":{"tools":[]}}'
    ),
)
def server_request(event: LintEvent) -> Iterator[Report]:
    """Servers request input in a result: with `resultType: input_required`, and the requests in `inputRequests`.
    Clients do not respond to a request from the server.
    """
    yield Report(f"{event.method} requested by the server")


@request.error(
    "MOD105",
    "response from the client",
    page="2026-07-28/basic/transports/streamable-http#sending-messages",
    on=RESPONSES,
    valid=QUESTION,
    invalid=GOOD + '\n> {"id":0,"result":{}}',
)
def client_response(event: LintEvent) -> Iterator[Report]:
    """In this revision servers send no requests; clients send their responses in `inputResponses`."""
    yield Report("response sent by the client")


@result.error(
    "MOD107",
    "request in an unknown revision accepted",
    page="2026-07-28/basic/versioning#protocol-version-negotiation",
    by=SERVER,
    since="2024-11-05",
    beyond_plain=True,
    invalid=_STATED.replace('on":"2026-07-28', 'on":"2099-01-01')
    % '"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}',
)
def unknown_revision(event: LintEvent) -> Iterable[Report]:
    """A server rejects a request in a revision that it does not support with -32022, and lists the supported ones. No
    specification has this revision, or it has no requests with a revision.
    """
    meta = event.request.meta
    given = event.request.revision if meta and event.is_result else None
    if given is None or (given in REVISIONS and given >= MODERN) or not given[:1].isdigit():
        return ()
    return [Report(f"{event.method} in revision {given[:40]} was accepted")]


@result.warning(
    "MOD108",
    "server without server/discover",
    page="2026-07-28/server/discover",
    by=SERVER,
    on=RESPONSES,
    valid='@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}',
    invalid='@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}\n'
    + GOOD.partition("\n")[2],
)
def no_discover(event: LintEvent) -> Iterable[Report]:
    """Every server of this revision must have `server/discover`. This one refused it, and then answered as in 2026-07-28."""
    state, what = event.state, event.what
    if isinstance(what, Failure):
        state.lacks_discover = state.lacks_discover or (
            event.method == "server/discover" and what.code == -32601
        )
    elif state.lacks_discover and event.is_result and not _is_legacy(event):
        state.lacks_discover = False
        return [Report("server/discover was refused as an unknown method", "")]
    return ()


@result.error(
    "MOD201",
    "result without resultType",
    by=SERVER,
    invalid=(
        CALL
        + '<< {"jsonrpc":"2.0","id":2,"result":{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"1"}}}}',
        CALL + '< {"id":2,"result":{"resultType":1,"content":[]}}',
    ),
)
def result_type(event: LintEvent) -> Iterable[Report]:
    """Every result must have a `resultType`: `complete`, `input_required`, or one of an extension. Clients treat a
    missing one as `complete`, as servers of older revisions do not send it.
    """
    return event.violations("MOD201") if event.is_result and not _is_legacy(event) else ()


@result.warning(
    "MOD202",
    "unknown resultType",
    valid=(GOOD, QUESTION),
    invalid=CALL + '< {"id":2,"result":{"resultType":"done","content":[]}}',
)
def other_type(event: LintEvent) -> Iterator[Report]:
    """Clients must treat a result with an unknown type as invalid. Only extensions may add types."""
    given = event.result.get("resultType") if event.is_result else None
    if isinstance(given, str) and given not in ("complete", "input_required", *RESULT_TYPES):
        others = declared(event.capabilities).keys() - EXTENSIONS.keys()
        if others:
            return  # One of these may define it.
        yield Report(f"unknown resultType {str(given)[:40]!r}", given)


@result.error(
    "MOD203",
    "list or resource without caching hints",
    page="2026-07-28/server/utilities/caching",
    shape=True,
    valid=_LISTED % "",
    invalid=(_LISTED % ',"ttlMs":null', _LISTED % ',"cacheScope":"all"', _LISTED % ',"ttlMs":-1'),
)
def hints(event: LintEvent) -> Iterable[Report]:
    """`ttlMs` (milliseconds, at least 0) and `cacheScope` (`public` or `private`) are required in the results of lists,
    resources/read and `server/discover`. Clients and gateways cache the result accordingly.
    """
    return () if _is_legacy(event) else event.violations("MOD203")


@retry.error(
    "MOD301",
    "retry that does not match an input_required result",
    invalid=(CALL + _ASKS + _RETRY % (3, "", 3), CALL + _ASKS + _RETRY % (3, ',"requestState":"t"', 3)),
)
def state(event: LintEvent) -> Iterator[Report]:
    """The client repeats the request with `inputResponses` and exactly the `requestState` that the server sent, or none
    if it sent none. Otherwise the server cannot match them to its input requests.
    """
    body = event.request.body
    if (
        (body.input_responses or body.request_state)
        and event.exchange is not None
        and event.exchange.continues is None
    ):
        yield Report("inputResponses or requestState without a matching input_required result")


@retry.error(
    "MOD302",
    "retry with the same id",
    invalid=CALL + _ASKS + _RETRY % (2, ',"requestState":"s"', 2),
)
def same_id(event: LintEvent) -> Iterator[Report]:
    """The two requests are independent: the retry must have another id than the original request."""
    earlier = event.exchange.continues if event.exchange is not None else None
    if earlier is not None and earlier.request.id == event.request.id:
        yield Report(f"the retry reuses the id {event.request.id[:40]} of the original request")


question.shape_error(
    "MOD303",
    "empty input_required result",
    """An `input_required` result must have `inputRequests`, `requestState`, or both.""",
    invalid=CALL + '< {"id":2,"result":{"resultType":"input_required"}}',
)


@question.error(
    "MOD304",
    "input_required where it is not allowed",
    page=MRTR + "#supported-requests",
    invalid=(_LISTED % "").replace('"tools":[]', '"resultType":"input_required","requestState":"s"'),
)
def unsupported_request(event: LintEvent) -> Iterator[Report]:
    """Only tools/call, prompts/get and resources/read may have an `input_required` result."""
    if is_question(event) and event.method not in MAY_REQUIRE_INPUT:
        yield Report(f"input_required in the result of {event.method}")


@question.info(
    "LIFE112",
    "deprecated feature",
    page="2026-07-28/changelog",
    about=MAY_REQUIRE_INPUT,
    once=True,
    beyond_plain=True,
    valid=_QUESTION_OF
    % ("elicitation/create", '"message":"a","requestedSchema":{"type":"object","properties":{}}'),
    invalid=(
        _QUESTION_OF % ("roots/list", ""),
        _QUESTION_OF % ("sampling/createMessage", '"messages":[],"maxTokens":1'),
    ),
)
def deprecated(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 deprecates roots and sampling: they still work, but new servers should not use them. Instead, take the
    folder as an argument of the tool, or ask the user for it. Reported once.
    """
    for request in input_requests(event).values() if event.is_result else ():
        method = request.get("method") if isinstance(request, dict) else None
        if isinstance(method, str) and method in _DEPRECATED:
            yield Report(f"{_DEPRECATED[method]} is deprecated: {method}")


def _is_legacy(event: LintEvent) -> bool:
    """Return whether no result of this server has had a member that 2026-07-28 added, from its first one on."""
    state, what = event.state, event.what
    if (
        state.is_legacy_server is not False
        and event.side == SERVER
        and isinstance(what, Result)
        and event.has_object("result")
    ):
        is_modern = (
            what.body.result_type or meta_raw(what.meta, META + "serverInfo") or "ttlMs" in event.result
        )
        state.is_legacy_server = not is_modern
    return state.is_legacy_server is True


def input_requests(event: LintEvent) -> dict[str, Any]:
    """Return the input requests of an `input_required` result."""
    requests = event.result.get("inputRequests")
    return requests if isinstance(requests, dict) else {}


def is_question(event: LintEvent) -> bool:
    return event.is_result and isinstance(event.what, Result) and event.what.result_type == "input_required"
