"""Lint findings as text, JSON, SARIF 2.1.0 and GitHub commands; trust as SARIF; the baseline.

The sections of SARIF 2.1.0 (OASIS) are those from 3.13. A baseline is a file of known findings, which do not count:
JSON with one finding per line, sorted, so that version control shows what changed.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcpspy import __version__
from mcpspy.analysis import rows
from mcpspy.analysis.lint import Finding, LintRule, Severity
from mcpspy.analysis.lint.host_verdicts import worst
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintedRecording, visible

if TYPE_CHECKING:
    from mcpspy.analysis.diff import SessionDiff

TONES = {Severity.ERROR: rows.BAD, Severity.WARNING: rows.OPEN, Severity.INFO: rows.QUIET}

MOST = 10
"""Maximum number of findings of one rule that are shown per recording, unless all are requested."""

Toned = tuple[str, str | None]


def brief(finding: Finding) -> Toned:
    return f"{finding.code} {finding.severity}: {visible(finding.message)}", TONES[finding.severity]


def finding_lines(finding: Finding, place: str, width: int = 0) -> Iterator[Toned]:
    """Yield the lines of one finding with their tones; `width` 0 for lines of any length."""
    text, tone = brief(finding)
    for line in _wrapped(f"{visible(place)} {text}", width):
        yield line, tone
    if finding.excerpt:
        yield f"    | {visible(finding.excerpt)}", rows.QUIET


def hint_lines(rule: LintRule, width: int = 0) -> Iterator[Toned]:
    """Yield the explanation of a rule, to be printed below a finding."""
    for line in _wrapped(f"    = {' '.join(rule.explanation.split())}", width or 100):
        yield line, None


def more_lines(left_out: Counter[str], name: str) -> Iterator[Toned]:
    for code, count in left_out.items():
        yield f"{visible(name)} {code} … and {count} more; --all shows them", rows.QUIET


def gap_lines(linted: Sequence[LintedRecording]) -> Iterator[Toned]:
    """Yield a line for each thing that a recording lacks."""
    for recording in linted:
        for gap in recording.gaps:
            yield f"{visible(recording.name)}: incomplete: {visible(gap.text)}", rows.OPEN


def host_lines(linted: Sequence[LintedRecording], width: int = 0) -> Iterator[Toned]:
    """Yield a line for each host: the worst verdict on any of the recordings, with its reason and source."""
    verdicts = worst(each for recording in linted for each in recording.verdicts)
    longest = max((len(each.host) for each in verdicts), default=0)
    for each in verdicts:
        text = f"{each.host:<{longest}}  {each.verdict:<8}  {each.reason} ({each.source})"
        for line in _wrapped(visible(text), width):
            yield line, _HOST_TONES[each.verdict]


_HOST_TONES = {"works": rows.OK, "degraded": rows.OPEN, "blocked": rows.BAD, "unknown": rows.QUIET}


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


def document(
    linted: Sequence[LintedRecording],
    baseline: dict[str, Any] | None = None,
    statistics: Counter[str] | None = None,
) -> str:
    """Return the report; `statistics`, the number of findings by code, replaces the findings."""
    counts = Counter(finding.severity for recording in linted for finding in recording.findings)
    report: dict[str, Any] = {
        "recordings": [recording.title for recording in linted],
        "counts": {str(severity): counts[severity] for severity in Severity},
        "findings": [_finding(recording, finding) for recording in linted for finding in recording.findings],
    }
    if hosts := worst(each for recording in linted for each in recording.verdicts):
        report["hosts"] = [{**each._asdict(), "verdict": str(each.verdict)} for each in hosts]
    report["incomplete"] = [
        {"recording": recording.title, "why": visible(gap.text)}
        for recording in linted
        for gap in recording.gaps
    ]
    if statistics is not None:
        del report["findings"]
        report["statistics"] = dict(statistics.most_common())
    if baseline is not None:
        report["baseline"] = baseline
    return json.dumps(report, indent=2) + "\n"


def _finding(recording: LintedRecording, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "recording": recording.title,
        "path": recording.path(finding),
        "line": finding.place.line,
        "n": finding.number,
        "t": finding.at,
        "from": finding.side or None,
        "excerpt": finding.excerpt,
        "url": RULES_BY_CODE[finding.code].url,
        "hint": " ".join(RULES_BY_CODE[finding.code].explanation.split()),
        "fingerprint": finding.fingerprint(recording.server),
    }


COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

_VALUE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(recording: LintedRecording) -> Iterator[str]:
    for finding in recording.findings:
        path = recording.path(finding).translate(_PROPERTY)
        title = f"{finding.code} {RULES_BY_CODE[finding.code].summary}".translate(_PROPERTY)
        text = visible(finding.message) + (f"\n{visible(finding.excerpt)}" if finding.excerpt else "")
        where = f"file={path},line={max(finding.place.line, 1)}"
        yield f"::{COMMANDS[finding.severity]} {where},title={title}::{text.translate(_VALUE)}"
    for gap in recording.gaps:
        file = recording.parts[0].as_posix().translate(_PROPERTY)
        yield f"::warning file={file},title=incomplete::{visible(gap.text).translate(_VALUE)}"


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(linted: Sequence[LintedRecording]) -> str:
    """Return the log, with a line ending: one run, with the rules that have findings."""
    codes = sorted({finding.code for recording in linted for finding in recording.findings})
    rules = [_rule(RULES_BY_CODE[code]) for code in codes]
    results = [
        _result(recording, finding, codes.index(finding.code))
        for recording in linted
        for finding in recording.findings
    ]
    return _log(
        rules, results, [f"{each.title}: incomplete: {gap.text}" for each in linted for gap in each.gaps]
    )


def _rule(rule: LintRule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.explanation},
        "helpUri": rule.url,
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(recording: LintedRecording, finding: Finding, index: int) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(finding.place.line, 1)}
    if finding.excerpt:
        region["snippet"] = {"text": visible(finding.excerpt)}
    file = {"uri": _uri(recording.path(finding))}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": visible(finding.message)},
        "locations": [{"physicalLocation": {"artifactLocation": file, "region": region}}],
        "partialFingerprints": {"mcpspyFinding/v1": finding.fingerprint(recording.server)},
    }


def _uri(path: str) -> str:
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)


CHANGE_LEVELS = {"breaking": "error", "different": "warning", "note": "note"}
"""Severity of a change → its level."""


def trust_sarif(difference: SessionDiff, programs: Sequence[str], file: str, gaps: Sequence[str] = ()) -> str:
    """Return the log, with a line ending: one result per change and per line of `programs`, at the lockfile."""
    from mcpspy.ui.report.diff import change_heading  # Few reports are about trust.

    found = [
        ("trust", CHANGE_LEVELS[change.severity], f"{case.method}: {change_heading(change)}")
        for case, change in difference.changes
    ]
    found += [("program", "note", visible(line)) for line in programs]
    place = {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}}
    results = [
        {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [place]}
        for rule, level, text in found
    ]
    rules = [
        {"id": "trust", "shortDescription": {"text": "the server differs from the lockfile"}},
        {"id": "program", "shortDescription": {"text": "the server's package or files have changed"}},
    ]
    return _log(rules, results, gaps)


def _log(rules: list[dict[str, Any]], results: list[dict[str, Any]], gaps: Sequence[str] = ()) -> str:
    """Return the log; `gaps` are notifications of the invocation (3.20.21)."""
    tool = {"driver": {"name": "mcpspy", "version": __version__, "rules": rules}}
    run = {"tool": tool, "columnKind": "unicodeCodePoints", "results": results}
    if gaps:
        notes = [{"level": "warning", "message": {"text": visible(gap)}} for gap in gaps]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


Entry = dict[str, str]

MEMBERS = ("server", "code", "about", "message", "fingerprint")


class Baseline:
    def __init__(self, file: str, *, is_updated: bool) -> None:
        """Read the file, which need not exist if it is updated. Raises UsageError or CannotStart."""
        self._path = Path(file)
        self._is_updated = is_updated
        self._old: dict[str, Entry] = {}
        self._seen: dict[str, Entry] = {}
        self.known = 0
        """Number of known findings in the recordings."""
        self._gone: list[Entry] = []
        try:
            self._old = {entry["fingerprint"]: entry for entry in _entries(self._path.read_bytes())}
        except FileNotFoundError:
            if not is_updated:
                raise UsageError(
                    f"--baseline {sanitize(file)}: no such file", "add --update-baseline"
                ) from None
        except OSError as error:
            raise CannotStart(f"--baseline {sanitize(file)}: {error.strerror}", "check the path") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            hint = "move it away, and write a new one with --update-baseline"
            raise UsageError(f"--baseline {sanitize(file)}: not a baseline of mcpspy lint", hint) from None

    def has(self, finding: Finding, server: str) -> bool:
        """Return whether the finding is known, as all are if the baseline is updated; remember that it occurs."""
        fingerprint = finding.fingerprint(server)
        values = (server, finding.code, visible(finding.about), visible(finding.message), fingerprint)
        entry = self._old.get(fingerprint) or dict(zip(MEMBERS, values, strict=True))
        self._seen.setdefault(fingerprint, entry)
        is_known = self._is_updated or fingerprint in self._old
        self.known += is_known
        return is_known

    def end(self, checked: Mapping[str, Collection[str]]) -> None:
        """Compare the entries of the servers and rules that were checked, codes by server; write an updated file."""
        unseen = [entry for entry in self._old.values() if entry["fingerprint"] not in self._seen]
        self._gone = [entry for entry in unseen if entry["code"] in checked.get(entry["server"], ())]
        if self._is_updated:
            rest = [entry for entry in unseen if entry not in self._gone]
            entries = sorted(
                [*self._seen.values(), *rest], key=lambda entry: [entry[name] for name in MEMBERS]
            )
            lines = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
            save(
                self._path,
                [f'{{\n  "mcpspy-lint-baseline": 1,\n  "findings": [\n{lines}\n  ]\n}}\n'],
                force=True,
            )

    def document(self) -> dict[str, Any]:
        return {"path": self._path.as_posix(), "known": self.known, "gone": self._gone}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report as text."""
        name, gone = visible(self._path.as_posix()), len(self._gone)
        entries = f"{gone} {'entry' if gone == 1 else 'entries'}"
        if self._is_updated:
            new = len(self._seen.keys() - self._old.keys())
            yield f"{name}: {counted(len(self._seen), 'finding')} written ({new} new), {entries} removed"
            return
        yield f"{name}: {counted(self.known, 'known finding')} not shown"
        if gone:
            yield f"{name}: {entries} no longer found (--update-baseline removes them)"
        for entry in self._gone:
            yield "    " + " ".join(visible(entry[name]) for name in MEMBERS[:4])


def _entries(data: bytes) -> list[Entry]:
    """Return the entries of a file; raise ValueError, KeyError or TypeError if it is not a baseline."""
    document = json.loads(data)
    if document["mcpspy-lint-baseline"] != 1:
        raise ValueError
    return [{name: str(entry[name]) for name in MEMBERS} for entry in document["findings"]]
