"""The process that runs the user's scripts: its options, its start and its end.

Scripts have their own process, so that one that hangs, exits or prints harms neither the traffic nor stdout. The process
is a viewer of the session's control socket (docs/control.md), recognised by a token.
"""

from __future__ import annotations

import os
import sys

from mcpspy.errors import CannotStart, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

HOST = "mcpspy.ui.scripts.host"
"""The module that runs scripts."""

BUILTIN = "builtin:"
"""Prefix of the name of a script that mcpspy contains."""

TIMEOUT = 5.0
"""Default time limit of a hook, in seconds."""

TIMED_HOOKS = (
    "configure session_started request response notification http_request http_response stderr".split()
)
"""Hooks with a time limit. `session_ended` has EXIT_TIMEOUT."""

MAX_RESTARTS = 5
"""Number of times that a failed process is started again in one session."""

EXIT_TIMEOUT = 1.0
"""Seconds in which the hooks `session_ended` may finish. Hosts wait for mcpspy's exit."""


class ScriptOptions:
    """The scripts of the command line."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.values: dict[str, str] = {}
        """The values of --script-option, for the hook `configure`."""
        self.timeouts: dict[str, float] = {}
        """Time limits of hooks by their names; the empty name has that of all others, if it is not TIMEOUT."""
        self.is_reloaded = False

    @property
    def names(self) -> list[str]:
        """Return the names in notes: file names, or `builtin:NAME`."""
        return [file if file.startswith(BUILTIN) else os.path.basename(file) for file in self.files]

    def check(self) -> None:
        """Raise CannotStart for a script that cannot be read, UsageError for one that is not Python."""
        for file in self.files:
            path = script_path(file)
            try:
                with open(path, "rb") as script:
                    compile(script.read(), path, "exec", dont_inherit=True)
            except OSError as error:
                raise CannotStart(f"--script {file}: {error.strerror}", "is the path right?") from None
            except (SyntaxError, ValueError) as error:
                place = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
                reason = error.msg if isinstance(error, SyntaxError) else error
                raise UsageError(f"--script {file}: not valid Python: {reason}{place}") from None


def builtin_folder() -> str:
    """Return the folder with the scripts that mcpspy contains."""
    return os.path.join(os.path.dirname(__file__), "..", "ui", "scripts", "builtin")


def builtin_names() -> list[str]:
    names = (name.removesuffix(".py") for name in os.listdir(builtin_folder()) if name.endswith(".py"))
    return sorted(name for name in names if not name.startswith("_"))


def script_path(file: str) -> str:
    """Return the path of a script. Raise UsageError for an unknown `builtin:NAME`."""
    if not file.startswith(BUILTIN):
        return os.path.abspath(file)
    name = file.removeprefix(BUILTIN)
    if name not in builtin_names():
        raise UsageError(f"--script {file}: no such script", "mcpspy scripts lists them")
    return os.path.abspath(os.path.join(builtin_folder(), f"{name}.py"))


class ScriptProcess:
    """The process that runs the scripts of one session."""

    def __init__(self, options: ScriptOptions, socket: str, token: str) -> None:
        """`socket` is the path of the control socket."""
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._config = {
            "socket": socket,
            "token": token,
            "scripts": list(zip(options.names, map(script_path, options.files), strict=True)),
            "options": options.values,
            "timeout": options.timeouts.get("", TIMEOUT),
            "timeouts": options.timeouts,
            "reload": options.is_reloaded,
            "exit_timeout": EXIT_TIMEOUT,
        }

    @property
    def may_start(self) -> bool:
        return self._starts <= MAX_RESTARTS

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process. Raise OSError."""
        from subprocess import DEVNULL, PIPE, Popen

        from mcpspy.core.rules.edit import to_json

        self._starts += 1
        # Its stdout is mcpspy's stderr: what a script prints must not reach the protocol.
        self._process = Popen(
            [sys.executable, "-EP" if sys.flags.ignore_environment else "-P", "-m", HOST],
            stdin=PIPE,
            stdout=2 if _is_open(2) else DEVNULL,
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(to_json(self._config))
            self._process.stdin.close()
        except BrokenPipeError:  # It has exited already, which the caller notices by the missing connection.
            pass

    def kill(self) -> str:
        """End the process after a failure; return how it had ended, or an empty string if it was still running."""
        from subprocess import TimeoutExpired

        process, self._process = self._process, None
        if process is None:
            return ""
        try:
            code = process.wait(0.2)
        except TimeoutExpired:
            process.kill()
            process.wait()
            return ""
        return f"exited with code {code}" if code >= 0 else f"ended by signal {-code}"

    def wait(self) -> None:
        """Wait until the process has ended after the session, for at most EXIT_TIMEOUT; then kill it."""
        from subprocess import TimeoutExpired

        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(EXIT_TIMEOUT + 0.5)
            except TimeoutExpired:
                process.kill()
                process.wait()


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
