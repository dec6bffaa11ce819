"""Tests of the last listings of a server, their pages, and changes between listings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.ui.model import interface as module
from mcpspy.ui.model.interface import Capabilities, ListPages, read, recent_pages
from tests.ui.tui.panels.panels import Lines, every_recording, recorded


class Session(Lines):
    """A session with list requests."""

    number = 0

    def list(
        self,
        *capabilities: dict[str, Any],
        method: str = "tools/list",
        cursor: str | None = None,
        more: str | None = None,
        stream: str | None = None,
    ) -> None:
        """Record a request for a page, and its response."""
        self.number += 1
        params = {"cursor": cursor} if cursor is not None else {}
        result: dict[str, Any] = {LISTINGS[method].member: list(capabilities)}
        if more is not None:
            result["nextCursor"] = more
        for side, what in (("client", {"method": method, "params": params}), ("server", {"result": result})):
            entry = {"t": self.number / 10, "from": side, **({"stream": stream} if stream else {})}
            entry["msg"] = {"jsonrpc": "2.0", "id": self.number, **what}
            self.add(json.dumps(entry, separators=(",", ":")).encode())


def offered(lines: Lines) -> Capabilities:
    pages = ListPages(lines.log)
    pages.advance(lambda: True)
    offer = Capabilities()
    for page in recent_pages(pages.pages, module.KEPT):
        where = lines.log.index.where(page.row)
        offer.take(page, read(lines.log.read(*where[:3]), where.item, page.method))
    return offer


def names(offer: Capabilities, method: str = "tools/list") -> list[str]:
    return [capability.name for capability in offer.last[method].capabilities]


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def test_the_pages_of_a_listing_are_joined() -> None:
    session = Session()
    session.list(tool("a"), more="2")
    session.list(tool("b"), cursor="2", more="3")
    session.list(tool("c"), cursor="3")
    offer = offered(session)

    assert (names(offer), offer.counts["tools/list"]) == (["a", "b", "c"], 1)
    assert (offer.last["tools/list"].is_whole, offer.changes) == (True, [])


def test_a_request_without_a_cursor_starts_a_new_listing() -> None:
    session = Session()
    session.list(tool("a"), more="2")
    session.list(tool("b"), cursor="2")
    session.list(tool("c"))

    assert names(offered(session)) == ["c"]


def test_a_change_lists_names_and_changed_members() -> None:
    session = Session()
    session.list(tool("same"), tool("gone"), tool("other", description="before", title="t"))
    session.list(tool("same"), tool("new"), tool("other", description="after", title="t"))
    (change,) = offered(session).changes

    assert (change.at, change.added, change.removed) == (0.2, ["new"], ["gone"])
    assert change.changed == [("other", ["description"])]


def test_members_in_another_order_are_not_a_change() -> None:
    session = Session()
    session.list({"name": "a", "description": "d"})
    session.list({"description": "d", "name": "a"})

    assert offered(session).changes == []


def test_an_incomplete_listing_is_not_compared() -> None:
    session = Session()
    session.list(tool("a"), tool("b"))
    session.list(tool("a"), more="2")
    assert offered(session).changes == []
    session.list(tool("a"), tool("b"), tool("c"))
    (change,) = offered(session).changes
    assert (change.added, change.removed) == (["c"], [])


def test_a_listing_without_its_first_page_is_incomplete() -> None:
    session = Session()
    session.list(tool("b"), cursor="2")
    listing = offered(session).last["tools/list"]

    assert (listing.begins, listing.is_whole, [capability.name for capability in listing.capabilities]) == (
        False,
        False,
        ["b"],
    )


def test_pages_of_two_http_sessions_are_not_mixed() -> None:
    session = Session()
    session.list(tool("a1"), more="2", stream="s1")
    session.list(tool("b1"), more="2", stream="s2")
    session.list(tool("a2"), cursor="2", stream="s1")
    session.list(tool("b2"), cursor="2", stream="s2")
    offer = offered(session)

    assert (names(offer), offer.last["tools/list"].stream, offer.streams) == (
        ["b1", "b2"],
        "s2",
        {"s1", "s2"},
    )


def test_the_pages_of_a_server_without_sessions_are_joined() -> None:
    session = Session()
    session.list(tool("a"), more="2", stream="1")
    session.list(tool("b"), cursor="2", stream="2")
    offer = offered(session)

    assert (names(offer), offer.last["tools/list"].is_whole) == (["a", "b"], True)


def test_the_four_lists_are_distinguished() -> None:
    session = Session()
    session.list({"uri": "file:///a", "name": "A", "mimeType": "text/plain"}, method="resources/list")
    session.list({"uriTemplate": "file:///{x}", "name": "T"}, method="resources/templates/list")
    session.list({"name": "greet", "arguments": [{"name": "who", "required": True}]}, method="prompts/list")
    offer = offered(session)

    (resource,) = offer.last["resources/list"].capabilities
    assert (resource.name, resource.type, resource.about) == ("file:///a", "text/plain", "A")
    assert names(offer, "resources/templates/list") == ["file:///{x}"]
    (prompt,) = offer.last["prompts/list"].capabilities
    assert [(field.name, field.required) for field in prompt.details] == [("who", True)]
    assert "tools/list" not in offer.last


def test_the_texts_of_a_line_are_sanitized() -> None:
    session = Session()
    session.list({"uri": "file:///\x1b[1m", "name": "A\x07", "mimeType": "\u202e"}, method="resources/list")
    (capability,) = offered(session).last["resources/list"].capabilities

    assert (capability.name, capability.line, capability.type) == ("file:///\\x1b[1m", "A\\x07", "\\u202e")


def test_the_json_of_a_tool_is_kept_as_sent() -> None:
    session = Session()
    raw = b'{"name":"a", "n":1.0,"n":1E5,  "inputSchema":{"properties":{"x":{"type":"string"}},"required":["x"]}}'
    session.say(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    session.say(0.2, "server", b'{"jsonrpc":"2.0","id":1,"result":{"tools":[%b]}}' % raw)
    (capability,) = offered(session).last["tools/list"].capabilities

    assert capability.data == raw
    assert [(field.name, field.type, field.required) for field in capability.details] == [
        ("x", "string", True)
    ]


@pytest.mark.parametrize(
    "result", [b"[]", b'{"tools":7}', b'{"tools":{}}', b'{"other":1}', b'{"tools":[1,null,{"name":2}]}']
)
def test_a_result_that_is_not_a_list_causes_no_crash(result: bytes) -> None:
    session = Session()
    session.say(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    session.say(0.2, "server", b'{"jsonrpc":"2.0","id":1,"result":%b}' % result)
    offered(session)


def test_a_too_large_page_is_reported_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", 100)
    session = Session()
    session.list(tool("a" * 100))

    assert "too large" in offered(session).last["tools/list"].trouble


def test_only_the_name_of_a_very_large_tool_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE_ITEM", 100)
    session = Session()
    session.list(tool("huge", description="x" * 2000), tool("small"))
    huge, small = offered(session).last["tools/list"].capabilities

    assert (huge.name, small.name) == ("huge", "small")
    assert "too large" in huge.about


def test_a_missing_line_is_a_problem() -> None:
    assert "no longer" in read(b'{"t":1,"from":"serv', 0, "tools/list").trouble


def test_only_the_last_of_many_listings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    session = Session()
    session.list({"name": "p"}, method="prompts/list")
    for number in range(10):
        session.list(tool(f"t{number}"))
    offer = offered(session)

    assert [change.added for change in offer.changes] == [["t8"], ["t9"]]
    assert names(offer, "prompts/list") == ["p"]


def test_the_lists_of_real_servers_are_read() -> None:
    listed = {path.stem: offered(recorded(path.read_bytes())).last for path in every_recording()}
    assert "echo" in [
        capability.name for capability in listed["everything-sdk-auto"]["tools/list"].capabilities
    ]
    assert not any(listing.trouble for last in listed.values() for listing in last.values())
