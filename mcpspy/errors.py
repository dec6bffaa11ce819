"""Every error that a user can see, with its exit code and a hint.

    McpspyError            1
    ├── UsageError         2   the command line, or a file named on it, is wrong
    └── CannotStart        3   the command line is right, but something it needs is missing

Bad traffic is never an error: it is a value (`core.protocol.message.Malformed`). An
error here ends a command; it never ends a recording or the traffic.
"""

FINDINGS = 1
"""Exit code of a command that worked and found something: findings, differences."""

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""The exit codes of shells for a command that they cannot execute, or cannot find."""


class McpspyError(Exception):
    """The event and its place, in one line; `hint` is the next step."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


class UsageError(McpspyError):
    """The command line, or a file named on it, is wrong."""

    exit_code = 2


class CannotStart(McpspyError):  # noqa: N818 - reads as what it says at every raise.
    """The command line is right, but something it needs is missing."""

    exit_code = 3
