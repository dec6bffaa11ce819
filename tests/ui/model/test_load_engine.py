"""The process of a load test: its states, its end, and its reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.engine import EngineProcess
from mcpspy.ui.model.load_run import LoadModel
from mcpspy.ui.model.replay_options import ReplayForm
from mcpspy.ui.model.replay_run import command_line
from tests.ui.model.replaying import Watched, echoes, record


class Loaded(Watched):
    """A load test, and the model that takes its events."""

    def __init__(self, path: Path, how: str = "same", fail_if: str = "", **load: Any) -> None:
        super().__init__(path, how, load={"clients": 2, "repeat": 2, **load}, fail_if=fail_if, volatile=True)
        self.load = LoadModel()
        self.engine = EngineProcess(LoadModel.ENGINE, self._take, self._ended)
        self.send = self.engine.send

    def _take(self, event: dict[str, Any]) -> None:
        self.load.take(event)
        self._changed.set()


@pytest.fixture
async def recorded(tmp_path: Path) -> Path:
    return await record(tmp_path / "recorded.jsonl", *echoes("one", "two"))


async def test_runs_are_counted_compared_and_reported(recorded: Path, tmp_path: Path) -> None:
    async with Loaded(recorded, fail_if="errors>0") as test:
        await test.until(lambda: test.load.is_over)
        model = test.load
        assert (model.runs, model.requests, model.errors, model.is_bad) == (4, 16, 0, False)
        assert any("tools/call echo" in line for line in model.lines)
        assert "0 of 4 runs are different" in model.ending
        assert any(line.startswith("--fail-if: not met: errors>0") for line in model.ending)
        for suffix, content in (("html", b"<html"), ("csv", b"tools/call echo"), ("json", b"{")):
            path = tmp_path / f"r.{suffix}"
            model.message = ""
            test.send("report", path=str(path))
            await test.until(lambda: model.message)
            assert content in path.read_bytes()
        assert json.loads((tmp_path / "r.json").read_bytes())["runs"] == 4
        model.message = ""
        test.send("report", path=str(tmp_path / "r.txt"))
        await test.until(lambda: model.message)
        assert "must end in" in model.message


async def test_a_changed_server_fails_the_test(recorded: Path) -> None:
    async with Loaded(recorded, "different") as test:
        await test.until(lambda: test.load.is_over)
        assert test.load.is_bad
        assert "4 of 4 runs are different" in test.load.ending


async def test_a_test_that_is_stopped_counts_the_runs_so_far(recorded: Path) -> None:
    async with Loaded(recorded, repeat=None, duration=600.0) as test:
        await test.until(lambda: test.load.runs)
        test.send("stop")
        await test.until(lambda: test.load.is_over)
        assert test.load.ending[0] == "you stopped the load test"


async def test_a_server_that_cannot_start_is_reported(recorded: Path) -> None:
    test = Loaded(recorded)
    test._config["command"] = ["no-such-server-here"]
    async with test:
        await test.until(lambda: test.load.is_over)
        assert "no-such-server-here" in test.load.ending[0]


@pytest.mark.parametrize(
    ("fields", "load"),
    [
        ({}, {"clients": 10, "repeat": 1, "rate": None, "duration": None, "ramp": 0.0}),
        (
            {"clients": "", "rate": "0.5", "duration": "1min", "ramp": "2s"},
            {"clients": 100, "repeat": None, "rate": 0.5, "duration": 60.0, "ramp": 2.0},
        ),
    ],
)
def test_a_form_has_the_options_of_the_command(fields: dict[str, str], load: dict[str, Any]) -> None:
    config = ReplayForm(server="node b.js", mode="load", **fields).config()
    assert config["load"] == load
    assert "load" not in ReplayForm(server="node b.js", **fields).config()


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("clients", "0", "clients 0: not a positive number"),
        ("clients", "1.5", "clients 1.5: not a positive number"),
        ("rate", "nan", "rate nan: not a positive number"),
        ("rate", "5", "a rate needs an end"),
        ("duration", "soon", "duration soon: not a positive number"),
        ("fail_if", "p96>1s", "fail if: "),
    ],
)
def test_wrong_options_of_a_load_test_are_reported(field: str, text: str, why: str) -> None:
    form = ReplayForm(server="node b.js", mode="load", **{field: text})
    with pytest.raises(UsageError, match=why):
        form.config()


def test_the_command_does_the_same_in_a_shell() -> None:
    form = ReplayForm(server="node b.js", mode="load", rate="5", duration="1min", fail_if="errors>1%")
    line = command_line({**form.config(), "path": "r.jsonl"}, [])
    assert "--clients=10 --rate=5 --duration=60s '--fail-if=errors>1%' -- node b.js" in line
