"""The state of an index as bytes, so that a long session need not be read twice.

An index is a function of the header and the lines that it has read. A line of JSON has its texts, tables and
peers; its columns follow as plain arrays. Lint findings are not part of it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.http_exchanges import GetTotals, HttpExchanges, RecordedHttpExchange
from mcpspy.core.session.index import Index, Slot
from mcpspy.core.session.request_table import Key, Moved, Question, TaskKey

COLUMNS = (
    *("at", "what", "size", "method", "subject", "stream"),
    *("_pair", "_id", "_state", "_http", "_offset", "_length"),
)
"""Arrays with an item per row."""

LISTS = ("wrong", "_part_rows", "_part_numbers")
"""Other arrays."""

_ORDER = array("H", [1]).tobytes().hex()

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class StoredTables(Struct, forbid_unknown_fields=True):
    """A `RequestTable`, with the row of each request; `_answered` is recalled from the columns.

    None after the end of a session: then no message is correlated any more.
    """

    slots: list[tuple[int, bool, bool, bool, State, int | None]]
    """The requests, each with the fields of its `Slot`; of the call that it polls, the row."""
    open: list[tuple[Key, list[int]]]
    unusual: list[tuple[Key, str]]
    doubled: list[Key]
    has_lost: bool
    stopping: list[str | None]
    progress: list[tuple[Key, int]]
    questions: list[tuple[Question, list[tuple[int, str | None]]]]
    posted: list[tuple[int, Key | None]]
    refused: dict[int, int]
    redirects: dict[int, str]
    accepted: dict[int, tuple[int, str]]
    checksums: dict[int, tuple[int, int]]
    moved: list[tuple[Moved, tuple[Key, float]]]
    disconnected: dict[int, str]
    tasks: list[tuple[TaskKey, int, str | None]]
    seen_events: list[tuple[str | None, str, int]]
    highest: list[tuple[tuple[str | None, str], int]]
    is_translated: bool
    own: list[Key]
    turned_away: list[tuple[Key, int]]


class StoredExchanges(Struct, forbid_unknown_fields=True):
    """The attributes of `HttpExchanges`."""

    exchanges: list[RecordedHttpExchange]
    open: list[int]
    gets: list[int]
    latest: dict[str, int]
    folded: list[int]
    totals: GetTotals


class StoredIndex(Struct, forbid_unknown_fields=True):
    """The attributes of an `Index`, by their names."""

    texts: list[str]
    streams: set[int]
    errors: int
    unanswered: int
    issues: int
    injections: int
    injected: set[int]
    why: dict[int, str]
    redirects: dict[int, str]
    polls: dict[int, int]
    tasks: set[int]
    ended: dict[int, float]
    finals: dict[int, int]
    shows: dict[int, int]
    folded: set[int]
    flaws: dict[int, str]
    effects: dict[int, str]
    instead: dict[int, int]
    codes: dict[int, int]
    outcomes: dict[int, State]
    held_seconds: dict[int, float | None]
    progress: dict[int, int]
    continues: dict[int, int]
    continued_by: dict[int, int]
    heads: dict[int, int]
    refusals: dict[int, int]
    _batch: dict[int, int]
    client: Peer | None
    server: Peer | None
    revision: str | None
    agreed_revision: str | None
    _requested: str | None
    client_capabilities: dict[str, Any]
    server_capabilities: dict[str, Any]
    exit: Note | None
    _exited: Note | None
    last_at: float
    _running: int
    held: dict[int, int]
    clients: dict[str, Peer]
    _handshakes: dict[str, int]
    _names_clients: bool
    is_over: bool
    messages: int
    crashes: list[int]
    last_stderr: list[int]
    _stderr: list[int]


class _State(Struct, forbid_unknown_fields=True):
    byteorder: str
    """The bytes of the number 1, in hex digits."""
    lengths: list[tuple[str, str, int]]
    """Name, type and length of each array."""
    index: StoredIndex
    http: StoredExchanges
    tables: StoredTables | None


def dump(index: Index) -> list[bytes | memoryview]:
    """Return the state of an index, in pieces. Raise ValueError if JSON cannot hold one of its values exactly.

    Some pieces are the memory of the index: it can take no rows while they exist. If the session has ended, the state
    does not suffice to add lines.
    """
    arrays = [(name, memoryview(getattr(index, name))[: len(index)]) for name in COLUMNS]
    arrays += [(name, memoryview(getattr(index, name)[:])) for name in LISTS]
    state = _State(
        _ORDER,
        [(name, values.format, len(values)) for name, values in arrays],
        StoredIndex(**{name: getattr(index, name) for name in StoredIndex.__struct_fields__}),
        _stored_exchanges(index.http_exchanges),
        stored_tables(index) if index.exit is None else None,
    )
    try:
        head = msgspec.json.encode(state)
        is_exact = msgspec.json.decode(head, type=_State) == state
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise ValueError(f"a value that JSON cannot hold: {error}") from None
    if not is_exact:
        raise ValueError("a value that JSON cannot hold exactly")
    return [head, b"\n", *(values for _, values in arrays)]


def restore(index: Index, data: bytes, begin: int = 0) -> None:
    """Give a new index of the same header the state that begins there. Raise ValueError if it is not one."""
    end = data.find(b"\n", begin)
    state = msgspec.json.decode(memoryview(data)[begin : max(end, begin)], type=_State)
    arrays: dict[str, array[Any]] = {}
    view, place = memoryview(data), end + 1
    for name, typecode, length in state.lengths:
        values = arrays[name] = array(typecode)
        values.frombytes(view[place : place + length * values.itemsize])
        if len(values) != length:
            raise ValueError("an array is too short")
        place += length * values.itemsize
    expected = {name: getattr(index, name).typecode for name in (*COLUMNS, *LISTS)}
    is_whole = place == len(data) and state.byteorder == _ORDER
    if not is_whole or {name: values.typecode for name, values in arrays.items()} != expected:
        raise ValueError("the arrays are not those of an index")
    if len({len(arrays[name]) for name in COLUMNS}) != 1:
        raise ValueError("the columns differ in length")
    tables = {} if state.tables is None else _tables(state.tables)
    for name, values in (*arrays.items(), *msgspec.structs.asdict(state.index).items()):
        setattr(index, name, values)
    for name, values in tables.items():
        setattr(index._pairing, name, values)
    _restore_exchanges(index.http_exchanges, state.http)
    index._handshakes = Counter(index._handshakes)
    index._text_numbers = {text: number for number, text in enumerate(index.texts)}
    index._count = index._room = len(index.at)
    index._recalled = 0


def _stored_exchanges(http: HttpExchanges) -> StoredExchanges:
    every = list((http.open | http.gets).values())
    return StoredExchanges(every, list(http.open), list(http.gets), http.latest, http.folded, http.totals)


def _restore_exchanges(http: HttpExchanges, stored: StoredExchanges) -> None:
    every = {exchange.number: exchange for exchange in stored.exchanges}
    try:
        http.open = {number: every[number] for number in stored.open}
        http.gets = {number: every[number] for number in stored.gets}
    except KeyError as error:
        raise ValueError(f"the HTTP exchange {error} is missing") from None
    http.listening = {
        number: each for number, each in http.open.items() if each.is_get and not each.is_refused
    }
    http.latest, http.folded, http.totals = stored.latest, stored.folded, stored.totals


def stored_tables(index: Index) -> StoredTables:
    """Return the content of the request table of an index."""
    table = index._pairing
    slots: dict[int, Slot] = {}

    def row(slot: Slot) -> int:
        slots[slot.row] = slot
        if slot.poll_of is not None:
            row(slot.poll_of)
        return slot.row

    def rows(found: Mapping[H, list[Slot]]) -> list[tuple[H, list[int]]]:
        return [(key, [row(slot) for slot in requests]) for key, requests in found.items()]

    return StoredTables(
        open=rows(table._open),
        questions=[
            (question, [(row(slot), stream) for slot, stream in asked])
            for question, asked in table._questions.items()
        ],
        tasks=[(key, row(call), stream) for key, (call, stream) in table._tasks.items()],
        progress=[(key, row(slot)) for key, slot in table._progress.items()],
        unusual=list(table.unusual.items()),
        doubled=sorted(table._doubled, key=repr),
        has_lost=table._has_lost,
        stopping=list(table.stopping),
        posted=list(table._posted.items()),
        refused=table._refused,
        redirects=table._redirects,
        accepted=table._accepted,
        checksums=table.checksums,
        moved=list(table.moved.items()),
        disconnected=table.disconnected,
        seen_events=[(*event, checksum) for event, checksum in table._seen_events.items()],
        highest=list(table.highest.items()),
        is_translated=table.is_translated,
        own=sorted(table._own, key=repr),
        turned_away=[(key, row(slot)) for key, slot in table._turned_away.items()],
        slots=[
            (
                *(slot.row, slot.is_subscription, slot.is_modern, slot.is_injected, slot.state),
                None if slot.poll_of is None else slot.poll_of.row,
            )
            for slot in slots.values()
        ],
    )


def _tables(stored: StoredTables) -> dict[str, Any]:
    """Return the attributes of a `RequestTable`. Raise ValueError if a request is missing."""
    slots = {slot[0]: Slot(*slot[:-1]) for slot in stored.slots}

    def requests(found: Iterable[tuple[T, list[int]]]) -> dict[T, list[Slot]]:
        return {key: [slots[row] for row in rows] for key, rows in found}

    try:
        for slot in stored.slots:
            slots[slot[0]].poll_of = None if slot[-1] is None else slots[slot[-1]]
        return {
            "_open": requests(stored.open),
            "_questions": {
                question: [(slots[row], stream) for row, stream in asked]
                for question, asked in stored.questions
            },
            "_tasks": {key: (slots[row], stream) for key, row, stream in stored.tasks},
            "_redirects": stored.redirects,
            "_accepted": stored.accepted,
            "checksums": stored.checksums,
            "moved": dict(stored.moved),
            "disconnected": stored.disconnected,
            "_progress": {key: slots[row] for key, row in stored.progress},
            "unusual": dict(stored.unusual),
            "_doubled": set(stored.doubled),
            "_has_lost": stored.has_lost,
            "stopping": set(stored.stopping),
            "_posted": dict(stored.posted),
            "_refused": stored.refused,
            "_seen_events": {(stream, event): checksum for stream, event, checksum in stored.seen_events},
            "highest": dict(stored.highest),
            "is_translated": stored.is_translated,
            "_own": set(stored.own),
            "_turned_away": {key: slots[row] for key, row in stored.turned_away},
        }
    except KeyError as error:
        raise ValueError(f"the request in row {error} is missing") from None
