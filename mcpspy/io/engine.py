"""The separate process of an engine that a viewer watches.

`EngineProcess` is the viewer's side, `serve` runs the engine, and `EngineViewer` is what the engine sees of its viewer.
Both sides write JSON objects, one a line: the viewer its configuration and then orders to the engine's stdin, the
engine events to its stdout. The engine ends when its stdin does, so it never outlives its viewer, also not one that
was killed: it gets END seconds to close its connections, and then exits whatever it does. It has its own session, so
that no key of the terminal reaches it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode, encode

from mcpspy.core.framing import LineFramer
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError

END = 6.0
"""Seconds that an engine may take to end its connections: a server gets SIGTERM after two, SIGKILL after four."""

BACKLOG = 1 << 18
"""Bytes of unread events above which `EngineViewer.drained` waits."""

LAST_LINES = 5
"""Lines of the engine's stderr that are kept."""

OUT, ERR = 1, 2

Fields = dict[str, Any]
"""The members of an order or event: values of JSON. Events have their kind in `event`, orders in `order`."""


class EngineProcess:
    """The process of one engine, as its viewer sees it. Used in one event loop."""

    def __init__(self, module: str, received: Callable[[Fields], None], ended: Callable[[str], None]) -> None:
        """`received` gets each event. `ended` is called once, with the reason if the engine failed, else with ""."""
        self._module = module
        self._received, self._ended = received, ended
        self._lines = LineFramer()
        self._stderr_lines = LineFramer()
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._exited = asyncio.Event()
        self._is_stopping = False
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def pid(self) -> int | None:
        """Return the pid while the engine runs."""
        return None if self._transport is None or self._exited.is_set() else self._transport.get_pid()

    async def start(self, config: Fields) -> None:
        """Start the engine with its configuration. Raise CannotStart."""
        words = [sys.executable, "-EP" if sys.flags.ignore_environment else "-P", "-m", self._module]
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: _EnginePipes(self), *words, start_new_session=True
            )
        except OSError as error:
            raise CannotStart(f"cannot start a process: {error.strerror}") from None
        self._transport = transport
        self._write(config)

    def send(self, order: str, **fields: Any) -> None:
        """Send an order; it is lost if the engine has ended."""
        self._write({"order": order, **fields})

    async def stop(self) -> None:
        """End the engine and what it has started; return when it has ended."""
        self._is_stopping = True
        if self._transport is None or self._exited.is_set():
            return
        if (stdin := self._transport.get_pipe_transport(0)) is not None:
            stdin.close()
        try:
            async with asyncio.timeout(END + 1):
                await self._exited.wait()
        except TimeoutError:
            self._transport.kill()
            await self._exited.wait()

    def data_received(self, fd: int, data: bytes) -> None:
        if fd == ERR:
            lines = self._stderr_lines.feed(data)
            self._last_lines += [line.decode("utf-8", "backslashreplace") for line in lines]
            return
        for line in self._lines.feed(data):
            self._received(decode(line))

    def exited(self) -> None:
        """Handle the exit, once the pipes are closed."""
        assert self._transport is not None
        code = self._transport.get_returncode()
        self._transport.close()
        self._exited.set()
        failed = bool(code) and not self._is_stopping
        self._ended((self._last_lines[-1] if self._last_lines else f"exit code {code}") if failed else "")

    def _write(self, fields: Fields) -> None:
        if self._transport is None or self._exited.is_set() or self._is_stopping:
            return
        stdin = self._transport.get_pipe_transport(0)
        if isinstance(stdin, asyncio.WriteTransport):
            stdin.write(encode(fields) + b"\n")


class _EnginePipes(asyncio.SubprocessProtocol):
    def __init__(self, engine: EngineProcess) -> None:
        self._engine = engine

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._engine.data_received(fd, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has exited, and its pipes are closed."""
        self._engine.exited()


class EngineViewer:
    """The viewer, as its engine sees it. `serve` makes it."""

    def __init__(self, config: Fields, out: int) -> None:
        self.config = config
        self.orders: asyncio.Queue[Fields] = asyncio.Queue()
        """Orders that were received, in their order."""
        self._loop = asyncio.get_running_loop()
        self._drained = asyncio.Event()
        self._drained.set()
        self._unread = 0
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = threading.Thread(
            target=self._write_all, args=(out,), daemon=True, name="engine-events"
        )
        self._writer.start()

    def send(self, event: str, **fields: Any) -> None:
        """Send an event; it is lost if the viewer has ended. Never waits."""
        line = encode({"event": event, **fields}) + b"\n"
        self._unread += len(line)
        if self._unread > BACKLOG:
            self._drained.clear()
        self._queue.put(line)

    async def drained(self) -> None:
        """Wait while the viewer does not read its events."""
        await self._drained.wait()

    def close(self) -> None:
        """Write the remaining events, for at most a second."""
        self._queue.put(None)
        self._writer.join(1.0)

    def _write_all(self, out: int) -> None:
        while (line := self._queue.get()) is not None:
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(out, rest) :]
            except OSError:  # The viewer has ended, which the reader of stdin notices too.
                pass
            try:
                self._loop.call_soon_threadsafe(self._wrote, len(line))
            except RuntimeError:  # The loop has ended.
                return

    def _wrote(self, size: int) -> None:
        self._unread -= size
        if self._unread <= BACKLOG:
            self._drained.set()


class Engine(ABC):
    """An engine that plays, and takes orders of its viewer meanwhile and afterwards: `_order_NAME(**fields)`."""

    def __init__(self, viewer: EngineViewer) -> None:
        self._viewer = viewer

    async def main(self) -> None:
        """Play, then take orders, until it is cancelled."""
        orders = asyncio.create_task(self._take_orders())
        try:
            await self._play()
            await orders
        finally:
            orders.cancel()

    @abstractmethod
    async def _play(self) -> None: ...

    async def _take_orders(self) -> None:
        while True:
            order = await self._viewer.orders.get()
            try:
                await getattr(self, f"_order_{order.pop('order')}")(**order)
            except McpspyError as error:
                self._viewer.send("refused", text=sanitize(str(error)))


def serve(engine: Callable[[EngineViewer], Awaitable[None]]) -> None:
    """Run an engine in this process until it returns or its viewer has ended: then it is cancelled."""
    stdin, stdout = os.dup(0), os.dup(1)
    # Nothing else may read orders or write events: neither a server nor a library that prints.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    is_over = threading.Event()
    asyncio.run(_serve(engine, stdin, stdout, is_over))
    is_over.set()  # Not before the threads of the loop have ended, which asyncio waits for.


async def _serve(
    engine: Callable[[EngineViewer], Awaitable[None]], stdin: int, stdout: int, is_over: threading.Event
) -> None:
    lines = _Lines(stdin)
    config = lines.next()
    if config is None:
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    viewer = EngineViewer(config, stdout)

    def read() -> None:
        """Pass orders on; at the end of the viewer cancel the engine, and end this process if that does not help."""
        while (order := lines.next()) is not None:
            try:
                loop.call_soon_threadsafe(viewer.orders.put_nowait, order)
            except RuntimeError:  # The loop has ended.
                return
        try:
            loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            return
        if not is_over.wait(END):
            os._exit(1)

    threading.Thread(target=read, daemon=True, name="engine-orders").start()
    try:
        await engine(viewer)
    except asyncio.CancelledError:
        pass
    finally:
        viewer.close()


class _Lines:
    """The objects on a descriptor, read in any thread, one thread at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._framer = LineFramer()
        self._waiting: deque[bytes] = deque()

    def next(self) -> Fields | None:
        """Return the next object; None at the end. Wait for it."""
        while not self._waiting:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                return None
            if not data:
                return None
            self._waiting += self._framer.feed(data)
        try:
            found = decode(self._waiting.popleft())
        except DecodeError:  # A viewer that was killed amid a line.
            return None
        return found if isinstance(found, dict) else None
