"""Find the secrets of a message by walking its JSON text.

Uses the structure: which member a string belongs to, values below a secret's name, JSON inside strings.
Does not touch what MCP itself needs: without ids, cursors and states a recording could not be correlated,
mocked or replayed (basic/messages, basic/utilities/progress, server/utilities/pagination, tasks; all
revisions). Returns edits of the original bytes; raises `InvalidJson` for text that is not JSON.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.core.redact.members import (
    ABOUT,
    ANSWERS,
    ENCODED_URLS,
    GRANTS,
    MESSAGE_MEMBERS,
    NAME_MAPS,
    NAMED_BY_PROTOCOL,
    NAMED_OBJECTS,
    NAMED_VALUES,
    NAMES,
    NOT_ASKED,
    NOTE_MEMBERS,
    PAGE,
    PAGE_MEMBERS,
    PAYLOADS,
    PROTOCOL_MEMBERS,
    RAW_HEADERS,
    SCHEMAS,
    URIS,
    VALUES,
)
from mcpspy.core.redact.patterns import NameVerdict, is_harmless, is_plural, is_random, looks_secret
from mcpspy.core.redact.places import JWK_PRIVATE
from mcpspy.core.redact.prefilter import CUSTOM
from mcpspy.core.redact.text import UnescapedText, escape, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.redact.config import Pointer, RedactionRules

    Mask = Callable[[bytes], bytes]
    """A secret → its placeholder."""

MAX_ASKED = 64
"""Fields of forms that are remembered."""

MAX_POINTER = 64
"""Levels in the pointer of a secret: the work for a secret must not grow with its depth."""

DEEPEST = 4
"""Nested JSON strings that are parsed; below, they are plain text."""

MAX_MIXED = 1 << 18
"""Bytes of the longest text that is searched for JSON in it."""

_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+(:)?|[{}\[\]]|[^\s"{}\[\],:]++|"', re.DOTALL)
_NUMBER = re.compile(rb"-?[0-9]")
_DEPENDENT = JWK_PRIVATE | {b"code", b"mimeType"}
_OPTION = re.compile(rb"--?[A-Za-z][\w.-]*")
_OPENING = re.compile(rb"""[\[{]\s{0,8}["{\[]""")
_JSON_LINE = re.compile(rb"""(?m)^[^\n{\[]{0,200}([\[{][ ]{0,8}["{\[][^\n]*[}\]])[ \t\r]{0,8}$""")
_NOT_A_VALUE = re.compile(rb"-[A-Za-z-]")
_VAULT_NAME = re.compile(rb"(?:\A|/)secrets/[^/]+(?:/versions/[^/]+)?\Z")
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
        "is_grant",
        "is_jwk",
        "is_option",
        "is_page",
        "is_schema",
        "key",
        "name",
        "page",
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
        self.is_free = self.is_schema = False
        self.is_option = False
        """True in an array whose last item is an option with a secret name: the next item is its value."""
        self.name: bytes | None = None
        """Its member `name`, if that is the name of a secret."""
        self.value: tuple[int, int] | None = None
        """The span of its `value`, if that came before `name`."""
        self.is_jwk = False
        """True if it has a member `kty`: a JSON Web Key."""
        self.parts: list[tuple[bytes, int, int]] | None = None
        """The names and spans of its members that are secret in a JSON Web Key, or in a request for a token."""
        self.is_grant = False
        """True if it has one of the members `GRANTS`."""
        self.is_page = False
        """True if its `mimeType` is `PAGE`."""
        self.page: tuple[bytes, int, int] | None = None
        """The name and the span of a text with hits, which may be a page whose `mimeType` comes later."""


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
        asked: set[bytes] | None = None,
    ) -> None:
        """Create a walker. Without `has_pointers`, the pointers of its edits are empty, which takes less memory.

        `asked` are the names of fields that forms of this session asked a password in; the walker adds to them.
        """
        self._asked = asked if asked is not None else set()
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
            self._levels.append(self._opened(is_array=first == _ARRAY))
        elif first not in b"]}":
            self._scalar(start, end)
        elif not self._levels or self._levels[-1].is_array != (first == _ARRAY_END):
            raise InvalidJson
        else:
            level = self._levels[-1]
            if level.parts and (level.is_jwk or level.is_grant):
                self._close(level, level.parts)
            self._levels.pop()

    def _close(self, level: _Level, parts: list[tuple[bytes, int, int]]) -> None:
        """Redact the members of an object that other members of it show to be secret."""
        for key, start, end in parts:
            if key != b"code":
                if level.is_jwk:
                    self._whole(start, end, "jwk")
            elif level.is_grant and is_random(self._data[start:end]):
                self._whole(start, end, "oauth")

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
        if self._asked and self._is_asked(level.key):
            self._known = True
        if level.key == b"kty":
            level.is_jwk = True
        elif level.key in GRANTS:
            level.is_grant = True
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

    def _is_asked(self, key: bytes) -> bool:
        """Return True for the answer to a field that asked for a password."""
        return key in self._asked and len(self._levels) > 1 and self._levels[-2].key in ANSWERS

    def _ask(self, level: _Level, start: int, end: int) -> None:
        """Remember a field of a form that asks for a password: `{"pin": {"type": "string", "format": "password"}}`.

        MCP forbids a server to ask for one (client/elicitation, security), and forms of tools have no such rule. The name
        of the field may be any: only its format or its title shows what the answer is.
        """
        text = self._data[start:end]
        is_password = text == b"password" if level.key == b"format" else self._is_strong(text)
        is_password = is_password and level.key in (b"format", b"title") and not level.is_array
        if is_password and len(self._levels) > 1 and len(self._asked) < MAX_ASKED:
            name = self._levels[-2].key
            if name not in NOT_ASKED:
                self._asked.add(name)

    def _begin_value(self) -> _Level | None:
        """Advance the index of an array; return the enclosing level."""
        if not self._levels:
            return None
        level = self._levels[-1]
        if level.is_array:
            level.index += 1
        return level

    def _opened(self, *, is_array: bool) -> _Level:
        outer = self._begin_value()
        level = _Level(is_array=is_array)
        if outer is None:
            level.is_free = self._depth > 0
            return level
        key = outer.key
        level.is_free = outer.is_free or key in PAYLOADS
        level.is_schema = outer.is_schema or key in SCHEMAS
        if outer.is_array:
            level.key = key
        elif not self._is_protected(outer) and self._is_pointed_at():
            level.rule = "pointer"
            return level
        if level.is_schema:
            level.rule = outer.rule if outer.rule == "pointer" else ""
        elif outer.rule:
            level.rule = outer.rule
        elif not outer.is_array and self._known and self._rules.verdict(key) == NameVerdict.STRONG:
            level.rule = "key:several" if is_array and is_plural(key) else "key"
        elif outer.name is not None and key in NAMED_OBJECTS and self._is_strong(outer.name):
            level.rule = "key"
        self._known = False
        return level

    def _is_protected(self, level: _Level) -> bool:
        if self._note:
            return len(self._levels) == 1 and level.key in NOTE_MEMBERS
        if self._depth == 0 and len(self._levels) == 1 + self._levels[0].is_array:
            return level.key in MESSAGE_MEMBERS
        return not level.is_free and (
            level.key in PROTOCOL_MEMBERS or (level.key == b"name" and self._is_named_by_protocol())
        )

    def _is_named_by_protocol(self) -> bool:
        """Return True for the `name` of a tool, a prompt or an argument: of a member, or of an item of its array."""
        above = self._levels[:-1]
        if above and above[-1].is_array:
            above.pop()
        return bool(above) and above[-1].key in NAMED_BY_PROTOCOL

    def _string(self, start: int, end: int, *, is_hit: bool) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        is_hit = is_hit or (self._note and level is not None and level.key in ENCODED_URLS)
        if level is None:
            self._text(start, end, b"", is_hit=is_hit)
            return
        if level.is_array:
            if (is_hit or level.is_option) and self._option(level, start, end, is_hit=is_hit):
                return
        elif level.key in _DEPENDENT:
            self._dependent(level, start, end)
        if not (is_hit or known or level.rule or self._rules.pointers or level.key in NAMED_VALUES):
            return
        if is_hit and level.is_schema:
            self._ask(level, start, end)
        if self._is_protected(level):
            if level.key == b"name" and is_hit:
                self._names(level, start, end)
            return
        if self._is_pointed_at():
            self._whole(start, end, "pointer")
        elif not ((rule := self._rule_of(level, known=known)) and self._whole(start, end, rule)):
            self._text(start, end, level.key, is_hit=is_hit)
            if is_hit and not level.is_array and level.key in NAMES:
                self._names(level, start, end)
        if not level.is_array and level.key in NAMED_VALUES:
            self._named_value(level, start, end)

    def _dependent(self, level: _Level, start: int, end: int) -> None:
        """Note a member that matters only beside others of its object."""
        if level.key == b"mimeType":
            self._typed(level, start, end)
        else:
            level.parts = level.parts or []
            level.parts.append((level.key, start, end))

    def _typed(self, level: _Level, start: int, end: int) -> None:
        """Note that an object contains a page of an app; read the page again if it came before."""
        kind = self._data[start:end].replace(b"\\/", b"/").replace(b" ", b"").lower()
        if not kind.startswith(PAGE) or level.is_page:
            return
        level.is_page = True
        if level.page is not None:
            level.key, first, last = level.page
            self._edits = [edit for edit in self._edits if not first <= edit.start < last]
            self._text(first, last, level.key, is_hit=True)
            level.key = b"mimeType"

    def _option(self, level: _Level, start: int, end: int, *, is_hit: bool) -> bool:
        """Redact the item of an array behind an option, and return True; note whether the item is an option itself."""
        is_value, level.is_option = level.is_option, is_hit and self._is_option(level, start, end)
        return is_value and not _NOT_A_VALUE.match(self._data, start) and self._whole(start, end, "option")

    def _is_option(self, level: _Level, start: int, end: int) -> bool:
        """Return True for an item `--api-key` of an array, as in the `args` of a server, or a name in `RAW_HEADERS`."""
        if level.is_schema or self._rules.verdict(self._data[start:end]) == NameVerdict.NOTHING:
            return False
        if _OPTION.fullmatch(self._data, start, end) is not None:
            return True
        return level.index % 2 == 0 and self._key_of(level) in RAW_HEADERS

    def _is_strong(self, name: bytes) -> bool:
        return _VAULT_NAME.search(name) is not None or self._rules.verdict(name) == NameVerdict.STRONG

    def _names(self, level: _Level, start: int, end: int) -> None:
        """Recognise `{"name": "password", "value": …}` as a secret."""
        name = UnescapedText(self._data[start:end]).text
        if level.is_schema or (
            self._rules.verdict(name) == NameVerdict.NOTHING and not self._is_strong(name)
        ):
            return
        level.name = name
        if level.value is not None:
            self._named(name, *level.value)

    def _named_value(self, level: _Level, start: int, end: int) -> None:
        if level.name is not None:
            self._named(level.name, start, end)
        else:
            level.value = (start, end)

    def _named(self, name: bytes, start: int, end: int) -> None:
        value = UnescapedText(self._data[start:end]).text
        if self._is_strong(name) or looks_secret(name, value):
            self._whole(start, end, "named")

    def _rule_of(self, level: _Level, *, known: bool) -> str:
        """Return the rule that makes any value here secret; empty if there is none."""
        if level.is_schema:
            return ""
        key = level.key
        if known and not level.is_array:
            if self._asked and self._is_asked(key):
                return "asked"
            strength = self._rules.verdict(key)
            if strength == NameVerdict.STRONG:
                return "key"
            if strength == NameVerdict.WEAK:
                return "key:weak"
        if level.rule == "key:several" and not level.is_array:
            return "key" if key in VALUES else ""
        if level.rule == "key" and self._key_of(level) in ABOUT:
            return ""
        return level.rule.partition(":")[0]

    def _key_of(self, level: _Level) -> bytes:
        """Return the name of the member that a value belongs to, also as an item of an array."""
        return self._levels[-2].key if level.is_array and len(self._levels) > 1 else level.key

    def _scalar(self, start: int, end: int) -> None:
        level = self._begin_value()
        known, self._known = self._known, False
        if level is None or self._is_protected(level) or not _NUMBER.match(self._data, start):
            return
        if self._data.endswith(b"[redacted:", 0, start):  # A placeholder in place of a value without quotes.
            return
        is_value, level.is_option = level.is_option, False
        if self._is_pointed_at():
            rule = "pointer"
        elif is_value:
            rule = "option"
        else:
            rule = self._rule_of(level, known=known)
            if rule in ("", "key:weak"):
                rule = next((rule for *_, rule in self._rules.custom_matches(self._data[start:end])), "")
                is_named = level.name is not None and self._is_strong(level.name)
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
        is_uri = key in URIS and not self._note
        is_page = key in PAGE_MEMBERS and self._is_page(start, end)
        for edit in text_edits(
            unescaped.text, self._rules, self._mask, depth=self._depth + 1, is_uri=is_uri, is_page=is_page
        ):
            raw = (start + unescaped.raw(edit.start), start + unescaped.raw(edit.end))
            self._edits.append(ByteEdit(*raw, escape(edit.new), edit.rule, self._reported_pointer()))

    def _is_page(self, start: int, end: int) -> bool:
        """Return True for a page of an app; remember a text whose type is not known yet."""
        if not self._levels or self._levels[-1].is_array:
            return False
        level = self._levels[-1]
        level.page = (level.key, start, end)
        return level.is_page


def text_edits(
    text: bytes,
    rules: RedactionRules,
    mask: Mask,
    *,
    depth: int = 1,
    is_uri: bool = False,
    is_page: bool = False,
) -> list[ByteEdit]:
    """Return the edits of a text, in order and without overlaps: of a text that is JSON, by its structure.

    JSON in a text, such as a line of a log, is read both ways: a name in it may be that of an object, which only its
    structure shows, and around it is more text.
    """
    edits: list[ByteEdit] = []
    for start, end in _json_parts(text) if depth <= DEEPEST and not is_page else ():
        if edits and start < edits[-1].end:
            continue  # A line of a part that is JSON as a whole.
        try:
            inner = JsonWalker(rules, mask, depth=depth, has_pointers=False).edits(text[start:end])
        except InvalidJson:
            continue
        if (start, end) == (0, len(text)):
            return inner
        edits += (edit._replace(start=edit.start + start, end=edit.end + start) for edit in inner)
        if b"\n" in text[start:end]:
            break
    found = [
        ByteEdit(start, end, mask(text[start:end]), rule, ())
        for start, end, rule in spans(text, rules, is_uri=is_uri, is_page=is_page)
    ]
    return _merged(text, [*edits, *found], mask) if edits else found


def _json_parts(text: bytes) -> list[tuple[int, int]]:
    """Return the parts of a text that may be JSON: all of it, from its first to its last bracket, or lines of it."""
    if _is_bracketed(text):
        return [(0, len(text))]
    if len(text) > MAX_MIXED or (first := _OPENING.search(text)) is None:
        return []
    end = max(text.rfind(b"}"), text.rfind(b"]")) + 1
    parts = [(first.start(), end)] if end > first.start() else []
    if b"\n" in text[first.start() : end]:
        parts += (found.span(1) for found in _JSON_LINE.finditer(text, first.start()))
    return parts


def _merged(text: bytes, edits: list[ByteEdit], mask: Mask) -> list[ByteEdit]:
    """Return edits in order; those that overlap only in part become one."""
    merged: list[ByteEdit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not merged or edit.start >= merged[-1].end:
            merged.append(edit)
        elif edit.end > (last := merged[-1]).end:
            merged[-1] = last._replace(end=edit.end, new=mask(text[last.start : edit.end]))
    return merged


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
