"""Starts the processes whose forks are the peers on the Python SDKs, or runs of mcpspy (tests/peers/forked.py)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recordings import make

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROGRAM = make.ROOT / "tests" / "peers" / "forked.py"

UNUSED = ("mcpspy.ui.tui", "mcpspy.ui.agent.mcp_server", "mcpspy.ui.pytest_plugin", "mcpspy.__main__")
"""Modules that no forked command needs: the terminal UI, and those that need other packages."""


@contextmanager
def forks(programs: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    """Run one process for each Python, with the modules that it imports; yield the folder that PATH must end with.

    Runs none except on Linux, where programs then start as elsewhere.
    """
    with (
        tempfile.TemporaryDirectory(prefix="mcpspy-", dir="/tmp") as folder,  # Paths of sockets are limited.
        ExitStack() as running,
    ):
        for python, modules in programs.items() if sys.platform == "linux" else ():
            process = subprocess.Popen(
                [python, PROGRAM, folder, *modules],
                env=make.environment(Path(folder)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            running.enter_context(process)  # Closes its stdin at the end and waits for it.
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield folder


def modules_of_commands() -> list[str]:
    """Return the modules that mcpspy's commands import, at their start or later."""
    package = make.ROOT / "mcpspy"
    paths = [path.relative_to(make.ROOT).with_suffix("") for path in sorted(package.rglob("*.py"))]
    names = [".".join(path.parts) for path in paths if path.name != "__init__"]
    return [name for name in names if not name.startswith(UNUSED)]


def command() -> str:
    """Return the command `mcpspy` that the peers start: on Linux one whose runs are forks."""
    return shutil.which("mcpspy", path=make.environment(make.ROOT)["PATH"]) or "mcpspy"


def write_command(path: Path) -> None:
    """Write a command `mcpspy` whose runs are forks of the process that runs for this Python."""
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        # Workers of multiprocessing import it.
        "if __name__ == '__main__':\n"
        f"    sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "    import forked\n"
        "    from mcpspy.__main__ import main\n"
        "    sys.exit(main())\n",
        encoding="utf-8",
    )
    path.chmod(0o700)
