"""Fast path of the loader, from the lines of a recording to interactions.

It reads plain requests and results, nearly all lines of a long recording, in a fifth of the time that `loader`
takes. `loader` reads the rest: notifications, errors, questions, tasks, handshakes, lenient JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, DecodeError, Struct
from msgspec.json import Decoder

from mcpspy.core.mock.loader import InteractionLoader, TrackedRequest
from mcpspy.core.mock.matching import plain_key
from mcpspy.core.mock.store import MODERN, InteractionStore
from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.plain_line import ABSENT, PAYLOAD, plain_id, plain_line_raw
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Entry, Frame, Header, Note, read_entry
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session.exchange import SUBSCRIBE

_NOT_PLAIN = (*HANDSHAKE_METHODS, SUBSCRIBE)
"""Requests that need more processing than a look-up by key."""


class _HttpNote(Struct, gc=False):
    """Relevant members of the notes on an HTTP exchange; every exchange has two notes."""

    t: float
    note: str
    http: int
    status: int | None = None
    hung_up: str | None = None


_decode_note = Decoder(_HttpNote).decode


class FastInteractionLoader(InteractionLoader):
    def __init__(self, store: InteractionStore, header: Header | None = None) -> None:
        super().__init__(store, header)
        self._plain: dict[str, int] = {}
        """Id → row of the open plain requests over stdio that are not in the request table."""

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Add consecutive lines, the first one at `offset`; return the offset of the next line."""
        number = 0
        while True:
            number, offset = self._add_plain(lines, number, offset)
            if number == len(lines):
                return offset
            line = lines[number]
            self.add(read_entry(line), line, offset)
            number, offset = number + 1, offset + len(line) + 1

    def add(self, entry: Entry, line: bytes = b"", offset: int = 0) -> None:
        for id, row in self._plain.items():  # noqa: A001
            key = (None, CLIENT, id)
            is_modern = bool(self.store.flags(row) & MODERN)
            tracked = TrackedRequest(row, self.store.number_of(row), key, is_modern=is_modern)
            self._pairing.request(tracked, Frame(0.0, CLIENT, b""), id, None, modern=True)
            self.causes.open_request(row, None)
        self._plain.clear()
        super().add(entry, line, offset)

    def _add_plain(self, lines: Sequence[bytes], number: int, offset: int) -> tuple[int, int]:  # noqa: PLR0912, PLR0915 - see below.
        """Add plain lines from `number` on; return the number and offset of the first line that is not plain.

        A million lines are read while the user waits: smaller functions would double the time.
        """
        store, pairing, plain = self.store, self._pairing, self._plain
        causes, interceptions = self.causes, self._interceptions
        ignored, add_request = store.ignored, store.index.add_request
        while number < len(lines):
            line = lines[number]
            read = plain_line_raw(line)
            if read is None:
                if PAYLOAD in line or not self._note_http(line):
                    break
                number, offset = number + 1, offset + len(line) + 1
                continue
            head, message, data = read
            id = plain_id(message.id)  # noqa: A001
            if id is None:
                break
            where = offset + len(line) - 1 - len(data), len(data)
            method, result, http = message.method, message.result, head.http
            is_alone = http is None and head.stream is None
            if method is not UNSET:
                if head.side != CLIENT or result is not UNSET or method in _NOT_PLAIN or MARK in line:
                    break
                params = b"" if message.params is UNSET else bytes(message.params)
                matched = plain_key(method, params, ignored)
                key = (head.stream, CLIENT, id)
                if matched is None or id in plain or pairing.knows(key):
                    break
                version = matched.version
                row = store.begin(where, head.t, self.exchanges, 0 if version is None else MODERN)
                add_request(row, matched.digest, method, matched.subject, answers=False)
                if version is not None:
                    store.index.versions.add(version)
                if matched.token is None and is_alone:
                    plain[id] = row
                else:
                    tracked = TrackedRequest(row, self.exchanges, key, is_modern=version is not None)
                    frame = Frame(head.t, CLIENT, b"", head.stream, http)
                    pairing.request(tracked, frame, id, matched.token, modern=True)
                    if http is not None:
                        causes.exchanges[http] = row
                    causes.open_request(row, head.stream)
                causes.follow(head.stream, row)
                self.exchanges += 1
                interceptions.last = None
            else:
                if (
                    head.side != SERVER
                    or result is UNSET
                    or (self.server is None and result.meta is not ABSENT)
                ):
                    break
                answered = plain.pop(id, None) if is_alone else None
                if answered is not None:
                    store.answer(answered, where, max(0.0, head.t - store.at(answered)), Result)
                    interceptions.last = answered, 0
                elif (request := pairing.take_pending((head.stream, CLIENT, id))) is not None:
                    if request.handshake is not None:
                        (response,) = read_frame(Frame(head.t, SERVER, data))
                        if isinstance(response, Result):
                            self._take_handshake(request, response)
                    self._answered(request, Result, head.t, where)
                else:
                    break
                self.has_server = True
            number, offset = number + 1, offset + len(line) + 1
        return number, offset

    def _note_http(self, line: bytes) -> bool:
        if b'"note":"http' not in line:
            return False
        try:
            note = _decode_note(line)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return False
        self._interceptions.last = None
        fields = {"http": note.http, "status": note.status, "hung_up": note.hung_up}
        self._add_note(Note(note.t, note.note, fields))
        return True
