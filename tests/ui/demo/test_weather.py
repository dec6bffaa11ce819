"""The responses of the demo's weather server."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from mcpspy.ui.demo.weather import STATIONS, TOOLS, answer


@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list"])
def test_it_answers_what_a_server_must(method: str) -> None:
    assert "result" in answer(method, {})


def test_an_unknown_method_is_an_error_by_the_book() -> None:
    assert answer("no/such", {})["error"]["code"] == -32601


def test_a_city_without_station_is_the_tools_error_and_not_the_protocols() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy.ui.demo.weather"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"X"}}}\n',
        capture_output=True,
        timeout=30,
        check=True,
    )
    log, result = map(orjson.loads, done.stdout.splitlines())

    assert log["method"] == "notifications/message"
    assert result["result"]["isError"] is True


def test_its_tools_are_the_ones_it_lists() -> None:
    assert [tool["name"] for tool in TOOLS] == ["forecast", "stations"]
    assert "Reykjavík" in STATIONS
