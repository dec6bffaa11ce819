"""Folders of generated recordings, and the content of a lake as values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.many_sessions import write_sessions
from mcpspy.analysis.lake.schema import TABLES
from mcpspy.core.protocol.message import Notification
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.session.session import Session
from mcpspy.io.lake.add import AddResult, add
from mcpspy.io.lake.files import Lake
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.ui.model.filter_items import exchange_item


def summaries(folder: Path) -> list[Summary]:
    return list(sessions(str(folder), entries=False))


def generated(folder: Path, count: int, messages: int) -> list[Summary]:
    write_sessions(folder, count, messages)
    return summaries(folder)


def filled(folder: Path | str, found: list[Summary], **options: Any) -> tuple[Lake, AddResult]:
    lake = Lake.created(folder)
    return lake, add(lake, found, RedactionOptions(), **options)


def folder_of(lake: Lake) -> Path:
    return Path(lake.storage.location)


def paths(lake: Lake, table: str) -> list[Path]:
    """Return the files of a table in a lake that is a folder."""
    return [folder_of(lake) / file.name for file in lake.files(table)]


def content(lake: Lake) -> dict[str, list[str]]:
    """Return all rows, sorted, with their partitions."""
    import pyarrow.parquet as pq

    return {
        table: sorted(
            f"{path.parent.relative_to(folder_of(lake))} {row}"
            for path in paths(lake, table)
            for row in pq.ParquetFile(path).read().to_pylist()
        )
        for table in TABLES
    }


def items(session: Session) -> Iterator[tuple[str, int, ExchangeItem]]:
    """Yield the rows of a session by the code that `stats -q` tests: table, number, item."""
    for change in session.changes:
        what, exchange = change.what, change.exchange
        if exchange is not None and what is exchange.request:
            yield "exchanges", exchange.number, exchange_item(exchange, "request", has_words=False)
        elif isinstance(what, Notification):
            yield (
                "messages",
                change.number,
                ExchangeItem(
                    at=what.at,
                    side=what.side,
                    kind="notification",
                    method=what.method,
                    subject=what.subject or "",
                    size=len(what.data),
                    stream=what.frame.stream or "",
                    has_issue=bool(what.flaws or change.flaw),
                    data=what.data,
                ),
            )
