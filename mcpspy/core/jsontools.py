"""JSON values: canonical text, pointers, differences; JSON text: replacement of members, deep nesting.

The order of members does not matter for equality; `1.0` equals `1` (RFC 8785), `true` does not.
A replacement keeps all other bytes of the text (floats, escapes, thirty-digit integers).
`json_parts` reads text of 20,000 levels; the parsers of msgspec, orjson and `json` end at about a thousand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

Pointer = tuple[str, ...]
"""Unescaped reference tokens of a JSON pointer (RFC 6901)."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

_NUMBER_PATTERN = bytes.maketrans(b"123456789e", b"000000000.")
"""Translation of all digits to 0 and of the `e` of a number to a point: faster than any regular expression."""

_decode_members = Decoder(dict[str, Raw]).decode

DEEP = 200
"""Levels of nesting that `without_deep` keeps: few enough for any function that calls itself once per level."""

DEEPEST = 20_000
"""Levels of nesting that `json_parts` reads."""

_TOKEN = re.compile(
    rb"""[ \t\r\n]*+(?:([\[\]{},:])
    |("[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*+)*+")
    |-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+|true|false|null)""",
    re.VERBOSE,
)
_BLANKS = b" \t\r\n"
_NO_BRACKETS_OR_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
_ONE_BRACKET = bytes.maketrans(b"{}", b"[]")

_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA_OR_END = range(6)
_GRAMMAR = {
    **{(state, sign): _COMMA_OR_END for state in (_VALUE, _VALUE_OR_END) for sign in (b'"', b"0")},
    **{(state, b"["): _VALUE_OR_END for state in (_VALUE, _VALUE_OR_END)},
    **{(state, b"{"): _KEY_OR_END for state in (_VALUE, _VALUE_OR_END)},
    **{(state, b"]"): _COMMA_OR_END for state in (_VALUE_OR_END, _COMMA_OR_END)},
    **{(state, b"}"): _COMMA_OR_END for state in (_KEY_OR_END, _COMMA_OR_END)},
    **{(state, b'"'): _COLON for state in (_KEY, _KEY_OR_END)},
    (_COLON, b":"): _VALUE,
    (_COMMA_OR_END, b","): _VALUE,
}
"""Expected token and sign of the next one (`"`: a string, `0`: another scalar) → expected token after it."""


def canonical(value: Any) -> str:
    """Return the canonical text of a value; raise RecursionError if it is nested too deeply."""
    return canonical_bytes(value).decode("utf-8", "surrogatepass")


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical text in UTF-8, with lone surrogates encoded like characters."""
    fast = canonical_fast(value)
    return canonical_slow(value) if fast is None else fast


def canonical_fast(value: Any) -> bytes | None:
    """Return the canonical text, written by orjson; None if its output may not be canonical."""
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate, or too deep nesting for orjson.
        return None
    return None if _may_differ(encoded) else encoded


def canonical_slow(value: Any) -> bytes:
    """Return the canonical text of any value."""
    return _encode(_normalized(value)).encode("utf-8", "surrogatepass")


def read_json(text: str) -> Any:
    """Return the value of JSON that a user wrote. Raise ValueError with the place and the reason; `NaN` is not JSON."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValueError as error:  # For a long integer, Python adds how a program may read it.
        raise ValueError(str(error).partition(":")[0]) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def same(one: Any, other: Any) -> bool:
    """Return True if two values are equal as JSON."""
    return canonical(one) == canonical(other)


def is_number(value: Any) -> bool:
    """Return True for a JSON number; `true` is not a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def pointer(text: str) -> Pointer:
    """Return the tokens of a JSON pointer; raise ValueError if the text is not a pointer."""
    if not text.startswith("/"):
        raise ValueError("a JSON pointer must begin with /")
    tokens = text.split("/")[1:]
    if any("~" in token.replace("~0", "").replace("~1", "") for token in tokens):
        raise ValueError("a JSON pointer must write ~ as ~0, and / in a name as ~1")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def pointer_text(tokens: Pointer) -> str:
    """Return the text of a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def without(value: Any, tokens: Pointer) -> Any:
    """Return a value without the member at a pointer; the value itself if it has no such member.

    A removed array item becomes null, so that other pointers into the array stay valid.
    """
    if not tokens:
        return None
    first, *rest = tokens
    if isinstance(value, dict) and first in value:
        others = {key: item for key, item in value.items() if key != first}
        return others if not rest else {**value, first: without(value[first], tuple(rest))}
    if isinstance(value, list) and _is_index(first, value):
        number = int(first)
        return [*value[:number], without(value[number], tuple(rest)), *value[number + 1 :]]
    return value


ABSENT = object()
"""Result of `value_at` if there is no such value."""


def value_at(value: Any, tokens: Pointer) -> Any:
    """Return the value at a pointer, ABSENT if there is none."""
    for token in tokens:
        if isinstance(value, dict):
            value = value.get(token, ABSENT)
        elif isinstance(value, list) and _is_index(token, value):
            value = value[int(token)]
        else:
            return ABSENT
    return value


def differences(one: Any, other: Any, at: Pointer = ()) -> Iterator[str]:
    """Yield the pointers of changed, added and missing members."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = ({str(number): item for number, item in enumerate(items)} for items in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key in one and key in other:
                yield from differences(one[key], other[key], (*at, key))
            else:
                yield pointer_text((*at, key))
    elif not same(one, other):
        yield pointer_text(at)


def _may_differ(encoded: bytes) -> bool:
    """Return True if the output of orjson may not be canonical: it has floats, or null, which orjson writes for NaN."""
    return b"0." in encoded.translate(_NUMBER_PATTERN) or b"null" in encoded


def _is_index(token: str, items: list[Any]) -> bool:
    return token.isascii() and token.isdigit() and str(int(token)) == token and int(token) < len(items)


def _normalized(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normalized(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def replaced(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Return the message with this JSON text at a path of members; unchanged if the path does not exist."""
    try:
        return _replaced(data, path, value)
    except (DecodeError, ValueError):
        return _replaced_loosely(data, path, value)


def with_member(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Return the object with this JSON text at each member of this path; all other bytes are kept, as are duplicates.

    Raise ValueError if the text is not strict JSON. Nothing changes if the path does not exist.
    """
    first, *rest = path
    edges = json_parts(data).edges
    if not edges or data[edges[0]] != ord("{"):
        return data
    pieces, place = [], 0
    for begin, colon, end in zip(edges[::2], edges[1::2], edges[2::2], strict=False):
        if json.loads(data[begin + 1 : colon]) == first:  # orjson refuses lone surrogates.
            old = data[colon + 1 : end]
            pieces += [data[place : colon + 1], with_member(old, tuple(rest), value) if rest else value]
            place = end
    return b"".join([*pieces, data[place:]])


class JsonParts(NamedTuple):
    """Slices of a JSON text."""

    parts: list[tuple[bytes, bytes]]
    """Key (JSON text; empty in an array) and text of each member or item of the outermost container."""
    deep: list[tuple[int, int]]
    """Begin and end of each container at the level `DEEP`, which contain everything below it."""
    edges: list[int]
    """Positions of the outermost brackets, and of the colons and commas between them."""


def json_parts(data: bytes) -> JsonParts:
    """Read a JSON text without recursion; raise ValueError if it is not strict or has more levels than `DEEPEST`."""
    open_at: list[int] = []
    edges: list[int] = []
    deep, expected, place = [], _VALUE, 0
    while expected != _COMMA_OR_END or open_at:
        found = _TOKEN.match(data, place)
        sign = b"" if found is None else found[1] or (b'"' if found[2] else b"0")
        following = _GRAMMAR.get((expected, sign))
        if found is None or following is None or len(open_at) > DEEPEST:
            raise ValueError(f"invalid at byte {place}")
        expected, place, level = following, found.end(), len(open_at)
        if sign in (b"[", b"{"):
            open_at.append(place - 1)
            level += 1
        elif sign in (b"]", b"}"):
            begin = open_at.pop()
            if data[begin] != sign[0] - 2:  # The code of a closing bracket is that of the opening one plus 2.
                raise ValueError(f"invalid at byte {place}")
            if level == DEEP:
                deep.append((begin, place))
        elif sign == b"," and data[open_at[-1]] == ord("{"):
            expected = _KEY
        if level == 1 and sign not in (b'"', b"0"):
            edges.append(place - 1)
    if data[place:].strip(_BLANKS):
        raise ValueError(f"invalid at byte {place}")
    texts = [data[begin + 1 : end].strip(_BLANKS) for begin, end in pairwise(edges)]
    if len(edges) == 2 and not texts[0]:
        return JsonParts([], deep, edges)
    if edges and data[edges[0]] == ord("{"):
        return JsonParts(list(zip(texts[::2], texts[1::2], strict=True)), deep, edges)
    return JsonParts([(b"", text) for text in texts], deep, edges)


def members_of(data: bytes | Raw) -> dict[str, Raw]:
    """Return the members of an object; raise DecodeError or ValueError if the text is not strict or nested too deep."""
    try:
        return _decode_members(data)
    except RecursionError:
        return {orjson.loads(key): Raw(value) for key, value in json_parts(bytes(data)).parts}


def without_deep(data: bytes) -> bytes:
    """Return a JSON text in which each container at the level `DEEP` is a string with its text.

    Raise ValueError if the text is not strict and may be that deep.
    """
    if not _may_be_deep(data):
        return data
    pieces, place = [], 0
    for begin, end in json_parts(data).deep:
        pieces += [data[place:begin], orjson.dumps(data[begin:end].decode())]
        place = end
    return b"".join([*pieces, data[place:]])


def _may_be_deep(data: bytes) -> bool:
    """Return False if a text has fewer levels than `DEEP`: removes the innermost brackets again and again.

    Brackets inside strings do not count, whatever a peer writes there.
    """
    marks = data.translate(_ONE_BRACKET, _NO_BRACKETS_OR_QUOTES)
    if marks.count(b"[") < DEEP:
        return False
    if b"\\" in data:
        unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        marks = unescaped.translate(_ONE_BRACKET, _NO_BRACKETS_OR_QUOTES)
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    for level in range(DEEP):
        if len(brackets) < 2 * (DEEP - level):
            return False
        brackets = brackets.replace(b"[]", b"")
    return True


_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as PEP 383 decodes it."""


def string(data: bytes) -> str | None:
    """Return the text of a JSON string, else None; bytes that are not UTF-8 are escaped."""
    if not data.startswith(b'"'):
        return None
    try:
        text: str = orjson.loads(data)
    except orjson.JSONDecodeError:
        line = data.decode("utf-8", "surrogateescape")
        text = json.loads(_NOT_UTF8.sub(lambda byte: rf"\\x{ord(byte[0]) & 0xFF:02x}", line))
    return text


def one_line(data: bytes) -> bytes:
    """Return the message with line ends, which are only white space in JSON, replaced by blanks."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")


def _replaced(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    first, *rest = path
    members = members_of(data)
    if first not in members:
        return data
    new = _replaced(bytes(members[first]), tuple(rest), value) if rest else value
    if new == bytes(members[first]):
        return data
    members[first] = Raw(new)
    return encode(members)


def _replaced_loosely(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Replace a member in text that a strict parser rejects: NaN, lone surrogates, invalid UTF-8."""
    try:
        whole: Any = json.loads(data.decode("utf-8", "replace"))
        parent = whole
        for key in path[:-1]:
            parent = parent[key]
        if not isinstance(parent, dict) or path[-1] not in parent:
            return data
        parent[path[-1]] = json.loads(value)
        return json.dumps(whole).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return data
