"""One side of a session: its messages as a whole, and its lines that are not messages."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import Failure, Malformed, Message, Notification, Request
from mcpspy.core.session.exchange import Exchange

MAX_ODD_LINES = 20
"""Lines of one side that are not messages and that are kept: the first ones."""

MAX_EXCERPT = 400
"""Bytes of a line that is not a message that are kept."""


class OddLine(Struct, frozen=True):
    """A line that is not a message."""

    at: float
    place: EntryPosition
    why: str
    data: bytes
    """Its beginning."""
    size: int
    is_whole: bool
    """False if its end never arrived."""
    is_refusal: bool = False
    """True for the body of a refused HTTP request, or of the response to a notification."""


CODE_PAGES = ("cp1252", "cp1250", "cp1251", "cp437", "cp850", "gbk", "cp932", "latin-1")
"""Encodings that systems use in place of UTF-8."""

MAX_SENT = 100
"""Words outside ASCII that are kept of what the client sent, each in all encodings."""

_WORD = re.compile(r"[^\W\d_]{3,40}")
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")


_FOREIGN = re.compile(r"[^\x00-\x7f]{3,60}")
_MARKS = re.compile(rb"\?{3,60}")

MAX_OTHER_MARKS = 4
"""Question marks in a row that people write."""


class ChangedText(NamedTuple):
    """A word that came back as its bytes look in another encoding."""

    sent: str
    received: str
    encoding: str
    """Empty if its characters came back as question marks."""


class SentText(Struct):
    """Words that the client sent, as a server that reads them in another encoding than UTF-8 would have them."""

    misread: dict[str, ChangedText] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    """Length of a text outside ASCII → the text, of which a server that writes a code page has only question marks."""
    lost_in: set[str] = field(default_factory=set)
    """Those that came back so."""
    changed: tuple[ChangedText, EntryPosition] | None = None
    """The first such word in a result."""

    def add_sent(self, data: bytes) -> None:
        if data.isascii() and data.find(b"\\u") < 0:
            return
        text = _unescaped(data)
        for foreign in _FOREIGN.findall(text):
            if len(self.lost) < MAX_SENT:
                self.lost.setdefault(len(foreign), foreign)
        for word in dict.fromkeys(_WORD.findall(text)):
            if word.isascii() or len(self.misread) >= MAX_SENT * len(CODE_PAGES):
                continue
            for encoding in CODE_PAGES:
                try:
                    received = word.encode().decode(encoding)
                except UnicodeDecodeError:
                    continue
                self.misread.setdefault(received, ChangedText(word, received, encoding))

    def add_received(self, data: bytes, place: EntryPosition) -> None:
        if self.changed is None:
            text = _unescaped(data)
            if not text and b"???" in data:
                self._add_lost(data, place)
            found = next((each for each in self.misread.values() if each.received in text), None)
            if found is not None:
                self.changed = found, place

    def _add_lost(self, data: bytes, place: EntryPosition) -> None:
        """Add a result that is all ASCII; three question marks alone may mean something else."""
        for marks in _MARKS.findall(data):
            if (sent := self.lost.get(len(marks))) is None:
                continue
            self.lost_in.add(sent)
            if len(marks) > MAX_OTHER_MARKS or len(self.lost_in) > 1:
                self.changed = ChangedText(sent, marks.decode(), ""), place
                return


def _unescaped(data: bytes) -> str:
    """Return the text of a message; empty if it is all ASCII."""
    if data.isascii() and b"\\u" not in data:
        return ""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), data.decode("utf-8", "replace"))


class SideFacts(Struct):
    """The messages and other lines of one side."""

    messages: int = 0
    first_at: float | None = None
    last: tuple[Message, Exchange | None, EntryPosition, list[Finding]] | None = None
    """Its last message, with the request that it is, answers or is about, its position and its findings."""
    before: Message | None = None
    """Its message before the last one."""
    last_request_at: float = 0.0
    odd: list[OddLine] = field(default_factory=list)
    odd_count: int = 0
    ends_refused: bool = False
    """True if its last message was the body of a refused HTTP request."""
    carriage_returns: int = 0
    closed_at: float | None = None
    closed_place: EntryPosition = EntryPosition()
    heard: Message | None = None
    """Of the client: the last message of the server before it closed stdin."""
    methods: Counter[str] = field(default_factory=Counter)
    """Methods of its requests and notifications."""

    def add_odd(self, what: Malformed, place: EntryPosition, *, is_refusal: bool) -> None:
        """Add a line that is not a message."""
        self.odd_count += 1
        if len(self.odd) < MAX_ODD_LINES:
            data, is_whole = what.data[:MAX_EXCERPT], what.frame.eol != ""
            self.odd.append(OddLine(what.at, place, what.why, data, len(what.data), is_whole, is_refusal))

    def add(
        self,
        what: Message,
        exchange: Exchange | None,
        place: EntryPosition,
        findings: list[Finding],
        *,
        is_refusal: bool = False,
    ) -> None:
        """Add a message with its findings; `is_refusal`: it is the body of a refused HTTP request."""
        self.messages += not is_refusal
        if self.first_at is None:
            self.first_at = what.frame.at
        if self.last is not None:
            self.before = self.last[0]
        self.last, self.ends_refused = (what, exchange, place, findings), is_refusal
        self.carriage_returns += what.frame.eol == "\r\n"

    @property
    def last_at(self) -> float | None:
        return None if self.last is None else self.last[0].at

    @property
    def last_place(self) -> EntryPosition:
        return EntryPosition() if self.last is None else self.last[2]

    @property
    def last_size(self) -> int:
        """Bytes of its last message."""
        return 0 if self.last is None else len(self.last[0].data)

    @property
    def last_message(self) -> str:
        """Its last message in words."""
        return "" if self.last is None else about_message(*self.last[:2])


def about_message(what: Message, exchange: Exchange | None) -> str:
    """Return a message in words: the method and the subject of a call, or of the request that it answers."""
    if isinstance(what, Request | Notification):
        return f"{what.method} {what.subject or ''}".strip()
    about = "a request that does not exist" if exchange is None else about_request(exchange)
    return f"the {'error' if isinstance(what, Failure) else 'result'} of {about}"


def about_request(exchange: Exchange) -> str:
    """Return the method and the subject of a request."""
    return f"{exchange.request.method} {exchange.request.subject or ''}".strip()
