"""One adapter for each surface: it reads a recorded case and returns the outcomes and numbers of the surface, in common terms."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from prometheus_client.parser import text_string_to_metric_families

import mcpspy
from mcpspy.analysis import rows
from mcpspy.analysis.contract import Contract, check
from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity, DiffOptions
from mcpspy.analysis.diff.results import ComparisonContext, compare_steps
from mcpspy.analysis.diff.steps import SessionSteps
from mcpspy.analysis.explain import CAUSES, Explainer
from mcpspy.analysis.explain.claims import claims_of
from mcpspy.analysis.explain.symptoms import FailedRequest
from mcpspy.analysis.export import FORMATS
from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.otlp import SessionTelemetry
from mcpspy.analysis.export.otlp_spans import KIND_CLIENT, SpanContext, SpanData
from mcpspy.analysis.lake.schema import TABLES, StoredRecording
from mcpspy.analysis.lake.tables import SessionTables
from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.metrics import PrometheusMetrics, SessionMetrics
from mcpspy.core.intercept.held import LiveItem
from mcpspy.core.intercept.requests import AwaitedRequest
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.query.item import FilterItem
from mcpspy.core.query.parser import Query, QueryError, parse
from mcpspy.core.query.sessions import parse_sessions
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session import outcome
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.index import Index
from mcpspy.core.session.index_state import dump, restore
from mcpspy.core.session.outcome import SessionCounts
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.listed_session import ListedSession
from mcpspy.io.recording.reader import Recording, Summary, read_time
from mcpspy.io.recording.session_counts import count
from mcpspy.ui.agent.queries import FindArguments, ListArguments, find, list_sessions
from mcpspy.ui.agent.reports import StatsArguments, stats
from mcpspy.ui.agent.sessions import SessionStore
from mcpspy.ui.cli.main import main
from mcpspy.ui.model.filter_items import ChangeItem, exchange_item
from mcpspy.ui.model.row_filter import FilteredView, ViewOptions
from mcpspy.ui.model.session_loader import MergedLoader, SessionLoader
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.model.statistics import StatsModel
from mcpspy.ui.model.timeline import TimelineModel
from mcpspy.ui.tui.panels import timeline as timeline_panel
from mcpspy.ui.tui.session.labels import sentence, title
from mcpspy.ui.tui.sessions.session_list import session_row
from mcpspy.ui.views.extension import Extension
from mcpspy.ui.web.access import Access
from mcpspy.ui.web.runs import described
from mcpspy.ui.web.server import WebServer
from mcpspy.ui.web.session import WebSession
from tests.analysis.export.html import filters
from tests.outcomes.tape import FAILED, FINE, MEANINGS, OPEN, TERMS, UNANSWERED, Case, OutcomeClass

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


class Reading:
    """The outcomes and numbers that one surface shows. A member that it does not show is None."""

    def __init__(
        self,
        *,
        kinds: dict[str, OutcomeClass] | None = None,
        bad: dict[str, bool] | None = None,
        statuses: dict[str, str] | None = None,
        latencies: dict[str, float | None] | None = None,
        words: dict[str, str] | str | None = None,
        terms: dict[str, set[str]] | None = None,
        took: Sequence[float] | None = None,
        listed: set[str] | None = None,
        failures: str | None = None,
        errors_said: dict[str, str] | None = None,
        met: bool | None = None,
        causes: set[str] | None = None,
        is_partial: bool = False,
        **counts: int | None,
    ) -> None:
        self.kinds = kinds
        self.bad = bad
        """True for a request that is shown as bad: it failed, or is unanswered."""
        self.statuses = statuses
        self.latencies = latencies
        self.words = words
        """A text about each request, or one about all."""
        self.terms = terms
        """The filter terms that find each request."""
        self.took = took
        """The number of latencies in its statistics, and their sum."""
        self.listed = listed
        """The requests with their own place in a list, in which polls have none."""
        self.failures = failures
        """A text that names the failed requests."""
        self.errors_said = errors_said
        """The text of the error of each request."""
        self.met = met
        self.causes = causes
        self.is_partial = is_partial
        """True if it shows only some of the requests."""
        self.counts = {name: number for name, number in counts.items() if number is not None}


class Keys:
    """The keys of requests, in their order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, side: str, id_text: str) -> str:
        key = ("server:" if side == "server" else "") + id_text
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}#{self._seen[key]}"


class WebLists(NamedTuple):
    sessions: dict[str, dict[str, int]]
    """Name → counts."""
    runs: dict[str, dict[str, Any]]


class CaseFolder:
    """All cases as files of one folder, and what is read of all of them at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recorded: list[RecordedCase] = []

    def close(self) -> None:
        for each in self.recorded:
            each.close()

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(str(self.path))

    @cached_property
    def summaries(self) -> dict[Path, Summary]:
        return {each.path: each for each in sessions_of(self.catalog)}

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `mcpspy ls`, the heads of the columns first."""
        return run("ls", "--dir", str(self.path), "--count").splitlines()

    @cached_property
    def documents(self) -> dict[str, dict[str, Any]]:
        """The objects of `mcpspy ls --json` by path."""
        return {each["path"]: each for each in documents("ls", "--dir", str(self.path), "--count")}

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        return documents("runs", "--dir", str(self.path))

    @cached_property
    def listed(self) -> Callable[[str], set[str]]:
        """The paths that `mcpspy ls -q` lists with a filter."""
        return cache(
            lambda text: {each["path"] for each in documents("ls", "--dir", str(self.path), "-q", text)}
        )

    @cached_property
    def web(self) -> WebLists:
        """The lists of sessions and of runs, as the web server sends them."""

        async def read() -> WebLists:
            server = WebServer(str(self.path), Access())
            await server._scan()
            while not server._counts.work(server._sessions):
                continue
            listed = (ListedSession(each, server._catalog) for each in server._sessions)
            return WebLists(
                {each.summary.header.name: server._listed(each)["counts"] for each in listed},
                {
                    each.sessions[0].header.name: described(each, server._count, server._key)
                    for each in await server._found_runs()
                },
            )

        return asyncio.run(read())

    @cached_property
    def pages(self) -> dict[str, dict[str, Any]]:
        """The rows of the exported pages and the results of their filters, from one process of node."""
        shown = [each for each in self.recorded if not each.case.is_live]
        queries = ["is:error", "is:unanswered", *(f"status:{term}" for term in TERMS)]
        with filters.Pages([each.path for each in shown]) as pages:
            found = pages.rows(queries)
        return {
            each.case.name: {
                "data": json.loads(filters.blocks(each.path)["session"]),
                "found": dict(zip(queries, result, strict=True)),
            }
            for each, result in zip(shown, found, strict=True)
        }


class RecordedCase:
    """A case as a file, and what several surfaces need of it, made once."""

    def __init__(self, case: Case, path: Path, folder: CaseFolder) -> None:
        self.case = case
        self.path = path
        self.folder = folder

    @cached_property
    def session(self) -> Session:
        recording = Recording(self.path)
        session = Session(recording.header).add_all(recording)
        if not self.case.is_live:
            session.end()
        return session

    @cached_property
    def keys(self) -> dict[int, str]:
        """Number of an exchange → key."""
        key = Keys()
        return {each.number: key(each.request.side, each.request.id) for each in self.session.exchanges}

    @cached_property
    def exported(self) -> RecordedSession:
        header = self.session.header
        assert header is not None
        return RecordedSession(
            header, header.name, self.session.changes, lambda _: True, is_live=self.case.is_live
        )

    def export(self, name: str) -> str:
        return "".join(FORMATS[name].exporter()([self.exported]))

    @cached_property
    def summary(self) -> Summary:
        return self.folder.summaries[self.path]

    @cached_property
    def loader(self) -> SessionLoader:
        async def read() -> SessionLoader:
            loader = SessionLoader(self.summary)
            loader.uses_cache = False
            if self.case.is_live:  # It would wait for more.
                loader.model.add_lines(list(self.lines), self.header_size)
                loader.lines.begin_part(self.path)
            else:
                await asyncio.wait_for(loader.read(), 30)
            return loader

        return asyncio.run(read())

    def close(self) -> None:
        if "loader" in self.__dict__:
            self.loader.close()

    @property
    def model(self) -> SessionModel:
        return self.loader.model

    @property
    def lines(self) -> Sequence[bytes]:
        return self.case.lines

    @property
    def header_size(self) -> int:
        return self.path.read_bytes().index(b"\n") + 1

    @cached_property
    def row_keys(self) -> dict[int, str]:
        """Row of a request → key."""
        index, key = self.model.index, Keys()
        return {row: key(index.side(row), index.id(row) or "null") for row in request_rows(index)}

    @cached_property
    def counts(self) -> SessionCounts:
        return count(self.summary)

    def run(self, *arguments: str) -> str:
        """Run a command in this process; return its output."""
        return run(*arguments)

    @cached_property
    def page(self) -> dict[str, Any]:
        """The rows of the exported page, and the results of its filters."""
        return self.folder.pages[self.case.name]


def run(*arguments: str) -> str:
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        main([*arguments])
    text.flush()
    return raw.getvalue().decode()


def documents(*arguments: str) -> list[dict[str, Any]]:
    """Return the objects that a command prints with `--json`."""
    return [orjson.loads(line) for line in run(*arguments, "--json").splitlines()]


def request_rows(index: Index) -> Iterator[int]:
    return (
        row for row in range(len(index)) if index.kind(row) is RowKind.REQUEST and index.request(row) == row
    )


def counted(text: str, pattern: str) -> int:
    """Return the number before some words in a text; 0 if they are missing."""
    found = re.search(rf"([\d,]+) (?:{pattern})", text)
    return int(found[1].replace(",", "")) if found is not None else 0


# The core.


def session(recorded: RecordedCase) -> Reading:
    return of_exchanges(recorded.session)


def streaming(recorded: RecordedCase) -> Reading:
    """Read a session that keeps only what is open, as `explain`, `export --format csv` and telemetry do."""
    passing, exchanges = StreamingSession(recorded.session.header), dict[int, Exchange]()
    for line in recorded.lines:
        for change in passing.add(read_entry(line)):
            if change.exchange is not None:
                exchanges.setdefault(change.exchange.number, change.exchange)
    if not recorded.case.is_live:
        passing.end()
    key = Keys()
    keys = [(key(each.request.side, each.request.id), each) for each in exchanges.values()]
    return Reading(
        statuses={name: str(each.state) for name, each in keys},
        latencies={name: each.latency for name, each in keys},
    )


def of_exchanges(found: Session) -> Reading:
    key = Keys()
    keys = [(key(each.request.side, each.request.id), each) for each in found.exchanges]
    reading = of_counts(found.counts)
    reading.statuses = {name: str(each.state) for name, each in keys}
    reading.latencies = {name: each.latency for name, each in keys}
    return reading


def index(recorded: RecordedCase) -> Reading:
    return of_index(recorded.model.index)


def of_index(columns: Index) -> Reading:
    key, reading = Keys(), of_counts(columns.counts)
    found = [(key(columns.side(row), columns.id(row) or "null"), row) for row in request_rows(columns)]
    reading.statuses = {name: columns.status(row) for name, row in found}
    reading.latencies = {name: columns.latency(row) for name, row in found}
    return reading


def cached_index(recorded: RecordedCase) -> Reading:
    """Read an index that was stored in the middle of the session and restored."""
    lines, middle = list(recorded.lines), len(recorded.lines) // 2
    first, second = Index(recorded.session.header), Index(recorded.session.header)
    offset = first.add_lines(lines[:middle], 0)
    restore(second, b"".join(map(bytes, dump(first))))
    second.add_lines(lines[middle:], offset)
    if not recorded.case.is_live:
        second.end()
    return of_index(second)


def session_counts(recorded: RecordedCase) -> Reading:
    return of_counts(recorded.counts)


def of_counts(counts: SessionCounts | dict[str, int]) -> Reading:
    members = counts if isinstance(counts, dict) else counts._asdict()
    return Reading(
        errors=members["errors"],
        unanswered=members["unanswered"],
        pending=members["pending"],
        issues=members["issues"],
        injected=members.get("injected"),
    )


# The filter language.


def found_by(text: str, items: Sequence[tuple[str, FilterItem]]) -> set[str]:
    """Return the keys of the items that a filter finds; none if it refuses the filter."""
    query = query_of(text)
    return set() if query is None else {name for name, item in items if query.matches(item)}


def query_of(text: str) -> Query | None:
    try:
        return parse(text)
    except QueryError:
        return None


def terms_of(find: Callable[[str], set[str]], keys: Sequence[str]) -> dict[str, set[str]]:
    """Return the values of `status:` that find each request."""
    found: dict[str, set[str]] = {key: set() for key in keys}
    for term in TERMS:
        for key in find(f"status:{term}"):
            if key in found:
                found[key].add(term)
    return found


def view(recorded: RecordedCase, text: str, *, exchanges: bool) -> list[int]:
    """Return the rows that a filter shows in the terminal UI and on the page."""
    query = query_of(text)
    if query is None:
        return []
    found = FilteredView(recorded.model, ViewOptions(exchanges=exchanges, http=True, query=query))
    found.advance(lambda: True)
    return [*found.rows]


def query_by_exchange(recorded: RecordedCase) -> Reading:
    def of(text: str) -> set[str]:
        return {
            recorded.row_keys[row] for row in view(recorded, text, exchanges=True) if row in recorded.row_keys
        }

    return Reading(
        listed=of(""),
        terms=terms_of(of, [*recorded.row_keys.values()]),
        errors=len(view(recorded, "is:error", exchanges=True)),
        unanswered=len(view(recorded, "is:unanswered", exchanges=True)),
    )


def query_by_message(recorded: RecordedCase) -> Reading:
    return Reading(
        errors=len(view(recorded, "is:error", exchanges=False)),
        unanswered=len(view(recorded, "is:unanswered", exchanges=False)),
        issues=len(view(recorded, "is:issue", exchanges=False)),
    )


def query_of_show(recorded: RecordedCase) -> Reading:
    """Read the filter of `mcpspy show`, which tests one message at a time."""
    changes = recorded.session.changes

    def number(text: str) -> int:
        query = query_of(text)
        assert query is not None
        return sum(query.matches(ChangeItem(each, changes=changes)) for each in changes)

    return Reading(errors=number("is:error"), unanswered=number("is:unanswered"), issues=number("is:issue"))


def query_of_exports(recorded: RecordedCase) -> Reading:
    """Read the filter of exports, the API and the agent's tools, which tests whole exchanges."""
    items = [(recorded.keys[each.number], exchange_item(each)) for each in recorded.session.exchanges]
    return Reading(terms=terms_of(lambda text: found_by(text, items), [name for name, _ in items]))


# Rows.


def message_rows(recorded: RecordedCase) -> Reading:
    changes = recorded.session.changes
    return Reading(words="\n".join(" ".join(rows.row(change)) for change in changes))


def exchange_rows(recorded: RecordedCase) -> Reading:
    keys = recorded.keys
    found = {
        keys[change.exchange.number]: rows.exchange_row(change, (0, None), recorded.session.last_at)
        for change in recorded.session.changes
        if change.exchange is not None and change.what is change.exchange.request
    }
    return of_rows(found)


def of_rows(found: dict[str, rows.Row]) -> Reading:
    return Reading(
        bad={key: row.tone == rows.BAD for key, row in found.items()},
        words={key: f"{row.status} {row.latency}" for key, row in found.items()},
    )


# `mcpspy show`.


def show_text(recorded: RecordedCase) -> Reading:
    text = recorded.run("show", str(recorded.path))
    summary = text.rpartition("\n\n")[2]
    return Reading(
        words=text,
        errors=counted(summary, "failed|errors?"),
        unanswered=counted(summary, "unanswered"),
        issues=counted(summary, "protocol issues?"),
        injected=counted(summary, "injected") if "injected" in summary else None,
    )


def show_json(recorded: RecordedCase) -> Reading:
    found = [orjson.loads(line) for line in recorded.run("show", str(recorded.path), "--json").splitlines()]
    # A request that was sent again, after a redirect, has a second line, of the same exchange.
    requests = [
        each for each in found if each["kind"] == "request" and each.get("request_n", each["n"]) == each["n"]
    ]
    key = Keys()
    named = [(key(each["from"], json.dumps(each["id"])), each) for each in requests]
    return Reading(
        statuses={name: each["status"] for name, each in named if "status" in each},
        latencies={name: seconds(each.get("latency_ms")) for name, each in named if "status" in each},
    )


def seconds(milliseconds: float | str | None) -> float | None:
    return None if milliseconds in (None, "") else float(milliseconds) / 1000


# The terminal UI.


def tui_title(recorded: RecordedCase) -> Reading:
    left, right = title(recorded.loader, FilteredView(recorded.model, ViewOptions()), 1000)
    text = "".join(text for text, _ in (*left, *right))
    return Reading(
        errors=counted(text, "errors?"),
        unanswered=counted(text, "unanswered"),
        issues=counted(text, "protocol issues?"),
        pending=counted(text, "pending"),
        injected=counted(text, "injected") if "injected" in text else None,
    )


def tui_sentence(recorded: RecordedCase) -> Reading:
    text, _ = sentence(recorded.loader)
    return Reading(unanswered=counted(text, "unanswered"))


def tui_rows(recorded: RecordedCase) -> Reading:
    columns = recorded.model.index
    found = {}
    for row, key in recorded.row_keys.items():
        answer = columns.pair(row)
        sizes = columns.size[row], None if answer is None else columns.size[answer]
        found[key] = rows.exchange_row(recorded.model.shown(row), sizes, columns.last_at)
    return of_rows(found)


def tui_statistics(recorded: RecordedCase) -> Reading:
    numbers = StatsModel(recorded.model)
    while numbers.is_behind:
        numbers.advance(lambda: True)
    totals = numbers.totals.values()
    return Reading(
        errors=sum(total.errors for total in totals) + recorded_strays(recorded),
        unanswered=sum(getattr(total, "unanswered", -1000) for total in totals),
        pending=sum(total.pending for total in totals),
        took=[
            sum(total.answers for total in totals),
            sum(group.took.times().total for total in totals for group in total.counted),
        ],
    )


def recorded_strays(recorded: RecordedCase) -> int:
    """Return the number of error responses that settle no request: a group of requests has none of them."""
    failed = sum(each.kind is FAILED and not each.is_injected for each in recorded.case.operations)
    return recorded.case.errors - failed


def tui_timeline(recorded: RecordedCase) -> Reading:
    screen = timeline_panel.TimelineScreen(recorded.model)
    while screen.timeline.is_behind:
        screen.timeline.advance(lambda: True)
    found = {
        recorded.row_keys[row]: screen._reason(row)
        for row in screen.timeline.rows
        if row in recorded.row_keys
    }
    return Reading(bad={key: bool(reason) for key, reason in found.items()})


def tui_list(recorded: RecordedCase) -> Reading:
    row = session_row(recorded.summary, recorded.counts, NOW)._asdict()
    return Reading(
        errors=int(row["errors"]),
        issues=int(row["issues"]),
        pending=int(row["pending"] or 0),
        unanswered=int(row.get("unanswered", -1)),
    )


def merged_model(*recorded: RecordedCase) -> SessionModel:
    """Return the model of a run that consists of these sessions."""

    async def read() -> SessionModel:
        with contextlib.closing(MergedLoader([each.summary for each in recorded])) as loader:
            await asyncio.wait_for(loader.read(), 60)
            return loader.model

    return asyncio.run(read())


def tui_tracks(recorded: RecordedCase) -> Reading:
    timeline = TimelineModel(merged_model(recorded))
    while timeline.is_behind:
        timeline.advance(lambda: True)
    label = " ".join(timeline_panel.track_label(track) for track in timeline.tracks)
    return Reading(
        errors=counted(label, "errors?") + recorded_strays(recorded), unanswered=counted(label, "unanswered")
    )


# The web page.


class Page(NamedTuple):
    facts: dict[str, Any]
    rows: list[dict[str, Any]]
    timeline: dict[str, Any]


def web_page(recorded: RecordedCase) -> Page:
    async def read() -> Page:
        session = WebSession([recorded.summary], Extension())
        try:
            await asyncio.wait_for(session._task, 30)
            shown = await session.view(parse(""))
            found = [session.row(row) for row in session.window(shown, 0, 500)]
            return Page(session.facts(), found, await session.timeline(shown, {"parts": "1"}))
        finally:
            await session.close()

    return asyncio.run(read())


def web_facts(recorded: RecordedCase) -> Reading:
    return of_counts(
        {name: number for name, number in web_page(recorded).facts.items() if isinstance(number, int)}
    )


def of_page_rows(found: list[dict[str, Any]]) -> Reading:
    key = Keys()
    requests = sorted((row for row in found if row["kind"] == "request"), key=lambda row: row["number"])
    named = [(key(row["side"], row["id"]), row) for row in requests]
    return Reading(
        bad={name: row["tone"] == rows.BAD for name, row in named},
        statuses={name: row["state"] for name, row in named},
        latencies={name: row["latency"] for name, row in named},
        words={name: row["status"] for name, row in named},
    )


def web_rows(recorded: RecordedCase) -> Reading:
    reading = of_page_rows(web_page(recorded).rows)
    reading.listed = {*reading.statuses} if reading.statuses else set()
    return reading


BAR_ROW, BAR_TONE, BAR_STATE = 0, 4, 7


def web_timeline(recorded: RecordedCase) -> Reading:
    found = web_page(recorded).timeline
    keys = {row + 1: key for row, key in recorded.row_keys.items()}
    bars = {keys[bar[BAR_ROW]]: bar for bar in found["bars"] if bar[BAR_ROW] in keys}
    (track,) = found["tracks"]
    return Reading(
        bad={key: bar[BAR_TONE] == rows.BAD for key, bar in bars.items()},
        statuses={key: bar[BAR_STATE] for key, bar in bars.items()},
        errors=sum(track["failed"]) + recorded_strays(recorded),
        unanswered=sum(track.get("unanswered", [-1000])),
    )


def web_list(recorded: RecordedCase) -> Reading:
    return of_counts(recorded.folder.web.sessions[recorded.summary.header.name])


def web_runs(recorded: RecordedCase) -> Reading:
    own = recorded.folder.web.runs[recorded.summary.header.name]
    return Reading(errors=own["errors"], unanswered=own.get("unanswered", -1))


# Lists of sessions.


def ls_text(recorded: RecordedCase) -> Reading:
    header = recorded.session.header
    assert header is not None
    head, line = recorded.folder.lines[0], next(each for each in recorded.folder.lines if header.id in each)
    in_state = counted(line, "unanswered")
    return Reading(
        unanswered=in_state or cell(head, line, "unanswered") or 0,
        errors=cell(head, line, "errors"),
        pending=cell(head, line, "pending"),
        issues=cell(head, line, "issues"),
    )


def cell(head: str, line: str, name: str) -> int | None:
    """Return the number of a column of a table; the last columns are numbers, aligned to the right."""
    if name not in head.split():
        return None
    place = len(head.split()) - head.split().index(name)
    return int(line.split()[-place])


def ls_json(recorded: RecordedCase) -> Reading:
    return of_counts(recorded.folder.documents[str(recorded.path)])


def ls_filter(recorded: RecordedCase) -> Reading:
    item = ListedSession(recorded.summary, recorded.folder.catalog).item()

    def number(name: str) -> int:
        """Return the number N for which the filter `NAME=N` finds the session."""
        return next(
            each
            for each in range(100)
            if parse_sessions(f"{name}={each}", lambda: 0.0, read_time).matches(item)
        )

    counts = {name: number(name) for name in ("errors", "unanswered", "issues", "pending")}
    for name in ("errors", "unanswered", "issues"):
        assert (str(recorded.path) in recorded.folder.listed(f"{name}>0")) == (counts[name] > 0)
    return Reading(
        errors=counts["errors"],
        unanswered=counts["unanswered"],
        issues=counts["issues"],
        pending=counts["pending"],
    )


def runs(recorded: RecordedCase) -> Reading:
    (own,) = (each for each in recorded.folder.runs if each["sessions"][0]["path"] == str(recorded.path))
    return Reading(errors=own["errors"], unanswered=own.get("unanswered", -1))


# Statistics.


def stats_json(recorded: RecordedCase) -> Reading:
    found = orjson.loads(recorded.run("stats", str(recorded.path), "--json"))
    sides = found["requests"].values()
    return Reading(
        errors=sum(side["errors"] for side in sides) + found["stray_errors"],
        unanswered=sum(side.get("unanswered", -1000) for side in sides),
        pending=len(found["waiting"]),
        injected=found.get("injected"),
        took=[sum((side["latency"] or {}).get(name, 0) for side in sides) for name in ("count", "total")],
    )


def stats_text(recorded: RecordedCase) -> Reading:
    text = recorded.run("stats", str(recorded.path))
    facts = text.partition("\nrequests ")[2].partition("\ninitialize ")[0]
    numbers: Counter[OutcomeClass] = Counter()
    for number, state in re.findall(r"(\d+) ([a-z][a-z ]*)", facts, re.IGNORECASE):
        if state != "apart":
            numbers[MEANINGS[state].kind] += int(number)
    return Reading(
        errors=numbers[FAILED] + counted(text, "errors that settle no request"),
        unanswered=numbers[UNANSWERED],
        pending=numbers[OPEN],
    )


def stats_filter(recorded: RecordedCase) -> Reading:
    def number(text: str) -> int:
        found = orjson.loads(recorded.run("stats", str(recorded.path), "-q", text, "--json"))
        return sum(side["count"] for side in found["requests"].values())

    return Reading(errors=number("is:error") + recorded_strays(recorded), unanswered=number("is:unanswered"))


# Checks and causes.


def check_no_errors(recorded: RecordedCase) -> Reading:
    (found,) = check(recorded.session, Contract(no_errors=True))
    return Reading(met=found.is_met)


def explain_claims(recorded: RecordedCase) -> Reading:
    """Read which requests the causes and observations explain: each that failed or is unanswered, and once."""
    header = recorded.session.header
    assert header is not None
    explainer = Explainer(header)
    for number, line in enumerate(recorded.lines, 2):
        explainer.add(read_entry(line), EntryPosition(number))
    explainer.end()
    claims = claims_of(explainer.facts, CAUSES)
    requests = [each for claim in claims for each in claim.symptoms if isinstance(each, FailedRequest)]
    return Reading(
        causes={claim.code for claim in claims},
        errors=sum(each.count for each in requests if each.state in outcome.FAILED)
        + recorded_strays(recorded),
        unanswered=sum(each.count for each in requests if each.state in outcome.UNANSWERED),
    )


# The lake.


STORED = StoredRecording("key", "digest", "file://host/a.jsonl", 100, "ended", True)


def lake(recorded: RecordedCase) -> Reading:
    tables = SessionTables(recorded.session, [], STORED)
    found = {
        table: [
            dict(zip((column.name for column in columns), row, strict=True)) for row in tables.rows(table)
        ]
        for table, columns in TABLES.items()
    }
    (whole,) = found["sessions"]
    key = Keys()
    named = [(key(row["side"], row["id"]), row) for row in found["exchanges"]]
    return Reading(
        statuses={name: row["status"] for name, row in named},
        latencies={name: seconds(row["latency_ms"]) for name, row in named},
        errors=whole["errors"],
        unanswered=whole["unanswered"],
        injected=whole.get("injected"),
    )


# Telemetry.


def metrics(recorded: RecordedCase) -> Reading:
    header = recorded.session.header
    assert header is not None
    found = PrometheusMetrics()
    one = SessionMetrics(found, header)
    for line in recorded.lines:
        one.add(read_entry(line))
    one.end(is_over=not recorded.case.is_live)
    samples = [
        sample
        for family in text_string_to_metric_families(found.text().decode())
        for sample in family.samples
    ]
    numbers = Counter[str]()
    for sample in samples:
        numbers[sample.name] += sample.value  # type: ignore[assignment]
    return Reading(
        errors=int(numbers["mcpspy_errors_total"]),
        unanswered=int(numbers["mcpspy_requests_unanswered_total"]),
        injected=int(numbers["mcpspy_messages_injected_total"]),
        took=[numbers[COUNT], numbers[SUM]],
    )


DURATION = "mcp_client_operation_duration_seconds"
COUNT, SUM = f"{DURATION}_count", f"{DURATION}_sum"

NEITHER = ("", "cancelled", "dropped", "abandoned", "closed", "unknown", "input_required")
"""Values of `error.type` of requests that neither failed nor are unanswered."""
NO_RESPONSE = ("no_answer", "redirected", "incomplete", "not_continued", "task_not_finished")


def of_error_types(types: Counter[str], recorded: RecordedCase) -> Reading:
    """Return the counts of `error.type`: of requests, so without errors that settled none."""
    unanswered = sum(number for name, number in types.items() if name in NO_RESPONSE)
    neither = sum(number for name, number in types.items() if name in NEITHER)
    return Reading(
        errors=types.total() - unanswered - neither + recorded_strays(recorded), unanswered=unanswered
    )


def of_spans(spans: Sequence[SpanData], recorded: RecordedCase) -> Reading:
    """Return the outcomes of the spans of requests; a request without a span is open."""
    kinds, words, key = {}, {}, Keys()
    for span in sorted((each for each in spans if each.kind == KIND_CLIENT), key=lambda each: each.start):
        id_text = str(span.attributes.get("jsonrpc.request.id", ""))
        if not id_text:
            continue
        name = key(span.side, id_text if id_text.isdigit() else json.dumps(id_text))
        kind = str(span.attributes.get("error.type", ""))
        kinds[name] = FINE if kind in NEITHER else UNANSWERED if kind in NO_RESPONSE else FAILED
        words[name] = f"{kind} {span.error or ''}"
    for each in recorded.case.operations:
        kinds.setdefault(each.key, OPEN)
    return Reading(listed={*words}, kinds=kinds, errors_said=words)


def otlp(recorded: RecordedCase) -> Reading:
    found = json.loads(recorded.export("otlp"))
    spans = [
        SpanData(
            "server" if is_servers(resource) else "client",
            span["name"],
            span["kind"],
            span["spanId"],
            SpanContext(""),
            int(span["startTimeUnixNano"]),
            int(span["endTimeUnixNano"]),
            {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]},
            span.get("status", {}).get("message", "") if "status" in span else None,
        )
        for resource in found["resourceSpans"]
        for span in resource["scopeSpans"][0]["spans"]
    ]
    return of_spans(spans, recorded)


def is_servers(resource: dict[str, Any]) -> bool:
    names = {each["key"]: each["value"] for each in resource["resource"]["attributes"]}
    return "server" in names["service.name"].get("stringValue", "")


def telemetry(recorded: RecordedCase) -> Reading:
    """Read the spans of a session that is followed, and the durations by `error.type`."""
    header = recorded.session.header
    assert header is not None
    live, spans = SessionTelemetry(header), []
    for line in recorded.lines:
        spans += [each for each in live.add(read_entry(line)) if isinstance(each, SpanData)]
    if not recorded.case.is_live:
        spans += [each for each in live.end() if isinstance(each, SpanData)]
    return of_spans(spans, recorded)


def telemetry_metrics(recorded: RecordedCase) -> Reading:
    header = recorded.session.header
    assert header is not None
    live = SessionTelemetry(header)
    for line in recorded.lines:
        for _ in live.add(read_entry(line)):
            pass
    if not recorded.case.is_live:
        for _ in live.end():
            pass
    types: Counter[str] = Counter()
    for each in live.metrics():
        if each.metric == "mcp.client.operation.duration":
            types[str(each.attributes.get("error.type", ""))] += sum(each.counts)
    return of_error_types(types, recorded)


# Exports.


def export_csv(recorded: RecordedCase) -> Reading:
    found, key = list(csv.DictReader(io.StringIO(recorded.export("csv")))), Keys()
    named = [(key(row["from"], row["id"]), row) for row in found]
    return Reading(
        statuses={name: row["status"] for name, row in named},
        latencies={name: seconds(row["latency_ms"]) for name, row in named},
        words={name: f"{row['outcome']} {row['error_message']}" for name, row in named},
    )


def export_jsonl(recorded: RecordedCase) -> Reading:
    found, key = [orjson.loads(line) for line in recorded.export("jsonl").splitlines()], Keys()
    named = [(key(row["from"], json.dumps(row["id"])), row) for row in found]
    return Reading(
        statuses={name: row["status"] for name, row in named},
        latencies={name: seconds(row["latency_ms"]) for name, row in named},
    )


def export_har(recorded: RecordedCase) -> Reading:
    entries = json.loads(recorded.export("har"))["log"]["entries"]
    return Reading(words="\n".join(json.dumps(each, ensure_ascii=False) for each in entries))


def exported_rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an exported page by the names of their members."""
    return [dict(zip(data["members"], row, strict=True)) for row in data["rows"]]


def export_html(recorded: RecordedCase) -> Reading:
    data = recorded.page["data"]
    reading = of_page_rows(exported_rows(data))
    counts = data["facts"]["counts"]
    reading.counts = {
        name: counts[name] for name in ("errors", "unanswered", "issues", "injected") if name in counts
    }
    return reading


def export_html_filter(recorded: RecordedCase) -> Reading:
    """Read the filter of the exported page, which is JavaScript."""
    data, found = recorded.page["data"], recorded.page["found"]
    key = Keys()
    requests = sorted(
        (row for row in exported_rows(data) if row["kind"] == "request"), key=lambda row: row["number"]
    )
    keys = {row["number"]: key(row["side"], row["id"]) for row in requests}

    def matching(text: str) -> set[str]:
        numbers = found[text]
        return set() if isinstance(numbers, str) else {keys[number] for number in numbers if number in keys}

    return Reading(
        terms=terms_of(matching, [*keys.values()]),
        errors=len(found["is:error"]),
        unanswered=len(found["is:unanswered"]),
    )


def export_markdown(recorded: RecordedCase) -> Reading:
    return Reading(words=recorded.export("markdown"))


def export_mermaid(recorded: RecordedCase) -> Reading:
    """Read the arrows of failures, which end with a cross."""
    text = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), recorded.export("mermaid"))
    return Reading(failures="\n".join(line for line in text.splitlines() if "--x" in line))


def diff(recorded: RecordedCase) -> Reading:
    """Compare each request with the same one that succeeded: an error is its outcome.

    A request that continues another one belongs to its step; one that mcpspy kept back, or that is open, has no
    result either.
    """
    bad = {}
    kinds = {each.key: each.kind for each in recorded.case.operations}
    exchanges: dict[int | None, Exchange] = {each.number: each for each in recorded.session.exchanges}
    for step in SessionSteps(recorded.session).steps:
        exchange = exchanges[step.position.exchange]
        key = recorded.keys.get(exchange.number, "")
        if (
            exchange.continued_by is not None
            or outcome.of(step.state).is_withheld
            or kinds.get(key) in (None, OPEN)
        ):
            continue
        good = copy(step)
        good.state, good.error, good.results = State.OK, None, [b"{}"]
        changes = [*compare_steps(good, step, ComparisonContext(DiffOptions()), is_exact=True)]
        bad[key] = any(
            change.kind is ChangeKind.ERROR and change.severity is ChangeSeverity.BREAKING
            for change in changes
        )
    return Reading(bad=bad, is_partial=True)


# The API and the tools of agents.


def api(recorded: RecordedCase) -> Reading:
    found, key = mcpspy.read(recorded.path), Keys()
    named = [(key(each.side, json.dumps(each.id)), each) for each in found.exchanges]
    return Reading(
        statuses={name: each.status for name, each in named},
        latencies={name: each.latency for name, each in named},
    )


def api_filter(recorded: RecordedCase) -> Reading:
    found = mcpspy.read(recorded.path)

    def matching(text: str) -> set[str]:
        try:
            chosen = {each.number for each in found.filter(text).exchanges}
        except mcpspy.McpspyError:
            return set()
        return {key for number, key in recorded.keys.items() if number in chosen}

    return Reading(terms=terms_of(matching, [*recorded.keys.values()]))


def agent_list(recorded: RecordedCase) -> Reading:
    header = recorded.session.header
    assert header is not None
    with contextlib.closing(SessionStore(str(recorded.path.parent))) as store:
        answer = list_sessions(store, ListArguments(filter=f'name="{header.name}"'))
        (text,) = (block.text for block in answer.blocks)
    return Reading(errors=counted(text, "errors?"), unanswered=counted(text, "unanswered"))


def agent_find(recorded: RecordedCase) -> Reading:
    def number(text: str) -> int:
        answer = find(store, FindArguments(filter=text, sessions=[str(recorded.path)], max_tokens=20000))
        return int(answer.facts.matches)  # type: ignore[attr-defined]

    with contextlib.closing(SessionStore(str(recorded.path.parent))) as store:
        every = find(store, FindArguments(sessions=[str(recorded.path)], max_tokens=20000))
        return Reading(
            words="\n".join(block.text for block in every.blocks),
            errors=number("is:error"),
            unanswered=number("is:unanswered"),
        )


def agent_stats(recorded: RecordedCase) -> Reading:
    with contextlib.closing(SessionStore(str(recorded.path.parent))) as store:
        facts: Any = stats(store, StatsArguments(session=str(recorded.path))).facts
    return Reading(errors=facts.errors, unanswered=facts.unanswered)


# Rules.


def rules(recorded: RecordedCase) -> Reading:
    """Read what a rule with `status:error` matches: it sees one response and its request, when it arrives."""
    query, kinds = parse("status:error"), {}
    settled = {each.key for each in recorded.case.operations if each.kind in (FINE, FAILED)}
    for change in recorded.session.changes:
        what, exchange = change.what, change.exchange
        if exchange is None or not isinstance(what, Result | Failure) or what is not exchange.answer:
            continue
        if (isinstance(what, Result) and what.is_task) or (
            key := recorded.keys[exchange.number]
        ) not in settled:
            continue
        awaited = AwaitedRequest(exchange.request, None, keep=False)
        kinds[key] = FAILED if query.matches(LiveItem(what, awaited)) else FINE
    return Reading(kinds=kinds, is_partial=True)


class Surface(NamedTuple):
    read: Callable[[RecordedCase], Reading]
    is_of_live: bool = True
    """True if it shows sessions that are still being recorded."""


SURFACES = {
    "session": Surface(session),
    "streaming session": Surface(streaming),
    "index": Surface(index),
    "cached index": Surface(cached_index),
    "counts of a session": Surface(session_counts),
    "query, one row per exchange": Surface(query_by_exchange),
    "query, one row per message": Surface(query_by_message),
    "query of show": Surface(query_of_show),
    "query of exports": Surface(query_of_exports),
    "message rows": Surface(message_rows),
    "exchange rows": Surface(exchange_rows),
    "show": Surface(show_text, False),
    "show --json": Surface(show_json, False),
    "tui: title": Surface(tui_title),
    "tui: sentence": Surface(tui_sentence, False),
    "tui: rows": Surface(tui_rows),
    "tui: statistics": Surface(tui_statistics),
    "tui: timeline": Surface(tui_timeline),
    "tui: tracks": Surface(tui_tracks, False),
    "tui: list of sessions": Surface(tui_list),
    "web: facts": Surface(web_facts, False),
    "web: rows": Surface(web_rows, False),
    "web: timeline": Surface(web_timeline, False),
    "web: list of sessions": Surface(web_list),
    "web: list of runs": Surface(web_runs),
    "ls": Surface(ls_text),
    "ls --json": Surface(ls_json),
    "ls -q": Surface(ls_filter),
    "runs": Surface(runs),
    "stats": Surface(stats_text),
    "stats --json": Surface(stats_json),
    "stats -q": Surface(stats_filter),
    "check --no-errors": Surface(check_no_errors, False),
    "explain": Surface(explain_claims, False),
    "lake": Surface(lake, False),
    "metrics": Surface(metrics),
    "otlp": Surface(otlp),
    "telemetry: spans": Surface(telemetry),
    "telemetry: metrics": Surface(telemetry_metrics),
    "csv": Surface(export_csv),
    "jsonl": Surface(export_jsonl),
    "har": Surface(export_har),
    "html": Surface(export_html, False),
    "html: filter": Surface(export_html_filter, False),
    "markdown": Surface(export_markdown),
    "diff": Surface(diff),
    "mermaid": Surface(export_mermaid),
    "api": Surface(api, False),
    "api: filter": Surface(api_filter, False),
    "agent: list_sessions": Surface(agent_list),
    "agent: find": Surface(agent_find),
    "agent: stats": Surface(agent_stats),
    "rules": Surface(rules, False),
}
