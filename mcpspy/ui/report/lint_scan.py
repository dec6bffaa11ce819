"""Lint of a recording in its current state, or of a session while it is read, and its settings.

`mcpspy lint`, `show --lint`, the terminal UI and the pytest plugin obey the settings. These are the table [lint] of a
project or the user, with changes for single servers. An option of the command line replaces the same setting. A file of
rules is a program, so only the command line can name it.
"""

from __future__ import annotations

import importlib.machinery
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from mcpspy.analysis.completeness import Completeness, Gap
from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter, LintRule, Report, Severity, selected
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.analysis.lint.host_profiles import NAMES as HOSTS
from mcpspy.analysis.lint.host_profiles import HostProfile, chosen
from mcpspy.analysis.lint.host_verdicts import HostVerdict
from mcpspy.analysis.lint.rule import Check
from mcpspy.analysis.lint.rules import FAMILIES
from mcpspy.core.recording.decode import Header, Note, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import RecordingScan
from mcpspy.io.settings import config_file, project_file, table

LISTS = ("select", "ignore")
NAMES = (*LISTS, "fail-on", "hosts")

CODES = "see docs/lint.md; use codes such as ENV, LIFE3, SEC201"


class LintSettings:
    def __init__(
        self,
        config: str | None = None,
        *,
        select: Sequence[str] = (),
        ignore: Sequence[str] = (),
        fail_on: str | None = None,
        rules: Sequence[LintRule] | None = None,
    ) -> None:
        """Read and check the settings and the options. Raises UsageError or CannotStart.

        `rules` are all rules, if a file of rules could be named: then a code in the settings must be one of theirs.
        """
        file = config or project_file()
        self._file = file or config_file()
        self._rules = RULES if rules is None else tuple(rules)
        self._is_strict = rules is not None
        settings = table("lint", file)
        servers = settings.pop("servers", {})
        self._general = self._checked(settings, "lint")
        if not isinstance(servers, dict):
            raise self._wrong("lint.servers: not a table", 'write [lint.servers."weather*"]')
        self._servers = {
            pattern: self._checked(changes, f"lint.servers.{pattern}") for pattern, changes in servers.items()
        }
        self._options = {"select": list(select), "ignore": list(ignore), "fail-on": fail_on}
        try:
            selected(select, ignore, self._rules)
        except ValueError as error:
            raise UsageError(sanitize(f"lint: unknown rule code {error}"), CODES) from None

    def hosts(self, server: str | None) -> tuple[HostProfile, ...] | None:
        """Return the hosts whose limits are checked for a server; None to recognise the host of each session."""
        names = self._merged(server).get("hosts")
        return chosen(",".join(names)) if names is not None else None

    def of(self, server: str | None) -> tuple[tuple[LintRule, ...], Severity]:
        """Return the rules for the sessions of a server, and the severity from which they fail."""
        merged = self._merged(server)
        select, ignore = (self._known(merged.get(name, ())) for name in LISTS)
        rules = selected(select, ignore, self._rules) if select or not merged.get("select") else ()
        return rules, Severity(merged.get("fail-on", Severity.ERROR))

    def _merged(self, server: str | None) -> dict[str, Any]:
        merged = dict(self._general)
        for pattern, changes in self._servers.items():
            if fnmatchcase(server or "", pattern):
                ignored = [*merged.get("ignore", ()), *changes.get("ignore", ())]
                merged |= {**changes, "ignore": ignored}
        return merged | {name: value for name, value in self._options.items() if value}

    def _known(self, codes: Iterable[str]) -> list[str]:
        """Return the codes, without those of rules of a file that is not loaded."""
        families = tuple(FAMILIES)
        return [code for code in codes if self._is_strict or not _is_of_user(code, families)]

    def _checked(self, settings: Any, where: str) -> dict[str, Any]:
        if not isinstance(settings, dict):
            raise self._wrong(f"{where}: not a table", f"use {', '.join(NAMES)}")
        for name, value in settings.items():
            if name not in NAMES:
                raise self._wrong(f"{where}.{name}: unknown setting", f"use {', '.join(NAMES)}, servers")
            if name in LISTS:
                if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
                    raise self._wrong(f"{where}.{name}: not a list of rule codes", f'write {name} = ["ENV"]')
                try:
                    selected(self._known(value), rules=self._rules)
                except ValueError as error:
                    raise self._wrong(f"{where}.{name}: unknown rule code {error}", CODES) from None
            elif name == "hosts":
                try:
                    chosen(",".join(value))
                except (TypeError, ValueError):
                    hint = f'write hosts = ["cursor"]; use {", ".join(HOSTS)}, all, none'
                    raise self._wrong(f"{where}.hosts: not a list of known hosts", hint) from None
            elif value not in list(Severity):
                raise self._wrong(f"{where}.{name}: not a severity", f"use {', '.join(Severity)}")
        return settings

    def _wrong(self, problem: str, hint: str) -> UsageError:
        return UsageError(sanitize(f"{self._file}: {problem}"), hint)


def _is_of_user(code: str, families: tuple[str, ...]) -> bool:
    letters = code.strip().upper().rstrip("0123456789")
    return letters.isalpha() and 3 <= len(letters) <= 5 and letters not in families and letters != "ALL"


def user_rules(files: Iterable[str]) -> tuple[LintRule, ...]:
    """Return the rules of Python files: those in their `RULES`. Raises UsageError or CannotStart.

    A rule that raises an exception while it checks raises a UsageError with its line.
    """
    found: list[LintRule] = []
    for file in files:
        for rule in _loaded(file):
            if rule.family in FAMILIES or any(rule.code == other.code for other in found):
                why = f"{rule.family} is a family of mcpspy" if rule.family in FAMILIES else "used twice"
                raise UsageError(sanitize(f"{file}: code {rule.code}: {why}"), "choose another code")
            found.append(replace(rule, check=_guarded(rule, file)))
    return tuple(found)


def _loaded(file: str) -> list[LintRule]:
    try:
        source = Path(file).read_bytes()
    except FileNotFoundError:
        raise UsageError(sanitize(f"{file}: no such file"), "name a Python file with lint rules") from None
    except OSError as error:
        raise CannotStart(sanitize(f"{file}: {error.strerror}"), "check the path") from None
    name = "mcpspy_lint_rules"
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = file
    try:
        code = importlib.machinery.SourceFileLoader(name, file).source_to_code(source, file)
        exec(code, module.__dict__)  # noqa: S102 - The user names the file.
    except (Exception, SystemExit) as error:
        raise _fault(file, error) from None
    rules = getattr(module, "RULES", None)
    if (
        not isinstance(rules, list | tuple)
        or not rules
        or not all(isinstance(rule, LintRule) for rule in rules)
    ):
        raise UsageError(
            sanitize(f"{file}: RULES is not a list of lint rules"), "see docs/lint.md, user rules"
        )
    return list(rules)


def _fault(file: str, error: BaseException, code: str = "") -> UsageError:
    """Return the error of a line in a file of rules."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    number = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
    text = error.msg if isinstance(error, SyntaxError) else str(error).partition("\n")[0]
    where = f"{file}:{number}" if number is not None else file
    return UsageError(
        sanitize(f"{where}: {code and code + ': '}{type(error).__name__}: {text[:200]}"),
        "correct the file of rules",
    )


def _guarded(rule: LintRule, file: str) -> Check:
    check: Callable[[LintEvent], Any] = rule.check

    @wraps(check)
    def guarded(event: LintEvent) -> list[Report]:
        try:
            reports = list(check(event) or ())
        except Exception as error:
            raise _fault(file, error, rule.code) from None
        if not all(isinstance(report, Report) for report in reports):
            raise UsageError(
                sanitize(f"{file}: {rule.code} returns something else than Report"), "yield Report(text)"
            )
        return reports

    return guarded


def self_test(rules: Iterable[LintRule]) -> Iterator[tuple[LintRule, str, str]]:
    """Yield the rule, the example and the failure for each example that a rule does not judge as it should.

    A rule must report something in each invalid example, and nothing in each valid one.
    """
    for rule in rules:
        for title, examples in (("valid", rule.valid), ("invalid", rule.invalid)):
            for number, example in enumerate(examples, 1):
                name = f"{title} example {number}"
                try:
                    reported = _reported(rule, example)
                except ValueError as error:
                    yield rule, name, str(error)
                    continue
                if reported and title == "valid":
                    yield rule, name, f"reported: {reported[0]}"
                elif not reported and title == "invalid":
                    yield rule, name, "not reported"


def _reported(rule: LintRule, example: str) -> list[str]:
    """Return the messages of the findings in an example; raise ValueError if it is not in the notation."""
    header = header_of(example)
    session, linter = StreamingSession(header), Linter(header, [rule])
    found = []
    is_over = False
    for number, entry in enumerate(entries_of(example), 2):
        for change in session.add(entry):
            found += linter.add(change, EntryPosition(number))
        is_over = is_over or (isinstance(entry, Note) and entry.kind == "exit")
    return [finding.message for finding in (*found, *(linter.end() if is_over else ()))]


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
        state = recording.state
        self._is_live = state is RecordingState.LIVE
        self._is_cut = state is RecordingState.DIED
        self._scan = RecordingScan(path)
        self.parts: list[Path] = []
        """Its files that have been reached so far: a finding's `place.part` counts them from 1."""
        self.gaps: list[Gap] = []
        """Its gaps, once it has been read."""
        self.verdicts: list[HostVerdict] = []
        """Verdicts for the hosts whose limits are checked, once it has been read."""

    def findings(self, show: Callable[[int, int], None] = lambda _, __: None) -> Iterator[Finding]:
        """Yield the findings; `show` is called with the bytes read and the total."""
        scan, parts = self._scan, self.parts
        session, linter = StreamingSession(self._header), Linter(self._header, self._rules, self._hosts)
        completeness = Completeness()
        add, look, note = session.add, linter.add, completeness.add
        number = part = 0
        for block in scan:
            if len(scan.paths) > len(parts):
                parts.append(block.path)
                number, part = 1, len(parts)
            for line in block.lines:
                number += 1
                for change in add(read_entry(line)):
                    note(change)
                    if found := look(change, EntryPosition(number, part)):
                        yield from found
            show(scan.read, scan.size)
        pending = sum(each.is_counted for each in session.pending) if self._is_cut else 0
        self.gaps += completeness.gaps(torn=self.torn, pending=pending)
        if not self._is_live:
            session.end()
            yield from linter.end()
        self.verdicts += linter.host_verdicts()

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


def by_rule(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings by the codes of their rules."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.code, []).append(finding)
    return found


RULES_BY_CODE: dict[str, LintRule] = {rule.code: rule for rule in RULES}


class LintedRecording(NamedTuple):
    title: str
    parts: list[Path]
    findings: list[Finding]
    server: str = ""
    """Name of the session, which names its server."""
    fail_on: Severity = Severity.ERROR
    gaps: list[Gap] = []  # noqa: RUF012 - Nothing adds to this one.
    """Gaps of the recording, once it has been read."""
    verdicts: list[HostVerdict] = []  # noqa: RUF012 - Nothing adds to this one.
    """Verdicts for hosts, once it has been read."""
    name: str = ""
    """The session as the text report names it: not a path, which fills a line."""

    def place(self, finding: Finding) -> str:
        """Return the place of a finding for people; a part after the first is named by its file."""
        part = finding.place.part
        name = self.name if part == 1 else self.parts[part - 1].stem
        return f"{name}:{finding.place.line}"

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
