"""Metadata around payloads: keys of `_meta`, cursors and pages of lists, data of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from msgspec import Raw

from mcpspy.analysis.lint.event import LintEvent, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.analysis.lint.state import ANNOUNCED
from mcpspy.core.protocol.extensions import EXTENSIONS, declared, is_defined_key
from mcpspy.core.protocol.listing import EVERY_LISTING
from mcpspy.core.protocol.message import Failure, Request, decoded, loads, raw_members
from mcpspy.core.protocol.spec import META, MODERN

META_PAGE = "2026-07-28/basic#_meta"

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
_RESERVED = re.compile(r"[^./]+\.(?:modelcontextprotocol|mcp)[./]")
_RESERVED_FIRST = re.compile(r"(?:[^./]+\.)*(?:modelcontextprotocol|mcp)\.[^./]+[./]")
"""In 2025-06-18: `mcp` before another label."""
_DEFINED = frozenset(
    META + name
    for name in (
        "protocolVersion clientInfo clientCapabilities logLevel serverInfo subscriptionId related-task"
        " model-immediate-response"
    ).split()
)
_PAIR = r"[^\s,;=]+\s*=\s*[^\s,;]*(?:\s*;[^,]*)?"
_TRACE = {
    "traceparent": re.compile(
        r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
    ),
    "tracestate": re.compile(r"(?:\s*(?:[a-z0-9][a-z0-9_*/@-]*=[ -+\--<>-~]*)?\s*,?)*"),
    "baggage": re.compile(rf"\s*{_PAIR}(?:\s*,\s*{_PAIR})*\s*"),
}
"""W3C Trace Context, 3.2 and 3.3, and W3C Baggage, 3.2."""

_CALL = (
    '> {"id":2,"method":"tools/call","params":{"name":"a","_meta":{%s}}}\n< {"id":2,"result":{"content":[]}}'
)
_NOW = "@ 2026-07-28\n"
_PAGE = '> {"id":%d,"method":"prompts/list"%s}\n< {"id":%d,"result":{"prompts":[]%s}}\n'
_PAGES = _PAGE % (2, "", 2, ',"nextCursor":"p"') + _PAGE % (3, ',"params":{"cursor":"p"}', 3, "%s")
_TOOLS = '> {"id":%d,"method":"tools/list"}\n< {"id":%d,"result":{"tools":[%s]}}\n'
_TOOL = '{"name":"%s","description":"b","inputSchema":{"type":"object"}}'
_LISTS = _TOOLS % (2, 2, _TOOL % "a" + "," + _TOOL % "b") + "%s" + _TOOLS
_FAILS = (
    '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"error":{"code":%d,"message":"no"%s}}'
)
_ASKED = '{"mode":"url","message":"a","url":"https://example.com/a"%s}'

meta = RuleGroup(
    RULES,
    page=META_PAGE,
    on=(*CALLED, EventKind.RESULT),
    since="2025-06-18",
    beyond_plain=True,
    in_meta=True,
)
cursor = RuleGroup(RULES, valid=_PAGES % "")
listing = RuleGroup(RULES, on=EventKind.RESULT, about=tuple(ANNOUNCED))


@lru_cache(maxsize=256)
def invalid_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys whose syntax is wrong."""
    return tuple(key for key in keys if not _KEY.fullmatch(key))


@lru_cache(maxsize=256)
def _reserved(keys: tuple[str, ...], revision: str | None, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys with a reserved prefix that neither the specification nor an extension with one of the ids defines.

    The keys of an extension are its id, with more words after it, or names after its id with a dot in place of the slash.
    """
    pattern = _RESERVED if (revision or LEGACY) >= LEGACY else _RESERVED_FIRST
    prefixes = (*EXTENSIONS, *ids)
    prefixes += tuple(one.replace("/", ".") + "/" for one in prefixes)
    unknown = (key for key in keys if key not in _DEFINED and not is_defined_key(key))
    return tuple(key for key in unknown if pattern.match(key) and not key.startswith(prefixes))


def _metas(event: LintEvent) -> list[dict[str, Raw]]:
    """Return the members of `_meta` in params or a result, and in the items of a list."""
    raw = event.what.meta  # type: ignore[union-attr]  # Of all three kinds.
    found = [raw_members(raw)] if raw and bytes(raw)[:1] == b"{" else []
    if event.method in EVERY_LISTING and b'"_meta"' in event.data:
        items = objects([item.get("_meta") for item in event.listed(EVERY_LISTING[event.method].member)])
        found += [dict.fromkeys(item, Raw()) for item in items]
    return found


@meta.error(
    "DATA105",
    "invalid key or trace context in _meta",
    valid=(
        _CALL % '"com.example/a_b.c":1,"progressToken":1',
        _NOW
        + _CALL % '"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","baggage":"a=b"',
    ),
    invalid=(_CALL % '"_private":1', _CALL % '"com_example/a":1', _NOW + _CALL % '"traceparent":"abc"'),
)
def meta_keys(event: LintEvent) -> Iterable[Report]:
    """A key is a name that begins and ends with a letter or digit, after an optional prefix: labels with dots and a
    slash, as in `com.example/name`. Names of extensions have the same syntax, with a prefix. `traceparent`,
    `tracestate` and `baggage` have the formats of the W3C (since 2026-07-28).
    """
    metas = _metas(event)
    return _wrong_members(event, metas) if metas or event.method == "server/discover" else ()


def _wrong_members(event: LintEvent, metas: list[dict[str, Raw]]) -> Iterator[Report]:
    is_modern = (event.revision or "") >= MODERN
    for members in metas:
        for key in invalid_keys(tuple(members)):
            yield Report(f"invalid key in _meta: {key[:80]!r}", key)
        for key in _TRACE.keys() & members.keys() if is_modern else ():
            if (value := decoded(members[key])) is not None and not (
                isinstance(value, str) and _TRACE[key].fullmatch(value)
            ):
                yield Report(f"{key} in _meta is not in the format of the W3C", value)
        if b'"extensions"' in bytes(members.get(META + "clientCapabilities", b"")):
            yield from _extensions(loads(members[META + "clientCapabilities"]))
    if event.method == "server/discover" and is_modern:
        yield from _extensions(event.result.get("capabilities"))


def _extensions(capabilities: Any) -> Iterator[Report]:
    names = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    for name in names if isinstance(names, dict) else ():
        if "/" not in name or not _KEY.fullmatch(name):
            yield Report(f"name of an extension without a valid prefix: {name[:80]!r}", name)


@meta.warning(
    "DATA106",
    "reserved key in _meta",
    valid=(
        _CALL % '"com.example.mcp/a":1,"io.modelcontextprotocol/related-task":{"taskId":"t"}',
        _CALL % '"io.modelcontextprotocol.skills/version":"1"',
        '@ 2025-11-25 client={"extensions":{"io.modelcontextprotocol/streams":{}}}\n'
        + _CALL % '"io.modelcontextprotocol/streams":1',
    ),
    invalid=(_CALL % '"com.mcp.tools/a":1', _CALL % '"io.modelcontextprotocol/streams":1'),
)
def reserved_keys(event: LintEvent) -> Iterable[Report]:
    """Prefixes whose second label is `modelcontextprotocol` or `mcp` are reserved for the specification and official
    extensions, and neither defines this key, nor has a peer declared an extension of this name. Use another domain.
    """
    if not (metas := _metas(event)):
        return ()
    ids = (*declared(event.capabilities), *declared(event.conversation.client_capabilities))
    return [
        Report(f"key in _meta with a reserved prefix: {key[:80]}", key)
        for members in metas
        for key in _reserved(tuple(members), event.revision, ids)
    ]


@cursor.error(
    "DATA505",
    "cursor that the server did not provide",
    page="2025-11-25/server/utilities/pagination#implementation-guidelines",
    on=(EventKind.REQUEST, EventKind.FAILURE),
    about=(*EVERY_LISTING, "tasks/list"),
    invalid=_PAGES.replace('"cursor":"p"', '"cursor":"2"') % "",
)
def invented_cursor(event: LintEvent) -> Iterator[Report]:
    """A cursor is opaque: a client must not make or change one. A server rejects an invalid cursor with -32602."""
    given = decoded(event.request.body.cursor)
    if not isinstance(given, str) or given in event.state.cursors:
        return
    if isinstance(event.what, Request):
        if event.capabilities is not None or (event.revision or "") >= MODERN:
            yield Report(f"cursor {given[:60]!r} is from no result of this server", given)
    elif event.failure.code != -32602:
        yield Report(f"error code {event.failure.code} for an invalid cursor, not -32602")


@cursor.error(
    "MOD205",
    "pages of one list with different cacheScope",
    page="2026-07-28/server/utilities/caching#interaction-with-pagination",
    on=EventKind.RESULT,
    about=(*EVERY_LISTING, "tasks/list"),
    invalid=_NOW + _PAGES % ',"cacheScope":"public"',
)
def cache_scope(event: LintEvent) -> Iterator[Report]:
    """All pages of a list must have the same `cacheScope`; otherwise a shared cache mixes the pages of several users."""
    scope = event.result.get("cacheScope")
    before = event.state.cursors.get(str(decoded(event.request.body.cursor)))
    if before is not None and scope is not None and scope != before:
        yield Report(f"cacheScope is {scope}, and {before} on the page before", scope)


@listing.warning(
    "LIFE116",
    "list that changed without a notification",
    page="2025-11-25/server/tools#list-changed-notification",
    until=LEGACY,
    valid=(
        _LISTS % ('< {"method":"notifications/tools/list_changed"}\n', 3, 3, _TOOL % "a"),
        _LISTS % ("", 3, 3, _TOOL % "b" + "," + _TOOL % "a"),
    ),
    invalid=_LISTS % ("", 3, 3, _TOOL % "a"),
)
def unannounced(event: LintEvent) -> Iterator[Report]:
    """The peer declared `listChanged`, so it should send `notifications/…/list_changed` when its list changes; a client
    must do so for its roots. The other side may cache the list until then.
    """
    found, what = event.listing, event.method.partition("/")[0]
    declared = event.conversation.client_capabilities if what == "roots" else event.capabilities
    is_announced = found.was_announced or found.is_announced
    if found.is_changed and not is_announced and has_capability(declared or {}, f"{what}.listChanged"):
        yield Report(f"{event.method}: other {what} than before, without a notification", "")


@listing.warning(
    "MOD204",
    "tools in another order",
    page="2026-07-28/server/tools#capabilities",
    about="tools/list",
    since=MODERN,
    valid=_NOW + _LISTS % ("", 3, 3, _TOOL % "a"),
    invalid=_NOW + _LISTS % ("", 3, 3, _TOOL % "b" + "," + _TOOL % "a"),
)
def other_order(event: LintEvent) -> Iterator[Report]:
    """The same tools should always be listed in the same order: clients and models cache the beginning of a prompt."""
    found = event.listing
    if found.before not in (None, found.names) and found.listing.is_whole and not found.is_changed:
        yield Report("the same tools in another order than before", "")


@cursor.error(
    "DATA605",
    "error without the data that its code requires",
    page="2026-07-28/basic#error-codes",
    on=EventKind.FAILURE,
    since=LEGACY,
    valid=(
        _FAILS % (-32042, ',"data":{"elicitations":[' + _ASKED % ',"elicitationId":"e"' + "]}"),
        _NOW + _FAILS % (-32021, ',"data":{"requiredCapabilities":{"sampling":{}}}'),
    ),
    invalid=(
        _FAILS % (-32042, ',"data":{"elicitations":[' + _ASKED % "" + "]}"),
        _NOW + _FAILS % (-32022, ',"data":{"supported":"2026-07-28"}'),
    ),
)
def error_data(event: LintEvent) -> Iterator[Report]:
    """-32042 lists the URL elicitations, each with its `elicitationId`; -32021 has `requiredCapabilities`; -32022 has
    the list `supported` and the `requested` revision. Without them a client does not know how to continue.
    """
    assert isinstance(event.what, Failure)
    code, error = event.what.code, event.error
    data = error.get("data") if isinstance(error, dict) else None
    data = data if isinstance(data, dict) else {}
    if code == -32042 and event.revision == LEGACY:
        listed = objects(data.get("elicitations"))
        if not listed:
            yield Report("error -32042 without data.elicitations")
        for asked in listed:
            if asked.get("mode") != "url" or not isinstance(asked.get("elicitationId"), str):
                yield Report(
                    "error -32042 with an elicitation that is not in URL mode or has no elicitationId", asked
                )
    elif (event.revision or "") >= MODERN:
        if code == -32021 and not (
            isinstance(data.get("requiredCapabilities"), dict) and data["requiredCapabilities"]
        ):
            yield Report("error -32021 without data.requiredCapabilities")
        if code == -32022 and not (
            isinstance(data.get("supported"), list) and isinstance(data.get("requested"), str)
        ):
            yield Report("error -32022 without data.supported and data.requested")
