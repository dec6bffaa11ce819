"""A conversation with a server that is recorded.

`mcpspy call` does not import the forms of the other user interfaces: this module is apart from `server_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcpspy.core.protocol.message import Notification
from mcpspy.core.recording.origin import CALL
from mcpspy.errors import McpspyError
from mcpspy.io.client import ServerCommand, ServerTarget
from mcpspy.io.client.conversation import Answer, Conversation
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import RecordingObserver, header_fields

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.io.client.oauth import OAuthClient


class RecordedConversation:
    """A conversation that is recorded with the origin `call`; an async context manager."""

    def __init__(
        self,
        where: RecordingTarget,
        name: str,
        target: ServerTarget,
        seconds: float,
        *,
        answers: Mapping[str, Answer] | None = None,
        notified: Callable[[Notification], None] | None = None,
        oauth: OAuthClient | None = None,
    ) -> None:
        where.origin = CALL
        self._is_command = isinstance(target, ServerCommand)
        self.observer = RecordingObserver(where, header_fields(target, name), collects=False)
        self._conversation = Conversation(
            target, self.observer, seconds, answers=answers, notified=notified, oauth=oauth
        )

    async def __aenter__(self) -> Conversation:
        try:
            return await self._conversation.__aenter__()
        except McpspyError as error:
            self.observer.note("error", text=str(error))
            self.observer.finish(None, None)
            raise
        except BaseException:  # Cancelled.
            self.observer.finish(None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._conversation.__aexit__(kind, error, trace)
        finally:
            ended = self._conversation.ended
            if self._is_command:
                self.observer.finish(ended and ended.code, ended and ended.signal)
            else:
                self.observer.finish(0, None)
