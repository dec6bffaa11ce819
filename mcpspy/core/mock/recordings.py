"""Read-only look-up of requests in the recordings of one server, shared by all clients.

If several recordings have a request, the latest one is used. The recordings may be searched before they are read
completely; the look-up reports whether the unread rest could still change a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from msgspec import Struct

from mcpspy.core.jsontools import Pointer, differences, pointer, value_at
from mcpspy.core.mock.answer_rules import AnswerRules, InvalidArguments
from mcpspy.core.mock.answers import InputRound, Similarity, closest
from mcpspy.core.mock.http_replies import HttpReply
from mcpspy.core.mock.interaction import Interaction, rounds_until
from mcpspy.core.mock.matching import RequestKey, compared_request
from mcpspy.core.mock.store import OPENING, InteractionStore, RecordedHandshake, subject_number
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.redact.placeholder import fits

SMALL = 1 << 16
"""Maximum size in bytes of a response that is kept in memory until it is sent."""

NEAREST = 3
DIFFERENCES = 20
COMPARED = 300
"""Limit of requests of the same method, and of others, compared for a miss; a recording may have 100,000."""


class NearestRequest(Struct, frozen=True):
    """A recorded request that is similar to a live one."""

    key: RequestKey
    differs: list[str]
    """JSON pointers of the differences, at most `DIFFERENCES`."""
    first: tuple[str, Any, Any] | None = None
    """Pointer, recorded and sent value of the first difference, except redacted values that may be equal."""
    more: int = 0
    """Number of further differences."""
    number: int | None = None
    """Number of the recorded request; None if it is not one."""


class ResponseQueue:
    """Successive interactions of one key; the queue may grow while recordings are read."""

    def __init__(self, recordings: Recordings, orders: Sequence[int], base: int = 0) -> None:
        self._recordings = recordings
        self._orders = orders
        self._base = base

    def __len__(self) -> int:
        return len(self._orders)

    def __getitem__(self, number: int) -> Interaction:
        return self._recordings.interaction(self._base + self._orders[number])

    def __iter__(self) -> Iterator[Interaction]:
        return map(self.__getitem__, range(len(self)))

    def is_settled(self, number: int) -> bool:
        """Return True if the interaction with this number exists and the unread rest cannot change it."""
        return number < len(self._orders) and self._recordings.is_settled(self._base + self._orders[number])

    def closest(self, live: Mapping[int, InputRound]) -> tuple[Similarity, ResponseQueue]:
        """Return the interactions whose server requests and responses are most similar to live ones."""
        return self._selected(*closest(live, (interaction.rounds for interaction in self)))

    def answering(self, rounds: Sequence[InputRound]) -> tuple[Similarity, ResponseQueue]:
        """Return the interactions whose requests give the answers that are most similar to those of a live request."""
        recorded = (interaction.input_rounds for interaction in self)
        if rounds[0].question is None:  # The mock did not ask: only the answers of this request are known.
            return self._selected(*closest({-1: rounds[-1]}, recorded))
        alike = (each if len(each) == len(rounds) else [] for each in recorded)
        return self._selected(*closest(dict(enumerate(rounds)), alike))

    def _selected(self, similarity: Similarity, numbers: Iterable[int]) -> tuple[Similarity, ResponseQueue]:
        orders = [self._orders[number] for number in numbers]
        return similarity, ResponseQueue(self._recordings, orders, self._base)


class Recordings:
    def __init__(
        self,
        stores: Sequence[InteractionStore],
        ignored: Iterable[Pointer] = (),
        rules: AnswerRules | None = None,
    ) -> None:
        """`rules` decide before what is recorded; their store is one of `stores`."""
        self.ignored = tuple(ignored)
        self.rules = rules
        self._stores = stores
        self._subjects: dict[tuple[str, bool], dict[str | None, list[int]]] = {}
        """Method, and True for answers to questions → subject → orders; filled when a mode needs it."""
        for number, store in enumerate(stores):
            store.number = number

    @property
    def is_whole(self) -> bool:
        return all(store.is_whole for store in self._stores)

    @property
    def is_modern(self) -> bool:
        """True if the server is known to support a revision without a handshake."""
        return any(store.index.versions for store in self._stores)

    @property
    def versions(self) -> list[str]:
        """Revisions without a handshake that the server accepts, the oldest first."""
        return sorted({version for store in self._stores for version in store.index.versions})

    @property
    def has_handshakes(self) -> bool:
        """True if each recording has a single client that completed `initialize`: no `server/discover` follows."""
        return all(
            store.upstream is None
            and any(found.is_accepted for found in store.index.handshakes.get("initialize", ()))
            for store in self._stores
        )

    @property
    def server(self) -> Peer | None:
        return next((store.server for store in reversed(self._stores) if store.server is not None), None)

    @property
    def name(self) -> str:
        return self._stores[-1].name if self._stores else ""

    @property
    def upstream(self) -> str | None:
        return self._stores[-1].upstream if self._stores else None

    @property
    def opening(self) -> list[Interaction]:
        """Messages that the server sent before it had received any."""
        found = (store for store in reversed(self._stores) if OPENING in store.steps)
        return [store.interaction(OPENING) for store in islice(found, 1)]

    @property
    def is_generated(self) -> bool:
        """Return True if nothing was recorded: all responses were generated from a listing."""
        return all(store.is_generated for store in self._stores)

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for store in self._stores for method, _ in store.index.methods))

    @property
    def interactions(self) -> list[Interaction]:
        """Interactions of all requests except handshakes."""
        return [self.interaction(order) for order in self.orders()]

    def orders(self) -> Iterator[int]:
        """Yield the `order` of each interaction in `interactions`, key by key."""
        for store, later in self._with_later():
            if store.is_generated:
                continue
            for digest in store.index.queues:
                if not _has(later, digest):
                    yield from map(store.order, store.index.rows(digest))

    def interaction(self, order: int) -> Interaction:
        return self._stores[order >> 32].interaction(order & 0xFFFFFFFF)

    def is_settled(self, order: int) -> bool:
        """Return True if the unread rest can neither change nor replace an interaction."""
        number, row = order >> 32, order & 0xFFFFFFFF
        later = self._stores[number + 1 :]
        return self._stores[number].is_settled(row) and all(store.is_whole for store in later)

    def queue(self, digest: bytes) -> ResponseQueue | None:
        for store in reversed(self._stores):
            if digest in store.index.queues:
                return ResponseQueue(self, store.index.rows(digest), store.order(0))
        return None

    def ruled(self, request: Request, key: RequestKey) -> ResponseQueue | InvalidArguments | None:
        """Return the interaction that the rules select; None if no rule is about the request."""
        found = None if self.rules is None else self.rules.find(request, key)
        if self.rules is not None and isinstance(found, int):
            return ResponseQueue(self, [self.rules.store.order(found)])
        return found if isinstance(found, InvalidArguments) else None

    def plain_response(self, digest: bytes, number: int, *, repeats: bool) -> tuple[int, bytes] | None:
        """Return the `order` of an interaction and its response, for a request that has been answered `number` times.

        Return None if the interaction is more than a single response, if the response is too large to be kept in
        memory, or if the unread rest could change it.
        """
        for store in reversed(self._stores):
            rows = store.index.rows(digest)
            if not rows:
                if store.is_whole:
                    continue
                return None
            if number >= len(rows):
                if not (repeats and store.is_whole):
                    return None
                number = len(rows) - 1
            row = rows[number]
            place = store.plain_response(row) if store.is_settled(row) else None
            if place is None or place[1] > SMALL:
                return None
            return store.order(row), store.read(*place)
        return None

    def queue_of(self, method: str, *, answers: bool) -> ResponseQueue | None:
        """Return the interactions of a method; None for several recordings that are not read completely."""
        orders: Sequence[int]
        if len(self._stores) == 1:
            orders = self._stores[0].index.methods.get((method, answers), ())
        else:
            orders = self._merged.get((method, answers), ()) if self.is_whole else ()
        return ResponseQueue(self, orders) if orders else None

    def queue_of_subject(self, key: RequestKey) -> ResponseQueue | None:
        """Return the interactions of a tool, resource or prompt; None if there are none, or not all are read."""
        if not self.is_whole:
            return None
        name = key.method, key.question is not None
        if (subjects := self._subjects.get(name)) is None:
            subjects = self._subjects[name] = {}
            for interaction in self.queue_of(key.method, answers=name[1]) or ():
                if (recorded := interaction.key) is not None:
                    subjects.setdefault(recorded.subject, []).append(interaction.order)
        orders = subjects.get(key.subject)
        return None if orders is None else ResponseQueue(self, orders)

    def similar(self, request: Request, key: RequestKey, *, only_one: bool) -> bytes | None:
        """Return the digest of the request with this subject that has the fewest differences; None if there is none.

        If `only_one`, several with equally few differences count as none. Without it, the first one is returned.
        """
        if (only := self.only(key)) is not None:
            return only
        near = self._compared(request, self.queue_of_subject(key) or ())
        if not near or (only_one and len(near) > 1 and len(near[0].differs) == len(near[1].differs)):
            return None
        return near[0].key.digest

    def rounds_until(self, request: Request) -> list[InputRound]:
        """Return the rounds of a live request of 2026-07-28, whose questions are recorded ones."""

        def find(request: Request) -> Interaction | None:
            found = (store.find_asking(request) for store in reversed(self._stores))
            return next((each for each in found if each is not None), None)

        return rounds_until(request, find)

    def redacted(self, key: RequestKey) -> Iterator[bytes]:
        """Yield the digests of redacted requests in the recordings that may have been equal to this one."""
        params = None
        for store in reversed(self._stores):
            for row in store.index.redacted:
                recorded = store.interaction(row).key
                if recorded is not None and recorded.request == key.request:
                    params = json.loads(key.params) if params is None else params
                    if fits(json.loads(recorded.params), params):
                        yield recorded.digest

    def only(self, key: RequestKey) -> bytes | None:
        """Return the digest of the request with this subject; None if there are several or none."""
        digests = set()
        for store in self._stores:
            first = store.index.subjects.get(
                subject_number(key.method, key.subject, answers=key.question is not None)
            )
            if first is not None:
                recorded = store.interaction(first).key if first >= 0 else None
                if recorded is None or recorded.subject != key.subject:
                    return None
                digests.add(recorded.digest)
        return digests.pop() if len(digests) == 1 else None

    def notified(self, method: str, number: int) -> Interaction | None:
        """Return the interaction of the client's notification with this number; None if there is none."""
        for store in reversed(self._stores):
            if (rows := store.index.notifications.get(method)) is not None:
                return store.interaction(rows[number]) if number < len(rows) else None
        return None

    def handshakes(self, method: str) -> list[tuple[RecordedHandshake, int]]:
        for store in reversed(self._stores):
            if (found := store.index.handshakes.get(method)) is not None:
                return [(each, store.order(each.row)) for each in found]
        return []

    def http_reply(self, http_method: str, method: str, *, has_session: bool) -> HttpReply | None:
        """Return the recorded response to an HTTP request of this shape; None if the mock handles it by itself."""
        for store in reversed(self._stores):
            is_known, reply = store.http.find(http_method, method, has_session=has_session)
            if is_known:
                return reply
        return None

    def nearest(self, request: Request, key: RequestKey) -> list[NearestRequest]:
        """Return the most similar recorded requests, and the exact positions at which they differ."""
        near = self._compared(request, self._similar(key))
        same = [each for each in near if (each.key.method, each.key.subject) == (key.method, key.subject)]
        return (same or [each for each in near if each.key.method == key.method] or near)[:NEAREST]

    def nearest_answers(self, request: Request, queue: ResponseQueue) -> list[NearestRequest]:
        """Return the most similar of several recorded requests that answer a question."""
        return self._compared(request, queue)[:NEAREST]

    def _compared(self, request: Request, interactions: Iterable[Interaction]) -> list[NearestRequest]:
        """Compare up to `COMPARED` different requests with a live one; return the most similar first."""
        live = compared_request(request, self.ignored)
        found: dict[object, NearestRequest] = {}
        for interaction in interactions:
            other = interaction.key
            if other is not None and (other.digest, other.responses) not in found:
                if len(found) == 2 * COMPARED:
                    break
                found[other.digest, other.responses] = near(
                    other, live, interaction.compared, interaction.number
                )
        return sorted(found.values(), key=lambda each: len(each.differs))

    def _similar(self, key: RequestKey) -> Iterator[Interaction]:
        number = subject_number(key.method, key.subject, answers=key.question is not None)
        for store in self._stores:
            if (first := store.index.subjects.get(number)) is not None:
                yield store.interaction(first if first >= 0 else ~first)
        here = (
            store.interaction(row) for store in self._stores for row in store.index.firsts.get(key.method, ())
        )
        there = (
            store.interaction(row)
            for store in self._stores
            for method, rows in store.index.firsts.items()
            if method != key.method
            for row in rows
        )
        yield from islice(here, COMPARED)
        yield from islice(there, COMPARED)

    @cached_property
    def conflicts(self) -> list[str]:
        """Requests that two recordings answer differently, one line each; valid when all are read completely."""
        found = []
        for number, store in enumerate(self._stores[1:]):
            earlier = self._stores[number::-1]
            for digest in store.index.queues:
                other = next((each for each in earlier if digest in each.index.queues), None)
                if other is not None and _answers(store, store.index.rows(digest)) != _answers(
                    other, other.index.rows(digest)
                ):
                    key = store.interaction(store.index.rows(digest)[0]).key
                    about = key.about if key is not None else ""
                    found.append(f"{about}: {store.label} and {other.label} differ; using {store.label}")
            for method, recorded in store.index.handshakes.items():
                other = next((each for each in earlier if method in each.index.handshakes), None)
                if other is None:
                    continue
                rows, others = ([each.row for each in e] for e in (recorded, other.index.handshakes[method]))
                if _answers(store, rows) != _answers(other, others):
                    found.append(f"{method}: {store.label} and {other.label} differ; using {store.label}")
        return found

    @cached_property
    def _merged(self) -> dict[tuple[str, bool], list[int]]:
        """Requests of each method in several recordings, in their order, without replaced ones."""
        merged: dict[tuple[str, bool], list[int]] = {}
        for store, later in self._with_later():
            replaced = {
                row
                for digest in store.index.queues
                if _has(later, digest)
                for row in store.index.rows(digest)
            }
            for key, rows in store.index.methods.items():
                orders = (store.order(row) for row in rows if row not in replaced)
                merged.setdefault(key, []).extend(orders)
        return merged

    def _with_later(self) -> Iterator[tuple[InteractionStore, Sequence[InteractionStore]]]:
        for number, store in enumerate(self._stores):
            yield store, self._stores[number + 1 :]


def near(
    key: RequestKey, live: dict[str, Any], recorded: dict[str, Any], number: int | None = None
) -> NearestRequest:
    """Compare the compared parts of a live request and of a recorded one, with its key and number."""
    differs = _differences(live, recorded)
    found = [(at, value_at(recorded, pointer(at)), value_at(live, pointer(at))) for at in differs]
    found = [each for each in found if not fits(*each[1:])] or found
    return NearestRequest(key, differs, found[0] if found else None, len(found) - 1, number)


def _differences(live: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    if live.get("method") != recorded.get("method"):
        return ["/method"]
    return list(islice(differences(live, recorded), DIFFERENCES))


def _has(stores: Sequence[InteractionStore], digest: bytes) -> bool:
    return any(digest in store.index.queues for store in stores)


def _answers(store: InteractionStore, rows: Sequence[int]) -> list[bytes]:
    answers = []
    for row in rows:
        answer = store.interaction(row).answer
        if isinstance(answer, Result):
            answers.append(bytes(answer.raw_result))
        else:
            answers.append(bytes(answer.raw_error) if isinstance(answer, Failure) else b"")
    return answers
