"""Lint a recording in its current state (`LintScan`), or a session while it is read (`LiveLinter`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter, LintRule, Severity
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import RecordingScan


class LintScan:
    def __init__(
        self, path: Path, rules: Iterable[LintRule] = RULES, hosts: tuple[HostProfile, ...] | None = None
    ) -> None:
        """Read the header; raise UsageError or CannotStart if that fails."""
        self._rules = rules
        self._hosts = hosts
        recording = Recording(path)
        self._header = recording.header
        # Checked before reading: a session that ends meanwhile counts as live.
        self._is_live = recording.state is RecordingState.LIVE
        self._scan = RecordingScan(path)
        self.parts: list[Path] = []
        """Its files that have been reached so far: a finding's `place.part` counts them from 1."""

    def findings(self, show: Callable[[int, int], None] = lambda _, __: None) -> Iterator[Finding]:
        """Yield the findings; `show` is called with the bytes read and the total."""
        scan, parts = self._scan, self.parts
        session, linter = StreamingSession(self._header), Linter(self._header, self._rules, self._hosts)
        add, look = session.add, linter.add
        number = part = 0
        for block in scan:
            if len(scan.paths) > len(parts):
                parts.append(block.path)
                number, part = 1, len(parts)
            for line in block.lines:
                number += 1
                for change in add(read_entry(line)):
                    if found := look(change, EntryPosition(number, part)):
                        yield from found
            show(scan.read, scan.size)
        if not self._is_live:
            session.end()
            yield from linter.end()

    @property
    def torn(self) -> int:
        """Bytes of an incomplete last line after the scan; 0 if the session is live."""
        return 0 if self._is_live else self._scan.torn


class LiveLinter:
    def __init__(self, header: Header | None, rules: Iterable[LintRule] = RULES) -> None:
        self._linter = Linter(header, rules)
        self._found: dict[int, list[Finding]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    def add(self, change: Change) -> list[Finding]:
        """Add the next change; return new findings on earlier changes."""
        return [found for found in self._kept(self._linter.add(change)) if found.number != change.number]

    def end(self) -> list[Finding]:
        """Return findings on the end of the session. Call it after the session's own `end`."""
        return self._kept(self._linter.end())

    def of(self, number: int) -> list[Finding]:
        return self._found.get(number, [])

    def words(self, number: int) -> list[str]:
        return [f"{found.code} {found.severity}" for found in self.of(number)]

    def _kept(self, findings: list[Finding]) -> list[Finding]:
        for found in findings:
            self._found.setdefault(found.number, []).append(found)
        return findings


RULES_BY_CODE: dict[str, LintRule] = {rule.code: rule for rule in RULES}


class LintedRecording(NamedTuple):
    title: str
    parts: list[Path]
    findings: list[Finding]
    server: str = ""
    """Name of the session, which names its server."""
    fail_on: Severity = Severity.ERROR

    def path(self, finding: Finding) -> str:
        return self.parts[finding.place.part - 1].as_posix()


def visible(text: str) -> str:
    """Return one line of text without control characters; invisible characters are escaped."""
    shown = sanitize(text)
    return shown if shown.isprintable() else "".join(map(_shown, shown))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
