"""The process that replays a session for a viewer: plays, judges, and keeps the new session.

`ReplayEngine` answers orders until its viewer ends. Events and orders name requests by the number of their exchange
in the session that is replayed. The new session is in a temporary folder until the viewer saves it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import UNSET
from msgspec.json import encode

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    SessionDiff,
    compare_chosen,
    ignored,
)
from mcpspy.analysis.diff.model import ignore_pattern
from mcpspy.core.jsontools import replaced
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Note
from mcpspy.core.recording.origin import REPLAY
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.replay.player import Player
from mcpspy.core.replay.subset import reduced
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.engine import Engine, EngineViewer, serve
from mcpspy.io.recording.atomic import Replacement, save
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import ReplayOptions, ReplayRun, play
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.model.replayed import compared, diff_options, prepare_replay
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.explanation import explain

PART = 500
"""Steps of one event."""

SLICE = 50
"""Responses that are judged again between two turns of the event loop."""

LARGEST = 1 << 20
"""Bytes of a message that are shown; the rest is in the recording."""

MOST_CHANGES = 200
"""Changes of one response that are listed."""

VALUE = 120
"""Columns of a value in the list of changes."""


class ReplayEngine(Engine):
    """One replay, and its results until the viewer ends. It is the watcher of the run."""

    def __init__(self, viewer: EngineViewer, folder: str) -> None:
        super().__init__(viewer)
        config = viewer.config
        self._path = Path(config["path"])
        self._rows: list[int] | None = config.get("rows")
        self._sessions: str | None = config.get("folder")
        self._options = diff_options(config)
        self._patterns: list[str] = list(config.get("ignored", ()))
        self._pauses_at_difference = config.get("pause") == "different"
        self._allowed = 0 if config.get("pause") == "start" else None
        """The number of requests that the first player may send: an order may come before it."""
        self._where = RecordingTarget()
        self._where.origin = REPLAY
        self._where.record = folder
        self._recorded: Session
        self._warnings: list[str] = []
        """About lines of the recording that cannot be read."""
        self._session: Session | None = None
        """The new session."""
        self._player: Player | None = None
        self._wake: Callable[[], None] = lambda: None
        self._read = 0
        """Number of exchanges of the new session whose recorded ones are known."""
        self._live: dict[int, Exchange] = {}
        """Number of a recorded exchange → the exchange that repeats it."""
        self._cases: dict[int, ComparedCase] = {}
        self._changed_by_user: set[int] = set()
        """Requests that were edited, or sent again."""
        self._run: ReplayRun | None = None
        self._difference: SessionDiff | None = None
        self._state: dict[str, Any] = {}
        self._is_stopped = False

    # The run.

    async def _play(self) -> None:
        try:
            config = self._viewer.config
            prepared = await asyncio.to_thread(prepare_replay, config, self._where, self)
            self._recorded, self._warnings, options = prepared
            self._announce(options)
            played: list[ReplayRun] = []
            try:
                await play(options, self._where, played)
            finally:
                self._run = played[0] if played else None
        except McpspyError as error:
            await self._fail(sanitize(redacted_text(str(error.args[0]))), error.hint)
            return
        run = self._run
        assert run is not None
        await self.looked()
        self._player = None
        if run.failed is not None:
            await self._fail(sanitize(run.failed), "", run)
            return
        await self._compare()
        for warning in dict.fromkeys(run.warnings):
            self._viewer.send("warning", text=sanitize(warning))
        cause = await self._cause() if run.stopped is not None and not self._is_stopped else []
        self._viewer.send(
            "ended",
            stopped=None if run.stopped is None else sanitize(run.stopped),
            unsent=run.unsent,
            cause=cause,
            stderr=[sanitize(line) for line in run.last_words] if cause else [],
        )

    def _announce(self, options: ReplayOptions) -> None:
        """Tell the viewer the steps, in the order in which they are sent."""
        requests = [exchange for plan in options.plans for exchange in plan.requests]
        rows = [
            [
                each.number,
                sanitize(f"{each.request.method} {each.request.subject or ''}".rstrip()),
                each.latency,
            ]
            for each in requests
        ]
        for begin in range(0, len(rows), PART):
            self._viewer.send("steps", steps=rows[begin : begin + PART])
        for warning in self._warnings:
            self._viewer.send("warning", text=sanitize(warning))

    async def _fail(self, why: str, hint: str, run: ReplayRun | None = None) -> None:
        """Report that the server never answered."""
        self._viewer.send(
            "failed",
            why=why,
            hint=hint,
            cause=await self._cause(),
            stderr=[] if run is None else [sanitize(line) for line in run.last_words],
        )

    async def _cause(self) -> list[str]:
        """Return the most likely cause of a failure in the new session, and what to do next."""
        path = self._new_path
        if path is None:
            return []
        try:
            causes = (await asyncio.to_thread(explain, path)).causes
        except (OSError, McpspyError):  # It was not recorded: the reason is known without a cause.
            return []
        return [causes[0].title, causes[0].next_step] if causes else []

    def connected(self, player: Player, session: Session, wake: Callable[[], None]) -> None:
        player.allowed = self._allowed if self._player is None else self._player.allowed
        self._player, self._session, self._wake = player, session, wake

    async def looked(self) -> None:
        player, session = self._player, self._session
        if player is None or session is None:
            return
        exchanges = session.exchanges
        for place in range(self._read, len(exchanges)):
            request = exchanges[place].request
            number = player.number_of(request.id) if request.side == CLIENT else None
            if number is not None:
                self._live[number] = exchanges[place]
        self._read = len(exchanges)
        changed, player.changed = dict.fromkeys(player.changed), []
        for number in changed:
            self._report(player, number)
        self._show_state()
        await self._viewer.drained()

    def stderr(self, line: bytes) -> None:
        self._viewer.send(
            "stderr", line=sanitize(redacted_text(line.decode("utf-8", "backslashreplace")[:2000]))
        )

    def _report(self, player: Player, number: int) -> None:
        """Tell the viewer what became of a request."""
        if number in player.unsent:
            self._viewer.send("unsent", number=number, why=sanitize(player.unsent[number]))
            return
        sent = player.sent[number]
        if sent.answer is None and sent.failed is None:
            self._viewer.send("sent", number=number)
            return
        if (live := self._live.get(number)) is not None and outcome.of(live.state).is_open and sent.answer:
            self._viewer.send("sent", number=number)  # A task: it is judged at the end.
            return
        self._judge(number)
        if sent.answer is None:
            self._viewer.send("lost", number=number, why=sanitize(sent.failed or ""), **self._verdict(number))
        else:
            latency = None if sent.answered_at is None else sent.answered_at - sent.at
            self._viewer.send("answered", number=number, latency=latency, **self._verdict(number))
        severity = self._severity(number)
        if self._pauses_at_difference and severity is not None and severity is not ChangeSeverity.NOTE:
            player.allowed = 0

    def _show_state(self) -> None:
        player = self._player
        if player is not None:
            state = {
                "paused": player.allowed is not None,
                "next": player.next_request,
                "over": player.is_over,
            }
            if state != self._state:
                self._state = state
                self._viewer.send("state", **state)

    # Judging.

    def _judge(self, number: int) -> None:
        live = self._live.get(number)
        if live is not None:
            self._cases[number] = compare_chosen(self._recorded.exchanges[number], live, self._options)

    def _severity(self, number: int) -> ChangeSeverity | None:
        return case.severity if (case := self._cases.get(number)) is not None else None

    def _verdict(self, number: int) -> dict[str, Any]:
        case = self._cases.get(number)
        severity = None if case is None else case.severity
        if case is None or severity is None:
            return {"severity": None, "changes": 0, "about": ""}
        return {"severity": severity, "changes": len(case.changes), "about": _summary(_worst(case))}

    async def _judge_again(self) -> None:
        """Judge all responses, after the values that may differ have changed."""
        for place, number in enumerate(list(self._cases)):
            before = self._verdict(number)
            self._judge(number)
            if self._difference is None and before != (now := self._verdict(number)):
                self._viewer.send("judged", number=number, **now)
            if place % SLICE == SLICE - 1:
                await asyncio.sleep(0)
                await self._viewer.drained()
        if self._difference is not None:
            await self._compare()

    async def _compare(self) -> None:
        """Compare the whole sessions, and tell the viewer what that adds to the responses: order, listings, messages."""
        run = self._run
        assert run is not None
        if self._difference is None:  # What was open when its response arrived, or got none, is decided now.
            for place, number in enumerate(self._live):
                if number not in self._cases or self._cases[number].changes:
                    self._judge(number)
                if place % SLICE == SLICE - 1:
                    await asyncio.sleep(0)
        self._difference = await asyncio.to_thread(
            compared, self._recorded, run.session, run.sent, self._options, is_complete=not run.unsent
        )
        # Positions are those of the requests that were sent, whose numbers follow each other.
        sent = sorted(each.step.exchange.number for each in run.sent if each.step.exchange is not None)
        wanted = self._recorded if not run.unsent else reduced(self._recorded, sent)
        mine = [each.number for each in wanted.exchanges if each.request.side == CLIENT]
        numbers = dict(zip(mine, sent if run.unsent else mine, strict=False))
        live = {exchange.number: number for number, exchange in self._live.items()}
        others: list[ComparedCase] = []
        for case in self._difference.changed:
            old, new = (None if place is None else place.exchange for place in (case.old, case.new))
            found = numbers.get(old) if old is not None else live.get(new) if new is not None else None
            if found is None or found not in self._cases:
                others.append(case)
            elif found not in self._changed_by_user:
                self._add(found, case)
        if self._changed_by_user:
            others = [case for case in others if case.method not in self._methods_changed]
        for number in self._cases:
            self._viewer.send("judged", number=number, **self._verdict(number))
        await self._viewer.drained()
        rest = [[case.severity, diff_report.about(case), _summary(_worst(case))] for case in others]
        self._viewer.send("others", cases=rest[:PART], count=len(rest))

    @property
    def _methods_changed(self) -> set[str]:
        return {self._recorded.exchanges[number].request.method for number in self._changed_by_user}

    def _add(self, number: int, case: ComparedCase) -> None:
        """Add the changes that only the comparison of whole sessions finds."""
        mine = self._cases[number]
        more = tuple(change for change in case.changes if change not in mine.changes)
        kinds = {ChangeKind.ORDER, ChangeKind.LATENCY}
        if more := tuple(change for change in more if change.kind in kinds):
            self._cases[number] = ComparedCase(
                method=mine.method,
                subject=mine.subject,
                old=mine.old,
                new=mine.new,
                latency=mine.latency,
                changes=mine.changes + more,
            )

    # Orders.

    async def _order_pause(self) -> None:
        self._allow(0)

    async def _order_resume(self) -> None:
        self._allow(None)

    async def _order_step(self) -> None:
        self._allow(1)

    async def _order_skip(self) -> None:
        if self._player is not None:
            self._player.skip()
            self._wake()

    async def _order_edit(self, number: int, text: str) -> None:
        if (
            self._player is None
            or self._player.next_request != number
            or not self._player.edit(text.encode())
        ):
            raise UsageError("the edited text was not used", "it must be the request that is sent next")
        self._changed_by_user.add(number)

    async def _order_again(self, number: int) -> None:
        if self._player is None or not self._player.again(number, monotonic()):
            raise UsageError("not sent again", "only a request with a response can be, until the replay ends")
        self._changed_by_user.add(number)
        self._wake()

    async def _order_stop(self) -> None:
        if self._player is not None:
            self._is_stopped = True
            self._player.end("you stopped the replay", monotonic())
            self._wake()

    async def _order_source(self, number: int) -> None:
        """Send the text of a recorded request, to be edited."""
        text = self._recorded.exchanges[number].request.data.decode("utf-8", "backslashreplace")
        self._viewer.send("source", number=number, text=text)

    async def _order_show(self, number: int) -> None:
        """Send both messages of a step, and its changes."""
        live, case = self._live.get(number), self._cases.get(number)
        changes = () if case is None else case.changes[:MOST_CHANGES]
        self._viewer.send(
            "shown",
            number=number,
            recorded=_messages(self._recorded.exchanges[number]),
            new=None if live is None else _messages(live),
            changes=[_fields(change) for change in changes],
            more=0 if case is None else len(case.changes) - len(changes),
        )

    async def _order_ignore(self, number: int, pointer: str | None = None) -> None:
        """Ignore the change at a pointer or above it, or else the most severe one of a step."""
        case = self._cases.get(number)
        if case is None or not case.changes:
            raise UsageError("nothing differs here")
        change = next(
            (each for each in case.changes if each.pointer and _is_within(pointer, each.pointer)), None
        )
        if change is None and pointer is not None:
            raise UsageError("nothing differs on this line", "go to a marked line")
        pattern = ignore_pattern(case, change or _worst(case))
        if pattern not in self._patterns:
            await self._ignore([*self._patterns, pattern])

    async def _order_ignored(self, patterns: list[str]) -> None:
        await self._ignore(patterns)

    async def _ignore(self, patterns: list[str]) -> None:
        self._patterns = patterns
        self._options = DiffOptions(
            volatile=self._options.volatile, dates=self._options.dates, ignored=tuple(map(ignored, patterns))
        )
        self._viewer.send("ignored", patterns=patterns)
        await self._judge_again()

    async def _order_save(self) -> None:
        """Copy the new session to the folder of sessions."""
        path = self._ended_path()
        to = Path(sessions_folder(self._sessions)) / path.name
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(lambda: save(to, [path.read_bytes()]))
        self._viewer.send("saved", path=str(to))

    async def _order_report(self, path: str) -> None:
        """Write a report in the format of the suffix."""
        self._ended_path()
        assert self._difference is not None
        titles = sanitize(str(self._path)), "the replay"
        data = await asyncio.to_thread(report, Path(path), self._difference, titles)
        size = await asyncio.to_thread(save, path, [data])
        self._viewer.send("reported", path=path, size=size)

    async def _order_update(self) -> None:
        """Replace the recording by the new session, as `mcpspy replay --update` does."""
        new, run = self._ended_path(), self._run
        assert run is not None
        assert self._difference is not None
        if any(
            isinstance(change.what, Note) and change.what.kind == "part" for change in self._recorded.changes
        ):
            raise UsageError(
                "a recording in several parts cannot be replaced", "save the new session instead"
            )
        if self._rows is not None or run.stopped is not None or run.unsent:
            raise UsageError(
                "the new session is incomplete, so the recording stays", "replay the whole session"
            )
        if not self._difference.changes:
            raise UsageError("no differences, so the recording stays as it is")
        replacement = Replacement(self._path)
        try:
            await asyncio.to_thread(self._write_update, new, replacement.new)
            backup = await asyncio.to_thread(replacement.put_in_place, None)
        except OSError as error:
            raise CannotStart(f"{self._path}: {error.strerror}", "the recording was not updated") from None
        finally:
            replacement.discard()
        self._viewer.send("updated", path=str(self._path), backup=str(backup))

    def _write_update(self, new: Path, to: Path) -> None:
        """Copy the new session, with the origin of the recording whose place it takes."""
        shutil.copyfile(new, to)
        if (header := self._recorded.header) is not None:
            head, _, entries = to.read_bytes().partition(b"\n")
            to.write_bytes(replaced(head, ("origin",), encode(header.origin)) + b"\n" + entries)

    def _allow(self, count: int | None) -> None:
        self._allowed = count
        if self._player is not None:
            self._player.allowed = count
            self._wake()
            self._show_state()

    @property
    def _new_path(self) -> Path | None:
        """Return the file of the new session, if it could be recorded."""
        with suppress(OSError, StopIteration):
            return next(Path(self._where.record or "").glob("*.jsonl"))
        return None

    def _ended_path(self) -> Path:
        """Return the file of the new session. Raise UsageError before its end."""
        if self._difference is None or (path := self._new_path) is None:
            raise UsageError("the replay has not ended yet", "stop it, or wait for its end")
        return path


def report(path: Path, difference: SessionDiff, titles: tuple[str, str]) -> bytes:
    """Return a report in the format of a suffix: `.md`, `.xml` for JUnit, `.json` or `.html`. Raise UsageError."""
    fail_on = ChangeSeverity.DIFFERENT
    if path.suffix == ".md":
        text = diff_report.markdown(difference, titles, fail_on=fail_on)
    elif path.suffix == ".xml":
        from mcpspy.ui.report.junit import diff_junit

        text = diff_junit(difference, titles, fail_on=fail_on)
    elif path.suffix == ".html":
        from mcpspy.ui.report.diff_page import page

        text = page(difference, titles, fail_on=fail_on)
    else:
        raise UsageError(f"{path.name}: the file name must end in .md, .xml (JUnit) or .html")
    return text.encode("utf-8", "backslashreplace")


def _worst(case: ComparedCase) -> DiffChange:
    return min(case.changes, key=lambda change: change.severity.rank)


def _summary(change: DiffChange) -> str:
    """Return a change in one line."""
    old, new = diff_report.values(change, VALUE // 2)
    both = f"{old} {diff_report.ARROW} {new}" if old is not None and new is not None else ""
    parts = [change.kind, diff_report.short(change.pointer), diff_report.reason(change), both]
    return "  ".join(part for part in parts if part)


def _fields(change: DiffChange) -> dict[str, Any]:
    old, new = diff_report.values(change, VALUE)
    return {
        "severity": change.severity,
        "kind": change.kind,
        "pointer": change.pointer,
        "why": diff_report.reason(change),
        "old": old if change.old is not UNSET else None,
        "new": new if change.new is not UNSET else None,
    }


def _messages(exchange: Exchange) -> list[str]:
    """Return the request and the response, if there is one: JSON, cut to LARGEST bytes."""
    both = [exchange.request.data, *([exchange.answer.data] if exchange.answer is not None else [])]
    return [data[:LARGEST].decode("utf-8", "backslashreplace") for data in both]


def _is_within(pointer: str | None, changed: str) -> bool:
    """Return whether a pointer is that of a change, or inside it, or the change is inside a text there."""
    return pointer is not None and (
        f"{pointer}/".startswith(f"{changed}/") or f"{changed}/".startswith(f"{pointer}/")
    )


async def main(viewer: EngineViewer) -> None:
    with tempfile.TemporaryDirectory(prefix="mcpspy-replay-") as folder:
        await ReplayEngine(viewer, folder).main()


if __name__ == "__main__":
    serve(main)
