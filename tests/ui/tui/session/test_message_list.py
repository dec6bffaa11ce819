"""The rows of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.ui.conftest import CONVERSATION

Make = Callable[..., Path]

ASKED = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}'
PROGRESS = (
    b'{"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":7,"progress":%d,"total":3,"message":"packing"}}'
)


async def test_messages_are_in_wire_order(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(100, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.wire()
        assert [" ".join(line[3:].split()[1:4]) for line in screen.lines[2:8]] == [
            "→ initialize 1",
            "← initialize 1",
            "→ tools/call echo",
            "← (not JSON)",
            "← tools/call echo",
            "· exit 0",
        ]
        assert "5 messages · 1 error · 1 protocol issue" in screen.lines[0]
        assert "○ ended exit 0" in screen.lines[0]


async def test_the_match_of_the_selected_message_is_marked(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.wire()
        assert [line[0] for line in screen.lines[2:6]] == ["▸", "▹", " ", " "]
        await screen.press("j")
        assert [line[0] for line in screen.lines[2:6]] == ["▹", "▸", " ", " "]


async def test_an_exchange_is_one_row_with_its_outcome(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(250, 30)) as screen:
        await screen.shows("ended: exit 0")
        assert screen.places == [
            "▸ 0.000 → initialize 1 1.0 ms █▍ 151 129 ok",
            "0.002 → tools/call echo 2 2.0 ms █▊ 71 63 error -32602 invalid params: no",
            "0.003 ← (not JSON) DEBUG: \\x1b[31mhello",
            "1.000 · exit 0",
        ]


async def test_a_pending_call_shows_its_latency_and_progress(opened: Any, live: Any) -> None:
    live.say("client", ASKED)
    async with opened(live.path, size=(200, 24)) as screen:
        await screen.until(lambda: screen.places)
        await screen.until(lambda: "… " in screen.places[0] and screen.places[0].endswith("pending"))
        before = screen.places[0]
        await screen.until(lambda: screen.places[0] != before, "the latency to grow")
        live.say("server", PROGRESS % 1)
        await screen.until(lambda: screen.places[0].endswith("pending: 1/3 packing"))
        live.say("server", PROGRESS % 2)
        await screen.until(lambda: screen.places[0].endswith("pending: 2/3 packing"))
        assert screen.count == 1, "progress is shown in the row of its request"
        live.say("server", b'{"jsonrpc":"2.0","id":7,"result":{}}')
        await screen.until(lambda: screen.places[0].endswith(" ok"))
        assert "3.0 ms" in screen.places[0]


async def test_a_call_whose_task_works_shows_its_growing_latency(opened: Any, live: Any) -> None:
    live.say("client", ASKED)
    live.say("server", b'{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"t","status":"working"}}}')
    async with opened(live.path, size=(200, 24)) as screen:
        await screen.until(lambda: screen.places and screen.places[0].endswith("working"))
        before = screen.places[0]
        await screen.until(lambda: screen.places[0] != before, "the latency to grow")


async def test_a_response_updates_a_full_list_that_is_not_followed(opened: Any, live: Any) -> None:
    live.say("client", ASKED)
    live.calls(10, 100)
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.until(lambda: screen.cursor == 91)
        await screen.press("g", "j")
        await screen.until(lambda: screen.places[0].endswith("pending"))
        live.say("server", b'{"jsonrpc":"2.0","id":7,"result":{}}')
        await screen.until(lambda: screen.places[0].endswith(" ok"), "the response")


async def test_the_client_column_appears_only_with_several_clients(opened: Any, live: Any) -> None:
    call = (
        b'{"t":0.1,"from":"client","stream":"%b","http":%d,"msg":{"jsonrpc":"2.0","id":%d,"method":"ping"}}\n'
    )
    with live.path.open("ab") as file:
        file.write(call % (b"one", 1, 1))
    async with opened(live.path, size=(200, 24)) as screen:
        await screen.until(lambda: screen.count == 1)
        assert "client" not in screen.lines[1]
        with live.path.open("ab") as file:
            file.write(call % (b"an\\u001bother", 2, 1))
        await screen.until(lambda: screen.count == 2 and "client" in screen.lines[1])
        assert " one " in screen.places[0]
        assert " an\\x1b" in screen.places[1]


async def test_latency_bars_appear_if_the_list_is_wide(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(280, 24)) as screen:
        await screen.shows("ended: exit 0", "█")
        await screen.pilot.resize_terminal(120, 24)
        await screen.until(lambda: "█" not in screen.lines[2])


async def test_a_message_of_twenty_megabytes_is_a_row_and_can_be_read(
    opened: Any, make_recording: Make
) -> None:
    large = b'{"jsonrpc":"2.0","id":3,"result":{"first":1,"blob":"' + b"ab12" * 5_000_000 + b'"}}'
    asked = ("client", b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"dump"}}')
    path = make_recording([*CONVERSATION[:2], asked, ("server", large)])
    async with opened(path, size=(160, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("j")
        await screen.shows("20,000,0", "response tools/call", '"first": 1')
        assert "20.0M ok" in screen.places[1]
        await screen.press("3", "enter", "G")
        await screen.press("y", "escape", "k")
        await screen.shows("request initialize")


HOSTILE = [
    "[red]x[/red]",
    "a[/b]c",
    "[@click=app.quit]x[/]",
    "\x1b]0;owned\x07",
    "\x9b2J",
    "\u202egnp.exe",
    "a\nb\rc",
    "漢字漢字",
    "👩\u200d👩\u200d👧",
    "\U000e0041hidden",
]


@pytest.mark.parametrize("exchanges", [True, False])
async def test_hostile_text_is_shown_literally_and_keeps_the_columns(
    opened: Any, make_recording: Make, exchanges: bool
) -> None:
    said = []
    for number, name in enumerate(HOSTILE):
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}
        said.append(("client", json.dumps(call, ensure_ascii=False).encode()))
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": 1, "message": name}}
        said.append(("server", json.dumps(error, ensure_ascii=False).encode()))
    said.append(("server", b"not json \x1b[2J [red]\xff"))
    async with opened(make_recording(said), size=(250, 40)) as screen:
        await screen.shows("ended: exit 0")
        if not exchanges:
            await screen.wire()
        shown = ["[red]x[/red]", "a[/b]c", "[@click=app.quit]x[/]", "\\x1b]0;owned\\x07", "\\x9b2J"]
        await screen.shows(*shown, "\\u202egnp.exe", "a\\nb\\rc", "漢字漢字", "\\u200d", "\\U000e0041hidden")
        await screen.shows("not json \\x1b[2J [red]\\xff")
        assert {cell_len(line) for line in screen.lines} == {250}
        statuses = [
            _column(line, "error 1: ")
            for line in screen.lines[2 : 2 + screen.count]
            if "error 1: " in line[: screen.session.listing.size.width - 20]
        ]
        assert (len(statuses), len(set(statuses))) == (len(HOSTILE), 1)
        for _ in range(len(said)):
            await screen.press("j")
        assert not any(character in screen.text for character in "\x1b\x9b\x07\u202e\u200d")


def _column(line: str, text: str) -> int:
    return cell_len(line[: line.index(text)])


def answered(number: int, **members: object) -> tuple[bytes, bytes]:
    """Return a call and its response."""
    head = {"jsonrpc": "2.0", "id": number}
    call = {**head, "method": "tools/call", "params": {"name": "read_text_file"}}
    return json.dumps(call).encode(), json.dumps({**head, **members}).encode()


DENIED = {"isError": True, "content": [{"type": "text", "text": "Access denied: /etc/passwd"}]}


@pytest.mark.parametrize(
    ("size", "code", "denied"),
    [((80, 24), "", "✗"), ((200, 24), "error -32602 ", "tool error:")],
)
async def test_a_failed_call_shows_why_in_its_row(
    opened: Any, live: Any, size: tuple[int, int], code: str, denied: str
) -> None:
    error = {"code": -32602, "message": "missing path"}
    outcomes: list[dict[str, object]] = [{"result": {}}, {"error": error}, {"result": DENIED}]
    for number, members in enumerate(outcomes, 1):
        call, answer = answered(number, **members)
        live.say("client", call)
        live.say("server", answer)
    live.end()
    async with opened(live.path, size=size) as screen:
        await screen.shows("ended: exit 0")
        fine, invalid, refused, _ = screen.places
        assert fine.endswith(" ok")
        assert invalid.endswith(f" {code}invalid params: missing path")
        assert refused.endswith(f"{denied} Access denied: /etc/passwd")
        assert all(" read_text_file " in place for place in (fine, invalid, refused))


async def test_text_that_is_not_a_message_uses_the_whole_row(opened: Any, live: Any) -> None:
    live.note("stderr", text="s" * 55)
    live.say("server", b"n" * 50)
    live.say("server", b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning"}}')
    async with opened(live.path, size=(80, 24)) as screen:
        await screen.until(lambda: len(screen.places) == 3)
        assert screen.places[0].endswith(f"· stderr {'s' * 55}")
        assert screen.places[1].endswith(f"← (not JSON) {'n' * 50}")
        assert "← notifications/message warning" in screen.places[2]


async def test_a_crash_shows_what_the_server_wrote_last(opened: Any, live: Any) -> None:
    live.note("stderr", text="started")
    live.say("client", answered(1)[0])
    live._at = 5.0
    for text in ("Traceback (most recent call last):", "KeyError: 'path'", "bye"):
        live.note("stderr", text=text)
    live.end(code=1)
    async with opened(live.path, size=(80, 24)) as screen:
        await screen.shows("ended: exit 1 after 6.00 s: KeyError: 'path'; 1 unanswered request")
        listing = screen.session.listing
        tones = [listing.cells(index, listing._placed)[-1][1] for index in range(5)]
        assert tones == ["quiet", "bad", None, None, None]
        await screen.press("e", "e")
        assert "Traceback" in screen.selected
        await screen.press("e")
        assert "exit 1" in " ".join(screen.selected.split())
        await screen.shows("last lines on stderr")


async def test_a_dropped_request_has_no_running_clock(opened: Any, live: Any) -> None:
    live.say("client", ASKED)
    async with opened(live.path, size=(120, 24)) as screen:
        await screen.until(lambda: screen.places and screen.places[0].endswith("pending"))
        live.note("rule", action="drop", rule="1", id="7", method="tools/call", **{"from": "client"})
        await screen.until(lambda: screen.places[0].endswith(" dropped (rule 1)"))
        await screen.until(lambda: "pending" not in screen.lines[0])  # The next frame also updates the title.
