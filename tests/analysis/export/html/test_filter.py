"""The filter language in the exported page: the same rows as in Python, by one table of cases and on real sessions."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from mcpspy.analysis.export.html import page
from mcpspy.core.query.parser import QueryError, parse
from mcpspy.io.recording.catalog import Catalog
from mcpspy.ui.filter_items import RowItem
from mcpspy.ui.session_loader import SessionLoader
from mcpspy.ui.session_model import SessionModel
from tests.analysis.export.sessions import EVERY, recorded

HERE = Path(__file__).parent
PARTS = Path(page.__file__).parent
SCRIPTS = [str(PARTS / name) for name in ("units.js", "search.js", "filter.js", "session.js")]

TABLE = tomllib.loads((HERE / "filters.toml").read_text(encoding="utf-8"))
CASES: dict[str, list[int]] = TABLE["rows"]
INVALID: list[str] = TABLE["invalid"]
SESSION = HERE / "filters.jsonl"


def blocks(path: Path) -> dict[str, Any]:
    """Return the JSON elements of the page of a recording."""
    text = "".join(page.export(recorded(path)))
    found = re.findall(r'<script type="application/json" class="(\w+)">(.*?)</script>', text, re.DOTALL)
    return {
        "session": next(data for name, data in found if name == "session"),
        "bodies": [data for name, data in found if name == "bodies"],
    }


def in_page(paths: list[Path], filters: list[str]) -> list[list[list[int] | str]]:
    """Return the rows that the page finds for each recording and filter, or the error of a filter."""
    asked = {"scripts": SCRIPTS, "pages": [blocks(path) for path in paths], "filters": filters}
    done = subprocess.run(
        ["node", str(HERE / "filters.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    found: list[list[list[int] | str]] = json.loads(done.stdout)
    return found


@cache
def model_of(path: Path) -> SessionModel:
    (summary,) = (each for each in Catalog(str(path.parent)).look() if each.path == path)

    async def read() -> SessionModel:
        loader = SessionLoader(summary)
        await asyncio.wait_for(loader.read(), 30)
        return loader.model

    return asyncio.run(read())


def in_python(path: Path, filters: list[str]) -> list[list[int] | str]:
    """Return the same as the live page and the terminal UI find, among the rows of the exported page."""
    model = model_of(path)
    rows = [row[0] for row in json.loads(blocks(path)["session"])["rows"]]
    item = RowItem(model, exchanges=True)

    def matches(number: int, query: Any) -> bool:
        item.row = number - 1
        return bool(query.matches(item))

    found: list[list[int] | str] = []
    for text in filters:
        try:
            query = parse(text)
        except QueryError as error:
            found.append(str(error))
            continue
        query.end = model.index.last_at
        found.append([number for number in rows if matches(number, query)])
    return found


def test_python_finds_the_rows_of_the_table() -> None:
    assert dict(zip(CASES, in_python(SESSION, list(CASES)), strict=True)) == CASES


def test_the_exported_page_finds_the_rows_of_the_table() -> None:
    (found,) = in_page([SESSION], list(CASES))

    assert dict(zip(CASES, found, strict=True)) == CASES


def test_both_refuse_the_invalid_filters_of_the_table_in_one_line() -> None:
    (found,) = in_page([SESSION], INVALID)

    for text, one, other in zip(INVALID, in_python(SESSION, INVALID), found, strict=True):
        assert isinstance(one, str), text
        assert isinstance(other, str), text
        assert "\n" not in other
        assert len(other) > 8


def test_both_find_the_same_rows_of_every_real_session() -> None:
    filters = list(CASES)
    in_pages = in_page(EVERY, filters)

    differences = [
        (path.stem, text, one, other)
        for path, found in zip(EVERY, in_pages, strict=True)
        for text, one, other in zip(filters, in_python(path, filters), found, strict=True)
        if one != other
    ]
    assert differences == []


def test_regular_expressions_that_javascript_lacks_are_refused_by_name() -> None:
    (found,) = in_page([SESSION], ["/[[:alpha:]]/", "/\\Qa.b\\E/", "/a++/"])

    assert all("is not supported in an exported page: use mcpspy show -q" in str(each) for each in found)
