"""Replays and mocks that the page starts and watches: the engines and models of the terminal UI.

Only with `mcpspy web --allow-control`, and only over loopback: they start programs. Each session has at most one; it
ends when the page closes it or the server ends. The page gets the names of proposed servers and their redacted command
lines; environment and headers, which may contain secrets, stay here.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from mcpspy.analysis.rows import duration
from mcpspy.core.redact.display import redacted_url, shown_command
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import mock_notes
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.engine import EngineProcess
from mcpspy.io.recording.reader import Summary, read_header_of, summarize
from mcpspy.ui.model.mock_control import MockForm, RunningMock, remembered_mock
from mcpspy.ui.model.mock_model import MockModel, RecordedInteractions, load
from mcpspy.ui.model.replay_options import ProposedServer, ReplayForm, proposals, redacted_keys, remembered
from mcpspy.ui.model.replay_run import MISSING, WORDS, Phase, ReplayModel, StepState
from mcpspy.ui.model.session_loader import SessionLoader

SHOWN = 100
"""Steps, requests or interactions of one response."""

SLICE = 0.01
"""Seconds in which a model reads what is new, between two turns of the event loop."""

ENDING = 5
"""Maximum lines about the end."""

REPLAY_ORDERS = ("pause", "resume", "step", "stop", "save")
"""Orders of the page that the engine of a replay executes."""

Shown = list[dict[str, Any]]


class WebReplay:
    """A replay that the page watches."""

    kind = "replay"

    def __init__(self) -> None:
        self._model = ReplayModel()
        self._engine = EngineProcess(self._model.ENGINE, self._model.take, self._ended)

    @property
    def version(self) -> Any:
        return self._model.version

    async def start(self, config: Mapping[str, Any]) -> None:
        """Start it. Raise CannotStart."""
        self._model.patterns = list(config["ignored"])
        await self._engine.start(dict(config))

    async def stop(self) -> None:
        await self._engine.stop()

    async def execute(self, order: str, fields: Mapping[str, Any]) -> None:
        """Execute an order of the page; the model shows what came of it. Raise UsageError."""
        if order == "ignore":
            self._engine.send("ignore", number=int(fields.get("number", 0)))
        elif order in REPLAY_ORDERS:
            self._engine.send(order)
        else:
            raise UsageError(f"unknown order {sanitize(order)!r}")

    def state(self) -> dict[str, Any]:
        model = self._model
        counts = {WORDS[state]: model.counts[state] for state in WORDS if model.counts[state]}
        if others := model.counts[StepState.OTHER]:
            counts["other differences"] = others
        return {
            "kind": self.kind,
            "phase": model.phase.name.lower(),
            "over": model.is_over,
            "paused": model.phase is Phase.PAUSED,
            "done": model.done,
            "total": model.requests,
            "counts": counts,
            "next": model.next,
            "difference": model.following(-1, 1),
            "ending": model.ending[:ENDING],
            "message": sanitize(model.message),
        }

    def window(self, what: str, first: int, count: int) -> Shown:
        """Return steps from a place on."""
        model = self._model
        return [self._step(place) for place in range(max(first, 0), min(first + count, len(model)))]

    def size(self, what: str) -> int:
        return len(self._model)

    def _step(self, place: int) -> dict[str, Any]:
        model = self._model
        state, reason = StepState(model.states[place]), model.reasons.get(place, "")
        severity = ""
        if state is StepState.OTHER:
            severity, _, reason = reason.partition(": ")
        was, now = (
            duration(each[place]) if each[place] != MISSING else ""
            for each in (model.recorded, model.latency)
        )
        return {
            "number": model.numbers[place] if place < len(model.numbers) else None,
            "state": state.name.lower(),
            "words": severity or WORDS[state],
            "about": model.about[place],
            "reason": reason,
            "more": max(model.changes.get(place, 1) - 1, 0),
            "was": was,
            "now": now,
        }

    def _ended(self, reason: str) -> None:
        if reason:
            self._model.failed(sanitize(reason))


class WebMock:
    """A mock that the page watches: its requests and recorded interactions."""

    kind = "mock"

    def __init__(self, running: RunningMock, recorded: RecordedInteractions, own: Summary) -> None:
        self._running, self._recorded = running, recorded
        self._loader = SessionLoader(own)
        self._model = MockModel(self._loader.model)
        self._task = asyncio.create_task(self._loader.read())

    @property
    def version(self) -> Any:
        self._advance()
        return self._model.processed, self._model.generation, self._running.trouble

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._loader.close()
        await self._running.stop()

    async def execute(self, order: str, fields: Mapping[str, Any]) -> None:
        """Raise UsageError: the session that the mock records takes the orders, as any live one does."""
        raise UsageError(f"unknown order {sanitize(order)!r}")

    def state(self) -> dict[str, Any]:
        self._advance()
        model, running = self._model, self._running
        return {
            "kind": self.kind,
            "phase": "stopped" if running.trouble else "serving",
            "over": bool(running.trouble),
            "url": running.url,
            "command": sanitize(running.shown_command()),
            "requests": len(model.requests),
            "misses": model.misses,
            "clients": len(model.connected),
            "interactions": len(self._recorded),
            "session": running.path.stem,
            "ending": [sanitize(running.trouble)] if running.trouble else [],
        }

    def window(self, what: str, first: int, count: int) -> Shown:
        """Return requests, or recorded interactions, from a place on."""
        places = range(max(first, 0), min(first + count, self.size(what)))
        return [self._interaction(each) if what == "interactions" else self._request(each) for each in places]

    def size(self, what: str) -> int:
        self._advance()
        return len(self._recorded) if what == "interactions" else len(self._model.requests)

    def _request(self, place: int) -> dict[str, Any]:
        columns, row = self._loader.model.index, self._model.requests[place]
        note = dict(self._model.note(place))
        note.pop("recording", None)  # There is one.
        did = note.get("did")
        return {
            "client": note.get("client"),
            "about": sanitize(f"{columns.texts[columns.method[row]]} {columns.texts[columns.subject[row]]}"),
            "got": sanitize(mock_notes.words(note)) if note else "…",
            "state": "missed" if did == "missed" else "open" if not note else "played",
        }

    def _interaction(self, place: int) -> dict[str, Any]:
        text = self._recorded.text(place)
        return {
            "number": text.number,
            "about": sanitize(f"{text.method} {text.subject}".rstrip()),
            "arguments": text.arguments,
            "outcome": text.outcome,
            "asked": self._model.asked[text.number],
            "left": self._model.left.get(text.number),
        }

    def _advance(self) -> None:
        until = time.perf_counter() + SLICE
        self._model.advance(lambda: time.perf_counter() < until)


class Plays:
    """The replays and mocks of all sessions, by the keys of their pages."""

    def __init__(self, folder: str) -> None:
        """Mocks record their clients to `folder`."""
        self._folder = folder
        self._open: dict[str, WebReplay | WebMock] = {}
        self._servers: dict[str, Sequence[ProposedServer]] = {}
        self._starting: set[str] = set()

    async def close(self) -> None:
        """End all of them."""
        found, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.stop() for each in found))

    def version(self, key: str) -> Any:
        play = self._open.get(key)
        return None if play is None else (id(play), play.version)

    def state(self, key: str) -> dict[str, Any]:
        play = self._open.get(key)
        return {"kind": ""} if play is None else play.state()

    def window(self, key: str, what: str, first: int, count: int) -> dict[str, Any]:
        """Return a part of a list: `steps`, `requests` or `interactions`. Raise UsageError if nothing runs."""
        play = self._found(key)
        return {"total": play.size(what), "rows": play.window(what, first, min(count, SHOWN))}

    async def propose(self, key: str, summary: Summary) -> dict[str, Any]:
        """Return what the dialogs of the page propose."""
        header = summary.header
        servers = self._servers[key] = await asyncio.to_thread(lambda: list(proposals(header)))
        form, mock = remembered(header), remembered_mock(header)
        return {
            "servers": [{"title": sanitize(each.title), "shown": _shown(each.server)} for each in servers],
            "secrets": await asyncio.to_thread(redacted_keys, summary.path),
            "ignored": form.ignored,
            "port": mock.port,
            "real": _shown(mock.server or ""),
        }

    async def execute(self, key: str, summary: Summary, order: Mapping[str, Any]) -> dict[str, Any]:
        """Start, steer or end a replay or mock. Raise McpspyError with the reason if that is refused."""
        what = str(order.get("order"))
        if what in ("replay", "serve"):
            if key in self._open or key in self._starting:
                raise UsageError("this session is replayed or served already", "stop it first")
            self._starting.add(key)
            try:
                await (self._replay if what == "replay" else self._serve)(key, summary, order)
            finally:
                self._starting.discard(key)
        elif what == "close":
            await self._found(key).stop()
            self._open.pop(key, None)
        else:
            await self._found(key).execute(what, order)
        return {}

    async def _replay(self, key: str, summary: Summary, order: Mapping[str, Any]) -> None:
        form = structs.replace(
            ReplayForm(),
            secrets=str(order.get("secrets", "")),
            ignored=str(order.get("ignored", "")),
            pause="start" if order.get("pause") is True else "never",
        )
        server = str(order.get("server", "")).strip()
        if server:
            form = structs.replace(form, server=server, cwd=summary.header.cwd or "")
        else:
            chosen = self._proposed(key, order)
            kept = {name: getattr(chosen, name) for name in ("server", "cwd", "environment", "headers")}
            form = structs.replace(form, **kept)
        replay = WebReplay()
        await replay.start({**form.config(), "path": str(summary.path), "folder": self._folder})
        self._open[key] = replay

    async def _serve(self, key: str, summary: Summary, order: Mapping[str, Any]) -> None:
        form = MockForm(str(order.get("port", "0")), str(order.get("server", "")))
        setup = form.setup(summary, self._folder)
        recorded = await asyncio.to_thread(load, summary.path)
        running = RunningMock(setup)
        await running.start()
        try:
            own = await asyncio.to_thread(
                lambda: summarize(running.path, read_header_of(running.path), counts=False)
            )
        except McpspyError:
            await running.stop()
            raise
        self._open[key] = WebMock(running, recorded, own)

    def _proposed(self, key: str, order: Mapping[str, Any]) -> ProposedServer:
        servers, place = self._servers.get(key, ()), order.get("against")
        if not isinstance(place, int) or not 0 <= place < len(servers):
            raise UsageError("server: missing", "choose one, or type a command or a URL")
        return servers[place]

    def _found(self, key: str) -> WebReplay | WebMock:
        if (play := self._open.get(key)) is None:
            raise UsageError("this session is neither replayed nor served")
        return play


def _shown(server: str) -> str:
    """Return a command line or URL without secrets."""
    if server.startswith(("http:", "https:")):
        return sanitize(redacted_url(server))
    try:
        return shown_command(shlex.split(server))
    except ValueError:
        return ""
