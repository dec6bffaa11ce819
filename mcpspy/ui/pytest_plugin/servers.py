"""A recording or the real server, over HTTP, for one test.

Runs in a thread with its own event loop: a test may have any loop, or none. The traffic passes through the proxy of
`mcpspy http`, which records the messages of the test's client as a session. A real server on stdio is started for each
client, and recorded on stdio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread, get_ident
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.answer_rules import AnswerRules
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.recording.origin import PYTEST
from mcpspy.core.redact.display import redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.client import ServerAddress, ServerCommand
from mcpspy.io.http.proxy import HttpOptions, proxying
from mcpspy.io.mock.http import Mock, serving
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.serving.live_server import LiveServer
from mcpspy.io.serving.mcp_server import SSE
from mcpspy.io.session_name import session_name
from mcpspy.ui.pytest_plugin.network import LOCALHOST, Address

HOST = "127.0.0.1"

PATIENCE = 30.0
"""Seconds for the start and for the end, each of which takes far less."""


class MockSettings(Struct, frozen=True):
    recordings: Sequence[Path]
    ignored: Sequence[Pointer]
    answering: MockOptions
    real: LiveServer | None
    rules: AnswerRules | None = None
    """Those of a listing and of fixtures, which decide before the recordings."""


class ServedEndpoint:
    """An endpoint on loopback until `close`."""

    def __init__(
        self, source: MockSettings | ServerCommand | str, played: Path, redaction: RedactionOptions
    ) -> None:
        """Serve recordings or a command, or proxy the server of a URL; record into `played`.

        Raises CannotStart or UsageError.
        """
        self.url = ""
        self._source = source
        self._redaction = redaction
        self._played = played
        self._ready: Future[str] = Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = Thread(target=self._run, name="mcp_recording", daemon=True)
        self._thread.start()
        try:
            self.url = self._ready.result(PATIENCE)
        except BaseException:
            self.close()
            raise

    def is_own(self, address: Address) -> bool:
        """Return whether this is the address of the endpoint, or its own thread calls, which proxies to the mock."""
        return get_ident() == self._thread.ident or address == (LOCALHOST, urlsplit(self.url).port)

    def close(self) -> None:
        """End the thread; raise CannotStart if it does not end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise CannotStart(
                f"{redacted_url(self.url or str(self._source))} does not close",
                "check that its client closed all streams",
            )
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        try:
            if isinstance(self._source, str):
                await self._proxy(self._source)
            elif isinstance(self._source, ServerCommand):
                async with serving(_gateway(self._source, self._played, self._redaction)) as url:
                    await self._until_stopped(url)
            else:
                mocked = self._source
                recordings = RecordingsLoader(
                    mocked.recordings, mocked.ignored, merge=False, rules=mocked.rules
                ).recordings()
                async with serving(Mock(recordings, mocked.answering, _complain, real=mocked.real)) as url:
                    is_sse = urlsplit(recordings.upstream or "").path == SSE
                    await self._proxy(urljoin(url, SSE) if is_sse else url)
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _proxy(self, url: str) -> None:
        upstream = read_upstream(url)
        assert upstream is not None, url
        options = HttpOptions(upstream, HOST, 0)
        options.record, options.redaction = f"{self._played}/", self._redaction
        options.origin = PYTEST
        async with proxying(options) as served:
            await self._until_stopped(served)

    async def _until_stopped(self, url: str) -> None:
        self._ready.set_result(url)
        await self._stop.wait()


def _gateway(command: ServerCommand, played: Path, redaction: RedactionOptions) -> Mock:
    """Return a mock without recordings: the command answers, which is started and recorded once for each client."""
    name, failure = session_name(command.arguments), "mcpspy: the request to the server failed"
    behind = LiveServer(
        command, name, f"{played}/", redaction, failure=failure, restarts=False, origin=PYTEST
    )
    return Mock(Recordings([]), MockOptions(forwards_all=True), _complain, real=behind)


def _complain(line: str) -> None:
    say(sanitize(line))


def real(command: Sequence[str], url: str | None, folder: str) -> LiveServer:
    """Return the real server for unrecorded requests; its session is recorded into `folder`."""
    if url is None:
        return LiveServer(ServerCommand(list(command)), session_name(list(command)), folder, origin=PYTEST)
    upstream = read_upstream(url)
    return LiveServer(
        ServerAddress(url), upstream.host if upstream is not None else url, folder, origin=PYTEST
    )
