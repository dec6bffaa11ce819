"""The short way from the lines of a recording to its scenes.

Owns the reading of requests and results of which nothing is odd: nearly all of
a long recording, at a fifth of what any message takes. Refuses whatever is not
plain: notifications, errors, questions, tasks, introductions, and what only a
lenient reader takes. That goes the way of `script`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from mcpspy.core.mock.loader import Script, Slot
from mcpspy.core.mock.matching import glance, is_plain
from mcpspy.core.mock.store import MODERN, Shelf
from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Entry, Frame, Header, Note, read_entry
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session.exchange import SUBSCRIBE, Event

_ABSENT = Raw(b"")
_PAYLOAD = b',"msg":'
_GREAT = (*INTRODUCTIONS, SUBSCRIBE)
"""Requests that say more than what they ask for."""

_COMPLETE = ("", "complete")


class _Head(Struct, gc=False, forbid_unknown_fields=True):
    """What stands before the payload, but for an event that may come again."""

    t: float
    side: str = field(name="from")
    stream: str | None = None
    http: int | None = None
    event: str | None = None
    eol: str = "\n"


class _HttpNote(Struct, gc=False):
    """What is asked of the notes on an HTTP exchange; there are two of each."""

    t: float
    note: str
    http: int
    status: int | None = None
    hung_up: str | None = None


class _Result(Struct, gc=False):
    meta: Raw = field(name="_meta", default=_ABSENT)
    result_type: str = field(name="resultType", default="")
    task: Raw = _ABSENT


class _Message(Struct, gc=False):
    jsonrpc: str
    id: Raw = _ABSENT
    method: str | UnsetType = UNSET
    params: Raw = _ABSENT
    result: _Result | UnsetType = UNSET
    error: Raw = _ABSENT


_decode_head = Decoder(_Head).decode
_decode_note = Decoder(_HttpNote).decode
_decode = Decoder(_Message).decode


class QuickScript(Script):
    """A script of lines."""

    def __init__(self, shelf: Shelf, header: Header | None = None) -> None:
        super().__init__(shelf, header)
        self._asked: dict[str, int] = {}
        """Ids of plain requests over stdio that wait for their answer, and that pairing need not know of; their rows."""

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Take lines that follow each other, the first at `offset`; return where the next one begins."""
        number = 0
        while True:
            number, offset = self._add_plain(lines, number, offset)
            if number == len(lines):
                return offset
            line = lines[number]
            self.add(read_entry(line), line, offset)
            number, offset = number + 1, offset + len(line) + 1

    def add(self, entry: Entry, line: bytes = b"", offset: int = 0) -> None:
        """Take any entry."""
        for id, row in self._asked.items():  # noqa: A001
            key = (None, CLIENT, id)
            is_modern = bool(self.shelf.flags(row) & MODERN)
            self._pairing.ask_plainly(
                Slot(row, self.shelf.number_of(row), key, is_modern=is_modern), key, None
            )
            self.placement.wait(row, None)
        self._asked.clear()
        super().add(entry, line, offset)

    def _add_plain(self, lines: Sequence[bytes], number: int, offset: int) -> tuple[int, int]:  # noqa: PLR0912, PLR0915 - see below.
        """Take lines from a number on as long as they are plain.

        Return the number and the offset of the first that is not. A million are
        read while somebody waits: calls and attributes would cost twice the time.
        """
        shelf, pairing, asked = self.shelf, self._pairing, self._asked
        placement, tampering = self.placement, self._tampering
        while number < len(lines):
            line = lines[number]
            split = line.find(_PAYLOAD)
            if split < 0 and self._note_http(line):
                number, offset = number + 1, offset + len(line) + 1
                continue
            if split < 0 or line[-2:] != b"}}":
                break
            try:
                head = _decode_head(line[:split] + b"}")
                message = _decode(line[split + 7 : -1])
                raw_id = bytes(message.id)
                id = raw_id.decode()  # noqa: A001
            except (DecodeError, UnicodeDecodeError, RecursionError):
                break
            if not is_plain(raw_id):
                break
            if message.jsonrpc != "2.0" or message.error is not _ABSENT:
                break
            where = offset + split + 7, len(line) - split - 8
            method, result, http = message.method, message.result, head.http
            key = (head.stream, CLIENT, id)
            is_alone = http is None and head.stream is None
            if method is not UNSET:
                if head.side != CLIENT or result is not UNSET or method in _GREAT or MARK in line:
                    break
                wanted = glance(method, bytes(message.params), shelf.ignored)
                if wanted is None or id in asked or pairing.knows(key):
                    break
                version = wanted.version
                flags = 0 if version is None else MODERN
                row = shelf.begin(where, head.t, self.exchanges, flags)
                shelf.keys.file(row, wanted.digest, method, wanted.subject, answers=False)
                if version is not None:
                    shelf.keys.versions.add(version)
                if wanted.token is None and is_alone:
                    asked[id] = row
                else:
                    slot = Slot(row, self.exchanges, key, is_modern=version is not None)
                    if http is None:
                        pairing.ask_plainly(slot, key, wanted.token)
                    else:
                        frame = Frame(head.t, CLIENT, b"", head.stream, http)
                        pairing.request(slot, frame, id, wanted.token, modern=True)
                        placement.posted[http] = row
                    placement.wait(row, head.stream)
                placement.moves_on(head.stream, row)
                self.exchanges += 1
                tampering.last = None
            else:
                if (
                    head.side != SERVER
                    or result is UNSET
                    or result.result_type not in _COMPLETE
                    or result.task is not _ABSENT
                    or (self.server is None and result.meta is not _ABSENT)
                ):
                    break
                answered = asked.pop(id, None) if is_alone else None
                if answered is not None:
                    shelf.answer(answered, where, max(0.0, head.t - shelf.at(answered)), Result)
                    tampering.last = answered, 0
                elif (waited := pairing.answer_plainly(key, Event.RESULT)) is not None:
                    if waited.introduced is not None:
                        (said,) = read_frame(Frame(head.t, SERVER, line[split + 7 : -1]))
                        if isinstance(said, Result):
                            self._hear(waited, said)
                    self._answered(waited, Result, head.t, where)
                else:
                    break
                self.has_server = True
            number, offset = number + 1, offset + len(line) + 1
        return number, offset

    def _note_http(self, line: bytes) -> bool:
        """Take a note on an HTTP exchange; say whether it is one."""
        if b'"note":"http' not in line:
            return False
        try:
            note = _decode_note(line)
        except (DecodeError, RecursionError):
            return False
        self._tampering.last = None
        fields = {"http": note.http, "status": note.status, "hung_up": note.hung_up}
        self._add_note(Note(note.t, note.note, fields))
        return True
