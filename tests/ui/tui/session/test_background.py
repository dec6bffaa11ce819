"""What is done with rows while nobody waits: when, and for how long at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mcpspy.ui.tui.session import background
from mcpspy.ui.tui.session.background import BackgroundTasks
from mcpspy.ui.tui.session.row_filter import PORTION, FilteredView
from tests.ui.test_session_model import File
from tests.ui.tui.session.test_row_filter import ASK


class Looked:
    """A pass over a log that takes no time."""

    is_large = False

    def __init__(self, count: int) -> None:
        self.count = count
        self.done = 1

    @property
    def is_behind(self) -> bool:
        return self.done < self.count

    def advance(self, seconds: float) -> list[int]:
        self.done += 1
        return [self.done - 1]


def parts(count: int, linted: int = 0) -> tuple[Any, FilteredView, Looked, list[str], BackgroundTasks]:
    """Return what works on a log of so many rows, and what it has said."""
    file, found = File(), list[str]()
    file.add(*(ASK % (number, b"x") for number in range(count)))
    view, lint_pass = FilteredView(file.log), Looked(linted)
    loader: Any = SimpleNamespace(model=file.log, is_behind=False)
    some: Any = lint_pass
    return loader, view, lint_pass, found, _background(loader, view, some, found)


def _background(loader: Any, view: FilteredView, lint_pass: Any, said: list[str]) -> BackgroundTasks:
    return BackgroundTasks(
        loader, view, lint_pass, processed=lambda: said.append("filtered"), found=lambda: said.append("found")
    )


async def while_running(work: Any, turns: int = 20) -> None:
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_rows_are_filtered_a_portion_at_a_time_until_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)
    _, view, _, said, work = parts(3 * PORTION)
    work.filter_slice()
    assert view.processed == PORTION, "no longer than a slice"
    await while_running(work.filter_rows())
    assert view.processed == 3 * PORTION
    assert said == ["filtered"], "at once, and once"
    loader, _, _, said, work = parts(PORTION)
    loader.is_behind = True
    await while_running(work.filter_rows())
    assert said == [], "while the file is read this is no end"


async def test_findings_are_looked_for_once_nothing_else_is_to_be_done() -> None:
    loader, _, lint_pass, found, work = parts(3, linted=3)
    await while_running(work.lint())
    assert (lint_pass.done, found) == (1, []), "rows are still to be judged"
    work.filter_slice()
    loader.is_behind = True
    await while_running(work.lint())
    assert (lint_pass.done, found) == (1, []), "the file is still read"
    loader.is_behind = False
    await while_running(work.lint())
    assert (lint_pass.done, found, work.lint_share) == (3, ["found"] * 2, "")


async def test_a_long_session_is_linted_only_when_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LINTED", 2)
    _, _, _, found, work = parts(3, linted=3)
    work.filter_slice()
    work.look()
    await while_running(work.lint())
    assert (found, work.lint_share) == ([], "33 %")
    work.force_lint()
    await while_running(work.lint())
    assert len(found) == 2
