"""Several servers in one test, and the recordings that no test of a run uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui.pytest_plugin.running import Runs

if TYPE_CHECKING:
    from tests.ui.conftest import Make

SUITE = """
import os
import sys

import pytest
from conversing import call, call_over_http

SERVER = [sys.executable, os.environ["SERVER"]]
pytestmark = pytest.mark.mcp_recording(server=SERVER)
NEW = int(os.environ.get("NEW", "2"))


@pytest.mark.mcp_recording(name="left")
@pytest.mark.mcp_recording("right.jsonl", name="right", server=[*SERVER, "result"])
def test_of_two(mcp_recordings, mcp_recording):
    assert list(mcp_recordings) == ["left", "right"]
    assert call(mcp_recordings["left"].command, ("add", {"a": 1, "b": 2})) == ["3"]
    assert call_over_http(mcp_recordings["right"].url, ("add", {"a": 1, "b": NEW})) == ["4"]
    assert call(mcp_recording.command, ("add", {"a": 5, "b": 5})) == ["10"]


@pytest.mark.skipif("NEW" in os.environ, reason="of this run")
def test_of_one(mcp_recording):
    assert call(mcp_recording.command, ("add", {"a": 1, "b": 1})) == ["2"]


@pytest.mark.mcp_recording("same.jsonl", name="left")
@pytest.mark.mcp_recording("same.jsonl", name="right")
def test_of_the_same(mcp_recordings):
    pass


def test_of_none(mcp_recordings):
    pass


@pytest.mark.mcp_recording(name="2")
def test_of_a_number(mcp_recordings):
    pass
"""

HEADLINE = "mcpspy: recordings that no test uses"


def test_a_test_uses_several_servers_each_with_its_recording(tmp_path: Path) -> None:
    runs = Runs(tmp_path, SUITE)
    output = runs.pytest()
    assert "2 passed, 3 errors" in output, output
    assert "mcpspy: same.jsonl: two servers of a test have one recording (use two paths)" in output
    assert 'mcpspy: mcp_recordings: no recording (use @pytest.mark.mcp_recording(name="…"))' in output
    assert "name='2': not a name (use letters, digits and _)" in output
    made = runs.recordings()
    assert sorted(made) == [
        "right.jsonl",
        "test_of_one.jsonl",
        "test_of_two.jsonl",
        "test_of_two.left.jsonl",
    ]

    output = runs.pytest("--mcpspy-record=none", "-k", "two or one", SERVER="gone")
    assert "2 passed" in output, output
    output = runs.pytest("--mcpspy-record=none", "-k", "two", SERVER="gone", NEW="3")
    assert "1 failed" in output, output
    assert "mcpspy: 1 request without a recorded response in right.jsonl" in output
    assert runs.recordings() == made


UNUSED = """
import pytest


@pytest.mark.mcp_recording(name="left")
@pytest.mark.mcp_recording("right.jsonl", name="right")
def test_of_two(mcp_recordings):
    pass


@pytest.mark.skip
def test_that_is_skipped(mcp_recording):
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_recordings_that_no_test_uses_are_listed_after_a_whole_run(
    tmp_path: Path, workers: str, make_recording: Make
) -> None:
    runs = Runs(tmp_path, UNUSED)
    header = make_recording().read_bytes()
    unused = [
        "mcp_recordings/test_old/test_a.jsonl",
        "mcp_recordings/test_suite/test_that_is_skipped.4.jsonl",
    ]
    for name in (
        "right.jsonl",
        "mcp_recordings/test_suite/test_of_two.left.jsonl",
        "mcp_recordings/test_suite/test_that_is_skipped.jsonl",
        "mcp_recordings/test_suite/test_that_is_skipped.2.jsonl",
        ".hidden/mcp_recordings/x.jsonl",
        *unused,
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(header)

    output = runs.pytest("-n", workers)
    assert "1 passed, 1 skipped" in output, output
    listed = output.partition(HEADLINE)[2].splitlines()[1:]
    assert [line for line in listed if line.endswith(".jsonl")] == unused
    if workers == "0":
        for subset in (("-k", "two"), ("test_suite.py",), ("--maxfail=1",)):
            assert HEADLINE not in runs.pytest(*subset)
    (tmp_path / "right.jsonl").write_bytes(b"")
    output = runs.pytest("-n", workers)
    assert "right.jsonl: empty, so not a recording" in output
    assert "Traceback" not in output
    assert "1 skipped, 1 error in" in output, output
    (tmp_path / "right.jsonl").write_bytes(header)
    (tmp_path / "test_other.py").write_text(
        'import pytest\npytest.skip("x", allow_module_level=True)', encoding="utf-8"
    )
    output = runs.pytest("-n", workers)
    assert "1 passed" in output, output
    assert HEADLINE not in output
