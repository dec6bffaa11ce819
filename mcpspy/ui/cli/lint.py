"""`mcpspy lint`: check sessions for protocol violations."""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mcpspy.analysis.lint import Finding, Severity, selected
from mcpspy.core.query.parser import Query
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.arguments import query_of, recordings
from mcpspy.ui.cli.options import FOLDER, UNSAFE_REGEX, describe, read_unsafe_regex
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintedRecording, LintScan
from mcpspy.ui.report.lint_text import MOST, explanation, finding_lines, more_lines, verdict
from mcpspy.ui.terminal import Output, ProgressBar, warn_incomplete

EPILOG = """\
examples:
  mcpspy lint
  mcpspy lint weather.jsonl recordings/ --fail-on warning
  mcpspy lint last --select ENV,LIFE --ignore LIFE402
  mcpspy lint last -q 'tool:forecast or dir:s2c'
  mcpspy lint last --format sarif > lint.sarif
  mcpspy lint --explain LIFE302

SESSION is a file, a folder of recordings, `last`, a session name, or the beginning of a
session id (default: last). docs/lint.md describes all rules, with examples.

exit codes: 0 no findings at or above --fail-on; 1 findings; 2 usage error or not a
recording; 3 file not readable
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sessions", metavar="SESSION", nargs="*", help="sessions to check, - for stdin (default: last)"
    )
    options = {
        "--select": ("CODES", "run only these rules: ENV, LIFE3, SEC201, ALL (default: ALL); repeatable"),
        "--ignore": ("CODES", "skip these rules; the longer of two matching codes wins; repeatable"),
        "-q --filter": ("QUERY", "report only findings on matching messages, e.g. 'tool:x since:-5m'"),
        **UNSAFE_REGEX,
        "--explain": ("CODE", "print what a rule checks and why, with examples"),
    }
    describe(parser, options, repeated=("--select", "--ignore"))
    formats = ["text", "json", "sarif", "junit", "github"]
    parser.add_argument("--format", choices=formats, default="text", help="output format (default: text)")
    parser.add_argument(
        "--fail-on",
        choices=[str(severity) for severity in Severity],
        default=str(Severity.ERROR),
        help="exit 1 at or above this severity (default: error)",
    )
    describe(parser, {"--all": (None, f"text: print all findings, not only {MOST} per rule"), **FOLDER})


def main(args: argparse.Namespace) -> int:
    if args.explain is not None:
        return _explain(args.explain)
    try:
        rules = selected(args.select, args.ignore)
    except ValueError as error:
        raise UsageError(
            sanitize(f"lint: unknown rule code {error}"),
            "see docs/lint.md; use codes such as ENV, LIFE3, SEC201",
        ) from None
    fail_on = Severity(args.fail_on)
    query = query_of(args.filter, allow_unsafe=read_unsafe_regex(args))
    paths = [(title, Recording(path).path) for title, path in recordings(args.sessions, args.dir)]
    counts: Counter[Severity] = Counter()
    linted = []
    report = _TextReport(args.all) if args.format == "text" else None
    gc.disable()  # Objects are freed with their line: there are no cycles to collect.
    try:
        for title, path in paths:
            scan = LintScan(path, rules)
            findings: list[Finding] = []
            linted.append(LintedRecording(title, scan.parts, findings))
            for finding in _findings(scan, path, query, report):
                counts[finding.severity] += 1
                if report is not None:
                    report.finding(finding, linted[-1].path(finding))
                else:
                    findings.append(finding)
            if report is not None:
                report.end_of(path.as_posix())
    finally:
        gc.enable()
    if report is not None:
        report.end(counts, len(paths))
    else:
        _write(args.format, linted, fail_on)
    return FINDINGS if any(severity.rank <= fail_on.rank for severity in counts) else 0


def _explain(code: str) -> int:
    rule = RULES_BY_CODE.get(code.upper())
    if rule is None:
        near = [known for known in RULES_BY_CODE if known.startswith(code.upper()[:4])]
        raise UsageError(
            sanitize(f"--explain {code}: unknown rule"),
            f"did you mean {', '.join(near[:3])}?" if near else "see docs/lint.md",
        )
    output = Output()
    for line, tone in explanation(rule, output.width):
        output.line(line, tone)
    return 0


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
            from mcpspy.ui.report.lint_filter import LintRowFilter

            with closing(LintRowFilter(path, query, progress.show)) as selection:
                for finding in scan.findings(progress.show):
                    if selection.has(finding.number):
                        yield finding
        if scan.torn:
            progress.clear()
            warn_incomplete(path, scan.torn)


def _write(form: str, linted: list[LintedRecording], fail_on: Severity) -> None:
    from mcpspy.ui.report.junit import lint_junit
    from mcpspy.ui.report.lint_json import document, github, sarif

    if form == "github":
        text = "".join(line + "\n" for recording in linted for line in github(recording))
    elif form == "junit":
        text = lint_junit(linted, fail_on=fail_on)
    else:
        text = sarif(linted) if form == "sarif" else document(linted)
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


class _TextReport:
    """Prints each finding at once."""

    def __init__(self, is_complete: bool) -> None:
        self._is_complete = is_complete
        self._output = Output()
        self._shown: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self.progress: ProgressBar | None = None

    def finding(self, finding: Finding, path: str) -> None:
        """Print a finding, at most MOST per rule."""
        self._shown[finding.code] += 1
        if self._shown[finding.code] > MOST and not self._is_complete:
            self._left_out[finding.code] += 1
            return
        if self.progress is not None:
            self.progress.clear()
        for line, tone in finding_lines(finding, path, self._output.width):
            self._output.line(line, tone)

    def end_of(self, path: str) -> None:
        for line, tone in more_lines(self._left_out, path):
            self._output.line(line, tone)
        self._shown.clear()
        self._left_out.clear()

    def end(self, counts: Counter[Severity], recordings: int) -> None:
        self._output.line(*verdict(counts, recordings))
