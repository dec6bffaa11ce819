"""Errors that users see, with exit codes and hints.

    McpspyError            1
    ├── UsageError         2   the command line, or a file named on it, is invalid
    └── CannotStart        3   the command line is valid, but something it needs is missing

Invalid traffic does not raise errors: it is a value (`core.protocol.message.Malformed`). These
errors end a command, but not a recording or the traffic.
"""

FINDINGS = 1
"""Exit code of a command that worked and reports findings or differences."""

INCOMPLETE = 4
"""Exit code of a command that found nothing wrong in a recording that lacks what it would have to judge."""

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""Exit codes of shells for a command that they cannot execute, or cannot find."""


class McpspyError(Exception):
    """An error of one line: the problem and its location. All errors of mcpspy are subclasses.

    >>> try:
    ...     mcpspy.read("no-such-file.jsonl")
    ... except mcpspy.McpspyError as error:
    ...     print(error.exit_code, str(error).startswith("no-such-file.jsonl: "))
    2 True
    """

    exit_code = 1
    """The exit code of a command that ends with it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint: str = hint
        """The next step for the user; `str` adds it in parentheses. Empty if there is none."""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


class UsageError(McpspyError):
    """An invalid argument or command line, or an invalid file named by it. `exit_code` is 2."""

    exit_code = 2


class CannotStart(McpspyError):  # noqa: N818 - The name reads well at every raise.
    """Something that a valid call or command line needs is missing. `exit_code` is 3."""

    exit_code = 3
