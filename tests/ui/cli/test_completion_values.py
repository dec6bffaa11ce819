"""Completions by the protocol that the code of the shells uses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.ui.cli.completion import _entries, _filters, _saved_calls

BIN = Path(sys.executable).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one session."""
    where = RecordingTarget()
    where.folder = str(tmp_path / "sessions")
    Recorder(where, {"transport": "stdio", "command": ["x"], "name": "weather"}).finish(0, None)
    return tmp_path / "sessions"


def completed(line: str, folder: Path, shell: str = "zsh") -> list[str]:
    """Return the completions at the end of the line."""
    answer = folder.with_name("answer")
    answer.write_text("", encoding="utf-8")
    subprocess.run(
        [BIN / "mcpspy"],
        env={
            "MCPSPY_DIR": str(folder),
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": shell,
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "IFS": "\v",
        },
        stderr=subprocess.DEVNULL,
        timeout=30,
    )
    return [word for word in answer.read_text(encoding="utf-8").split("\v") if word]


def values(completions: list[str]) -> list[str]:
    """Return the completions without their descriptions."""
    return [word.partition(":")[0] for word in completions]


def test_options_have_their_help(folder: Path) -> None:
    assert completed("mcpspy show --fo", folder) == [
        "--follow:print new messages until the session ends",
        "--format:output format (default: text); json: one object per message or note",
    ]


def test_the_short_form_of_a_format_is_not_offered(folder: Path) -> None:
    assert completed("mcpspy show --js", folder) == []


def test_values_of_an_option_are_offered(folder: Path) -> None:
    assert "sarif" in values(completed("mcpspy lint --format ", folder))


def test_sessions_have_their_name_and_id(folder: Path) -> None:
    (session,) = folder.glob("*.jsonl")

    last, name, number = completed("mcpspy diff ", folder)

    assert last == "last:the newest session"
    assert name.startswith("weather:newest of this name: ")
    assert number.startswith(f"{session.stem.rpartition('-')[2]}:weather ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_hosts_rules_and_filters_are_offered(shell: str, folder: Path) -> None:
    def offered(line: str) -> list[str]:
        return [re.split("[:\t]", word)[0].strip() for word in completed(line, folder, shell)]

    assert offered("mcpspy wrap claude-d") == ["claude-desktop"]
    assert offered("mcpspy wrap copilot-") == ["copilot-cli", "copilot-cli-project"]
    assert offered("mcpspy unwrap goo") == ["goose"]
    assert "ENV101" in offered("mcpspy lint --select ENV1")
    assert "LIFE,ENV101" in offered("mcpspy lint --ignore LIFE,ENV1")
    assert "ENV101" in offered("mcpspy lint --explain ENV1")


@pytest.mark.parametrize(
    ("typed", "filters"),
    [
        ("meth", ["method:"]),
        ("is:refu", ["is:refused"]),
        ("-is:refu", ["-is:refused"]),
        ("status:tool", ["status:toolerror"]),
        ("kind:malf", ["kind:malformed"]),
        ("lint:HTTP40", ["lint:HTTP401", "lint:HTTP402"]),
        ("tool:x is:refu", ["tool:x is:refused"]),
        ("tool:fore", []),
    ],
)
def test_the_last_term_of_a_filter_is_completed(folder: Path, typed: str, filters: list[str]) -> None:
    assert [each for each in _filters(typed, Namespace(dir=str(folder))) if each.startswith(typed)] == filters


def test_every_offered_filter_is_valid(folder: Path) -> None:
    for field in ("is", "status", "kind", "lint", "dir"):
        for text in _filters(f"{field}:", Namespace(dir=str(folder))):
            if text != "is:issue":
                parse(text, linted=True)


def test_paths_are_completed_as_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (session,) = folder.glob("*.jsonl")

    assert values(completed("mcpspy show ./", folder)) == [f"./{session.name}"]


def test_nothing_is_completed_after_two_dashes(folder: Path) -> None:
    assert completed("mcpspy run -- pyth", folder) == []


def test_a_missing_folder_prints_no_traceback(folder: Path) -> None:
    assert completed("mcpspy show --dir /nowhere/at/all ", folder) == ["last:the newest session"]


def test_hosts_and_their_servers_are_offered_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    servers = {"weather": {"command": "weather", "args": ["--api-key", "Zx81Qw99Lm42Pt"]}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    found = _entries("")

    assert isinstance(found, dict)
    name, words = next((name, words) for name, words in found.items() if name.endswith("/weather"))
    assert name.partition("/")[0] in found
    assert "Zx81Qw99Lm42Pt" not in words


def test_saved_calls_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not [*_saved_calls("")]
    Path("tests/calls").mkdir(parents=True)
    Path("tests/calls/rome.yaml").touch()
    assert [*_saved_calls("@")] == ["@rome"]
