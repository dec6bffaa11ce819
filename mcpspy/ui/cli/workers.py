"""Work on many sessions by processes of this machine or a Dask cluster: options, order, progress."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import TypeVar

from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.ui.cli.options import Option
from mcpspy.ui.cli.parser import integer
from mcpspy.ui.text.terminal import ProgressBar

Item = TypeVar("Item")
Result = TypeVar("Result")


WORKERS = (
    Option("--workers", "N", "number of processes (default: 1)",
        read=integer("number of processes", "use 1 to 1024", 1, 1024), default=1),
    Option("--on", "ADDRESS", "use the workers of this Dask scheduler, tcp://HOST:8786"),
)  # fmt: skip

FOLDER_WORKERS = [option.but(about=f"of a folder: {option.about}") for option in WORKERS]


@contextmanager
def results(
    args: argparse.Namespace,
    function: Callable[[Item], Result],
    sessions: Sequence[Item],
    size: Callable[[Item], int],
    *,
    is_shown: bool = False,
    what: str = "sessions",
) -> Iterator[Iterator[Result]]:
    """Return a context manager: the results of a function for each session (or `what` they are), in their order.

    `size` returns the bytes of a session: workers get small ones together.
    The function and its results can be pickled, unless this process does the work. Its messages on stderr are those
    of one process. `is_shown` shows the progress of one process too. Raises the errors of the function, or CannotStart
    for a lost worker.
    """
    from mcpspy.io.lake.executors import executor_of, mapped

    with executor_of(args.workers, args.on) as executor, ProgressBar(what) as progress:
        if executor is None and is_shown:
            yield _shown(((function(each), "") for each in sessions), len(sessions), what, progress)
        elif executor is None:
            yield map(function, sessions)
        else:
            found = mapped(executor, partial(_captured, function), sessions, size)
            yield _shown(found, len(sessions), what, progress)


def file_size(path: Path) -> int:
    """Return the bytes of a file; 0 if it has disappeared, which its task reports."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _captured(function: Callable[[Item], Result], session: Item) -> tuple[Result, str]:
    """Return the result, and what was written to stderr: a worker's own may be on another machine."""
    with redirect_stderr(io.StringIO()) as messages:
        return function(session), messages.getvalue()


def _shown(
    found: Iterator[tuple[Result, str]], count: int, what: str, progress: ProgressBar
) -> Iterator[Result]:
    for number, (result, messages) in enumerate(found, 1):
        progress.clear()
        sys.stderr.write(messages)
        yield result
        progress.show(number, count, f"{number:,} of {count:,} {what}")


def adding_shown(progress: ProgressBar) -> Callable[[int, int, int], None]:
    """Return a function that shows the progress of adding sessions to a lake."""

    def show(done: int, of: int, rows: int) -> None:
        progress.show(done, of, f"{done:,} of {of:,} sessions, {counted(rows, 'row')}")

    return show


def require_folder(args: argparse.Namespace, source: str) -> None:
    """Raise UsageError for workers of a command whose source is not a folder."""
    if args.workers > 1 or args.on is not None:
        raise UsageError(sanitize(f"{source}: not a folder, which --workers and --on need"), "leave them out")


def create_output(out: Path, folder: Path) -> None:
    """Create the folder for what becomes of the files of another one. Raise UsageError or CannotStart."""
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(sanitize(f"{out}: a file"), "recordings of a folder need a folder") from None
    except OSError as error:
        raise CannotStart(sanitize(f"{out}: {error.strerror}"), "use another folder") from None
    if out.samefile(folder):
        raise UsageError(sanitize(f"{out}: the folder of the recordings"), "use another folder")
