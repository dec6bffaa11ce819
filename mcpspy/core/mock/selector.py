"""Selection of the response to a client: the next recorded interaction or a substitute.

The module implements `--match` and `--on-exhausted`: each client gets the interactions of a key from the first on. If
the server asked the user, each client gets those in which the user gave the same answer.
It also answers handshakes: a legacy server does not know `server/discover`, a modern one rejects `initialize`, and a
server answers an unsupported revision with a supported one. The fast path handles plain requests whose interaction is
a single response, nearly all of a session, in a quarter of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct

from mcpspy.core.jsontools import canonical, one_line, replaced
from mcpspy.core.mock import unrecorded
from mcpspy.core.mock.answer_rules import InvalidArguments
from mcpspy.core.mock.answers import InputRound, Similarity, similarity_of
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.listing import SUBJECTS
from mcpspy.core.mock.matching import RequestKey, plain_key, request_key
from mcpspy.core.mock.recordings import Recordings, ResponseQueue, near
from mcpspy.core.mock.unrecorded import EXHAUSTED, INVALID, UNANSWERED, UNRECORDED, Miss
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.plain_line import plain_id, plain_message
from mcpspy.core.protocol.spec import METHOD_NOT_FOUND, REVISIONS, UNSUPPORTED_VERSION

SET_LEVEL = "logging/setLevel"

NEVER_MISSED = ("ping", "resources/subscribe", "resources/unsubscribe", SET_LEVEL)
"""Requests that get an empty result if they were not recorded."""

RULED_METHODS = tuple(SUBJECTS.values())
"""Methods whose requests a fixture or a generated response may answer."""

CANCELLED = "notifications/cancelled"


class MatchMode(StrEnum):
    """Parts of a request that must be equal to a recorded one."""

    EXACT = "exact"
    LENIENT = "lenient"
    """Like EXACT, or else the recorded request of the same tool, resource … that is more similar than all others."""
    NEAREST = "nearest"
    """Like LENIENT, but the first of several requests that are equally similar."""
    TOOL = "tool"
    """Only the method and the tool, resource …: requests get the recorded responses in order."""
    METHOD = "method"
    """Only the method: requests get the recorded responses in order."""


class Selection(Struct, frozen=True, kw_only=True):
    """A recorded interaction, or a result, miss or error in its place.

    With an interaction and a miss, the interaction is played, and the miss reported.
    """

    interaction: Interaction | None = None
    place: object = None
    """Position of the client in the queue of the interaction."""
    queue: ResponseQueue | None = None
    result: dict[str, Any] | None = None
    miss: Miss | None = None
    code: int = 0
    why: str = ""
    data: Any = None
    revision: str | None = None
    """Revision that `initialize` negotiates."""

    def response(self, id: bytes) -> bytes:  # noqa: A002
        if self.result is not None:
            return responses.result(id, self.result)
        return responses.error(id, self.code, self.why, self.data)


class Selector:
    """Position of one client in each queue of responses."""

    def __init__(
        self,
        recordings: Recordings,
        mode: MatchMode = MatchMode.EXACT,
        *,
        repeats: bool = True,
        plays_nearest: bool = False,
    ) -> None:
        self.misses: list[str] = []
        self._recordings = recordings
        self._mode = mode
        self._is_in_order = mode in (MatchMode.METHOD, MatchMode.TOOL)
        self._repeats = repeats
        self._plays_nearest = plays_nearest
        """True to play the nearest interaction after a miss."""
        self._taken: dict[object, int] = {}
        self._notified: dict[str, int] = {}
        self._redacted: dict[bytes, bytes] = {}
        """Digest of a live request → digest of the redacted request matched with it."""
        self._used: Counter[int] = Counter()
        """Order of an interaction → number of requests that got it, as far as the user has answered."""

    def change(self, mode: MatchMode, *, plays_nearest: bool) -> None:
        """Match further requests in another way."""
        self._mode = mode
        self._is_in_order = mode in (MatchMode.METHOD, MatchMode.TOOL)
        self._plays_nearest = plays_nearest

    def taken(self, place: object) -> int:
        """Return how many requests got an interaction of the queue at a place."""
        return self._taken.get(place, 0)

    def fast_response(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the response to a plain request and the id of the request; None if `select` is needed."""
        plain = plain_message(data)
        if plain is None or plain.method is UNSET or plain.result is not UNSET or plain.method == SET_LEVEL:
            return None
        if self._recordings.rules is not None and plain.method in RULED_METHODS:
            return None
        if self._is_in_order or (id := plain_id(plain.id)) is None:  # noqa: A001
            return None
        key = plain_key(plain.method, data, self._recordings.ignored)
        if key is None:
            return None
        number = self._taken.get(key.digest, 0)
        found = self._recordings.plain_response(key.digest, number, repeats=self._repeats)
        if found is None:
            return None
        self._taken[key.digest] = number + 1
        self._used[found[0]] += 1
        return replaced(one_line(found[1]), ("id",), id.encode()), id.encode()

    def select(self, request: Request, key: RequestKey) -> Selection:
        recordings = self._recordings
        if request.method in HANDSHAKE_METHODS:
            return self._handshake(request)
        supported = recordings.versions if key.version is not None else []
        if supported and key.version not in supported:
            return _unsupported(supported, key.version)
        ruled = recordings.ruled(request, key)
        if isinstance(ruled, InvalidArguments):
            miss = Miss(key.about, INVALID, [], detail=ruled.why)
            self.misses.append(miss.text)
            return Selection(miss=miss)
        if ruled is not None:
            self._used[ruled[0].order] += 1
            return Selection(interaction=ruled[0])
        place, queue, similarity = self._find(request, key)
        if queue and self._accepts(similarity) and (interaction := self._take(place, queue)) is not None:
            return self._selected(interaction, place, queue)
        if request.method in NEVER_MISSED:
            return Selection(result={})
        if queue and not self._accepts(similarity):
            miss = Miss(key.about, UNANSWERED, recordings.nearest_answers(request, queue))
        else:
            miss = Miss(
                key.about,
                EXHAUSTED if queue else UNRECORDED,
                [] if queue else recordings.nearest(request, key),
                is_listed=recordings.is_generated,
            )
        self.misses.append(miss.text)
        if not self._plays_nearest:
            return Selection(miss=miss)
        if not queue and (digest := recordings.similar(request, key, only_one=False)) is not None:
            place, queue = digest, recordings.queue(digest)
        if not queue:
            return Selection(miss=miss)
        interaction = self._take(place, queue) or queue[len(queue) - 1]
        return self._selected(interaction, place, queue, miss)

    def spelling(self, request: Request, key: RequestKey) -> str | None:
        """Return the id of the response to a request with an id such as `1.0`; None if no such request was recorded."""
        if request.method in HANDSHAKE_METHODS:
            interaction = self._handshake(request).interaction
        else:
            place, queue, similarity = self._find(request, key)
            if not queue or not self._accepts(similarity):
                return None
            interaction = queue[min(self._taken.get(place, 0), len(queue) - 1)]
        cause = None if interaction is None else interaction.cause
        if (
            interaction is None
            or not isinstance(cause, Request)
            or not (_is_fraction(cause) and _is_fraction(request))
        ):
            return None
        answer = interaction.answer
        answered = answer.id if isinstance(answer, Result | Failure) else None
        return unrecorded.answer_id(request.id, cause.id, answered)

    def select_answered(
        self, playing: Interaction, selection: Selection | None, live: dict[int, InputRound]
    ) -> tuple[Interaction | None, Miss | None]:
        """Select the interaction with the answers of the user, among those of the request that is being played.

        `live` are the rounds until now, by position, the last one with the new answer. Return None and a miss if the
        answer was not recorded.
        """
        number = next(reversed(live))
        queue = None if selection is None else selection.queue
        if selection is None or queue is None:
            found: Interaction | None = playing
            similarity, why, nearest = similarity_of(live, playing.rounds), UNANSWERED, playing
        else:
            similarity, matching = queue.closest(live)
            found = self._take(
                (selection.place, _answers_text([live[each] for each in sorted(live)])), matching
            )
            why = EXHAUSTED if found is None and self._accepts(similarity) else UNANSWERED
            nearest = playing if found is None or similarity is Similarity.UNRELATED else found
        if found is not None and self._accepts(similarity):
            self._used[playing.order] -= 1
            self._used[found.order] += 1
            return found, None
        asked = playing.steps[playing.request_places[number]].message
        key = request_key(asked) if isinstance(asked, Request) else None
        old, new = ({"result": (each[number].answer or {}).get("")} for each in (nearest.rounds, live))
        about = "" if playing.key is None else playing.key.about
        compared = [] if key is None or why == EXHAUSTED else [near(key, new, old)]
        miss = Miss(about, why, compared, "" if key is None else key.method)
        self.misses.append(miss.text)
        if queue is not None and not self._plays_nearest:
            return None, miss
        self._used[playing.order] -= 1
        self._used[nearest.order] += 1
        return nearest, miss

    def select_notified(self, method: str) -> Interaction | None:
        """Return the next interaction of a client's notification; None if there is none."""
        number = self._notified.get(method, 0)
        self._notified[method] = number + 1
        return self._recordings.notified(method, number)

    def is_settled(self, message: AnyMessage, key: RequestKey | None) -> bool:
        """Return True if the unread rest cannot change the response to a message."""
        recordings = self._recordings
        if recordings.is_whole:
            return True
        if isinstance(message, Notification):
            if message.method == CANCELLED:
                return True
            interaction = recordings.notified(message.method, self._notified.get(message.method, 0))
            return interaction is not None and recordings.is_settled(interaction.order)
        if not isinstance(message, Request) or key is None:
            return True
        if message.method in HANDSHAKE_METHODS:
            return self._is_handshake_settled(message)
        if key.version is not None and key.version not in recordings.versions:
            return False  # The server may reject the revision.
        place, queue, _ = self._find(message, key)
        return queue is not None and queue.is_settled(self._taken.get(place, 0))

    def unused(self) -> list[Interaction]:
        recordings = self._recordings
        return [recordings.interaction(order) for order in recordings.orders() if not self._used[order]]

    def _find_redacted(self, key: RequestKey) -> bytes | None:
        """Return the digest of a redacted request that may be this one, preferably one without another match."""
        if key.digest not in self._redacted:
            matched = set(self._redacted.values())
            found = list(self._recordings.redacted(key))
            free = [each for each in found if each not in matched]
            if not found:
                return None
            self._redacted[key.digest] = (free or found)[0]
        return self._redacted[key.digest]

    def _find(self, request: Request, key: RequestKey) -> tuple[object, ResponseQueue | None, Similarity]:
        """Return the queue for a request, and the key of this client's position in it.

        If the request answers a question, the queue has the interactions with the same answers, or else the most
        similar ones; the last item is their similarity.
        """
        recordings, answers = self._recordings, key.question is not None
        place: object
        if self._mode is MatchMode.METHOD:
            place, queue = (key.method, answers), recordings.queue_of(key.method, answers=answers)
        elif self._mode is MatchMode.TOOL:
            place, queue = (key.method, key.subject, answers), recordings.queue_of_subject(key)
        else:
            place, queue = key.digest, recordings.queue(key.digest)
            if (
                queue is None
                and recordings.is_whole
                and (digest := self._find_other(request, key)) is not None
            ):
                place, queue = digest, recordings.queue(digest)
        if queue is None or not answers:
            return place, queue, Similarity.SAME
        rounds = recordings.rounds_until(request)
        similarity, matching = queue.answering(rounds)
        if not self._accepts(similarity) and not recordings.is_whole:
            return place, None, similarity
        return (place, _answers_text(rounds)), matching or queue, similarity

    def _find_other(self, request: Request, key: RequestKey) -> bytes | None:
        """Return the digest of a recorded request that is used for a different one; None without one."""
        redacted = self._find_redacted(key)
        if redacted is not None or self._mode is MatchMode.EXACT:
            return redacted
        return self._recordings.similar(request, key, only_one=self._mode is MatchMode.LENIENT)

    def _accepts(self, similarity: Similarity) -> bool:
        """Return True if answers of this similarity match: with MatchMode.EXACT, their content must be equal."""
        return similarity <= (
            Similarity.OTHER_QUESTION if self._mode is MatchMode.EXACT else Similarity.SAME_ACTION
        )

    def _take(self, place: object, queue: ResponseQueue) -> Interaction | None:
        """Return the next interaction of a queue; None if all are used up."""
        number = self._taken.get(place, 0)
        if not queue or (number >= len(queue) and not self._repeats):
            return None
        self._taken[place] = number + 1
        return queue[min(number, len(queue) - 1)]

    def _selected(
        self, interaction: Interaction, place: object, queue: ResponseQueue, miss: Miss | None = None
    ) -> Selection:
        self._used[interaction.order] += 1
        return Selection(interaction=interaction, place=place, queue=queue, miss=miss)

    def _handshake(self, request: Request) -> Selection:
        """Select the response to `initialize`, whatever the client's name, or to `server/discover`."""
        recordings, params = self._recordings, request.params
        is_probe = request.method == "server/discover"
        version = params.get("protocolVersion") if isinstance(params, dict) else None
        recorded = [pair for pair in recordings.handshakes(request.method) if pair[0].is_answered]
        accepted = [pair for pair in recorded if pair[0].is_accepted]
        if recorded:
            same = [] if is_probe else [pair for pair in accepted if pair[0].revision == version]
            handshake, order = same[0] if same else (accepted or recorded)[-1]
            return Selection(interaction=recordings.interaction(order), revision=handshake.revision)
        if is_probe and recordings.is_modern:
            return Selection(result=unrecorded.discovered(recordings))
        if is_probe:
            return Selection(code=METHOD_NOT_FOUND, why="Method not found")
        if recordings.is_modern:
            return _unsupported(recordings.versions, version)
        revision = version if version in REVISIONS[:-1] else REVISIONS[-2]
        result = {"protocolVersion": revision, **unrecorded.initialized(recordings)}
        return Selection(result=result, revision=revision)

    def _is_handshake_settled(self, request: Request) -> bool:
        recordings, params = self._recordings, request.params
        found = self._handshake(request)
        interaction = found.interaction
        is_settled = interaction is not None and recordings.is_settled(interaction.order)
        if request.method == "server/discover":
            if interaction is None:
                return recordings.has_handshakes
            return interaction.is_answered and is_settled
        version = params.get("protocolVersion") if isinstance(params, dict) else None
        return found.revision is not None and found.revision == version and is_settled


def _is_fraction(request: Request) -> bool:
    """Return whether an id is a number that is not spelled as an integer, which JSON-RPC 2.0, 4 advises against."""
    return request.id[:1] not in '"tfn[{' and not request.id.lstrip("-").isdigit()


def _answers_text(rounds: Sequence[InputRound]) -> str:
    return canonical([each.answer for each in rounds])


def never_sent(selectors: Sequence[Selector]) -> list[Interaction]:
    """Return the recorded requests that no client sent; `selectors` are those of all clients, at least one."""
    first, *others = selectors
    unused = [{interaction.order for interaction in selector.unused()} for selector in others]
    return [
        interaction
        for interaction in first.unused()
        if interaction.key is not None and all(interaction.order in orders for orders in unused)
    ]


def about(interaction: Interaction) -> str:
    """Return a recorded request in words, with its place: `tools/call echo (request 3 of echo.jsonl)`."""
    request = "" if interaction.key is None else interaction.key.about
    return f"{request} (request {interaction.number} of {interaction.recording})"


def _unsupported(supported: list[str], requested: object) -> Selection:
    return Selection(
        code=UNSUPPORTED_VERSION,
        why="Unsupported protocol version",
        data={"supported": supported, "requested": requested},
    )
