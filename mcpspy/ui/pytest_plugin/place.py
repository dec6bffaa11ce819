"""Where the recording of a test is.

Owns the names of the files: `mcp_recordings/<module>/<test>.jsonl` beside the test's own file unless it names
another, and `<test>.2.jsonl`, `<test>.3.jsonl` … for what else one test has: a server that was started twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from mcpspy.core.sanitize import sanitize

FOLDER = "mcp_recordings"

LONGEST = 120
"""Characters of a test's name in a file's: file systems take 255 bytes, and there is more to come."""

_UNFIT = re.compile(r"[^\w.,=+@\[\]-]")
"""What is kept out of a file's name on one system or another, or is hard to type."""


def place(test_file: Path, test: str, named: str | None = None) -> Path:
    """Return the file of a test's recording. `named` is relative to the folder of the test's own file."""
    if named is not None:
        return test_file.parent / Path(named).expanduser()
    return test_file.parent / FOLDER / test_file.stem / f"{_file_name(test)}.jsonl"


def recorded(path: Path) -> list[Path]:
    """Return the files there are of a recording, in their order."""
    found = []
    for each in numbered(path):
        if not each.is_file():
            break
        found.append(each)
    return found


def numbered(path: Path) -> Iterator[Path]:
    """Yield the names of a recording's files: `x.jsonl`, `x.2.jsonl` …"""
    yield path
    number = 2
    while True:
        yield path.with_name(f"{path.stem}.{number}{path.suffix}")
        number += 1


def shown_path(path: Path) -> str:
    """Return a path as a person would type it here, made inert."""
    here = Path.cwd()
    return sanitize(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _file_name(test: str) -> str:
    """Return a name for a test's file; one that had to be changed keeps apart from every other by a few digits."""
    fit = _UNFIT.sub("-", test)
    if fit == test and len(fit) <= LONGEST:
        return fit
    return f"{fit[:LONGEST]}-{blake2b(test.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
