"""Start of commands in the background when a session starts: `prune`, and the exporter of telemetry."""

from __future__ import annotations

import os
import sys

from mcpspy.io.settings import state_folder

TELEMETRY = "MCPSPY_TELEMETRY"
"""Environment variable with the endpoint of a collector; `off` starts no exporter."""

NICE = 'nice -n 19 "$@" &'
"""Shell code that starts a command with the lowest priority, and leaves it to the system when the shell exits."""


def start(arguments: list[str], config: str | None) -> None:
    """Start a command of mcpspy with the settings, without waiting. Raise OSError.

    It is detached: it has neither the pipes nor the process group of mcpspy, and outlives it.
    """
    # Without -P, Python would import modules of the current folder, which belongs to the server.
    isolation = "-EP" if sys.flags.ignore_environment else "-P"
    command = [sys.executable, isolation, "-m", "mcpspy", *arguments]
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


def export(recording: str, number: str, config: str | None) -> None:
    """Register a session for the exporter of this user, and start the exporter unless it runs. Raise OSError.

    An exporter that ends looks for registered sessions once more after it has unlocked its file.
    """
    from mcpspy.io.recording.writer import is_live

    folder = state_folder("telemetry")
    os.makedirs(os.path.join(folder, "new"), mode=0o700, exist_ok=True)
    path = os.path.join(folder, "new", number)
    with open(os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(os.path.abspath(recording).encode("utf-8", "surrogateescape"))
    os.replace(f"{path}.tmp", path)
    try:
        lock = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
    except FileNotFoundError:
        is_running = False
    else:
        is_running = is_live(lock)
        os.close(lock)
    if not is_running:
        start(["export", "--follow", "--background"], config)
