"""Screens and prompts that open over a session, each imported on first use; export of its rows.

Rows are exported as a recording or as Markdown. A partial recording also gets the other lines that it needs. Both
formats are produced in pieces, so that the writer can yield to other tasks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.core.counted import counted
from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Header
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.settings import slug
from mcpspy.ui.model.session_loader import MergedLoader, SessionLoader
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.session.base import SessionBase

if TYPE_CHECKING:
    from mcpspy.ui.model.replay_options import ReplayForm
    from mcpspy.ui.tui.replay.dialog import ReplaySelection


def timeline(screen: SessionBase) -> None:
    from mcpspy.ui.tui.panels.timeline import TimelineScreen

    screen.app.push_screen(TimelineScreen(screen.loader.model, screen.listing.row), _to_row(screen))


def numbers(screen: SessionBase) -> None:
    """Open the statistics; then filter the rows by the group chosen there."""
    from mcpspy.ui.tui.panels.stats import StatsScreen

    def chosen(text: str | None) -> None:
        if text is not None:
            screen.filter.put(text)

    screen.app.push_screen(StatsScreen(screen.loader.model, screen.loader.origin), chosen)


def server(screen: SessionBase) -> None:
    from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesScreen

    screen.app.push_screen(CapabilitiesScreen(screen.loader.model))


def cause(screen: SessionBase) -> None:
    """Show the first cause of what is on the row."""
    from mcpspy.ui.tui.panels.explanation_screen import cause_of_row

    row = screen.listing.row
    if row is not None:
        screen.flash_message("explaining …")
        screen.do(cause_of_row(*_recording_of(screen, row)))


def explanation(screen: SessionBase) -> None:
    """Open all causes of the session, in a run of that of the row."""
    from mcpspy.ui.tui.panels.explanation_screen import ExplanationScreen

    row = screen.listing.row
    if row is not None:
        loader = screen.loader
        _, header = loader.origin(loader.model.index.where(row).part)
        screen.app.push_screen(ExplanationScreen(_recording_of(screen, row)[0], header.name))


def _recording_of(screen: SessionBase, row: int) -> tuple[Path, int]:
    """Return the file of a row's session, and the number of the row in it."""
    loader = screen.loader
    if isinstance(loader, MergedLoader):
        summary, number = loader.alone(row)
        return summary.path, number
    return loader.path, row


def diff(screen: SessionBase) -> None:
    """Compare this exchange with the marked one, or with the previous call of the same tool or method."""

    async def chosen() -> None:
        from mcpspy.ui.tui.diff.comparison import choose_exchanges

        row = screen.listing.row
        two = screen.resent(row) or await choose_exchanges(screen.loader.model, row, screen.listing.marked)
        if isinstance(two, str):
            screen.flash_message(two)
        else:
            show_comparison(screen, *two)

    screen.run_worker(chosen(), group="diff", exclusive=True)


def show_comparison(screen: SessionBase, old: int, new: int) -> None:
    from mcpspy.ui.tui.diff.comparison import ExchangePair
    from mcpspy.ui.tui.diff.screen import DiffScreen

    screen.app.push_screen(DiffScreen(ExchangePair(screen.loader.model, old, new)), _to_row(screen))


def note(screen: SessionBase) -> None:
    """Edit the note on the row; an empty text removes it."""
    from mcpspy.ui.tui.widgets.prompts import TextPrompt

    listing = screen.listing
    row, notes = listing.row, listing.notes

    def written(text: str | None) -> None:
        if row is None or text is None:
            return
        notes.pop(row, None)
        if text:
            notes[row] = text
            listing.marked.add(row)
        listing.refresh()
        screen.panes.look()

    if row is not None:
        question = "Note on this row (exported with x; empty: no note):"
        screen.app.push_screen(TextPrompt(question, notes.get(row, ""), done="save"), written)


def export_rows(screen: SessionBase) -> None:
    """Save the marked rows, or else all shown rows, under a file name that the user enters."""
    from mcpspy.ui.tui.widgets.prompts import TextPrompt

    loader, listing = screen.loader, screen.listing
    marked = sorted(listing.marked)
    rows = marked or list(screen.view.rows)
    what = counted(len(rows), "marked row" if marked else "row")
    header, kind = loader.model.header, "md" if loader.model.is_merged else "jsonl"

    def path_of(name: str) -> str:
        return os.path.abspath(os.path.expanduser(name))

    async def save(name: str) -> None:
        screen.flash_message(await saved(loader, Path(path_of(name)), rows, listing.notes))

    def about(name: str) -> str:
        path = path_of(name)
        return f"in {os.path.dirname(path)}{': this file exists' if name and os.path.exists(path) else ''}"

    question = f"Export {what} to .jsonl (recording) or .md (document):"
    name = free_name(f"{slug(header.name)}-{header.id[:4]}", kind)
    screen.app.push_screen(TextPrompt(question, name, done="save", about=about, act=save))


def row_kinds(screen: SessionBase) -> None:
    """Open the menu of which kinds of rows are shown."""
    from mcpspy.ui.model.row_filter import ROW_KINDS
    from mcpspy.ui.tui.widgets.prompts import MenuOption, ToggleMenu

    options = [MenuOption(name[0], label, name) for name, label in ROW_KINDS.items()]
    screen.app.push_screen(
        ToggleMenu(
            "Rows shown",
            options,
            lambda name: getattr(screen.view.options, name),
            screen.action_change_view,
        )
    )


IDS = 20
"""Maximum number of ids in the filter of a command line."""


def replay(screen: SessionBase, what: str = "") -> None:
    """Ask for the server, and replay the session, a call, or the marked or shown rows; without `what`, the narrowest."""
    from mcpspy.ui.tui.replay.dialog import ReplayDialog
    from mcpspy.ui.tui.replay.load import LoadScreen
    from mcpspy.ui.tui.replay.screen import ReplayScreen

    loader, chosen = screen.loader, _selections(screen, what)
    if loader.model.is_merged:
        screen.flash_message("several sessions are open: open one alone (O) to replay it")
        return
    header = loader.model.header

    def ask(form: ReplayForm | None = None) -> None:
        screen.app.push_screen(ReplayDialog(loader.path, header, chosen, form), start)

    def start(config: dict[str, Any] | None) -> None:
        def ended(again: bool | None) -> None:
            if again and config is not None:
                ask(config["form"])

        if config is not None and "load" in config:
            screen.app.push_screen(LoadScreen(config, header.name), ended)
        elif config is not None:
            screen.app.push_screen(ReplayScreen(config, header.name, loader.model), ended)

    ask()


def _selections(screen: SessionBase, what: str) -> list[ReplaySelection]:
    """Return the parts of the session that can be replayed, the one that is proposed first."""
    from mcpspy.ui.tui.replay.dialog import ReplaySelection

    listing, query = screen.listing, screen.view.options.query
    found = {"session": ReplaySelection("this session", "s", None)}
    if query.text:
        rows = list(screen.view.rows)
        found["shown"] = ReplaySelection(f"what is shown: {counted(len(rows), 'row')}", "w", rows, query.text)
    if listing.marked:
        marked = sorted(listing.marked)
        label = f"what is marked: {counted(len(marked), 'row')}"
        found["marked"] = ReplaySelection(label, "m", marked, _ids(screen, marked))
    row = None if listing.row is None else screen.loader.model.index.request(listing.row)
    if row is not None:
        found["call"] = ReplaySelection("this call", "c", [row], _ids(screen, [row]))
    wanted = what or ("marked" if listing.marked else "shown" if query.text else "session")
    first = found.pop(wanted, None) or found.pop("session")
    return [first, *found.values()]


def _ids(screen: SessionBase, rows: Sequence[int]) -> str:
    """Return a filter that selects the requests of these rows; empty if there are too many."""
    index = screen.loader.model.index
    ids = dict.fromkeys(index.id(request) for row in rows if (request := index.request(row)) is not None)
    return " or ".join(f"id:{each}" for each in ids if each) if len(ids) <= IDS else ""


def _to_row(screen: SessionBase) -> Callable[[int | None], None]:
    """Return a callback that goes to the row chosen on another screen."""

    def chosen(row: int | None) -> None:
        if row is not None:
            screen.go(row, "")

    return chosen


SUBSCREENS: dict[str, Callable[[SessionBase], None]] = {
    "timeline": timeline,
    "numbers": numbers,
    "server": server,
    "cause": cause,
    "explanation": explanation,
    "diff": diff,
    "note": note,
    "export": export_rows,
    "rows": row_kinds,
}


PAUSE = 4096
_HEADER = ("id", "started", "transport", "command", "upstream", "cwd", "name", "pid")

_HTTP = ("http", "http-end")


def jsonl(model: SessionModel, rows: Iterable[int]) -> Iterator[bytes]:
    """Yield a recording of these rows, their complete exchanges, and the end of the session."""
    index = model.index
    yield _header(model.header)
    wanted = set(rows)
    requests = {request for row in wanted if (request := index.request(row)) is not None}
    both = {row for request in requests for row in (request, index.pair(request)) if row is not None}
    carriers = {carrier for row in both if (carrier := index.http(row)) is not None}
    last: tuple[int, int] | None = None
    for row in range(len(index)):
        if row % PAUSE == 0:
            yield b""
        if model.index is not index:
            raise CannotStart("the recording was truncated or replaced during the export", "try again")
        if not (row in wanted or index.request(row) in requests or _is_needed(model, row, carriers)):
            continue
        where = index.where(row)
        # A batch is one line. Notes of parts are left out: the exported file has no other part.
        if last == (where.part, where.offset) or model.note(row) == "part":
            continue
        last = (where.part, where.offset)
        line = model.read(*where[:3])
        if len(line) < where.length:
            raise CannotStart(
                f"row {row + 1:,} is missing from the recording file", "check whether it was deleted"
            )
        yield line + b"\n"


def markdown(model: SessionModel, rows: Iterable[int], notes: Mapping[int, str]) -> Iterator[str]:
    """Yield a document with one section per row, each followed by the user's note."""
    from mcpspy.analysis.export.markdown import document

    found = ((model.get(row), notes.get(row, "")) for row in rows)
    return document(model.header, ((change, note) for change, note in found if change is not None))


def free_name(stem: str, kind: str) -> str:
    """Return a file name that does not exist in the current folder."""
    names = chain([f"{stem}.{kind}"], (f"{stem}-{number}.{kind}" for number in count(2)))
    return next(name for name in names if not Path(name).exists())


async def saved(loader: SessionLoader, path: Path, rows: Sequence[int], notes: Mapping[int, str]) -> str:
    """Save rows in the format of the suffix; return the result. Raises UsageError or CannotStart."""
    from mcpspy.io.recording.atomic import save

    if path.suffix == ".md":
        pieces: Iterable[bytes | str] = markdown(loader.model, rows, notes)
    elif path.suffix == ".jsonl" and not loader.model.is_merged:
        pieces = jsonl(loader.model, rows)
    elif path.suffix == ".jsonl":
        raise UsageError("a .jsonl recording holds one session", "use .md")
    else:
        raise UsageError(f"{path.name}: the file name must end in .jsonl or .md")
    size = await asyncio.to_thread(save, path, pieces)
    return f"saved {size:,} bytes to {path}"


def _header(header: Header) -> bytes:
    fields = {name: value for name in _HEADER if (value := getattr(header, name)) is not None}
    return encode.header(fields)


def _is_needed(model: SessionModel, row: int, carriers: set[int]) -> bool:
    """Return whether the outcome of the exchanges or of the session depends on a note."""
    note = model.note(row)
    return note == "exit" or (note in _HTTP and model.index.http(row) in carriers)
