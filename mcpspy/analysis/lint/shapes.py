"""Shapes of params and results: required members, types, enums and formats, from one table per revision.

Owns the notation of `tables/REVISION.txt`, where each table extends the one of the revision before:

    Name = TYPE                      an alias; TYPE is a name, `string`, `integer 0..`, `number 0..1`, `"a"|"b"`, `A|B`,
                                     `[T]` (list), `{T}` (object with values T), `object`, `any`
    Name = /PATTERN/ CODE "words"    a string of this form; an ECMA-262 pattern, which `$` ends only at the end
    Name  PAGE  CODE                 an object; its members follow, each `name other?  TYPE  CODE` (`?`: optional)
    Name by MEMBER = DEFAULT  PAGE   an object whose shape depends on a member: `value  Name` for each value
    Name has  PAGE                   an object whose shape depends on its members: `member  Name`
    request METHOD, notification METHOD, result METHOD    params and results; without a method, of all
    + Name, - name, - *              includes the members of another object; removes a member, or all
    any of NAMES  CODE               at least one of these members is there

The columns are separated by two spaces. The code of a violation is that of the member, or else of the object around it;
DATA101 in params, DATA102 in results. Members that a table does not name are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import Only, Report
from mcpspy.core.protocol.spec import REVISIONS, is_known

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MOST = 1000
"""Maximum number of reported violations of one message."""

DEFAULT = {"params": "DATA101", "result": "DATA102"}
"""Codes of violations without one in the table."""

SHAPED = (EventKind.REQUEST, EventKind.NOTIFICATION, EventKind.RESULT)
"""The events with a shape."""

KINDS = {EventKind.REQUEST: "request", EventKind.NOTIFICATION: "notification", EventKind.RESULT: "result"}

_WORDS = {"string": "a string", "object": "an object", "array": "a list", "number": "a number", "integer": "an integer", "boolean": "a boolean", "null": "null"}  # fmt: skip
_FORM = re.compile(r'(\S+) = /(.+)/ (\w+) "(.+)"')
_RANGE = re.compile(r"(\w+) (\d+)\.\.(\d+)?")


class _Object:
    """An object of a table."""

    def __init__(self) -> None:
        self.page = self.code = self.by = self.default = ""
        self.members: dict[str, tuple[str, bool, str]] = {}
        """Name → type, True if it is required, code."""
        self.included: list[str] = []
        self.removed: set[str] = set()
        self.any_of: list[tuple[list[str], str]] = []

    def copy(self) -> _Object:
        other = _Object()
        other.page, other.code, other.by, other.default = self.page, self.code, self.by, self.default
        other.members, other.included = dict(self.members), list(self.included)
        other.removed, other.any_of = set(self.removed), list(self.any_of)
        return other

    def add(self, line: str) -> None:
        names, kind, code = (*re.split("  +", line), "", "")[:3]
        if names == "- *":
            self.members, self.included, self.any_of = {}, [], []
        elif names.startswith("- "):
            self.removed.add(names[2:])
        elif names.startswith("+ "):
            self.included.append(names[2:])
        elif names.startswith("any of "):
            self.any_of.append((names.split()[2:], kind))
        else:
            for name in names.split():
                self.members[name.removesuffix("?")] = kind, name[-1] != "?", code
                self.removed.discard(name.removesuffix("?"))


class Table:
    """The shapes of one revision."""

    def __init__(self, revision: str) -> None:
        earlier = REVISIONS.index(revision) - 1
        before = table(REVISIONS[earlier]) if earlier >= 0 else None
        self.aliases: dict[str, str] = dict(before.aliases) if before else {}
        self.objects: dict[str, _Object] = (
            {name: each.copy() for name, each in before.objects.items()} if before else {}
        )
        self._schemas: dict[str, dict[str, Any]] = {}
        written = get_data(__package__, f"tables/{revision}.txt")
        assert written is not None
        latest = _Object()
        for line in written.decode().splitlines():
            if line.startswith("  "):
                latest.add(line.strip())
            elif " = /" in line or (" = " in line and " by " not in line):
                name, _, kind = line.partition(" = ")
                self.aliases[name] = kind if kind[0] != "/" else line
            elif line and line[0] != "#":
                latest = self._heading(line)

    def _heading(self, line: str) -> _Object:
        words, page, code = (*re.split("  +", line), "", "")[:3]
        name, _, rest = words.partition(" by ")
        name = name.removesuffix(" has")
        found = self.objects.setdefault(name, _Object())
        found.page, found.code = page, code or found.code
        found.by, _, found.default = rest.partition(" = ") if rest else (found.by, "", found.default)
        if words.endswith(" has"):
            found.by = "*"
        return found

    def schema(self, name: str) -> dict[str, Any]:
        """Return the JSON Schema of an object; `x-` members have what messages and codes are made from."""
        found = self._schemas.get(name)
        if found is None:
            found = self._schemas[name] = self._schema(name, self.objects[name])
        return found

    def _schema(self, name: str, given: _Object) -> dict[str, Any]:
        if given.by:
            return self._variants(name, given)
        properties: dict[str, Any] = {}
        required: list[str] = []
        conditions: list[dict[str, Any]] = []
        for included in given.included:
            part = self.schema(included)
            code = part.get("x-code")
            for member, schema in part.get("properties", {}).items() if "x-by" not in part else ():
                properties[member] = {**({"x-member": code} if code else {}), **schema}
            required += part.get("required", []) if "x-by" not in part else []
            conditions += [part] if "x-by" in part else part.get("allOf", [])
        for member, (kind, is_required, code) in given.members.items():
            properties[member] = {**self._type(kind), **({"x-member": code} if code else {})}
            required = [each for each in required if each != member] + ([member] if is_required else [])
        for member in given.removed:
            properties.pop(member, None)
        for names, code in given.any_of:
            conditions.append({"anyOf": [{"required": [name]} for name in names], "x-code": code})
        return {
            "type": "object",
            "properties": properties,
            "required": [member for member in dict.fromkeys(required) if member not in given.removed],
            **({"allOf": conditions} if conditions else {}),
            **({"x-code": given.code} if given.code else {}),
        }

    def _variants(self, name: str, given: _Object) -> dict[str, Any]:
        by, values = given.by, list(given.members)
        schema: dict[str, Any] = {
            "type": "object",
            "x-by": by,
            "allOf": [],
            **({"x-code": given.code} if given.code else {}),
        }
        if by == "*":
            schema["anyOf"] = [{"required": [name]} for name in values]
        else:
            schema["properties"] = {by: {"enum": values, "x-values-of": name}}
            schema["required"] = [] if given.default else [by]
        for value, (kind, _, _) in given.members.items():
            has = [value] if by == "*" else [] if value == given.default else [by]
            condition: dict[str, Any] = {"type": "object", "required": has}
            if by != "*":
                condition["properties"] = {by: {"const": value}}
            schema["allOf"].append({"if": condition, "then": self.schema(kind)})
        return schema

    def _type(self, text: str) -> dict[str, Any]:
        options = _options(text)
        if options[0][0] == '"':
            return {"enum": [option[1:-1] for option in options]}
        if len(options) > 1:
            schemas = {schema["type"]: schema for schema in map(self._type, options)}
            special = {kind: schema for kind, schema in schemas.items() if len(schema) > 1}
            cases = [{"if": {"type": kind}, "then": schema} for kind, schema in special.items()]
            return {"type": list(schemas), **({"allOf": cases} if cases else {})}
        if text[0] == "[":
            return {"type": "array", "items": self._type(text[1:-1])}
        if text[0] == "{":
            return {"type": "object", "additionalProperties": self._type(text[1:-1])}
        if (form := _FORM.fullmatch(alias := self.aliases.get(text, ""))) is not None:
            return {"type": "string", "pattern": form[2], "x-pattern": form[3], "x-words": form[4]}
        if alias:
            return self._type(alias)
        if text in self.objects:
            return self.schema(text)
        if (limits := _RANGE.fullmatch(text)) is not None:
            most = {"maximum": int(limits[3])} if limits[3] else {}
            return {"type": limits[1], "minimum": int(limits[2]), **most}
        if text == "any":
            return {}
        if text not in _WORDS:
            raise ValueError(f"{text}: not in the table")
        return {"type": text}


def _options(text: str) -> list[str]:
    """Return the alternatives of a type: `A|[B|C]` has two."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


@cache
def table(revision: str) -> Table:
    return Table(revision)


class Shape(NamedTuple):
    """The shape of a message in a revision."""

    validator: Validator
    schema: dict[str, Any]
    revision: str


@cache
def _shape(revision: str, name: str) -> Shape:
    from jsonschema_rs import Draft202012Validator

    schema = table(revision).schema(name)
    return Shape(Draft202012Validator(schema), schema, revision)


@cache
def shape_name(revision: str, kind: str, method: str) -> str:
    """Return the name of the shape of a message; that of all such messages if the method has none of its own."""
    name = f"{kind} {method}"
    has_own = name in table(revision).objects and (is_known(method, revision) or method in _RESULT_TYPES)
    return name if has_own else kind


_RESULT_TYPES = ("task", "input_required")
"""Types of results that have the same shape for all methods."""


def violations(
    revision: str, name: str, method: str, where: str, value: dict[str, Any]
) -> dict[str, list[Report]]:
    """Return the violations of `value` by their codes; `where` is `params` or `result`."""
    shape = _shape(revision, name)
    found: dict[str, list[Report]] = {}
    try:
        if shape.validator.is_valid(value):
            return found
        for number, error in enumerate(shape.validator.iter_errors(value)):
            if number == MOST:
                break
            code, message, excerpt = _described(error, shape, value, where)
            found.setdefault(code, []).append(Report(f"{method}: {message}", excerpt))
    except (ValueError, RecursionError):  # Lone surrogates; nested too deep.
        pass
    return found


def _described(error: ValidationError, shape: Shape, value: Any, where: str) -> tuple[str, str, Any]:
    """Return the code, the message and the excerpt of a violation."""
    *steps, keyword = error.schema_path
    node: Any = shape.schema
    code, outer, is_member = node.get("x-code") or DEFAULT[where], "", False
    for before, step in zip(("", *steps), steps, strict=False):
        node, outer = node[step], code
        is_member = before == "properties" and isinstance(node, dict)
        code = (isinstance(node, dict) and node.get("x-code")) or code
    if keyword == "required":
        code = node.get("properties", {}).get(error.kind.as_dict()["property"], {}).get("x-member") or code
    elif keyword == "pattern":
        code = node["x-pattern"]
    elif is_member:
        code = node.get("x-member") or (outer if keyword == "type" else code)
    path, container = where, None
    for step in error.instance_path:
        container, value = value, value[step]
        path += f"[{step}]" if isinstance(step, int) else f".{step[:60]}"
    excerpt = container if value is None or keyword == "enum" else value
    return code, f"{path} {_problem(error, keyword, node, value, shape.revision)}", excerpt


def _problem(error: ValidationError, keyword: Any, node: dict[str, Any], value: Any, revision: str) -> str:
    if keyword == "required":
        return f"has no {error.kind.as_dict()['property']}"
    if keyword == "anyOf":
        return f"has neither {' nor '.join(each['required'][0] for each in node['anyOf'])}"
    if keyword == "type":
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return f"is not {' or '.join(_WORDS[kind] for kind in kinds)}"
    shown = json.dumps(value, ensure_ascii=False)[:80]
    if keyword == "enum":
        for later in REVISIONS[REVISIONS.index(revision) + 1 :]:
            variants = table(later).objects.get(node.get("x-values-of", ""))
            if variants is not None and isinstance(value, str) and value in variants.members:
                return f"is {shown}, which requires {later}; the revision is {revision}"
        return f"is {shown}, not {', '.join(node['enum'][:-1])} or {node['enum'][-1]}".replace(
            ", not  or", ", not"
        )
    if keyword == "pattern":
        return f"is not {node['x-words']}: {shown}"
    limits = (
        f"at least {node['minimum']}" if "maximum" not in node else f"{node['minimum']} to {node['maximum']}"
    )
    return f"is {shown}, not {limits}"


def reports(code: str) -> Only:
    """Return whether the shape of a message, in any revision, has violations with this code: an option of a rule."""

    @cache
    def may_report(kind: EventKind, method: str, _: str) -> bool:
        return kind in KINDS and any(
            code in _codes(revision, shape_name(revision, KINDS[kind], each))
            for revision in REVISIONS
            for each in (method, *(_RESULT_TYPES if kind is EventKind.RESULT else ()))
        )

    return may_report


@cache
def _codes(revision: str, name: str) -> frozenset[str]:
    return frozenset(_codes_in(table(revision).schema(name))) | {
        DEFAULT["params" if name[0] != "r" or name.startswith("request") else "result"]
    }


def _codes_in(node: Any) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in ("x-code", "x-member", "x-pattern"):
            yield value
        elif isinstance(value, dict | list):
            yield from _codes_in(value)
