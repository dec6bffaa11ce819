"""The entry point."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mcpspy
from mcpspy.__main__ import main


def test_run_is_chosen_before_anything_heavy_is_imported() -> None:
    code = (
        "import sys; sys.argv = ['mcpspy', 'run', '--name']\n"
        "from mcpspy.__main__ import main\n"
        "code = main()\n"
        "heavy = {'argparse', 're', 'json', 'asyncio', 'orjson', 'msgspec', 'textual'} & set(sys.modules)\n"
        "print(code, sorted(heavy - before))\n"
    )
    code = "import sys; before = set(sys.modules)\n" + code

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True)

    assert done.stdout.split(maxsplit=1) == [b"2", b"[]\n"]


def test_the_version_is_the_packages_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mcpspy", "--version"])

    assert main() == 0
    assert capsys.readouterr().out == f"mcpspy {mcpspy.__version__}\n"


def test_an_old_python_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    monkeypatch.setattr(sys, "version", "3.10.13 (main, Nov 27 2026)")

    assert main() == 3
    assert capsys.readouterr().err == (
        "mcpspy: needs Python 3.11 or newer, and this is 3.10.13 (use python3.11 -m mcpspy)\n"
    )


PACKAGE = r"the package \w+ is not installed \(.+ install .+\)"
"""A missing package, and the command line that installs it."""


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        (["ls"], 3, PACKAGE),
        (["run", "--", "cat"], 0, f"cannot record: {PACKAGE}; traffic continues unrecorded"),
        (["run", "--rule", "tool:echo => drop", "--", "cat"], 3, PACKAGE),
    ],
    ids=["ls", "run", "run with a rule"],
)
def test_without_a_package_one_line_names_it_and_the_command_that_installs_it(
    command: list[str], code: int, line: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "mcpspy", *command],
        cwd=Path(mcpspy.__file__).parents[1],
        input="{}\n",
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )

    assert re.fullmatch(f"mcpspy: {line}\n", done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (code, "" if code else "{}\n")
