"""Measure which lines of mcpspy the tests run, in the tests' own process and in every process that they start.

    .venv/bin/python tests/line_coverage.py [PATH …]    # run these tests (default: all); the data is added to the last
    .venv/bin/python tests/line_coverage.py --report    # the lines that no test has run, by module

Tests start mcpspy in an environment of few variables and in other folders, so a `.pth` file in site-packages starts the
measurement, not a variable. It is removed at the end. A test of the modules that are imported, or of a time, may fail
while it measures; the report does not depend on that. From Python 3.12 on, `sys.monitoring` measures, which costs less.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "coverage"
SETTINGS = FOLDER / "coveragerc"
PACKAGES = FOLDER / "lib"
BAR = 95
"""Per cent of the lines that can be run on this system."""

# The lines for other systems are found by their conditions: they begin with the name of the system, or with its flag.
EXCLUDED = r"""
    if TYPE_CHECKING:
    @overload
    raise NotImplementedError
    if (os\.name == "nt"|WINDOWS|IS_WINDOWS|sys\.platform (==|!=) )
    if __name__ == .__main__.:
"""
OTHER_SYSTEMS = ("*/io/stdio/windows.py",)


def install() -> None:
    """Write the settings, and put coverage in a folder that only measured processes import from."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    SETTINGS.write_text(
        f"[run]\nsource = {ROOT / 'mcpspy'}\nparallel = true\nsigterm = false\npatch =\n    _exit\n    fork\n"
        f"data_file = {FOLDER / 'data'}\ndisable_warnings = no-data-collected,module-not-imported,no-sysmon\n"
        f"core = {'sysmon' if sys.version_info >= (3, 12) else 'ctrace'}\n"
        f"[paths]\nmcpspy =\n    {ROOT / 'mcpspy'}\n"
        f"[report]\nomit = {','.join(OTHER_SYSTEMS)}\nexclude_also ={EXCLUDED}",
        encoding="utf-8",
    )
    if not (PACKAGES / "coverage").exists():
        _run(
            *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(PACKAGES)),
            *("--constraint", str(ROOT / "constraints.txt"), "coverage"),
        )


def hooks() -> list[Path]:
    """Return the files that start the measurement, one for each environment that runs mcpspy."""
    environments = (Path(sys.prefix), ROOT / ".peers" / "mcp2")
    return [
        folder / "mcpspy_coverage.pth"
        for environment in environments
        for folder in environment.glob("lib/python*/site-packages")
    ]


def measure(arguments: list[str]) -> int:
    """Run tests, and every process of mcpspy that they start, with the measurement."""
    hook = (
        f"import sys; sys.path.append({str(PACKAGES)!r}); import os; "
        f"os.environ['COVERAGE_PROCESS_START'] = {str(SETTINGS)!r}; "
        "import coverage; coverage.process_startup(); del os.environ['COVERAGE_PROCESS_START']\n"
    )
    try:
        for path in hooks():
            path.write_text(hook, encoding="utf-8")
        return _run(
            "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider", *arguments
        )
    finally:
        for path in hooks():
            path.unlink(missing_ok=True)


def report() -> int:
    """Print the modules with lines that no test has run; fail below the bar."""
    coverage = ("-m", "coverage")
    settings = f"--rcfile={SETTINGS}"
    if any(FOLDER.glob("data.*")):
        _run(*coverage, "combine", "--quiet", "--append", settings)
    return _run(*coverage, "report", settings, "--show-missing", "--skip-covered", f"--fail-under={BAR}")


def _run(*arguments: str) -> int:
    environment = {"PYTHONPATH": str(PACKAGES)} if arguments[1] == "coverage" else {}

    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environment}
    ).returncode


if __name__ == "__main__":
    install()
    sys.exit(report() if sys.argv[1:] == ["--report"] else measure(sys.argv[1:]))
