"""MCP Apps: why the page of a tool does not appear in a host."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.ui import EXTENSION, MEDIA_TYPE
from mcpspy.core.protocol.spec import CLIENT, SERVER

_URI = "ui://a/b"
_TOOL = {**ex.with_schema(), "_meta": {"ui": {"resourceUri": _URI}}}
_LISTED = ex.session(ex.listed(_TOOL), ex.call(3), ex.done(3, "x"))
_PAGE = '<!DOCTYPE html><html><head><title>t</title><script src="https://cdn.example/a.js"></script></head><body></body></html>'

_RULES = ("EXT201", "EXT202", "EXT203", "EXT204", "EXT205", "EXT206", "EXT208")


def _host(*media: str) -> str:
    settings = {EXTENSION.id: {"mimeTypes": [*media]}}
    info = {"name": "a", "version": "1"}
    request = ex.request(
        "initialize", 1, protocolVersion="2025-11-25", capabilities={"extensions": settings}, clientInfo=info
    )
    return ex.session("@ bare", request, ex.welcome(), ex.INITIALIZED)


def _read(text: str = _PAGE, media: str = MEDIA_TYPE, **csp: object) -> str:
    meta = {"_meta": {"ui": {"csp": csp}}} if csp else {}
    contents = [{"uri": _URI, "mimeType": media, "text": text, **meta}]
    return ex.session(ex.request("resources/read", 4, uri=_URI), ex.result(4, contents=contents))


def _unshown(facts: Facts) -> list[tuple[str, str, EvidenceLine]]:
    """Return the called tools whose page was not read, with it and the line of the list."""
    apps = facts.listed.apps
    named = ((tool, *apps.tools[tool]) for tool in apps.called)
    return [(tool, uri, line) for tool, uri, line in named if uri not in apps.pages]


@cause(
    "app-not-shown",
    "the client did not show the app of a tool",
    Level.GENERAL,
    positive=(
        ex.session("@ bare", ex.initialize(), ex.welcome(), ex.INITIALIZED, _LISTED),
        ex.session(_host("text/html"), _LISTED),
        ex.session(_host(MEDIA_TYPE), _LISTED),
    ),
    negative=ex.session(_host(MEDIA_TYPE), _LISTED, _read(resourceDomains=["https://*.example"])),
)
def not_shown(facts: Facts) -> Iterator[Claim]:
    """A host shows apps only if both sides have the extension: some declare it only for some of their windows, or without
    this type of apps. A page is a resource that the host reads, at the start or with the first call; without that it has
    nothing to show, unless it has the page from an earlier session.
    """
    extensions = declared(facts.session.client_capabilities)
    settings = extensions.get(EXTENSION.id)
    media = settings.get("mimeTypes") if isinstance(settings, dict) else None
    for tool, uri, line in _unshown(facts)[:1]:
        if EXTENSION.id not in extensions:
            title = f"the client did not declare {EXTENSION.id}: the result of {quote(tool)} was shown without its app {quote(uri)}"
            next_step = "use a host with MCP Apps, or turn them on there; the server needs no change, as its result also has text"
        elif not isinstance(media, list) or MEDIA_TYPE not in media:
            title = f"the client declared {EXTENSION.id} without {MEDIA_TYPE}: it does not show {quote(uri)}, the app of {quote(tool)}"
            next_step = f"the client must list {MEDIA_TYPE} in mimeTypes"
        else:
            title = f"{quote(tool)} was called, and the client never read {quote(uri)}: its app was not shown in this session, unless the client had kept the page"
            next_step = "look for an error of the host before resources/read; reload its window, or restart the server in it"
        yield Claim(title, next_step, [], [line], CLIENT, is_observation=True)


@cause(
    "app-invalid",
    "the page of an app is missing, invalid, or loads what its csp does not name",
    Level.SPECIFIC,
    rules=(*_RULES, "LIFE106"),
    positive=(
        ex.session(_host(MEDIA_TYPE), _LISTED, _read(media="text/html")),
        ex.session(_host(MEDIA_TYPE), _LISTED, _read()),
        ex.session(
            *(_host(MEDIA_TYPE), _LISTED, ex.request("resources/read", 4, uri=_URI)),
            ex.error("Method not found", -32601, 4),
        ),
    ),
    negative=ex.session(_host(MEDIA_TYPE), _LISTED, _read(resourceDomains=["https://cdn.example"])),
)
def invalid(facts: Facts) -> Iterator[Claim]:
    """The page does not exist, has another type or URI, is not an HTML document, or its metadata are wrong: findings of
    EXT201 to EXT206 and EXT208. Hosts show nothing then, mostly without a message. A page may load only from the origins
    in its `csp`, by default from none; without its script it stays empty, and the error is only in the console of the
    host's frame.
    """
    found = facts.violations(*_RULES)
    if found:
        first = found[0].findings[0]
        failed = [
            each
            for each in facts.failed()
            if each.method == "resources/read" and each.subject.startswith("ui://")
        ]
        yield Claim(
            title=f"a host does not show an app: {quote(first.message)}",
            next_step=f"correct it in the server (docs/lint.md, {first.code})",
            symptoms=[*found, *failed],
            side=SERVER,
        )
    named = {uri: (tool, line) for tool, (uri, line) in facts.listed.apps.tools.items()}
    for each in facts.failed(*ERRORS) if not found else ():
        if each.method == "resources/read" and each.subject in named:
            tool, line = named[each.subject]
            yield Claim(
                title=f"the tool {quote(tool)} names the page {quote(each.subject)}, which the server refuses to the client: {quote(each.words)}",
                next_step="let the server declare resources and serve this page in resources/read, or not name it in _meta.ui.resourceUri",
                symptoms=[each, *facts.violations("LIFE106", side=CLIENT)],
                evidence=[line],
                side=SERVER,
                level=Level.EXACT,
            )
    for uri, origin, member, line in facts.listed.apps.blocked[:1]:
        title = f"the app {quote(uri)} loads from {quote(origin)}, which {member} of its csp does not name: a host blocks that"
        next_step = f"add {origin} to _meta.ui.csp.{member} of the resource, or put everything into the page"
        yield Claim(title, next_step, [], [line], SERVER, is_observation=True)
