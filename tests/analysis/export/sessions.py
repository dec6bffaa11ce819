"""Sessions to export: recorded ones, and short ones built here.

Those in `recordings/` next to this file are HTTP: the SDK's client (tests/peers/clients/sdk.py) with the SDK's server
(sdk_server.py), recorded by `mcpspy http`, in the revision and transport of the file name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mcpspy.analysis.export import RecordedSession
from mcpspy.core.recording.decode import Entry, Frame, Header, Note
from mcpspy.core.session.session import Change, Session
from mcpspy.io.recording.reader import Recording

HERE = Path(__file__).parent

HTTP = sorted((HERE / "recordings").glob("*.jsonl"))
EVERY = [*sorted((HERE.parents[2] / "recordings").glob("*.jsonl")), *HTTP]
"""Recordings of real sessions."""

HEADER = Header(
    mcpspy=1, id="ab12cd34", started="2026-11-21T08:13:03.745Z", command=["weather"], name="weather"
)


def everything(change: Change) -> bool:
    return True


def recorded(path: Path, keep: Callable[[Change], bool] = everything) -> RecordedSession:
    """Return a recording, read to its end."""
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    session.end()
    return RecordedSession(recording.header, path.stem, session.changes, keep)


def session_of(
    *entries: Entry,
    header: Header = HEADER,
    keep: Callable[[Change], bool] = everything,
    is_over: bool = True,
) -> RecordedSession:
    """Return a session of these entries."""
    session = Session(header).add_all(entries)
    if is_over:
        session.end()
    return RecordedSession(header, header.name, session.changes, keep)


def client(at: float, data: bytes, http: int | None = None) -> Frame:
    return Frame(at, "client", data, "1" if http else None, http)


def server(at: float, data: bytes, http: int | None = None, event_id: str | None = None) -> Frame:
    return Frame(at, "server", data, "1" if http else None, http, event_id=event_id)


def call(
    at: float, number: int = 1, name: bytes = b"forecast", more: bytes = b"", http: int | None = None
) -> Frame:
    """Return a call of a tool; `more` are further members of its params."""
    text = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"%b}}'
    return client(at, text % (number, name, more), http)


def result(at: float, number: int = 1, members: bytes = b"", http: int | None = None) -> Frame:
    return server(at, b'{"jsonrpc":"2.0","id":%d,"result":{%b}}' % (number, members), http)


def failure(at: float, number: int = 1, text: bytes = b"no", code: int = -32602) -> Frame:
    return server(at, b'{"jsonrpc":"2.0","id":%d,"error":{"code":%d,"message":"%b"}}' % (number, code, text))


def note(at: float, kind: str, **fields: object) -> Note:
    return Note(at, kind, fields)
