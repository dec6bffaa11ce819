"""Sessions are followed and sent from the acknowledged place, whatever happens to the collector."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from mcpspy.core.redact.redactor import Redactor
from mcpspy.io.recording.background import export
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.tail import RESTARTED, new_sessions
from mcpspy.io.recording.writer import Writer
from mcpspy.io.telemetry import exporter as module
from mcpspy.io.telemetry.exporter import (
    CursorFolder,
    TelemetryExporter,
    follow_folder,
    follow_registered,
    follow_sessions,
)
from mcpspy.io.telemetry.options import LOGS, METRICS, TRACES, TelemetryOptions
from mcpspy.io.telemetry.sender import OtlpSender
from tests.core.redact import unseen
from tests.otlp_receiver import Answer, Receiver

BOUND = 20.0


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("DELAY", 0.05),
        ("POLL", 0.02),
        ("FIRST_PAUSE", 0.02),
        ("LONGEST_PAUSE", 0.05),
        ("LINGER", 0.2),
        ("METRICS_INTERVAL", 0.1),
    ):
        monkeypatch.setattr(module, name, seconds)


class Session:
    """A recording that a writer has open."""

    def __init__(self, folder: Path, name: str = "s") -> None:
        self._writer = Writer(
            str(folder), None, {"transport": "stdio", "command": ["x"], "name": name}, say=print
        )
        self.path = Path(self._writer.path)
        self.id = self._writer.id
        self._calls = 0

    def call(self, count: int = 1) -> None:
        for _ in range(count):
            self._calls += 1
            for side, body in (
                (b"client", b'"method":"tools/call","params":{"name":"t"}'),
                (b"server", b'"result":{}'),
            ):
                line = b'{"t":%.6f,"from":"%b","msg":{"jsonrpc":"2.0","id":%d,%b}}\n'
                self._writer.write([line % (self._writer.now(), side, self._calls, body)])

    def end(self, code: int = 0) -> None:
        self._writer.note(self._writer.now(), "exit", code=code, signal=None)
        self._writer.close()


class Lines(list[str]):
    """Lines for the user."""

    def __call__(self, line: str) -> None:
        self.append(line)


def cursors(state: Path) -> CursorFolder:
    return CursorFolder(state, "collector")


def exporter(
    receiver: Receiver, state: Path, say: Callable[[str], None], timeout: float = 2.0
) -> TelemetryExporter:
    return TelemetryExporter(OtlpSender(TelemetryOptions(receiver.url), timeout), cursors(state), say)


async def followed(
    receiver: Receiver, state: Path, say: Callable[[str], None], *paths: Path
) -> TelemetryExporter:
    made = exporter(receiver, state, say)
    async with asyncio.timeout(BOUND):
        await made.run(partial(follow_sessions, paths=list(paths)))
    return made


def cursors_in(state: Path) -> list[Path]:
    return [*state.rglob("*.cursor")]


def names(receiver: Receiver) -> list[str]:
    return [span.name for span in receiver.spans]


def ids(receiver: Receiver) -> set[bytes]:
    return {span.span_id for span in receiver.spans}


async def test_spans_arrive_while_the_session_is_recorded_and_its_root_at_its_end(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call()
    following = asyncio.create_task(followed(receiver, state, lines, session.path))
    await asyncio.to_thread(receiver.until, lambda: names(receiver) == ["tools/call t"])
    await asyncio.to_thread(receiver.until, lambda: receiver.items[METRICS])
    session.call(2)
    await asyncio.to_thread(receiver.until, lambda: len(receiver.spans) == 3)
    session.end(code=4)
    made = await following

    assert names(receiver) == ["tools/call t"] * 3 + ["session s"]
    assert {span.parent_span_id for span in receiver.spans[:3]} == {receiver.spans[3].span_id}
    assert receiver.spans[3].status.message == "the server exited with 4"
    assert made.sent[TRACES] == 4
    assert lines == []
    assert cursors_in(state) == [], "everything was acknowledged"
    counts = [
        point.count
        for _, metric in receiver.items[METRICS]
        if metric.name == "mcp.client.operation.duration"
        for point in metric.histogram.data_points
    ]
    assert (counts[0], counts[-1], counts) == (1, 3, sorted(counts)), "cumulative"


async def test_no_secret_of_a_redacted_session_is_sent(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    redacting = Redactor(bytes(32))
    fields = {"transport": "stdio", "command": ["x"], "name": "s"}
    writer = Writer(str(tmp_path), None, fields, redacting, say=print)
    calls = unseen.calls()
    for number, case in enumerate(calls, 10):
        request = json.loads(case.text) | {"id": number}
        text = json.dumps(request["params"]["arguments"])
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": f"no: {text}"}}
        for side, message in (("client", request), ("server", answer)):
            line = json.dumps({"t": writer.now(), "from": side, "msg": message}, separators=(",", ":"))
            writer.write([line.encode() + b"\n"])
    writer.note(writer.now(), "exit", code=0, signal=None)
    writer.close()
    await followed(receiver, state, Lines(), Path(writer.path))
    assert len(receiver.spans) > len(calls)
    sent = str([*receiver.spans, *receiver.items[LOGS], *receiver.items[METRICS]])
    assert "[redacted:" in sent
    assert [case.what for case in calls if any(secret in sent for secret in case.secrets)] == []


async def test_a_collector_that_fails_gets_everything_once_later_with_two_lines_for_the_user(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call(1500)
    session.end()
    failures = iter([503, 401, 500])
    receiver.answer = lambda _, __: Answer(next(failures, 200))
    await followed(receiver, state, lines, session.path)

    assert len(receiver.spans) == len(ids(receiver)) == 1501
    assert len(lines) == 2
    assert lines[0].startswith(f"{receiver.url}: HTTP 401")
    assert lines[0].endswith("telemetry waits until it can be sent")
    assert lines[1].startswith(f"{receiver.url}: reached again after ")


async def test_after_a_crash_only_what_was_not_acknowledged_is_sent_and_metrics_are_complete(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call(600)
    made = exporter(receiver, state, lines)
    running = asyncio.create_task(made.run(partial(follow_sessions, paths=[session.path])))
    await asyncio.to_thread(receiver.until, lambda: len(receiver.spans) == 600)
    (cursor,) = cursors_in(state)

    def wait() -> None:
        until = time.monotonic() + BOUND
        while b'"entries":1200' not in cursor.read_bytes():
            assert time.monotonic() < until
            time.sleep(0.01)

    await asyncio.to_thread(wait)
    running.cancel()
    await asyncio.wait([running])
    session.call(7)
    session.end()
    for kept in receiver.items.values():
        kept.clear()
    await followed(receiver, state, lines, session.path)

    assert len(receiver.spans) == 8
    metrics = {metric.name: metric.histogram for _, metric in receiver.items[METRICS]}
    assert metrics["mcp.client.operation.duration"].data_points[0].count == 607
    assert lines == []


async def test_a_rejected_span_is_reported_and_all_others_arrive(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call(9)
    session.end()
    bad: list[bytes] = []

    def answer(signal: str, items: list[tuple[dict[str, object], object]]) -> Answer | None:
        spans = [span.span_id for _, span in items] if signal == TRACES else []  # type: ignore[attr-defined]
        bad.extend(spans[3:4] if not bad else [])
        return Answer(400, body=b"too old") if {*bad} & {*spans} else None

    receiver.answer = answer
    await followed(receiver, state, lines, session.path)

    assert len(ids(receiver)) == len(receiver.spans) == 9
    assert lines == [f"{receiver.url}: rejected 1 item of traces: HTTP 400: too old"]


async def test_the_spans_that_a_collector_rejects_of_a_request_are_counted(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call(2)
    session.end()
    partial_success = ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial_success).SerializeToString()
    receiver.answer = lambda signal, _: Answer(body=body) if signal == TRACES else None
    made = await followed(receiver, state, lines, session.path)

    assert lines == [f"{receiver.url}: rejected 2 items of traces: too old"]
    assert made.sent[TRACES] == len(receiver.spans) - 2


async def test_a_signal_that_the_collector_does_not_have_is_reported_once_and_not_waited_for(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, other, lines = Session(tmp_path, "a"), Session(tmp_path, "b"), Lines()
    for each in (session, other):
        each.call()
        each.end()
    receiver.answer = lambda signal, _: Answer(404) if signal == METRICS else None
    await followed(receiver, state, lines, session.path, other.path)

    assert len(ids(receiver)) == 4
    assert lines == [f"{receiver.url}: does not accept metrics (HTTP 404); they are not sent"]


async def test_two_processes_never_send_the_same_session(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call()
    running = asyncio.create_task(followed(receiver, state, Lines(), session.path))
    await asyncio.to_thread(receiver.until, lambda: receiver.spans)
    await followed(receiver, state, lines, session.path)
    session.end()
    await running

    assert lines == [f"{session.path}: another process sends this session to {receiver.url}"]
    assert len(receiver.spans) == len(ids(receiver)) == 2


async def test_a_folder_is_followed_from_live_sessions_on_and_earlier_ones_are_left_alone(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    ended, live = Session(folder, "ended"), Session(folder, "live")
    ended.call()
    ended.end()
    live.call()
    catalog = Catalog(str(folder))
    feed = partial(follow_folder, cursors=cursors(state), folder=folder, found=new_sessions(catalog))
    running = asyncio.create_task(exporter(receiver, state, Lines()).run(feed))
    await asyncio.to_thread(receiver.until, lambda: receiver.spans)
    later = Session(folder, "later")
    later.call()
    later.end()
    live.end()
    await asyncio.to_thread(receiver.until, lambda: len(receiver.spans) == 4)
    running.cancel()
    await asyncio.wait([running])

    assert sorted(names(receiver)) == ["session later", "session live", "tools/call t", "tools/call t"]


async def test_a_folder_is_followed_from_where_the_last_exporter_ended(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    session, elsewhere = Session(folder), Session(tmp_path / "elsewhere")
    session.call()
    elsewhere.call()

    async def run_until(condition: Callable[[], bool], *paths: Path) -> None:
        found = new_sessions(Catalog(str(folder)))
        feed = partial(follow_folder, cursors=cursors(state), folder=folder, found=found)
        if paths:
            feed = partial(follow_sessions, paths=list(paths))
        running = asyncio.create_task(exporter(receiver, state, Lines()).run(feed))
        await asyncio.to_thread(receiver.until, condition)
        running.cancel()
        await asyncio.wait([running])

    await run_until(lambda: len(receiver.spans) == 2, session.path, elsewhere.path)
    session.end()
    elsewhere.end()
    await run_until(lambda: "session s" in names(receiver))

    # The last request of the first exporter may have been acknowledged too late.
    assert len(ids(receiver)) == 3
    assert {*names(receiver)} == {"session s", "tools/call t"}


async def test_the_exporter_in_the_background_follows_registered_sessions_and_ends_after_the_last(
    receiver: Receiver, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.io.recording.background.start", lambda *_: None)
    first, second = Session(tmp_path / "here", "first"), Session(tmp_path / "elsewhere", "second")
    for each in (first, second):
        each.call()
        export(str(each.path), each.id, None)
    made, new = exporter(receiver, state, Lines()), state / "new"
    running = asyncio.create_task(made.run(partial(follow_registered, cursors=cursors(state), new=new)))
    await asyncio.to_thread(receiver.until, lambda: len(receiver.spans) == 2)
    export(str(first.path), first.id, None)  # Once more, which changes nothing.
    async with asyncio.timeout(BOUND):
        while [*new.iterdir()]:  # noqa: ASYNC110 - a folder has no event.
            await asyncio.sleep(0.01)
    assert not running.done()
    first.end()
    second.end()
    async with asyncio.timeout(BOUND):
        await running

    assert len(ids(receiver)) == 4


async def test_the_next_exporter_continues_with_the_telemetry_that_was_not_acknowledged(
    receiver: Receiver, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GIVE_UP", 0.1)
    session, lines = Session(tmp_path), Lines()
    session.call(3)
    session.end()
    up = False
    receiver.answer = lambda _, __: None if up else Answer(500)
    feed = partial(follow_registered, cursors=cursors(state), new=state / "new")
    monkeypatch.setattr("mcpspy.io.recording.background.start", lambda *_: None)
    export(str(session.path), session.id, None)
    async with asyncio.timeout(BOUND):
        await exporter(receiver, state, lines).run(feed)
    assert receiver.spans == []
    assert len(lines) == 1
    up = True
    async with asyncio.timeout(BOUND):
        await exporter(receiver, state, lines).run(feed)

    assert len(ids(receiver)) == 4  # Perhaps twice: the last request of the first exporter may arrive late.
    assert receiver.items[LOGS] == []


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_the_exporter_in_the_background_waits_for_live_sessions_though_the_collector_fails(
    receiver: Receiver, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    monkeypatch.setattr(module, "GIVE_UP", 0.1)
    monkeypatch.setattr("mcpspy.io.recording.background.start", lambda *_: None)
    session, refused = Session(tmp_path), list[str]()
    session.call()
    export(str(session.path), session.id, None)

    def refuse(signal: str, _: object) -> Answer:
        refused.append(signal)
        return Answer(500)

    receiver.answer = refuse
    feed = partial(follow_registered, cursors=cursors(state), new=state / "new")
    running = asyncio.create_task(exporter(receiver, state, Lines()).run(feed))
    await asyncio.to_thread(receiver.until, lambda: len(refused) > 10)
    assert not running.done()
    if is_deleted:
        session.path.unlink()
    else:
        session.end()
    async with asyncio.timeout(BOUND):
        await running
    assert receiver.spans == []


async def test_a_session_that_is_truncated_while_it_is_sent_is_one_line(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    session, lines = Session(tmp_path), Lines()
    session.call()
    running = asyncio.create_task(followed(receiver, state, lines, session.path))
    await asyncio.to_thread(receiver.until, lambda: receiver.spans)
    os.truncate(session.path, 0)
    await running

    assert lines == [f"{session.path}: not exported: {RESTARTED}"]


def test_a_batch_that_is_acknowledged_after_its_session_was_given_up_changes_nothing(
    state: Path, tmp_path: Path
) -> None:
    session = Session(tmp_path)
    cursor = cursors(state).open(session.path, Recording(session.path).header)
    assert cursor is not None
    cursor.commit(2)
    cursor.close()
    cursor.commit(3)
    session.end()
    opened = cursors(state).open(session.path, Recording(session.path).header)
    assert opened is not None
    assert opened.entries == 2
    opened.close()


async def test_a_session_that_was_deleted_is_one_line(
    receiver: Receiver, state: Path, tmp_path: Path
) -> None:
    lines = Lines()
    await followed(receiver, state, lines, tmp_path / "absent.jsonl")

    assert len(lines) == 1
    assert "absent.jsonl: not exported: " in lines[0]
