"""What the rules learn from a message, once they have looked at it.

Owns the changes to `conversation`'s facts; all of them are made here, in the
order of the wire.
"""

from __future__ import annotations

from mcpspy.analysis.lint.conversation import Asked
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    meta_raw,
)
from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import META, other


def hear(what: AnyMessage, seen: Seen) -> None:
    """Take a message."""
    conversation, side = seen.conversation, seen.side
    if isinstance(what, Request):
        _request(what, seen)
        conversation.has_notified[side] = False
        return
    if isinstance(what, Notification):
        if what.method == "notifications/initialized":
            conversation.is_initialized = True
        conversation.has_notified[side] = True
        return
    if isinstance(what, Malformed):
        conversation.was_malformed[side] = True
    else:
        if isinstance(what, Failure) and what.id is None:
            conversation.was_malformed[other(side)] = False
        if seen.asked is not None:
            _answer(what, seen, seen.asked.exchange.request)
    conversation.has_notified[side] = conversation.has_notified[other(side)] = False


def _request(what: Request, seen: Seen) -> None:
    conversation = seen.conversation
    assert seen.exchange is not None
    asked = Asked(seen.exchange, conversation, seen.place, seen.number, seen.revision, seen.subject)
    seen.known.open[id(seen.exchange)] = asked
    if meta := what.body.meta:
        if (token := what.progress_token) is not None:
            conversation.tokens[seen.side, token] = asked
        if meta_raw(meta, META + "logLevel"):
            conversation.wants_logs = True
    conversation.hear_request(what)
    if what.method == "initialize":
        conversation.has_asked = True


def _answer(what: Result | Failure, seen: Seen, request: Request) -> None:
    conversation, method = seen.conversation, request.method
    if request.body.meta and (token := request.progress_token) is not None:
        conversation.tokens.pop((request.side, token), None)
    conversation.hear_answer(what, method)
    if isinstance(what, Failure):
        if method == "initialize":
            conversation.has_asked = False
    elif method in INTRODUCTIONS:
        conversation.introduced = True
        seen.known.server_capabilities = conversation.server_capabilities
        seen.known.revision = conversation.revision or seen.known.revision
        conversation.is_agreed = conversation.is_agreed or method == "initialize"
    elif method == "logging/setLevel":
        conversation.log_level = request.subject
    elif method == "tools/list":
        seen.known.learn_tools(seen.result, seen.place, what.data)
