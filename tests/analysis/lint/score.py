"""Recall of lint in a folder of recordings: NAME.bad.jsonl has a violation, NAME.good.jsonl is the same without it.

Run as `python -m tests.analysis.lint.score FOLDER`. It exits 1 if a violation is not found, or if a rule finds anything
in a twin except that a method is deprecated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mcpspy.ui.report.lint_scan import LintScan

TRUE_OF_BOTH = {"LIFE112"}
"""Findings that are right in twins, too: sampling, roots and logging are deprecated since 2026-07-28."""


class Scored(NamedTuple):
    """A violation, with the codes that only it has, and the findings in its twin."""

    name: str
    codes: list[str]
    in_twin: list[str]


def scored(folder: Path) -> Iterator[Scored]:
    for path in sorted(folder.glob("*.bad.jsonl")):
        name = path.name.removesuffix(".bad.jsonl")
        twin = {finding.code for finding in LintScan(folder / f"{name}.good.jsonl").findings()}
        codes = {finding.code for finding in LintScan(path).findings()} - twin
        yield Scored(name, sorted(codes), sorted(twin - TRUE_OF_BOTH))


def main(folder: str) -> int:
    rows = list(scored(Path(folder)))
    for row in rows:
        print(
            f"{row.name:32} {' '.join(row.codes) or 'MISSED'}{'  twin: ' if row.in_twin else ''}{' '.join(row.in_twin)}"
        )
    found, dirty = sum(bool(row.codes) for row in rows), sum(bool(row.in_twin) for row in rows)
    print(f"{found} of {len(rows)} violations found, findings in {dirty} twins")
    return int(found < len(rows) or dirty > 0 or not rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
