"""Which recorded answer is next, for one client.

Owns `--match` and `--on-exhausted`: each conversation takes the answers of a
key from the first on. What was asked for, and what was not, is kept for the end.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import islice

from mcpspy.core.mock.asked import Asked
from mcpspy.core.mock.library import Library
from mcpspy.core.mock.scene import Scene


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
        self._used: set[Scene] = set()

    def answer(self, asked: Asked) -> Scene | None:
        """Return what is answered to a request; None if nothing is."""
        library = self._library
        answers = asked.question is not None
        if self._match is Match.METHOD:
            return self._next((asked.method, answers), library.methods.get((asked.method, answers)))
        key = asked.key
        if key not in library.queues and self._match is Match.LENIENT:
            keys = library.keys.get((asked.method, asked.subject, answers), ())
            if len(keys) == 1:
                key = keys[0]
        queue = library.queues.get(key)
        if queue is not None and asked.responses is not None:
            # Of one question, the answer to what the user said; else the next.
            heard = [
                scene
                for scene in queue
                if scene.asked is not None and scene.asked.responses == asked.responses
            ]
            if heard:
                return self._next((key, asked.responses), heard)
        return self._next(key, queue)

    def notice(self, method: str) -> Scene | None:
        """Return what follows a notification of the client; None if nothing does, or no more."""
        number = self._noticed.get(method, 0)
        self._noticed[method] = number + 1
        return next(islice(self._library.notices.get(method, ()), number, None), None)

    def unused(self) -> list[Scene]:
        """Return the recorded requests that were never asked for."""
        return [scene for scene in self._library.scenes if scene not in self._used]

    def _next(self, place: object, queue: list[Scene] | None) -> Scene | None:
        if not queue:
            return None
        number = self._taken.get(place, 0)
        if number >= len(queue) and not self._repeats:
            return None
        self._taken[place] = number + 1
        scene = queue[min(number, len(queue) - 1)]
        self._used.add(scene)
        return scene
