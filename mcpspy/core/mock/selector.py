"""Selection of the response to a client: the next recorded interaction or a substitute.

The module implements `--match` and `--on-exhausted`: each client gets the interactions of a key from the first on.
It also answers handshakes: a legacy server does not know `server/discover`, a modern one rejects `initialize`, and a
server answers an unsupported revision with a supported one. The fast path handles plain requests whose interaction is
a single response, nearly all of a session, in a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.mock import responses
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.matching import RequestKey, plain_key
from mcpspy.core.mock.recordings import Recordings, ResponseQueue
from mcpspy.core.mock.responses import Miss
from mcpspy.core.protocol.message import AnyMessage, Notification, Request
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import REVISIONS
from mcpspy.core.recording.plain_line import plain_id, plain_message

SET_LEVEL = "logging/setLevel"

NEVER_MISSED = ("ping", "resources/subscribe", "resources/unsubscribe", SET_LEVEL)
"""Requests that get an empty result if they were not recorded."""

CANCELLED = "notifications/cancelled"


class MatchMode(StrEnum):
    """Parts of a request that must be equal to a recorded one."""

    EXACT = "exact"
    LENIENT = "lenient"
    """Like EXACT, or else the same tool, resource … with other arguments if only one request was recorded."""
    METHOD = "method"
    """Only the method: requests get the recorded responses in order."""


class Selection(Struct, frozen=True, kw_only=True):
    """A recorded interaction, or a result, miss or error in its place."""

    interaction: Interaction | None = None
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
        self, recordings: Recordings, mode: MatchMode = MatchMode.EXACT, *, repeats: bool = True
    ) -> None:
        self.misses: list[str] = []
        self._recordings = recordings
        self._mode = mode
        self._repeats = repeats
        self._taken: dict[object, int] = {}
        self._notified: dict[str, int] = {}
        self._redacted: dict[bytes, bytes] = {}
        """Digest of a live request → digest of the redacted request matched with it."""
        self._used: set[int] = set()

    def fast_response(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the response to a plain request and the id of the request; None if `select` is needed."""
        plain = plain_message(data)
        if plain is None or plain.method is UNSET or plain.result is not UNSET or plain.method == SET_LEVEL:
            return None
        if self._mode is MatchMode.METHOD or (id := plain_id(plain.id)) is None:  # noqa: A001
            return None
        params = b"" if plain.params is UNSET else bytes(plain.params)
        key = plain_key(plain.method, params, self._recordings.ignored)
        if key is None:
            return None
        number = self._taken.get(key.digest, 0)
        found = self._recordings.plain_response(key.digest, number, repeats=self._repeats)
        if found is None:
            return None
        self._taken[key.digest] = number + 1
        self._used.add(found[0])
        return replaced(one_line(found[1]), ("id",), id.encode()), id.encode()

    def select(self, request: Request, key: RequestKey) -> Selection:
        recordings = self._recordings
        if request.method in HANDSHAKE_METHODS:
            return self._handshake(request)
        supported = recordings.versions if key.version is not None else []
        if supported and key.version not in supported:
            return _unsupported(supported, key.version)
        place, queue = self._find(key)
        number = self._taken.get(place, 0)
        if queue and (number < len(queue) or self._repeats):
            self._taken[place] = number + 1
            interaction = queue[min(number, len(queue) - 1)]
            self._used.add(interaction.order)
            return Selection(interaction=interaction)
        if request.method in NEVER_MISSED:
            return Selection(result={})
        is_exhausted = recordings.queue(key.digest) is not None
        miss = Miss(key, is_exhausted, [] if is_exhausted else recordings.nearest(request, key))
        self.misses.append(miss.text)
        return Selection(miss=miss)

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
        place, queue = self._find(key)
        return queue is not None and queue.is_settled(self._taken.get(place, 0))

    def unused(self) -> list[Interaction]:
        recordings = self._recordings
        return [recordings.interaction(order) for order in recordings.orders() if order not in self._used]

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

    def _find(self, key: RequestKey) -> tuple[object, ResponseQueue | None]:
        """Return the queue for a request, and the key of this client's position in it."""
        recordings, answers, digest = self._recordings, key.question is not None, key.digest
        if self._mode is MatchMode.METHOD:
            return (key.method, answers), recordings.queue_of(key.method, answers=answers)
        queue = recordings.queue(digest)
        if queue is None and recordings.is_whole and (redacted := self._find_redacted(key)) is not None:
            digest, queue = redacted, recordings.queue(redacted)
        if queue is None and self._mode is MatchMode.LENIENT and (only := recordings.only(key)) is not None:
            digest, queue = only, recordings.queue(only) if recordings.is_whole else None
        if queue is not None and key.responses is not None:
            # Prefer interactions with the same answer to the question, otherwise use the next one.
            matching = queue.answering(key.responses)
            if matching or not recordings.is_whole:
                return (digest, key.responses), matching
        return digest, queue

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
            return Selection(result=responses.discovered(recordings))
        if is_probe:
            return Selection(code=responses.METHOD_NOT_FOUND, why="Method not found")
        if recordings.is_modern:
            return _unsupported(recordings.versions, version)
        revision = version if version in REVISIONS[:-1] else REVISIONS[-2]
        result = {"protocolVersion": revision, **responses.initialized(recordings)}
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


def never_sent(selectors: Sequence[Selector]) -> list[Interaction]:
    """Return the recorded requests that no client sent; `selectors` are those of all clients."""
    if not selectors:
        return []
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
        code=responses.UNSUPPORTED_VERSION,
        why="Unsupported protocol version",
        data={"supported": supported, "requested": requested},
    )
