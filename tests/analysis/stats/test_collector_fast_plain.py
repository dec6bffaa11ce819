"""What is read the short way is read as the long way reads it; the rest does not fit."""

from __future__ import annotations

import pytest
from msgspec import DecodeError

from mcpspy.analysis.stats.collector_fast import LONG_WAY, SUBJECTS, decode
from mcpspy.core.protocol.spec import METHODS


def test_a_line_is_read_by_its_numbers() -> None:
    line = decode(
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","id":7,"result":{"isError":true,"x":[1]}}}'
    )

    assert (line.t, line.side, line.msg.id) == (1.5, "server", 7)
    assert line.msg.result is not None
    assert line.msg.result.is_error


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":1.5,"from":"server","stream":"1","id":"7","msg":{"jsonrpc":"2.0"}}',
        b'{"t":1.5,"from":"server","eol":"","msg":{"jsonrpc":"2.0"}}',
        b'{"t":1.5,"from":"server","msg":[{"jsonrpc":"2.0"}]}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","params":{"name":5}}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","result":{"isError":"yes"}}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"error":null}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","id":1.0,"result":{}}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"2.0","id":null,"result":{}}}',
        b'{"t":1.5,"from":"server","msg":{"jsonrpc":"1.0","id":1,"result":{}}}',
        b'{"t":1.5,"from":"somebody","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
        b'{"t":1.5,"from":"client","msg":{"jsonrpc":"2.0","method":"x","params":{"requestState":""}}}',
        b'{"t":1.5,"from":"server","msg":{oops}}',
    ],
)
def test_what_does_not_fit_is_refused(line: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(line)


def test_what_a_method_is_about_is_either_read_or_goes_the_long_way() -> None:
    for name, method in METHODS.items():
        if method.subject is not None and method.kind == "request":
            assert (name in SUBJECTS) != (name in LONG_WAY)
