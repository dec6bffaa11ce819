"""Signs, quotes, colours, elements and cells between a name and its value.

Signs are enough wherever they are; the others depend on the text before the name, of which a bounded
part is read. Each pattern matches a bounded number of characters.
"""

from __future__ import annotations

import re

_COLOUR = r"\x1b\[[0-9;]{0,12}m"
_CLOSED = rf"(?P<closed> (?: \\{{0,15}}[\"'`] | \] | [*_]{{1,3}} | {_COLOUR} ){{0,4}} )"
_QUOTE = rf"(?: (?: [*_]{{1,3}}[ \t]{{0,4}} | (?:{_COLOUR}){{1,3}}[ \t]{{0,4}} | (?:![a-z!]{{2,12}}|&[\w-]{{1,40}})[ ] )? (?: [bBrRuUfFlL@$]{{1,2}} (?=[\"'`]) )? (?P<quote> \\{{0,15}}[\"'`] )? )"


def _sign(pattern: str) -> re.Pattern[bytes]:
    return re.compile(f"(?x) {_CLOSED} {pattern} {_QUOTE}".encode())


SET = _sign(
    r"""[ \t]{0,40} (?P<sign> => | :=? | [?+]?= | \xef\xbc\x9a )
    (?: [ \t]{0,4} [|>][+-]? [ \t]{0,4} \r?\n | \r?\n [ \t]{0,40} string\([0-9]{1,6}\) | (?<==) \[ (?= [^\s\[\]"',;:]{1,1024} \] ) )?
    [ \t]{0,40}"""
)
"""A block of YAML, a string as PHP's `var_dump` prints it, and a list of one as Java prints headers, may follow the sign."""
TYPED = _sign(
    r"""(?: [ ]?\??:[ ]{0,2} [&A-Za-z]['A-Za-z.\[\]| ?]{0,40} | [ ] string [ ]? ) (?P<sign> = ) [ \t]{0,4} (?=[a-zA-Z@]{0,2}["'`])"""
)
PAIR = _sign(
    r"""[ \t\r\n,;]{1,80} \\{0,15}["']? (?i: (?:parameter)?value | data | content ) \\{0,15}["']? [ \t]{0,4} (?P<sign> [:=] ) [ \t]{0,4}"""
)
CALL = _sign(r"(?<=[\"'`]) [ ]{0,4} (?P<sign> , ) [ ]{0,4} (?=[a-zA-Z@]{0,2}\\{0,15}[\"'`])")
BLANK = _sign(r"[ \t]{1,4} (?P<sign>) (?: \\\r?\n [ \t]{0,40} )? (?=[^\s=:|,>-])")
WORD = _sign(r"[ \t]{1,8} (?P<sign>) (?=[^\s=:|,>-])")
ITEM = _sign(
    r"""(?: [ \t]{0,4} (?P<sign> , ) \s{0,40} (?=[^\s\]-]) | [ \t]{0,4} \r?\n [ \t]{0,40} -[ ]{1,4} (?=[^\s-]) )"""
)
"""Between two items of an array in JSON, in code, or in YAML."""
CELL = re.compile(
    rb"[*_`]{0,3}[ \t]{0,40}(?:\||\xe2\x94[\x82\x83])[ \t*_`]{0,40}(?P<value>[^|\s`*\xe2]{1,1024})[ \t*_`]{0,40}(?:\||\xe2\x94|\r?\n|\Z)"
)
"""Also between the box characters with which programs draw tables."""
HTML_CELL = re.compile(
    rb"(?i)[ ]{0,4}:?[ ]{0,4}</(?:td|th|dt|label|span|strong|b|code)>(?:\s{0,40}</?[a-z][^<>]{0,80}>){1,4}\s{0,8}(?P<value>[^<>\s]{1,1024})\s{0,8}</"
)
ELEMENT = re.compile(
    rb"[\"']?(?:[ ][^<>\n]{0,100})?>\s{0,8}(?:<!\[CDATA\[)?(?P<value>[^<>\s\[\]]{1,1024})(?:\]\]>)?\s{0,8}</"
)
NAMED_BY = re.compile(
    rb"(?i)(?:name|key|id|variable|label|title|field|option)\\{0,15}[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,15}[\"'](?:[\w-]{1,20}[ ]){0,4})?\Z"
)
"""In front of a name in a pair; in quotes, other words may precede it: `"field": "Confirm password"`."""
_CALLED = re.compile(
    rb"(?i)(?:define|setenv|putenv|header|append|add|set|put|property|item|getenv|environ\.get)\w{0,12}[ ]{0,2}\([ ]{0,4}[a-z]?\\{0,15}[\"'`]\Z"
)
_TAG = re.compile(rb"<(?:[\w.-]{1,40}:|[\w.:-]{1,40}[ ][^<>]{0,80}(?:name|key|id)=\\{0,15}[\"'])?\Z")
_ROW_START = re.compile(rb"(?:\||\xe2\x94[\x82\x83]|\A|\n)[ \t]{0,40}[*_`]{0,3}\Z")
_TAGGED = re.compile(rb">[^<>]{0,60}\Z")
DIRECTIVE = re.compile(
    rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nt]))(?:SetEnv|ENV|setenv|setx|set[ ]-[a-zA-Z]{1,4}|#define|configure[ ]set|config[ ]set)[ \t]{1,4}\Z"
)
"""In front of a name that only a blank separates from its value: Apache, Docker, csh, fish, Windows, C, `aws configure`."""
_NETRC = re.compile(
    rb"(?:machine[ \t\r\n]{1,16}\S{1,128}|default)[ \t\r\n]{1,16}login[ \t\r\n]{1,16}\S{1,128}[ \t\r\n]{1,16}\Z"
)
_SQL = re.compile(rb"(?i)(?:with|encrypted|login|superuser|(?:user|role)[ ]{1,4}\S{1,64})[ \r\n]{1,4}\Z")
_YAML_ITEM = re.compile(rb"(?:\A|\n)[ \t]{0,40}-[ ]{1,4}[\"']?\Z")
BEFORE = 300
"""Bytes read in front of a name."""


def connector(text: bytes, start: int, end: int) -> re.Match[bytes] | None:
    """Return the match of all that is between a name and its value, or, if it has a group `value`, up to its end."""
    if (found := TYPED.match(text, end) or SET.match(text, end)) is not None:
        return found
    name = text[start:end]
    base = max(0, start - BEFORE)
    if name.startswith(b"-"):
        if (found := ITEM.match(text, end)) is not None and _is_item(text, start, found, base):
            return found
        return BLANK.match(text, end) if name.startswith(b"--") else None
    if (found := PAIR.match(text, end)) is not None and NAMED_BY.search(text, base, start):
        return found
    if (found := CALL.match(text, end)) is not None and _CALLED.search(text, base, start):
        return found
    if (found := CELL.match(text, end)) is not None and _ROW_START.search(text, base, start):
        return found
    if (found := ELEMENT.match(text, end)) is not None and _TAG.search(text, base, start):
        return found
    if (found := HTML_CELL.match(text, end)) is not None and _TAGGED.search(text, base, start):
        return found
    if text[start - 1 : start] == b":" and (found := WORD.match(text, end)) is not None and found["quote"]:
        return found  # A keyword of Clojure or Lisp.
    if (found := WORD.match(text, end)) is not None and DIRECTIVE.search(text, max(base, start - 40), start):
        return found
    if name.lower() == b"password" and (found := BLANK.match(text, end)) is not None:
        before = _SQL if found["quote"] else _NETRC
        return found if before.search(text, base, start) else None
    return None


def _is_item(text: bytes, start: int, found: re.Match[bytes], base: int) -> bool:
    """Return True if an option is in an array: in a sentence, a comma may follow it too."""
    if found["sign"] is None:
        return _YAML_ITEM.search(text, base, start) is not None
    if found["quote"] and found["closed"]:
        return True
    return text.rfind(b"[", base, start) > max(text.rfind(b"]", base, start), text.rfind(b"\n", base, start))
