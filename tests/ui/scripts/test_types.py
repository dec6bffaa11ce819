"""Type checkers accept the skeleton, the scripts that mcpspy contains, and the examples of the documentation."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.io.scripts import BUILTIN, builtin_names, script_path
from mcpspy.ui.cli.main import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the scripts; those of the pages are in `docs`, without annotations."""
    monkeypatch.chdir(tmp_path)
    assert main(["scripts", "new", "guard"]) == 0
    for name in builtin_names():
        shutil.copy(script_path(BUILTIN + name), tmp_path)
    page = (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")
    (tmp_path / "docs").mkdir()
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    return tmp_path


def checked(folder: Path, *command: str) -> str:
    """Return what a type checker reports."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    return done.stdout + done.stderr


def test_mypy_accepts_every_script_in_strict_mode(folder: Path) -> None:
    files = sorted(path.name for path in folder.glob("*.py"))

    assert f"no issues found in {len(files)} source files" in checked(
        folder, "mypy", "--strict", "--config-file=", *files
    )


def test_pyright_finds_only_the_mistake_of_a_script_that_is_wrong(folder: Path) -> None:
    config = {"include": ["."], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "wrong.py").write_text(
        "from mcpspy import LiveExchange\n\n\ndef request(exchange: LiveExchange) -> None:\n"
        "    exchange.answers({})\n",
        encoding="utf-8",
    )

    reported = checked(folder, "pyright", "--pythonpath", sys.executable)

    assert 'wrong.py:5:14 - error: Cannot access attribute "answers"' in reported
    assert "1 error, 0 warnings" in reported
