"""Calls from a form of the page: into a live session, or to a server that runs for them.

Only with `mcpspy web --allow-control`; a server is started only for a browser on this machine, and only one that the
user has in a configuration, a recording or a saved call. The form is kept here (`ui/model/call_form`), and the page
draws it: it gets numbers of fields and texts without control characters, and neither variables nor headers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.protocol.argument_fields import ArgumentField, choice_text
from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError
from mcpspy.ui.model.call_form import CallForm, CallTarget, words_of
from mcpspy.ui.model.intercept_connection import InterceptConnection
from mcpspy.ui.model.live_call import LiveCall
from mcpspy.ui.model.server_call import CallServer, ServerCall, call_servers
from mcpspy.ui.model.session_model import SessionModel

MOST = 8
"""Maximum servers that run for calls at once."""

ABOUT = 2_000
"""Characters of a description that are sent to the page."""


class _OpenCall:
    """An open call, and the request that runs or ran last."""

    def __init__(self, call: LiveCall | ServerCall, key: str) -> None:
        """`key` is that of the session in which the calls are recorded."""
        self.call, self.key = call, key
        self._task: asyncio.Task[None] | None = None
        self._since = 0.0
        self._outcome: dict[str, Any] = {}

    def form(self, place: Any) -> CallForm:
        """Return the form of a target by its number. Raise UsageError."""
        targets = self.call.targets
        if not isinstance(place, int) or not 0 <= place < len(targets):
            raise UsageError("the server has no such tool", "choose one of the list")
        return self.call.form(targets[place])

    def begin(self, form: CallForm, *, is_anyway: bool) -> None:
        """Send a call. Raise UsageError if something is wrong with it, unless it is sent anyway."""
        problems = form.problems()
        if self.is_busy:
            raise UsageError("a call is running", "cancel it first")
        if problems.has_no_value or (problems.lines and not is_anyway):
            raise UsageError("correct the marked fields")
        self._outcome, self._since = {}, time.monotonic()
        self._task = asyncio.create_task(self._run(form.target, form.request()[1]))

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def state(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self._since, 1)
        progress = sanitize(self.call.progress) if self.is_busy else ""
        return {"busy": self.is_busy, "seconds": seconds, "progress": progress, **self._outcome}

    async def close(self) -> None:
        await self.call.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, target: CallTarget, params: Mapping[str, Any]) -> None:
        try:
            row = await self.call.call(target, params)
        except McpspyError as error:
            self._outcome = {"error": sanitize(str(error))}
            return
        exchange = self.call.model.shown(row).exchange
        words = "" if exchange is None else rows.outcome(exchange)[0]
        self._outcome = {"session": self.key, "number": row + 1, "words": sanitize(words)}


class WebCalls:
    """The calls of all pages, by the numbers that the pages got."""

    def __init__(self, folder: str) -> None:
        """New sessions are recorded to `folder`."""
        self._folder = folder
        self._open: dict[str, _OpenCall] = {}
        self._servers: dict[str, Sequence[CallServer]] = {}
        self._number = self._starting = 0

    async def close(self) -> None:
        """End all servers."""
        for number in list(self._open):
            await self._open.pop(number).close()

    async def propose(self, key: str, header: Header | None, *, live: bool) -> dict[str, Any]:
        """Return what a page may call: the live session, servers, or the server that already runs for this session."""
        for number, each in self._open.items():
            if key and each.key == key and isinstance(each.call, ServerCall):
                return self._opened(number)
        servers = self._servers[key] = await asyncio.to_thread(call_servers, header)
        return {
            "live": live,
            "servers": [
                {"title": sanitize(each.title), "shown": each.shown, "starts": each.is_command}
                for each in servers
            ],
        }

    async def open_live(
        self, key: str, connection: InterceptConnection, model: SessionModel
    ) -> dict[str, Any]:
        """Open the calls of a live session. Raise McpspyError."""
        return self._add(_OpenCall(await LiveCall(connection, model).start(), key))

    async def open_server(self, key: str, place: Any) -> dict[str, Any]:
        """Start a proposed server, or connect to it. Raise McpspyError with the reason if that fails."""
        servers = self._servers.get(key, ())
        if not isinstance(place, int) or not 0 <= place < len(servers):
            raise UsageError("server: missing", "choose one of the list")
        running = sum(isinstance(each.call, ServerCall) for each in self._open.values())
        if running + self._starting >= MOST:
            raise UsageError(f"{MOST} servers run for calls", "end one of them first")
        self._starting += 1
        try:
            call = await ServerCall(servers[place], self._folder).start()
        finally:
            self._starting -= 1
        answer = self._add(_OpenCall(call, call.path.stem))
        return answer if call.chosen is None else {**answer, "chosen": call.chosen}

    async def execute(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Execute an order of the page; return its outcome. Raise McpspyError if it is refused."""
        what, number = order.get("order"), str(order.get("call"))
        opened = self._found(number)
        if what == "cancel":
            await opened.call.cancel()
            return opened.state()
        if what == "close":
            await self._open.pop(number).close()
            return {}
        form = opened.form(order.get("target"))
        if what == "send":
            _edit(form, order)
            opened.begin(form, is_anyway=order.get("anyway") is True)
            return opened.state()
        if what == "form":
            _edit(form, order)
            return _described(form)
        raise UsageError(f"unknown order {sanitize(str(what))!r}")

    def state(self, number: str) -> dict[str, Any]:
        """Return the state of the call that runs or ran last."""
        return self._found(number).state()

    def _add(self, opened: _OpenCall) -> dict[str, Any]:
        self._number += 1
        self._open[str(self._number)] = opened
        lives = [number for number, each in self._open.items() if isinstance(each.call, LiveCall)]
        for old in lives[:-MOST]:
            if not self._open[old].is_busy:
                del self._open[old]
        return self._opened(str(self._number))

    def _opened(self, number: str) -> dict[str, Any]:
        call = self._open[number].call
        server = call.server if isinstance(call, ServerCall) else None
        return {
            "call": number,
            "server": None if server is None else {"shown": server.shown, "starts": server.is_command},
            "targets": [
                {"noun": each.noun, "name": sanitize(each.key), "title": sanitize(each.title)}
                for each in call.targets
            ],
            "notes": [sanitize(note) for note in call.notes],
        }

    def _found(self, number: str) -> _OpenCall:
        if number not in self._open:
            raise UsageError("the server was ended, or mcpspy web started again", "open it again")
        return self._open[number]


def _edit(form: CallForm, order: Mapping[str, Any]) -> None:
    """Take the texts of fields, by their numbers, or the JSON of all. Raise UsageError for wrong JSON."""
    if isinstance(json := order.get("json"), str):
        form.read_json(json)
    texts = order.get("texts")
    for number, text in texts.items() if isinstance(texts, dict) else ():
        with suppress(ValueError, IndexError):
            field = form.fields[int(number)]
            is_choice = field.choices and text != ""
            form.set(field.pointer, choice_text(field.choices[int(text)]) if is_choice else str(text))


def _described(form: CallForm) -> dict[str, Any]:
    problems, target = form.problems(), form.target
    return {
        "noun": target.noun,
        "name": sanitize(target.key),
        "title": sanitize(target.title),
        "about": "\n".join(map(sanitize, target.about[:ABOUT].split("\n"))),
        "hints": target.hints,
        "destructive": target.is_destructive,
        "fields": [_field(form, each, problems.at.get(each.pointer, "")) for each in form.fields],
        "more": form.left_out,
        "json": form.json,
        "others": [sanitize(each) for each in problems.others],
        "fatal": problems.has_no_value,
        "wrong": len(problems.lines),
    }


def _field(form: CallForm, field: ArgumentField, error: str) -> dict[str, Any]:
    text = form.texts.get(field.pointer, "")
    choices = [choice_text(value) for value in field.choices]
    return {
        "name": sanitize(field.name),
        "kind": field.kind,
        "needed": field.is_needed,
        "about": sanitize(field.about[:ABOUT]),
        "words": sanitize(" · ".join(words_of(field, "required"))),  # The page has it beside the name.
        "choices": [sanitize(each) for each in choices],
        "text": (str(choices.index(text)) if text in choices else "") if choices else sanitize(text),
        "elsewhere": form.is_elsewhere(field),
        "error": sanitize(error),
    }
