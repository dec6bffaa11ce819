"""The form of a call: targets, fields with their texts, the JSON of the arguments, and problems.

The terminal UI and the page of `mcpspy web` draw the same form. `core/protocol/argument_fields` decides what a field is;
the arguments are checked by the schema of the tool as lint checks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from mcpspy.analysis.lint.schemas import SchemaCache
from mcpspy.core.jsontools import ABSENT, Pointer, read_json
from mcpspy.core.protocol.argument_fields import (
    LONGEST,
    ArgumentField,
    argument_fields,
    choice_text,
    text_in,
    value_in,
)
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.tool_arguments import prompt_schema, tool_params
from mcpspy.core.protocol.uri_template import expanded, template_variables
from mcpspy.core.sanitize import hidden_as_json
from mcpspy.errors import UsageError
from mcpspy.ui.model.interface import CapabilityListing

QUOTED = 40
"""Characters of a text that an error quotes."""

VIOLATIONS = 100
"""Violations of a schema that are looked at: each belongs to a field."""

METHODS = {
    "tools/list": "tools/call",
    "prompts/list": "prompts/get",
    "resources/list": "resources/read",
    "resources/templates/list": "resources/read",
}
"""List of what can be called → the method that calls it."""

_HINTS = {
    "readOnlyHint": ("read-only", "changes its environment"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}
"""Annotation of a tool → its words if it is true, and if it is false (ToolAnnotations; hints, not guarantees)."""


class CallTarget(NamedTuple):
    """A tool, prompt, resource or template of a server."""

    list_method: str
    key: str
    """Its name, or its URI, as sent."""
    item: dict[str, Any]
    """As it was listed."""

    @property
    def method(self) -> str:
        return METHODS[self.list_method]

    @property
    def noun(self) -> str:
        return LISTINGS[self.list_method].noun

    @property
    def title(self) -> str:
        """The name for people, if it has another one than its key."""
        annotations = self.item.get("annotations")
        other = annotations.get("title") if isinstance(annotations, dict) else None
        names = (self.item.get("title"), other, self.item.get("name"))
        return next((name for name in names if isinstance(name, str) and name and name != self.key), "")

    @property
    def about(self) -> str:
        about = self.item.get("description")
        return about if isinstance(about, str) else ""

    @property
    def hints(self) -> list[str]:
        """The declared annotations of a tool in words."""
        annotations = self.item.get("annotations")
        declared = annotations if isinstance(annotations, dict) else {}
        return [
            words[0 if declared[name] else 1]
            for name, words in _HINTS.items()
            if isinstance(declared.get(name), bool)
        ]

    @property
    def is_destructive(self) -> bool:
        return _HINTS["destructiveHint"][0] in self.hints

    @property
    def schema(self) -> Any:
        """The schema of its arguments."""
        if self.list_method == "tools/list":
            return self.item.get("inputSchema", {})
        if self.list_method == "prompts/list":
            return prompt_schema(self.item)
        variables = template_variables(self.key) if self.list_method == "resources/templates/list" else {}
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in variables},
            "required": [name for name, is_needed in variables.items() if is_needed],
        }

    def request(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return method and params of the call."""
        if self.list_method == "tools/list":
            return self.method, tool_params(self.item, dict(arguments))
        if self.list_method == "prompts/list":
            return self.method, {"name": self.key, "arguments": dict(arguments)}
        values = {name: value for name, value in arguments.items() if isinstance(value, str)}
        is_template = self.list_method == "resources/templates/list"
        return self.method, {"uri": expanded(self.key, values) if is_template else self.key}


def targets_of(items: Mapping[str, Iterable[Any]]) -> list[CallTarget]:
    """Return what can be called, by the method of each list."""
    found: dict[tuple[str, str], CallTarget] = {}
    for method in METHODS:
        for item in items.get(method, ()):
            key = item.get(LISTINGS[method].key) if isinstance(item, dict) else None
            if isinstance(key, str):
                found[method, key] = CallTarget(method, key, item)
    return list(found.values())


def listed_targets(listings: Mapping[str, CapabilityListing]) -> tuple[list[CallTarget], list[str]]:
    """Return what a session has listed, and lines about what these lists lack."""
    items = {
        method: [loads(each.data) for each in listing.capabilities] for method, listing in listings.items()
    }
    notes = []
    for method, listing in listings.items():
        if method in METHODS and not listing.is_whole:
            why = "further pages were not requested" if listing.has_more else listing.trouble
            notes.append(f"{method} is not complete: {why or 'its first page was not recorded'}")
    return targets_of(items), notes


class FormProblems(NamedTuple):
    at: dict[str, str]
    """JSON pointer of a field → what is wrong with it, in one line. Texts that have no value come first."""
    others: list[str]
    """Problems that belong to no field."""
    has_no_value: bool
    """True if a text has no value: such a form cannot be sent."""

    lines: list[str]
    """All problems, each with the name of its field."""


class CallForm:
    """The fields of a target with their texts; the truth is the texts, and the members that no field shows."""

    def __init__(self, target: CallTarget) -> None:
        self.target = target
        self.schema = target.schema
        self.fields, self.left_out = argument_fields(self.schema)
        self.texts: dict[str, str] = {}
        """JSON pointer of a field → its text; fields that are not set are absent."""
        self.rest: dict[str, Any] = {}
        """The arguments that no field shows."""
        self._schemas = SchemaCache()
        for field in self.fields:
            if field.is_needed:
                only = field.choices[0] if len(field.choices) == 1 else ABSENT
                value = only if field.default is ABSENT else field.default
                text = None if value is ABSENT else text_in(field, value, self.schema)
                self.set(field.pointer, text or "")

    def set(self, pointer: str, text: str) -> None:
        """Set the text of a field; an empty text leaves it out."""
        if text:
            self.texts[pointer] = text
        else:
            self.texts.pop(pointer, None)

    def is_elsewhere(self, field: ArgumentField) -> bool:
        """Return whether the value of a field has no text in it, and is edited as JSON."""
        return field.pointer not in self.texts and _at(self.rest, field.path) is not ABSENT

    def values(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the arguments, and by pointer why the text of a field has no value."""
        found, wrong = deepcopy(self.rest), {}
        for field in self.fields:
            text = self.texts.get(field.pointer)
            if text is None:
                continue
            try:
                _put(found, field.path, value_in(field, text, self.schema))
            except ValueError as error:
                shown = f"{text[:QUOTED]}…" if len(text) > QUOTED else text
                shown = shown if field.choices else json.dumps(shown, ensure_ascii=False)
                wrong[field.pointer] = f"{shown} is {error}"[:LONGEST]
        return found, wrong

    @property
    def json(self) -> str:
        """The arguments as JSON on several lines."""
        return hidden_as_json(json.dumps(self.values()[0], ensure_ascii=False, indent=2))

    def read_json(self, text: str) -> None:
        """Take the arguments of a JSON text. Raise UsageError if it is not an object."""
        try:
            arguments = read_json(text) if text.strip() else {}
        except ValueError as error:
            raise UsageError(f"not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise UsageError("the arguments are not an object", 'write {"name": value}')
        self.take(arguments)

    def take(self, arguments: dict[str, Any]) -> None:
        """Take the arguments of a call. Raise UsageError, and change nothing, if they are nested too deeply."""
        try:
            arguments = deepcopy(arguments)
        except RecursionError:
            raise UsageError("the arguments are nested too deeply for a form") from None
        self.texts.clear()
        for field in self.fields:
            value = _at(arguments, field.path)
            shown = None if value is ABSENT else text_in(field, value, self.schema)
            if shown is not None:
                self.texts[field.pointer] = shown
                _remove(arguments, field.path)
        self.rest = arguments

    def problems(self) -> FormProblems:
        """Return what is wrong: texts without a value, arguments that are missing, and violations of the schema."""
        arguments, wrong = self.values()
        at, others = dict(wrong), []
        for field in self.fields:
            is_in_object = isinstance(_at(arguments, field.path[:-1]), dict)
            is_missing = field.is_needed or (field.is_required and is_in_object)
            if is_missing and _at(arguments, field.path) is ABSENT:
                at.setdefault(field.pointer, "required")
        checked = self._schemas.check(self.schema)
        if checked.why is not None:
            others.append(
                f"not checked: the schema of the {self.target.noun} is invalid: {checked.why}"[:LONGEST]
            )
        elif checked.validator is None or checked.accepts(arguments) is None:
            others.append("not checked: the schema is too large, or refers to other documents")
        by_path = {field.path: field for field in self.fields}
        for each in checked.violations(arguments, VIOLATIONS):
            path = each.path if each.lacks is None else (*each.path, each.lacks)
            nearest = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in by_path), None)
            message = each.message if len(each.message) <= LONGEST else f"{each.message[: LONGEST - 1]}…"
            if nearest is not None:
                inner = "/".join(each.path[len(nearest) :])
                at.setdefault(by_path[nearest].pointer, f"{inner}: {message}" if inner else message)
            elif not any(field.path[: len(path)] == path and field.pointer in at for field in self.fields):
                where = "/".join(each.path)
                others.append(f"{where}: {message}" if where else message)
        names = {field.pointer: field.name for field in self.fields}
        at = {pointer: at[pointer] for pointer in [*wrong, *names] if pointer in at}
        lines = [*others, *(f"{names[pointer]}: {error}" for pointer, error in at.items())]
        return FormProblems(at, others, bool(wrong), lines)

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return method and params of the call."""
        return self.target.request(self.values()[0])


class CallForms:
    """The targets of calls, and the form of each, which keeps its texts."""

    def __init__(self) -> None:
        self.targets: list[CallTarget] = []
        self.notes: list[str] = []
        """Lines about what the lists lack."""
        self._forms: dict[tuple[str, str], CallForm] = {}

    def form(self, target: CallTarget) -> CallForm:
        key = target.list_method, target.key
        if key not in self._forms:
            self._forms[key] = CallForm(target)
        return self._forms[key]


def words_of(field: ArgumentField, shown: str = "") -> list[str]:
    """Return what a form shows of a field beside its name and description; `required` only if that is not shown."""
    found = [field.type, *([field.bounds] if field.bounds else [])]
    found += [] if field.default is ABSENT else [f"default {choice_text(field.default)}"[:LONGEST]]
    return [*found, *(["required"] if field.is_needed and shown != "required" else [])]


def _at(value: Any, path: Pointer) -> Any:
    """Return the member at a path of objects, ABSENT if there is none."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def _put(value: dict[str, Any], path: Pointer, member: Any) -> None:
    for name in path[:-1]:
        inner = value.get(name)
        if not isinstance(inner, dict):
            inner = value[name] = {}
        value = inner
    value[path[-1]] = member


def _remove(value: dict[str, Any], path: Pointer) -> None:
    """Remove a member, and the objects that are empty without it."""
    name, *rest = path
    if rest:
        _remove(value[name], tuple(rest))
    if not rest or not value[name]:
        del value[name]
