"""Evidence: lines of a recording that show a cause, and the line on stderr that names the error.

A program that fails prints more than its error: a stack trace, the source line, the version of the runtime. The line that
names the error is the last one in the form of an exception, a panic or a fatal log record; the frame beside it is the one
in the user's own file, not in a library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.sanitize import sanitize

MAX_QUOTE = 200
"""Maximum characters of a quote."""


class EvidenceLine(Struct, frozen=True):
    """A line of the recording that is a sign of a cause."""

    line: int
    """Line of its file; the header is line 1. 0 if there is none."""
    text: str
    """The sign, sanitized; at most `MAX_QUOTE` characters."""
    part: int = 1
    """Number of the session's file, from 1."""


def evidence(place: EntryPosition, text: str) -> EvidenceLine:
    return EvidenceLine(place.line, quote(text), place.part)


def quote(text: str, most: int = MAX_QUOTE) -> str:
    """Return a peer's text as one short line for people."""
    line = sanitize(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def quote_error(text: str) -> str:
    """Return an error as one short line: of a chain of errors, the end is the most specific."""
    line = sanitize(" ".join(text.split()))
    return line if len(line) <= MAX_QUOTE else f"{line[:80].rstrip()} … {line[-(MAX_QUOTE - 83) :].lstrip()}"


def clause(text: str, most: int = MAX_QUOTE) -> str:
    """Return a peer's text after a colon; empty if there is none."""
    return f": {quote(text, most)}" if text else ""


def url_parts(text: str) -> SplitResult:
    """Return the parts of a URL that a peer wrote; all are empty if it is invalid, such as `https://[your-host]/mcp`."""
    try:
        return urlsplit(text)
    except ValueError:
        return SplitResult("", "", "", "", "")


def of_finding(finding: Finding) -> EvidenceLine:
    """Return a finding of lint, with the line that it is about."""
    return evidence(finding.place, f"{finding.code} {finding.message} | {finding.excerpt}")


class PrintedLine(NamedTuple):
    at: float
    place: EntryPosition
    text: str
    pipe: str = "stderr"

    @property
    def evidence(self) -> EvidenceLine:
        return evidence(self.place, f"{self.pipe}: {self.text}")


_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_EXCEPTION = re.compile(
    r"""(?x)^\W{0,14}(?:\[cause\]:\ |Caused\ by:\ |Uncaught\ |Unhandled\ exception\.\ |Exception\ in\ thread\ "[^"]{0,80}"\ |PHP\ Fatal\ error:\ +|error:\ Uncaught\ (?:\(in\ promise\)\ )?)*
    (?:[A-Za-z_$][\w$]*[.:]{1,2})*[A-Z][A-Za-z0-9_]{0,60}(?:Error|Exception|Interrupt|Exit|Failure|Fault|Errno|Group)(?:\ \[\w{1,60}\])?(?::|\s*\(|$)"""
)
"""The line of an exception: Python, JavaScript, Java, .NET, PHP."""

_LED_EXCEPTION = re.compile(
    r"^\W{0,14}[A-Z][^\n:]{2,80}: (?:[A-Za-z_$][\w$]*\.)*[A-Z][A-Za-z0-9_]{0,60}(?:Error|Exception)(?: \[\w{1,60}\])?: \S"
)
"""An exception after the words of the program that caught it: `Failed to load the cache: FetchError: …`."""

_PLAIN_ERROR = re.compile(
    r"^\W{0,4}(?:\[cause\]: |Uncaught )?(?:Error(?: \[\w{1,60}\])?|[A-Z][a-z]{2,20} error|AssertionError|panic|fatal error|fatal|FATAL|PHP (?:Fatal|Parse) error): *\S|^memory allocation of \d"
)
_PANIC = re.compile(r"^thread '[^']{1,80}'(?: \(\d+\))? panicked at ")
_RUBY = re.compile(r"^[^\s:][^:\n]{0,200}\.rb:\d{1,6}:in [`'].{1,400}\((?:\w+::)*\w*(?:Error|Exception)\)")
_LEVEL = re.compile(
    r"""(?x)(?:^|[\s\[|"':])(?:FATAL|CRITICAL|ERROR|ERR|SEVERE|PANIC)(?=[\s\]|"':]) | ^\W{0,3}(?:npm\ (?:ERR!|error)|error(?:\[E\d+\])?:|\S{1,80}:\ (?:fatal\ )?error:|[✗❌\u00d7]) | "level":\s?"(?:error|fatal|critical)" """
)
"""A log record of the level error or higher, or the error of a command-line tool."""

BUG = re.compile(
    r"\b(?:TypeError(?!: fetch failed|.{0,25}Invalid URL)|SyntaxError|IndentationError|NameError|AttributeError|ReferenceError|UnboundLocalError|IndexError"
    r"|RecursionError|NullPointerException|ClassCastException|NullReferenceException|NoMethodError)\b|'NoneType' object"
    r"|Cannot read prop\w+ of|is not a function|\bis not defined\b|nil pointer|index out of (?:range|bounds)"
    r"|(?:un)?expected keyword argument|has no attribute|positional arguments?\b|\bpanic:|called `Option::unwrap"
)
"""An error that only a mistake in a program brings about, in the words of its runtime."""

_WORDS = re.compile(
    r"(?i)\b(?:errors?|failures?|failed|fails?|cannot|can't|could ?n[o']t|unable|denied|not found|missing|required|refused|invalid|"
    r"unsupported|unknown|not set|undefined|expired|unauthori[sz]ed|no such|aborted|killed|out of memory|exceeded|already in use)\b"
)
_EMPTY = re.compile(
    r"^\s*(?:[\]}){(\[^~\-=*#.|]*|Node\.js v[\d.]+|\(Use `node --trace.*|note: run with `RUST_BACKTRACE.*|.*(?:--help|for more information).{0,30}|goroutine \d+ \[.*|exit status \d+"
    r"|npm (?:ERR!|error)(?: (?:A complete log|Log files were not|  |enoent This is related).*| (?:code \w+|syscall \w+|errno -?\d+|enoent))|During handling of the above exception.*|The above exception was the direct.*)\s*;?$"
)
_FRAME = re.compile(
    r"^\s*(?:at |File \"|in |from |\^|~|\d+ \||\.\.\. \d+ more|#\d+ |[\w./$]+\.go:\d+|\S+\(0x)"
)

_LINK = re.compile(r"^\s*[├╰]─▶ ")
_OF_INNER = re.compile(r"^\s+(?:fatal|error): \S")
"""The chain of reasons below an error of uv, of which the last one is the most specific, and the words of a program that it ran."""

_GOES_ON = re.compile(r"was compiled against a different")
"""The second line of the error of Node.js about an addon for another version, which names both versions after it."""

_FRAMES = (
    re.compile(r'^\s*File "(?P<file>[^"]{1,300})", line (?P<line>\d+)'),
    re.compile(
        r"^\s+at (?:.{0,200}\()?(?:file://)?(?P<file>[^():\s][^()\s]{0,300}?):(?P<line>\d+)(?::\d+)?\)?(?: \{)?$"
    ),
    re.compile(r"^\s+at .{1,300} in (?P<file>.{1,300}):line (?P<line>\d+)$"),
    re.compile(r"^\s+(?P<file>/\S{1,300}\.go):(?P<line>\d+)(?: |$)"),
    re.compile(r"panicked at (?P<file>[^\s:]{1,300}):(?P<line>\d+):\d+:?$"),
    re.compile(r"^(?P<file>[^\s:]{1,300}\.rb):(?P<line>\d+):in "),
)
_FOREIGN = re.compile(
    r"^(?:<|node:|internal/)|[/\\](?:site-packages|dist-packages|node_modules|vendor|\.cargo|rustc)[/\\]|[/\\]lib[/\\]python\d"
    r"|[/\\]usr[/\\]local[/\\]go[/\\]src[/\\]|^/rustc/|(?:^|[/\\])(?:asyncio|importlib|runpy|concurrent|threading)[/\\.]"
)
_PLACE_OF_JAVA = re.compile(
    r"^\s+at (?!java\.|javax\.|jdk\.|sun\.)[\w.$]{1,200}\((?P<file>\w+\.(?:java|kt|scala)):(?P<line>\d+)\)$"
)


class NamedError(NamedTuple):
    """The line on stderr that names an error, and the frame in the user's own file."""

    line: PrintedLine
    text: str
    """The error, without the mark of a log record before it, not sanitized."""
    frame: str
    """`server.py line 42`; empty if no frame is in a file of the user."""

    @property
    def evidence(self) -> EvidenceLine:
        return evidence(self.line.place, f"{self.line.pipe}: {self.text}")

    @property
    def framed(self) -> str:
        """The error, with the frame after it."""
        return f"{self.text} ({self.frame})" if self.frame else self.text

    @property
    def next_step(self) -> str:
        return "correct what this error names" + (f" at {self.frame}" if self.frame else "")


def named_error(lines: Sequence[PrintedLine], *, certain: bool = False) -> NamedError | None:
    """Return the error that lines on stderr name; None if they name none.

    `certain`: only a line in the form of an exception, a panic or a log record of an error.
    """
    texts = [_ANSI.sub("", line.text).rstrip() for line in lines]
    found = _last(texts, _is_exception)
    if found is None:
        found = _last(texts, lambda text: _LEVEL.search(text) is not None and _EMPTY.match(text) is None)
    if found is None and not certain:
        found = _last(texts, lambda text: _WORDS.search(text) is not None and not is_rest(text))
        found = _last(texts, lambda text: not is_rest(text)) if found is None else found
    if found is None:
        return None
    text = texts[found].strip()
    if chain := [each for each in texts[found + 1 :] if _LINK.match(each)]:
        end = next((each for each in reversed(texts[found + 1 :]) if _OF_INNER.match(each)), chain[-1])
        text = f"{text}: {_LINK.sub('', end).strip()}"
    elif _PANIC.match(text) and found + 1 < len(texts):  # Rust prints the message on the next line.
        text = f"panic: {texts[found + 1].strip() or text}"
    elif text.endswith(":") and found + 1 < len(texts) and not _FRAME.match(texts[found + 1]):
        text = f"{text} {texts[found + 1].strip()}"
    elif found + 1 < len(texts) and _GOES_ON.match(texts[found + 1]):
        text = " ".join([text, *(each.strip() for each in texts[found + 1 : found + 4] if not is_rest(each))])
    elif len(text) < 60 and found and _is_chained(lines[found - 1], lines[found]):
        text = f"{text}, after {texts[found - 1].strip()}"
    elif re.search(r"\d+ validation errors? for ", text):  # Pydantic: a field, and what is wrong with it.
        text = " ".join([text, *(each.strip() for each in texts[found + 1 : found + 3])])
    return NamedError(lines[found], text, _frame(texts, found))


def _is_chained(before: PrintedLine, line: PrintedLine) -> bool:
    """Return whether a short error, such as "Error: initialization failed", only ends what the line before it names."""
    text = _ANSI.sub("", before.text)
    return line.at - before.at < 0.5 and _LEVEL.search(text) is not None and not _EMPTY.match(text)


def _is_exception(text: str) -> bool:
    return any(pattern.match(text) for pattern in (_EXCEPTION, _LED_EXCEPTION, _PLAIN_ERROR, _PANIC, _RUBY))


def is_error(text: str) -> bool:
    """Return whether a line reports that something failed, and not only the work of a program."""
    return any(
        pattern.search(text) for pattern in (_EXCEPTION, _PLAIN_ERROR, _PANIC, _RUBY, _LEVEL, _WORDS, BUG)
    )


def is_rest(text: str) -> bool:
    """Return whether a line only surrounds an error: a frame of its stack, a bracket, a hint."""
    return not text.strip() or _EMPTY.match(text) is not None or _FRAME.match(text) is not None


def _last(texts: Sequence[str], is_wanted: Callable[[str], bool]) -> int | None:
    return next((at for at in range(len(texts) - 1, -1, -1) if is_wanted(texts[at])), None)


def _frame(texts: Sequence[str], at: int) -> str:
    """Return the frame of the user's file nearest to the error: Python prints the frames before it, others after it."""
    after = range(at, min(at + 40, len(texts)))
    before = range(at - 1, max(at - 60, -1), -1)
    for number in (*after, *before):
        for pattern in (*_FRAMES, _PLACE_OF_JAVA):
            if (found := pattern.search(texts[number])) and not _FOREIGN.search(found["file"]):
                name = re.split(r"[/\\]", found["file"])[-1]
                return f"{name} line {found['line']}"
    return ""
