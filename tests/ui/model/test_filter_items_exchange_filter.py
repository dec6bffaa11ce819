"""A filter keeps a request and its response together."""

from __future__ import annotations

import pytest

from mcpspy.core.query.parser import FilterItem, parse
from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.core.session.session import Session
from mcpspy.ui.model.filter_items import exchange_filter

ENTRIES: list[Entry] = [
    Frame(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good"}}'),
    Frame(0.2, "server", b'{"jsonrpc":"2.0","id":1,"result":{"text":"sunny"}}'),
    Frame(0.3, "client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bad"}}'),
    Frame(2.3, "server", b'{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}'),
    Frame(2.4, "server", b'{"jsonrpc":"2.0","id":2,"result":{}}'),
    Frame(2.5, "server", b'{"jsonrpc":"2.0","method":"notifications/message"}'),
    Note(2.6, "stderr", {"text": "good grief"}),
]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6]),
        ("tool:good", [0, 1]),
        ("text:sunny", [0, 1]),
        ("tool:good text:sunny", [0, 1]),
        ("status:error", [2, 3]),
        ("-status:error", [0, 1, 4, 5, 6]),
        (">1s dir:client", [2, 3]),
        ("kind:error", [2, 3]),
        ("kind:request", [0, 1, 2, 3]),
        ("kind:exchange", [0, 1, 2, 3]),
        ("kind:result dir:server", [0, 1, 4]),
        ("is:issue", [4]),
        ("is:odd", [4]),
        ("stderr", [6]),
        ("notifications/*", [5]),
        ("tool:nothing", []),
    ],
)
def test_a_filter_finds_exchanges_and_entries_without_one(query: str, numbers: list[int]) -> None:
    session = Session().add_all(ENTRIES)
    session.end()
    keep = exchange_filter(parse(query))

    assert [change.number for change in session.changes if keep(change)] == numbers


def test_without_a_filter_everything_is_kept() -> None:
    keep = exchange_filter(None)

    assert all(keep(change) for change in Session().add_all(ENTRIES).changes)


def test_each_exchange_is_tested_once() -> None:
    query = parse("text:sunny")
    asked: list[FilterItem] = []

    def matches(item: FilterItem) -> bool:
        asked.append(item)
        return True

    query.matches = matches
    keep = exchange_filter(query)
    changes = Session().add_all(ENTRIES[:2]).changes

    assert [keep(change) for change in (*changes, *changes)] == [True] * 4
    assert len(asked) == 1
