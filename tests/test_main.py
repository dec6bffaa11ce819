"""The entry point."""

from __future__ import annotations

import subprocess
import sys

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
