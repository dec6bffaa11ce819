"""A recording looked through by the rules, once, as it is now.

Owns where each line stands, and that a session that goes on has no end to
judge. Which findings matter, and how they are told, is the caller's. A session
whose messages are shown besides is `live`'s.

Findings on a session that is being read, by the message each is about.

Owns what is known so far. Which of it is shown, and where, is the caller's.

A recording, and what was found in it: what every writer is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter, LintRule, StreamingSession
from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import RecordingScan


class LintScan:
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


class LiveLinter:
    """A linter, and what it said."""

    def __init__(self, header: Header | None) -> None:
        self._linter = Linter(header)
        self._found: dict[int, list[Finding]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    def add(self, change: Change) -> list[Finding]:
        """Take the next change; return what is wrong with earlier ones, as it shows only now."""
        return [found for found in self._kept(self._linter.add(change)) if found.number != change.number]

    def end(self) -> list[Finding]:
        """Nothing more will come: return what is wrong with that. After the session's own end."""
        return self._kept(self._linter.end())

    def of(self, number: int) -> list[Finding]:
        """Return what is wrong with a change."""
        return self._found.get(number, [])

    def words(self, number: int) -> list[str]:
        """Return the same as a filter asks for it."""
        return [f"{found.code} {found.severity}" for found in self.of(number)]

    def _kept(self, findings: list[Finding]) -> list[Finding]:
        for found in findings:
            self._found.setdefault(found.number, []).append(found)
        return findings


RULES_BY_CODE: dict[str, LintRule] = {rule.code: rule for rule in RULES}


class LintedRecording(NamedTuple):
    """One recording."""

    title: str
    """As a person named it: a path, or a session."""
    parts: list[Path]
    """Its files, as they were found."""
    findings: list[Finding]

    def path(self, finding: Finding) -> str:
        return self.parts[finding.place.part - 1].as_posix()


def counted(number: int, word: str) -> str:
    """Return a number with its noun: `1 error`, `2 errors`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def visible(text: str) -> str:
    """Return one line of text in which nothing is interpreted, and nothing hides: what nobody sees is an escape."""
    shown = sanitize(text)
    return shown if shown.isprintable() else "".join(map(_shown, shown))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
