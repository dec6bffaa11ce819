"""A session whose clients request pages of a list of tools."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.recording.decode import Frame, Header
from mcpspy.core.session.session import Session

HEADER = Header(mcpspy=1, id="a1", started="2026-01-01T00:00:00.000Z")


def of_pages(*pages: tuple[str, str | None, str, str | None]) -> Session:
    """Return a session; a page is its stream, the cursor of the request, the tools as letters, and `nextCursor`."""
    session = Session(HEADER)
    for number, (stream, cursor, tools, following) in enumerate(pages):
        params = {} if cursor is None else {"cursor": cursor}
        result: dict[str, Any] = {"tools": [{"name": name} for name in tools]}
        result |= {} if following is None else {"nextCursor": following}
        for side, message in (
            ("client", {"id": number, "method": "tools/list", "params": params}),
            ("server", {"id": number, "result": result}),
        ):
            data = json.dumps({"jsonrpc": "2.0", **message}).encode()
            session.add(Frame(float(number), side, data, stream))
    session.end()
    return session


WITHOUT_SESSIONS = of_pages(("1", None, "ab", "2"), ("2", "2", "cd", None))
"""A server without sessions, where each exchange has a stream (2026-07-28)."""

INTERLEAVED = of_pages(
    ("s1", None, "ab", "2"), ("s2", None, "ab", "2"), ("s1", "2", "cd", None), ("s2", "2", "cd", None)
)
"""Two clients that list at the same time."""
