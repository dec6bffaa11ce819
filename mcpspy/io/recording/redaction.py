"""The redactor of a recording, configured by options, settings and environment.

The key for placeholders exists only in the memory of the process. `core.redact` is imported when it is first
needed, because `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

import os
import sys
from copy import copy

from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.settings import UnsafeRegex, config_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from mcpspy.core.redact.config import RedactionRules
    from mcpspy.core.redact.redactor import Found, Redactor
    from mcpspy.core.redact.user_rules import UserRule

BATCH = 1 << 20
"""Bytes per read of a recording that is being redacted."""

LISTS = ("keys", "patterns", "pointers", "env", "rules")
"""Lists that options and the table `redact` of the settings add to."""


class RedactionOptions:
    """Additions to the built-in rules."""

    def __init__(self) -> None:
        self.off = False
        """True if nothing is redacted, whatever the settings."""
        self.keys: list[str] = []
        self.patterns: list[str] = []
        self.pointers: list[str] = []
        self.env: list[str] = []
        self.rules: list[str] = []
        """Paths of files with rules."""
        self.entropy = False
        """True if values that look random are redacted."""
        self.unsafe_regex = UnsafeRegex()
        self.config: str | None = None
        """Path of the settings; None selects the user's `mcpspy.toml`, if it exists."""
        self.read: tuple[RedactionRules | None] | None = None
        """The rules, if `prepared` has read them."""


def redactor(
    options: RedactionOptions,
    say: Callable[[str], None],
    found: Found | None = None,
    *,
    key: bytes | None = None,
) -> Redactor | None:
    """Return the redactor of a recording, or None if redaction is off. `say` reports what cannot be honoured.

    `key` is that of the placeholders, a random one by default. Raises UsageError or CannotStart.
    """
    if options.off:
        return None
    from mcpspy.core.redact.redactor import Redactor

    rules = _rules(options, say)
    return Redactor(key or os.urandom(32), rules, found)


def prepared(options: RedactionOptions, say: Callable[[str], None]) -> RedactionOptions:
    """Return the options with the rules of this machine's settings, files and environment, for other machines.

    They can be pickled. Raises UsageError or CannotStart.
    """
    result = copy(options)
    if not options.off:
        result.read = (_rules(options, say),)
    return result


def display_rules(options: RedactionOptions) -> RedactionRules | None:
    """Return the rules for what mcpspy prints: those of the recording, also if it is not redacted.

    Returns None for the built-in rules only, as for invalid settings, which are reported where they matter.
    """
    try:
        return _rules(options, lambda _: None)
    except McpspyError:
        return None


def _rules(options: RedactionOptions, say: Callable[[str], None]) -> RedactionRules | None:
    """Return the rules, or None for the built-in ones only, which are imported later."""
    if options.read is not None:
        return options.read[0]
    wanted = {name: list(getattr(options, name)) for name in LISTS}
    entropy = options.entropy
    if options.config is not None or os.path.exists(config_file()):
        from mcpspy.io.settings import table

        file = options.config or config_file()
        settings = table("redact", options.config)
        entropy = _switch(file, settings, "entropy") or entropy
        for name, values in _settings(file, settings).items():
            wanted[name] = [*values, *wanted[name]]
    if not any(wanted.values()) and not entropy:
        return None
    from mcpspy.core.redact.config import RedactionRules

    variables = {name: os.environ.get(name, "") for name in wanted["env"]}
    for name, value in variables.items():
        if not value:
            say(f"--redact-env {name}: the variable is not set, so its value cannot be redacted")
    try:
        return RedactionRules(
            wanted["keys"],
            wanted["patterns"],
            wanted["pointers"],
            variables,
            options.unsafe_regex,
            files=[rule for file in wanted["rules"] for rule in _file_rules(file, options.unsafe_regex, say)],
            entropy=entropy,
        )
    except ValueError as error:
        raise UsageError(f"cannot redact: {error}", "see docs/redact.md") from None


def _file_rules(file: str, unsafe_regex: UnsafeRegex, say: Callable[[str], None]) -> list[UserRule]:
    """Return the rules of a file; `say` reports those that do not apply to messages."""
    from mcpspy.core.redact.config import compile_user_pattern
    from mcpspy.core.redact.user_rules import read_file

    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files must be UTF-8") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "check the path of --redact-rules") from None
    try:
        rules, ignored = read_file(text, file, lambda pattern: compile_user_pattern(pattern, unsafe_regex))
    except ValueError as error:
        raise UsageError(str(error), "see docs/redact.md") from None
    if ignored:
        say(ignored)
    return rules


def _switch(file: str, table: dict[str, Any], name: str) -> bool:
    value = table.pop(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{file}: redact.{name} must be true or false", f"write {name} = true")
    return value


def _settings(file: str, table: dict[str, Any]) -> dict[str, list[str]]:
    """Return the lists of the settings. Paths of files with rules are relative to the settings."""
    for name, value in table.items():
        if name not in LISTS:
            raise UsageError(f"{file}: unknown setting redact.{name}", f"use {', '.join(LISTS)}, entropy")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{file}: redact.{name} must be a list of strings", f'write {name} = ["…"]')
    if "rules" in table:
        folder = os.path.dirname(os.path.abspath(file))
        table["rules"] = [os.path.join(folder, os.path.expanduser(path)) for path in table["rules"]]
    return table


STDOUT = "-"


def clean(
    source: str, target: str | None, redacting: Redactor, look: Callable[[int, bytes], None] | None = None
) -> int:
    """Write a redacted copy of a recording, or only search it. Return the bytes of an incomplete last line.

    `look` is called with the number of each line and the redacted line, before the next one is redacted. The copy is a new, complete file, or does not exist; `-` is stdout. Raises UsageError or CannotStart.
    """
    try:
        with open(source, "rb") as lines:
            if target is None or target == STDOUT:
                return _copy(source, lines, None if target is None else sys.stdout.buffer, redacting, look)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            out = os.fdopen(os.open(target, flags, 0o600), "wb")
            try:
                with out:
                    return _copy(source, lines, out, redacting, look)
            except BaseException:
                os.unlink(target)
                raise
    except FileExistsError:
        raise UsageError(f"{target}: file exists", "use another name") from None
    except OSError as error:
        raise CannotStart(f"{error.filename or target or source}: {error.strerror}", "is it yours?") from None


def _copy(
    source: str,
    lines: BinaryIO,
    out: BinaryIO | None,
    redacting: Redactor,
    look: Callable[[int, bytes], None] | None,
) -> int:
    first = lines.readline()
    try:
        header = redacted_header(first, redacting)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    if out is not None:
        out.write(header)
    if look is not None:
        look(1, header)
    number = 1
    while batch := lines.readlines(BATCH):
        torn = b"" if batch[-1].endswith(b"\n") else batch.pop()
        if look is None:
            redacted = redacting.lines(b"".join(batch))
        else:
            parts = []
            for line in batch:
                number += 1
                parts.append(redacting.lines(line))
                look(number, parts[-1])
            redacted = b"".join(parts)
        if out is not None:
            out.writelines(_strict(line, redacting) for line in redacted.split(b"\n")[:-1])
        if torn:
            return len(torn)
    return 0


def _strict(line: bytes, redacting: Redactor) -> bytes:
    """Return a line with its LF; in older recordings, a message may be other than strict JSON.

    A damaged line is left out: the name of a secret, or the end of its value, may be missing.
    """
    from mcpspy.core.recording.decode import Damaged, read_entry
    from mcpspy.core.recording.encode import is_utf8, splice_raw
    from mcpspy.core.recording.strict_json import flaw

    if isinstance(read_entry(line), Damaged):
        return redacting.left_out(line, "damaged line")
    head, found, rest = line.partition(b',"msg":')
    data = rest[:-1]
    if not found or b'"note":' in head or not rest.endswith(b"}"):
        return line + b"\n"
    is_text = is_utf8([data])
    why = flaw([data]) if is_text else "not UTF-8"
    return b"".join(splice_raw(head + b",", [data], why, is_text=is_text)) if why else line + b"\n"


def redacted_header(line: bytes, redacting: Redactor) -> bytes:
    """Return the first line of a recording, redacted and marked as such. Raise UsageError."""
    import orjson

    from mcpspy.core.recording.decode import read_header

    read_header(line)
    fields = orjson.loads(line)
    return orjson.dumps({**redacting.header(fields), "redacted": True}) + b"\n"
