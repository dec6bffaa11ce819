"""`mcpspy lint`: check sessions for protocol violations."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.analysis.lint import RULES, Finding, LintRule, Severity
from mcpspy.analysis.lint.host_profiles import NAMES, HostProfile, chosen
from mcpspy.core.counted import counted
from mcpspy.core.query.parser import Query
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, INCOMPLETE, UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.scan import no_collection
from mcpspy.ui.cli.arguments import query_of, recordings
from mcpspy.ui.cli.options import FOLDER, UNSAFE_REGEX, Argument, Option, Repeated, Switch
from mcpspy.ui.cli.parser import read_unsafe_regex
from mcpspy.ui.cli.workers import WORKERS, file_size, results
from mcpspy.ui.report.lint import (
    MOST,
    TONES,
    Baseline,
    explanation,
    finding_lines,
    gap_lines,
    hint_lines,
    host_lines,
    more_lines,
    statistics_lines,
    verdict,
)
from mcpspy.ui.report.lint_scan import (
    RULES_BY_CODE,
    LintedRecording,
    LintScan,
    LintSettings,
    self_test,
    user_rules,
)
from mcpspy.ui.text.terminal import Output, ProgressBar, print_report, warn_incomplete

if TYPE_CHECKING:
    from mcpspy.io.lake.fetch import StoredSession

EPILOG = """\
examples:
  mcpspy lint
  mcpspy lint weather.jsonl recordings/ --fail-on warning
  mcpspy lint last --select ENV,LIFE --ignore LIFE402
  mcpspy lint last -q 'tool:forecast or dir:s2c'
  mcpspy lint last --format sarif > lint.sarif
  mcpspy lint recordings/ --baseline lint-baseline.json
  mcpspy lint recordings/ --statistics --workers 4
  mcpspy lint --lake ~/lake --where "server = 'weather' AND day >= '2026-08-01'"
  mcpspy lint recordings/ --rules-file rules.py
  mcpspy lint --self-test rules.py
  mcpspy lint last --host cursor,vscode
  mcpspy lint --explain LIFE302

SESSION is a file, a folder of recordings, `last`, a session name, or the beginning of a
session id (default: last). docs/lint.md describes all rules, with examples.

exit codes: 0 no findings at or above --fail-on; 1 findings; 2 usage error or not a
recording; 3 file not readable, or a worker was killed; 4 no findings, but a recording is
incomplete: cut, with lost entries, or with pages of lists that were not requested
"""

_FORMATS = ["text", "json", "sarif", "junit", "github"]

OPTIONS = (
    Argument("sessions", "SESSION", "sessions to check, - for stdin (default: last)", nargs="*"),
    Repeated("--select", "CODES", "run only these rules: ENV, LIFE3, SEC201, ALL (default: ALL)"),
    Repeated("--ignore", "CODES", "skip these rules; the longer of two matching codes wins"),
    Option("--host", "HOSTS",
        f"check the limits of these hosts: {', '.join(NAMES)}, all, none (default: the host of the session)"),
    Option("-q --filter", "QUERY", "report only findings on matching messages, e.g. 'tool:x since:-5m'"),
    UNSAFE_REGEX,
    Option("--baseline", "FILE", "report only findings that are not in this file of known ones"),
    Switch("--update-baseline", "write the findings to the file of --baseline", requires="--baseline FILE",
        excludes=("--filter",), hint="the baseline contains all findings of the sessions"),
    Switch("--hints", "text: below the first finding of a rule, also print why it matters and how to fix it"),
    Switch("--statistics", "print the number of findings per rule instead of the findings",
        excludes=[f"--format {form}" for form in _FORMATS[2:]], hint="use text or json"),
    Option("--config", "FILE",
        "settings file (default: the project's mcpspy.toml or pyproject.toml, else the user's)"),
    Repeated("--rules-file", "FILE", "also run the rules of this Python file, which is executed"),
    Option("--lake", "LAKE", "check the sessions of this lake", excludes=("SESSION",),
        hint="use --where to select sessions"),
    Option("--where", "SQL",
        "of the lake, check those for which this condition on its table sessions is true",
        requires="--lake LAKE"),
    Option("--self-test", "FILE", "run the examples of the rules in this file, and exit 1 if one fails"),
    Option("--explain", "CODE", "print what a rule checks and why, with examples"),
    Option("--format", None, "output format (default: text)", choices=_FORMATS, default="text"),
    Option("--fail-on", None, "exit 1 at or above this severity (default: error)",
        choices=[*map(str, Severity)]),
    Switch("--all", f"text: print all findings, not only {MOST} per rule"),
    FOLDER,
    *WORKERS,
)  # fmt: skip


@no_collection()  # Objects are freed with their line: there are no cycles to collect.
def main(args: argparse.Namespace) -> int:
    if args.self_test is not None:
        return _self_test(args.self_test)
    own = user_rules(args.rules_file)
    RULES_BY_CODE.update((rule.code, rule) for rule in own)
    if args.explain is not None:
        return _explain(args.explain)
    report = _TextReport(args.all, args.hints) if args.format == "text" and not args.statistics else None
    checker = _Checker(args, own, report)
    baseline = Baseline(args.baseline, is_updated=args.update_baseline) if args.baseline is not None else None
    checked: dict[str, set[str]] = {}
    found = _found(args)
    names = _names(found)
    counts: Counter[Severity] = Counter()
    codes: Counter[str] = Counter()
    is_failed = False
    linted = []
    is_here = args.workers == 1 and args.on is None
    check = checker.checked if is_here else partial(_checked_apart, args)
    with results(args, check, found, _size) as recordings:
        for given, rules, findings in recordings:
            recording = given._replace(name=names.get(given.title, given.title))
            checked.setdefault(recording.server, set()).update(rules)
            linted.append(recording)
            for finding in findings:
                if baseline is not None and baseline.has(finding, recording.server):
                    continue
                counts[finding.severity] += 1
                codes[finding.code] += 1
                is_failed = is_failed or finding.severity.rank <= recording.fail_on.rank
                if report is not None:
                    report.finding(finding, recording.place(finding))
                elif args.format != "text":
                    recording.findings.append(finding)
            if report is not None:
                report.end_of(recording.name)
    if baseline is not None:
        baseline.end(checked if args.filter is None else {})
    statistics = codes if args.statistics else None
    if args.format == "text":
        _print_end(counts, linted, baseline, statistics)
    else:
        _write(args.format, linted, baseline, statistics)
    if is_failed:
        return FINDINGS
    return INCOMPLETE if any(recording.gaps for recording in linted) else 0


def _found(args: argparse.Namespace) -> list[tuple[str, Path | StoredSession]]:
    """Return the recordings to check, each with its title."""
    if args.lake is None:
        found = [*recordings(args.sessions, args.dir)]
        for _, path in found:
            Recording(path)  # Report what is not a recording before the first finding.
        return [*found]
    from mcpspy.io.lake.fetch import sessions_where

    return [(f"lake:{each.key}", each) for each in sessions_where(args.lake, args.where or "true")]


def _names(found: list[tuple[str, Path | StoredSession]]) -> dict[str, str]:
    """Return the names of sessions by their titles: that of the file where two have the same name."""
    files = {title: place for title, place in found if isinstance(place, Path)}
    names = {title: Recording(path).header.name or path.stem for title, path in files.items()}
    count = Counter(names.values())
    return {title: name if count[name] == 1 else files[title].stem for title, name in names.items()}


def _size(found: tuple[str, Path | StoredSession]) -> int:
    place = found[1]
    return file_size(place) if isinstance(place, Path) else place.size


class _Checked(NamedTuple):
    recording: LintedRecording
    """Without its findings."""
    rules: set[str]
    findings: Iterable[Finding]


class _Checker:
    """Checks recordings with the settings and options of a command line. Raises UsageError or CannotStart."""

    def __init__(
        self, args: argparse.Namespace, own: tuple[LintRule, ...], report: _TextReport | None = None
    ) -> None:
        self._settings = LintSettings(
            args.config, select=args.select, ignore=args.ignore, fail_on=args.fail_on, rules=(*RULES, *own)
        )
        self._hosts = host_profiles(args.host)
        self._query = query_of(args.filter, allow_unsafe=read_unsafe_regex(args))
        self._report = report

    def checked(self, found: tuple[str, Path | StoredSession]) -> _Checked:
        """Return a recording; its findings are found while they are read, unless it is in a lake."""
        title, place = found
        if isinstance(place, Path):
            return self._checked(title, place)
        from mcpspy.io.lake.fetch import copied

        with TemporaryDirectory(prefix="mcpspy-") as folder:
            checked = self._checked(title, copied(place, Path(folder)))
            checked = checked._replace(findings=[*checked.findings])
        if not checked.recording.parts[0].as_posix().startswith(folder):  # The lake has no copy.
            return checked
        return checked._replace(recording=checked.recording._replace(parts=[Path(title)]))

    def _checked(self, title: str, path: Path) -> _Checked:
        recording = Recording(path)
        server = recording.header.name or path.stem
        rules, fail_on = self._settings.of(server)
        scan = LintScan(path, rules, self._settings.hosts(server) if self._hosts is None else self._hosts)
        # Without the rules about hosts, nothing is known of them; and who did not ask for hosts gets the findings.
        is_asked = self._hosts is not None and any(rule.family == "HOST" for rule in rules)
        verdicts = scan.verdicts if is_asked else []
        linted = LintedRecording(title, scan.parts, [], server, fail_on, scan.gaps, verdicts)
        findings = _findings(scan, path, self._query, self._report)
        return _Checked(linted, {rule.code for rule in rules}, findings)


def _checked_apart(args: argparse.Namespace, found: tuple[str, Path | StoredSession]) -> _Checked:
    """Return a recording with its findings. A worker executes the files of rules itself."""
    with no_collection():
        checked = _Checker(args, user_rules(args.rules_file)).checked(found)
        return checked._replace(findings=[*checked.findings])


def _print_end(
    counts: Counter[Severity],
    linted: list[LintedRecording],
    baseline: Baseline | None,
    statistics: Counter[str] | None,
) -> None:
    output = Output()
    output.lines(statistics_lines(statistics or Counter(), RULES_BY_CODE))
    output.lines(host_lines(linted, output.width))
    output.lines(gap_lines(linted))
    output.line(*verdict(counts, len(linted), "findings" if baseline is None else "new findings"))
    for text in baseline.lines() if baseline is not None else ():
        output.line(text)


def _explain(code: str) -> int:
    rule = RULES_BY_CODE.get(code.upper())
    if rule is None:
        near = [known for known in RULES_BY_CODE if known.startswith(code.upper()[:4])]
        raise UsageError(
            sanitize(f"--explain {code}: unknown rule"),
            f"did you mean {', '.join(near[:3])}?" if near else "see docs/lint.md",
        )
    output = Output()
    output.lines(explanation(rule, output.width))
    return 0


def host_profiles(words: str | None) -> tuple[HostProfile, ...] | None:
    """Return the profiles of `--host`; None without it. Raise UsageError."""
    try:
        return chosen(words) if words is not None else None
    except ValueError as error:
        raise UsageError(
            sanitize(f"--host {error}: unknown host"), f"use {', '.join(NAMES)}, all or none"
        ) from None


def _self_test(file: str) -> int:
    rules = user_rules([file])
    output, count = Output(), 0
    for rule, example, failure in self_test(rules):
        output.line(sanitize(f"{file}: {rule.code}, {example}: {failure}"), TONES[Severity.ERROR])
        count += 1
    examples = counted(sum(len(rule.valid) + len(rule.invalid) for rule in rules), "example")
    output.line(f"{counted(len(rules), 'rule')}, {examples}: {f'{count} failed' if count else 'all passed'}")
    return FINDINGS if count else 0


def _findings(
    scan: LintScan, path: Path, query: Query | None, report: _TextReport | None
) -> Iterator[Finding]:
    """Yield the findings that match the filter; warn if the last line is incomplete."""
    with ProgressBar(path.name) as progress:
        if report is not None:
            report.progress = progress
        if query is None:
            yield from scan.findings(progress.show)
        else:
            from mcpspy.ui.model.filter_items import LintRowFilter

            with closing(LintRowFilter(path, query, progress.show)) as selection:
                for finding in scan.findings(progress.show):
                    if selection.has(finding.number):
                        yield finding
        if scan.torn:
            progress.clear()
            warn_incomplete(path, scan.torn)


def _write(
    form: str, linted: list[LintedRecording], baseline: Baseline | None, statistics: Counter[str] | None
) -> None:
    from mcpspy.ui.report.junit import lint_junit
    from mcpspy.ui.report.lint import document, github, sarif

    if form == "github":
        text = "".join(line + "\n" for recording in linted for line in github(recording))
    elif form == "junit":
        text = lint_junit(linted)
    elif form == "sarif":
        text = sarif(linted)
    else:
        text = document(linted, baseline.document() if baseline is not None else None, statistics)
    print_report(text)
    if baseline is not None and form != "json":
        sys.stderr.write("".join(f"{line}\n" for line in baseline.lines()))


class _TextReport:
    """Prints each finding at once."""

    def __init__(self, is_complete: bool, has_hints: bool) -> None:
        self._is_complete = is_complete
        self._has_hints = has_hints
        self._output = Output()
        self._shown: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self.progress: ProgressBar | None = None

    def finding(self, finding: Finding, place: str) -> None:
        """Print a finding, at most MOST per rule."""
        self._shown[finding.code] += 1
        if self._shown[finding.code] > MOST and not self._is_complete:
            self._left_out[finding.code] += 1
            return
        if self.progress is not None:
            self.progress.clear()
        self._output.lines(finding_lines(finding, place, self._output.width))
        if self._has_hints and self._shown[finding.code] == 1:
            self._output.lines(hint_lines(RULES_BY_CODE[finding.code], self._output.width))

    def end_of(self, name: str) -> None:
        self._output.lines(more_lines(self._left_out, name))
        self._shown.clear()
        self._left_out.clear()
