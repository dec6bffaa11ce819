"""Which lines are plain: taken at a look, with the rest left to be read the long way."""

from __future__ import annotations

import pytest

from mcpspy.core.session.index import Index
from mcpspy.core.session.index_fast import PlainLines

HANDSHAKE = [
    b'{"t":0.1,"from":"client","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"}}}}',
    b'{"t":0.2,"from":"server","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}}',
]

ASKED = b'{"t":1.5,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":7}}}}'
ANSWERED = b'{"t":2.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}}'


def taken(*lines: bytes, known: bool = True) -> tuple[int, Index]:
    """Return how many lines are plain, in a session that has begun."""
    index = Index()
    if known:
        index.add_lines(HANDSHAKE, 0)
    place, offset = PlainLines(index, index, index._pairing).take(lines, 0, 1000)
    assert offset == 1000 + sum(len(line) + 1 for line in lines[:place])
    assert len(index) == place + (2 if known else 0)
    return place, index


def test_a_call_and_its_answer_are_plain_and_two_rows_that_belong_together() -> None:
    count, index = taken(ASKED, ANSWERED)
    assert count == 2
    assert (index.pair(2), index.pair(3), list(index.wrong)) == (3, 2, [3])
    assert [(index.texts[index.method[row]], index.texts[index.subject[row]]) for row in (2, 3)] == [
        ("tools/call", "echo")
    ] * 2
    assert [(index.at[row], index.side(row), index.id(row)) for row in (2, 3)] == [
        (1.5, "client", "1"),
        (2.5, "server", "1"),
    ]
    assert (index.where(3).offset, index.where(3).length) == (1000 + len(ASKED) + 1, len(ANSWERED))
    assert index.size[2] == len(ASKED) - len(b'{"t":1.5,"from":"client","msg":}')


@pytest.mark.parametrize(
    "odd",
    [
        b'{"t":1,"note":"stderr","text":"x"}',
        ASKED + b" ",
        ASKED.replace(b'"from"', b'"http":1,"from"'),
        ASKED.replace(b"client", b"nobody"),
        ASKED.replace(b"2.0", b"1.0"),
        ASKED.replace(b'"id":1', b'"id":"1"'),
        ASKED.replace(b'"id":1', b'"id":1.0'),
        ASKED.replace(b'"id":1', b'"id":123456789012345678'),
        ASKED.replace(b'"id":1', b'"id":0'),  # Seen before.
        ASKED.replace(b'"id":1,', b""),
        ASKED.replace(b'"echo"', b"5"),
        ASKED.replace(b'"name"', b'"requestState":"s","name"'),
        ASKED.replace(b'"name"', b'"ref":{"name":"x"},"name"'),
        ASKED.replace(b"tools/call", b"initialize"),
        ASKED.replace(b'"echo"', b'"\xff"'),
        ASKED.replace(b'"method"', b'"error":{},"method"'),
        ASKED.replace(b'"method"', b'"result":{},"method"'),
        ASKED[:-1] + b',"msg":{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}}',
        ANSWERED,  # Nobody asked.
        ANSWERED.replace(b'"id":1', b'"id":8').replace(b'"isError":true', b'"resultType":"input_required"'),
        ANSWERED.replace(b'"id":1', b'"id":8').replace(b'"isError":true', b'"task":{}'),
        ANSWERED.replace(b'"id":1', b'"id":8').replace(b'"server"', b'"client"'),
    ],
    ids=range(22),
)
def test_what_is_odd_in_any_way_is_left_where_it_is(odd: bytes) -> None:
    plain = ASKED.replace(b'"id":1', b'"id":8')
    assert taken(plain, odd, plain)[0] == 1


def test_nothing_is_plain_before_the_two_have_introduced_themselves() -> None:
    assert taken(ASKED, known=False)[0] == 0
