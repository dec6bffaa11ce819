"""Start of `mcpspy prune` in the background, when a session starts."""

from __future__ import annotations

import os
import sys

NICE = 'nice -n 19 "$@" &'
"""Shell code that starts a command with the lowest priority, and leaves it to the system when the shell exits."""


def start(folder: str, config: str | None) -> None:
    """Start `mcpspy prune` for a folder with the limits of the settings, without waiting. Raise OSError.

    It is detached: it has neither the pipes nor the process group of mcpspy, and outlives it.
    """
    # Without -P, Python would import modules of the current folder, which belongs to the server.
    command = [sys.executable, "-P", "-m", "mcpspy", "prune", "--dir", folder]
    if config is not None:
        command += ["--config", config]
    if sys.platform == "win32":
        import subprocess

        flags = subprocess.DETACHED_PROCESS | subprocess.IDLE_PRIORITY_CLASS
        null = subprocess.DEVNULL
        subprocess.Popen(command, stdin=null, stdout=null, stderr=null, creationflags=flags)
        return
    import signal

    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", NICE, "sh", *command],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )
    os.waitpid(pid, 0)  # The shell exits at once.
