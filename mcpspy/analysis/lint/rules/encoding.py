"""How a message is written: UTF-8, line ends, and JSON that every peer reads alike.

Owns the rules that look at its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ERROR, EVERY_LINE, INFO, MESSAGES, WARNING, Report, RuleFamily
from mcpspy.analysis.lint.rules.jsonrpc import PING, STDIO_PAGE, reason
from mcpspy.core.protocol.spec import CLIENT, SERVER

RULES = RuleFamily()
rule = RULES.rule

JSON = "https://www.rfc-editor.org/rfc/rfc8259"

EXACT = 2**53 - 1
"""The largest integer that every peer can hold (RFC 8259, 6)."""

_WHO = {CLIENT: "the client", SERVER: "the server"}


@rule(
    "ENV110",
    ERROR,
    "not UTF-8",
    page="2025-11-25/basic/transports",
    on=EVERY_LINE,
    odd=True,
    valid=('> {"id":2,"method":"ping","params":{"x":"\u00e9"}}\n< {"id":2,"result":{}}',),
    invalid=('> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":"\\xe9"}}',),
)
def utf8(seen: LintEvent) -> Iterator[Report]:
    """Messages are UTF-8. A server on Windows that writes text in the console's code page, or a file read as
    bytes and passed on; Python clients end with a UnicodeDecodeError, others show replacement characters.
    """
    if "not UTF-8" in seen.message.flaws:
        yield Report("bytes that are not UTF-8")


@rule(
    "ENV111",
    ERROR,
    "a byte order mark",
    page=JSON + "#section-8.1",
    on=EventKind.MALFORMED,
    valid=(PING,),
    invalid=('<< \\xef\\xbb\\xbf{"jsonrpc":"2.0","method":"notifications/x"}',),
)
def mark(seen: LintEvent) -> Iterator[Report]:
    """JSON does not begin with one. A .NET or PowerShell writer does so unless told otherwise (`new
    UTF8Encoding(false)`); peers drop the first message, which is `initialize` or its answer.
    """
    if reason(seen) == "starts with a byte order mark":
        yield Report("begins with a byte order mark")


@rule(
    "ENV112",
    INFO,
    "a line that ends with CR LF",
    page=STDIO_PAGE,
    on=EVERY_LINE,
    once=True,
    odd=True,
    valid=(PING,),
    invalid=('> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{}}\\x0d',),
)
def carriage_return(seen: LintEvent) -> Iterator[Report]:
    """Lines end with a newline. A CR before it is white space to JSON, so most peers do not mind; it comes from a
    stdout in text mode on Windows. Told once for each side.
    """
    if seen.message.frame.eol == "\r\n" and seen.message.frame.http is None and seen.data.strip():
        yield Report(f"{_WHO[seen.side]} ends its lines with CR LF")


@rule(
    "ENV113",
    WARNING,
    "a last line without its end",
    page=STDIO_PAGE,
    on=EVERY_LINE,
    odd=True,
    valid=(PING,),
    invalid=('> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{}}\\x04',),
)
def torn(seen: LintEvent) -> Iterator[Report]:
    """The message ended with the stream, not with a newline: the writer died over it, or forgot to write or flush
    the end. TypeScript peers never see such a message.
    """
    frame = seen.message.frame
    if frame.eol == "" and frame.http is None and frame.stream is None:
        yield Report("the message has no newline: some peers never see it")


@rule(
    "ENV114",
    WARNING,
    "a key that is there twice",
    page=JSON + "#section-4",
    on=MESSAGES,
    valid=(PING, '> {"id":2,"method":"ping","params":{"a\\":":1,"b":{"a\\":":1}}}\n< {"id":2,"result":{}}'),
    invalid=(
        '>> {"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":1,"a":2}}\n< {"id":2,"result":{}}',
        '>> {"jsonrpc":"2.0","id":2,"method":"ping","params":{"a" :1,"\\u0061":2}}\n< {"id":2,"result":{}}',
    ),
)
def twice(seen: LintEvent) -> Iterable[Report]:
    """Which of the two counts is anybody's guess, and a proxy and a server may guess differently: what one of them
    checks is then not what the other does.
    """
    return () if seen.is_compact or _has_no_more(seen) else _doubled(seen.data)


def _doubled(data: bytes) -> Iterator[Report]:
    doubled: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in members]
        doubled.extend(
            key for key in dict.fromkeys(keys) if len(set(keys)) < len(keys) and keys.count(key) > 1
        )

    try:
        json.loads(data.decode("utf-8", "replace"), object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return
    for key in dict.fromkeys(doubled):
        yield Report(f"the key {json.dumps(key, ensure_ascii=False)} is there twice")


def _has_no_more(seen: LintEvent) -> bool:
    """Whether it has no more keys than it has when it is decoded; then each is there once.

    Where no blank stands before a colon, each key ends in `":`; more of them than keys may also be in texts. Counting
    takes a hundredth of reading it with a hook.
    """
    data, document = seen.data, seen.document
    if data.count(b'":') == _keys(document) and not any(blank in data for blank in _BEFORE_COLON):
        return True
    try:
        same = orjson.dumps(document).count(b'"') == data.count(b'"')
    except TypeError:  # Integers beyond 64 bits, lone surrogates.
        return False
    return same and b"\\u0022" not in data


_BEFORE_COLON = (b" :", b"\t:", b"\n:", b"\r:")


def _keys(document: Any) -> int:
    """Return how many members the objects of a document have, all together."""
    count, todo = 0, [document]
    while todo:
        value = todo.pop()
        if type(value) is dict:
            count += len(value)
            todo += value.values()
        elif type(value) is list:
            todo += value
    return count


@rule(
    "ENV115",
    WARNING,
    "an integer beyond 2^53",
    page=JSON + "#section-6",
    on=MESSAGES,
    valid=(
        '> {"id":2,"method":"ping","params":{"n":9007199254740991,"s":"12345678901234567890"}}\n< {"id":2,"result":{}}',
    ),
    invalid=('> {"id":2,"method":"ping","params":{"n":9007199254740993}}\n< {"id":2,"result":{}}',),
)
def exact(seen: LintEvent) -> Iterable[Report]:
    """Peers in JavaScript round it to another number, and say nothing. Send large integers as strings."""
    return _large(seen.data) if b"0000000000000000" in seen.folded else ()


def _large(data: bytes) -> Iterator[Report]:
    large: list[str] = []

    def integer(text: str) -> int:
        if len(text) >= 16 and (len(text) > 18 or abs(int(text)) > EXACT):
            large.append(text)
        return 0

    try:
        json.loads(data.decode("utf-8", "replace"), parse_int=integer)
    except (ValueError, RecursionError):
        return
    for text in dict.fromkeys(large[:3]):
        yield Report("an integer that JavaScript peers round", text)


@rule(
    "ENV117",
    WARNING,
    "NaN, Infinity or half a surrogate pair",
    page=JSON,
    on=EVERY_LINE,
    odd=True,
    valid=(PING,),
    invalid=(
        '> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":NaN}}',
        '> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":"\\ud800"}}',
    ),
)
def strict(seen: LintEvent) -> Iterator[Report]:
    """Python's `json` writes and takes NaN, Infinity and lone surrogates; others refuse the whole message."""
    if "not strict JSON" in seen.message.flaws:
        yield Report("not strict JSON: NaN, Infinity, or half a surrogate pair")
