"""The selection of servers and the diff that `wrap` and `unwrap` share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.hosts.configuration import ConfigTarget, find
from mcpspy.ui.cli.wrap import diff, selected_servers, show_diff


@pytest.fixture
def target(tmp_path: Path) -> ConfigTarget:
    path = tmp_path / "mcp.json"
    path.write_text(
        '{"mcpServers": {"memory": {"command": "x"}, "github": {"url": "http://y"}}}', encoding="utf-8"
    )
    return find(str(path))


def test_servers_are_chosen_by_name(target: ConfigTarget) -> None:
    assert selected_servers(target, ["github", "memory", "github"], bool, is_all=False) == [
        "github",
        "memory",
    ]
    with pytest.raises(UsageError, match=r"mcp\.json: no server memry \(did you mean memory\?\)"):
        selected_servers(target, ["memry"], bool, is_all=False)
    with pytest.raises(UsageError, match=r"no server qqq \(use memory, github\)"):
        selected_servers(target, ["qqq"], bool, is_all=False)


def test_the_only_matching_server_is_selected_by_default(target: ConfigTarget) -> None:
    assert selected_servers(target, None, lambda server: server.name == "github", is_all=False) == ["github"]
    assert selected_servers(target, None, bool, is_all=True) == ["memory", "github"]
    with pytest.raises(
        UsageError, match=r"contains 2 servers: memory, github \(select servers with --server or --all\)"
    ):
        selected_servers(target, None, bool, is_all=False)


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{\r\n  "a": 1\r\n}', '{\r\n  "a": 2,\r\n  "ü": 3\r\n}'),
        ("a\nb\n", "a\nc\u2028d\x0be\n"),
        ("a\n" * 9 + "b", "c\n" + "a\n" * 9 + "b\n"),
    ],
    ids=["Windows line ends", "not a line end", "no line end at the end"],
)
def test_patch_makes_the_new_text_of_the_diff(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "x").write_bytes(old.encode())

    subprocess.run(
        ["patch", "--binary", "x"],
        input="".join(diff("x", old, new)).encode(),
        check=True,
        cwd=tmp_path,
        timeout=20,
        capture_output=True,
    )

    assert (tmp_path / "x").read_bytes() == new.encode()


def test_on_a_terminal_nothing_in_a_diff_is_interpreted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10")

    show_diff(Path("x"), "a\x1b[2J\n", "b" * 50 + "\n")

    out = capsys.readouterr().out
    assert "-a\\x1b[2J\n" in out
    assert "+" + "b" * 50 + "\n" in out, "nothing is cut off"
