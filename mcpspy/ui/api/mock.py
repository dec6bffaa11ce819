"""A recording as a server inside the process, for tests and tools (`mcpspy.Mock`)."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.message import loads
from mcpspy.core.rules.edit import to_json
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.ui.api.session import ReadSession, read


class InProcessMock:
    """The server of a recording. Public as `mcpspy.Mock`.

    `send` serves one client in this process; `serve_http` and `command` serve any number of other clients.
    """

    def __init__(
        self,
        session: ReadSession | str | os.PathLike[str],
        *,
        match: str = "exact",
        ignore_paths: Sequence[str] = (),
    ) -> None:
        """Read a recording: a session, or what `mcpspy.read` takes.

        `match` (`exact`, `lenient`, `nearest`, `tool` or `method`) and `ignore_paths` are the options of `mcpspy mock`
        (docs/mock.md). Raise UsageError for an invalid value, and the errors of `mcpspy.read`.
        """
        if match not in list(MatchMode):
            raise UsageError(f"match {match}: unknown", f"use {', '.join(MatchMode)}")
        self.unrecorded: list[str] = []
        """One line for each unrecorded request, in the order of arrival."""
        self._path = (session if isinstance(session, ReadSession) else read(session)).path
        self._ignored = list(ignore_paths)
        self._options = MockOptions(match=MatchMode(match))
        try:
            ignored = [pointer(text) for text in ignore_paths]
        except ValueError as error:
            raise UsageError(f"ignore_paths: {error}", "use /params/arguments/now") from None
        self._recordings = RecordingsLoader([self._path], ignored, merge=False).recordings()
        self._session = MockSession(self._recordings, self._options, monotonic())

    def send(self, message: Any) -> list[Any]:
        """Take a message of the client, as a JSON value or as bytes; return the messages of the server.

        An unrecorded request gets a JSON-RPC error, and is listed in `unrecorded`.

        >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
        >>> mock = mcpspy.Mock(session)
        >>> exchange = session.filter("tool:echo").exchanges[0]
        >>> (answer,) = mock.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": exchange.params})
        >>> answer["result"] == exchange.result
        True
        >>> mock.unrecorded
        []
        """
        now = monotonic()
        self._session.receive(message if isinstance(message, bytes) else to_json(message), now)
        self.unrecorded += self._session.complaints()
        return [loads(outgoing.data) for outgoing in self._session.take(now)]

    @property
    def command(self) -> list[str]:
        """The command that serves the recording on stdio, for a client that starts its server."""
        options = [f"--match={self._options.match}", *(f"--ignore-path={path}" for path in self._ignored)]
        return [sys.executable, "-m", "mcpspy", "mock", str(self._path), *options]

    @asynccontextmanager
    async def serve_http(self) -> AsyncIterator[str]:
        """Serve over HTTP on a free port of loopback while the context is open. Yield the URL. Raise CannotStart.

        >>> import asyncio
        >>> async def url():
        ...     async with mcpspy.Mock("recordings/everything-sdk-auto.jsonl").serve_http() as url:
        ...         return url
        >>> asyncio.run(url()).startswith("http://127.0.0.1:")
        True
        """
        from mcpspy.io.mock.http import Mock, serving

        async with serving(Mock(self._recordings, self._options, self.unrecorded.append)) as url:
            yield url
