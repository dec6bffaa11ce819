"""The links of calls to apps: what the wire shows, and what it does not."""

from __future__ import annotations

from typing import Any

from mcpspy.analysis.apps import AppLinks, Caller
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Session

PAGE = "ui://map/app.html"
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


def tool(name: str, uri: str | None = PAGE, *visibility: str) -> dict[str, Any]:
    ui = {} if uri is None else {"resourceUri": uri}
    return {"name": name, "_meta": {"ui": ui | ({"visibility": list(visibility)} if visibility else {})}}


def links(*tools: dict[str, Any], client: dict[str, Any] | None = UI) -> AppLinks:
    found = AppLinks()
    found.add_client(client)
    found.add_tools(tools)
    return found


def test_a_call_of_a_tool_that_the_model_does_not_see_comes_from_the_app() -> None:
    found = links(tool("show"), tool("refresh", PAGE, "app"))
    found.add_call(1, "show")
    found.add_page(2, PAGE)
    found.add_call(3, "refresh")

    assert [found.words(number) for number in (1, 2, 3)] == [
        f"shown by {PAGE}", "page of show", f"called by the app {PAGE}",
    ]  # fmt: skip
    assert found.links[1].page == found.links[3].page == 2


def test_a_call_of_a_tool_for_both_has_no_known_caller() -> None:
    found = links(tool("show"))
    found.add_page(1, PAGE)
    found.add_call(2, "show")
    found.add_call(3, "show")
    assert found.calls("show") == {Caller.UNKNOWN: 2}


def test_a_call_of_a_tool_that_refuses_apps_comes_from_the_model() -> None:
    found = links(tool("show", PAGE, "model"))
    found.add_call(1, "show")
    assert (found.links[1].caller, found.words(1)) == (Caller.MODEL, f"shown by {PAGE}")


def test_a_host_that_knows_no_apps_may_let_its_model_call_any_tool() -> None:
    found = links(tool("refresh", PAGE, "app"), client=None)
    found.add_call(1, "refresh")
    found.add_page(2, PAGE)
    found.add_call(3, "refresh")
    assert [found.links[1].caller, found.links[3].caller] == [Caller.UNKNOWN, Caller.APP]


def test_with_two_pages_it_is_not_known_which_one_called() -> None:
    found = links(tool("refresh", None, "app"))
    found.add_page(1, PAGE)
    found.add_page(2, "ui://map/other.html")
    found.add_call(3, "refresh")
    assert (found.links[3].uri, found.words(3)) == ("", "called by an app")


def test_a_tool_that_loses_its_app_has_no_links_any_more() -> None:
    found = links(tool("show"))
    found.add_tools([{"name": "show"}, 7, {"name": 8}])
    found.add_call(1, "show")
    assert not found.links
    assert not found.tools


def test_servers_of_a_merged_session_have_their_own_tools() -> None:
    found = AppLinks()
    found.add_tools([tool("show")], "one")
    found.add_call(1, "show", "two")
    found.add_call(2, "show", "one")
    assert list(found.links) == [2]


def test_changes_of_a_session_are_linked_and_those_of_mcpspy_are_not() -> None:
    session, found = Session(), AppLinks()
    frames = (
        ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', None),
        ("server", b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","_meta":{"ui":{"resourceUri":"ui://m/a"}}}]}}', None),
        ("client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}', None),
        ("client", b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}', "cli"),
        ("client", b'{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"ui://m/a"}}', None),
        ("client", b'{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///m/a"}}', None),
    )  # fmt: skip
    for side, data, by in frames:
        for change in session.add(Frame(0.0, side, data, by=by)):
            found.add(change, session.client_capabilities)
    assert {number: link.as_json() for number, link in found.links.items()} == {
        2: {"kind": "call", "uri": "ui://m/a", "tool": "a"},
        4: {"kind": "page", "uri": "ui://m/a", "tool": "a"},
    }
    assert found.links[2].page == 4
