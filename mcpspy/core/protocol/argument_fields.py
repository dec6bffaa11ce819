"""The arguments of a tool or prompt as the fields of a form.

The one place that decides what a field is: its kind, whether it is required, its choices and its bounds, and the
value of a text in it. `mcpspy call` gives texts their types by the same functions (`tool_arguments`). Members
of nested objects are separate fields; arrays and other objects are fields that take JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from mcpspy.core.jsontools import ABSENT, Pointer, is_number, pointer_text, read_json, same
from mcpspy.core.protocol.tool_arguments import (
    MANY,
    SHOWN,
    about_of,
    alternatives,
    properties_of,
    required_of,
    resolved,
    type_text,
    typed,
    types_of,
)
from mcpspy.core.sanitize import sanitize

MOST = 100
"""Maximum fields of a form. The other arguments are written as JSON."""

EXAMINED = 2_000
"""Members of a schema that are looked at: those that are required come first, wherever they are."""

LEVELS = 3
"""Levels of objects whose members are fields."""

LONGEST = 200
"""Characters of a bound, a choice or an error that are shown."""

EDITED = 10_000
"""Characters of the longest text of a field."""


class FieldKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    JSON = "json"


class ArgumentField(NamedTuple):
    path: Pointer
    """The names of the objects that it is in, and its own."""
    kind: FieldKind
    type: str
    is_required: bool
    """True if the object that it is in must have it."""
    is_needed: bool
    """True if the arguments must have it."""
    about: str = ""
    choices: tuple[Any, ...] = ()
    """The values of a choice or boolean."""
    default: Any = ABSENT
    bounds: str = ""
    """The limits of its values in words: `1 to 10`."""
    part: Any = None
    """Its schema."""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def pointer(self) -> str:
        return pointer_text(self.path)


def argument_fields(schema: Any) -> tuple[list[ArgumentField], int]:
    """Return the fields of a schema in its order, and the number of those that are left out.

    If there are too many, those that are needed stay.
    """
    begin = _Member((), schema, is_required=True, is_needed=True)
    found = list(islice(_members(begin, schema, []), EXAMINED))
    order = sorted(range(len(found)), key=lambda place: (not found[place].is_needed, place))
    kept = [_field(found[place], schema) for place in sorted(order[:MOST])]
    return kept, len(found) - len(kept)


class _Member(NamedTuple):
    path: Pointer
    part: Any
    is_required: bool
    is_needed: bool


def _members(within: _Member, root: Any, above: list[int]) -> Iterator[_Member]:
    """Yield the members of an object that are fields; of an object in it, the members of that."""
    required = set(required_of(within.part, root))
    above = [*above, id(resolved(within.part, root))]
    for name, part in properties_of(within.part, root).items():
        is_required = name in required
        member = _Member((*within.path, name), part, is_required, within.is_needed and is_required)
        each = list(islice(alternatives(part, root), 2))
        is_object = len(each) == 1 and each[0].get("type", "object") == "object"
        is_open = len(member.path) < LEVELS and id(resolved(part, root)) not in above
        if is_object and is_open and isinstance(each[0].get("properties"), dict) and each[0]["properties"]:
            yield from _members(member, root, above)
        else:
            yield member


def _field(member: _Member, root: Any) -> ArgumentField:
    part, target = (
        each if isinstance(each, dict) else {} for each in (member.part, resolved(member.part, root))
    )
    each = list(alternatives(member.part, root))
    kind, choices = _kind(each)
    return ArgumentField(
        path=member.path,
        kind=kind,
        type=type_text(member.part, root)[:LONGEST],
        is_required=member.is_required,
        is_needed=member.is_needed,
        about=about_of(member.part, root),
        choices=choices,
        default=part.get("default", target.get("default", ABSENT)),
        bounds=", ".join(dict.fromkeys(words for one in each for words in _bounds(one)))[:LONGEST],
        part=member.part,
    )


def _kind(each: list[dict[str, Any]]) -> tuple[FieldKind, tuple[Any, ...]]:
    """Return the kind of a field with these alternatives, and its choices."""
    values = [_values(one) for one in each]
    types = {name for one in each for name in types_of(one)}
    if all(value is not None for value in values):
        listed = islice((value for some in values for value in some or ()), MANY + 1)
        choices = {choice_text(value): value for value in listed}
        if 0 < len(choices) <= MANY:
            return FieldKind.CHOICE, tuple(choices.values())
    elif "boolean" in types and types <= {"boolean", "null"}:
        return FieldKind.BOOLEAN, (True, False, *([None] if "null" in types else []))
    elif types & {"integer", "number"} and types <= {"integer", "number", "null"}:
        return FieldKind.NUMBER, ()
    elif "string" in types and not types & {"array", "object"}:
        return FieldKind.TEXT, ()
    return FieldKind.JSON, ()


def _values(part: dict[str, Any]) -> list[Any] | None:
    """Return the values of an enum, a constant, or null; None for other schemas."""
    if isinstance(values := part.get("enum"), list):
        return values
    if "const" in part:
        return [part["const"]]
    return [None] if part.get("type") == "null" else None


def _bounds(part: dict[str, Any]) -> Iterator[str]:
    for least, most, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        low, high = (_number(part.get(name)) for name in (least, most))
        if low and high:
            yield f"{low} to {high}{unit}"
        elif low or high:
            yield f"at {'least' if low else 'most'} {low or high}{unit}"
    for name, words in (("exclusiveMinimum", "above"), ("exclusiveMaximum", "below")):
        if number := _number(part.get(name)):
            yield f"{words} {number}"
    if number := _number(part.get("multipleOf")):
        yield f"a multiple of {number}"
    for name in ("format", "pattern"):
        if isinstance(text := part.get(name), str):
            yield f"{name} {text[:LONGEST]}"


def _number(value: Any) -> str:
    """Return a number as text; empty for other values, and for an integer that no text should have."""
    if not is_number(value) or (isinstance(value, int) and value.bit_length() > LONGEST):
        return ""
    return json.dumps(value)


def value_in(field: ArgumentField, text: str, root: Any) -> Any:
    """Return the value of a text in a field. Raise ValueError with the reason if it has none."""
    if field.choices:
        for value in field.choices:
            if text == choice_text(value):
                return value
        raise ValueError(f"not one of {', '.join(map(choice_text, field.choices[:SHOWN]))}")
    if field.kind is FieldKind.JSON and text.lstrip()[:1] in ("{", "["):
        try:
            read_json(text)
        except ValueError as error:
            why = str(error) if "\n" in text else str(error).removeprefix("line 1, ")
            raise ValueError(f"not JSON: {why}") from None
    return typed(text, field.part, root)


def text_in(field: ArgumentField, value: Any, root: Any) -> str | None:
    """Return the text of a value in a field; None if no text has it, such as an empty string.

    Values with line breaks or control characters, and very long ones, are only edited as JSON.
    """
    text = choice_text(value) if field.choices or not isinstance(value, str) else value
    if len(text) > EDITED or sanitize(text) != text:
        return None
    try:
        is_same = bool(text) and same(value_in(field, text, root), value)
    except ValueError:
        return None
    return text if is_same else None


def choice_text(value: Any) -> str:
    """Return the JSON of a value, by which a choice is named."""
    return json.dumps(value, ensure_ascii=False)
