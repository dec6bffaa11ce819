"""`mcpspy unwrap`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main

CONFIG = '{"mcpServers": {"a": {"command": "x"}, "b": {"url": "http://localhost:1/"}, "c": {"command": "z"}}}'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "sessions"))
    path = tmp_path / "mcp.json"
    path.write_text(CONFIG, encoding="utf-8")
    assert main(["wrap", str(path), "--server", "a", "b"]) == 0
    return path


def test_without_a_name_all_that_are_wrapped_are_unwrapped(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert main(["unwrap", str(config)]) == 0

    assert config.read_text(encoding="utf-8") == CONFIG
    assert capsys.readouterr().out.startswith(f"a: unwrapped\nb: unwrapped\n{config}: changed\n")


def test_only_the_named_ones_are_unwrapped(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unwrap", str(config), "--server", "b", "c"]) == 0

    text = config.read_text(encoding="utf-8")
    assert '"b": {"url": "http://localhost:1/"}' in text
    assert '"--name=a"' in text
    assert "c: not wrapped\n" in capsys.readouterr().out


def test_a_dry_run_changes_nothing(config: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    before = config.read_bytes()
    capfdbinary.readouterr()

    assert main(["unwrap", str(config), "--dry-run"]) == 0

    assert f"\n+{CONFIG}\n".encode() in capfdbinary.readouterr().out
    assert config.read_bytes() == before


def test_nothing_wrapped_is_nothing_to_do(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["unwrap", str(config)])
    capsys.readouterr()

    assert main(["unwrap", str(config), "--dry-run"]) == 0
    assert capsys.readouterr() == ("", f"{config}: no changes\n")
    assert main(["unwrap", str(config)]) == 0
    assert capsys.readouterr().out == f"a: not wrapped\nb: not wrapped\nc: not wrapped\n{config}: unchanged\n"


def test_a_missing_original_is_an_error_only_if_the_server_is_named(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace("MCPSPY_ORIGINAL", "X"), encoding="utf-8")

    assert main(["unwrap", str(config), "--server", "b"]) == 1
    assert "b: skipped: " in capsys.readouterr().out
    assert main(["unwrap", str(config)]) == 0
    assert '"a": {"command": "x"}' in config.read_text(encoding="utf-8")
