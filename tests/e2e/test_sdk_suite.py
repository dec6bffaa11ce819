"""The Python SDK's own tests of stdio, with each server behind `mcpspy run`.

They pin what a client expects of a server's process: exit codes, signals, its children and pipes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recordings import make

PEERS = Path(__file__).parent.parent / "peers"

SUITE = make.PEERS / "sdk" / "suite"

TESTS = ("tests/client/test_stdio.py", "tests/transports/stdio", "tests/interaction/transports/test_stdio.py")

EXPECTED = {
    # The client starts mcpspy, which exists: the error of exec becomes exit code 127 and a line on stderr.
    "tests/client/test_stdio.py::test_a_command_that_cannot_be_execed_raises_enoent",
}
"""The tests that fail behind mcpspy."""

RACES = {
    # The host closes stdout and lets a process that the server left behind write once, at the same moment. The write
    # fails only if the relay has run in between; a later write always fails (tests/io/stdio/test_run.py, SIGPIPE).
    "tests/transports/stdio/test_posix.py::test_a_surviving_childs_write_to_the_inherited_stdout_fails_with_epipe",
}
"""The tests whose outcome depends on the scheduler, on a machine without an idle processor."""

MANY = 40
"""Fewer tests than the suite has: if less is run, it has moved."""


@pytest.mark.timeout(600)
def test_the_stdio_tests_of_the_python_sdk_pass_behind_mcpspy(tmp_path: Path) -> None:
    if not SUITE.is_dir():
        pytest.fail("the tests of the Python SDK are missing: run tests/peers/install.sh")
    environment = {
        **os.environ,
        "MCPSPY": str(Path(sys.executable).with_name("mcpspy")),
        "MCPSPY_DIR": str(tmp_path / "sessions"),
        "PYTHONPATH": str(PEERS),
    }
    python = make.PEERS / "sdk" / "bin" / "python"
    options = ["-p", "through_mcpspy", "-p", "no:cacheprovider", "--color=no", "-rA", "-q", "--tb=short"]
    ended = subprocess.run(
        [python, "-m", "pytest", *options, *TESTS],
        cwd=SUITE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) ([^\s\[]+)", ended.stdout, re.MULTILINE)
    failed = {name for outcome, name in outcomes if outcome != "PASSED"}
    assert failed - RACES == EXPECTED, ended.stdout[-20_000:] + ended.stderr
    assert sum(outcome == "PASSED" for outcome, _ in outcomes) > MANY
    assert len(list((tmp_path / "sessions").glob("*.jsonl"))) > 10, "the servers were not recorded"
