"""The examples of docs/lake.md for other engines: they run, and agree with DuckDB."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.query import LakeConnection
from tests.io.lake.s3 import ROOT

_SECTION = (ROOT / "docs" / "lake.md").read_text(encoding="utf-8").partition("## Other engines")[2]
EXAMPLES = {
    match[1].split()[1].partition(".")[0]: match[1]
    for match in re.finditer(r"```python\n(.*?)```", _SECTION.partition("\n## ")[0], re.DOTALL)
}
SQL = """SELECT server, count(*), count(*) FILTER (status = 'error') FROM exchanges
WHERE method = 'tools/call' GROUP BY ALL ORDER BY ALL"""


def python_with(package: str) -> str:
    """Return the Python that has a package, that of the peers or this one."""
    for program in (str(ROOT / ".peers" / "venv" / "bin" / "python"), sys.executable):
        code = f"import importlib.util; raise SystemExit(importlib.util.find_spec({package!r}) is None)"
        if (
            Path(program).exists()
            and subprocess.run([program, "-c", code], timeout=60, check=False).returncode == 0
        ):
            return program
    pytest.fail(f"{package} is not installed: make peers")


def test_the_page_has_three_engines() -> None:
    assert [*EXAMPLES] == ["chdb", "polars", "pyarrow"]


@pytest.mark.parametrize("engine", EXAMPLES)
def test_an_example_of_the_page_agrees_with_duckdb(engine: str, whole: Path) -> None:
    done = subprocess.run(
        [python_with(engine), "-c", EXAMPLES[engine]],
        cwd=whole.parent, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    lines = [line.replace('"', "") for line in done.stdout.splitlines() if line and line[:7] != "server,"]

    expected = [",".join(map(str, row)) for row in LakeConnection(Lake(whole)).run(SQL).fetchall()]
    assert lines == expected, done.stderr
    assert len(expected) == 4
