"""Values that every comparison ignores: `ignore_path` of the table `diff` in `mcpspy.toml`.

The settings of the project count, or else those of the user. Only the list changes in the text of the file.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpspy.analysis.diff import Ignored, ignored
from mcpspy.core.hostconfig import toml
from mcpspy.errors import UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.io.settings import PYPROJECT, config_file, project_file, table

TABLE, KEY = "diff", "ignore_path"


def kept_patterns() -> list[str]:
    """Return the patterns of the settings. Raises UsageError or CannotStart."""
    file = project_file()
    found = table(TABLE, file).get(KEY, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UsageError(
            f"{file or config_file()}: {KEY} must be a list of texts", f'write {KEY} = ["/result/**/time"]'
        )
    return found


def kept_ignored() -> tuple[Ignored, ...]:
    """Return the patterns of the settings, read. Raises UsageError or CannotStart."""
    try:
        return tuple(map(ignored, kept_patterns()))
    except ValueError as error:
        raise UsageError(
            f"{project_file() or config_file()}: {KEY}: {error}", "use /result/**/time"
        ) from None


def keep_ignored(patterns: Sequence[str]) -> str:
    """Add patterns to the settings; return what was done. Raises UsageError, CannotStart or OSError."""
    file = Path(project_file() or config_file())
    known = kept_patterns()
    more = [pattern for pattern in dict.fromkeys(patterns) if pattern not in known]
    if not more:
        return (
            "nothing to keep: press i on a difference first" if not patterns else f"{file} has them already"
        )
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    save(file, [with_patterns(text, [*known, *more], is_project=file.name == PYPROJECT)], force=True)
    os.chmod(file, mode)
    return f"kept {len(more)} in {file}: mcpspy diff and replay ignore them, too"


def with_patterns(text: str, patterns: Sequence[str], *, is_project: bool) -> str:
    """Return the text of a settings file with this list. Raise UsageError if no other value may stay as it is."""
    path = ("tool", "mcpspy", TABLE) if is_project else (TABLE,)
    lines = "".join(f"  {json.dumps(pattern, ensure_ascii=False)},\n" for pattern in patterns)
    value = f"[\n{lines}]"
    document = toml.read(text)
    old = document.get(*path, KEY)
    if old is not None:
        new = text[: old.start] + value + text[old.end :]
    elif (begin := text.find(f"[{'.'.join(path)}]\n")) >= 0 and document.get(*path) is not None:
        after = text.index("\n", begin) + 1
        new = f"{text[:after]}{KEY} = {value}\n{text[after:]}"
    else:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        new = f"{text}{gap}[{'.'.join(path)}]\n{KEY} = {value}\n"
    try:
        is_safe = tomllib.loads(new) == _with(tomllib.loads(text), path, list(patterns))
    except tomllib.TOMLDecodeError:
        is_safe = False
    if not is_safe:
        raise UsageError(
            "the settings cannot be changed without changing others", f"add {KEY} = {value} by hand"
        )
    return new


def _with(document: dict[str, Any], path: Sequence[str], patterns: list[str]) -> dict[str, Any]:
    """Return a document with this list."""
    if not path:
        return {**document, KEY: patterns}
    return {**document, path[0]: _with(document.get(path[0], {}), path[1:], patterns)}
