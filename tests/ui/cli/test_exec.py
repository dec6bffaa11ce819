"""The options of `mcpspy exec`."""

from __future__ import annotations

import importlib.util

import pytest

from mcpspy.io.extras import install_command
from mcpspy.io.forward import child
from mcpspy.ui.cli.main import main


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[child.ExecOptions]:
    """Store the options of every run instead of running it."""
    options: list[child.ExecOptions] = []

    def run(given: child.ExecOptions) -> int:
        options.append(given)
        return 0

    monkeypatch.setattr(child, "run_program", run)
    return options


def test_every_option_arrives(ran: list[child.ExecOptions]) -> None:
    words = "exec --allow a --allow b:443 --ignore-host c --name n --record r --dir d --max-size 2k --cacert f --insecure"
    assert main([*words.split(), "--", "prog", "--allow", "--", "x"]) == 0
    (options,) = ran
    assert options.command == ["prog", "--allow", "--", "x"]
    assert (options.allowed, options.ignored) == (["a", "b:443"], ["c"])
    assert (options.name, options.record, options.folder, options.max_size) == ("n", "r", "d", 2048)
    assert (options.cacert, options.insecure, options.recording) == ("f", True, True)
    # On a free port of loopback; it reports its recordings only after the program has ended.
    assert (options.host, options.port, options.announces) == ("127.0.0.1", 0, False)


@pytest.mark.parametrize("words", ["exec", "exec --", "exec --allow a"])
def test_a_missing_program_is_reported(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == "mcpspy: exec: missing COMMAND (use mcpspy exec -- COMMAND ARGS…)\n"


@pytest.mark.parametrize("words", ["exec -- true", "ca", "ca --format json", "http --forward"])
def test_without_the_extra_one_line_explains_how_to_install_it(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "mcpspy.io.extras.find_spec", lambda name: None if name == "mitmproxy" else found(name)
    )
    assert main(words.split()) == 3
    command = words.partition(" --")[0] if words != "http --forward" else words
    assert capsys.readouterr().err == (
        f"mcpspy: {command} needs mitmproxy, which is not installed ({install_command('mitm')})\n"
    )
