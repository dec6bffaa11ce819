"""Filtering and linting in the background: when it runs, and for how long at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mcpspy.ui.model.apps import AppsModel
from mcpspy.ui.model.row_filter import PORTION, FilteredView
from mcpspy.ui.tui.session import background
from mcpspy.ui.tui.session.background import BackgroundTasks
from tests.ui.model.test_row_filter import ASK
from tests.ui.model.test_session_model import File


class InstantPass:
    """A lint pass that takes no time."""

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


def parts(count: int, linted: int = 0) -> tuple[Any, FilteredView, InstantPass, list[str], BackgroundTasks]:
    """Return the background tasks of a session with `count` rows, their parts, and the list of their callbacks."""
    file, found = File(), list[str]()
    file.add(*(ASK % (number, b"x") for number in range(count)))
    view, lint_pass = FilteredView(file.log), InstantPass(linted)
    loader: Any = SimpleNamespace(model=file.log, is_behind=False)
    some: Any = lint_pass
    return loader, view, lint_pass, found, _background(loader, view, some, found)


def _background(loader: Any, view: FilteredView, lint_pass: Any, said: list[str]) -> BackgroundTasks:
    return BackgroundTasks(
        loader,
        view,
        lint_pass,
        AppsModel(loader.model),
        processed=lambda: said.append("filtered"),
        found=lambda: said.append("found"),
        report=said.append,
    )


async def while_running(work: Any, turns: int = 20) -> None:
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_rows_are_filtered_in_portions_until_all_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)
    _, view, _, said, work = parts(3 * PORTION)
    work.filter_slice()
    assert view.processed == PORTION, "one portion per slice"
    await while_running(work.filter_rows())
    assert view.processed == 3 * PORTION
    assert said == ["filtered"], "immediately and once"
    loader, _, _, said, work = parts(PORTION)
    loader.is_behind = True
    await while_running(work.filter_rows())
    assert said == [], "the file is still being read"


async def test_linting_waits_for_reading_and_filtering() -> None:
    loader, _, lint_pass, found, work = parts(3, linted=3)
    await while_running(work.lint())
    assert (lint_pass.done, found) == (1, []), "rows are still to be filtered"
    work.filter_slice()
    loader.is_behind = True
    await while_running(work.lint())
    assert (lint_pass.done, found) == (1, []), "the file is still being read"
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
