"""The event that rules check."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.event import LintEvent, is_truncated, is_unusual
from mcpspy.analysis.lint.state import ConversationState, LintState
from mcpspy.core.protocol.message import read_frame
from mcpspy.core.recording.decode import Frame


def event(data: bytes) -> LintEvent:
    (message,) = read_frame(Frame(1.0, "server", data))
    return LintEvent(
        message,
        LintState(None),
        ConversationState(None),
        place=EntryPosition(),
        number=0,
        revision=None,
        data=data,
    )


def test_a_message_is_decoded_once() -> None:
    message = event(b'{"jsonrpc":"2.0","id":1,"result":{"a":[]}}')

    assert message.result == {"a": []}
    assert message.result is message.result
    assert message.params == {}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"result":{"n":NaN}}', "nan"),
        (b'{"result":{"n":"\\ud800"}}', "'\\ud800'"),
        (b'{"result":{"n":"\xff"}}', "'\ufffd'"),
        (b'{"result":7}', "None"),
        (b"{oops}", "None"),
        (b"[1]", "None"),
    ],
    ids=["NaN", "surrogate", "bytes", "number", "none", "list"],
)
def test_lax_json_is_read_too(data: bytes, value: str) -> None:
    assert ascii(event(data).result.get("n")) == ascii(eval(value, {"nan": float("nan")}))


@pytest.mark.parametrize(
    ("frame", "flaw", "unusual"),
    [
        (Frame(1.0, "client", b'{"jsonrpc":"2.0","method":"a"}'), None, False),
        (Frame(1.0, "client", b'{"jsonrpc":"2.0","method":"a"}'), "unsolicited response", True),
        (Frame(1.0, "client", b'{"method":"a"}'), None, True),
        (Frame(1.0, "client", b'[{"jsonrpc":"2.0","method":"a"}]'), None, True),
        (Frame(1.0, "client", b'{"jsonrpc":"2.0","method":"a"}', eol=""), None, True),
        (Frame(1.0, "client", b'{"jsonrpc":"2.0","method":"a"}', "1", 1, ""), None, False),
    ],
    ids=["plain", "unpaired", "flawed", "batch", "torn", "http"],
)
def test_few_messages_are_unusual(frame: Frame, flaw: str | None, unusual: bool) -> None:
    assert is_unusual(read_frame(frame)[0], flaw) is unusual


@pytest.mark.parametrize(
    ("data", "compact"),
    [
        (b'{"jsonrpc":"2.0","method":"a","params":{"b":"\xc3\xbc"}}', True),
        (b'{"jsonrpc":"2.0","method":"a", "params":{}}', False),
        (b'{"jsonrpc":"2.0","method":"a","method":"a"}', False),
        (b'{"jsonrpc":"2.0","method":"\\u0061"}', False),
        (b'{"jsonrpc":"2.0","method":"a","params":{"n":123456789012345678901}}', False),
        (b'{"jsonrpc":"2.0","method":"a","params":{"n":9007199254740991}}', True),
        (b'{"jsonrpc":"2.0","method":"a","params":{"n":9007199254740993}}', False),
        (b'{"jsonrpc":"2.0","method":"a","params":{"n":"\\ud800"}}', False),
        (b"{oops}", False),
    ],
    ids=["compact", "blank", "twice", "escape", "huge", "exact", "rounded", "surrogate", "garbage"],
)
def test_a_compact_message_has_no_duplicate_keys_no_escapes_and_no_integer_that_peers_round(
    data: bytes, compact: bool
) -> None:
    assert event(data).is_compact is compact


def test_a_line_is_truncated_if_it_is_the_beginning_of_a_message() -> None:
    assert is_truncated(b' {"id":1,"result":{"a":"\xc3')
    for whole in (b"{}", b"{]", b'"a', b"DEBUG: {", b"[" * 100_000):
        assert not is_truncated(whole)
