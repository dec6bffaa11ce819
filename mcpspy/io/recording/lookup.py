"""The session that a word means: a file, `last`, an id, a name, or a filter with `origin:`.

A name and `last` mean the newest session of a host; without one, the newest of another client (demo, pytest, import).
They never mean a session in which mcpspy itself was the client or the server (`core.recording.origin.OWN`).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcpspy.core.counted import counted
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.recording.origin import OWN, preferred
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.listed_session import ListedSession, matching
from mcpspy.io.recording.reader import Summary
from mcpspy.io.settings import sessions_folder

LAST = "last"
ORIGIN = "origin:"
"""A part of a word that makes it a filter of sessions."""


def find(which: str, folder: str | None = None) -> Path:
    """Return the file of a session, given a path, `last`, an id or its beginning, a name, or a filter with `origin:`.

    If several sessions have the name or match the filter, return the newest. Raises UsageError.
    """
    if not which.strip():
        raise UsageError("the name of the session is empty", "use last, a name, an id or a file")
    if os.sep in which or which.endswith(".jsonl") or Path(which).is_file():
        return Path(which)
    catalog = Catalog(folder)
    newest = sessions_of(catalog, entries=False)
    try:
        return _found(which, newest, catalog, folder)
    finally:
        catalog.save()


def named(which: str, newest: Iterable[Summary]) -> Summary | None:
    """Return the session that a name or `last` means, of sessions of which the newest is first; None without one."""
    best: Summary | None = None
    for summary in newest:
        rank = preferred(summary.header.origin) if which in (LAST, summary.header.name) else 0
        if rank > (0 if best is None else preferred(best.header.origin)):
            best = summary
            if rank == preferred("host"):
                break
    return best


def _found(which: str, newest: Sequence[Summary], catalog: Catalog, folder: str | None) -> Path:
    if ORIGIN in which:
        return _filtered(which, newest, catalog)
    if (summary := next((each for each in newest if each.header.id == which), None)) is not None:
        return summary.path
    if (summary := named(which, newest)) is not None:
        return summary.path
    matching_ids = [each.path for each in newest if len(which) >= 2 and each.header.id.startswith(which)]
    if len(matching_ids) == 1:
        return matching_ids[0]
    if matching_ids:
        raise UsageError(
            f"{which}: {len(matching_ids)} session ids start with this",
            "add characters; mcpspy ls lists the ids",
        )
    if Path(which).is_dir():
        raise UsageError(f"{which}: a folder, not a recording", f"mcpspy ls --dir {which} lists its sessions")
    if not newest:
        raise UsageError(
            f"no sessions in {sessions_folder(folder)}",
            "record one with mcpspy run -- COMMAND, or try mcpspy demo",
        )
    own = [each for each in newest if which in (LAST, each.header.name)]
    if own:
        raise UsageError(_only_own(which, own), _how_to_name(own[0]))
    raise UsageError(f"{which}: no such file or session", _near(which, newest))


def _filtered(text: str, newest: Sequence[Summary], catalog: Catalog) -> Path:
    """Return the newest session that a filter matches. Raise UsageError."""
    try:
        found, hint = matching(text, [ListedSession(summary, catalog) for summary in newest])
    except QueryError as error:
        raise error.located("SESSION", "see docs/ls.md") from None
    if not found:
        raise UsageError(
            sanitize(f"{text}: no session matches. {hint}".rstrip()), "mcpspy ls lists the sessions"
        )
    return found[0].summary.path


def _only_own(which: str, own: Sequence[Summary]) -> str:
    """Return the sentence for a name that only sessions made by mcpspy have."""
    kinds = sorted({each.header.origin for each in own} & OWN)
    what = f"{counted(len(own), 'session')} of mcpspy itself ({', '.join(kinds)})"
    return f"{which}: no session of a host, only {what}"


def _how_to_name(summary: Summary) -> str:
    header = summary.header
    return sanitize(f"use its id {header.id}, or origin:{header.origin}; mcpspy ls lists the sessions")


def _near(which: str, newest: Sequence[Summary]) -> str:
    """Return the hint for a name that no session has."""
    names = {each.header.name.lower(): each.header.name for each in newest if each.header.name}
    near = difflib.get_close_matches(which.lower(), names, 1)
    return sanitize(f"did you mean {names[near[0]]}?" if near else "mcpspy ls lists the sessions")
