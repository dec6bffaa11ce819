"""Which recorded answer is next, for one client.

Owns `--match` and `--on-exhausted`: each conversation takes the answers of a
key from the first on. What was asked for, and what was not, is kept for the end.

The short way from a request to its answer.

Owns the requests of which nothing is odd and that were answered with one message and nothing besides:
nearly all of a session, at a quarter of what any message takes. Refuses the rest, and what the server
keeps in mind of a client. That goes the way of `conversation`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from mcpspy.core.jsontools import Pointer, one_line, replaced
from mcpspy.core.mock.interaction import Scene
from mcpspy.core.mock.matching import Asked, glance, is_plain
from mcpspy.core.mock.recordings import Library, Queue


class Match(StrEnum):
    """What has to be the same."""

    EXACT = "exact"
    LENIENT = "lenient"
    """As exact; else the same tool, resource … with other arguments, if only one was recorded."""
    METHOD = "method"
    """The method alone: requests take the answers in their order."""


class Choice:
    """The place of one client in each queue."""

    def __init__(self, library: Library, match: Match = Match.EXACT, *, repeats: bool = True) -> None:
        self.misses: list[str] = []
        """What was asked for and not answered as recorded, one line each."""
        self._library = library
        self._match = match
        self._repeats = repeats
        self._taken: dict[object, int] = {}
        self._noticed: dict[str, int] = {}
        self._stands: dict[bytes, bytes] = {}
        """Digest of a live request → that of the redacted one it was taken for."""
        self._used: set[int] = set()

    def answer(self, asked: Asked) -> Scene | None:
        """Return what is answered to a request; None if nothing is."""
        place, queue = self._find(asked)
        if not queue:
            return None
        number = self._taken.get(place, 0)
        if number >= len(queue) and not self._repeats:
            return None
        self._taken[place] = number + 1
        scene = queue[min(number, len(queue) - 1)]
        self._used.add(scene.order)
        return scene

    def plain_answer(self, digest: bytes) -> bytes | None:
        """Return what is answered to a plain request, by its digest; None if `answer` has to say."""
        if self._match is Match.METHOD:
            return None
        number = self._taken.get(digest, 0)
        found = self._library.plain_answer(digest, number, repeats=self._repeats)
        if found is None:
            return None
        order, data = found
        self._taken[digest] = number + 1
        self._used.add(order)
        return data

    def notice(self, method: str) -> Scene | None:
        """Return what follows a notification of the client; None if nothing does, or no more."""
        number = self._noticed.get(method, 0)
        self._noticed[method] = number + 1
        return self._library.notice(method, number)

    def is_sure(self, asked: Asked) -> bool:
        """Whether what has been read of the recordings is enough to answer a request as all of it would."""
        if self._library.is_whole:
            return True
        place, queue = self._find(asked)
        return queue is not None and queue.is_settled(self._taken.get(place, 0))

    def is_noticed(self, method: str) -> bool:
        """Whether it is enough to know what follows a notification."""
        if self._library.is_whole:
            return True
        scene = self._library.notice(method, self._noticed.get(method, 0))
        return scene is not None and self._library.is_settled(scene.order)

    def unused(self) -> list[Scene]:
        """Return the recorded requests that were never asked for."""
        library = self._library
        return [library.scene(order) for order in library.orders() if order not in self._used]

    def _redacted(self, asked: Asked, digest: bytes) -> bytes | None:
        """Return the digest of what was redacted, if a request may be that: of several, one that stands for no other yet."""
        if digest not in self._stands:
            taken = set(self._stands.values())
            found = list(self._library.redacted(asked))
            free = [each for each in found if each not in taken]
            if not found:
                return None
            self._stands[digest] = (free or found)[0]
        return self._stands[digest]

    def _find(self, asked: Asked) -> tuple[object, Queue | None]:
        """Return the queue that a request is answered from, and what this client's place in it is kept under."""
        library, answers = self._library, asked.question is not None
        if self._match is Match.METHOD:
            return (asked.method, answers), library.queue_of(asked.method, answers=answers)
        digest = asked.digest
        queue = library.queue(digest)
        if queue is None and library.is_whole and (redacted := self._redacted(asked, digest)) is not None:
            digest, queue = redacted, library.queue(redacted)
        if queue is None and self._match is Match.LENIENT and (only := library.only(asked)) is not None:
            digest, queue = only, library.queue(only) if library.is_whole else None
        if queue is not None and asked.responses is not None:
            # Of one question, the answer to what the user said; else the next.
            heard = queue.answering(asked.responses)
            if heard or not library.is_whole:
                return (digest, asked.responses), heard
        return digest, queue


_KEPT = "logging/setLevel"
"""The request that the server keeps in mind."""


class _Asking(Struct, gc=False):
    """The members of a request."""

    jsonrpc: str
    id: Raw
    method: str
    params: Raw = Raw(b"")


_decode = Decoder(_Asking).decode


class Ready(NamedTuple):
    """The answer to a request."""

    id: bytes
    """The request's, JSON text."""
    data: bytes


def ready(data: bytes, choice: Choice, ignored: tuple[Pointer, ...]) -> Ready | None:
    """Return what is answered to a line or body; None if that takes more than a look, and nothing was done."""
    try:
        asking = _decode(data)
    except (DecodeError, RecursionError):
        return None
    id = bytes(asking.id)  # noqa: A001
    if asking.jsonrpc != "2.0" or asking.method == _KEPT or not (is_plain(id) and id.isascii()):
        return None
    wanted = glance(asking.method, bytes(asking.params), ignored)
    answer = None if wanted is None else choice.plain_answer(wanted.digest)
    return None if answer is None else Ready(id, replaced(one_line(answer), ("id",), id))
