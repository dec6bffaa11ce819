"""Find the secrets of a message by walking its JSON text.

Uses the structure: which member a string belongs to, values below a secret's name, JSON inside strings.
Does not touch what MCP itself needs: without ids, cursors and states a recording could not be correlated,
mocked or replayed (basic/messages, basic/utilities/progress, server/utilities/pagination, tasks; all
revisions). Returns edits of the original bytes; raises `InvalidJson` for text that is not JSON.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.core.redact.patterns import NameVerdict, is_harmless, is_plural, looks_secret
from mcpspy.core.redact.places import JWK_PRIVATE
from mcpspy.core.redact.prefilter import CUSTOM
from mcpspy.core.redact.text import UnescapedText, escape, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpspy.core.redact.config import Pointer, RedactionRules

    Mask = Callable[[bytes], bytes]
    """A secret → its placeholder."""

MESSAGE_MEMBERS = frozenset(b"jsonrpc id method".split())

PROTOCOL_MEMBERS = frozenset(
    b"""progressToken cursor nextCursor requestState taskId taskIds requestId elicitationId subscriptionId
    io.modelcontextprotocol/subscriptionId protocolVersion supportedVersions
    io.modelcontextprotocol/protocolVersion resultType name""".split()
)
"""Members of the protocol at any level, except below `PAYLOADS`."""

NOTE_MEMBERS = frozenset(b"t from note eol stream http why id retry event hung_up next part by pipe".split())

PAYLOADS = frozenset(
    b"arguments structuredContent content contents messages data inputResponses elicitation".split()
)
"""Below these are the peers' own values; a member `name` or `cursor` there is not the protocol's."""

SCHEMAS = frozenset(b"inputSchema outputSchema requestedSchema".split())
"""A schema describes a password and does not contain one: names are ignored in it."""

SCHEMA_LIKE = frozenset(
    b"""properties patternProperties definitions $defs dependentRequired dependentSchemas dependencies required
    schema parameters""".split()
)
"""Below these, an object or array under a secret's name describes it; a string may be a secret."""

URIS = frozenset(b"uri uriTemplate path".split())
"""Members whose value is a URI; its path is an identifier, not a secret."""

ENCODED_URLS = frozenset(b"path location".split())
"""Members of notes whose value is a URL with percent-encoding."""

NAME_MAPS = frozenset(b"arguments properties patternProperties $defs definitions".split())
"""Members whose keys are names of arguments and properties."""

DESCRIBES = frozenset(
    b"type $ref anyOf oneOf allOf enum const description title default format items properties".split()
)
"""An object that begins with one of these describes a value and does not contain one."""

ABOUT = frozenset(b"type name id description title kind label format".split())

NAMES = frozenset(b"name key Name Key variable ParameterKey".split())
"""Members that contain the name of a secret, beside one of `NAMED_VALUES`."""

NAMED_VALUES = frozenset(b"value Value ParameterValue".split())

VALUES = frozenset(b"value data content plaintext text key token".split())
"""Members that contain the secret, in a list of secrets."""

MAX_POINTER = 64
"""Levels in the pointer of a secret: the work for a secret must not grow with its depth."""

DEEPEST = 4
"""Nested JSON strings that are parsed; below, they are plain text."""

_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+(:)?|[{}\[\]]|[^\s"{}\[\],:]++|"', re.DOTALL)
_NUMBER = re.compile(rb"-?[0-9]")
_FIRST_MEMBER = re.compile(rb'\s*"([^"\\]{1,40})"\s*:')
_SCHEME = re.compile(rb"(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate) +", re.IGNORECASE)
_STRING, _KEY = 1, 2
"""`lastindex` of a token: 1 for a string, 2 for a string before a colon, None for brackets and scalars."""
_QUOTE, _ARRAY, _ARRAY_END = b'"[]'
_BACKSLASH = ord("\\")


class InvalidJson(Exception):  # noqa: N818 - a signal to the caller, which then reads the message as text.
    """The text is not JSON, or only in part."""


class ByteEdit(NamedTuple):
    start: int
    end: int
    new: bytes
    rule: str
    pointer: Pointer


class _Level:
    __slots__ = (
        "index",
        "is_array",
        "is_free",
        "is_jwk",
        "is_schema",
        "is_spec",
        "key",
        "name",
        "parts",
        "rule",
        "value",
    )

    def __init__(self, *, is_array: bool) -> None:
        self.is_array = is_array
        self.index = -1
        self.key = b""
        self.rule = ""
        """The rule by which everything in it is secret."""
        self.is_free = self.is_schema = self.is_spec = False
        self.name: bytes | None = None
        """Its member `name`, if that is the name of a secret."""
        self.value: tuple[int, int] | None = None
        """The span of its `value`, if that came before `name`."""
        self.is_jwk = False
        """True if it has a member `kty`: a JSON Web Key."""
        self.parts: list[tuple[int, int]] | None = None
        """The spans of members that are secret in a JSON Web Key."""


class JsonWalker:
    """One pass over one JSON text."""

    def __init__(
        self,
        rules: RedactionRules,
        mask: Mask,
        *,
        note: bool = False,
        depth: int = 0,
        has_pointers: bool = True,
    ) -> None:
        """Create a walker. Without `has_pointers`, the pointers of its edits are empty, which takes less memory."""
        self._rules = rules
        self._has_pointers = has_pointers
        self._mask = mask
        self._note = note
        self._depth = depth
        self._levels: list[_Level] = []
        self._edits: list[ByteEdit] = []
        self._data = b""
        self._known = False
        self._clean_names: set[bytes] = set()
        """Names of members with a hit that contain no secret themselves: lists of objects repeat them."""

    def edits(self, data: bytes) -> list[ByteEdit]:
        """Return the edits in order; raise InvalidJson."""
        self._data = data
        hits = iter([*self._rules.prefilter.hits(data), (len(data), CUSTOM)])
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
                # Built-in literals are inside strings only; a custom value may be a number.
                if literal != CUSTOM:
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
        if levels or (hit < len(data) and literal != CUSTOM):
            raise InvalidJson
        # A value may be secret by two rules: the longer edit comes first.
        return sorted(self._edits, key=lambda edit: (edit.start, -edit.end))

    def _mark(self, start: int, end: int) -> None:
        first = self._data[start]
        if first == _QUOTE:  # An unclosed string: trying each of its quotes would take quadratic time.
            raise InvalidJson
        if first in b"{[":
            self._levels.append(self._opened(start, is_array=first == _ARRAY))
        elif first not in b"]}":
            self._scalar(start, end)
        elif not self._levels or self._levels[-1].is_array != (first == _ARRAY_END):
            raise InvalidJson
        else:
            level = self._levels[-1]
            if level.is_jwk and level.parts:
                for part in level.parts:
                    self._whole(*part, "jwk")
            self._levels.pop()

    def _reported_pointer(self) -> Pointer:
        return self._pointer() if self._has_pointers else ()

    def _pointer(self) -> Pointer:
        return tuple(
            str(level.index) if level.is_array else level.key.decode("utf-8", "replace")
            for level in self._levels[:MAX_POINTER]
        )

    def _is_pointed_at(self) -> bool:
        """Return True if a custom pointer leads here, in a message or in each message of a batch."""
        if not self._rules.pointers or self._note or self._depth or len(self._levels) > MAX_POINTER:
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
        if level.key == b"kty":
            level.is_jwk = True
        if is_hit and level.key not in self._clean_names:
            above = self._levels[-2].key if len(self._levels) > 1 else b""
            ignored = ("assigned", "pattern")
            found = [s for s in spans(unescaped.text, self._rules) if not s.rule.startswith(ignored)]
            if not found:
                self._clean_names.add(level.key)
            elif above not in NAME_MAPS:
                level.key = b"*"  # Pointers in reports must not contain it.
                for span in found:
                    self._replace(start, unescaped, span.start, span.end, span.rule)

    def _begin_value(self) -> _Level | None:
        """Advance the index of an array; return the enclosing level."""
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
        level.is_spec = outer.is_spec or key in SCHEMA_LIKE
        if outer.is_array:
            level.key = key
        elif not self._is_protected(outer) and self._is_pointed_at():
            level.rule = "pointer"
            return level
        if level.is_schema or level.is_spec:
            level.rule = outer.rule if outer.rule == "pointer" else ""
        elif outer.rule:
            level.rule = outer.rule
        elif not outer.is_array and self._known and self._rules.verdict(key) == NameVerdict.STRONG:
            described = _FIRST_MEMBER.match(self._data, start + 1) if not is_array else None
            if described is None or described[1] not in DESCRIBES:
                level.rule = "key:several" if is_array and is_plural(key) else "key"
        self._known = False
        return level

    def _is_protected(self, level: _Level) -> bool:
        if self._note:
            return len(self._levels) == 1 and level.key in NOTE_MEMBERS
        if self._depth == 0 and len(self._levels) == 1 + self._levels[0].is_array:
            return level.key in MESSAGE_MEMBERS
        return not level.is_free and level.key in PROTOCOL_MEMBERS

    def _string(self, start: int, end: int, *, is_hit: bool) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        is_hit = is_hit or (self._note and level is not None and level.key in ENCODED_URLS)
        if level is None:
            self._text(start, end, b"", is_hit=is_hit)
            return
        if level.key in JWK_PRIVATE and not level.is_array:
            level.parts = level.parts or []
            level.parts.append((start, end))
        if not (is_hit or known or level.rule or self._rules.pointers or level.key in NAMED_VALUES):
            return
        if self._is_protected(level):
            if level.key == b"name" and is_hit:
                self._names(level, start, end)
            return
        if self._is_pointed_at():
            self._whole(start, end, "pointer")
        elif (rule := self._rule_of(level, known=known)) and self._whole(start, end, rule):
            pass
        else:
            self._text(start, end, level.key, is_hit=is_hit)
            if is_hit and not level.is_array and level.key in NAMES:
                self._names(level, start, end)
        if not level.is_array and level.key in NAMED_VALUES:
            if level.name is not None:
                self._named(level.name, start, end)
            else:
                level.value = (start, end)

    def _names(self, level: _Level, start: int, end: int) -> None:
        """Recognise `{"name": "password", "value": …}` as a secret."""
        name = UnescapedText(self._data[start:end]).text
        if level.is_schema or self._rules.verdict(name) == NameVerdict.NOTHING:
            return
        level.name = name
        if level.value is not None:
            self._named(name, *level.value)

    def _named(self, name: bytes, start: int, end: int) -> None:
        value = UnescapedText(self._data[start:end]).text
        if self._rules.verdict(name) == NameVerdict.STRONG or looks_secret(name, value):
            self._whole(start, end, "named")

    def _rule_of(self, level: _Level, *, known: bool) -> str:
        """Return the rule that makes any value here secret; empty if there is none."""
        if level.is_schema:
            return ""
        key = level.key
        if known and not level.is_array:
            strength = self._rules.verdict(key)
            if strength == NameVerdict.STRONG:
                return "key"
            if strength == NameVerdict.WEAK:
                return "key:weak"
        if level.rule == "key:several" and not level.is_array:
            return "key" if key in VALUES else ""
        if level.rule == "key" and not level.is_array and key in ABOUT:
            return ""
        return level.rule.partition(":")[0]

    def _scalar(self, start: int, end: int) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        if level is None or self._is_protected(level) or not _NUMBER.match(self._data, start):
            return
        if self._data.endswith(b"[redacted:", 0, start):  # A placeholder in place of a value without quotes.
            return
        if self._is_pointed_at():
            rule = "pointer"
        else:
            rule = self._rule_of(level, known=known)
            if rule in ("", "key:weak"):
                rule = next((rule for *_, rule in self._rules.custom_matches(self._data[start:end])), "")
                is_named = level.name is not None and self._rules.verdict(level.name) == NameVerdict.STRONG
                rule = rule or ("named" if is_named and level.key in NAMED_VALUES else "")
        if rule:
            new = b'"' + self._mask(self._data[start:end]) + b'"'
            self._edits.append(ByteEdit(start, end, new, rule, self._reported_pointer()))

    def _whole(self, start: int, end: int, rule: str) -> bool:
        """Replace a string; return False if it is harmless."""
        unescaped = UnescapedText(self._data[start:end])
        text = unescaped.text
        if rule != "pointer" and is_harmless(text):
            return False
        if rule == "key:weak" and not looks_secret(self._levels[-1].key, text):
            return False
        scheme = _SCHEME.match(text) if rule == "key" else None
        self._replace(start, unescaped, scheme.end() if scheme else 0, len(text), rule.partition(":")[0])
        return True

    def _replace(self, base: int, unescaped: UnescapedText, start: int, end: int, rule: str) -> None:
        if start < end:
            new = self._mask(unescaped.text[start:end])
            span = base + unescaped.raw(start), base + unescaped.raw(end)
            self._edits.append(ByteEdit(*span, new, rule, self._reported_pointer()))

    def _text(self, start: int, end: int, key: bytes, *, is_hit: bool) -> None:
        """Redact a string as JSON if it is JSON, else as plain text."""
        if not is_hit:
            return
        unescaped = UnescapedText(self._data[start:end])
        for at, until, new, rule in self._inside(unescaped.text, is_uri=key in URIS and not self._note):
            raw = (start + unescaped.raw(at), start + unescaped.raw(until))
            self._edits.append(ByteEdit(*raw, escape(new), rule, self._reported_pointer()))

    def _inside(self, text: bytes, *, is_uri: bool) -> Iterator[tuple[int, int, bytes, str]]:
        if self._depth < DEEPEST and _is_bracketed(text):
            try:
                inner = JsonWalker(self._rules, self._mask, depth=self._depth + 1, has_pointers=False).edits(
                    text
                )
            except InvalidJson:
                pass
            else:
                yield from (edit[:4] for edit in inner)
                return
        for start, end, rule in spans(text, self._rules, is_uri=is_uri, is_encoded=self._note):
            yield start, end, self._mask(text[start:end]), rule


def _is_bracketed(text: bytes) -> bool:
    stripped = text.strip(b" \t\r\n")
    return (stripped[:1], stripped[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def apply(data: bytes, edits: list[ByteEdit]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        if edit.start >= done:
            pieces += (data[done : edit.start], edit.new)
            done = edit.end
    return b"".join([*pieces, data[done:]])
