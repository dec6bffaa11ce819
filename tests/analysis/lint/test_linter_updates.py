"""What is learned from messages, in the order of the wire."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.analysis.lint import Linter
from mcpspy.analysis.lint.state import ConversationState, LintState
from mcpspy.core.protocol.spec import CLIENT, META, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Session

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}


class Heard:
    """A conversation, line by line."""

    def __init__(self) -> None:
        self.session, self.linter = Session(), Linter(None, ())

    def say(self, side: str, data: bytes | None = None, **members: Any) -> ConversationState:
        data = data or json.dumps({"jsonrpc": "2.0", **members}).encode()
        for change in self.session.add(Frame(1.0, side, data)):
            self.linter.add(change)
        return self.known.conversation(None)

    @property
    def known(self) -> LintState:
        return self.linter._known


def test_a_handshake_is_heard_step_by_step() -> None:
    heard = Heard()

    begun = heard.say(CLIENT, id=1, method="initialize", params={**HELLO, "clientInfo": {"name": "a"}})
    assert (begun.has_asked, begun.is_agreed, heard.known.revision) == (True, False, None)
    agreed = heard.say(SERVER, id=1, result={**HELLO, "serverInfo": {"name": "b"}})
    assert (agreed.is_agreed, agreed.introduced, agreed.is_usual) == (True, True, False)
    assert (heard.known.revision, heard.known.server_capabilities) == ("2025-11-25", {"tools": {}})
    assert heard.say(CLIENT, method="notifications/initialized").is_usual


def test_a_handshake_that_is_refused_may_begin_again() -> None:
    heard = Heard()
    heard.say(CLIENT, id=1, method="initialize", params=HELLO)

    assert not heard.say(SERVER, id=1, error={"code": -32602, "message": "no"}).has_asked


def test_a_token_is_kept_until_the_answer() -> None:
    heard = Heard()
    asked = heard.say(CLIENT, id=1, method="ping", params={"_meta": {"progressToken": "t"}})
    assert [*asked.tokens] == [(CLIENT, '"t"')]
    assert len(heard.known.open) == 1

    assert not heard.say(SERVER, id=1, result={}).tokens
    assert not heard.known.open


def test_levels_of_logging_are_heard_in_both_eras() -> None:
    heard = Heard()
    heard.say(CLIENT, id=1, method="logging/setLevel", params={"level": "warning"})

    assert heard.say(SERVER, id=1, result={}).log_level == "warning"
    assert heard.say(CLIENT, id=2, method="ping", params={"_meta": {META + "logLevel": "info"}}).wants_logs


def test_garbage_and_notifications_are_remembered_until_they_are_answered() -> None:
    heard = Heard()

    assert heard.say(CLIENT, b"{oops}").was_malformed == {CLIENT: True, SERVER: False}
    assert heard.say(SERVER, id=None, error={"code": -32700}).was_malformed == {CLIENT: False, SERVER: False}
    assert heard.say(CLIENT, method="a").has_notified == {CLIENT: True, SERVER: False}
    assert heard.say(SERVER, id=7, result={}).has_notified == {CLIENT: False, SERVER: False}
