"""Runs of `mcpspy replay` against a server that may have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.ui.cli.main import main
from tests.io.changing import CARRY, command, patience

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Ran:
    """A run of the command, and its output."""

    def __init__(self, capfd: pytest.CaptureFixture[str], recorded: Path, how: str, *options: str) -> None:
        own = ["--carry", CARRY, "--timeout", str(patience(how)), *options]
        if not {"--update", "--record"} & set(options):
            own += ["--no-record"]
        self.code = main(["replay", str(recorded), *own, "--", *command(how)])
        self.out, self.err = capfd.readouterr()
