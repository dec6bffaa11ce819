"""Output of commands: text on a terminal or in a pipe, a last line with progress, reports of bugs.

Colours only on a terminal that supports them (NO_COLOR, FORCE_COLOR, TERM=dumb), and glyphs for terminals without
arrows. The last line disappears before anything else is printed; it is not shown if stderr is not a terminal. A bug in
mcpspy is reported as a line for the user, and a traceback in a private file.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Self

from mcpspy.analysis import rows
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.scan import LineBlock, RecordingScan, no_collection
from mcpspy.ui.text.width import cells, cut, pad

_TONES = {rows.OK: "32", rows.BAD: "31", rows.OPEN: "33", rows.QUIET: "2", rows.ISSUE: "35"}

_PLAIN = str.maketrans({"→": ">", "←": "<", "·": "-", "…": "~", "µ": "u", "●": "*", "○": "o", "✗": "x"})


class Output:
    def __init__(self, color: str = "auto", width: int | None = None) -> None:
        """`color` is `auto`, `always` or `never`; `width` replaces the width of the terminal."""
        terminal = sys.stdout.isatty()
        self.colour = _has_color(terminal) if color == "auto" else color == "always"
        self.width = width if width is not None else shutil.get_terminal_size().columns if terminal else 0
        """Columns; 0 for lines of any length."""
        self._encoding = sys.stdout.encoding or "ascii"
        try:
            "→←·…µ●○✗".encode(self._encoding)
            self._plain = False
        except UnicodeEncodeError:
            self._plain = True

    def line(self, text: str = "", tone: str | None = None) -> None:
        """Print one line, cut to the terminal's width; redaction placeholders are in reverse video."""
        text = self._encodable(text)
        if self.width:
            text = self._encodable(cut(text, self.width))
        if self.colour and "[redacted:" in text:
            text = TEXT_PLACEHOLDER.sub("\x1b[7m\\g<0>\x1b[27m", text)
        if tone is not None and self.colour:
            text = f"\x1b[{_TONES[tone]}m{text}\x1b[0m"
        sys.stdout.write(text + "\n")

    def lines(self, lines: Iterable[tuple[str, str | None]]) -> None:
        """Print lines with their tones."""
        for text, tone in lines:
            self.line(text, tone)

    def pieces(self, line: Sequence[tuple[str, str | None]]) -> None:
        """Print a line of texts, each with a tone or with colours as `#rrggbb on #rrggbb`."""
        left = self.width or sys.maxsize
        made = ""
        for text, style in line:
            shown = self._encodable(cut(self._encodable(text), left)) if left > 0 else ""
            left -= cells(shown)
            made += f"\x1b[{_codes(style)}m{shown}\x1b[0m" if style and self.colour and shown else shown
        sys.stdout.write(made + "\n")

    def _encodable(self, text: str) -> str:
        """Escape the characters that the encoding of stdout lacks; glyphs are replaced by ASCII of one column."""
        if not self._plain:
            return text
        return text.translate(_PLAIN).encode(self._encoding, "backslashreplace").decode(self._encoding)


def _codes(style: str) -> str:
    """Return the parameters of SGR for a tone or for colours."""
    if not style.startswith("#"):
        return {"title": "1", "key": "36", "string": "32", "number": "33"}.get(style) or _TONES.get(
            style, "0"
        )
    colours = [bytes.fromhex(colour.strip().lstrip("#")) for colour in style.split("on")]
    return ";".join(f"{ground};2;{r};{g};{b}" for ground, (r, g, b) in zip((38, 48), colours, strict=False))


class LastLine:
    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        if self._is_shown:
            self._write("")
            self._is_shown = False

    def put(self, text: str) -> None:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        self._write(cut(text, columns - 1))
        self._is_shown = True

    def _write(self, text: str) -> None:
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()


def warn_incomplete(path: object, torn: int) -> None:
    """Report an incomplete last line of a recording on stderr, if it has any bytes."""
    if torn:
        sys.stderr.write(sanitize(f"mcpspy: {path}: incomplete last line skipped ({torn} bytes)") + "\n")


def print_json(value: object) -> None:
    """Print a value as a line of JSON."""
    import orjson

    write_json(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))


def write_json(data: bytes) -> None:
    """Write lines of JSON; on a terminal, with hidden characters as the escapes of JSON, which mean the same."""
    if sys.stdout.isatty() and not data.isascii():
        from mcpspy.core.sanitize import hidden_as_json

        data = hidden_as_json(data.decode("utf-8", "surrogatepass")).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_report(text: str) -> None:
    """Print a report for other programs, byte for byte also on a terminal."""
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def columns(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells padded to widths; a negative width aligns right; 0 leaves the cell unchanged."""
    return "  ".join(
        pad(cell, abs(width), right=width < 0) if width else cell
        for cell, width in zip(row, widths, strict=True)
    ).rstrip()


def _has_color(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced not in ("", "0") or (terminal and os.environ.get("TERM") != "dumb")


class StatusLine(LastLine):
    def show(self, what: str, seconds: float) -> None:
        if self._is_terminal:
            self.put(f"waiting for {sanitize(what)} · {seconds:.0f} s")


SHOW_AFTER_SECONDS = 0.5

UPDATE_SECONDS = 0.1
LEAST_SECONDS_LEFT = 2.0
"""The expected time is not shown if it is shorter."""

BAR_WIDTH = 30


class ProgressBar(LastLine):
    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._what = sanitize(what)
        self._clock = clock
        self._began = clock()
        self._due = self._began + SHOW_AFTER_SECONDS

    def show(self, done: int, of: int, what: str | None = None) -> None:
        """Draw the bar for a part of a whole; `what` replaces the text beside it."""
        if not self._is_terminal or (now := self._clock()) < self._due:
            return
        self._due = now + UPDATE_SECONDS
        share = min(done / of, 1.0) if of else 1.0
        filled = int(share * BAR_WIDTH)
        left = (now - self._began) * (1 / share - 1) if share else 0.0
        shown_left = f" {left:.0f} s left" if left >= LEAST_SECONDS_LEFT else ""
        self.put(
            f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {share:4.0%}{shown_left} {what or self._what}"
        )


def scanned(path: Path, *, is_live: bool) -> Generator[LineBlock]:
    """Yield the blocks of a recording, with progress; report an incomplete last line unless it is live."""
    scan = RecordingScan(path)
    with no_collection(), ProgressBar(path.name) as progress:
        for block in scan:
            yield block
            progress.show(scan.read, scan.size)
    warn_incomplete(path, 0 if is_live else scan.torn)


def bug_line(error: Exception, longest: int | None = None) -> str:
    """Return the line about a bug: the type and the text of the error, redacted, and the file with the traceback.

    `longest` is the maximum of its characters; 0 for the type alone, as the text may be that of a peer.
    """
    name = type(error).__name__
    summary = name if longest == 0 else sanitize(redacted_text(f"{name}: {error}", sys.argv[1:]))[:longest]
    return f"a bug in mcpspy: {summary} ({_keep_traceback(error)})"


def _keep_traceback(error: Exception) -> str:
    """Write the traceback, redacted, to a file that only the user can read: its error may contain traffic."""
    import tempfile  # With `traceback` 12 ms, and only a bug needs them.
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".log")
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(redacted_text("".join(traceback.format_exception(error)), sys.argv[1:]))
    except OSError:
        return "its traceback could not be saved"
    return f"please report it with {path}"
