"""The filter language in Python and in the exported page, on the same rows."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from mcpspy.analysis.export.html import page
from mcpspy.core.query.parser import QueryError, parse
from mcpspy.io.recording.catalog import Catalog
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.model.session_model import SessionModel
from tests.analysis.export.sessions import recorded

HERE = Path(__file__).parent
PARTS = Path(page.__file__).parent
SCRIPTS = [
    str(PARTS / name)
    for name in ("units.js", "search.js", "filter.js", "timeline.js", "place.js", "file.js", "offline.js")
]

SESSION = HERE / "filters.jsonl"

Rows = list[int] | str
"""Numbers of the rows that a filter matches, or why it is refused."""


@cache
def blocks(path: Path) -> dict[str, Any]:
    """Return the JSON elements of the page of a recording."""
    text = "".join(page.export(recorded(path)))
    found = re.findall(r'<script type="application/json" class="(\w+)">(.*?)</script>', text, re.DOTALL)
    return {
        "session": next(data for name, data in found if name == "session"),
        "bodies": [data for name, data in found if name == "bodies"],
    }


class Pages:
    """The pages of recordings, in one process of node."""

    def __init__(self, paths: list[Path]) -> None:
        self._node = subprocess.Popen(
            ["node", str(HERE / "filters.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._send({"scripts": SCRIPTS, "pages": [blocks(path) for path in paths]})

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self._node.communicate(timeout=60)

    def rows(self, filters: list[str]) -> list[list[Rows]]:
        """Return the rows that each page finds with each filter."""
        self._send(filters)
        assert self._node.stdout is not None
        found: list[list[Rows]] = json.loads(self._node.stdout.readline())
        return found

    def timelines(self, parts: int) -> list[dict[str, Any]]:
        """Return the timeline of each page in a number of parts, and its rows without a filter: number and kind."""
        self._send(parts)
        assert self._node.stdout is not None
        found: list[dict[str, Any]] = json.loads(self._node.stdout.readline())
        return found

    def _send(self, value: Any) -> None:
        assert self._node.stdin is not None
        self._node.stdin.write(json.dumps(value) + "\n")
        self._node.stdin.flush()


@cache
def model_of(path: Path) -> SessionModel:
    (summary,) = (each for each in Catalog(str(path.parent)).look() if each.path == path)

    async def read() -> SessionModel:
        loader = SessionLoader(summary)
        await asyncio.wait_for(loader.read(), 30)
        return loader.model

    return asyncio.run(read())


@cache
def numbers(path: Path) -> list[int]:
    """Return the rows of the exported page."""
    return [row[0] for row in json.loads(blocks(path)["session"])["rows"]]


def in_python(path: Path, text: str) -> Rows:
    """Return the same as the live page and the terminal UI find, among the rows of the exported page."""
    try:
        query = parse(text)
    except QueryError as error:
        return str(error)
    model = model_of(path)
    query.end = model.index.last_at
    item, found = RowItem(model, exchanges=True), []
    for number in numbers(path):
        item.row = number - 1
        if query.matches(item):
            found.append(number)
    return found
