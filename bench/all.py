"""Run all benchmarks of this folder: one table, a line for each figure in the history, and the tables of the page.

Owns their list and order, and the generated parts of docs/benchmarks.md: the table of a benchmark, between
`<!-- figures: NAME -->` and `<!-- end of figures -->`, and the headline figures with the list of missed targets. Each
benchmark runs in a separate process, so that none finds modules already imported; a figure that cannot be measured here
is marked, and the others are still measured.

    .venv/bin/python bench/all.py [--quick] [--check] [--page] [--history FILE] [NAME…]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

from bench.measure import Report, Row, machine  # noqa: E402 - the line above must come first.
from mcpspy import __version__  # noqa: E402

HERE = Path(__file__).resolve().parent
HISTORY = HERE / "history.jsonl"
PAGE = HERE.parent / "docs" / "benchmarks.md"
NAMES = tuple("stdio trust http scripts field mock replay redact stats catalog lint lake tui".split())

HEADLINES = (
    (
        "a round trip on stdio, redacting: added time",
        "stdio: round trip 200 B, pipes: added p50, redacting as",
        "",
    ),
    (
        "lines of 300 bytes a second on stdio",
        "stdio: throughput 300 B lines, server→client, redacting as",
        "tee",
    ),
    ("a call on stdio, beside other recorders", "field: stdio: a call, p50", ""),
    ("5,000 calls at once on stdio, beside other recorders", "field: stdio: 5,000 calls at once", ""),
    ("a call over HTTP, beside other recorders", "field: HTTP: a call, p50", ""),
    ("a call of the Python SDK's server over HTTP", "http: tools/call, JSON: p50", "direct"),
    ("a call of a fast server over HTTP: added time", "http: fast server, tools/call: added p50", "HAProxy"),
    ("an event over HTTP: added time", "http: SSE event: added p50", "direct"),
    (
        "a call over HTTP with a script: added time",
        "scripts: HTTP call with a script: added p50",
        "mitmproxy",
    ),
    ("the mock, 64 calls at once over HTTP", "mock: HTTP, Python SDK's echo: 64 at once", "Python SDK"),
    ("replay, 50 requests at once", "replay: stdio, 50 at once", ""),
    ("the terminal UI reads a whole recording", "tui: whole index, ", ""),
    ("lint of a million messages", "lint: ", ""),
    ("a question in SQL", "lake: 1,000,000 messages, mean of 10 questions: lake", ""),
    ("a lake with two processes", "lake: lake add, 1,000,000 messages: two processes", ""),
)
"""Text, beginning of the figure, and beginning of the baseline, of the rows at the top of the page."""


def main() -> int:
    """Run them and print the table; return 1 if one failed, or with --check if a bar was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a quarter of the time")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bar")
    parser.add_argument("--page", action="store_true", help="write the tables of docs/benchmarks.md too")
    parser.add_argument("--history", type=Path, default=HISTORY, help="the file to append to")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: one of {', '.join(NAMES)}")
    report = Report(f"mcpspy {__version__}, {'quick' if arguments.quick else 'full'}")
    failed = []
    for name in arguments.names or NAMES:
        load = os.getloadavg()[0]
        rows = measured(name, quick=arguments.quick)
        if rows is None:
            failed.append(name)
            continue
        report.add(*rows)
        append_history(arguments.history, rows, load, quick=arguments.quick)
        if arguments.page:
            write_page(PAGE, arguments.history)
    report.show()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed or (arguments.check and report.missed) else 0


def measured(name: str, *, quick: bool) -> list[Row] | None:
    """Return the figures of one benchmark; None if it failed, after its error was printed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as written:
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", written.name, *["--quick"] * quick]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            return None
        rows = json.loads(Path(written.name).read_text(encoding="utf-8"))["rows"]
    return [
        Row(
            **{key: value for key, value in row.items() if key != "holds"}
            | {"figure": f"{name}: {row['figure']}"}
        )
        for row in rows
    ]


def append_history(path: Path, rows: list[Row], load: float, *, quick: bool) -> None:
    """Append the figures of one benchmark, a line each, for comparison with later runs, and for the page."""
    same = {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "version": __version__,
        "machine": f"{machine()}, load {load:.1f} before",
        "quick": quick,
    }
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            figure = {"figure": row.figure, "ours": row.measured, "value": row.value, "unit": row.unit}
            rest = {"baseline": row.baseline, "most": row.most, "least": row.least, "holds": row.holds}
            file.write(json.dumps({**same, **figure, **rest}, ensure_ascii=False) + "\n")


def write_page(page: Path, history: Path) -> None:
    """Replace the tables of the page by the last run of each benchmark."""
    text, latest = page.read_text(encoding="utf-8"), last_runs(history)
    for name, (when, rows) in latest.items():
        shown = ((row.figure.removeprefix(f"{name}: "), row) for row in rows)
        text = replaced(text, name, f"{when}:\n\n{table(shown)}")
    text = replaced(text, "headlines", headlines([row for _, rows in latest.values() for row in rows]))
    page.write_text(text, encoding="utf-8")


def last_runs(history: Path) -> dict[str, tuple[str, list[Row]]]:
    """Return date, machine and rows of the last run of each benchmark. Runs without baselines are too old."""
    runs: dict[str, tuple[str, list[Row]]] = {}
    for line in history.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "baseline" not in entry:
            continue
        name = entry["figure"].split(": ")[0]
        when = f"{entry['at']} UTC, {entry['machine']}{', `--quick`' * entry['quick']}"
        if name not in runs or runs[name][0] != when:
            runs[name] = when, []
        names = ("figure", "baseline", "value", "most", "least", "unit")
        runs[name][1].append(Row(measured=entry["ours"], **{each: entry[each] for each in names}))
    return runs


def replaced(page: str, name: str, content: str) -> str:
    """Return the page with new content between the marks of a name."""
    marks = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    page, count = marks.subn(lambda found: f"{found[1]}{content}\n{found[2]}", page)
    if count != 1:
        raise ValueError(f"{PAGE.name} has {count} tables {name!r} instead of one")
    return page


def table(rows: Iterable[tuple[str, Row]]) -> str:
    """Return rows as Markdown, each with the text that names it."""
    lines = ["| figure | mcpspy | baseline | ratio or value | target | |", "|---|---|---|---|---|---|"]
    for text, row in rows:
        value, bar = map(with_sign, row.cells()[3:5])
        verdict = {True: "met", False: "**missed**", None: ""}[row.holds]
        lines.append(f"| {text} | {row.measured} | {row.baseline} | {value} | {bar} | {verdict} |")
    return "\n".join(lines)


def with_sign(cell: str) -> str:
    """Return a ratio with the sign that the page uses."""
    return cell.replace(" x", " \N{MULTIPLICATION SIGN}")


def headlines(rows: list[Row]) -> str:
    """Return the headline figures, and the targets that were missed."""
    chosen: dict[str, Row] = {}
    for text, figure, baseline in HEADLINES:
        for row in rows:
            if row.figure.startswith(figure) and row.baseline.startswith(baseline):
                chosen.setdefault(text, row)
    missed = [row for row in rows if row.holds is False]
    targets = [row for row in rows if row.holds is not None]
    named = "".join(f"\n- {row.figure}: {with_sign(row.cells()[3])} ({with_sign(row.bar)})" for row in missed)
    count = f"Of {len(targets)} targets, {len(missed)} were missed"
    return f"{table(chosen.items())}\n\n{count}{':' if missed else '.'}\n{named}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
