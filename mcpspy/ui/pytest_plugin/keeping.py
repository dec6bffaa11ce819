"""What a test recorded, put where its recording belongs.

Owns that a file is whole or not there, whoever else writes or reads it meanwhile: it is written beside its place
under a name of its own, cleaned of secrets on the way, and renamed. Keeps no session that cannot be served.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Recording, read_header_of, start_order
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, clean, redactor
from mcpspy.ui.pytest_plugin.place import numbered, recorded


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
