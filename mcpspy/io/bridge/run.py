"""The process of `mcpspy bridge`: stdin, stdout, signals and the recording around a bridge."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from mcpspy.io.bridge.bridge import MAX_QUEUED, Bridge, BridgeOptions
from mcpspy.io.client.oauth import OAuthClient, is_installed
from mcpspy.io.host_process import parent
from mcpspy.io.network.listener import stop_on_signals
from mcpspy.io.recording.recorder import Recorder
from mcpspy.io.stdio.lines import END, Backlog, StdoutWriter, read_lines


def run(options: BridgeOptions) -> int:
    """Serve until stdin closes, stdout closes, or a signal arrives. Return the exit code."""
    return asyncio.run(_serve(options))


async def _serve(options: BridgeOptions) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    stop_on_signals(lambda number: stop(128 + number))
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    output = StdoutWriter(
        broke=lambda: loop.call_soon_threadsafe(stop, 0), wrote=lambda: loop.call_soon_threadsafe(update_flow)
    )
    fields = {"transport": "http", "upstream": options.address.url, "name": options.name}
    recorder = Recorder(options, {**fields, "parent": parent()})

    def write(data: bytes) -> None:
        output.put(data)
        update_flow()

    def update_flow() -> None:
        bridge.pause(is_full=output.waiting > MAX_QUEUED)

    oauth = None
    if options.oauth is not None and not options.address.has_authorization and is_installed():
        oauth = OAuthClient(options.address, options.oauth)
    bridge = Bridge(options, recorder, write, oauth)
    backlog = Backlog(MAX_QUEUED)

    def read(line: bytes | None) -> None:
        with suppress(RuntimeError):  # The loop is closed: the bridge has ended.
            loop.call_soon_threadsafe(lines.put_nowait, line)
        backlog.add(len(line or b""))

    try:
        async with bridge.interception.serving_viewers():
            read_lines(read)
            forwarding = asyncio.ensure_future(_forward_lines(bridge, lines, backlog))
            try:
                await asyncio.wait((forwarding, stopped), return_when=asyncio.FIRST_COMPLETED)
                code = stopped.result() if stopped.done() else 0
                if forwarding.done():
                    await forwarding
            finally:
                forwarding.cancel()
    finally:
        await bridge.close()
        output.close()
        recorder.finish(0, None)
    return code


async def _forward_lines(bridge: Bridge, lines: asyncio.Queue[bytes | None], backlog: Backlog) -> None:
    while (line := await lines.get()) is not END:
        if line.strip():
            await bridge.forward(line)
        backlog.remove(len(line))
    await bridge.drain()
