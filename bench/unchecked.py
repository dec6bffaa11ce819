"""`mcpspy run` without the check for strict JSON, or with it and without it in turns.

    unchecked.py run …              without it
    unchecked.py TURN FILE run …    in turns of TURN chunks; their times are written to FILE

Turns in one process differ in nothing else: not in the layout of its memory, nor in the load of the machine, which
between two processes differ by more than the check takes. FILE is JSON: a list of turns, each a list of: checked
(0 or 1), chunks, bytes, CPU seconds of the process, seconds.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter, process_time

from mcpspy.core.framing import SMALL
from mcpspy.core.recording import encode, strict_json
from mcpspy.core.recording.encode import LF, FrameEncoder
from mcpspy.ui.cli.run import main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Lines

CHECKS = {name: vars(strict_json)[name] for name in ("are_strict", "flaw")}
NO_CHECKS = {"are_strict": lambda _lines, _count: True, "flaw": lambda _pieces: None}


class Unchecked(FrameEncoder):
    """An encoder that takes each text between brackets for JSON."""

    __slots__ = ()

    def feed(self, at: float, data: bytes) -> Lines:
        if data[-2:] == b"}\n" and len(data) < SMALL and data[:1] == b"{" and not self._framer.pieces:
            message = data[:-1]
            if LF not in message and message.isascii():
                return self._line % (at, message)
        return super().feed(at, data)


class InTurns(Unchecked):
    """An encoder that checks in every other turn."""

    __slots__ = ()
    size = chunks = amount = 0
    is_checking = False
    started = (0.0, 0.0)
    turns: list[tuple[int, int, int, float, float]] = []  # noqa: RUF012 - of all encoders.

    def feed(self, at: float, data: bytes) -> Lines:
        cls = InTurns
        if cls.chunks >= cls.size:
            cls.turn()
        cls.chunks += 1
        cls.amount += len(data)
        return FrameEncoder.feed(self, at, data) if cls.is_checking else Unchecked.feed(self, at, data)

    @classmethod
    def turn(cls) -> None:
        """End a turn and begin the next."""
        cpu, wall = cls.started
        times = process_time() - cpu, perf_counter() - wall
        cls.turns.append((int(cls.is_checking), cls.chunks, cls.amount, *times))
        cls.chunks = cls.amount = 0
        cls.is_checking = not cls.is_checking
        vars(strict_json).update(CHECKS if cls.is_checking else NO_CHECKS)
        cls.started = process_time(), perf_counter()


def run_in_turns(size: int, file: str, arguments: list[str]) -> int:
    """Run mcpspy in turns of `size` chunks."""
    InTurns.size = InTurns.chunks = size
    leave = os._exit

    def save(code: int) -> None:
        import json  # Not before: `mcpspy run` starts without it.

        with open(file, "w", encoding="utf-8") as opened:
            json.dump(InTurns.turns, opened)
        leave(code)

    vars(os).update(_exit=save)  # With which mcpspy ends.
    vars(encode).update(FrameEncoder=InTurns)
    return main(arguments)


if sys.argv[1] == "run":
    vars(encode).update(FrameEncoder=Unchecked)
    vars(strict_json).update(NO_CHECKS, load=lambda: None)
    sys.exit(main(sys.argv[2:]))
sys.exit(run_in_turns(int(sys.argv[1]), sys.argv[2], sys.argv[4:]))
