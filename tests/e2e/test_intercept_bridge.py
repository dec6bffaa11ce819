"""A real client on stdio and a real server over HTTP: viewers, scripts and the lockfile act on the bridge between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.driving import Driven, answered, next_of, noted, reached
from tests.e2e.test_http import SERVERS, serving
from tests.e2e.test_intercept import driven as driven_on_stdio
from tests.e2e.test_scripting import calls, check, check_notes, script
from tests.e2e.test_trust import CHANGE, EVIL, mcpspy, proxied

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Peers

driven = driven_on_stdio

ERAS = pytest.mark.parametrize(("server", "mode"), [("peer", "legacy"), ("peer-json", "2026-07-28")])


async def with_viewer(client: Driven, peers: Peers) -> list[Any]:
    """Hold and edit a call, answer one, drop a response, and send a call; return what the client's code gets."""
    viewer = await reached(peers, "tui")
    params = {"name": "echo", "arguments": {"text": "sent"}}
    sent = await answered(viewer, "request", method="tools/call", params=params)
    await viewer.order("hold", query="tool:echo kind:request")
    got = [sent["result"]["content"][0]["text"]]
    client.send_call("echo", text="mine")
    held = await next_of(viewer, "held")
    message = json.loads(held["text"])
    message["params"]["arguments"]["text"] = "yours"
    await viewer.order("release", ticket=held["ticket"], message=message)
    got.append(await client.next_message())
    client.send_call("echo", text="refused")
    ticket = (await next_of(viewer, "held"))["ticket"]
    await viewer.order("answer", ticket=ticket, error={"code": -32000, "message": "no"})
    got.append(await client.next_message())
    client.send_call("echo", text="left")
    await next_of(viewer, "held")
    await viewer.close()
    return [*got, await client.next_message()]


@ERAS
async def test_a_viewer_sends_holds_edits_and_answers_on_a_bridge(
    server: str, mode: str, driven: Callable[..., Any], peers: Peers
) -> None:
    with serving(server, *SERVERS[server], peers.folder) as url:
        async with driven(mode=mode, upstream=url) as client:
            before = await client.call("echo", text="before")
            got = await with_viewer(client, peers)
            await client.leave()

    assert before == {"text": "before"}
    refused = {"error": {"code": -32000, "message": "no"}}
    assert got == ["sent", {"text": "yours"}, refused, {"text": "left"}]
    (read,) = await peers.recorded("r")
    assert [action for action, _ in noted(read)] == ["inject", *["hold", "release"] * 3]
    said = [each.request.frame for each in read.exchanges("tools/call")]
    assert [(frame.by, frame.to) for frame in said] == [
        (None, None),
        ("mcpspy", None),
        (None, None),
        (None, None),
        (None, None),
    ]
    assert all(each.answer is not None for each in read.exchanges("tools/call"))


@ERAS
async def test_the_examples_run_on_a_bridge(
    server: str, mode: str, driven: Callable[..., Any], peers: Peers
) -> None:
    options = [*script(peers, "guard.py"), *script(peers, "shout.py"), *script(peers, "inventory.py")]
    with serving(server, *SERVERS[server], peers.folder) as url:
        async with driven(*options, "--script-option", "limit=2", mode=mode, upstream=url) as client:
            got = await calls(client)
            assert await client.leave() == ""

    check(got)
    (read,) = await peers.recorded("r")
    check_notes(read)


async def test_a_changed_listing_is_held_on_a_bridge_until_a_viewer_releases_it(
    driven: Callable[..., Any], peers: Peers
) -> None:
    with serving("peer-json", *SERVERS["peer-json"], peers.folder) as url:
        mcpspy(peers, "trust", "--name", "peer", "--url", url)
        with proxied(url, peers, "--no-record", "--rule", CHANGE) as changed:
            options = ("--trust", "mcp.lock", "--on-change", "hold", "--name", "peer")
            async with driven(*options, upstream=changed) as client:
                viewer = await reached(peers, "tui")
                client.send_list()
                held = await next_of(viewer, "held")
                await viewer.order("release", ticket=held["ticket"])
                listed = await client.next_message()
                await viewer.close()
                await client.leave()

    assert held["rule"].startswith("trust: ")
    assert "description" in held["rule"]
    assert EVIL in held["text"]
    assert "echo" in listed["tools"]
    (read,) = await peers.recorded("r")
    assert [note.fields["action"] for note in read.notes("trust")] == ["hold"]
