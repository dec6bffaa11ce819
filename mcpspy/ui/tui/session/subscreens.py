"""Screens and prompts that open over a session. Each is imported on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mcpspy.core.counted import counted
from mcpspy.io.settings import slug
from mcpspy.ui.tui.session.base import SessionBase


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


def export(screen: SessionBase) -> None:
    """Save the marked rows, or else all shown rows, under a file name that the user enters."""
    from mcpspy.ui.tui.session.export import free_name, saved
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
    "diff": diff,
    "note": note,
    "export": export,
    "rows": row_kinds,
}
