"""2026-07-28: no handshake, everything in `_meta`."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ANSWERS, ERROR, INFO, WARNING, Report, RuleFamily
from mcpspy.analysis.lint.rules.input_required import MRTR, QUESTION
from mcpspy.core.protocol.message import Result, meta_raw
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, SERVER

RULES = RuleFamily()
rule = RULES.rule

BASIC = "2026-07-28/basic#"
CALL = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
DONE = '< {"id":2,"result":{"content":[]}}'
GOOD = CALL + DONE
_LISTED = '@ 2026-07-28\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]%s}}'
_BARE = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"%s}}'
_CACHED = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")  # fmt: skip
_LISTENED = tuple(f"notifications/{what}" for what in ("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"))  # fmt: skip


@rule(
    "MOD101",
    ERROR,
    "a request without its revision or its capabilities",
    page=BASIC + "meta",
    on=EventKind.REQUEST,
    by=CLIENT,
    only=lambda _, method, __: method != "initialize",
    since=MODERN,
    valid=(GOOD,),
    invalid=(
        GOOD + "\n>> " + (_BARE % "").replace('"id":2', '"id":3') + '\n< {"id":3,"result":{"content":[]}}',
        "@ 2026-07-28\n>> "
        + _BARE
        % ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}}'
        + "\n"
        + DONE,
    ),
)
def meta(seen: LintEvent) -> Iterator[Report]:
    """There is no handshake to remember: every request says in `_meta` which revision it is of, and what the client
    can do, if nothing (`{}`). A server must refuse one that does not (-32602).
    """
    for key in ("protocolVersion", "clientCapabilities"):
        if not meta_raw(seen.request.body.meta, META + key):
            yield Report(f"{seen.method}: _meta has no {META}{key}")


@rule(
    "MOD102",
    INFO,
    "a client that does not say who it is",
    page=BASIC + "meta",
    on=EventKind.REQUEST,
    by=CLIENT,
    since=MODERN,
    once=True,
    valid=(GOOD,),
    invalid=(
        "@ 2026-07-28\n>> "
        + _BARE
        % ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
        + "\n"
        + DONE,
    ),
)
def client_info(seen: LintEvent) -> Iterator[Report]:
    """`clientInfo` should be in the `_meta` of every request. Told once."""
    meta = seen.request.body.meta
    if meta_raw(meta, META + "protocolVersion") and not meta_raw(meta, META + "clientInfo"):
        yield Report(f"_meta has no {META}clientInfo")


@rule(
    "MOD103",
    INFO,
    "a server that does not say who it is",
    page=BASIC + "meta",
    on=EventKind.RESULT,
    by=SERVER,
    since=MODERN,
    once=True,
    valid=(GOOD,),
    invalid=(CALL + '<< {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}',),
)
def server_info(seen: LintEvent) -> Iterator[Report]:
    """`serverInfo` should be in the `_meta` of every result. Told once."""
    assert isinstance(seen.what, Result)
    if seen.is_result and not meta_raw(seen.what.body.meta, META + "serverInfo"):
        yield Report(f"_meta has no {META}serverInfo")


@rule(
    "MOD104",
    ERROR,
    "a request from the server",
    page=MRTR,
    on=EventKind.REQUEST,
    by=SERVER,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(
        GOOD
        + '\n< {"id":0,"method":"x/ask"}\n> {"id":9,"method":"tools/list"}\n< {"id":9,"result":{"tools":[]}}',
    ),
)
def server_request(seen: LintEvent) -> Iterator[Report]:
    """Servers ask by answering: with `resultType: input_required`, and what they want to know in `inputRequests`.
    Nobody answers a request of theirs.
    """
    yield Report(f"the server asks: {seen.method}")


@rule(
    "MOD105",
    ERROR,
    "a response from the client",
    page="2026-07-28/basic/transports/streamable-http#sending-messages",
    on=ANSWERS,
    by=CLIENT,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(GOOD + '\n> {"id":0,"result":{}}',),
)
def client_response(seen: LintEvent) -> Iterator[Report]:
    """Nobody asks clients anything in this revision; their answers travel in `inputResponses`."""
    yield Report("the client sends a response")


@rule(
    "MOD201",
    ERROR,
    "a result without resultType",
    page=BASIC + "resulttype",
    on=EventKind.RESULT,
    by=SERVER,
    since=MODERN,
    valid=(GOOD,),
    invalid=(
        CALL
        + '<< {"jsonrpc":"2.0","id":2,"result":{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"1"}}}}',
    ),
)
def result_type(seen: LintEvent) -> Iterator[Report]:
    """Every result says which it is: `complete`, `input_required`, or an extension's. Clients take one that does
    not for complete, since servers of older revisions do not.
    """
    assert isinstance(seen.what, Result)
    if seen.is_result and not seen.what.body.result_type and seen.has_object("result"):
        yield Report(f"{seen.method}: the result has no resultType")


@rule(
    "MOD202",
    WARNING,
    "a resultType that is not the protocol's",
    page=BASIC + "resulttype",
    on=EventKind.RESULT,
    since=MODERN,
    valid=(GOOD, QUESTION),
    invalid=(
        CALL + '< {"id":2,"result":{"resultType":"done","content":[]}}',
        CALL + '< {"id":2,"result":{"resultType":1,"content":[]}}',
    ),
)
def other_type(seen: LintEvent) -> Iterator[Report]:
    """A client must take a result of a type it does not know for invalid; only an extension may add one."""
    given = seen.result.get("resultType") if seen.is_result else None
    if given is not None and given not in ("complete", "input_required", "task"):
        yield Report(f"resultType {str(given)[:40]!r}", given)


@rule(
    "MOD203",
    ERROR,
    "a list or a resource without its caching hints",
    page="2026-07-28/server/utilities/caching",
    on=EventKind.RESULT,
    about=_CACHED,
    since=MODERN,
    valid=(_LISTED % "",),
    invalid=(_LISTED % ',"ttlMs":null', _LISTED % ',"cacheScope":"all"', _LISTED % ',"ttlMs":-1'),
)
def hints(seen: LintEvent) -> Iterator[Report]:
    """`ttlMs`, milliseconds from 0 on, and `cacheScope`, `public` or `private`, are required on lists, on what is
    read, and on `server/discover`: a client, or a gateway between, keeps the answer so long.
    """
    if not isinstance(seen.what, Result) or seen.what.result_type != "complete":
        return
    ttl, scope = seen.result.get("ttlMs"), seen.result.get("cacheScope")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0:
        yield Report(f"{seen.method}: ttlMs is {_given(seen, 'ttlMs')}", ttl)
    if scope not in ("public", "private"):
        yield Report(f"{seen.method}: cacheScope is {_given(seen, 'cacheScope')}", scope)


def _given(seen: LintEvent, name: str) -> str:
    return f"{str(seen.result[name])[:40]!r}" if name in seen.result else "missing"


@rule(
    "MOD402",
    ERROR,
    "news that do not say which subscription they are for",
    page="2026-07-28/basic/patterns/subscriptions",
    on=EventKind.NOTIFICATION,
    about=_LISTENED,
    by=SERVER,
    since=MODERN,
    valid=(
        (
            '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
            '< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}'
        ),
    ),
    invalid=(
        '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n< {"method":"notifications/tools/list_changed"}',
    ),
)
def anonymous_news(seen: LintEvent) -> Iterator[Report]:
    """List changes and updates come only to who listens, with the `subscriptionId` of its request in `_meta`."""
    if not meta_raw(seen.notification.body.meta, META + "subscriptionId"):
        yield Report(f"{seen.method}: _meta has no {META}subscriptionId")
