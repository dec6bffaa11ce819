"""The option --max-body of run, http, exec and bridge."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.bridge import run as bridge
from mcpspy.io.forward import child
from mcpspy.io.forward import proxy as forward
from mcpspy.io.http import proxy
from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.run import parse

URL = "http://127.0.0.1:9/mcp"


def options_of(monkeypatch: pytest.MonkeyPatch, *argv: str) -> Any:
    """Return the options with which a command would run."""
    taken: list[Any] = []

    def run(options: Any) -> int:
        taken.append(options)
        return 0

    for module, name in ((proxy, "run"), (forward, "run"), (child, "run_program"), (bridge, "run")):
        monkeypatch.setattr(module, name, run)
    assert main(list(argv)) == 0
    return taken[0]


@pytest.mark.parametrize(
    "argv",
    [("http", "--upstream", URL), ("http", "--forward"), ("exec", "--", "true")],
    ids=["http", "forward", "exec"],
)
def test_the_limit_is_64_megabytes_or_what_was_given(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    command, *rest = argv
    assert options_of(monkeypatch, *argv).max_body == 64 << 20
    assert options_of(monkeypatch, command, "--max-body", "5k", *rest).max_body == 5 << 10


def test_a_bridge_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("bridge", "--upstream", URL)
    assert options_of(monkeypatch, *argv).address.max_body == 64 << 20
    assert options_of(monkeypatch, *argv, "--max-body", "2M").address.max_body == 2 << 20


def test_run_has_the_same_limit_for_a_line() -> None:
    limits = [parsed.line_limit for argv in ([], ["--max-body", "5k"]) if (parsed := parse([*argv, "true"]))]
    assert limits == [64 << 20, 5 << 10]
    with pytest.raises(UsageError, match="--max-body 0: not a size"):
        parse(["--max-body", "0", "true"])


@pytest.mark.parametrize("command", ["http", "bridge"])
def test_a_limit_that_is_not_a_size_is_a_usage_error(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--upstream", URL, "--max-body", "0"]) == 2
    assert "--max-body 0: not a size" in capsys.readouterr().err
