"""Fuzz targets: properties of any bytes, which a fuzzer calls, and the tests call with the corpus.

Each takes bytes and raises AssertionError, or an error of the tested code, if the property fails. No target is random.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import duckdb

from fuzz import http_exchanges
from fuzz.exchange_machine import machine
from fuzz.filters import STORED, page_filter, same_rows
from fuzz.http_messages import requests, responses
from fuzz.scripts import scripts
from fuzz.views import views
from mcpspy.analysis.lake.filter import lake_filters
from mcpspy.analysis.lake.schema import TABLES
from mcpspy.analysis.lake.tables import SessionTables
from mcpspy.analysis.lint import Finding, Linter
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import RULES
from mcpspy.core.framing import LineFramer, SseFramer
from mcpspy.core.importers.formats import DATABASE, FORMATS, HEAD, recognise
from mcpspy.core.intercept.actions import CommandError, Step
from mcpspy.core.intercept.commands import parse_command
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.trust_guard import ON_CHANGE, TrustGuard
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.query import parser
from mcpspy.core.recording import strict_json as early
from mcpspy.core.recording.decode import Damaged, Frame, read_entry, read_header
from mcpspy.core.recording.encode import FrameEncoder, is_utf8
from mcpspy.core.recording.encode_body import SseEncoder
from mcpspy.core.recording.strict_json import MAX_DEPTH, are_strict, flaw
from mcpspy.core.redact import redactor as redaction_module
from mcpspy.core.redact.redactor import JOINED, Redactor
from mcpspy.core.rules.model import Rules
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.core.trust.lock import read_lock
from mcpspy.errors import UsageError
from mcpspy.ui.model.filter_items import ChangeItem
from tests.core.mock.talking import recordings_of
from tests.core.trust.locks import trusted
from tests.strict import strict_json


def framing(data: bytes) -> None:
    """Lines and events do not depend on chunking, and none is lost."""
    cuts, stream = _cut(data)
    framer = LineFramer()
    lines = [line for chunk in cuts for line in framer.feed(chunk)]
    torn = b"".join(framer.close())
    assert b"".join(line + b"\n" for line in lines) + torn == stream
    assert _events(cuts) == _events([stream])


def recording(data: bytes) -> None:
    """Messages are read back from the file byte for byte, and events are read as they were written."""
    cuts, stream = _cut(data)
    encoder = FrameEncoder("client")
    written = b"".join(_joined(encoder.feed(0.0, chunk)) for chunk in cuts) + _joined(encoder.close(0.0))
    entries = [read_entry(line) for line in written.split(b"\n")[:-1]]
    read = [entry for entry in entries if isinstance(entry, Frame)]
    assert len(read) == len(entries)
    assert b"".join(frame.data + frame.eol.encode() for frame in read) == stream
    events = SseEncoder("server", {"stream": "s", "http": 1})
    lines = b"".join(_joined(events.feed(0.0, chunk)[1]) for chunk in cuts) + _joined(events.close(0.0))
    assert not any(isinstance(read_entry(line), Damaged) for line in lines.split(b"\n")[:-1])


def reading(data: bytes) -> None:
    """Any file is read or rejected as not a recording; Session and Index agree on it."""
    head, _, rest = data.partition(b"\n")
    try:
        header = read_header(head)
    except UsageError:
        header = None
    session, index = Session(header), Index(header)
    offset, lines = 0, rest.split(b"\n")
    for line in lines:
        session.add(read_entry(line))
    index.add_lines(lines, offset)
    assert index.pending == len(session.pending)
    for change in session.changes:
        item = ChangeItem(change)
        for field in ("kind", "method", "subject", "id", "status", "latency", "size", "stream", "has_issue"):
            getattr(item, field)
        item.text()


def filtering(data: bytes) -> None:
    """A filter can be evaluated, or is rejected with a position inside it."""
    text = data.decode("utf-8", "replace")
    try:
        query = parser.parse(text)
    except parser.QueryError as error:
        if not 0 <= error.start <= error.end <= len(text) + 1:
            raise AssertionError(f"{error} at {error.start} to {error.end}") from error
        return
    for item in _ITEMS:
        assert query.matches(item) in (True, False)


def exchanges(data: bytes) -> None:
    """The short ways of the HTTP proxy forward and record what the long way does."""
    http_exchanges.encoders(_cut(data)[0])
    http_exchanges.exchanges(data)


def redaction(data: bytes) -> None:
    """Nothing is redacted that the pre-filter does not see, and what is redacted is not redacted again.

    How the lines of a recording are divided into writes and buffers does not matter.
    """
    redactor = Redactor(b"key")
    redacted = redactor._read(data)
    assert redactor.message(data) == redacted
    # What is left of a private key without an end may have the quote that closed another value.
    assert redactor.message(redacted) == redacted or data.rfind(b"-----BEGIN") > data.rfind(b"-----END")
    chunks, _ = _cut(data)
    encoder = FrameEncoder("client")
    fed = [[*_buffers(encoder.feed(0.0, chunk))] for chunk in chunks] + [[*_buffers(encoder.close(0.0))]]
    written = b"".join(map(b"".join, fed))
    whole = Redactor(b"key").lines(written)
    redactor = Redactor(b"key")
    assert b"".join(redactor.lines(line + b"\n") for line in written.split(b"\n")[:-1]) == whole
    redactor, redaction_module.JOINED = Redactor(b"key"), 64  # As if the lines were long.
    try:
        assert b"".join(_joined(redactor.buffers(buffers)) for buffers in fed) == whole
    finally:
        redaction_module.JOINED = JOINED


def strictness(data: bytes) -> None:
    """A text is strict JSON, in any pieces, if Python's parser accepts it without its extensions, up to a depth."""
    pieces, text = _cut(data)
    if not text.startswith((b"{", b"[")) or not text.endswith((b"}", b"]")) or not is_utf8([text]):
        return
    try:
        value = json.loads(
            text.decode(),
            parse_constant=_reject,
            parse_int=str,
            parse_float=str,
            object_pairs_hook=_with_duplicates,
        )
        json.dumps(value, ensure_ascii=False).encode()  # Raises for a lone surrogate.
        is_strict = _depth(value) <= MAX_DEPTH
    except (ValueError, RecursionError):
        is_strict = False
    assert (flaw([piece for piece in pieces if piece]) is None) == is_strict
    if b"\n" not in text and text.startswith(b"{") and text.endswith(b"}"):
        assert are_strict(text + b"\n{}\n", 2) == is_strict
    known, early._parsers = early._parsers, early._Parsers()
    try:
        assert (flaw([text]) is None) == is_strict
    finally:
        early._parsers = known


def _with_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object with every value: a duplicate key must not hide one that is not strict."""
    return {f"{number}:{key}": value for number, (key, value) in enumerate(pairs)}


def _reject(constant: str) -> None:
    raise ValueError(constant)


def _depth(value: object) -> int:
    """Return the levels of arrays and objects."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if items is None else 1 + max(map(_depth, items), default=0)


def mock(data: bytes) -> None:
    """A mock of any recording takes any messages, and sends each message on one line."""
    recorded, _, received = data.partition(b"\n\n")
    session = Session(HEADER)
    for line in recorded.split(b"\n"):
        session.add(read_entry(line))
    session.end()
    options = MockOptions(
        match=[*MatchMode][len(recorded) % len(MatchMode)], plays_nearest=bool(len(data) % 2)
    )
    client = MockSession(recordings_of([("r.jsonl", session)]), options, 0.0)
    for at, line in enumerate(received.split(b"\n")):
        client.receive(line, float(at))
        assert not any(b"\n" in outgoing.data for outgoing in client.take(float(at)))
    client.close(1e3)
    assert not any(b"\n" in outgoing.data for outgoing in client.take(1e9))


def imports(data: bytes) -> None:
    """A file of another tool becomes entries of a recording, or is refused with one line."""
    number, data = (data[0], data[1:]) if data else (0, b"")
    with suppress(UsageError):
        readers = [each for each in FORMATS.values() if each.opening != DATABASE]
        for session in (
            recognise(data[:HEAD]) if number == ord("?") else readers[number % len(readers)]
        ).importer()(data):
            for line in session.lines:
                strict_json(line)
                assert not isinstance(read_entry(line.rstrip(b"\n")), Damaged)


def trust(data: bytes) -> None:
    """The check of a lockfile takes any message, and a request that it need not parse is one that it allows."""
    assert _checked(data, TrustGuard) == _checked(data, _ParsingGuard)


class _ParsingGuard(TrustGuard):
    """A check that parses every message."""

    def passes(self, side: str, data: bytes) -> bool:
        return False


def lockfile(data: bytes) -> None:
    """A lockfile is read, or rejected with one line."""
    with suppress(UsageError):
        read_lock(data.decode("utf-8", "replace"), "mcp.lock")


def orders(data: bytes) -> None:
    """An order of a viewer or of the process of scripts is read, or refused with one line."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(fields, dict):
        with suppress(CommandError):
            parse_command(fields)


def tables(data: bytes) -> None:
    """Any recording becomes rows that Parquet can store, with a value for each column."""
    session = Session(HEADER)
    for line in data.split(b"\n"):
        session.add(read_entry(line))
    session.end()
    found = SessionTables(session, (), STORED)
    assert found.server
    for table, columns in TABLES.items():
        for row in found.rows(table):
            assert len(row) == len(columns), (table, row)
            for value in row:
                assert not isinstance(value, int) or -(1 << 63) <= value < 1 << 63, (table, row)
                assert not isinstance(value, str) or value.encode() is not None, (table, row)


def lint(data: bytes) -> None:
    """The rules that are skipped for most messages find nothing in them."""
    assert _findings(data, RULES) == _findings(data, UNSKIPPED)


def lake_filter(data: bytes) -> None:
    """A filter becomes one condition of SQL, whatever its text, which selects what it matches; or it is rejected."""
    text = data.decode("utf-8", "replace")
    try:
        filters = lake_filters(text)
    except (parser.QueryError, UsageError):
        return
    for each in filters:
        for condition in (each.sure, *([each.undecided] if each.doubtful else [])):
            query = f"SELECT {each.columns} FROM t WHERE {condition}"  # noqa: S608
            assert len(SQL.extract_statements(query)) == 1, condition
        same_rows(each, text)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "framing": framing,
    "recording": recording,
    "reading": reading,
    "filtering": filtering,
    "requests": lambda data: requests(_cut(data)[0]),
    "responses": lambda data: responses(_cut(data)[0]),
    "exchanges": exchanges,
    "machine": machine,
    "views": views,
    "scripts": scripts,
    "redaction": redaction,
    "trust": trust,
    "mock": mock,
    "imports": imports,
    "strictness": strictness,
    "lockfile": lockfile,
    "orders": orders,
    "tables": tables,
    "lint": lint,
    "lake_filter": lake_filter,
    "page_filter": page_filter,
}


def _checked(data: bytes, create: type[TrustGuard]) -> list[tuple[bool, list[Step]]]:
    """Return the decisions on messages; those of the server begin with `<`, and the first byte gives the mode."""
    said: list[str] = []
    guard = create(trusted(POLICY), ON_CHANGE[data[0] % len(ON_CHANGE) if data else 0], said.append)
    engine = Interceptor(Rules((), 0), prefix="mcpspy-", trust=guard)
    found = []
    for at, line in enumerate(data[1:].split(b"\n")):
        side, message = "server" if line[:1] == b"<" else "client", line[1:]
        decision = engine.process(at, side, message)
        # A result that no one waits for is not parsed, whatever it lists.
        if not any(isinstance(part, Result) for part in read_frame(Frame(at, side, message))):
            found.append((decision.to_mcpspy, decision.steps))
    return found


def _cut(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the chunks and the whole: the first byte is the number of cuts, which the next bytes give."""
    count, data = (data[0] % 8, data[1:]) if data else (0, b"")
    positions, stream = sorted(data[:count]), data[count:]
    bounds = [0, *(position * len(stream) // 256 for position in positions), len(stream)]
    return [stream[a:b] for a, b in pairwise(bounds)], stream


def _events(chunks: Iterable[bytes]) -> list[tuple[object, ...]]:
    framer = SseFramer()
    events = [event for chunk in chunks for event in framer.feed(chunk)]
    if (last := framer.close()) is not None:
        events.append(last)
    return [
        (event.event, event.id, event.retry, event.data and b"".join(event.data), event.lacks)
        for event in events
    ]


def _findings(data: bytes, rules: tuple[LintRule, ...]) -> list[Finding]:
    session, linter = StreamingSession(HEADER), Linter(HEADER, rules)
    found = []
    for line in data.split(b"\n"):
        for change in session.add(read_entry(line)):
            found += linter.add(change)
    session.end()
    return found + linter.end()


def _buffers(lines: bytes | Iterable[bytes | bytearray]) -> Iterable[bytes | bytearray]:
    return ([lines] if lines else []) if isinstance(lines, bytes) else lines


def _joined(lines: bytes | Iterable[bytes | bytearray]) -> bytes:
    return lines if isinstance(lines, bytes) else b"".join(lines)


def _items() -> list[ChangeItem]:
    session = Session()
    for line in (
        b'{"t":0.1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}}',
        b'{"t":0.2,"from":"server","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}}',
        b'{"t":0.3,"from":"server","why":"not a JSON object or array","raw":"DEBUG"}',
        b'{"t":0.4,"note":"stderr","text":"Traceback"}',
    ):
        session.add(read_entry(line))
    return [ChangeItem(change) for change in session.changes]


_ITEMS = _items()
HEADER = read_header(b'{"mcpspy":1,"id":"0","started":"2026-11-26T00:00:00.000Z","name":"s","command":["s"]}')
UNSKIPPED = tuple(
    replace(rule, unusual=False, beyond_plain=False, beyond_compact=False, in_meta=False) for rule in RULES
)
POLICY = """[servers.sample.policy]
deny = ["ad*"]
calls_per_minute = 3
sampling = 1
[servers.sample.policy.arguments.echo]
properties.text.maxLength = 3
"""
SQL = duckdb.connect()
