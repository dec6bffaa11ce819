"""Every error a person can meet, with its exit code and the way out.

    McpspyError            1
    ├── UsageError         2   the command line, or a file named on it, is wrong
    └── CannotStart        3   the command was right, the world was not

Bad traffic is never an error: it is a value (`core.protocol.message.Malformed`). An
error here ends a command; it never ends a recording or the traffic.
"""

FINDINGS = 1
"""Exit code of a command that worked and found something: findings, differences."""

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""What a shell answers for a command it cannot execute, or cannot find."""


class McpspyError(Exception):
    """What happened and where, in one line; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


class UsageError(McpspyError):
    """The command line, or a file named on it, is not what the command takes."""

    exit_code = 2


class CannotStart(McpspyError):  # noqa: N818 - reads as what it says at every raise.
    """The command line was right, but something it needs is not there."""

    exit_code = 3
