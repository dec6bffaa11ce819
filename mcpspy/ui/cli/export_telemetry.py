"""`mcpspy export` to an OpenTelemetry collector: once, or while sessions are recorded (`--follow`)."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mcpspy.analysis.export import RecordedSession
from mcpspy.analysis.export.otlp import spans_of
from mcpspy.analysis.export.otlp_spans import SessionSpans, resource
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.network.listener import stop_on_signals
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.tail import new_sessions
from mcpspy.io.settings import config_file, state_folder
from mcpspy.io.telemetry.exporter import CursorFolder
from mcpspy.io.telemetry.options import TelemetryOptions, read_options, read_settings
from mcpspy.ui.cli.arguments import filled, read_headers_of, recordings

if TYPE_CHECKING:
    from mcpspy.io.telemetry.exporter import TelemetryExporter

Result = TypeVar("Result")

LONGEST_LOG = 1 << 20
"""Bytes of the log of the exporter in the background, after which it begins again."""


def send_spans(args: argparse.Namespace, sessions: Iterable[RecordedSession]) -> tuple[str, int]:
    """Send the spans of sessions; return the endpoint and their number. Raise UsageError or CannotStart."""
    options = read_telemetry(args)
    from mcpspy.io.telemetry.sender import BATCH, OtlpSender, Outcome

    sender = OtlpSender(options)
    sent = rejected = 0
    why = ""
    for session in sessions:
        spans = SessionSpans(session.header)
        found = [*spans_of(session, spans)]
        of = {each.side: resource(session.header, spans.peer(each.side), each.side) for each in found}
        for at in range(0, len(found), BATCH):
            batch = found[at : at + BATCH]
            result = sender.send([(each, of[each.side]) for each in batch])
            if result.outcome is not Outcome.SENT:
                raise CannotStart(
                    f"cannot send to {options.shown}: {result.why}",
                    f"{sent} spans had been sent" if sent else "is it a collector that accepts OTLP?",
                )
            sent += len(batch) - result.rejected
            rejected, why = rejected + result.rejected, why or result.why
    if rejected:
        reason = f": {why}" if why else ""
        raise CannotStart(f"{options.shown}: {rejected} of {sent + rejected} spans were rejected{reason}")
    return options.shown, sent


def follow(args: argparse.Namespace) -> int:
    """Send the telemetry of sessions while they are recorded."""
    if args.background:
        return _follow_in_background(args)
    options = read_telemetry(args)
    from mcpspy.io.telemetry.exporter import follow_folder, follow_sessions

    cursors = _cursors(options)
    if args.sessions:
        paths = [path for _, path in recordings(args.sessions, args.dir)]
        feed: Callable[[TelemetryExporter], Awaitable[None]] = partial(follow_sessions, paths=paths)
        what = f"{len(paths)} session{'s' * (len(paths) != 1)}"
    else:
        catalog = Catalog(args.dir)
        feed = partial(follow_folder, cursors=cursors, folder=catalog.folder, found=new_sessions(catalog))
        what = f"live sessions in {catalog.folder}"
    say(f"export: {options.shown}: sending {', '.join(options.signals)} of {sanitize(what)}")
    exporter = _run(options, cursors, feed, lambda line: say(f"export: {line}"))
    counts = ", ".join(f"{exporter.sent[signal]} {signal}" for signal in options.signals)
    sys.stdout.write(f"{options.shown}: sent {counts}\n")
    return 0


def read_telemetry(args: argparse.Namespace) -> TelemetryOptions:
    """Return the options of the command line; without `--endpoint`, those of the settings. Raise UsageError."""
    if args.endpoint is not None:
        signals = None if args.signals is None else args.signals.split(",")
        headers = read_headers_of(args.header, args.header_env)
        return read_options(args.endpoint, args.protocol, headers, args.cacert, signals)
    if args.signals is not None:
        raise UsageError("--signals requires --endpoint URL")
    options = read_settings(partial(filled, "telemetry.headers"), args.config)
    if options is None:
        raise UsageError(
            f"export: --follow needs --endpoint URL, or a table [telemetry] in {args.config or config_file()}",
            "an example: --endpoint http://localhost:4318",
        )
    return options


def _follow_in_background(args: argparse.Namespace) -> int:
    """Be the exporter of this user, which follows the sessions that proxies register."""
    folder = Path(state_folder("telemetry"))
    from mcpspy.io.telemetry.exporter import lock_background, registered

    log = partial(_log, folder / "log")
    while (lock := _written(lambda: lock_background(folder))) is not None:
        try:
            options = read_telemetry(args)
            from mcpspy.io.telemetry.exporter import follow_registered

            cursors = _cursors(options)
            _run(options, cursors, partial(follow_registered, cursors=cursors, new=folder / "new"), log)
        except McpspyError as error:
            log(str(error))
            return error.exit_code
        finally:
            os.close(lock)
        # A proxy that started in the meantime has seen the lock, and relies on this process.
        if not registered(folder / "new"):
            break
    return 0


def _run(
    options: TelemetryOptions,
    cursors: CursorFolder,
    feed: Callable[[TelemetryExporter], Awaitable[None]],
    tell: Callable[[str], None],
) -> TelemetryExporter:
    """Run an exporter until its feed ends or a signal arrives."""
    from mcpspy.io.telemetry.exporter import TelemetryExporter
    from mcpspy.io.telemetry.sender import OtlpSender

    exporter = TelemetryExporter(OtlpSender(options), cursors, tell)

    async def work() -> None:
        task = asyncio.ensure_future(exporter.run(feed))

        def stop(_: int) -> None:
            task.cancel()

        stop_on_signals(stop)
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    asyncio.run(work())
    return exporter


def _cursors(options: TelemetryOptions) -> CursorFolder:
    folder = Path(state_folder("telemetry"))
    return _written(lambda: CursorFolder(folder, f"{options.protocol} {options.endpoint}"))


def _written(write: Callable[[], Result]) -> Result:
    """Return the result of a function that writes to the state folder; raise CannotStart if it cannot."""
    try:
        return write()
    except OSError as error:
        raise CannotStart(f"cannot write to {error.filename}: {error.strerror}") from None


def _log(path: Path, line: str) -> None:
    """Append a line to the log of the exporter in the background, which has no terminal."""
    is_new = not path.exists() or path.stat().st_size > LONGEST_LOG
    with open(path, "w" if is_new else "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")
