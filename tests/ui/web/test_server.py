"""The JSON API: windows of rows, orders, places, messages, reports, and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copy

import pytest

from tests.ui.web.recordings import request, response, write
from tests.ui.web.serving import Served, served

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"

KEY = "s/b5d36025"
"""The session of everything-sdk-auto."""

NUMBER, AT, METHOD, SUBJECT, STATUS = "number", "at", "method", "subject", "status"
END, BODY, SIZE, ANSWER, ANSWER_SIZE = "end", "body", "size", "answer", "answerSize"
"""Members of a row."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    for name in ("everything-sdk-auto", "everything-sdk-legacy"):
        copy(RECORDINGS / f"{name}.jsonl", tmp_path)
    async with served(tmp_path) as running:
        yield running


async def test_windows_join_to_the_whole_list(server: Served) -> None:
    whole = await server.get(f"{KEY}/rows", count=500)
    parts = [await server.get(f"{KEY}/rows", first=first, count=20) for first in (0, 20, 40, 60)]

    assert whole["total"] == len(whole["rows"]) == 49
    assert [row for part in parts for row in part["rows"]] == whole["rows"]
    assert [part["total"] for part in parts] == [49] * 4


async def test_the_filter_is_that_of_the_other_commands(server: Served) -> None:
    found = await server.get(f"{KEY}/rows", q="tool:get-sum or (is:error method:server/*)")

    assert [(row[METHOD], row[SUBJECT]) for row in found["rows"]] == [
        ("server/discover", ""),
        ("tools/call", "get-sum"),
        ("tools/call", "get-sum"),
    ]
    assert found["unfiltered"] == 49


async def test_an_invalid_filter_names_its_characters(server: Served) -> None:
    found = await server.get(f"{KEY}/rows", q="echo tool:")

    assert (found["start"], found["end"]) == (5, 10)
    assert "tool:" in found["error"]


async def test_rows_are_sorted_by_latency_and_size(server: Served) -> None:
    by_time = [row[AT] for row in (await server.get(f"{KEY}/rows", order="time-reverse"))["rows"]]
    calls = (await server.get(f"{KEY}/rows", q="tool:*", order="latency"))["rows"]
    sizes = [row[SIZE] + row[ANSWER_SIZE] for row in (await server.get(f"{KEY}/rows", order="size"))["rows"]]

    assert by_time == sorted(by_time, reverse=True)
    assert calls[0][SUBJECT] == "trigger-long-running-operation"
    assert sizes == sorted(sizes, reverse=True)


async def test_a_message_has_its_bodies_and_its_progress(server: Served) -> None:
    (call,) = (await server.get(f"{KEY}/rows", q="tool:trigger-long-running-operation"))["rows"]
    found = await server.get(f"{KEY}/rows/{call[NUMBER]}")

    assert found["row"][STATUS] == "ok"
    assert '"trigger-long-running-operation"' in found["bodies"][str(call[BODY])]
    assert "Long running operation completed" in found["bodies"][str(call[ANSWER])]
    assert {row[METHOD] for row in found["along"]} == {"notifications/progress"}
    answer = await server.get(f"{KEY}/rows/{call[ANSWER] + 1}")
    assert answer["related"]["request"][NUMBER] == call[NUMBER]


async def test_the_place_of_a_response_is_that_of_its_request(server: Served) -> None:
    assert await server.get(f"{KEY}/place", number=72, q="tool:get-sum") == {"place": 1, "number": 72}
    assert await server.get(f"{KEY}/place", number=73, q="tool:get-sum") == {"place": 1, "number": 72}
    assert await server.get(f"{KEY}/place", number=2, q="tool:get-sum") == {"place": None, "number": None}


async def test_errors_are_found_in_both_directions(server: Served) -> None:
    first = await server.get(f"{KEY}/place", **{"from": -1})
    second = await server.get(f"{KEY}/place", **{"from": first["place"]})
    back = await server.get(f"{KEY}/place", **{"from": second["place"], "step": -1})

    assert first == back == {"place": 0, "number": 1}
    assert second["place"] > 0
    assert await server.get(f"{KEY}/place", **{"from": 0, "step": -1}) == {"place": None, "number": None}


async def test_sessions_are_filtered_as_by_ls(server: Served) -> None:
    found = await server.get("sessions", q="name:*auto errors>0")

    (session,) = found["sessions"]
    assert (session["key"], session["counts"]["errors"]) == ("b5d36025", 6)
    assert "error" in await server.get("sessions", q="errors>x")
    wrong = await server.get("sessions", q="name:a eror>0")
    assert (wrong["error"][:48], wrong["start"]) == ("unknown field eror: did you mean errors>? Put a ", 7)
    none = await server.get("sessions", q="name:everithing")
    assert none["total"] == 0
    assert none["hint"].startswith('No name matches "everithing": did you mean everything-sdk-')


async def test_a_wrong_request_is_answered_with_one_line(server: Served) -> None:
    for path, status in {
        "/api/s/unknown/rows": 404,
        f"/api/{KEY}/unknown": 404,
        f"/api/{KEY}/rows/100000": 404,
        f"/api/{KEY}/rows/x": 400,
        f"/api/{KEY}/rows?first=x": 400,
        f"/api/{KEY}/rows?order=x": 400,
        f"/api/{KEY}/diff?old=2&new=1": 409,
        "/unknown": 404,
    }.items():
        assert await server.status(path) == status, path


async def test_statistics_obey_the_filter(server: Served) -> None:
    found = [await server.get(f"{KEY}/stats"), await server.get(f"{KEY}/stats", q="tool:get-sum")]
    ((whole,), (part,)) = (each["sessions"] for each in found)

    assert whole["requests"]["client"]["count"] > part["requests"]["client"]["count"] == 2


async def test_capabilities_and_findings_name_what_the_session_shows(server: Served) -> None:
    listings = (await server.get(f"{KEY}/capabilities"))["listings"]
    rules = (await server.get(f"{KEY}/findings"))["rules"]

    assert {tool["name"] for tool in listings["tools"]} >= {"echo", "get-sum"}
    assert all(tool["tokens"] > 10 for tool in listings["tools"])
    assert [rule["code"] for rule in rules] == ["DATA706", "DATA301", "DATA307"]
    assert rules[0]["findings"][0]["number"] == 70


async def test_the_causes_name_the_rows_that_show_them(server: Served) -> None:
    found = await server.get(f"{KEY}/explain")
    row = await server.get(f"{KEY}/rows/{found['causes'][0]['evidence'][0]['number']}")

    assert found["causes"][0]["code"] == "task-required"
    assert found["causes"][0]["title"] in found["summary"]
    assert row["row"][SUBJECT] == "simulate-research-query"
    assert all(cause["next_step"] for cause in found["causes"])


async def test_without_the_option_every_order_is_refused_and_the_page_gets_no_state(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.status("/api/s/x/control", "POST", data='{"order":"release all"}') == 403
        assert await server.status("/api/s/x/held/1") == 403


async def test_orders_that_cannot_be_executed_are_an_error_each(tmp_path: Path) -> None:
    async with served(tmp_path, allows_control=True) as server:
        assert await server.status("/api/s/x/control", "POST", data='{"order":"release all"}') == 409
        assert await server.status("/api/s/x/control", "POST", data="[]") == 400
        assert await server.status("/api/s/x/control", "POST", data="{") == 400
        assert await server.status("/api/s/x/held/1") == 409
        foreign = {"Origin": "http://elsewhere.example"}
        assert await server.status("/api/s/x/control", "POST", foreign, '{"order":"release all"}') == 403
    async with served(tmp_path, allows_control=True, is_signed_in=False) as server:
        assert await server.status("/api/s/x/control", "POST", data="{}") == 401


async def test_an_authorization_flow_is_one_row_with_its_steps(tmp_path: Path) -> None:
    step: dict[str, object] = {"note": "oauth", "stream": "1", "status": 200}
    chain = ("challenge", 1, 401), ("challenge", 2, 401), ("token", 1, 200), ("retry", 1, 200)
    entries = [
        {**step, "t": http / 10, "http": http, "step": name, "flow": flow, "status": status}
        for http, (name, flow, status) in enumerate(chain, 1)
    ]
    write(tmp_path / "signed-in.jsonl", [request(0.05, 1), response(0.5, 1), *entries])
    async with served(tmp_path) as server:
        (session,) = (await server.get("sessions"))["sessions"]
        rows = (await server.get(f"s/{session['key']}/rows"))["rows"]
        found = await server.get(f"s/{session['key']}/rows/{rows[-1][NUMBER]}")

    assert [row[METHOD] for row in rows] == ["tools/call", "oauth", "oauth"]
    assert [row[AT] for row in found["along"]] == [0.1, 0.3, 0.4]
    assert found["along"][-1][NUMBER] == rows[-1][NUMBER]


async def test_a_filter_of_sessions_is_completed_with_fields_and_values(tmp_path: Path) -> None:
    copy(RECORDINGS / "memory-sdk-auto.jsonl", tmp_path)
    async with served(tmp_path) as server:
        await server.get("sessions")

        assert (await server.get("complete", q="weather verd"))["terms"] == ["weather verdict:"]
        assert (await server.get("complete", q="-verdict:c"))["terms"] == ["-verdict:crashed"]
        assert (await server.get("complete", q="name:m"))["terms"] == ["name:memory-sdk-auto"]
        assert (await server.get("complete", q="x:"))["terms"] == []


async def test_a_filter_of_messages_is_completed_with_the_names_of_the_session(tmp_path: Path) -> None:
    copy(RECORDINGS / "everything-sdk-auto.jsonl", tmp_path)
    async with served(tmp_path) as server:
        key = (await server.get("sessions"))["sessions"][0]["key"]
        await server.get(f"s/{key}/rows")

        assert (await server.get(f"s/{key}/complete", q="tool:get-su"))["terms"] == ["tool:get-sum"]
        assert "status:ok" in (await server.get(f"s/{key}/complete", q="status:"))["terms"]
