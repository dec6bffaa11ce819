"""Shapes of params and results: members, types, enums and formats, from one table per revision.

Owns the notation of `tables/REVISION.txt`, where each table extends the one of the revision before, and of the `shapes`
of extensions (`core.protocol.extensions`), which extend those of the revisions that have them:

    Name = TYPE                      an alias; TYPE is a name, `string`, `integer 0..`, `number 0..1`, `"a"|"b"`, `A|B`,
                                     `[T]` (list), `{T}` (object with values T), `object`, `any`
    Name = /PATTERN/ CODE "words"    a string of this form; an ECMA-262 pattern, which `$` ends only at the end
    Name  PAGE  CODE                 an object; its members follow, each `name other?  TYPE  CODE` (`?`: optional)
    Name by MEMBER = DEFAULT  PAGE   an object whose shape depends on the value of a member: `value  Name` for each
    Name by *  PAGE                  an object whose shape depends on which member it has: `member  Name` for each
    request METHOD, notification METHOD, result METHOD    params and results; without a method, of all
    *  TYPE                          all other members of the object
    + Name, - name, - *              includes the members of another object; removes a member, or all
    any of NAMES  CODE               at least one of these members is there

The columns are separated by two spaces. The code of a violation is that of the member, or else of the object around it;
DATA101 in params, DATA102 in results. Members that a table does not name are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.analysis.lint.finding import EventKind, Report
from mcpspy.core.protocol.extensions import EXTENSIONS, RESULT_TYPES
from mcpspy.core.protocol.spec import REVISIONS, is_known

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

LEGACY = REVISIONS[-2]
"""The revision that is assumed while it is unknown."""

MOST = 1000
"""Maximum number of reported violations of one message."""

DEFAULT = "DATA101", "DATA102"
"""Codes of violations without one in the table: in params, and in results."""

KINDS = {EventKind.REQUEST: "request", EventKind.NOTIFICATION: "notification", EventKind.RESULT: "result"}
SHAPED = tuple(KINDS)

_LACKS = " has no "

_WORDS = {"string": "a string", "object": "an object", "array": "a list", "number": "a number", "integer": "an integer", "boolean": "a boolean", "null": "null"}  # fmt: skip
_HEADING = re.compile(r"(\S+(?: \S+)??)(?: by (\S+)(?: = (\S+))?)?  (\S+)(?:  (\w+))?")


@dataclass
class _Object:
    """An object of a table."""

    page: str = ""
    code: str = ""
    by: str = ""
    default: str = ""
    members: dict[str, tuple[str, bool, str]] = field(default_factory=dict)
    """Name → type, True if it is required, code."""
    included: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    any_of: list[tuple[list[str], str]] = field(default_factory=list)

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
        self.aliases: dict[str, str] = {}
        self.objects: dict[str, _Object] = {}
        latest = _Object()
        for line in _lines_until(revision):
            if line.startswith("  "):
                latest.add(line.strip())
            elif (heading := _HEADING.fullmatch(line)) is not None:
                name, by, default, page, code = heading.groups()
                latest = self.objects.setdefault(name, _Object())
                latest.page, latest.code = page, code or latest.code
                latest.by, latest.default = by or latest.by, default or latest.default
            elif line and line[0] != "#":
                name, _, self.aliases[name] = line.partition(" = ")
        self.schema = cache(self._schema)
        """Return the JSON Schema of an object; `x-` members have what codes and messages are made from."""

    def _schema(self, name: str) -> dict[str, Any]:
        given = self.objects[name]
        if given.by:
            return self._variants(name, given)
        properties: dict[str, Any] = {}
        required: dict[str, bool] = {}
        others: dict[str, Any] = {}
        conditions: list[dict[str, Any]] = []
        for part in map(self.schema, given.included):
            if "x-by" in part:
                conditions.append(part)
                continue
            for member, schema in part["properties"].items():
                properties[member] = {"x-member": part["x-code"], **schema}
            required |= dict.fromkeys(part["required"], True)
            conditions += part["allOf"]
        for member, (kind, is_required, code) in given.members.items():
            if member == "*":
                others["additionalProperties"] = self._type(kind)
                continue
            properties[member] = {**self._type(kind), **({"x-member": code} if code else {})}
            required[member] = is_required
        for member in given.removed:
            properties.pop(member, None)
            required.pop(member, None)
        for names, code in given.any_of:
            conditions.append({"anyOf": [{"required": [each]} for each in names], "x-code": code})
        return {
            "type": "object",
            "properties": properties,
            "required": [member for member, is_required in required.items() if is_required],
            "allOf": conditions or [{}],
            "x-code": given.code,
            **others,
        }

    def _variants(self, name: str, given: _Object) -> dict[str, Any]:
        by, cases = given.by, []
        for value, (kind, _, _) in given.members.items():
            case: dict[str, Any] = {"type": "object"}
            if by == "*":
                case["required"] = [value]
            else:
                case |= {
                    "properties": {by: {"const": value}},
                    "required": [by] if value != given.default else [],
                }
            cases.append({"if": case, "then": self.schema(kind)})
        schema = {"type": "object", "allOf": cases, "x-by": by, "x-code": given.code}
        if by == "*":
            return {**schema, "anyOf": [{"required": [value]} for value in given.members]}
        enum = {"enum": list(given.members), "x-values-of": name}
        return {**schema, "properties": {by: enum}, "required": [] if given.default else [by]}

    def _type(self, text: str) -> dict[str, Any]:
        if text[0] == "/":
            pattern, _, rest = text[1:].rpartition("/ ")
            code, _, words = rest.partition(" ")
            return {"type": "string", "pattern": pattern, "x-pattern": code, "x-words": words.strip('"')}
        options = _options(text)
        if options[0][0] == '"':
            return {"enum": [option[1:-1] for option in options]}
        if len(options) > 1:
            schemas = {schema["type"]: schema for schema in map(self._type, options)}
            cases = [{"if": {"type": kind}, "then": schema} for kind, schema in schemas.items()]
            return {"type": list(schemas), "allOf": cases}
        if text[0] == "[":
            return {"type": "array", "items": self._type(text[1:-1])}
        if text[0] == "{":
            return {"type": "object", "additionalProperties": self._type(text[1:-1])}
        if text in self.aliases:
            return self._type(self.aliases[text])
        if text in self.objects:
            return self.schema(text)
        kind, _, limits = text.partition(" ")
        least, _, most = limits.partition("..")
        bounds = {name: int(bound) for name, bound in (("minimum", least), ("maximum", most)) if bound}
        return {} if text == "any" else {"type": kind, **bounds}


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
def _lines(revision: str) -> list[str]:
    return (get_data(__package__, f"tables/{revision}.txt") or b"").decode().splitlines()


def _lines_until(revision: str) -> Iterator[str]:
    """Yield the lines of all tables up to a revision, and then those of the extensions that it may have."""
    for each in REVISIONS:
        if each <= revision:
            yield from _lines(each)
    for extension in EXTENSIONS.values():
        if extension.since <= revision:
            yield from extension.shapes.splitlines()


@cache
def table(revision: str) -> Table:
    return Table(revision)


class Shape(NamedTuple):
    """The shape of params or results in a revision."""

    validator: Validator
    schema: dict[str, Any]
    revision: str
    where: str
    """`params` or `result`."""

    def accepts(self, value: dict[str, Any]) -> bool:
        """Return whether a value has no violations, or cannot be checked."""
        try:
            return self.validator.is_valid(value)
        except (ValueError, RecursionError):  # Lone surrogates; nested too deep.
            return True

    def violations(self, value: dict[str, Any], method: str) -> dict[str, list[Report]]:
        """Return the violations of a value by their codes, those found until it cannot be checked any further."""
        found: dict[str, list[Report]] = {}
        missing: dict[tuple[str, str], int] = {}
        with suppress(ValueError, RecursionError):  # As above.
            for _, error in zip(range(MOST), self.validator.iter_errors(value), strict=False):
                code, message, excerpt = _described(error, self, value)
                reports = found.setdefault(code, [])
                place, _, member = message.partition(_LACKS)
                if member and (number := missing.get((code, place))) is not None:
                    # A response to another request than its own lacks several members: that is one mistake.
                    if member not in reports[number].message.split(_LACKS)[1].split(", "):
                        longer = f"{reports[number].message}, {member}"
                        reports[number] = reports[number]._replace(message=longer)
                    continue
                if member:
                    missing[code, place] = len(reports)
                reports.append(Report(f"{method}: {message}", excerpt))
        return found


_RESULT_TYPES = ("input_required", *sorted(RESULT_TYPES))
"""Types of results that have the same shape for all methods."""


def shape_name(kind: EventKind, method: str, revision: str) -> str:
    """Return the name of the shape of a message; that of all such messages if the method has none."""
    name = f"{KINDS[kind]} {method}"
    has_own = name in table(revision).objects and (is_known(method, revision) or method in _RESULT_TYPES)
    return name if has_own else KINDS[kind]


def draft_shape(kind: EventKind, method: str, revision: str | None) -> Shape | None:
    """Return the shape of a message of a draft; None if there is none. Only for peers that declare this draft: the
    methods of others may have the same names.
    """
    name, known = f"{KINDS[kind]} {method}", revision or LEGACY
    return _shape(name, known) if name in table(known).objects else None


@lru_cache(maxsize=1024)  # A peer may send any method.
def shape_of(kind: EventKind, method: str, revision: str | None) -> Shape:
    """Return the shape of a message; `method` may be a type of result."""
    return _shape(shape_name(kind, method, revision or LEGACY), revision or LEGACY)


@cache
def _shape(name: str, revision: str) -> Shape:
    from jsonschema_rs import Draft202012Validator

    schema = table(revision).schema(name)
    return Shape(
        Draft202012Validator(schema), schema, revision, "result" if name.startswith("result") else "params"
    )


def _described(error: ValidationError, shape: Shape, value: Any) -> tuple[str, str, Any]:
    """Return the code, the message and the excerpt of a violation."""
    *steps, keyword = error.schema_path
    node: Any = shape.schema
    code, outer, is_member = node.get("x-code") or DEFAULT[shape.where == "result"], "", False
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
    path, container = shape.where, None
    for step in error.instance_path:
        container, value = value, value[step]
        path += f"[{step}]" if isinstance(step, int) else f".{step[:60]}"
    excerpt = container if value is None or keyword == "enum" else value
    return code, f"{path} {_problem(error, keyword, node, value, shape.revision)}", excerpt


def _problem(error: ValidationError, keyword: Any, node: dict[str, Any], value: Any, revision: str) -> str:
    if keyword == "required":
        return f"{_LACKS.lstrip()}{error.kind.as_dict()['property']}"
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


@lru_cache(maxsize=1024)
def shape_codes(kind: EventKind, method: str, revision: str | None) -> frozenset[str]:
    """Return the codes of violations that a message may have."""
    known, names = revision or LEGACY, (method, *_RESULT_TYPES) if kind is EventKind.RESULT else (method,)
    shapes = {shape_name(kind, name, known) for name in names}
    written = json.dumps([table(known).schema(name) for name in shapes])
    codes = re.findall(r'"x-(?:code|member|pattern)": "(\w+)"', written)
    return frozenset(codes) | {DEFAULT[kind is EventKind.RESULT]}
