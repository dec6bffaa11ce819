"""Latency of `mcpspy tui`: the real program in a pty, with a million messages.

Owns the figures of the screen and their bars. Textual marks the end of a frame;
a frame counts only if it shows the expected content.

    .venv/bin/python bench/tui.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import gc
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench import sessions  # noqa: E402 - the line above must come first.
from bench.measure import Report, Row, alternate, low, main  # noqa: E402
from bench.terminal import Screen, Terminal, running  # noqa: E402

HERE = Path(__file__).resolve().parent
CHUNK = 1 << 20
DEBOUNCE = 0.1
"""Delay of the filter after a key, in seconds: not counted, as no work is done."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    messages: int
    rounds: int
    presses: int
    seconds: float
    """Seconds to watch a live session, or an idle screen."""


FULL = Size(1_000_000, 4, 20, 8)
QUICK = Size(100_000, 3, 20, 4)

RATE = 1000
"""Messages per second of the live session."""

_POSITION = re.compile(r"([\d,]+)/([\d,]+)")
_CALL = re.compile(r"(\d+\.\d{3}) → tools/call")


def status(screen: Screen) -> str:
    """Return the status line, above the key bindings."""
    return screen.line(-2)


def position(screen: Screen) -> tuple[int, int]:
    """Return the row of the cursor and the number of rows from the status line; zeros if they are not there."""
    found = _POSITION.search(status(screen))
    return (int(found[1].replace(",", "")), int(found[2].replace(",", ""))) if found else (0, 0)


def listed(screen: Screen) -> list[str]:
    """Return the list with the mark of its cursor, without the detail pane."""
    return [screen.line(y)[:90] for y in range(1, 42)]


def has_frame(screen: Screen) -> bool:
    """Return True if the screen is not empty."""
    return bool(screen.text().strip())


def has_rows(screen: Screen) -> bool:
    """Return True if a message is listed."""
    return "initialize" in screen.text()


def is_read(screen: Screen) -> bool:
    """Return True if the whole file is in the index, and all rows are in the list."""
    return "ended:" in status(screen) and "ended exit 0" in screen.line(0) and position(screen)[1] > 0


def long_session(folder: Path, size: Size) -> Path:
    """Return the long recording, which is written once."""
    path = folder / "long.jsonl"
    if not path.exists():
        sessions.write_long(path, size.messages)
        print(f"  {path.stat().st_size / 1e6:.0f} MB written", file=sys.stderr)
    return path


@contextmanager
def opened(path: Path) -> Iterator[Terminal]:
    """Run the screen with a recording, and wait until it is read."""
    with running("tui", str(path)) as terminal:
        terminal.until(is_read, "the whole session", seconds=120)
        terminal.rest(1)
        yield terminal


def formatted(samples: list[float], unit: str = "s") -> str:
    """Return the better quartile and the median."""
    factor, form = (1000, "{:.0f}") if unit == "ms" else (1, "{:.2f}")
    best, median = (form.format(factor * value) for value in (low(samples), percentile(samples, 50)))
    return f"{best} {unit} (median {median})"


def percentile(samples: list[float], share: int) -> float:
    """Return a percentile of the samples."""
    return sorted(samples)[min(len(samples) * share // 100, len(samples) - 1)]


def start(folder: Path, report: Report, size: Size) -> None:
    """Figure 1: from the command to the first frame, and to the first rows."""
    empty, long = folder / "empty.jsonl", long_session(folder, size)
    sessions.write_empty(empty)

    def paint(path: Path) -> tuple[float, float, float]:
        with running("tui", "--no-cache", str(path)) as terminal:
            first_frame = terminal.until(has_frame, "a frame") - terminal.started_at
            rows = terminal.until(has_rows, "a row") - terminal.started_at
            return first_frame, rows, terminal.cpu()

    def textual() -> tuple[float, float, float]:
        started_at = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import textual.app, textual.widgets"], check=True)
        return (time.perf_counter() - started_at,) * 3

    subjects: dict[str, Callable[[], tuple[float, ...]]] = {
        "empty": partial(paint, empty),
        "long": partial(paint, long),
        "textual": textual,
    }
    found = alternate(subjects, size.rounds * 2)
    base_frame = low([first_frame for first_frame, _, _ in found["empty"]])
    base = low([seconds for seconds, _, _ in found["textual"]])
    for name in ("empty", "long"):
        first_frame = [first_frame for first_frame, _, _ in found[name]]
        cpu = low([cpu for _, _, cpu in found[name]])
        report.add(
            Row(
                f"start to first frame, {name} session",
                f"{formatted(first_frame)}, CPU {cpu:.2f} s",
                f"importing textual {base:.2f} s: {low(first_frame) / base:.2f} times that",
                low(first_frame),
                most=0.7,
                unit="s",
            )
        )
    rows = [rows for _, rows, _ in found["long"]]
    report.add(
        Row(
            "first rows of the long session",
            formatted(rows),
            f"first frame of the empty one {base_frame:.2f} s",
            low(rows) - base_frame,
            most=0.5,
            unit="s more",
        )
    )


def index(folder: Path, report: Report, size: Size) -> None:
    """Figure 2: reading the whole file, and keys meanwhile."""
    path = long_session(folder, size)
    per = size.messages / 1e6

    def read() -> tuple[float, float, float]:
        with running("tui", "--no-cache", str(path)) as terminal:
            started_at, before = terminal.until(has_rows, "a row"), terminal.cpu()
            terminal.until(lambda screen: " %" in status(screen), "how far it has come")
            seconds = terminal.until(is_read, "the whole session", seconds=120) - started_at
            return seconds / per, (terminal.cpu() - before) / per, terminal.resident()

    subjects: dict[str, Callable[[], tuple[float, ...]]] = {"mcpspy": read, "base": partial(_split, path)}
    found = alternate(subjects, max(size.rounds // 2, 1))
    wall, cpu, resident = (list(column) for column in zip(*found["mcpspy"], strict=True))
    split, parsed = (low([seconds[at] for seconds in found["base"]]) for at in (0, 1))
    shown = f"{formatted(wall)}, CPU {low(cpu):.1f} s"
    figure = "whole index, a million messages"
    report.add(
        Row(figure, shown, f"reading and splitting {split:.2f} s", low(wall), most=4, unit="s"),
        Row(f"{figure}: CPU", f"{low(cpu):.1f} s", f"reading and splitting {split:.2f} s", low(cpu) / split),
        Row(
            f"{figure}: CPU",
            f"{low(cpu):.1f} s",
            f"json.loads of each line {parsed:.1f} s",
            low(cpu) / parsed,
        ),
        Row("resident memory after it", f"{low(resident):.0f} MB", "", low(resident), most=300, unit="MB"),
    )
    _again(path, report, size)
    with running("tui", "--no-cache", str(path)) as terminal:
        terminal.until(has_rows, "a row")
        started_at = time.perf_counter()
        times = []
        while not is_read(terminal.screen):
            rows = listed(terminal.screen)
            times.append(terminal.press("down", lambda screen: listed(screen) != rows))  # noqa: B023
            terminal.rest(0.1)
        seconds = (time.perf_counter() - started_at) / per
    report.add(
        Row(
            "key to frame while it is read, ten a second",
            f"p50 {percentile(times, 50) * 1e3:.0f} ms, p95 {percentile(times, 95) * 1e3:.0f} ms",
            f"a million are read in {seconds:.1f} s then",
            None,
        )
    )


def _again(path: Path, report: Report, size: Size) -> None:
    """Measure the index from its cache: how much later than a first frame without it all rows are listed."""
    caches = partial(path.parent.glob, ".mcpspy-index-*.bin")
    with running("tui", str(path)) as terminal:
        terminal.until(is_read, "the whole session", seconds=120)
        until = time.perf_counter() + 30
        while not any(caches()) and time.perf_counter() < until:
            terminal.rest(0.2)

    def reach(condition: Callable[[Screen], bool], *options: str) -> tuple[float]:
        with running("tui", *options, str(path)) as terminal:
            return (terminal.until(condition, "the session") - terminal.started_at,)

    subjects: dict[str, Callable[[], tuple[float, ...]]] = {
        "again": partial(reach, is_read),
        "frame": partial(reach, has_frame, "--no-cache"),
    }
    found = alternate(subjects, size.rounds)
    again, frame = ([seconds for (seconds,) in found[name]] for name in ("again", "frame"))
    bytes_kept = sum(cache.stat().st_size for cache in caches())
    report.add(
        Row(
            f"whole index again, {size.messages:,} messages",
            f"{formatted(again)} from the command on, with a cache of {bytes_kept / 1e6:.0f} MB",
            f"first frame without it {low(frame):.2f} s",
            low(again) - low(frame),
            most=0.3,
            unit="s more",
        )
    )


def _split(path: Path) -> tuple[float, float]:
    """Return the CPU seconds for reading and splitting a million lines, and for parsing them, in plain Python."""
    started_at = time.process_time()
    count, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            count += len(lines)
    split = (time.process_time() - started_at) / count
    with path.open("rb") as file:
        some = list(islice(file, 50_000))
    gc.disable()
    started_at = time.process_time()
    for line in some:
        json.loads(line)
    parsed = (time.process_time() - started_at) / len(some)
    gc.enable()
    return split * 1e6, (split + parsed) * 1e6


def keys(folder: Path, report: Report, size: Size) -> None:
    """Figure 3: time from a key to the end of the frame that shows it; and the CPU of an idle screen."""
    with opened(long_session(folder, size)) as terminal:
        before, started_at = terminal.cpu(), time.perf_counter()
        terminal.rest(size.seconds)
        idle = (terminal.cpu() - before) / (time.perf_counter() - started_at) * 100
        last = position(terminal.screen)[1]
        for name, prepare, pressed in (
            ("down, near the start", "home", ("down",)),
            ("pagedown", "home", ("pagedown",)),
            ("up, near the end", "end", ("up",)),
            ("pageup", "end", ("pageup",)),
            ("end, home", "home", ("end", "home")),
            ("next error", "home", ("e",)),
        ):
            _go(terminal, 1 if prepare == "home" else last, prepare)
            blocks = [_block(terminal, pressed, size.presses) for _ in range(3)]
            _keyed(report, f"key to frame: {name}", blocks)
        _go(terminal, 1, "home")
        blocks = [_block(terminal, ("down",), size.presses, every=1 / 30) for _ in range(3)]
        _keyed(report, "key to frame: down, held (30/s)", blocks)
    report.add(Row("CPU while nothing happens", f"{idle:.2f} % of a core", "", idle, most=1, unit="%"))


def _go(terminal: Terminal, row: int, key: str) -> None:
    if position(terminal.screen)[0] != row:
        terminal.press(key, lambda screen: position(screen)[0] == row)
    terminal.rest(0.5)


def _block(
    terminal: Terminal, pressed: tuple[str, ...], count: int, *, every: float = 0.0
) -> tuple[float, float, float]:
    """Press keys; return p50 and p95 of the seconds until each is shown, and the CPU seconds of one."""
    times = []
    before = terminal.cpu()
    for number in range(count):
        shown = listed(terminal.screen)
        started_at = time.perf_counter()
        key = pressed[number % len(pressed)]
        times.append(terminal.press(key, lambda screen: listed(screen) != shown))  # noqa: B023
        terminal.rest(max(started_at + every - time.perf_counter(), 0) if every else 0.15)
    return percentile(times, 50), percentile(times, 95), (terminal.cpu() - before) / count


def _keyed(report: Report, figure: str, blocks: list[tuple[float, float, float]]) -> None:
    p50, p95, cpu = (low(list(column)) * 1e3 for column in zip(*blocks, strict=True))
    median = percentile([block[1] for block in blocks], 50) * 1e3
    shown = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms (median {median:.1f})"
    report.add(Row(figure, shown, f"CPU {cpu:.1f} ms, the message beside it too", p95, most=30, unit="ms"))


def filters(folder: Path, report: Report, size: Size) -> None:
    """Figure 4: typing a filter."""
    ids = 2 + (size.messages - 5) // 8 * 4
    with opened(long_session(folder, size)) as terminal:
        for text, count in (
            ("status:toolerr", len(range(750, ids, 1000))),
            ("tool:tool_7", None),
            ("size>10kb", None),
            ("latency>4ms -tool_1", None),
            (f'text:"{sessions.NEEDLE}"', len(range(250, ids, 1000))),
        ):
            found = [_filter(terminal, text, count) for _ in range(max(size.rounds // 2, 1))]
            first, all_of_them, cpu = (list(column) for column in zip(*found, strict=True))
            reads = text.startswith("text:")
            name = f"`{text}`, {size.messages:,} messages"
            report.add(
                Row(f"{name}: first matches", formatted(first, "ms"), "", low(first), most=0.2, unit="s"),
                Row(
                    f"{name}: all of them",
                    formatted(all_of_them),
                    f"CPU {low(cpu):.2f} s",
                    low(all_of_them),
                    most=None if reads else 3 * size.messages / 1e6,
                    unit="s",
                ),
            )


def _filter(terminal: Terminal, text: str, count: int | None) -> tuple[float, float, float]:
    """Type a filter; return the seconds to the first rows and to all, and the CPU seconds; then remove it."""
    if position(terminal.screen)[0] != 1:
        terminal.press("home", lambda screen: position(screen)[0] == 1)
    terminal.press("/", lambda screen: screen.line(-3).startswith(" /"))
    terminal.write(b"\x15")  # The previous filter is there again.
    terminal.rest(0.5)
    before = terminal.cpu()
    for character in text:
        terminal.write(character.encode())
        typed = time.perf_counter()
        terminal.rest(0.02)
    # `3/57 matches so far` while the filter continues, `3/1,000 matches in 500,000 rows` at the end.
    first = terminal.until(lambda screen: "matches" in status(screen), f"matches of {text}")
    last = terminal.until(
        lambda screen: "matches in" in status(screen), f"all matches of {text}", seconds=120
    )
    cpu = terminal.cpu() - before
    found = position(terminal.screen)[1]
    if count is not None and found != count:
        raise RuntimeError(f"{text} found {found:,}, not {count:,}")
    terminal.press(
        "escape", lambda screen: "rows" not in status(screen) and position(screen)[1] > found, seconds=60
    )
    terminal.rest(1.5)
    return first - typed - DEBOUNCE, last - typed - DEBOUNCE, cpu


def live(folder: Path, report: Report, size: Size) -> None:
    """Figure 5: a session that grows by a thousand messages per second."""
    path = folder / "live.jsonl"
    path.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / "sessions.py"), str(path), str(RATE)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        epoch = float(writer.stdout.readline())
        while not path.exists() or path.stat().st_size < 1_000_000:
            time.sleep(0.05)
        with running("tui", str(path)) as terminal:
            terminal.until(lambda screen: "following" in status(screen), "the end of the session")
            terminal.rest(2)
            share, lags = _watch(terminal, size.seconds, epoch)
            terminal.press("up", lambda screen: "paused" in status(screen))
            terminal.rest(1)
            paused, _ = _watch(terminal, size.seconds, epoch)
            came = position(terminal.screen)[1]
    finally:
        writer.kill()
        writer.communicate()
    worst = max(lags)
    report.add(
        Row(
            f"{RATE:,} messages/s, following: CPU",
            f"{share * 100:.0f} % of a core",
            f"{len(lags) / size.seconds:.0f} frames/s",
            share * 100,
            most=35,
            unit="%",
        ),
        Row(
            f"{RATE:,} messages/s, following: written to shown",
            f"p50 {percentile(lags, 50) * 1e3:.0f} ms, worst {worst * 1e3:.0f} ms",
            "",
            worst,
            most=0.3,
            unit="s",
        ),
        Row(
            f"{RATE:,} messages/s, paused: CPU",
            f"{paused * 100:.0f} % of a core",
            f"{came:,} rows then",
            None,
        ),
    )


def _watch(terminal: Terminal, seconds: float, epoch: float) -> tuple[float, list[float]]:
    """Return the CPU seconds per second, and for each frame with new rows the age of the oldest one."""
    before, started_at = terminal.cpu(), time.perf_counter()
    lags: list[float] = []
    newest = 0.0
    while (now := time.perf_counter()) < started_at + seconds:
        if not terminal.read(started_at + seconds - now):
            continue
        at = time.monotonic() - (time.perf_counter() - terminal.frame_at) - epoch
        shown = max(map(float, _CALL.findall(terminal.screen.text())), default=0.0)
        if newest and shown > newest:
            # The call after the newest one so far was written right after it, and is shown only now.
            lags.append(at - newest)
        newest = max(newest, shown)
    return (terminal.cpu() - before) / (time.perf_counter() - started_at), lags


def huge(folder: Path, report: Report, size: Size) -> None:
    """Figure 6: a message of 20 MB under the cursor."""
    for name, nested, shows in (("many members", True, '"files"'), ("one text", False, '"type": "text"')):
        path = folder / f"huge-{nested}.jsonl"
        sessions.write_huge(path, 20_000_000, nested=nested)
        found = [_open_huge(path, shows) for _ in range(size.rounds)]
        opened_in, to_end, cpu, resident = (list(column) for column in zip(*found, strict=True))
        report.add(
            Row(
                f"a message of 20 MB, {name}: shown",
                f"{formatted(opened_in, 'ms')}, CPU {low(cpu) * 1e3:.0f} ms",
                f"resident {low(resident):.0f} MB",
                low(opened_in),
                most=1,
                unit="s",
            ),
            Row(f"a message of 20 MB, {name}: its end", formatted(to_end, "ms"), "", None),
        )


def _open_huge(path: Path, shows: str) -> tuple[float, float, float, float]:
    with opened(path) as terminal:
        for row in (2, 3):
            terminal.press("down", lambda screen: position(screen)[0] == row)  # noqa: B023
        terminal.rest(0.5)
        before = terminal.cpu()
        shown = terminal.press("down", lambda screen: shows in screen.text())
        cpu = terminal.cpu() - before
        terminal.rest(1)
        keys = terminal.screen.line(-1)
        terminal.press("\t", lambda screen: screen.line(-1) != keys)
        terminal.rest(0.5)
        text = terminal.screen.text()
        to_end = terminal.press("end", lambda screen: screen.text() != text and shows not in screen.text())
        return shown, to_end, cpu, terminal.resident()


FIGURES: dict[str, Callable[[Path, Report, Size], None]] = {
    "start": start,
    "index": index,
    "keys": keys,
    "filter": filters,
    "live": live,
    "huge": huge,
}


if __name__ == "__main__":
    lacks = None if Path("/proc/self/schedstat").exists() else "this needs Linux: ptys and /proc"
    about = "Latency of `mcpspy tui`, with a million messages."
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Remove the gigabyte of recordings.
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as made:
        figures = {name: partial(figure, Path(made)) for name, figure in FIGURES.items()}
        code = main("mcpspy tui", about, full=FULL, quick=QUICK, figures=figures, lacks=lacks)
    sys.exit(code)
