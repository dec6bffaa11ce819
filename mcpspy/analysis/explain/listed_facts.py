"""The listings of the server: names of tools, dialects of schemas, pages, and revisions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field

from mcpspy.analysis.explain.app_facts import READ, AppFacts
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.protocol.message import Failure, Request, Result, meta_raw, text
from mcpspy.core.protocol.spec import METHODS

MAX_TOOLS = 1000
"""Tools whose arguments are kept."""

MAX_DIALECTS = 20
"""Schemas in another dialect that are kept."""


LISTED = frozenset({"server/discover", *(method for method in METHODS if method.endswith("/list"))})
"""Methods whose results say what the server has."""

_OPTIONAL = re.compile(
    r"(?i)\boptional\b|\b(?:if|when) (?:omitted|absent|empty|missing|not (?:given|passed|provided|set|specified))\b|\bdefaults? (?:to|is)\b"
)
"""The description of an argument that may be left out."""

_COMBINED = frozenset({"oneOf", "anyOf", "allOf"})


def _objects(value: object) -> list[dict[str, object]]:
    """Return the objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class ListedFacts(Struct):
    apps: AppFacts = field(default_factory=AppFacts)
    tools: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    """Those that the latest list does not have."""
    resources: set[str] = field(default_factory=set)
    """URIs of resources, at most `MAX_TOOLS`."""
    templates: list[str] = field(default_factory=list)
    """URI templates of resources, at most `MAX_TOOLS`."""
    prompts: dict[str, frozenset[str]] = field(default_factory=dict)
    """Prompt → the arguments that it requires, by the latest list."""
    arguments: dict[str, frozenset[str]] = field(default_factory=dict)
    """Tool → the arguments that its input schema names, if it names any."""
    text_arguments: dict[str, frozenset[str]] = field(default_factory=dict)
    """Tool → the arguments that are a string and nothing else by its input schema."""
    required_by_mistake: dict[str, frozenset[str]] = field(default_factory=dict)
    """Tool → the arguments that its input schema requires by the latest list, and their descriptions call optional."""
    dialects: list[tuple[str, str, EvidenceLine]] = field(default_factory=list)
    """Tool, dialect of its output schema if that is not 2020-12, and the line with the list."""
    combined: list[tuple[str, EvidenceLine]] = field(default_factory=list)
    """Tool whose input schema combines schemas at its root, and the line with the list."""
    next_pages: dict[str, tuple[str, EvidenceLine]] = field(default_factory=dict)
    """Method of a list → a cursor that was not used yet, as JSON text, and the line with it."""
    asked_revision: str | None = None
    """The revision in the last `initialize`."""
    unsupported: tuple[str, list[str]] | None = None
    """The revision that a client asked for (2026-07-28), and those of the server, which lack it."""

    def surplus(self, tool: str | None, arguments: Iterable[str]) -> set[str]:
        """Return the arguments that the input schema of a tool does not name; none if that is not known."""
        named = self.arguments.get(tool or "")
        return set() if named is None else set(arguments) - named

    def add_request(self, what: Request) -> None:
        """Add a request of a list that has another page."""
        if self.next_pages[what.method][0] == text(what.body.cursor):
            del self.next_pages[what.method]

    def concerns(self, request: Request) -> bool:
        """Return whether the result of a request of the client has to be passed to `add_result`."""
        method, apps = request.method, self.apps
        return method in LISTED or ((bool(apps.tools) or method == READ) and apps.concerns(request))

    def add_result(self, what: Result | Failure, request: Request, place: EntryPosition) -> None:
        if isinstance(what, Failure):
            return
        if request.method == "server/discover":
            self._add_supported(what, request)
        elif self.apps.concerns(request):
            self.apps.add_result(what, request, place)
        else:
            cursor = text(meta_raw(what.raw_result, "nextCursor"))
            if cursor in (None, "null", '""'):
                self.next_pages.pop(request.method, None)
            else:
                line = evidence(place, f"{request.method}: nextCursor is {cursor}")
                self.next_pages[request.method] = cursor or "", line
            if request.method == "tools/list":
                if not request.subject:  # The first page.
                    self.removed = set(self.tools)
                self._add_tools(what, place)
            elif request.method in ("resources/list", "resources/templates/list"):
                self._add_resources(what)
            elif request.method == "prompts/list":
                self._add_prompts(what)

    def _add_required(self, tool: str, named: dict[str, object], required: object) -> None:
        """Remember the arguments that a tool requires, and whose descriptions call them optional."""
        described = {name: each.get("description") for name, each in named.items() if isinstance(each, dict)}
        wrong = {
            name
            for name in (required if isinstance(required, list) else ())
            if isinstance(name, str)
            and isinstance(text := described.get(name), str)
            and _OPTIONAL.search(text)
        }
        self.required_by_mistake[tool] = frozenset(wrong)

    def _add_supported(self, what: Result, request: Request) -> None:
        """Remember the revisions of a server that knows none that the client asked for."""
        result = what.result
        supported = result.get("supportedVersions") if isinstance(result, dict) else None
        if isinstance(supported, list) and request.revision not in (None, *supported):
            self.unsupported = request.revision or "", [str(each) for each in supported]

    def _add_resources(self, what: Result) -> None:
        result = what.result if isinstance(what.result, dict) else {}
        for each in _objects(result.get("resources"))[: MAX_TOOLS - len(self.resources)]:
            if isinstance(uri := each.get("uri"), str):
                self.resources.add(uri)
        for each in _objects(result.get("resourceTemplates"))[: MAX_TOOLS - len(self.templates)]:
            if isinstance(template := each.get("uriTemplate"), str):
                self.templates.append(template)

    def _add_prompts(self, what: Result) -> None:
        result = what.result if isinstance(what.result, dict) else {}
        for prompt in _objects(result.get("prompts"))[: MAX_TOOLS - len(self.prompts)]:
            required = [
                each.get("name") for each in _objects(prompt.get("arguments")) if each.get("required") is True
            ]
            if isinstance(name := prompt.get("name"), str):
                self.prompts[name] = frozenset(each for each in required if isinstance(each, str))

    def _add_tools(self, what: Result, place: EntryPosition) -> None:
        result = what.result
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue
            self.tools.add(name)
            self.removed.discard(name)
            self.apps.add_tool(tool, name, place)
            inputs = tool.get("inputSchema")
            named = inputs.get("properties") if isinstance(inputs, dict) else None
            if isinstance(named, dict) and named and len(self.arguments) < MAX_TOOLS:
                self.arguments[name] = frozenset(named)
                self.text_arguments[name] = frozenset(
                    each
                    for each, schema in named.items()
                    if isinstance(schema, dict) and schema.get("type") == "string"
                )
                self._add_required(name, named, inputs.get("required") if isinstance(inputs, dict) else None)
            if (
                isinstance(inputs, dict)
                and not _COMBINED.isdisjoint(inputs)
                and len(self.combined) < MAX_DIALECTS
            ):
                self.combined.append(
                    (name, evidence(place, f"{name}: {', '.join(_COMBINED & inputs.keys())} in inputSchema"))
                )
            schema = tool.get("outputSchema")
            dialect = schema.get("$schema") if isinstance(schema, dict) else None
            if isinstance(dialect, str) and "2020-12" not in dialect and len(self.dialects) < MAX_DIALECTS:
                self.dialects.append((name, dialect, evidence(place, f"{name}: $schema is {dialect}")))
