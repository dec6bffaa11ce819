"""Updates of the state from messages, in wire order."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.analysis.lint import Linter
from mcpspy.analysis.lint.state import ConversationState, LintState
from mcpspy.core.protocol.spec import CLIENT, META, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Session

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}


class Conversation:
    """A conversation, line by line."""

    def __init__(self) -> None:
        self.session, self.linter = Session(), Linter(None, ())

    def add(self, side: str, data: bytes | None = None, **members: Any) -> ConversationState:
        data = data or json.dumps({"jsonrpc": "2.0", **members}).encode()
        for change in self.session.add(Frame(1.0, side, data)):
            self.linter.add(change)
        return self.state.conversation(None)

    @property
    def state(self) -> LintState:
        return self.linter._known


def test_a_handshake_updates_the_state_step_by_step() -> None:
    conversation = Conversation()

    begun = conversation.add(CLIENT, id=1, method="initialize", params={**HELLO, "clientInfo": {"name": "a"}})
    assert (begun.initialize_sent, begun.is_negotiated, conversation.state.revision) == (True, False, None)
    agreed = conversation.add(SERVER, id=1, result={**HELLO, "serverInfo": {"name": "b"}})
    assert (agreed.is_negotiated, agreed.has_capabilities, agreed.is_usual) == (True, True, False)
    assert (conversation.state.revision, conversation.state.server_capabilities) == (
        "2025-11-25",
        {"tools": {}},
    )
    assert conversation.add(CLIENT, method="notifications/initialized").is_usual


def test_a_handshake_that_is_refused_may_begin_again() -> None:
    conversation = Conversation()
    conversation.add(CLIENT, id=1, method="initialize", params=HELLO)

    assert not conversation.add(SERVER, id=1, error={"code": -32602, "message": "no"}).initialize_sent


def test_a_token_is_kept_until_the_answer() -> None:
    conversation = Conversation()
    pending = conversation.add(CLIENT, id=1, method="ping", params={"_meta": {"progressToken": "t"}})
    assert [*pending.tokens] == [(CLIENT, '"t"')]
    assert len(conversation.state.open) == 1

    assert not conversation.add(SERVER, id=1, result={}).tokens
    assert not conversation.state.open


def test_log_levels_are_known_in_all_revisions() -> None:
    conversation = Conversation()
    conversation.add(CLIENT, id=1, method="logging/setLevel", params={"level": "warning"})

    assert conversation.add(SERVER, id=1, result={}).log_level == "warning"
    assert conversation.add(
        CLIENT, id=2, method="ping", params={"_meta": {META + "logLevel": "info"}}
    ).logs_requested


def test_garbage_and_notifications_are_remembered_until_they_are_answered() -> None:
    conversation = Conversation()

    assert conversation.add(CLIENT, b"{oops}").was_malformed == {CLIENT: True, SERVER: False}
    assert conversation.add(SERVER, id=None, error={"code": -32700}).was_malformed == {
        CLIENT: False,
        SERVER: False,
    }
    assert conversation.add(CLIENT, method="a").has_notified == {CLIENT: True, SERVER: False}
    assert conversation.add(SERVER, id=7, result={}).has_notified == {CLIENT: False, SERVER: False}
