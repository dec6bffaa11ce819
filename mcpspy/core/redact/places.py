"""Secrets without a name in front: SQL, command lines, `.pgpass`, JDBC, JWK, tables, queries.

Each function takes a text and the position of its literal (`core.redact.names`), looks at a bounded
part of the text, and returns the spans of the secrets.
"""

from __future__ import annotations

import re

from mcpspy.core.redact.names import CONTEXTS, QUERY_STARTS
from mcpspy.core.redact.patterns import is_harmless, is_plural, is_query, is_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Span = tuple[int, int]

COMMAND = 400
"""Bytes searched backwards from an option for its program."""

OBJECT = 4096
"""Bytes of a JSON object that are searched for a JWK, on each side of its `kty`."""

LINE = 1000
"""Bytes of the longest line of a table or a file of settings that is read."""

ROWS = 200
"""Rows of a table that are read."""

JWK_PRIVATE = frozenset((b"d", b"p", b"q", b"dp", b"dq", b"qi", b"k"))
"""Members of a JSON Web Key that are secret (RFC 7518, section 6)."""

_IDENTIFIED = re.compile(
    rb"""(?ix) identified [ ]{1,4} (?: with [ ]{1,4} [\w'"`]{1,60} [ ]{1,4} )? (?: by | as ) [ ]{1,4} (?: password [ ]{1,4} )?
    \\{0,15} (["']) ([^"'\\]{1,256}) """
)
_LOGIN = re.compile(rb"(?: -u|-user)[ =]{0,4}\\{0,15}[\"']?[^\s:'\"\\]{1,128}:([^\s'\"\\]{1,256})")
_OPTION = re.compile(
    rb"(?:sshpass|docker login|redis-cli)(?:[ ]{1,4}[^\s\"']{1,80}){0,8}?[ ]{1,4}(?:-[pa])[ ]{0,4}\\{0,15}[\"']?([^\s'\"\\-][^\s'\"\\]{0,255})"
)
_JDBC = re.compile(rb"thin:[\w$#.]{1,60}/\\{0,15}\"?([^\s@\"'\\]{1,128})\\{0,15}\"?@")
_PGPASS = re.compile(
    rb":(?:[0-9]{4}|\*):[^\s:]{1,128}:[^\s:]{1,128}:((?:\\:|[^\s:\\\"'])++)(?=\s|\Z|\\|\"|')"
)
_PGPASS_HOST = re.compile(rb"[\w.*/-]{1,255}")
_MEMBER = re.compile(
    rb"""\\{0,15}["'](d|p|q|dp|dq|qi|k)\\{0,15}["']\s{0,8}:\s{0,8}\\{0,15}["']([A-Za-z0-9+/_=-]{8,8192})\\{0,15}["']"""
)
_SIGNATURE = re.compile(rb"(?i)signature=\\{0,15}[\"']?([A-Za-z0-9+/_%-]{32,1024}={0,2})")
_PARAMETER = re.compile(
    rf"(?i)(?:{'|'.join(map(re.escape, QUERY_STARTS))})([\w-]+)=".encode()
    + rb"([^\s\"'`<>&#;(){}\[\]|\\\x00-\x1f,]++)"
)
_GRANT_CODE = re.compile(rb"(?:\A|[?&\s\"'])code=([^\s\"'<>&#\\]{10,2048})")
_GRANT_MEMBER = re.compile(rb"""["']code\\{0,15}["']\s{0,8}:\s{0,8}\\{0,15}["']([^\s"'\\]{10,2048})""")
_RULER = re.compile(
    rb"[ \t]{0,8}(?:[|+]?(?:[ \t]{0,40}:?-{1,200}:?[ \t]{0,40}[|+]){1,50}(?:[ \t]{0,40}:?-{1,200}:?)?|(?:\xe2[\x94\x95][\x80-\xbf]){3,400})[ \t]{0,40}\r?\n"
)
"""Below the first row of a table: of Markdown, as `psql` and `mysql` print it, or of box characters."""
_BAR = re.compile(rb"\||\xe2\x94[\x82\x83]")
_AROUND_CELL = b" \t\r*_`"
_DIGITS = re.compile(rb"[0-9]{6,64}")
_INSERT = re.compile(rb"(?i)insert[ ]{1,4}into[ ]{1,4}[^()]{1,100}\([^()]{0,300}\Z")
_VALUES = re.compile(rb"(?i)[^()]{0,300}\)\s{0,40}values\s{0,40}\(")
_VALUE = re.compile(rb"\s{0,40}(?:'((?:[^'\\]|''|\\.){0,1024}+)'|[^,()']{0,200}+)\s{0,40}([,)])", re.DOTALL)
_AFTER_COLUMN = (b",", b")", b'"', b"`", b"]", b" ", b"\\")
_NEXT_ROW = re.compile(rb"\s{0,40},\s{0,40}\(")


def identified(text: bytes, place: int) -> list[Span]:
    """Return the password of SQL: `IDENTIFIED BY 'x'`."""
    found = _IDENTIFIED.match(text, place)
    return [] if found is None else [found.span(2)]


def login(text: bytes, place: int) -> list[Span]:
    """Return the password of `curl -u ada:x`."""
    base = max(0, place - COMMAND)
    found = _LOGIN.match(text, place) if text.rfind(b"curl", base, place) >= 0 else None
    return [] if found is None or found[1].startswith(b"//") else [found.span(1)]


def option(text: bytes, place: int) -> list[Span]:
    """Return the password of `sshpass -p x`, `docker login -p x` and `redis-cli -a x`."""
    found = _OPTION.match(text, place)
    return [] if found is None else [found.span(1)]


def jdbc(text: bytes, place: int) -> list[Span]:
    """Return the password of `jdbc:oracle:thin:scott/x@…`."""
    found = _JDBC.match(text, place)
    return [] if found is None else [found.span(1)]


def pgpass(text: bytes, place: int) -> list[Span]:
    """Return the password of a line of `.pgpass`: `host:5432:database:user:x`."""
    start = max(text.rfind(mark, max(0, place - LINE), place) for mark in (b"\n", b'"', b"'", b" ")) + 1
    if _PGPASS_HOST.fullmatch(text, start, place) is None:
        return []
    found = _PGPASS.match(text, place)
    return [] if found is None else [found.span(1)]


def jwk(text: bytes, place: int) -> list[Span]:
    """Return the private members of a JSON Web Key."""
    start, end = text.rfind(b"{", max(0, place - OBJECT), place), text.find(b"}", place, place + OBJECT)
    if start < 0 or end < 0 or text.find(b"kty", start, place) >= 0:
        return []
    return [found.span(2) for found in _MEMBER.finditer(text, start, end)]


def signature(text: bytes, place: int) -> list[Span]:
    """Return the signature of an `Authorization` of AWS, and of a signed URL."""
    found = _SIGNATURE.match(text, place)
    return [found.span(1)] if found is not None and is_random(found[1]) else []


def grant(text: bytes, place: int) -> list[Span]:
    """Return the authorization code of a form or an object with a `grant_type` (RFC 6749, 4.1.3)."""
    base = max(0, place - OBJECT)
    if text.rfind(b"grant_type", base, place) >= 0:
        return []  # The first one has read this part.
    start = (
        max(
            text.rfind(b"\n", base, place),
            text.rfind(b"{", base, place),
            text.rfind(b" ", base, place),
            base - 1,
        )
        + 1
    )
    found = [
        *_GRANT_CODE.finditer(text, start, place + OBJECT),
        *_GRANT_MEMBER.finditer(text, base, place + OBJECT),
    ]
    return [each.span(1) for each in found[:8] if is_random(each[1], 10)]


def parameter(text: bytes, place: int) -> list[Span]:
    """Return the value of a parameter of a query: `?sig=x`, `&code=x`."""
    found = _PARAMETER.match(text, place)
    if found is None or not is_query(found[1]):
        return []
    least = 16 if found[1].lower() == b"key" else 10
    return [found.span(2)] if is_random(found[2], least) else []


def is_cell(name: bytes, value: bytes, *, is_strong: bool) -> bool:
    """Return True if the cell of a table beside, or below, a name is its value, and not a word about it.

    Digits are one, unless the name is a plural: below "passwords" they are more often a number of them.
    """
    is_digits = is_strong and not is_plural(name) and _DIGITS.fullmatch(value) is not None
    return (is_digits or is_random(value, 6)) and not is_harmless(value)


def column(text: bytes, start: int, name: bytes, *, is_strong: bool) -> list[Span]:
    """Return the cells of a table under the name at `start`."""
    first = text.rfind(b"\n", max(0, start - LINE), start) + 1
    at = text.find(b"\n", start, start + LINE) + 1
    ruler = _RULER.match(text, at) if at else None
    if ruler is None:
        return []
    number = len(_BAR.findall(text, first, start))
    at, found = ruler.end(), []
    for _ in range(ROWS):
        end = text.find(b"\n", at, at + LINE)
        last = end if end >= 0 else min(len(text), at + LINE)
        bars = [(at, at), *(bar.span() for bar in _BAR.finditer(text, at, last)), (last, last)]
        if not 0 < len(bars) - 2 >= number or _RULER.match(text, at) is not None:
            break
        from_, to = bars[number][1], bars[number + 1][0]
        cell = text[from_:to]
        value = cell.strip(_AROUND_CELL)
        if is_cell(name, value, is_strong=is_strong):
            from_ += len(cell) - len(cell.lstrip(_AROUND_CELL))
            found.append((from_, from_ + len(value)))
        if end < 0:
            break
        at = end + 1
    return found


def is_inserted(text: bytes, start: int, end: int) -> bool:
    """Return True if a name is followed by what may follow a column of an `INSERT`, and the word is in front of it."""
    if text[end : end + 1] not in _AFTER_COLUMN:
        return False
    return b"insert" in text[max(0, start - COMMAND) : start].lower()


def inserted(text: bytes, start: int, end: int) -> list[Span]:
    """Return the quoted values of SQL for the column named at `start`: `INSERT INTO a (b, name) VALUES (1, 'x')`."""
    before = _INSERT.search(text, max(0, start - COMMAND), start) if is_inserted(text, start, end) else None
    values = _VALUES.match(text, end) if before is not None else None
    if before is None or values is None:
        return []
    number = text.count(b",", text.find(b"(", before.start()), start)
    at, item, found = values.end(), 0, []
    for _ in range(ROWS):
        value = _VALUE.match(text, at)
        if value is None:
            break
        if item == number and value[1] and not is_harmless(value[1]):
            found.append(value.span(1))
        at, item = value.end(), item + 1
        if value[2] == b")":
            row = _NEXT_ROW.match(text, at)
            if row is None:
                break
            at, item = row.end(), 0
    return found


_CONTEXTS: dict[str, Callable[[bytes, int], list[Span]]] = {
    "identified ": identified,
    **dict.fromkeys(("sshpass", "docker login", "redis-cli"), option),
    **dict.fromkeys(("-user", " -u"), login),
    "thin:": jdbc,
    **dict.fromkeys((":5432:", ":5433:", ":6432:", ":*:"), pgpass),
    **dict.fromkeys(('kty"', "kty\\", "kty'", "kty&"), jwk),
    "signature=": signature,
    "grant_type": grant,
    "%40": lambda text, place: [],  # `text` decodes the URL.
}
BY_LITERAL = {context.encode(): _CONTEXTS[context] for context in CONTEXTS}
"""Literal of a context → its rule."""
