"""The process that runs the scripts of one session, started by `io.scripts`.

Connects to the session's control socket, gets each message for which a script has a hook, and answers with the
decision. Synchronous hooks run one after another; asynchronous ones overlap.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from mcpspy.core.framing import LineFramer
from mcpspy.core.protocol.message import AnyMessage, Notification, Request, Result, loads, read_frame
from mcpspy.core.protocol.message import Failure as FailureResponse
from mcpspy.core.protocol.spec import other
from mcpspy.core.recording.decode import Frame
from mcpspy.errors import McpspyError
from mcpspy.io.control.client import connected, dumped, ended, greeted
from mcpspy.io.network.listener import run_server
from mcpspy.io.recording.recorder import say
from mcpspy.ui.api.live import LiveExchange, LiveHead, LiveMessage, ScriptSession
from mcpspy.ui.scripts.script import MESSAGE_HOOKS, Script, ScriptError

Waiting: TypeAlias = LiveMessage | LiveHead

BUFFER = 1 << 16
"""Size of the buffer in bytes, which is used again: asyncio allocates 256 kB for each message without one."""

RELOAD_INTERVAL = 0.5
"""Seconds between two checks of the files."""


class ScriptHost(asyncio.BufferedProtocol):
    """The scripts and their connection to the session."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._framer = LineFramer()
        self._buffer = memoryview(bytearray(BUFFER))
        self._greeting: asyncio.Future[ScriptSession] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._scripts: list[Script] = []
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: list[bytes] = []
        self._is_receiving = False
        self._script = ""
        self._session: ScriptSession
        self._transport: asyncio.Transport

    async def run(self) -> None:
        """Run until the session has ended. Raise CannotStart if it cannot be reached."""
        connection = connected(self._config["socket"])
        connection.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=connection)
        self._session = await self._greeting
        self._reply({"order": "hello", "viewer": "scripts"})
        self._tell_state()
        try:
            for name, path in self._config["scripts"]:
                self._script = name
                script = Script(name, path)
                self._scripts.append(script)
                await self._configure(script)
        except ScriptError as error:
            self._tell_state(script=self._script, failed=str(error), final=True)
            await self._ended.wait()
            return
        await self._notify_all("session_started", self._session)
        self._ready()
        watching = asyncio.ensure_future(self._watch()) if self._config["reload"] else None
        await self._ended.wait()
        if watching is not None:
            watching.cancel()
        self._exit_after(self._config["exit_timeout"])
        await self._notify_all("session_ended", self._session)

    # The connection.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # Those of uvloop are of another class.

    def connection_lost(self, _error: Exception | None) -> None:
        self._ended.set()
        for pending in self._pending.values():
            if not pending.done():
                pending.set_exception(ended(None))

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        self._is_receiving = True
        for line in self._framer.feed(bytes(self._buffer[:size])):
            self._take(line)
        self._is_receiving = False
        self._send()

    def _take(self, line: bytes) -> None:
        fields = loads(line)
        event = fields.get("event")
        if event == "message":
            self._decide_message(fields)
        elif event == "head":
            head = LiveHead(self._session, fields)
            hook = "http_request" if head.status is None else "http_response"
            self._decide(fields["ticket"], [(hook, head, head)])
        elif event == "stderr":
            self._start(self._notify_all("stderr", fields["text"]))
        elif event == "answer":
            self._resolve(fields["n"], fields.get("message") or {"error": {"message": fields.get("error")}})
        elif event == "end":
            self._ended.set()
        elif "mcpspy" in fields:
            hello = greeted(line, self._config["socket"])
            self._greeting.set_result(ScriptSession(hello, self._order, self._note))
        elif event is None and isinstance(fields.get("n"), int) and not fields["ok"]:
            # A decision that the session rejects.
            failure = {"failures": [{"script": self._script, "failed": fields["error"]}]}
            self._reply({"order": "decide", "ticket": fields["n"], "decisions": [failure]})
        elif event is None and isinstance(fields.get("n"), str):
            if not fields["ok"]:
                self._resolve(fields["n"], {"error": {"message": fields["error"]}})
            elif "id" not in fields:  # A notification was delivered.
                self._resolve(fields["n"], {})

    def _reply(self, fields: dict[str, Any]) -> None:
        self._replies.append(dumped(fields))
        if not self._is_receiving:
            self._send()

    def _send(self) -> None:
        if self._replies and not self._transport.is_closing():
            self._transport.write(b"".join(self._replies))
        self._replies.clear()

    def _tell_state(self, **fields: Any) -> None:
        self._reply({"order": "scripts", "token": self._config["token"], **fields})

    def _ready(self) -> None:
        hooks = {hook for script in self._scripts for hook in script.hooks if hook in MESSAGE_HOOKS}
        limits = [self._config["timeout"], *self._config["timeouts"].values()]
        self._tell_state(hooks=sorted(hooks), timeout=max(limits))

    async def _order(self, order: str, fields: dict[str, Any]) -> Any:
        """Inject a message; return the result of a request."""
        self._number += 1
        number = f"script-{self._number}"
        pending = self._pending[number] = asyncio.get_running_loop().create_future()
        self._reply({"n": number, "order": order} | {k: v for k, v in fields.items() if v is not None})
        try:
            response = await pending
        finally:
            del self._pending[number]
        if "error" in response:
            raise McpspyError(f"{order} {fields['method']}: {response['error'].get('message')}")
        return response.get("result")

    def _resolve(self, number: str, response: dict[str, Any]) -> None:
        if (pending := self._pending.get(number)) is not None and not pending.done():
            pending.set_result(response)

    def _note(self, text: str) -> None:
        self._reply({"order": "note", "script": self._script, "text": str(text)})

    # Hooks.

    def _limit(self, hook: str) -> float:
        limit: float = self._config["timeouts"].get(hook, self._config["timeout"])
        return limit

    async def _call(self, script: Script, hook: str, *arguments: object) -> None:
        """Call a hook if the script has it. Raise ScriptError."""
        function = script.hooks.get(hook)
        if function is None:
            return
        self._script = script.name
        try:
            result = function(*arguments)
            if isawaitable(result):
                await self._within_limit(hook, result)
        except (Exception, SystemExit) as error:
            raise ScriptError(script.failure(hook, error)) from None

    async def _within_limit(self, hook: str, work: Awaitable[Any]) -> None:
        limit = self._limit(hook)
        try:
            async with asyncio.timeout(limit) as timeout:
                await work
        except TimeoutError:
            if timeout.expired():
                raise TimeoutError(f"not done after {limit:g} s") from None
            raise

    async def _configure(self, script: Script) -> None:
        await self._call(script, "configure", self._config["options"])

    async def _notify_all(self, hook: str, argument: object) -> None:
        """Call a hook that decides on nothing in all scripts, and report failures."""
        for script in self._scripts:
            try:
                await self._call(script, hook, argument)
            except ScriptError as error:
                if self._ended.is_set():  # The session takes no more reports.
                    say(f"script {script.name}: {error}")
                else:
                    self._tell_state(script=script.name, failed=str(error))

    def _exit_after(self, seconds: float) -> None:
        """End the process if the hooks at the end of the session do not return."""

        def end() -> None:
            say(f"script {self._script}: session_ended: not done after {seconds:g} s")
            os._exit(1)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()

    def _decide_message(self, event: dict[str, Any]) -> None:
        text = event["text"].encode() if "text" in event else _from_base64(event["b64"])
        at, side, stream = event["at"], event["from"], event.get("stream")
        parts = read_frame(Frame(at, side, text, stream))
        requests = event.get("requests") or [None] * len(parts)
        subjects = [self._subject(*each, stream) for each in zip(parts, requests, strict=False)]
        self._decide(event["ticket"], subjects)

    def _decide(self, ticket: int, subjects: Sequence[tuple[str, Waiting, object] | None]) -> None:
        """Call the hooks for what waits, and answer now or when the asynchronous ones are done."""
        steps = [
            (script, hook, message, target)
            for hook, message, target in filter(None, subjects)
            for script in self._scripts
            if hook in script.hooks
        ]
        messages = [None if subject is None else subject[1] for subject in subjects]
        for number, step in enumerate(steps):
            work = self._apply(*step)
            if work is not None:
                self._start(self._finish(work, steps[number:], ticket, messages))
                return
        self._answer(ticket, messages)

    async def _finish(
        self,
        work: Awaitable[Any],
        steps: list[tuple[Script, str, Waiting, object]],
        ticket: int,
        messages: list[Waiting | None],
    ) -> None:
        """Wait for the asynchronous hook of the first step, and do the other steps."""
        pending: Awaitable[Any] | None = work
        for number, (script, hook, message, target) in enumerate(steps):
            if number:
                pending = self._apply(script, hook, message, target)
            if pending is not None:
                try:
                    await self._within_limit(hook, pending)
                except (Exception, SystemExit) as error:
                    self._failed(script, hook, message, error)
        self._answer(ticket, messages)

    def _apply(self, script: Script, hook: str, message: Waiting, target: object) -> Awaitable[Any] | None:
        """Call a hook for what is to be forwarded; return what is left of an asynchronous one."""
        effects = message._effects
        if "drop" in effects or "result" in effects or "error" in effects:
            return None
        before = len(effects)
        message._saved = message._message, dict(effects)
        self._script = script.name
        try:
            result = script.hooks[hook](target)
        except (Exception, SystemExit) as error:
            self._failed(script, hook, message, error)
            return None
        if isawaitable(result):
            _sign(effects, script)
            return result
        if len(effects) != before:
            _sign(effects, script)
        return None

    def _failed(self, script: Script, hook: str, message: Waiting, error: BaseException) -> None:
        """Undo what a failed hook did, and report it."""
        message._message, message._effects = message._saved
        failure = {"script": script.name, "failed": script.failure(hook, error)}
        message._effects["failures"] = [*message._effects.get("failures", []), failure]

    def _answer(self, ticket: int, messages: list[Waiting | None]) -> None:
        decisions = [{} if message is None else message._effects for message in messages]
        fields = {"decisions": decisions} if any(decisions) else {}
        self._reply({"n": ticket, "order": "decide", "ticket": ticket, **fields})

    def _subject(
        self, message: AnyMessage, request: dict[str, Any] | None, stream: str | None
    ) -> tuple[str, LiveMessage, object] | None:
        """Return the hook for a message, the message, and the argument of the hook; None without a hook."""
        session = self._session
        if isinstance(message, Request):
            live = LiveMessage(session, message)
            return "request", live, LiveExchange(live)
        if isinstance(message, Notification):
            live = LiveMessage(session, message)
            return "notification", live, live
        if not isinstance(message, Result | FailureResponse) or request is None:
            return None
        data = request["text"].encode() if "text" in request else _from_base64(request["b64"])
        frame = Frame(request["at"], other(message.side), data, stream)
        live = LiveMessage(session, message)
        return "response", live, LiveExchange(frame, live)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Load scripts again when their files change."""
        while True:
            await asyncio.sleep(RELOAD_INTERVAL)
            for script in self._scripts:
                try:
                    if not script.reload():
                        continue
                    await self._configure(script)
                except ScriptError as error:
                    self._tell_state(script=script.name, failed=str(error))
                    continue
                self._script = script.name
                self._note("reloaded")
                print(f"mcpspy: script {script.name}: reloaded", file=sys.stderr)
                self._ready()


def _sign(effects: dict[str, Any], script: Script) -> None:
    """Name a script in the effects of several, after those that did something before it."""
    names = effects["script"].split(", ") if "script" in effects else []
    effects["script"] = ", ".join([*(name for name in names if name != script.name), script.name])


def _from_base64(text: str) -> bytes:
    from base64 import b64decode

    return b64decode(text)


def _exit_with(parent: int) -> None:
    """End the process when mcpspy was killed, even if a hook never returns."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


async def _run(config: dict[str, Any]) -> None:
    await ScriptHost(config).run()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # The end of the session ends the scripts.
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(os.getppid(),), daemon=True).start()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # A text stream.
    config = loads(sys.stdin.buffer.read())
    try:
        with suppress(asyncio.CancelledError):
            run_server(_run(config))
    except McpspyError as error:
        print(f"mcpspy: scripts: {error}", file=sys.stderr)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
