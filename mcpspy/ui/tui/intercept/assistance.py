"""Messages as text to edit, the problems of an edited text, and help with the text of a request.

Text that is not JSON is sent only if the user confirms. JSON that violates the protocol only causes a warning: a user
who tests a peer may want to send it.

Help is the schema of the arguments, violations, and completion. The text is read tolerantly, as it is seldom JSON while
it is typed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from textwrap import wrap
from typing import Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import format as lay_out
from rich.cells import cell_len

from mcpspy.analysis.lint.schemas import SchemaCache
from mcpspy.core.jsontools import ABSENT, Pointer, read_json, value_at
from mcpspy.core.protocol.message import Malformed, Notification, Request, loads, read_frame
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.protocol.tool_arguments import prompt_schema
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import hidden_characters, sanitize
from mcpspy.ui.model.interface import CapabilityListing, SchemaField, fields, last_listings
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.widgets.columns import Piece


class ValidationProblem(NamedTuple):
    text: str
    is_json: bool = True
    """False if the text cannot be parsed, or cannot be sent as a request."""
    is_fatal: bool = False
    """True if the session would refuse the text: an id cannot be put into it."""


def editable(data: bytes) -> str | None:
    r"""Return a message as text to edit, indented if it is JSON; None if it is not UTF-8.

    Characters that a terminal might interpret are escaped, as `\u009b`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    with suppress(DecodeError, RecursionError):
        text = lay_out(text, indent=2)
    hidden = {*hidden_characters(text), *set(text) & set("\t\r\u2028\u2029")}
    return text.translate({ord(one): _escaped(one) for one in hidden})


def _escaped(character: str) -> str:
    """Return a character as escapes of JSON, which has no more than four digits in each."""
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def problems(text: str, side: str, original: bytes = b"") -> list[ValidationProblem]:
    """Return the problems of a message from this side; `original` is the message it replaces."""
    try:
        read_json(text)
    except ValueError as error:
        return [ValidationProblem(f"invalid JSON: {error}", is_json=False)]
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return [ValidationProblem("contains a lone surrogate, which UTF-8 cannot encode", is_json=False)]
    found: list[str] = []
    for message in read_frame(Frame(0.0, side, data)):
        found += [message.why] if isinstance(message, Malformed) else []
        found += message.flaws
    if not found:
        found += _compared(data, original, side)
    return [ValidationProblem(label) for label in dict.fromkeys(found)]


def request_problems(text: str) -> list[ValidationProblem]:
    """Return the problems of a request to be sent."""
    found = problems(text, "client")
    if found and not found[0].is_json:
        return [found[0]._replace(is_fatal=True)]
    fields = json.loads(text)
    if not isinstance(fields, dict) or not isinstance(fields.get("method"), str) or not fields["method"]:
        why = 'not a request: use an object with a "method" string'
        return [ValidationProblem(why, is_json=False, is_fatal=True)]
    return found + (
        [] if isinstance(fields.get("params", {}), dict) else [ValidationProblem('"params" is not an object')]
    )


def _compared(data: bytes, original: bytes, side: str) -> list[str]:
    """Return the problems that arise if the message replaces the original."""
    if not original:
        return []
    new, old = _shape(data, side), _shape(original, side)
    if new == old or len(old) != 1:
        return []
    (kind, id_text), *_ = old
    if len(new) == 1 and new[0][0] == kind:
        return [f"id changed (was {sanitize(id_text or 'none')}): the response will not match its request"]
    return ["was a request: its sender may wait forever for the response"] if kind == "request" else []


def _shape(data: bytes, side: str) -> list[tuple[str, str | None]]:
    kinds = {Request: "request", Notification: "notification"}
    return [
        (kinds.get(type(message), "response"), getattr(message, "id", None))
        for message in read_frame(Frame(0.0, side, data))
    ]


ARGUMENTS = ("params", "arguments")

MOST = 200
"""Maximum number of completions."""

NAMES = 24
"""Columns of the names of arguments, at most."""

ABOUT = 3
"""Lines of the description of an argument, at most."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+')
_REST_OF_STRING = re.compile(r'[^"{}\[\],:\n]*"(?=\s*(?:[:,}\]]|$))')

_NAMED = {"tools/call": ("tools/list", "name"), "prompts/get": ("prompts/list", "name")} | {
    f"resources/{verb}": ("resources/list", "uri") for verb in ("read", "subscribe", "unsubscribe")
}
"""Method → the method that lists its targets, and the parameter that names one."""


class JsonPosition(NamedTuple):
    """A position in a JSON text."""

    path: Pointer
    """Path of the value at the position; of the object, if a key belongs there."""
    is_key: bool
    keys: frozenset[str]
    """Other keys of the innermost object."""
    start: int
    end: int
    """Range of the token at the position; empty between tokens."""


class _Container:
    def __init__(self, bracket: str) -> None:
        self.is_object = bracket == "{"
        self.step = "" if self.is_object else "0"
        self.keys: set[str] = set()
        self.has_value = not self.is_object
        """False if a key is expected."""

    def take(self, piece: str) -> None:
        if piece == ":":
            self.has_value = True
        elif piece == "," and self.is_object:
            self.has_value = False
        elif piece == ",":
            self.step = str(int(self.step) + 1)
        elif not self.has_value:
            self.step = _text(piece)
            self.keys.add(self.step)


def position_at(text: str, offset: int) -> JsonPosition:
    """Return the position of an offset, and the other keys of its object, also those that follow."""
    stack: list[_Container] = []
    start = end = follow = offset
    for found in _TOKEN.finditer(text):
        piece = found[0]
        if found.start() >= offset:
            break
        follow = found.end()
        if piece not in "{}[],:" and found.end() >= offset:
            start, end = found.span()
            if piece[0] == '"' and end > offset:  # An open string may take the rest of its line.
                rest = _REST_OF_STRING.match(text, offset)
                end = follow = rest.end() if rest is not None else offset
            break
        _take(stack, piece)
    top = stack[-1] if stack else None
    path = tuple(each.step for each in stack[:-1])
    if top is None or (top.is_object and not top.has_value):
        keys = frozenset(top.keys | _later_keys(text, follow)) if top else frozenset[str]()
        return JsonPosition(path, top is not None, keys, start, end)
    return JsonPosition((*path, top.step), False, frozenset(top.keys), start, end)


def _take(stack: list[_Container], piece: str) -> None:
    if piece in "{[":
        stack.append(_Container(piece))
    elif piece in "}]":
        del stack[-1:]
    elif stack:
        stack[-1].take(piece)


def _later_keys(text: str, offset: int) -> set[str]:
    depth, before, found = 0, "", set()
    for piece in _TOKEN.findall(text, offset):
        depth += (piece in "{[") - (piece in "}]")
        if depth < 0:
            break
        if piece == ":" and depth == 0 and before:
            found.add(_text(before))
        before = piece if piece not in "{}[],:" else ""
    return found


def _text(piece: str) -> str:
    try:
        value = json.loads(piece)
    except ValueError:
        return piece.strip('"')
    return value if isinstance(value, str) else piece


class Assistance:
    """The names that the server of a session listed, and the schemas of its tools."""

    def __init__(self, listings: Mapping[str, CapabilityListing]) -> None:
        self._listed: dict[str, dict[str, dict[str, Any]]] = {
            method: {
                each.key: value
                for each in listing.capabilities
                if isinstance(value := loads(each.data), dict)
            }
            for method, listing in listings.items()
        }
        self._schemas = SchemaCache()

    def heading_and_fields(self, text: str) -> tuple[str, list[SchemaField]]:
        """Return the target of a request and the fields of its arguments; empty if the arguments have no schema."""
        method, name = _call(text)
        schema = self._target(method, name)
        return (f"arguments of {sanitize(name)}", fields(schema)) if schema is not None else ("", [])

    def problems(self, text: str) -> list[str]:
        """Return the violations of the schema by the arguments, each with its pointer."""
        method, name = _call(text)
        schema = self._target(method, name)
        if schema is None:
            listed, member = _NAMED.get(method, ("", ""))
            names = self._listed.get(listed)
            is_new = member == "name" and names is not None and name not in names
            return [f"params/name: the server has not listed {name!r}"] if is_new else []
        value = value_at(loads(text.encode("utf-8", "surrogatepass")), ARGUMENTS)
        found = self._schemas.check(schema).breaches({} if value is ABSENT else value)
        return [f"arguments{'' if each[:1] == '/' else ': '}{each}" for each in found]

    def completions(self, text: str, position: JsonPosition) -> list[str]:
        """Return the names or values that fit at a position, as JSON texts."""
        method, name = _call(text)
        root: Any
        if position.path[:2] == ARGUMENTS:
            root, path = self._target(method, name), position.path[2:]
        else:
            root, path = self._message(method), position.path
        found: list[Any] = []
        for schema in _at(root, path):
            if position.is_key:
                properties = schema.get("properties")
                found += (
                    [key for key in properties if key not in position.keys]
                    if isinstance(properties, dict)
                    else []
                )
            else:
                found += _values(schema)
        return list(dict.fromkeys(json.dumps(each, ensure_ascii=False) for each in found))[:MOST]

    def _message(self, method: str) -> dict[str, Any]:
        listed, member = _NAMED.get(method, ("", ""))
        names = {member: {"enum": list(self._listed.get(listed, {}))}} if member else {}
        more: dict[str, Any] = {"arguments": {}} if method in ("tools/call", "prompts/get") else {}
        methods = [each.name for each in METHODS.values() if each.sender != "server"]
        return {
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "method": {"enum": methods},
                "params": {"properties": {**names, **more, "_meta": {}}},
            }
        }

    def _target(self, method: str, name: str) -> dict[str, Any] | None:
        """Return the schema of the arguments of a call; None if it is unknown."""
        item = self._listed.get(_NAMED.get(method, ("", ""))[0], {}).get(name)
        if item is None or method not in ("tools/call", "prompts/get"):
            return None
        if method == "tools/call":
            schema = item.get("inputSchema")
            return schema if isinstance(schema, dict) else None
        return prompt_schema(item)


async def read_listings(model: SessionModel) -> Assistance:
    """Read the last listing of each kind in a session."""
    return Assistance(await last_listings(model))


def schema_lines(
    heading: str, shown: Sequence[SchemaField], width: int, *, is_wide: bool
) -> list[list[Piece]]:
    """Return the fields of a schema as lines: name, type, required, description.

    A long description is wrapped below, or cut if the text is not wide.
    """
    lines: list[list[Piece]] = [[(heading, "title")]]
    names = min(max((len(field.name) for field in shown), default=0), NAMES)
    for field in shown:
        need = "required" if field.required else ""
        head: list[Piece] = [(f"{sanitize(field.name):<{names}}", "key"), (f"  {sanitize(field.type)}", None)]
        head += [(f"  {need}", "open")] if need else []
        about = " ".join(sanitize(field.about).split())
        used = sum(cell_len(text) for text, _ in head) + 2
        if not is_wide or used + cell_len(about) <= width:
            lines.append([*head, (f"  {about}", "quiet")])
        else:
            lines.append(head)
            wrapped = wrap(about, max(width - 2, 20))[:ABOUT]
            lines.extend([(f"  {part}", "quiet")] for part in wrapped)
    return lines


def _call(text: str) -> tuple[str, str]:
    """Return the method of a request and the name of its target; the rest of the text may be incomplete."""
    stack: list[_Container] = []
    found: dict[Pointer, str] = {}
    for piece in _TOKEN.findall(text):
        if piece[0] == '"' and stack and stack[-1].has_value and len(stack) <= 2:
            found[tuple(each.step for each in stack)] = _text(piece)
        _take(stack, piece)
    method = found.get(("method",), "")
    return method, found.get(("params", _NAMED.get(method, ("", ""))[1]), "")


def _at(root: Any, path: Pointer) -> Iterator[dict[str, Any]]:
    """Yield the schemas of the value at a path, through local references and combinations."""
    todo, seen = [(root, path)], set[tuple[int, Pointer]]()
    while todo:
        schema, rest = todo.pop()
        if not isinstance(schema, dict) or (id(schema), rest) in seen:
            continue
        seen.add((id(schema), rest))
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#"):
            steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:])
            todo.append((value_at(root, steps), rest))
        for key in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(key)
            todo += [(part, rest) for part in parts] if isinstance(parts, list) else []
        if not rest:
            yield schema
            continue
        properties = schema.get("properties")
        inner = properties.get(rest[0]) if isinstance(properties, dict) else None
        if inner is None:
            inner = schema.get("items") if rest[0].isdigit() else schema.get("additionalProperties")
        todo.append((inner, rest[1:]))


def _values(schema: dict[str, Any]) -> list[Any]:
    values = schema.get("enum")
    found = list(values) if isinstance(values, list) else []
    found += [schema["const"]] if "const" in schema else []
    found += [True, False] if schema.get("type") == "boolean" else []
    found += [schema["default"]] if "default" in schema else []
    return found
