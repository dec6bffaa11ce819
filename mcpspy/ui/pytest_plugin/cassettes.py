"""What a test recorded, put where its recording belongs.

Owns that a file is whole or not there, whoever else writes or reads it meanwhile: it is written beside its place
under a name of its own, cleaned of secrets on the way, and renamed. Keeps no session that cannot be served.

Where the recording of a test is.

Owns the names of the files: `mcp_recordings/<module>/<test>.jsonl` beside the test's own file unless it names
another, and `<test>.2.jsonl`, `<test>.3.jsonl` … for what else one test has: a server that was started twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Recording, read_header_of, start_order
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, clean, redactor

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


def sessions(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = [path for path in folder.glob("*.jsonl") if path.stat().st_size]
    return sorted(found, key=lambda path: start_order(path, read_header_of(path)))


def replace(made: Sequence[Path], target: Path, redaction: RedactionOptions) -> list[Path]:
    """Put sessions in the place of all that was recorded there; return the files."""
    before = recorded(target)
    places = [place for _, place in zip(made, numbered(target), strict=False)]
    for source, place in zip(made, places, strict=True):
        _cleaned(source, place, redaction).replace(place)
    for old in before[len(places) :]:
        old.unlink(missing_ok=True)
    return places


def add(made: Sequence[Path], target: Path, redaction: RedactionOptions) -> list[Path]:
    """Put sessions beside what was recorded, where nobody else has put one; return the files."""
    return [_add(_cleaned(source, target, redaction), target) for source in made]


def is_served(path: Path) -> bool:
    """Whether there is a server in a recording that somebody asked something."""
    session = Recording(path).session()
    has_server = any(getattr(change.what, "side", None) == SERVER for change in session.changes)
    return has_server and any(exchange.request.side == CLIENT for exchange in session.exchanges)


def _add(new: Path, target: Path) -> Path:
    for place in numbered(target):
        try:
            os.link(new, place)
        except FileExistsError:
            continue
        except OSError:  # A file system without links.
            if place.exists():
                continue
            return new.replace(place)
        new.unlink()
        return place
    raise AssertionError("there is no last number")


def _cleaned(source: Path, target: Path, redaction: RedactionOptions) -> Path:
    new = target.with_name(f".{target.stem}.{uuid4().hex}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        redacting = redactor(redaction, say)
        assert redacting is not None, "a recording that is kept is redacted"
        clean(str(source), str(new), redacting)
    except OSError as error:
        raise CannotStart(f"{target}: {error.strerror}", f"what was recorded is {source}") from None
    return new
