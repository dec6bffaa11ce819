"""Sessions built message by message, and clients of mocks that play them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.core.jsontools import Pointer, pointer
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import OPENING, InteractionStore
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.session.session import Session

VERSION = "io.modelcontextprotocol/protocolVersion"

Json = dict[str, Any]


def modern(**more: Any) -> Json:
    """Return the `_meta` of a request of 2026-07-28."""
    return {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, **more}


class Talk:
    """Builder of a session whose messages are one second apart."""

    def __init__(self, name: str = "tested") -> None:
        header = Header(
            mcpspy=1, id="00000000", started="2026-11-21T08:00:00.000Z", name=name, command=[name]
        )
        self.session = Session(header)
        self.at = 0.0

    def frame(self, side: str, data: bytes, stream: str | None = None, http: int | None = None) -> Talk:
        self.at += 1.0
        self.session.add(Frame(self.at, side, data, stream, http))
        return self

    def note(self, kind: str, **fields: Any) -> Talk:
        self.at += 1.0
        self.session.add(Note(self.at, kind, fields))
        return self

    def client(self, stream: str | None = None, http: int | None = None, **members: Any) -> Talk:
        return self.frame("client", json.dumps({"jsonrpc": "2.0", **members}).encode(), stream, http)

    def server(self, stream: str | None = None, http: int | None = None, **members: Any) -> Talk:
        return self.frame("server", json.dumps({"jsonrpc": "2.0", **members}).encode(), stream, http)

    def call(self, id: Any, tool: str = "echo", answer: Any = "yes", **arguments: Any) -> Talk:  # noqa: A002
        """Add a tool call and its result."""
        params = {"name": tool, "arguments": arguments}
        return self.client(id=id, method="tools/call", params=params).server(id=id, result={"said": answer})

    def handshake(self, version: str = "2025-11-25", name: str = "tested") -> Talk:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        result = {
            "protocolVersion": version,
            "capabilities": {},
            "serverInfo": {"name": name, "version": "1"},
        }
        self.client(id=0, method="initialize", params=params).server(id=0, result=result)
        return self.client(method="notifications/initialized")

    def recordings(self, *ignored: str) -> Recordings:
        self.session.end()
        return recordings_of([("r.jsonl", self.session)], [pointer(text) for text in ignored])

    def live(self, **options: Any) -> Live:
        return Live(self.recordings(), **options)


class Live:
    """A client of a mock, with its own clock."""

    def __init__(self, recordings: Recordings, **options: Any) -> None:
        self.now = 100.0
        self.session = MockSession(recordings, MockOptions(**options), self.now)

    def send(self, data: bytes) -> list[Json]:
        """Send bytes; return the messages that arrive at once."""
        self.session.receive(data, self.now)
        return self.received()

    def say(self, **members: Any) -> list[Json]:
        return self.send(json.dumps({"jsonrpc": "2.0", **members}).encode())

    def ask(self, id: Any, method: str, **params: Any) -> list[Json]:  # noqa: A002
        return self.say(id=id, method=method, params=params)

    def call(self, id: Any, tool: str = "echo", **arguments: Any) -> list[Json]:  # noqa: A002
        return self.ask(id, "tools/call", name=tool, arguments=arguments)

    def answered(self, id: Any, tool: str = "echo", **arguments: Any) -> Any:  # noqa: A002
        """Call a tool; return the text of its result, or the error code."""
        (*_, last) = self.call(id, tool, **arguments)
        assert last["id"] == id
        return last["result"]["said"] if "result" in last else last["error"]["code"]

    def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Json:
        info = {"name": "another client", "version": "9"}
        (said,) = self.ask(
            "init", "initialize", protocolVersion=version, capabilities=capabilities, clientInfo=info
        )
        return said

    def wait(self, seconds: float) -> list[Json]:
        self.now += seconds
        return self.received()

    def received(self) -> list[Json]:
        return [json.loads(outgoing.data) for outgoing in self.session.take(self.now)]


def entries(session: Session) -> Iterator[Entry]:
    """Yield the entries of a session."""
    before: Frame | None = None
    for change in session.changes:
        if isinstance(change.what, Note | Damaged):
            yield change.what
        elif change.what.frame is not before:
            before = change.what.frame
            yield before


def recordings_of(sessions: Iterable[tuple[str, Session]], ignored: Iterable[Pointer] = ()) -> Recordings:
    """Return the sessions, each with its label, as recordings."""
    stores, ignored = [], tuple(ignored)
    for label, session in sessions:
        loader = InteractionLoader(InteractionStore(label, ignored), session.header)
        for entry in entries(session):
            loader.add(entry)
        loader.finish()
        stores.append(loader.store)
    return Recordings(stores, ignored)


def loaded(session: Session) -> InteractionLoader:
    """Return the loader of a session."""
    loader = InteractionLoader(InteractionStore("r.jsonl"), session.header)
    for entry in entries(session):
        loader.add(entry)
    return loader


def interactions(session: Session) -> list[Interaction]:
    """Return the interactions of a session."""
    return interactions_of(loaded(session).store)


def interactions_of(store: InteractionStore) -> list[Interaction]:
    """Return the interactions of a store."""
    rows = [OPENING] if OPENING in store.steps else []
    return [store.interaction(row) for row in (*rows, *range(len(store)))]


def log(level: str = "info") -> Json:
    return {"method": "notifications/message", "params": {"level": level, "data": level}}


def progress(token: Any, done: int) -> Json:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": done}}


def slow() -> Talk:
    """Return a call with two progress notifications and a response after three seconds."""
    talk = Talk().client(id=1, method="tools/call", params={"name": "slow", "_meta": {"progressToken": 1}})
    return talk.server(**progress(1, 1)).server(**progress(1, 2)).server(id=1, result={"said": "done"})


def asking() -> Talk:
    """Return a call during which the server requests the roots and logs a message."""
    talk = Talk().handshake().client(id=1, method="tools/call", params={"name": "ask"})
    talk.server(id=0, method="roots/list").client(id=0, result={"roots": []})
    return talk.server(**log()).server(id=1, result={"said": "thanks"})


def names(said: list[Json]) -> list[Any]:
    return [message.get("method", message.get("id")) for message in said]
