"""Time and memory of `mcpspy lint` for a million messages.

Owns the two bars: 60 s for a million messages of a kilobyte, and memory that
does not grow with a session ten times as long. Session alone is measured as
well, so that a slow machine affects both.

    .venv/bin/python bench/lint.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, main  # noqa: E402 - the line above must come first.
from bench.sessions import write_long  # noqa: E402

SECONDS = 60.0
"""Maximum seconds for a million messages."""

GROWTH = 1.25
"""Maximum ratio to the memory for a tenth of the session."""

WORK = {
    "lint": """
from mcpspy.ui.cli.main import main
main(["lint", path])
""",
    "the fold alone": """
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.recording.reader import Recording
recording = Recording(path)
session = StreamingSession(recording.header)
for entry in recording:
    session.add(entry)
""",
}

REPORT = """
import json, resource, sys, time
path = sys.argv[1]
begun, cpu = time.perf_counter(), time.process_time()
{work}
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([time.perf_counter() - begun, time.process_time() - cpu, used / 1024]), file=sys.stderr)
"""


def measured(work: str, path: Path) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and peak megabytes of a separate process."""
    command = [sys.executable, "-c", REPORT.format(work=WORK[work]), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, cpu, memory = json.loads(done.stderr.splitlines()[-1])
    return wall, cpu, memory


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    messages: int


def pass_over(report: Report, size: Size) -> None:
    """Lint a long session; compare with Session alone, and with a tenth of it."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        long, short = Path(folder) / "long.jsonl", Path(folder) / "short.jsonl"
        write_long(long, size.messages)
        write_long(short, size.messages // 10)
        wall, cpu, memory = measured("lint", long)
        _, fold, _ = measured("the fold alone", long)
        _, _, least = measured("lint", short)
    what = f"{size.messages:,} messages"
    for_a_million = wall * 1_000_000 / size.messages
    report.add(
        Row(
            f"{what}: lint",
            f"{wall:.1f} s, {cpu:.1f} s CPU",
            "",
            for_a_million,
            most=SECONDS,
            unit="s/million",
        ),
        Row(f"{what}: CPU beside the fold alone", f"{cpu:.1f} s", f"{fold:.1f} s", cpu / fold),
        Row(
            f"{what}: memory",
            f"{memory:.0f} MB",
            f"a tenth of it {least:.0f} MB",
            memory / least,
            most=GROWTH,
        ),
    )


if __name__ == "__main__":
    sys.exit(
        main(
            "lint",
            "Time and memory of `mcpspy lint` for a million messages.",
            full=Size(1_000_000),
            quick=Size(100_000),
            figures={"pass": pass_over},
            lacks=None,
        )
    )
