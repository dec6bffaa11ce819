"""Run all benchmarks of this folder: one table, and a line for each figure in the history.

Owns their list and order. Each runs in a separate process, so that no benchmark finds modules already
imported; a figure that cannot be measured here is marked, and the others are still measured.

    .venv/bin/python bench/all.py [--quick] [--check] [--history FILE] [NAME…]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, machine  # noqa: E402 - the line above must come first.
from mcpspy import __version__  # noqa: E402

HERE = Path(__file__).resolve().parent
HISTORY = HERE / "history.jsonl"
NAMES = tuple("stdio trust http scripts field mock replay redact stats catalog lint lake tui".split())


def main() -> int:
    """Run them and print the table; return 1 if one failed, or with --check if a bar was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a quarter of the time")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bar")
    parser.add_argument("--history", type=Path, default=HISTORY, help="the file to append to")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: one of {', '.join(NAMES)}")
    report = Report(f"mcpspy {__version__}, {'quick' if arguments.quick else 'full'}")
    failed = []
    for name in arguments.names or NAMES:
        rows = measured(name, quick=arguments.quick)
        if rows is None:
            failed.append(name)
        else:
            report.add(*rows)
    report.show()
    append_history(arguments.history, report, quick=arguments.quick)
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


def append_history(path: Path, report: Report, *, quick: bool) -> None:
    """Append the figures, one line each, for comparison with later runs."""
    same = {
        "at": datetime.now(UTC).strftime("%Y-%m-%d"),
        "version": __version__,
        "machine": machine(),
        "quick": quick,
    }
    with path.open("a", encoding="utf-8") as file:
        for row in report.rows:
            figure = {"figure": row.figure, "ours": row.measured, "value": row.value, "unit": row.unit}
            file.write(json.dumps({**same, **figure, "holds": row.holds}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
