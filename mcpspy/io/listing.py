"""A session that only lists: mcpspy connects to a server, and reads what it offers."""

from __future__ import annotations

import asyncio

from mcpspy.core.protocol.spec import MODERN
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart
from mcpspy.io.client import ServerTarget
from mcpspy.io.client.conversation import LEGACY, Conversation, HandshakeRefused, offered_lists
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import RecordingObserver, header_fields


async def listed(target: ServerTarget, seconds: float) -> Session:
    """Return the session of a client that initializes and lists everything. Raise CannotStart.

    `seconds` is the time limit of the whole session. Nothing is recorded, and nothing is redacted.
    """
    where = RecordingTarget()
    where.recording, where.redaction.off = False, True
    observer = RecordingObserver(where, header_fields(target))
    conversation = Conversation(target, observer, seconds)
    async with conversation:
        try:
            async with asyncio.timeout(seconds):
                await _list(conversation)
        except TimeoutError:
            raise CannotStart(f"{conversation.name}: no complete listing within {seconds:g} s") from None
    observer.session.end()
    return observer.session


async def _list(conversation: Conversation) -> None:
    try:
        offer = await conversation.begin(LEGACY)
    except HandshakeRefused as error:
        try:
            offer = await conversation.begin(MODERN)  # It may have no other.
        except CannotStart:
            hint = "record a session with a client of its revision, and use mcpspy trust SESSION"
            raise CannotStart(str(error.args[0]), hint) from None
    for method in offered_lists(offer):
        await conversation.pages(method)
