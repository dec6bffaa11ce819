"""Lint findings as text: one line per finding, and the excerpt below it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping

from mcpspy.analysis import rows
from mcpspy.analysis.lint import Finding, LintRule, Severity
from mcpspy.core.counted import counted
from mcpspy.ui.report.lint_scan import visible

TONES = {Severity.ERROR: rows.BAD, Severity.WARNING: rows.OPEN, Severity.INFO: rows.QUIET}

MOST = 10
"""Maximum number of findings of one rule that are shown per recording, unless all are requested."""

Toned = tuple[str, str | None]


def brief(finding: Finding) -> Toned:
    return f"{finding.code} {finding.severity}: {visible(finding.message)}", TONES[finding.severity]


def finding_lines(finding: Finding, path: str, width: int = 0) -> Iterator[Toned]:
    """Yield the lines of one finding with their tones; `width` 0 for lines of any length."""
    text, tone = brief(finding)
    for line in _wrapped(f"{visible(path)}:{finding.place.line} {text}", width):
        yield line, tone
    if finding.excerpt:
        yield f"    | {visible(finding.excerpt)}", rows.QUIET


def hint_lines(rule: LintRule, width: int = 0) -> Iterator[Toned]:
    """Yield the explanation of a rule, to be printed below a finding."""
    for line in _wrapped(f"    = {' '.join(rule.explanation.split())}", width or 100):
        yield line, None


def more_lines(left_out: Counter[str], path: str) -> Iterator[Toned]:
    for code, count in left_out.items():
        yield f"{visible(path)} {code} … and {count} more; --all shows them", rows.QUIET


def verdict(counts: Counter[Severity], recordings: int, what: str = "findings") -> Toned:
    where = counted(recordings, "recording")
    if not counts.total():
        return f"no {what} in {where}", rows.OK
    parts = [
        f"{counts[each]} info" if each is Severity.INFO else counted(counts[each], str(each))
        for each in Severity
        if counts[each]
    ]
    return f"{', '.join(parts)} in {where}", TONES[min(counts, key=lambda severity: severity.rank)]


def statistics_lines(codes: Counter[str], rules: Mapping[str, LintRule]) -> Iterator[Toned]:
    """Yield one line per rule with its number of findings, the most frequent first."""
    width = len(str(max(codes.values(), default=0)))
    for code, count in codes.most_common():
        rule = rules[code]
        yield f"{count:>{width}}  {code:<7}  {rule.severity:<7}  {rule.summary}", TONES[rule.severity]


def explanation(rule: LintRule, width: int = 0) -> Iterator[Toned]:
    yield f"{rule.code} ({rule.severity}): {rule.summary}", TONES[rule.severity]
    yield "", None
    for line in _wrapped(" ".join(rule.explanation.split()), width or 100, indent=""):
        yield line, None
    yield "", None
    yield f"revisions: {rule.revisions}", None
    yield f"specification: {rule.url}", None
    for title, examples in (("wrong", rule.invalid), ("right", rule.valid)):
        yield "", None
        yield f"{title}:", None
        for number, example in enumerate(examples):
            if number:
                yield "", None
            for line in example.strip().splitlines():
                yield f"  {visible(line.strip())}", rows.QUIET


def _wrapped(text: str, width: int, indent: str = "      ") -> list[str]:
    if not width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
