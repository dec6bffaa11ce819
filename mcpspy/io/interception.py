"""What a person asked for about interception: rules, watchdog, holds.

Owns the reading of rule files, and the random parts of a desk, which the core
may not make: the seed of dice that have none, the ids of requests of ours.
Imports next to nothing: `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

import os

from mcpspy.errors import CannotStart, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.core.intercept.desk import Desk
    from mcpspy.core.rules.rule import Rules

HOLD_TIMEOUT = 300.0
"""Seconds a message is held at most, unless asked otherwise."""


class Interception:
    """The options of `run` and `http`."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.flags: list[str] = []
        """Rules as they were written on the command line."""
        self.call_timeout: float | None = None
        self.slow: float | None = None
        self.hold_timeout = HOLD_TIMEOUT

    @property
    def is_active(self) -> bool:
        """Whether messages are looked at from the first one on."""
        return bool(self.files or self.flags) or self.call_timeout is not None or self.slow is not None

    def rules(self) -> Rules:
        """Return the rules, those of files first; raise UsageError with the place of a mistake, or CannotStart."""
        from mcpspy.core.rules.file import read_file
        from mcpspy.core.rules.flag import read_flag
        from mcpspy.core.rules.rule import Rule, Rules

        rules: list[Rule] = []
        for file in self.files:
            rules += read_file(_read(file), file, len(rules) + 1)
        for flag in self.flags:
            rules.append(read_flag(flag, len(rules) + 1))
        names = [rule.name for rule in rules if rule.name]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f'two rules are called "{name}"', "notes and dice tell rules apart by name")
        return Rules(tuple(rules), int.from_bytes(os.urandom(4)))

    def desk(self) -> Desk:
        """Return a desk for one session. Raises what `rules` raises."""
        from mcpspy.core.intercept.desk import Desk

        return Desk(
            self.rules(),
            call_timeout=self.call_timeout,
            slow=self.slow,
            hold_timeout=self.hold_timeout,
            prefix=f"mcpspy-{os.urandom(3).hex()}-",
        )


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as rules:
            return rules.read()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files are") from None
    except OSError as error:
        raise CannotStart(f"cannot read rules: {file}: {error.strerror}", "is the path right?") from None
