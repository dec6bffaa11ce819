"""What was recorded, found by what is asked: shared by all clients, changed by none.

Owns the look-up over several recordings: of what two of them answer, the later
one's word counts. It may be asked before all of them are read; it says of what
it finds whether the rest could still change that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.interaction import Scene
from mcpspy.core.mock.loader import Script, entries
from mcpspy.core.mock.matching import Asked
from mcpspy.core.mock.store import OPENING, Introduced, Shelf, subject_number
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.redact.placeholder import fits
from mcpspy.core.session.session import Session

SMALL = 1 << 16
"""Bytes of an answer that may be kept until it is sent."""


class Queue:
    """Scenes that are answered one after the other; it may grow while recordings are read."""

    def __init__(self, library: Library, orders: Sequence[int], base: int = 0) -> None:
        self._library = library
        self._orders = orders
        self._base = base

    def __len__(self) -> int:
        return len(self._orders)

    def __getitem__(self, number: int) -> Scene:
        return self._library.scene(self._base + self._orders[number])

    def __iter__(self) -> Iterator[Scene]:
        return map(self.__getitem__, range(len(self)))

    def is_settled(self, number: int) -> bool:
        """Whether the scene at a place is there, and nothing that is still to be read could change it."""
        return number < len(self._orders) and self._library.is_settled(self._base + self._orders[number])

    def answering(self, responses: str) -> Queue:
        """Return those that give these answers to a question."""
        its = [
            order
            for order, scene in zip(self._orders, self, strict=True)
            if (asked := scene.asked) is not None and asked.responses == responses
        ]
        return Queue(self._library, its, self._base)


class Library:
    """The scenes of one server."""

    def __init__(self, shelves: Sequence[Shelf], ignored: Iterable[Pointer] = ()) -> None:
        """Take the recordings, the one that counts most last."""
        self.ignored = tuple(ignored)
        self._shelves = shelves
        for number, shelf in enumerate(shelves):
            shelf.number = number

    @classmethod
    def of(cls, sessions: Iterable[tuple[str, Session]], ignored: Iterable[Pointer] = ()) -> Library:
        """Read sessions, each with what to call it."""
        shelves, ignored = [], tuple(ignored)
        for label, session in sessions:
            script = Script(Shelf(label, ignored), session.header)
            for entry in entries(session):
                script.add(entry)
            script.end()
            shelves.append(script.shelf)
        return cls(shelves, ignored)

    @property
    def is_whole(self) -> bool:
        """Whether all of it was read."""
        return all(shelf.is_whole for shelf in self._shelves)

    @property
    def is_modern(self) -> bool:
        """Whether the server speaks a revision without a handshake, as far as is known."""
        return any(shelf.keys.versions for shelf in self._shelves)

    @property
    def versions(self) -> list[str]:
        """Revisions without a handshake that the server took, the oldest first."""
        return sorted({version for shelf in self._shelves for version in shelf.keys.versions})

    @property
    def has_handshakes(self) -> bool:
        """Whether each recording is known to be of one client with a handshake: then nobody probed the server in it."""
        return all(
            shelf.upstream is None
            and any(found.is_taken for found in shelf.keys.introductions.get("initialize", ()))
            for shelf in self._shelves
        )

    @property
    def server(self) -> Peer | None:
        """Who the server says it is."""
        return next((shelf.server for shelf in reversed(self._shelves) if shelf.server is not None), None)

    @property
    def name(self) -> str:
        """What the recording calls the server."""
        return self._shelves[-1].name if self._shelves else ""

    @property
    def upstream(self) -> str | None:
        """Where the server was, if it was recorded over HTTP."""
        return self._shelves[-1].upstream if self._shelves else None

    @property
    def opening(self) -> list[Scene]:
        """What the server said before it had heard anything."""
        found = (shelf for shelf in reversed(self._shelves) if OPENING in shelf.steps)
        return [shelf.scene(OPENING) for shelf in islice(found, 1)]

    @property
    def methods(self) -> list[str]:
        """What was asked of the server, introductions aside."""
        return list(dict.fromkeys(method for shelf in self._shelves for method, _ in shelf.keys.methods))

    @property
    def introductions(self) -> dict[str, list[Introduced]]:
        """The recorded introductions, by method."""
        return {
            method: found for shelf in self._shelves for method, found in shelf.keys.introductions.items()
        }

    @property
    def scenes(self) -> list[Scene]:
        """The requests that can be asked for, introductions aside."""
        return [self.scene(order) for order in self.orders()]

    def orders(self) -> Iterator[int]:
        """Yield the `order` of each of `scenes`, key by key."""
        for shelf, later in self._with_later():
            for digest in shelf.keys.queues:
                if not _has(later, digest):
                    yield from map(shelf.order, shelf.keys.rows(digest))

    def scene(self, order: int) -> Scene:
        """Return a scene by its `order`."""
        return self._shelves[order >> 32].scene(order & 0xFFFFFFFF)

    def is_settled(self, order: int) -> bool:
        """Whether nothing that is still to be read could change a scene, or take its place."""
        number, row = order >> 32, order & 0xFFFFFFFF
        later = self._shelves[number + 1 :]
        return self._shelves[number].is_settled(row) and all(shelf.is_whole for shelf in later)

    def queue(self, digest: bytes) -> Queue | None:
        """Return the answers to exactly one request."""
        for shelf in reversed(self._shelves):
            if digest in shelf.keys.queues:
                return Queue(self, shelf.keys.rows(digest), shelf.order(0))
        return None

    def plain_answer(self, digest: bytes, number: int, *, repeats: bool) -> tuple[int, bytes] | None:
        """Return what a request is answered after it was answered so often, and the scene's `order`.

        None if there is more to the scene than one answer at once, if that is better read when it is told, or if
        the rest of the recordings has a say in it.
        """
        for shelf in reversed(self._shelves):
            rows = shelf.keys.rows(digest)
            if not rows:
                if shelf.is_whole:
                    continue
                return None
            if number >= len(rows):
                if not (repeats and shelf.is_whole):
                    return None
                number = len(rows) - 1
            row = rows[number]
            place = shelf.plain_answer(row) if shelf.is_settled(row) else None
            if place is None or place[1] > SMALL:
                return None
            return shelf.order(row), shelf.read(*place)
        return None

    def queue_of(self, method: str, *, answers: bool) -> Queue | None:
        """Return the answers to a method, whatever it asks for; of several recordings, once they are whole."""
        orders: Sequence[int]
        if len(self._shelves) == 1:
            orders = self._shelves[0].keys.methods.get((method, answers), ())
        else:
            orders = self._merged.get((method, answers), ()) if self.is_whole else ()
        return Queue(self, orders) if orders else None

    def redacted(self, asked: Asked) -> Iterator[bytes]:
        """Yield the digests of the requests of which this may be what they were before they were redacted."""
        params = None
        for shelf in reversed(self._shelves):
            for row in shelf.keys.redacted:
                recorded = shelf.scene(row).asked
                if recorded is not None and recorded[:1] + recorded[2:4] == asked[:1] + asked[2:4]:
                    params = json.loads(asked.params) if params is None else params
                    try:
                        if fits(json.loads(recorded.params), params):
                            yield recorded.digest
                    except RecursionError:  # Nested too deep to be looked into.
                        continue

    def only(self, asked: Asked) -> bytes | None:
        """Return the digest of the only request of its subject; None if there are others, or none."""
        digests = set()
        for shelf in self._shelves:
            first = shelf.keys.subjects.get(
                subject_number(asked.method, asked.subject, answers=asked.question is not None)
            )
            if first is not None:
                recorded = shelf.scene(first).asked if first >= 0 else None
                if recorded is None or recorded.subject != asked.subject:
                    return None
                digests.add(recorded.digest)
        return digests.pop() if len(digests) == 1 else None

    def notice(self, method: str, number: int) -> Scene | None:
        """Return what followed a notification of the client, the first, the second …; None if there was no such."""
        for shelf in reversed(self._shelves):
            if (rows := shelf.keys.notices.get(method)) is not None:
                return shelf.scene(rows[number]) if number < len(rows) else None
        return None

    def introduced(self, method: str) -> list[tuple[Introduced, int]]:
        """Return the recorded introductions of a method, and the `order` of each."""
        for shelf in reversed(self._shelves):
            if (found := shelf.keys.introductions.get(method)) is not None:
                return [(each, shelf.order(each.row)) for each in found]
        return []

    def near(self, asked: Asked, most: int) -> Iterator[Scene]:
        """Yield requests that might nearly be what is asked: of its subject, of its method, of others."""
        number = subject_number(asked.method, asked.subject, answers=asked.question is not None)
        for shelf in self._shelves:
            if (first := shelf.keys.subjects.get(number)) is not None:
                yield shelf.scene(first if first >= 0 else ~first)
        here = (
            shelf.scene(row) for shelf in self._shelves for row in shelf.keys.firsts.get(asked.method, ())
        )
        there = (
            shelf.scene(row)
            for shelf in self._shelves
            for method, rows in shelf.keys.firsts.items()
            if method != asked.method
            for row in rows
        )
        yield from islice(here, most)
        yield from islice(there, most)

    @cached_property
    def conflicts(self) -> list[str]:
        """What two recordings answer otherwise, one line each; ask when it is whole."""
        found = []
        for number, shelf in enumerate(self._shelves[1:]):
            earlier = self._shelves[number::-1]
            for digest in shelf.keys.queues:
                other = next((each for each in earlier if digest in each.keys.queues), None)
                if other is not None and _answers(shelf, shelf.keys.rows(digest)) != _answers(
                    other, other.keys.rows(digest)
                ):
                    asked = shelf.scene(shelf.keys.rows(digest)[0]).asked
                    about = asked.about if asked is not None else ""
                    found.append(f"{about}: answered as in {shelf.label}, not as in {other.label}")
            for method, introduced in shelf.keys.introductions.items():
                other = next((each for each in earlier if method in each.keys.introductions), None)
                if other is None:
                    continue
                one, two = (
                    [each.row for each in its] for its in (introduced, other.keys.introductions[method])
                )
                if _answers(shelf, one) != _answers(other, two):
                    found.append(f"{method}: answered as in {shelf.label}, not as in {other.label}")
        return found

    @cached_property
    def _merged(self) -> dict[tuple[str, bool], list[int]]:
        """The requests of a method in several recordings, in their order."""
        merged: dict[tuple[str, bool], list[int]] = {}
        for shelf, later in self._with_later():
            replaced = {
                row for digest in shelf.keys.queues if _has(later, digest) for row in shelf.keys.rows(digest)
            }
            for key, rows in shelf.keys.methods.items():
                kept = (shelf.order(row) for row in rows if row not in replaced)
                merged.setdefault(key, []).extend(kept)
        return merged

    def _with_later(self) -> Iterator[tuple[Shelf, Sequence[Shelf]]]:
        for number, shelf in enumerate(self._shelves):
            yield shelf, self._shelves[number + 1 :]


def _has(shelves: Sequence[Shelf], digest: bytes) -> bool:
    return any(digest in shelf.keys.queues for shelf in shelves)


def _answers(shelf: Shelf, rows: Sequence[int]) -> list[bytes]:
    """Return what is answered, ids aside."""
    said = []
    for row in rows:
        answer = shelf.scene(row).answer
        if isinstance(answer, Result):
            said.append(bytes(answer.raw_result))
        else:
            said.append(bytes(answer.raw_error) if isinstance(answer, Failure) else b"")
    return said
