"""Secrets in plain text: tokens, assignments, passwords in URLs, keys of quoted JSON.

For content without structure: a file that a tool read, a server's stderr, a line that is not a message.
Search starts at prefilter hits only, so prose takes no time. `UnescapedText` maps positions in an
unescaped JSON string back to its bytes; invalid escapes are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from mcpspy.core.redact import connectors, encoded, patterns, places
from mcpspy.core.redact.literals import BASE64
from mcpspy.core.redact.names import ENDS, ESCAPED, FOREIGN_LITERALS, NAMED, PLACED, QUERIED
from mcpspy.core.redact.prefilter import AT, B64, CUSTOM, ESCAPE, URL, URL_MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.core.redact.config import RedactionRules
    from mcpspy.core.redact.prefilter import Hit

_ESCAPE = re.compile(rb'\\(?:u([0-9a-fA-F]{4})|([bfnrt"\\/]))')
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class UnescapedText:
    """The text, in UTF-8, of `raw`, the inside of a JSON string."""

    def __init__(self, raw: bytes) -> None:
        self._texts = [0]
        self._raws = [0]
        if _BACKSLASH not in raw:
            self.text = raw
            return
        pieces: list[bytes] = []
        length = done = 0
        high = 0
        for found in _ESCAPE.finditer(raw):
            start, end = found.span()
            plain = raw[done:start]
            short: bytes | None = found[2]
            if short is not None:
                piece, high = _SHORT.get(short, short), 0
            else:
                code = int(found[1], 16)
                if 0xDC00 <= code < 0xE000 and high and not plain:
                    # The low surrogate of a pair: both halves are one character.
                    code = 0x10000 + (high - 0xD800 << 10) + code - 0xDC00
                    length -= len(pieces.pop())
                    del self._texts[-2:], self._raws[-2:]
                    start -= 6
                    high = 0
                else:
                    high = code if 0xD800 <= code < 0xDC00 else 0
                piece = chr(code).encode("utf-8", "surrogatepass")
            if plain:
                pieces.append(plain)
                length += len(plain)
            self._texts += (length, length + len(piece))
            self._raws += (start, end)
            pieces.append(piece)
            length += len(piece)
            done = end
        self.text = b"".join([*pieces, raw[done:]])

    def raw(self, at: int) -> int:
        """Return the position in the string for one in the text."""
        number = bisect_right(self._texts, at) - 1
        return self._raws[number] + at - self._texts[number]


class DecodedUrl(UnescapedText):
    """The text of a URL without its percent-encoding (RFC 3986, 2.1)."""

    def __init__(self, raw: bytes) -> None:
        self.text, self._texts, self._raws = encoded.percent_decoded(raw)


def escape(text: bytes) -> bytes:
    """Return a text without control characters as the inside of a JSON string."""
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


class SecretSpan(NamedTuple):
    start: int
    end: int
    rule: str


MAX_QUOTED = 4096
"""Bytes in which the closing quote of a value must be; a longer value ends at its first space."""

WINDOWED = 1 << 20
"""Bytes above which a text is unescaped around hits only: a hundred megabytes would take seconds."""

_BY_NAME = ("assigned", "query")
"""Rules that recognise a secret by the name in front of it."""

_NAMED = frozenset((*NAMED, *FOREIGN_LITERALS))
_QUERIED = frozenset(QUERIED)
_PLACED = frozenset(PLACED)
_FOREIGN = frozenset(FOREIGN_LITERALS)
_ESCAPED = frozenset(ESCAPED)
_ENDS = ENDS.encode()
_NAME_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_NAME_ON = re.compile(rb"[A-Za-z0-9_.-]{0,80}")
_QUOTES = (b'"', b"'", b"`")
_BACKSLASH = ord("\\")
_HIDDEN = re.compile(rb"\\u00(?!2[267]|3[cCeE]|60|7[fF])[2-7]")
_CREDENTIAL = re.compile(rb"[A-Za-z0-9+/\\._~=-]{6}")

_SUSPECT = re.compile(
    rb"""(?x)
    (?: \\{0,15} (?: ["'`\]*_] | [nrt] | u001[bB] \[ [0-9;]{0,12} m | u00[0-9a-fA-F]{2} ) | [ \t\r\n*_"'`\]] | \x1b\[[0-9;]{0,12}m ){0,48}
    (?: [?+]?[:=|>] | %(?:25)?(?:3[aA]|3[dD]|22) | \xef\xbc\x9a | [ ][^<>\\]{0,100}(?:>|\\u003e)
    | -{3} | \xe2\x94[\x80-\x83] | \\{1,15}u(?:250[0-3]|ff1a) | (?:<|\\{1,15}u003[cC])\\{0,15}/
    | (?: [ \t\r\n]|\\[nrt]|\\u00[0-9a-fA-F]{2} ){1,16} (?: ["'\\]|string ) )
    """
)
_ENDED = re.compile(
    rb"\\{0,15}[\"'`][ \t\r\n]{0,8}[,}]|[ ](?:for|of|to|on|in|from)[ ][^\"\\]{1,60}\\{0,15}\"|\\?/[\w.-]{1,80}\\?/versions\\?/"
)
"""Behind a name that is a whole string, or the end of a path: of a parameter store, or of Google's Secret Manager."""
_BEFORE_ENDED = (b'"', b"'", b"`", b"/")
_RUN = re.compile(rb"[^\s\"'`,;&<>(){}\[\]|\\\x00-\x1f]++")
_QUERY_SIGNS = (b"?", b"&", b"#")
_QUERY_VALUE = re.compile(rb"=([^\s\"'`<>&#;(){}\[\]|\\\x00-\x1f,]++)")
_QUERY_BEGUN = re.compile(rb"[?#;]")
_GIVEN = re.compile(rb"[^\s\"&]{8}")
_PLAIN = re.compile(rb"[A-Za-z_][A-Za-z_.]*")
_CODE = re.compile(rb"[(\[{,)]")
_NUMBER = re.compile(rb"-?[0-9.eE+-]{3,}")
_DIGITS = re.compile(rb"[0-9]{6,64}")
_CHANGE = re.compile(rb"\\{0,15}[\"'] -> \\{0,15}[\"']([^\"'\\\r\n]{1,1024})")
_SCHEME = re.compile(rb"(?i:bearer|basic|digest|token|apikey|negotiate|oauth|aws4-[a-z0-9-]{1,20})[ ]{1,4}")
_PARAMETERS = re.compile(rb"[A-Za-z][\w-]{2,30}[ ]{1,4}(?=[\w-]{1,40}=)")
_LINE = re.compile(rb"[^\"'`\\\r\n\x1b]++")
_WHOLE_LINE = re.compile(rb"[^'\\\r\n\x1b]++")
_USER = re.compile(
    rb"(?://|\\/)(?P<user>[^\s\"'@:/\\]*(?:@[^\s\"'@:/\\]*(?=:))?)(?::(?P<password>[^\s\"'@/\\]{1,256}))?\Z"
)
_DATABASE = re.compile(
    rb"(?P<scheme>(?i:postgres(?:ql)?|mysql2?|mariadb|mongodb|redis|rediss|amqps?|mssql|sqlserver|oracle|clickhouse|db2|ldaps?|smtps?|s?ftp)"
    rb"(?:\+[a-z0-9]{1,16})?):(?://|\\/\\/)(?P<user>[^\s\"'@:/\\]*):(?P<password>[^\s\"'\\<>?]{1,256})\Z"
)
_LAST_AT = re.compile(rb"(?:@[^\s\"'@/?#\\<>(),;&`|]{0,128}){1,8}(?=@)")
_DOCUMENTED = re.compile(rb"(?i)pass(?:word|wd)?|pwd|secret|token|guest|\[redacted(?::[0-9a-f]{8})?\]")


def spans(
    text: bytes,
    rules: RedactionRules,
    *,
    is_uri: bool = False,
    is_decoded: bool = False,
    is_page: bool = False,
) -> list[SecretSpan]:
    """Return the secrets of a text, in order and without overlaps; in a URI, not those of the path.

    In a page of an app, names do not count: its minified code compares and assigns to variables with any name, and
    a placeholder in it would be a syntax error. Of six published apps, `singlePass===!0&&…` broke two.

    A text may contain quoted or incomplete JSON, and URLs in a query, so it is searched as it is, unescaped, and without
    its percent-encoding, at most twice. `is_decoded` is for a text that was in Base64: no more Base64 in it is decoded.
    """
    found = _spans(text, rules, is_uri=is_uri, is_decoded=is_decoded, is_page=is_page)
    found += _percent_spans(text, rules, is_uri=is_uri, is_page=is_page)
    if _BACKSLASH in text:
        for first, last in _windows(text, rules):
            unescaped = UnescapedText(text[first:last])
            within = _spans(unescaped.text, rules, is_uri=is_uri, is_decoded=is_decoded, is_page=is_page)
            within += _percent_spans(unescaped.text, rules, is_uri=is_uri, is_page=is_page)
            found += [
                SecretSpan(first + unescaped.raw(start), first + unescaped.raw(end), rule)
                for start, end, rule in within
            ]
    return merged_spans(found)


def _percent_spans(
    text: bytes, rules: RedactionRules, *, is_uri: bool, is_page: bool, depth: int = 0
) -> Iterator[SecretSpan]:
    """Yield the secrets that percent-encoding hides: a URL in a query of a URL has it twice."""
    if b"%" not in text or encoded.PERCENT.search(text) is None:
        return
    for first, last in _windows(text, rules):
        decoded = DecodedUrl(text[first:last])
        within = _spans(decoded.text, rules, is_uri=is_uri, is_decoded=True, is_page=is_page)
        if depth == 0:
            within += _percent_spans(decoded.text, rules, is_uri=is_uri, is_page=is_page, depth=1)
        for start, end, rule in within:
            yield SecretSpan(first + decoded.raw(start), first + decoded.raw(end), rule)


def _windows(text: bytes, rules: RedactionRules) -> list[tuple[int, int]]:
    """Return the parts of a text to unescape: all of it, or the surroundings of hits in a very long one."""
    if len(text) <= WINDOWED or rules.is_thorough:
        return [(0, len(text))]
    windows: list[tuple[int, int]] = []
    for place, _ in rules.prefilter.hits(text):
        start, end = max(0, place - MAX_QUOTED), place + 2 * MAX_QUOTED
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _spans(
    text: bytes, rules: RedactionRules, *, is_uri: bool, is_decoded: bool, is_page: bool
) -> list[SecretSpan]:
    found = [SecretSpan(*match) for match in rules.custom_matches(text)]
    done = 0
    for place, literal in rules.prefilter.hits(text):
        if place < done:
            continue
        if literal in BASE64:
            if not is_decoded and not is_uri:
                # Each run is decoded once, also if nothing is found in it: it may have a literal every few letters.
                start, done, decoded = encoded.run(text, place, literal, done)
                if spans(decoded, rules, is_decoded=True, is_page=is_page):
                    found.append(SecretSpan(start, done, "base64"))
        elif spans_here := _at(text, place, literal, rules, is_uri=is_uri):
            if is_page and literal != CUSTOM and spans_here[0].rule in _BY_NAME:
                continue
            found += spans_here
            if len(spans_here) == 1:
                done = spans_here[0].end
    return found


def is_suspect(raw: bytes, hit: Hit, rules: RedactionRules) -> bool:
    """Return False if a hit in a message is certainly not a secret; cheap."""
    place, literal = hit
    if literal in _NAMED:
        start, end = _name(raw, place, literal)
        if raw[start - 1 : start] == b"\\" and raw[start : start + 1] in b"nrtbf":
            start += 1  # The letter of an escape, `\nPWD=…`, is not part of the name.
        name = raw[start:end]
        is_name = literal in _FOREIGN or rules.verdict(name) != patterns.NameVerdict.NOTHING
        return is_name and (
            b"--" in name
            or _SUSPECT.match(raw, end) is not None
            or (raw[start - 1 : start] in _BEFORE_ENDED and _ENDED.match(raw, end) is not None)
            or raw.rfind(b"login", max(0, start - connectors.BEFORE), start) >= 0
            or connectors.NAMED_BY.search(raw, max(0, start - 64), start) is not None
            or connectors.DIRECTIVE.search(raw, max(0, start - 40), start) is not None
            or places.is_inserted(raw, start, end)
        )
    if literal == AT:
        return _password(raw, place) is not None
    if literal == ESCAPE:
        return _HIDDEN.match(raw, place) is not None
    if literal in (b"earer ", b"asic "):
        return _CREDENTIAL.match(raw, place + len(literal)) is not None
    if literal in _QUERIED:
        return _GIVEN.match(raw, place + len(literal)) is not None
    if literal == b"%40":
        return encoded.USER.search(raw, max(0, place - URL), place) is not None
    if literal in _PLACED:
        return b"-u" not in literal or raw.rfind(b"curl", max(0, place - 2 * places.COMMAND), place) >= 0
    shape = patterns.SHAPES.get(literal)
    if shape is None:
        return literal != B64
    # The letter before the token may belong to an escape, `\\n`, or to an encoded character, `%20`.
    before = raw[max(0, place - shape.back - 3) : max(0, place - shape.back)]
    return before[-2:-1] == b"\\" or before[:1] == b"%" or shape.at(raw, place) is not None


def _name(text: bytes, place: int, literal: bytes) -> tuple[int, int]:
    """Return the span of the name around a literal; that of a custom key may begin with a quote."""
    if literal in _FOREIGN:
        return place, place + len(literal)
    if literal == CUSTOM:
        place += text.startswith((b'"', b"'"), place)
    after = _NAME_ON.match(text, place + len(literal.rstrip(_ENDS)))
    return place - patterns.tail(text, place, 80, _NAME_LETTERS), after.end() if after else place


def merged_spans(found: list[SecretSpan]) -> list[SecretSpan]:
    merged: list[SecretSpan] = []
    for span in sorted(found):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _at(text: bytes, place: int, literal: bytes, rules: RedactionRules, *, is_uri: bool) -> list[SecretSpan]:
    """Return the secrets at a hit."""
    if literal == AT:
        return _one(_password(text, place))
    if is_uri and _QUERY_BEGUN.search(text, 0, place + 1) is None:
        return []
    if literal in URL_MEMBERS or literal in _ESCAPED:
        return []
    if literal == b"-----BEGIN":
        where, rule = patterns.pem(text, place), "private-key"
    elif literal == b".eyJ":
        where, rule = patterns.jwt(text, place), "jwt"
    elif literal in patterns.SHAPES:
        shape = patterns.SHAPES[literal]
        where, rule = shape.at(text, place), shape.rule
    elif literal in _QUERIED:
        return [SecretSpan(*span, "query") for span in places.parameter(text, place)]
    elif literal in _PLACED:
        found = places.BY_LITERAL[literal](text, place)
        return [
            SecretSpan(*span, "assigned") for span in found if not patterns.is_harmless(text[slice(*span)])
        ]
    else:
        start, end = _name(text, place, literal)
        strength = patterns.NameVerdict.STRONG if literal in _FOREIGN else rules.verdict(text[start:end])
        if strength == patterns.NameVerdict.NOTHING:
            return []
        name, is_strong = text[start:end], strength == patterns.NameVerdict.STRONG
        one = _assigned(text, start, end, strength)
        if one is not None:
            return [one, *_changed(text, one.end)]
        found = places.column(text, start, name, is_strong=is_strong)
        found = found or (places.inserted(text, start, end) if is_strong else [])
        return [SecretSpan(*span, "assigned") for span in found]
    return [] if where is None else [SecretSpan(*where, rule)]


def _changed(text: bytes, end: int) -> list[SecretSpan]:
    """Return the new value of a plan: `name = "old" -> "new"`, as Terraform prints it."""
    found = _CHANGE.match(text, end)
    return [] if found is None or patterns.is_harmless(found[1]) else [SecretSpan(*found.span(1), "assigned")]


def _one(span: SecretSpan | None) -> list[SecretSpan]:
    return [] if span is None else [span]


def is_documented(password: bytes) -> bool:
    """Return True for the `user:password@host` of documentation."""
    return _DOCUMENTED.fullmatch(password) is not None


def _password(text: bytes, at: int) -> SecretSpan | None:
    """Return the password of a URL, or the token in place of its user."""
    base = max(0, at - URL)
    base = max(base, text.rfind(b"/", base, at) - 1)
    found = _USER.search(text, base, at) or _DATABASE.search(text, max(0, at - URL - 32), at)
    if found is None or patterns.REDACTED.fullmatch(text, found.start("user"), at):
        return None
    part = "password" if found["password"] is not None else "user"
    value = found[part]
    if part == "password" and (last := _LAST_AT.match(text, at)) is not None:
        at = last.end()
        value = text[found.start(part) : at]
    if (
        patterns.is_harmless(value)
        or is_documented(value)
        or (part == "user" and not patterns.is_random(value, 16))
    ):
        return None
    return SecretSpan(found.start(part), at, "url-password")


def _assigned(text: bytes, start: int, end: int, strength: int) -> SecretSpan | None:
    """Return the value of the name at `start`: `NAME=value`, `"name": "value"`, `name: value`, `--name value`."""
    name = text[start:end]
    if text[start - 1 : start] in _QUERY_SIGNS and (query := _QUERY_VALUE.match(text, end)) is not None:
        return _checked(text, name, strength, *query.span(1))
    found = connectors.connector(text, start, end)
    if found is None:
        return None
    if "value" in found.re.groupindex:
        is_cell = found.re in (connectors.CELL, connectors.HTML_CELL)
        is_strong = strength == patterns.NameVerdict.STRONG
        if is_cell and not places.is_cell(name, found["value"], is_strong=is_strong):
            return None
        return _checked(text, name, strength, *found.span("value"))
    at, quote = found.end(), found["quote"]
    if found.re is connectors.ITEM and text[at : at + 1] == b"-":
        return None  # The next option.
    if quote:
        end = _closing(text, quote, at)
        if end < 0 or b"\n" in text[at:end]:
            quote = None  # An apostrophe, or a string that breaks off: only its first word is the value.
        elif not _is_quoted(text[at:end], strength, is_closed=bool(found["closed"])):
            return None
    if line := _header(text, start, name, at, quote):
        return line
    if (scheme := _SCHEME.match(text, at)) is not None:
        at = scheme.end()
    if not quote:
        run = _RUN.match(text, at)
        if run is None or not _is_unquoted(text, name, strength, found, run):
            return None
        end = run.end()
    return _checked(text, name, strength, at, end)


def _is_quoted(value: bytes, strength: int, *, is_closed: bool) -> bool:
    """Return True if a text in quotes is a value: that of `token` is one word, that of `password` may be any text."""
    is_one = b" " not in value or is_closed or _SCHEME.match(value) is not None
    return (is_one or strength == patterns.NameVerdict.STRONG) and not patterns.is_harmless(value)


def _is_unquoted(
    text: bytes, name: bytes, strength: int, found: re.Match[bytes], run: re.Match[bytes]
) -> bool:
    """Return True if a word behind a name is its value."""
    if found["closed"] and _NUMBER.fullmatch(run[0]) is not None:
        return True
    if strength == patterns.NameVerdict.STRONG and _DIGITS.fullmatch(run[0]) is not None:
        return True
    # Behind the name of a pair, of an item, or the login of `.netrc`, even a word is the value.
    is_pair = (
        found.re is connectors.PAIR
        or (found.re is connectors.ITEM and found["sign"] is not None)
        or (found.re is connectors.BLANK and not name.startswith(b"--"))
    )
    return _is_given(text, name, b"=" if is_pair else found["sign"], run[0], run.end())


def _header(text: bytes, start: int, name: bytes, at: int, quote: bytes | None) -> SecretSpan | None:
    """Return the rest of a header whose value has parameters: cookies, `Digest username="ada", …`."""
    if name.lower().endswith(b"cookie"):
        line = _LINE.match(text, at)
        return SecretSpan(at, line.end(), "cookie") if line is not None and b"=" in line[0] else None
    scheme = _PARAMETERS.match(text, at) if not quote and name.lower().endswith(b"authorization") else None
    if scheme is None:
        return None
    line = (_LINE if text[start - 1 : start] in _QUOTES else _WHOLE_LINE).match(text, scheme.end())
    return None if line is None else SecretSpan(*line.span(), "assigned")


def _checked(text: bytes, name: bytes, strength: int, start: int, end: int) -> SecretSpan | None:
    """Return the span of a value, unless it is harmless, or the name is weak and the value an ordinary word."""
    value = text[start:end]
    if (
        not value
        or patterns.is_harmless(value)
        or (strength == patterns.NameVerdict.WEAK and not patterns.looks_secret(name.lstrip(b"-"), value))
    ):
        return None
    return SecretSpan(start, end, "assigned")


def _closing(text: bytes, quote: bytes, at: int) -> int:
    """Return the end of a quoted value, at an unescaped quote; -1 if there is none within `MAX_QUOTED`."""
    end = text.find(quote, at, at + MAX_QUOTED)
    while end > at and text[end - 1 : end] == b"\\":
        end = text.find(quote, end + 1, at + MAX_QUOTED)
    return end


def _is_given(text: bytes, name: bytes, sign: bytes, value: bytes, end: int) -> bool:
    """Return True if a value without quotes is a value, and not prose or program code."""
    if _CODE.match(text, end):
        return text[end] in b",)" and patterns.is_random(value, 12)
    if (name.isupper() and sign == b"=") or patterns.is_random(value, 6) or patterns.is_jumbled(value):
        return True
    is_followed = text[end : end + 1] in b" \t\r\n&\\\"'`"
    is_value = name.startswith(b"--") or _PLAIN.fullmatch(value) is None or is_followed
    return sign == b"=" and len(value) >= 4 and is_value and not name.endswith(value)
