"""Columns and views of the user's Python files, and the views that mcpspy contains.

`column_NAME(exchange)` is a column of `show`, of the terminal UI and of the pages, `view_NAME(content)` a view. Files are
named on the command line or in the user's own settings, never by a recording. All texts that the functions return are
sanitized.

Their results are computed in a thread, so that a slow function does not stop the screen. The last request is computed
first: it is about what is visible now. A function that takes longer than LIMIT is not called again, and what waits for
it gets a line that says so.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from mcpspy.analysis.export.base import UserViews
from mcpspy.analysis.rows import BAD, ISSUE, OK, QUIET
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.errors import UsageError
from mcpspy.io.scripts import ScriptOptions
from mcpspy.io.settings import config_file
from mcpspy.ui.api.session import ReadExchange
from mcpspy.ui.scripts.script import ScriptError, failure, load
from mcpspy.ui.views.content import BUILTIN, MAX_CONTENT, MAX_LINES, PENDING, Content, Line, Piece

LIMIT = 5.0
"""Maximum seconds of one call."""

KEPT = 5000
"""Maximum number of results that are kept."""

WAITING = 500
"""Maximum number of calls that wait; the oldest are dropped, and requested again when they are visible again."""


class Failed(NamedTuple):
    """The reason why there is no result, on one line."""

    why: str


class _Call(NamedTuple):
    key: Hashable
    function: Callable[[Any], Any]
    argument: Any
    started: float = 0.0


class LazyResults:
    """The results of all functions, by a key of the caller."""

    def __init__(self, failure: Callable[[Callable[[Any], Any], BaseException], str]) -> None:
        """`failure` returns the line about an exception of a function."""
        self.on_result: Callable[[], None] = lambda: None
        """Called after each result, mostly in another thread."""
        self._failure = failure
        self._results: dict[Hashable, Any] = {}
        self._calls: dict[Hashable, _Call] = {}
        self._running: _Call | None = None
        self._too_slow: set[Callable[[Any], Any]] = set()
        self._changed = threading.Condition()

    def get(
        self,
        key: Hashable,
        function: Callable[[Any], Any],
        argument: Callable[[], Any],
        wait: float = 0.0,
    ) -> Any:
        """Return a result, Failed, or None if it is not there after `wait` seconds.

        `argument` returns the argument of the function, or Failed. It is called here, and only if it is needed.
        """
        with self._changed:
            self._stop_slow_call()
            if key in self._results:
                return self._results[key]
            if function in self._too_slow:
                return _slow()
            if self._running is None or self._running.key != key:
                call = self._calls.pop(key, None) or _Call(key, function, argument())
                if isinstance(call.argument, Failed):
                    return call.argument
                self._calls[key] = call
                if len(self._calls) > WAITING:
                    del self._calls[next(iter(self._calls))]
            if self._running is None:
                self._start()
            until = time.monotonic() + wait
            while key not in self._results and (left := until - time.monotonic()) > 0:
                self._changed.wait(min(left, LIMIT))
                self._stop_slow_call()
                if function in self._too_slow:
                    return _slow()
            return self._results.get(key)

    def stop_slow_call(self) -> None:
        """Give up a call that takes too long."""
        with self._changed:
            self._stop_slow_call()

    def _start(self) -> None:
        """Start a thread that computes what waits, if anything does. The caller has the lock."""
        self._running = self._next()
        if self._running is not None:
            threading.Thread(target=self._compute, args=(self._running,), daemon=True).start()

    def _next(self) -> _Call | None:
        """Take the call that was requested last."""
        return self._calls.popitem()[1]._replace(started=time.monotonic()) if self._calls else None

    def _compute(self, call: _Call) -> None:
        while True:
            try:
                result = call.function(call.argument)
            except (Exception, SystemExit) as error:
                result = Failed(self._failure(call.function, error))
            with self._changed:
                if self._running is not call:  # It took too long, and another thread has its place.
                    return
                if len(self._results) > KEPT:
                    self._results.clear()
                self._results[call.key] = result
                self._changed.notify_all()
                self._running = following = self._next()
            self.on_result()
            if following is None:
                return
            call = following

    def _stop_slow_call(self) -> None:
        running = self._running
        if running is None or time.monotonic() - running.started < LIMIT:
            return
        # Python cannot end its thread.
        self._too_slow.add(running.function)
        self._calls = {key: call for key, call in self._calls.items() if call.function != running.function}
        self._start()
        self.on_result()


def _slow() -> Failed:
    return Failed(f"not done after {LIMIT:g} s; not called again")


COLUMN, VIEW = "column_", "view_"
"""Beginnings of the names of functions."""

WIDEST = 40
"""Maximum characters of a cell."""

LONGEST = 1000
"""Maximum characters of a line of a view."""

MAX_EXCHANGE = 1 << 20
"""Size in bytes of a request and its response above which they have no cells."""

EXPORT_WAIT = 6.0
"""Seconds that an exporter waits for a cell or a view: longer than a function may take."""

STYLES = frozenset({OK, BAD, QUIET, "title", "key", "string", "number", "word"})

_COLOURS = re.compile("#[0-9a-f]{6}(?: on #[0-9a-f]{6})?")

Function: TypeAlias = Callable[[Any], Any]


class ContentView(NamedTuple):
    """A view of one content of a message."""

    pointer: str
    """JSON Pointer of the content, sanitized."""
    label: str
    lines: list[Line]


class Extension:
    """The columns and views in use."""

    def __init__(
        self,
        files: Sequence[str] = (),
        settings: Mapping[str, Any] = MappingProxyType({}),
        *,
        shows_images: bool = True,
    ) -> None:
        """Load the files of the command line after those of the settings. Raise UsageError or CannotStart.

        Without `shows_images`, images are left to the page, which shows them by itself.
        """
        self.columns: dict[str, Function] = {}
        """Heading of each column → its function."""
        self._views: dict[str, Function] = {}
        self._names: dict[Function, tuple[str, str]] = {}
        """Function → its file and its name."""
        for file in _list(settings):
            self._add(os.path.expanduser(file), config_file())
        for file in files:
            self._add(file, "--script")
        if settings.get("builtin", True) is not False:
            self._views |= {
                f"{VIEW}{name}": view
                for name, view in BUILTIN.items()
                if f"{VIEW}{name}" not in self._views and (shows_images or name != "image")
            }
        self._renders = [partial(self._render, view) for view in self._views.values()]
        self._results = LazyResults(self._failure)

    def stop_slow_call(self) -> None:
        """Give up a function that takes too long."""
        self._results.stop_slow_call()

    def notify(self, on_result: Callable[[], None]) -> None:
        """Call a function, in another thread, after each result that is ready after its first request."""
        self._results.on_result = on_result

    def cell(
        self, heading: str, key: Hashable, exchange: Callable[[], Exchange | None], wait: float = 0.0
    ) -> Piece:
        """Return the cell of a column: the text, an error, or `…` until the function has returned.

        `key` identifies the exchange in its current state, and `exchange` returns it, or None if it is too large.
        """

        def argument() -> ReadExchange | Failed:
            found = exchange()
            return Failed("large") if found is None or _size(found) > MAX_EXCHANGE else ReadExchange(found)

        result = self._results.get((heading, key), self.columns[heading], argument, wait)
        return ("…", QUIET) if result is None else _one_line(result)

    def lines(self, content: Content, wait: float = 0.0) -> list[Line] | None:
        """Return the view of a content: its lines, an error, `…` until it is ready; None if no view knows it."""
        if not content.data or len(content.data) > MAX_CONTENT:
            return None
        until = time.monotonic() + wait
        digest = blake2b(content.data).digest()
        too_slow: list[Line] | None = None
        for render in self._renders:
            left = max(until - time.monotonic(), 0.0)
            result = self._results.get((render, content.media_type, digest), render, lambda: content, left)
            if result is None:
                return PENDING
            if isinstance(result, Failed):
                too_slow = [[(sanitize(result.why)[:LONGEST], BAD)]]
            elif result:
                return list(result)
        return too_slow

    def views(self, data: bytes, wait: float = 0.0) -> list[ContentView]:
        """Return the views of the contents of a message; `wait` is for all of them."""
        from mcpspy.ui.views.blocks import blocks

        until = time.monotonic() + wait
        found = []
        for block in blocks(data):
            left = max(until - time.monotonic(), 0.0)
            lines = None if block.content is None else self.lines(block.content, left)
            if lines is not None:
                label = "".join(text for text, _ in block.label).strip(" ·") or "content"
                found.append(ContentView(sanitize(block.pointer), label, lines))
        return found

    def for_export(self) -> UserViews:
        """Return the columns and views for an exporter, which waits for each of them."""
        return _Exported(self)

    def _render(self, view: Function, content: Content) -> list[Line]:
        """Return the lines of a view, or the error in it; no lines if it does not know the content."""
        try:
            shown = view(content)
            if shown is None:
                return []
            lines = shown.splitlines() if isinstance(shown, str) else list(shown)
            return [_line(line) for line in lines[:MAX_LINES]] or [[("(empty)", QUIET)]]
        except (Exception, SystemExit) as error:
            path, name = self._names.get(view, ("", view.__name__))
            return [[(sanitize(failure(path, name, error))[:LONGEST], BAD)]]

    def _add(self, file: str, where: str) -> None:
        options = ScriptOptions()
        options.files = [file]
        options.check()
        path = os.path.abspath(file)
        try:
            module = load(path)
        except ScriptError as error:
            raise UsageError(f"{where} {file}: {error}") from None
        found = {name: value for name, value in vars(module).items() if callable(value)}
        columns = {name: value for name, value in found.items() if name.startswith(COLUMN)}
        views = {name: value for name, value in found.items() if name.startswith(VIEW)}
        if not columns and not views:
            raise UsageError(
                f"{where} {file}: defines no columns and no views",
                f"define {COLUMN}NAME(exchange) or {VIEW}NAME(content), see docs/scripting.md",
            )
        self.columns |= {sanitize(name.removeprefix(COLUMN)): value for name, value in columns.items()}
        self._views = {**views, **self._views}  # The last file comes first.
        self._names |= {value: (path, name) for name, value in {**columns, **views}.items()}

    def _failure(self, function: Function, error: BaseException) -> str:
        path, name = self._names.get(function, ("", ""))
        return failure(path, name, error).removeprefix(f"{name}: ")  # The heading has its name.


class _Exported:
    """The columns and views of an exported file."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension

    @property
    def headings(self) -> Sequence[str]:
        return list(self._extension.columns)

    def cells(self, exchange: Exchange) -> list[Piece]:
        key = object()  # Each exchange is exported once.
        return [
            self._extension.cell(heading, key, lambda: exchange, EXPORT_WAIT) for heading in self.headings
        ]

    def views(self, data: bytes) -> list[dict[str, Any]]:
        found = self._extension.views(data, EXPORT_WAIT)
        while any(view.lines is PENDING for view in found):  # The time limit of a function ends this.
            found = self._extension.views(data, EXPORT_WAIT)
        return [view._asdict() for view in found]


def _one_line(result: Any) -> Piece:
    if isinstance(result, Failed):
        return sanitize(result.why)[:LONGEST], ISSUE
    return " ".join(sanitize(str(result)).split())[: WIDEST * 4], None


def _size(exchange: Exchange) -> int:
    return len(exchange.request.data) + (0 if exchange.answer is None else len(exchange.answer.data))


def _line(line: Any) -> Line:
    """Return a line of a view: a text, or pairs of text and style. Raise for anything else."""
    pieces = [(line, None)] if isinstance(line, str) else line
    made: list[Piece] = []
    left = LONGEST
    for text, style in pieces:
        known = style in STYLES or (isinstance(style, str) and _COLOURS.fullmatch(style))
        shown = sanitize(str(text).expandtabs(4))[:left]
        left -= len(shown)
        made.append((shown, style if known else None))
    return made


def _list(settings: Mapping[str, Any]) -> list[str]:
    files = settings.get("scripts", [])
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise UsageError(
            f"{config_file()}: views.scripts must be a list of files", 'write scripts = ["FILE"]'
        )
    return files
