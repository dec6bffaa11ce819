"""Calls that are injected into a live session: their targets, response, progress, cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from mcpspy.errors import CannotStart, UsageError
from mcpspy.ui.model.call_form import CallForms, CallTarget, listed_targets
from mcpspy.ui.model.intercept_connection import InterceptConnection
from mcpspy.ui.model.interface import last_listings
from mcpspy.ui.model.session_model import SessionModel

LOOK = 0.05
"""Seconds between two looks at whether a response was read."""


async def wait_for_response(
    model: SessionModel, id_text: str, begin: int, failed: Callable[[], str | None]
) -> int | str:
    """Return the row of a request of mcpspy once it has a response, or the reason why it will not get one.

    `begin` is the number of rows when it was sent; `failed` returns the session's error, if any.
    """
    generation, row = model.generation, None
    while model.generation == generation:
        index = model.index
        if row is None:
            for place in range(begin, len(index)):
                if model.is_request(place) and index.id(place) == id_text:
                    row = place
                    break
            begin = len(index) if row is None else begin
        if row is not None and index.pair(row) is not None:
            return row
        if (why := failed()) is not None:
            return why
        if model.is_over:
            break
        await asyncio.sleep(LOOK)
    return "the session has ended"


class LiveCall(CallForms):
    """The calls of a form in a live session."""

    def __init__(self, connection: InterceptConnection, model: SessionModel) -> None:
        super().__init__()
        self._connection, self.model = connection, model
        self._streams: dict[str, str | None] = {}
        """Method of a list → the HTTP session that requested it last."""
        self._id = ""
        """Id of the call that runs, as JSON text."""
        self._stream: str | None = None

    async def start(self) -> Self:
        """Read the lists of the session. Raise UsageError if it has none."""
        listings = await last_listings(self.model)
        self.targets, self.notes = listed_targets(listings)
        self._streams = {method: listing.stream or None for method, listing in listings.items()}
        if not self.targets:
            raise UsageError(
                "the client of this session has listed nothing that can be called", "list its tools first"
            )
        return self

    @property
    def is_busy(self) -> bool:
        return bool(self._id)

    @property
    def progress(self) -> str:
        """The last progress of the call that runs, in words."""
        return self._connection.progress.get(self._id, "")

    async def call(self, target: CallTarget, params: Mapping[str, Any]) -> int:
        """Return the row of the request of a call once it has a response. Raise McpspyError if it gets none."""
        if self._id:
            raise UsageError("a call is running")
        connection, model = self._connection, self.model
        self._stream, begin = self._streams.get(target.list_method), len(model)
        self._id = id_text = await connection.call(target.method, params, self._stream)

        def failed() -> str | None:
            return connection.error(id_text) if self._id == id_text else "the call was cancelled"

        try:
            row = await wait_for_response(model, id_text, begin, failed)
        finally:
            self._id = ""
            connection.answers.pop(id_text, None)
            connection.progress.pop(id_text, None)
        if isinstance(row, str):
            raise CannotStart(f"no response: {row}")
        return row

    async def cancel(self) -> None:
        """Cancel the call that runs; the server is notified. A late response is only recorded."""
        id_text, self._id = self._id, ""
        if id_text:
            params = {"requestId": json.loads(id_text), "reason": "cancelled by the user"}
            await self._connection.notify_server("notifications/cancelled", params, self._stream)

    async def close(self) -> None:
        """Cancel the call that runs; the session continues."""
        await self.cancel()
