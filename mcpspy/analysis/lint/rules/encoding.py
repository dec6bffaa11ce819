"""The bytes of a message: UTF-8, line endings, and JSON that all peers decode to the same value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import EVERY_LINE, MESSAGES, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.jsonrpc import PING, STDIO_PAGE, reason
from mcpspy.core.protocol.spec import CLIENT, SERVER

JSON = "https://www.rfc-editor.org/rfc/rfc8259"

EXACT = 2**53 - 1
"""The largest integer that every peer can represent (RFC 8259, 6)."""

_DIGITS = b"0" * len(str(EXACT))
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)

_WHO = {CLIENT: "the client", SERVER: "the server"}


_BEFORE_COLON = (b" :", b"\t:", b"\n:", b"\r:")

line = RuleGroup(RULES, page=STDIO_PAGE, on=EVERY_LINE, unusual=True, valid=PING)
message = RuleGroup(RULES, on=MESSAGES)


@line.error(
    "ENV110",
    "message that is not UTF-8",
    page="2025-11-25/basic/transports",
    valid='> {"id":2,"method":"ping","params":{"x":"\u00e9"}}\n< {"id":2,"result":{}}',
    invalid='> {"id":2,"method":"x"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":"\\xe9"}}',
)
def utf8(event: LintEvent) -> Iterator[Report]:
    """Messages must be UTF-8. Typical causes: a server on Windows writes text in the console's code page, or forwards
    the bytes of a file unchecked. Python clients fail with a UnicodeDecodeError, others show replacement characters.
    """
    if "not UTF-8" in event.message.flaws and event.cut is None:
        yield Report("the message contains bytes that are not UTF-8")


@line.error(
    "ENV111",
    "byte order mark",
    page=JSON + "#section-8.1",
    on=EventKind.MALFORMED,
    invalid='<< \\xef\\xbb\\xbf{"jsonrpc":"2.0","method":"notifications/x"}',
    unusual=False,
)
def byte_order_mark(event: LintEvent) -> Iterator[Report]:
    """JSON must not begin with a byte order mark. .NET and PowerShell write one by default; use `new
    UTF8Encoding(false)`. Peers drop the first message, which is `initialize` or its response.
    """
    if reason(event) == "starts with a byte order mark":
        yield Report("the message begins with a byte order mark")


@line.info(
    "ENV112",
    "line that ends with CR LF",
    once=True,
    invalid='> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{}}\\x0d',
)
def carriage_return(event: LintEvent) -> Iterator[Report]:
    """Lines end with a newline. JSON treats a CR before it as white space, so most peers accept it. It comes from a
    stdout in text mode on Windows. Reported once per side.
    """
    if event.message.frame.eol == "\r\n" and event.message.frame.http is None and event.data.strip():
        yield Report(f"{_WHO[event.side]} ends its lines with CR LF")


@line.warning(
    "ENV113",
    "last line without a newline",
    invalid='> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{}}\\x04',
)
def incomplete_line(event: LintEvent) -> Iterator[Report]:
    """The message ended with the stream instead of a newline: the writer crashed, or did not write or flush the
    newline. TypeScript peers never receive such a message.
    """
    frame = event.message.frame
    if frame.eol == "" and frame.http is None and frame.stream is None and event.cut is None:
        yield Report("the message has no newline: some peers never receive it")


@message.warning(
    "ENV114",
    "duplicate key",
    page=JSON + "#section-4",
    beyond_compact=True,
    valid=(PING, '> {"id":2,"method":"ping","params":{"a\\":":1,"b":{"a\\":":1}}}\n< {"id":2,"result":{}}'),
    invalid=(
        '>> {"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":1,"a":2}}\n< {"id":2,"result":{}}',
        '>> {"jsonrpc":"2.0","id":2,"method":"ping","params":{"a" :1,"\\u0061":2}}\n< {"id":2,"result":{}}',
    ),
)
def duplicate_key(event: LintEvent) -> Iterable[Report]:
    """Parsers disagree on which of the two values counts. A proxy and a server may pick different ones, so a value that
    one of them checks may not be the value that the other uses.
    """
    return () if _has_no_duplicates(event) else _duplicate_keys(event.data)


def _duplicate_keys(data: bytes) -> Iterator[Report]:
    doubled: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in members]
        doubled.extend(
            key for key in dict.fromkeys(keys) if len(set(keys)) < len(keys) and keys.count(key) > 1
        )

    if not _decodes(data, object_pairs_hook=pairs):
        return
    for key in dict.fromkeys(doubled):
        yield Report(f"duplicate key {json.dumps(key, ensure_ascii=False)}")


def _decodes(data: bytes, **hooks: Any) -> bool:
    """Decode a message with hooks that collect values; return False if it cannot be decoded."""
    try:
        json.loads(data.decode("utf-8", "replace"), **hooks)
    except (ValueError, RecursionError):
        return False
    return True


def _has_no_duplicates(event: LintEvent) -> bool:
    """Return whether the text has as many keys as the decoded message; then it has no duplicate keys.

    Without blanks before colons, each key ends in `":`; strings may contain more of these. Counting takes a hundredth
    of the time of decoding with a hook.
    """
    data, document = event.data, event.document
    if data.count(b'":') == _keys(document) and not any(blank in data for blank in _BEFORE_COLON):
        return True
    try:
        same = orjson.dumps(document).count(b'"') == data.count(b'"')
    except TypeError:  # Integers beyond 64 bits, lone surrogates.
        return False
    return same and b"\\u0022" not in data


def _keys(document: Any) -> int:
    """Return the number of members of all objects in a document."""
    count, todo = 0, [document]
    while todo:
        value = todo.pop()
        if type(value) is dict:
            count += len(value)
            todo += value.values()
        elif type(value) is list:
            todo += value
    return count


@message.warning(
    "ENV115",
    "integer beyond 2^53",
    page=JSON + "#section-6",
    beyond_compact=True,
    valid='> {"id":2,"method":"ping","params":{"n":9007199254740991,"s":"12345678901234567890"}}\n< {"id":2,"result":{}}',
    invalid='> {"id":2,"method":"ping","params":{"n":9007199254740993}}\n< {"id":2,"result":{}}',
)
def large_integer(event: LintEvent) -> Iterable[Report]:
    """JavaScript peers silently round it to another number. Send large integers as strings."""
    return () if _DIGITS not in event.data.translate(_ZEROS) else _large(event.data)


def _large(data: bytes) -> Iterator[Report]:
    large: list[str] = []

    def integer(text: str) -> int:
        if len(text) >= 16 and (len(text) > 18 or abs(int(text)) > EXACT):
            large.append(text)
        return 0

    if not _decodes(data, parse_int=integer):
        return
    for text in dict.fromkeys(large[:3]):
        yield Report("integer that JavaScript peers round", text)


@line.warning(
    "ENV117",
    "NaN, Infinity or a lone surrogate",
    page=JSON,
    invalid=(
        '> {"id":2,"method":"x"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":NaN}}',
        '> {"id":2,"method":"x"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":"\\ud800"}}',
    ),
)
def strict(event: LintEvent) -> Iterator[Report]:
    """Python's `json` writes and accepts NaN, Infinity and lone surrogates; other parsers reject the whole message."""
    if "not strict JSON" in event.message.flaws:
        yield Report("not strict JSON: NaN, Infinity, or a lone surrogate")
