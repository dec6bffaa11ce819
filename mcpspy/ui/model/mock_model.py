"""The model of a live mock: its requests, recorded interactions, clients and options.

`MockModel` is built from the session that the mock records, `RecordedInteractions` from the recording that it serves.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.matching import request_key
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Note
from mcpspy.core.rules.edit import to_json
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.mock_notes import MOCK, UNRECORDED
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import RecordingsLoader, with_messages
from mcpspy.ui.model.session_model import IncrementalBuild

WAITING = 4096
"""Requests without a note that are remembered: a held request may wait for hours."""

SHOWN = 400
"""Bytes of the arguments of an interaction that are shown."""


class MockedClient:
    """A client of the mock, with the number of its requests."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = ""
        self.requests = 0
        self.misses = 0
        self.has_left = False


class MockModel(IncrementalBuild):
    """The requests of all clients, in order, and what the mock noted about them."""

    def _begin(self) -> None:
        self.requests = array("I")
        """Rows of the requests."""
        self._notes = array("I")
        """For each request, the row of its note; 0 without one: the first row is never a note."""
        self.asked: Counter[int] = Counter()
        """Number of an interaction → number of requests that got it."""
        self.left: dict[int, int] = {}
        """Number of an interaction → equal recorded requests that the client has not sent yet, when it last got this one."""
        self.clients: dict[int, MockedClient] = {}
        self.misses = 0
        self.options: Mapping[str, Any] = {}
        """The state of the mock as last noted; empty until a viewer changes it."""
        self._open: deque[int] = deque(maxlen=WAITING)
        """Places of requests without a note."""

    def note_row(self, place: int) -> int | None:
        """Return the row of the note on a request; None if the mock has not noted it."""
        return self._notes[place] or None

    def note(self, place: int) -> Mapping[str, Any]:
        """Return the fields of the note on a request; empty without one."""
        row = self.note_row(place)
        found = None if row is None else self._model.message(row)
        return found.fields if isinstance(found, Note) else {}

    @property
    def connected(self) -> list[MockedClient]:
        return [client for client in self.clients.values() if not client.has_left]

    def _take(self, begin: int, end: int) -> None:
        index, model = self._index, self._model
        for row in range(begin, end):
            kind = index.kind(row)
            if kind is RowKind.REQUEST and index.side(row) == CLIENT:
                self._open.append(len(self.requests))
                self.requests.append(row)
                self._notes.append(0)
            elif kind is RowKind.NOTE and model.note(row) == MOCK:
                note = model.message(row)
                if isinstance(note, Note):
                    self._add(row, note.fields)

    def _add(self, row: int, fields: Mapping[str, Any]) -> None:
        if fields.get("did") == "changed":
            self.options = fields
            return
        if isinstance(number := fields.get("client"), int):
            client = self.clients.setdefault(number, MockedClient(number))
            client.name = client.name or str(fields.get("name", ""))
            client.has_left = fields.get("did") == "left"
            if client.has_left:
                return
            is_miss = fields.get("did") in UNRECORDED
            client.requests += 1
            client.misses += is_miss
            self.misses += is_miss
        if isinstance(number := fields.get("interaction"), int):
            self.asked[number] += 1
            if isinstance(count := fields.get("count"), int) and isinstance(
                place := fields.get("place"), int
            ):
                self.left[number] = count - place
        for place in self._open:
            if self._is_about(place, fields):
                self._notes[place] = row
                self._open.remove(place)
                return

    def _is_about(self, place: int, fields: Mapping[str, Any]) -> bool:
        """Return whether a note is about a request: the oldest one with this id, method and subject."""
        index, row = self._index, self.requests[place]
        if index.id(row) != fields.get("id"):
            return False
        method, subject = index.texts[index.method[row]], index.texts[index.subject[row]]
        return fields.get("request") in (method, f"{method} {subject}")


class InteractionText(NamedTuple):
    """One recorded interaction as text; not sanitized, except the arguments."""

    number: int
    method: str
    subject: str
    """Tool, resource, prompt …; empty without one."""
    arguments: str
    """The params without the name of the tool, on one line."""
    outcome: str
    """`result`, `error`, or `no response`."""


class RecordedInteractions:
    """The interactions that a mock can play, in recorded order."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._orders = array("Q", sorted(recordings.orders()))
        self._numbers = array("q", (recordings.interaction(order).number or 0 for order in self._orders))

    def __len__(self) -> int:
        return len(self._orders)

    def place_of(self, number: object) -> int | None:
        """Return the place of the interaction with this number."""
        if not isinstance(number, int):
            return None
        place = bisect_left(self._numbers, number)
        return place if place < len(self._numbers) and self._numbers[place] == number else None

    def interaction(self, place: int) -> Interaction:
        return self._recordings.interaction(self._orders[place])

    def numbered(self, number: int) -> Interaction | None:
        place = self.place_of(number)
        return None if place is None else self.interaction(place)

    def text(self, place: int) -> InteractionText:
        interaction = self.interaction(place)
        cause = interaction.cause
        steps = (step.kind for step in interaction.steps if step.is_answer)
        kind = next(steps, None)
        outcome = "no response" if kind is None else "error" if kind is Failure else "result"
        if not isinstance(cause, Request):
            return InteractionText(interaction.number or 0, "", "", "", outcome)
        return InteractionText(
            interaction.number or 0, cause.method, cause.subject or "", _arguments(cause), outcome
        )

    def closest(self, request: Request) -> int | None:
        """Return the number of the interaction that a request would get, or of the nearest one; None without one."""
        key = request_key(request)
        if queue := self._recordings.queue(key.digest):
            return queue[0].number
        near = self._recordings.nearest(request, key)
        return near[0].number if near else None

    def response(self, number: int) -> Result | Failure | None:
        """Return the recorded response; None if there is none."""
        interaction = self.numbered(number)
        found = interaction.answer if interaction is not None else None
        return found if isinstance(found, Result | Failure) else None

    def edited(self, path: Path, answers: Mapping[int, tuple[str, Any]]) -> Iterator[bytes]:
        """Yield the recording at `path` with other responses: number of an interaction → `result` or `error`, value.

        Raise UsageError if a response is not in the file as its peer sent it, CannotStart if the file cannot be read.
        """
        changes: dict[int, tuple[int, bytes]] = {}
        for number, (member, value) in answers.items():
            interaction = self.numbered(number)
            step = next((each for each in interaction.steps if each.is_answer), None) if interaction else None
            found = None if step is None else step.message
            if step is None or not isinstance(found, Result | Failure):
                raise UsageError(f"request {number} has no response that could be edited")
            id_text = (found.id or "null").encode()
            changes[step.place] = step.length, responses.given(id_text, member, value)
        return with_messages(path, changes)


def _arguments(request: Request) -> str:
    """Return the arguments of a call, or the other params, as one line of text."""
    params = request.params
    if not isinstance(params, dict):
        return ""
    shown = params.get("arguments")
    if shown is None:
        names = ("_meta", "name", "uri", "arguments")
        shown = {name: value for name, value in params.items() if name not in names}
    return sanitize(to_json(shown)[:SHOWN].decode("utf-8", "replace")) if shown else ""


def load(path: Path) -> RecordedInteractions:
    """Read the interactions of a recording. Raise UsageError or CannotStart."""
    return RecordedInteractions(RecordingsLoader([path], (), merge=False).recordings())
