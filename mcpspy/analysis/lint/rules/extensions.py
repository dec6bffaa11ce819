"""Extensions in general: their declaration, their methods, and their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.core.protocol.extensions import EXTENSION_METHODS, EXTENSIONS, declared
from mcpspy.core.protocol.extensions.extension import DRAFT, FINAL
from mcpspy.core.protocol.message import Request, loads, meta_raw
from mcpspy.core.protocol.spec import CLIENT, META, SERVER

OVERVIEW = "https://modelcontextprotocol.io/extensions/overview"

SKILLS = "io.modelcontextprotocol/skills"
_DISCOVER = '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{%s}}}\n'
HAS_SKILLS = (
    _DISCOVER % '"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}'
)
_LIST = '> {"id":2,"method":"skills/list"}\n< {"id":2,"result":{"skills":[]}}\n'
_DIRECTORY = '> {"id":3,"method":"resources/directory/read","params":{"uri":"skill://a"}}\n< {"id":3,"result":{"resources":[]}}\n'
_UNKNOWN = '> {"id":2,"method":"skills/get","params":{"uri":"skill://a/SKILL.md"}}\n< {"id":2,"error":{"code":%d,"message":"%s"}}'

_EVENTS = (_DISCOVER % '"tools":{}').replace(
    "\n", "%s\n", 1
) + '> {"id":2,"method":"events/list"}\n< {"id":2,"result":{"events":[]}}\n'

_WITH_UI = '@ 2026-07-28 client={"extensions":{"io.modelcontextprotocol/ui":{%s}}}\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}'

NOT_FOUND = tuple({method: None for each in EXTENSIONS.values() for method in each.not_found})
"""Methods whose unknown targets are -32602."""

_STANDARD = (-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022)
_UNKNOWN_TARGET = re.compile(
    r"(?i)not found|unknown|no such|does(?: not|n't) exist|not exist|expired|invalid|not a directory|^no "
)

_METHODS = tuple(name for name, (extension, _) in EXTENSION_METHODS.items() if extension.state == FINAL)
"""Methods of drafts may be others of the same name."""
_DRAFTED = tuple(name for name, (extension, _) in EXTENSION_METHODS.items() if extension.state == DRAFT)

rule = RuleGroup(RULES, page=OVERVIEW)


def client_declares(request: Request, extension: str) -> bool | None:
    """Return whether a request declares an extension; None if it declares no capabilities at all."""
    capabilities = loads(meta_raw(request.body.meta, META + "clientCapabilities"))
    return extension in declared(capabilities) if isinstance(capabilities, dict) else None


def _has_setting(event: LintEvent, method: str) -> bool | None:
    """Return whether the server declared what a method of an extension needs; None if it has declared nothing yet."""
    if event.capabilities is None:
        return None
    extension, entry = EXTENSION_METHODS[method]
    settings = declared(event.capabilities).get(extension.id)
    if settings is None:
        return False
    return entry.setting is None or (isinstance(settings, dict) and settings.get(entry.setting) is True)


def _applies(event: LintEvent) -> bool:
    """Return whether the method belongs to the extension in this revision: 2025-11-25 has tasks in its core."""
    return (event.revision or LEGACY) >= EXTENSION_METHODS[event.method][1].since


@rule.error(
    "EXT101",
    "method of an extension that the server did not declare",
    on=EventKind.REQUEST,
    by=CLIENT,
    about=_METHODS + _DRAFTED,
    valid=(HAS_SKILLS + _LIST + _DIRECTORY, _EVENTS % ""),
    invalid=(
        _EVENTS % ' client={"extensions":{"io.modelcontextprotocol/events":{}}}',
        _DISCOVER % '"resources":{}' + _LIST,
        _DISCOVER % '"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}' + _DIRECTORY,
    ),
)
def undeclared(event: LintEvent) -> Iterable[Report]:
    """A client uses an extension only after the server has declared it in `capabilities.extensions`, and the optional
    parts of it only with their setting, such as `directoryRead` of skills. A method with the name of one of a draft is
    only that of the draft if the client declares it.
    """
    if not _applies(event) or _has_setting(event, event.method) is not False:
        return ()
    extension, entry = EXTENSION_METHODS[event.method]
    if extension.state == DRAFT and not client_declares(event.request, extension.id):
        return ()
    setting = f" with {entry.setting}" if entry.setting else ""
    return [Report(f"{event.method}, but the server did not declare {extension.id}{setting}")]


@rule.error(
    "EXT102",
    "declared extension without its method",
    on=EventKind.FAILURE,
    by=SERVER,
    about=_METHODS,
    valid=HAS_SKILLS + _LIST,
    invalid=HAS_SKILLS
    + '> {"id":2,"method":"skills/list"}\n< {"id":2,"error":{"code":-32601,"message":"no"}}',
)
def missing(event: LintEvent) -> Iterable[Report]:
    """A server that declares an extension has all of its methods, except the optional ones."""
    if event.failure.code != -32601 or not _applies(event) or not _has_setting(event, event.method):
        return ()
    extension, entry = EXTENSION_METHODS[event.method]
    if entry.is_optional:
        return ()
    return [Report(f"the server declared {extension.id} and refused {event.method} as unknown")]


rule.shape_error(
    "EXT103",
    "invalid settings of an extension",
    """The settings in `capabilities.extensions` have the types that the extension defines, and the required ones are
    there: a client with MCP Apps lists its `mimeTypes`. Otherwise the other side may take the extension for absent.
    Reported once for each side.
    """,
    on=(EventKind.REQUEST, EventKind.RESULT),
    once=True,
    valid=(
        HAS_SKILLS,
        _WITH_UI % '"mimeTypes":["text/html;profile=mcp-app"]',
    ),
    invalid=(
        HAS_SKILLS.replace("true", '"yes"'),
        _WITH_UI % "",
    ),
)


@rule.error(
    "EXT104",
    "unknown target without -32602",
    page="https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#error-handling",
    on=EventKind.FAILURE,
    by=SERVER,
    about=NOT_FOUND,
    valid=(
        HAS_SKILLS + _UNKNOWN % (-32602, "no skill"),
        HAS_SKILLS + _UNKNOWN % (-32603, "database is down"),
    ),
    invalid=(HAS_SKILLS + _UNKNOWN % (-32000, "no skill"), HAS_SKILLS + _UNKNOWN % (-32603, "unknown skill")),
)
def wrong_code(event: LintEvent) -> Iterator[Report]:
    """A task, a skill or a directory that the server does not have is -32602 (invalid params); clients distinguish
    it from other errors by that code. -32603 is for errors inside the server.
    """
    code, text = event.failure.code, event.failure.text
    if code in (-32602, None) or (code == -32601 and "method" in text.lower()) or code in (-32021, -32020):
        return
    is_known = (event.subject or "") in event.state.tasks
    if code == -32601 and not _UNKNOWN_TARGET.search(text):
        return
    if _UNKNOWN_TARGET.search(text) or (code not in _STANDARD and not is_known):
        yield Report(f"error code {code} for {event.method} {(event.subject or '')[:60]}, not -32602")
