"""The secrets of a message, with everything that only its structure can tell.

Owns the walk over JSON text: which member a string belongs to, what the
protocol needs and is left alone, what stands below a secret's name, JSON inside
a string. Answers in edits of the very bytes; refuses to build or re-write a
value, and to go on with what is no JSON (`Broken`).

What the protocol itself needs, and redaction never touches.

Owns which members are a peer's secrets' business and which are MCP's own:
without its ids, cursors and states a recording could not be paired, mocked or
replayed (basic/messages, basic/utilities/progress, server/utilities/pagination,
tasks; all revisions).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.core.redact.patterns import NameVerdict, is_harmless, is_several, is_told
from mcpspy.core.redact.prefilter import ASKED
from mcpspy.core.redact.text import UnescapedText, escape, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpspy.core.redact.config import Pointer, RedactionRules

    Mask = Callable[[bytes], bytes]
    """A secret → its placeholder."""

OF_A_MESSAGE = frozenset(b"jsonrpc id method".split())
"""Members of the message itself."""

OF_THE_PROTOCOL = frozenset(
    b"""progressToken cursor nextCursor requestState taskId taskIds requestId elicitationId subscriptionId
    io.modelcontextprotocol/subscriptionId protocolVersion supportedVersions
    io.modelcontextprotocol/protocolVersion resultType name""".split()
)
"""Members anywhere else, except in what is a peer's own: `PAYLOADS`."""

OF_A_NOTE = frozenset(b"t from note eol stream http why id retry event hung_up next part by pipe".split())
"""Members of an entry of ours."""

PAYLOADS = frozenset(
    b"arguments structuredContent content contents messages data inputResponses elicitation".split()
)
"""Below these a peer says what it likes, and a member `name` or `cursor` is none of the protocol's."""

SCHEMAS = frozenset(b"inputSchema outputSchema requestedSchema".split())
"""A schema that describes a password says nothing of one: names count for nothing in it."""

LIKE_SCHEMAS = frozenset(
    b"""properties patternProperties definitions $defs dependentRequired dependentSchemas dependencies required
    schema parameters""".split()
)
"""Below these a secret's name has a description of it, if it has an object or array; if it has a text, that may be one."""

URIS = frozenset(b"uri uriTemplate path".split())
"""Their paths say which thing is meant."""

NAMED = frozenset(b"arguments properties patternProperties $defs definitions".split())
"""The names of their members are names of arguments and properties."""

DESCRIBES = frozenset(
    b"type $ref anyOf oneOf allOf enum const description title default format items properties".split()
)
"""An object that begins with one of these describes a value and does not hold one."""

ABOUT = frozenset(b"type name id description title kind label format".split())
"""What says of a secret which one it is."""

VALUES = frozenset(b"value data content plaintext text key token".split())
"""What holds it, in a list of many."""


TOLD = 64
"""Levels down to which a place is told: the work for a secret must not grow with its depth."""

DEEPEST = 4
"""Strings in strings that are read as JSON; below, as text."""

_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+(:)?|[{}\[\]]|[^\s"{}\[\],:]++|"', re.DOTALL)
_NUMBER = re.compile(rb"-?[0-9]")
_FIRST_MEMBER = re.compile(rb'\s*"([^"\\]{1,40})"\s*:')
_SCHEME = re.compile(rb"(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate) +", re.IGNORECASE)
_STRING, _KEY = 1, 2
"""The last group of a token: a string has the first, one that a colon makes a key both, a mark or a number neither."""
_QUOTE, _ARRAY, _ARRAY_END = b'"[]'
_BACKSLASH = ord("\\")


class InvalidJson(Exception):  # noqa: N818 - a value for the caller, who reads the message as text.
    """It is no JSON, or not all of it."""


class ByteEdit(NamedTuple):
    """What to put in place of some bytes."""

    start: int
    end: int
    new: bytes
    rule: str
    pointer: Pointer


class _Level:
    """An object or an array that has begun."""

    __slots__ = (
        "governed",
        "index",
        "is_array",
        "is_free",
        "is_like_schema",
        "is_schema",
        "key",
        "known_as",
        "value",
    )

    def __init__(self, *, is_array: bool) -> None:
        self.is_array = is_array
        self.index = -1
        self.key = b""
        """The member whose value is next."""
        self.governed = ""
        """The rule by which everything in here is secret."""
        self.is_free = self.is_schema = self.is_like_schema = False
        self.known_as = False
        """Whether a member `name` here is the name of a secret …"""
        self.value: tuple[int, int] | None = None
        """… whose `value` came before it."""


class JsonWalker:
    """One pass over one JSON text."""

    def __init__(self, rules: RedactionRules, mask: Mask, *, note: bool = False, depth: int = 0) -> None:
        self._rules = rules
        self._mask = mask
        self._note = note
        self._depth = depth
        self._levels: list[_Level] = []
        self._edits: list[ByteEdit] = []
        self._data = b""
        self._known = False

    def edits(self, data: bytes) -> list[ByteEdit]:
        """Return what is to be changed, in order and apart. Raises Broken."""
        self._data = data
        hits = iter([*self._rules.gate.hits(data), (len(data), ASKED)])
        hit, literal = next(hits)
        levels = self._levels
        is_thorough = self._rules.is_thorough
        has_begun = False
        for token in _TOKEN.finditer(data):
            kind = token.lastindex
            start, end = token.span(_STRING if kind else 0)
            if not levels and has_begun:
                raise InvalidJson
            has_begun = True
            while hit < start:
                if literal != ASKED:  # Ours are never outside of strings; a number may be asked for.
                    raise InvalidJson
                hit, literal = next(hits)
            if kind is None:
                self._mark(start, end)
                continue
            is_hit = hit < end
            while hit < end:
                hit, literal = next(hits)
            if kind == _KEY:
                self._key(start + 1, end - 1, is_hit=is_hit or is_thorough)
            else:
                self._string(start + 1, end - 1, is_hit=is_hit or is_thorough)
        if levels or (hit < len(data) and literal != ASKED):
            raise InvalidJson
        # A value may be secret by two rules: as a whole comes first.
        return sorted(self._edits, key=lambda edit: (edit.start, -edit.end))

    def _mark(self, start: int, end: int) -> None:
        """Take what is no string: a bracket, a number, a word."""
        first = self._data[start]
        if first == _QUOTE:  # A string without an end: to try its every quote would be quadratic.
            raise InvalidJson
        if first in b"{[":
            self._levels.append(self._opened(start, is_array=first == _ARRAY))
        elif first not in b"]}":
            self._scalar(start, end)
        elif not self._levels or self._levels.pop().is_array != (first == _ARRAY_END):
            raise InvalidJson

    def _pointer(self) -> Pointer:
        return tuple(
            str(level.index) if level.is_array else level.key.decode("utf-8", "replace")
            for level in self._levels[:TOLD]
        )

    def _is_pointed_at(self) -> bool:
        """Whether a person named this very place, in a message or in each of a batch."""
        if not self._rules.pointers or self._note or self._depth or len(self._levels) > TOLD:
            return False
        return self._pointer()[self._levels[0].is_array :] in self._rules.pointers

    def _key(self, start: int, end: int, *, is_hit: bool) -> None:
        if not self._levels or self._levels[-1].is_array:
            raise InvalidJson
        level = self._levels[-1]
        level.key = self._data[start:end]
        self._known = is_hit
        if is_hit or _BACKSLASH in level.key:
            unescaped = UnescapedText(level.key)
            level.key = unescaped.text
        if is_hit:
            above = self._levels[-2].key if len(self._levels) > 1 else b""
            found = [
                span
                for span in spans(unescaped.text, self._rules)
                if not span.rule.startswith(("assigned", "pattern"))
            ]
            if found and above not in NAMED:
                level.key = b"*"  # What tells of places must not tell this one.
                for span in found:
                    self._replace(start, unescaped, span.start, span.end, span.rule)

    def _begin_value(self) -> _Level | None:
        """Count a value; return where it stands."""
        if not self._levels:
            return None
        level = self._levels[-1]
        if level.is_array:
            level.index += 1
        return level

    def _opened(self, start: int, *, is_array: bool) -> _Level:
        outer = self._begin_value()
        level = _Level(is_array=is_array)
        if outer is None:
            level.is_free = self._depth > 0
            return level
        key = outer.key
        level.is_free = outer.is_free or key in PAYLOADS
        level.is_schema = outer.is_schema or key in SCHEMAS
        level.is_like_schema = outer.is_like_schema or key in LIKE_SCHEMAS
        if outer.is_array:
            level.key = key
        elif not self._is_protected(outer) and self._is_pointed_at():
            level.governed = "pointer"
            return level
        if level.is_schema or level.is_like_schema:
            level.governed = outer.governed if outer.governed == "pointer" else ""
        elif outer.governed:
            level.governed = outer.governed
        elif not outer.is_array and self._known and self._rules.verdict(key) == NameVerdict.STRONG:
            described = _FIRST_MEMBER.match(self._data, start + 1) if not is_array else None
            if described is None or described[1] not in DESCRIBES:
                level.governed = "key:several" if is_array and is_several(key) else "key"
        self._known = False
        return level

    def _is_protected(self, level: _Level) -> bool:
        if self._note:
            return len(self._levels) == 1 and level.key in OF_A_NOTE
        if len(self._levels) == 1 and self._depth == 0:
            return level.key in OF_A_MESSAGE
        if self._levels[0].is_array and len(self._levels) == 2 and self._depth == 0:
            return level.key in OF_A_MESSAGE
        return not level.is_free and level.key in OF_THE_PROTOCOL

    def _string(self, start: int, end: int, *, is_hit: bool) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        if level is None:
            self._text(start, end, b"", is_hit=is_hit)
            return
        if not (is_hit or known or level.governed or self._rules.pointers or level.key == b"value"):
            return
        if self._is_protected(level):
            if level.key == b"name" and is_hit:
                self._names(level, start, end)
            return
        if self._is_pointed_at():
            self._whole(start, end, "pointer")
        elif (rule := self._governs(level, known=known)) and self._whole(start, end, rule):
            pass
        else:
            self._text(start, end, level.key, is_hit=is_hit)
            if is_hit and not level.is_array and level.key in (b"name", b"key"):
                self._names(level, start, end)
        if not level.is_array and level.key == b"value":
            if level.known_as:
                self._whole(start, end, "named")
            else:
                level.value = (start, end)

    def _names(self, level: _Level, start: int, end: int) -> None:
        """Take note that `{"name": "password", "value": …}` is about a secret."""
        if (
            self._rules.verdict(UnescapedText(self._data[start:end]).text) != NameVerdict.STRONG
            or level.is_schema
        ):
            return
        level.known_as = True
        if level.value is not None:
            self._whole(*level.value, "named")

    def _governs(self, level: _Level, *, known: bool) -> str:
        """Return the rule by which a value is secret whatever it is; empty if there is none."""
        if level.is_schema:
            return ""
        key = level.key
        if known and not level.is_array:
            said = self._rules.verdict(key)
            if said == NameVerdict.STRONG:
                return "key"
            if said == NameVerdict.WEAK:
                return "key:weak"
        if level.governed == "key:several" and not level.is_array:
            return "key" if key in VALUES else ""
        if level.governed == "key" and not level.is_array and key in ABOUT:
            return ""
        return level.governed.partition(":")[0]

    def _scalar(self, start: int, end: int) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        if level is None or self._is_protected(level) or not _NUMBER.match(self._data, start):
            return
        if self._is_pointed_at():
            rule = "pointer"
        else:
            rule = self._governs(level, known=known)
            if rule in ("", "key:weak"):
                rule = next((rule for *_, rule in self._rules.asked(self._data[start:end])), "")
                rule = rule or ("named" if level.known_as and level.key == b"value" else "")
        if rule:
            new = b'"' + self._mask(self._data[start:end]) + b'"'
            self._edits.append(ByteEdit(start, end, new, rule, self._pointer()))

    def _whole(self, start: int, end: int, rule: str) -> bool:
        """Replace a string; say whether there was something to replace."""
        unescaped = UnescapedText(self._data[start:end])
        text = unescaped.text
        if rule != "pointer" and is_harmless(text):
            return False
        if rule == "key:weak" and not is_told(self._levels[-1].key, text):
            return False
        scheme = _SCHEME.match(text) if rule == "key" else None
        self._replace(start, unescaped, scheme.end() if scheme else 0, len(text), rule.partition(":")[0])
        return True

    def _replace(self, base: int, unescaped: UnescapedText, start: int, end: int, rule: str) -> None:
        if start < end:
            new = self._mask(unescaped.text[start:end])
            edit = ByteEdit(
                base + unescaped.raw(start), base + unescaped.raw(end), new, rule, self._pointer()
            )
            self._edits.append(edit)

    def _text(self, start: int, end: int, key: bytes, *, is_hit: bool) -> None:
        """Look into a string: as JSON, if it is some, else as text."""
        if not is_hit:
            return
        unescaped = UnescapedText(self._data[start:end])
        for at, until, new, rule in self._inside(unescaped.text, is_uri=key in URIS):
            raw = (start + unescaped.raw(at), start + unescaped.raw(until))
            self._edits.append(ByteEdit(*raw, escape(new), rule, self._pointer()))

    def _inside(self, text: bytes, *, is_uri: bool) -> Iterator[tuple[int, int, bytes, str]]:
        if self._depth < DEEPEST and _is_bracketed(text):
            try:
                inner = JsonWalker(self._rules, self._mask, depth=self._depth + 1).edits(text)
            except InvalidJson:
                pass
            else:
                yield from (edit[:4] for edit in inner)
                return
        for start, end, rule in spans(text, self._rules, is_uri=is_uri):
            yield start, end, self._mask(text[start:end]), rule


def _is_bracketed(text: bytes) -> bool:
    stripped = text.strip(b" \t\r\n")
    return (stripped[:1], stripped[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def apply(data: bytes, edits: list[ByteEdit]) -> bytes:
    """Return the bytes with the edits in them; every other byte is as it was."""
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        if edit.start >= done:
            pieces += (data[done : edit.start], edit.new)
            done = edit.end
    return b"".join([*pieces, data[done:]])
