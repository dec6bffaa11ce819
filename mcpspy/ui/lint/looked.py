"""A recording looked through by the rules, once, as it is now.

Owns where each line stands, and that a session that goes on has no end to
judge. Which findings matter, and how they are told, is the caller's. A session
whose messages are shown besides is `live`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter, LintRule, StreamingSession
from mcpspy.core.recording.decode import read_entry
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import RecordingScan


class Looked:
    """A recording, as far as it has been looked through."""

    def __init__(self, path: Path, rules: Iterable[LintRule] = RULES) -> None:
        """Read the header; raise UsageError or CannotStart if that cannot be."""
        self._rules = rules
        recording = Recording(path)
        self._header = recording.header
        # Before it is read: what comes meanwhile is not its end.
        self._is_live = recording.state is RecordingState.LIVE
        self._scan = RecordingScan(path)
        self.parts: list[Path] = []
        """Its files, as far as they have been reached: a finding's `place.part` counts them from 1."""

    def findings(self, show: Callable[[int, int], None] = lambda _, __: None) -> Iterator[Finding]:
        """Yield what the rules find; `show` is told how many bytes of how many have been read."""
        scan, parts = self._scan, self.parts
        session, linter = StreamingSession(self._header), Linter(self._header, self._rules)
        add, look = session.add, linter.add
        number = 0
        for block in scan:
            if len(scan.paths) > len(parts):
                parts.append(block.path)
                number = 1
            for line in block.lines:
                number += 1
                for change in add(read_entry(line)):
                    yield from look(change, EntryPosition(number, len(parts)))
            show(scan.read, scan.size)
        if not self._is_live:
            session.end()
            yield from linter.end()

    @property
    def torn(self) -> int:
        """Once looked through: bytes of a last line that never got its end; of one that is being written, 0."""
        return 0 if self._is_live else self._scan.torn
