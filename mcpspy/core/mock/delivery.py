"""What one client may hear, and under which ids.

Owns the translation of recorded ids into live ones (answers, progress tokens,
subscriptions, the server's own requests), and what is kept from a client that
did not ask for it: progress without a token, logs below its level, requests it
has no capability for.
"""

from __future__ import annotations

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.mock.interaction import Run, Step
from mcpspy.core.mock.matching import version
from mcpspy.core.protocol.message import Notification, Request, decoded, loads, meta_raw
from mcpspy.core.protocol.spec import META, METHODS

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

SUBSCRIPTION = META + "subscriptionId"


class Audience:
    """A client, as far as it decides what it is told."""

    def __init__(self) -> None:
        self.level: str | None = None
        """The log level of `logging/setLevel`; None if it never said one."""
        self.capabilities: object = None
        """Those of `initialize`."""
        self._waiting: dict[str, tuple[Run, int]] = {}
        self._sent: dict[tuple[Run, int], str] = {}
        self._listening: dict[tuple[str, int], bytes] = {}
        """Recorded subscription → id of the live one."""

    def listens(self, run: Run) -> None:
        """A subscription is open from now on."""
        if run.scene.number is not None and run.id is not None:
            self._listening[run.scene.told, run.scene.number] = run.id

    def left(self, run: Run) -> None:
        """A request is over: if it was a subscription, nothing comes on it any more."""
        if run.scene.is_subscription and run.scene.number is not None:
            self._listening.pop((run.scene.told, run.scene.number), None)

    def answered(self, id: str) -> tuple[Run, int] | None:  # noqa: A002
        """Return which request of ours an answer is to, by its id's JSON text; each is answered once."""
        return self._waiting.pop(id.strip('"'), None)  # Some clients answer 1 with "1".

    def is_spared(self, run: Run, step: Step) -> bool:
        """Whether the client could not answer a server request: a real server would not have asked."""
        message = step.message
        known = METHODS.get(message.method) if isinstance(message, Request) else None
        if known is None or known.needs is None:
            return False
        capabilities = self.capabilities
        if run.request is not None and version(run.request) is not None:
            if not run.scene.is_modern:
                return True  # From 2026-07-28 on servers have no requests.
            capabilities = loads(meta_raw(run.request.body.meta, META + "clientCapabilities"))
        return not (isinstance(capabilities, dict) and known.needs in capabilities)

    def carrier(self, run: Run, step: Step) -> bytes | None:
        """Return the id of the live request on whose behalf a message comes: a subscription, or what caused it."""
        if step.listens is not None:
            return self._listening.get((run.scene.told, step.listens), run.id)
        return run.id

    def told(self, run: Run, place: int, step: Step) -> bytes | None:
        """Return a recorded message as this client has to get it; None if it must not."""
        data = one_line(step.data)
        if step.is_answer:
            data = replaced(data, ("id",), run.id or b"null")
            if step.listens is not None and run.id is not None:
                data = replaced(data, ("result", "_meta", SUBSCRIPTION), run.id)
            return data
        message = step.message
        if isinstance(message, Request):
            id = str(len(self._sent) + 1)  # noqa: A001
            self._waiting[id], self._sent[run, place] = (run, place), id
            return replaced(data, ("id",), id.encode())
        if not isinstance(message, Notification):
            return None  # The recording was changed while it was served.
        if message.method == "notifications/progress":
            token = run.request.progress_token if run.request is not None else None
            return None if token is None else replaced(data, ("params", "progressToken"), token.encode())
        if message.method == "notifications/message":
            return data if self._is_loud_enough(run, message) else None
        if step.withdraws is not None:
            sent = self._sent.get((run, step.withdraws))
            return None if sent is None else replaced(data, ("params", "requestId"), sent.encode())
        if step.listens is not None:
            listening = self._listening.get((run.scene.told, step.listens))
            path = ("requestId",) if message.method == "notifications/cancelled" else ("_meta", SUBSCRIPTION)
            return None if listening is None else replaced(data, ("params", *path), listening)
        return data

    def _is_loud_enough(self, run: Run, message: Notification) -> bool:
        least, level = self.level, message.subject
        if run.request is not None and version(run.request) is not None:
            least = decoded(meta_raw(run.request.body.meta, META + "logLevel"))
            if least is None:
                return False  # A request of 2026-07-28 that names no level wants no logs.
        if least not in LEVELS or level not in LEVELS:
            return True
        return LEVELS.index(level) >= LEVELS.index(least)
