"""Findings as workflow commands: GitHub shows each at its file and line.

Source: GitHub Actions, workflow commands (`error`, `warning`, `notice`). A value
escapes %, CR and LF, a property : and , too.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint import Finding, Severity
from mcpspy.ui.lint.linted import RULES_BY_CODE, Linted, visible

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

_VALUE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(recording: Linted) -> Iterator[str]:
    for finding in recording.findings:
        yield _command(recording, finding)


def _command(recording: Linted, finding: Finding) -> str:
    path = recording.path(finding).translate(_PROPERTY)
    title = f"{finding.code} {RULES_BY_CODE[finding.code].summary}".translate(_PROPERTY)
    text = visible(finding.message) + (f"\n{visible(finding.excerpt)}" if finding.excerpt else "")
    where = f"file={path},line={max(finding.place.line, 1)}"
    return f"::{COMMANDS[finding.severity]} {where},title={title}::{text.translate(_VALUE)}"
