"""What a command line means: which recordings, and which of their messages.

Owns the words for what cannot be meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpspy.core.query.parser import Query, QueryError, parse
from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import find, sessions, summarize


def recordings(names: list[str], folder: str | None) -> Iterator[tuple[str, Path]]:
    """Yield the recordings that are meant, each once, as a person named them; those of a folder oldest first.

    Raise UsageError for what is none.
    """
    seen: set[Path] = set()
    for name in names or ["last"]:
        found = [name]
        if Path(name).is_dir():
            found = [str(Path(name) / summary.path.name) for summary in reversed(sessions(name))]
            if not found:
                raise UsageError(sanitize(f"{name}: no recording in it"), "record one: mcpspy run -- COMMAND")
        for which in found:
            path = find(which, folder)
            if path not in seen:
                seen.add(path)
                yield which, path


def query_of(text: str | None, *, linted: bool = False) -> Query | None:
    """Return the filter, None if there is none; raise UsageError with the place where it cannot be read.

    `linted`: it may ask for findings.
    """
    try:
        return None if text is None else parse(text, linted=linted)
    except QueryError as error:
        raise UsageError(
            sanitize(f"--filter, at character {error.start + 1}: {error}"), "docs/filter.md has the language"
        ) from None


def counted_back(query: Query | None, path: Path, header: Header) -> None:
    """Tell a filter when the recording ends as it is now, if it counts back from there."""
    if query is not None and query.counts_back:
        query.end = summarize(path, header, counts=False).last
