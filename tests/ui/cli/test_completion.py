"""`mcpspy completion`: the code that a shell runs."""

from __future__ import annotations

import pytest

from mcpspy.ui.cli.completion import SHELLS
from mcpspy.ui.cli.main import main


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_own_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    code = capsys.readouterr().out
    assert {"bash": "complete ", "zsh": "compdef", "fish": "complete --command mcpspy"}[shell] in code
