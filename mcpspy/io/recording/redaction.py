"""The redactor of a recording, as a person asked for it: options, settings, environment.

Owns where the rules come from and the key of the placeholders, which lives as
long as the process and is written nowhere. What is redacted is `core.redact`'s,
which is imported once there is something to redact: `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

import os

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.settings import config_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from mcpspy.core.redact.config import RedactionRules
    from mcpspy.core.redact.redactor import Found, Redactor

BATCH = 1 << 20
"""Bytes read at a time from a recording that is being cleaned."""

LISTS = ("keys", "patterns", "pointers", "env")
"""What a person may add to: on the command line, and under these names in the table `redact` of the settings."""


class RedactionOptions:
    """What to redact besides what is built in, as a person asked for it."""

    def __init__(self) -> None:
        self.off = False
        """Whether nothing is redacted, whatever the settings say."""
        self.keys: list[str] = []
        self.patterns: list[str] = []
        self.pointers: list[str] = []
        self.env: list[str] = []
        self.config: str | None = None
        """The settings; None for those in the user's folder, if there are any."""


def redactor(
    options: RedactionOptions, say: Callable[[str], None], found: Found | None = None
) -> Redactor | None:
    """Return what redacts a recording; None if nothing is to be. Raises UsageError or CannotStart.

    `say` is told of a variable that is not set, and so cannot be looked for.
    """
    if options.off:
        return None
    from mcpspy.core.redact.redactor import Redactor

    rules = _rules(options, say)
    return Redactor(os.urandom(32), rules, found)


def _rules(options: RedactionOptions, say: Callable[[str], None]) -> RedactionRules | None:
    """Return the rules; None for those that are built in alone, which are not imported before they are needed."""
    wanted = {name: list(getattr(options, name)) for name in LISTS}
    if options.config is not None or os.path.exists(config_file()):
        from mcpspy.io.settings import table

        for name, values in _settings(
            options.config or config_file(), table("redact", options.config)
        ).items():
            wanted[name] = [*values, *wanted[name]]
    if not any(wanted.values()):
        return None
    from mcpspy.core.redact.config import RedactionRules

    variables = {name: os.environ.get(name, "") for name in wanted["env"]}
    for name, value in variables.items():
        if not value:
            say(f"--redact-env {name}: not set, so there is nothing to look for")
    try:
        return RedactionRules(wanted["keys"], wanted["patterns"], wanted["pointers"], variables)
    except ValueError as error:
        raise UsageError(f"cannot redact: {error}", "see docs/redact.md") from None


def _settings(file: str, table: dict[str, Any]) -> dict[str, list[str]]:
    for name, value in table.items():
        if name not in LISTS:
            raise UsageError(f"{file}: redact.{name} means nothing", f"there are {', '.join(LISTS)}")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{file}: redact.{name} is no list of strings", f'{name} = ["…"]')
    return table


def clean(source: str, target: str | None, redacting: Redactor) -> int:
    """Write a recording without its secrets, or only look for them; return the bytes of a torn last line, left out.

    The file is new, and whole or not there. Raises UsageError or CannotStart.
    """
    try:
        with open(source, "rb") as lines:
            if target is None:
                return _copy(source, lines, None, redacting)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            out = os.fdopen(os.open(target, flags, 0o600), "wb")
            try:
                with out:
                    return _copy(source, lines, out, redacting)
            except BaseException:
                os.unlink(target)
                raise
    except FileExistsError:
        raise UsageError(f"{target} exists, and no file is overwritten", "name another") from None
    except OSError as error:
        raise CannotStart(f"{error.filename or target or source}: {error.strerror}", "is it yours?") from None


def _copy(source: str, lines: BinaryIO, out: BinaryIO | None, redacting: Redactor) -> int:
    first = lines.readline()
    try:
        header = _header(first, redacting)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    if out is not None:
        out.write(header)
    while batch := lines.readlines(BATCH):
        torn = b"" if batch[-1].endswith(b"\n") else batch.pop()
        kept = redacting.lines(b"".join(batch))
        if out is not None:
            out.write(kept)
        if torn:
            return len(torn)
    return 0


def _header(line: bytes, redacting: Redactor) -> bytes:
    """Return a recording's first line, cleaned, with the mark that it was."""
    import orjson

    from mcpspy.core.recording.decode import read_header

    read_header(line)
    fields = orjson.loads(line)
    return orjson.dumps({**redacting.header(fields), "redacted": True}) + b"\n"
