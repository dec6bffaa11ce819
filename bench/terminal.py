"""A headless terminal: the real program in a pty, and the screen it has painted.

Owns the detection of frames and the content of the screen, as far as
Textual's output requires it: text, cursor positions, erasing. Answers the
query that makes Textual mark its frames (`ESC[?2026$p`). POSIX only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

COLUMNS, LINES = 160, 45

KEYS = {
    "down": b"\x1b[B",
    "up": b"\x1b[A",
    "pagedown": b"\x1b[6~",
    "pageup": b"\x1b[5~",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "escape": b"\x1b",
    "enter": b"\r",
}

_QUERY, _ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
_FRAME_END = b"\x1b[?2026l"
_TOKEN = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]P^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x1f]|[^\x00-\x1f]+",
    re.DOTALL,
)


class Screen:
    """The painted screen. Every character counts as one column."""

    def __init__(self) -> None:
        self._cells = [[" "] * COLUMNS for _ in range(LINES)]
        self._x = self._y = 0

    def line(self, y: int) -> str:
        """Return one line; from the bottom if negative."""
        return "".join(self._cells[y])

    def text(self) -> str:
        """Return all lines."""
        return "\n".join(map("".join, self._cells))

    def feed(self, data: bytes) -> None:
        """Paint one frame."""
        for found in _TOKEN.finditer(data.decode("utf-8", "replace")):
            text = found[0]
            if found[2] == "H":
                y, _, x = found[1].partition(";")
                self._y, self._x = int(y or 1) - 1, int(x or 1) - 1
            elif found[2] == "J":
                self._cells = [[" "] * COLUMNS for _ in range(LINES)]
            elif text == "\r":
                self._x = 0
            elif text == "\n":
                self._y += 1
            elif text >= " " and self._y < LINES:
                row = self._cells[self._y]
                row[self._x : self._x + len(text)] = text
                del row[COLUMNS:]
                self._x += len(text)


class Terminal:
    """A running program, and its screen."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.screen = Screen()
        self.frames = 0
        self.frame_at = 0.0
        """Time at which the last frame ended."""
        self.sent = 0
        """Number of bytes the program has written."""
        self._rest = b""
        self._fd, theirs = pty.openpty()
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            self.started_at = time.perf_counter()
            self._process = subprocess.Popen(
                command,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env={**environment, "TERM": "xterm-256color"},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._fd)
            raise
        finally:
            os.close(theirs)
        self.pid = self._process.pid

    def write(self, data: bytes) -> None:
        """Type keys."""
        os.write(self._fd, data)

    def read(self, seconds: float) -> bool:
        """Process output within that time, once; return True if a frame ended."""
        if not select.select([self._fd], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:
            data = b""
        now = time.perf_counter()
        if not data:
            raise RuntimeError(f"the program ended:\n{self.screen.text()}\n{self._rest[-2000:]!r}")
        self.sent += len(data)
        if _QUERY in data:
            self.write(_ANSWER)
        self._rest += data
        end = self._rest.rfind(_FRAME_END)
        if end < 0:
            return False
        frame, self._rest = self._rest[: end + len(_FRAME_END)], self._rest[end + len(_FRAME_END) :]
        self.screen.feed(frame)
        self.frames += 1
        self.frame_at = now
        return True

    def until(self, shows: Callable[[Screen], bool], what: str, *, seconds: float = 30) -> float:
        """Return the end of the first frame in which the screen showed it."""
        end = time.perf_counter() + seconds
        while not (self.frames and shows(self.screen)):
            if time.perf_counter() > end:
                raise TimeoutError(f"{what}: not shown after {seconds:g} s:\n{self.screen.text()}")
            self.read(end - time.perf_counter())
        return self.frame_at

    def rest(self, seconds: float) -> None:
        """Process output for `seconds`."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def press(self, key: str, shows: Callable[[Screen], bool], *, seconds: float = 10) -> float:
        """Press a key; return the seconds to the end of the frame that shows its effect."""
        while self.read(0):
            pass
        started_at = time.perf_counter()
        self.write(KEYS.get(key, key.encode()))
        return self.until(shows, f"what {key} does", seconds=seconds) - started_at

    def cpu(self) -> float:
        """Return the CPU seconds of all its threads."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9

    def resident(self) -> float:
        """Return its resident memory, in megabytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def close(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()
        os.close(self._fd)


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[Terminal]:
    """Run `mcpspy` in a terminal."""
    environment = dict(os.environ)
    for name in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)  # Users do not compile the package at every start, and have colours.
    terminal = Terminal([sys.executable, "-m", "mcpspy", *arguments], environment)
    try:
        yield terminal
    finally:
        terminal.close()
