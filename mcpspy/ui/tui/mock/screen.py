"""The live screen of a mock: the actions of its keys.

Three keys answer in place of the recording: with an error, later, or with an edited response. They act on the waiting
request; in the list of recorded interactions on all requests that get this one; else on the next request.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.core.jsontools import one_line
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.steering import LONGEST, MISSES
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.settings import slug
from mcpspy.ui.model.intercept_connection import HeldMessage
from mcpspy.ui.tui.intercept.assistance import ValidationProblem, editable
from mcpspy.ui.tui.intercept.editor import EditorScreen
from mcpspy.ui.tui.intercept.labels import short_name
from mcpspy.ui.tui.mock.dialog import ConnectScreen
from mcpspy.ui.tui.mock.view import MISS_WORDS, MockView
from mcpspy.ui.tui.session.subscreens import free_name
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, ErrorPrompt, TextPrompt

SPEEDS = (0.5, 1.0, 2.0, 5.0, 10.0, 0.0)
"""Speeds of the two keys, the slowest first; 0 is without pauses."""

DELAY = "2"

EMPTY = '{\n  "result": {}\n}'
"""The text of a response for a request that nothing similar was recorded for."""


class AnswerTarget(NamedTuple):
    """The requests that get the user's answer."""

    name: str
    held: HeldMessage | None = None
    number: int | None = None
    """Number of a recorded interaction; None for a waiting request, or the next one."""


class MockScreen(MockView):
    @property
    def target(self) -> AnswerTarget:
        """The requests that an answer is for."""
        if self.interactions.has_focus and (number := self.interactions.number) is not None:
            text = self.interactions.text(self.interactions.cursor)
            about = sanitize(f"{text.method} {text.subject}".rstrip())
            return AnswerTarget(f"request {number} ({about})", number=number)
        if (held := self.waiting) is not None:
            return AnswerTarget(short_name(held), held=held)
        return AnswerTarget("the next request")

    def action_swap(self) -> None:
        if self.detail.has_focus_within:
            next(each for each in self.lists if each.has_class("-shown")).focus()
        else:
            self.detail.focus()

    def action_leave(self) -> None:
        if self.detail.has_focus_within:
            self.action_swap()

    def action_view(self) -> None:
        shown = next(number for number, each in enumerate(self.lists) if each.has_class("-shown"))
        self.show_list(self.lists[(shown + 1) % len(self.lists)])

    def action_follow(self) -> None:
        self.show_list(self.requests)
        self.requests.action_last()

    def action_pair(self) -> None:
        """Go to the recorded interaction that a request got, or to the nearest one of a miss."""
        fields = self.model.note(self.requests.cursor) if self.requests.row is not None else {}
        number = fields.get("interaction", fields.get("nearest"))
        if self.recorded is None or self.recorded.place_of(number) is None:
            self.flash_message("this request got no recorded interaction")
            return
        self.interactions.go_to(number)
        self.show_list(self.interactions)

    def action_stop(self) -> None:
        """Stop serving and go back, after a confirmation if clients are connected."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(None)

        if question := self.leave_question:
            self.app.push_screen(ConfirmPrompt(question, "stop", "keep serving"), answered)
        else:
            self.dismiss(None)

    def action_connect(self) -> None:
        self.app.push_screen(ConnectScreen(self.mock, self.entries))

    def action_copy_url(self) -> None:
        self.app.copy_to_clipboard(self.mock.url)
        self.flash_message(f"copied {self.mock.url}")

    def action_session(self) -> None:
        """Open the session that the mock records, at the selected request."""
        row = self.requests.row

        async def opened() -> None:
            from mcpspy.ui.tui.session.screen import SessionScreen

            path = self.session_path
            summary = await asyncio.to_thread(summarize, path, await asyncio.to_thread(read_header_of, path))
            self.app.push_screen(SessionScreen(summary, row=row))

        self.run_worker(opened(), group="session", exclusive=True)

    # Options of the mock.

    def action_pause(self) -> None:
        async def paused() -> str:
            on = not self.connection.is_paused
            count = len(self.connection.requests)
            await self.connection.pause(on=on)
            return "paused: requests wait; i answers them" if on else f"answering again, {count} waited"

        self.do(paused())

    def action_match(self) -> None:
        modes = [str(mode) for mode in MatchMode]
        self._change("match", _following(modes, self.connection.state.get("match")))

    def action_misses(self) -> None:
        names = [name for name in MISSES if name != "forward" or self.connection.state.get("may_forward")]
        self._change("misses", _following(names, self.connection.state.get("misses")))

    def action_speed(self, step: int) -> None:
        now = SPEEDS.index(self.connection.state.get("speed", 0.0))
        self._change("speed", SPEEDS[min(max(now + step, 0), len(SPEEDS) - 1)])

    def _change(self, option: str, value: Any) -> None:
        async def changed() -> str:
            state = await self.connection.steer(**{option: value})
            if option == "misses":
                return f"misses from now on: {MISS_WORDS[state['misses']]}"
            return f"match: {state['match']}" if option == "match" else _speed_words(state["speed"])

        self.do(changed())

    # Waiting requests, and answers in place of the recording.

    def action_release(self) -> None:
        held = self.waiting
        if held is not None:
            self.do(self._released_as_recorded(held))

    def action_release_all(self) -> None:
        async def released() -> str:
            return f"{await self.connection.accept_all()} answered as recorded"

        self.do(released())

    async def _released_as_recorded(self, held: HeldMessage) -> str:
        await self.connection.accept(held)
        return f"{short_name(held)}: answered as recorded"

    def action_refuse(self) -> None:
        target = self.target

        def chosen(error: tuple[int, str] | None) -> None:
            if error is not None:
                value = {"code": error[0], "message": error[1]}
                self.do(self._give(target, f"error {error[0]}", "error", value))

        cancel = "keep waiting" if target.held is not None else "cancel"
        self.app.push_screen(ErrorPrompt(target.name, "in place of the recording", cancel), chosen)

    def action_delay(self) -> None:
        target = self.target

        async def delayed(text: str) -> None:
            seconds = _seconds(text)
            if target.held is None:
                self.flash_message(await self._set(target, f"after {seconds:g} s", delay=seconds))
            else:
                self.set_timer(max(seconds, 0.001), lambda: self._release_if_waiting(target.held))
                self.flash_message(f"{target.name}: answered in {seconds:g} s")

        question = f"Seconds until {target.name} is answered:"
        self.app.push_screen(TextPrompt(question, DELAY, done="delay", act=delayed))

    def _release_if_waiting(self, held: HeldMessage | None) -> None:
        if held is not None and held.ticket in self.connection.held:
            self.do(self._released_as_recorded(held))

    def action_edit(self) -> None:
        """Edit the response that the target would get."""
        target, recorded = self.target, self.recorded
        if recorded is None:
            self.flash_message("the recording is still being read")
            return
        number = target.number
        if number is None:
            request = self._request_of(target.held)
            number = None if request is None else recorded.closest(request)
        answer = None if number is None else recorded.response(number)
        original = _response_text(answer)

        async def send(text: str) -> None:
            member, value = _read_response(text)
            self.flash_message(await self._give(target, "edited response", member, value))

        about = "" if number is None or target.number is not None else f" (from request {number})"
        heading: list[Piece] = [(f"response to {target.name}{about}", "title")]
        self.app.push_screen(EditorScreen(lambda: heading, original, _response_problems, send))

    def action_forget(self) -> None:
        """Take back the answer for the selected interaction; in another list, all of them."""

        async def forgotten() -> str:
            answers = self.connection.state.get("answers", ())
            only = self.target.number
            numbers = [each["interaction"] for each in answers if only in (None, each["interaction"])]
            for number in numbers:
                await self.connection.steer(answer={"interaction": number})
            return f"{len(numbers)} taken back" if numbers else "no answer is set"

        self.do(forgotten())

    async def _give(self, target: AnswerTarget, words: str, member: str, value: Any) -> str:
        """Answer with a result or error. Raise McpspyError if the mock refuses."""
        if target.held is None:
            return await self._set(target, words, **{member: value})
        await self.connection.give(target.held, member, value)
        return f"{target.name}: {words}"

    async def _set(self, target: AnswerTarget, words: str, **answer: Any) -> str:
        """Set an answer; a delay that is set stays if the response changes, and the other way round."""
        answers = self.connection.state.get("answers", ())
        before = next((dict(each) for each in answers if each["interaction"] == target.number), {})
        if not answer.keys() <= {"delay"}:
            before = {name: before[name] for name in before.keys() & {"delay", "times"}}
        await self.connection.steer(answer={**before, "interaction": target.number, **answer})
        return f"{target.name}: {words}"

    def _request_of(self, held: HeldMessage | None) -> Request | None:
        """Return the waiting request, else the selected one."""
        row = self.requests.row
        if held is not None:
            row = self.loader.model.index.held.get(held.ticket)
        found = None if row is None else self.loader.model.message(row)
        return found if isinstance(found, Request) else None

    # A recording with the edited responses.

    def action_save(self) -> None:
        answers = {
            each["interaction"]: (member, each[member])
            for each in self.connection.state.get("answers", ())
            for member in ("result", "error")
            if member in each and each["interaction"] is not None
        }
        recorded = self.recorded
        if recorded is None or not answers:
            self.flash_message(
                "nothing to save: edit the response of a recorded interaction first (v, then R)"
            )
            return

        def path_of(name: str) -> Path:
            return Path(os.path.abspath(os.path.expanduser(name)))

        async def save(name: str) -> None:
            from mcpspy.io.recording.atomic import save

            path = path_of(name)
            if path.suffix != ".jsonl":
                raise UsageError(f"{path.name}: the name of a recording ends in .jsonl")
            pieces = recorded.edited(self.summary.path, answers)
            size = await asyncio.to_thread(save, path, pieces)
            self.flash_message(f"saved {size:,} bytes to {path}")

        question = f"Save the recording with {len(answers)} edited as:"
        name = free_name(f"{slug(self.summary.header.name)}-edited", "jsonl")
        self.app.push_screen(TextPrompt(question, name, done="save", act=save))


def _following(names: list[str], now: object) -> str:
    """Return the name after this one, in a circle."""
    return names[(names.index(str(now)) + 1) % len(names)] if now in names else names[0]


def _speed_words(speed: float) -> str:
    return f"speed {speed:g} of the recording" if speed else "without the recorded pauses"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST:
        raise UsageError(f"{text}: not a number of seconds from 0 to {LONGEST:g}")
    return seconds


def _response_text(answer: Result | Failure | None) -> str:
    """Return a response as text to edit: the object with its `result` or `error`."""
    if answer is None:
        return EMPTY
    member = b"result" if isinstance(answer, Result) else b"error"
    raw = answer.raw_result if isinstance(answer, Result) else answer.raw_error
    return editable(b'{"%b":%b}' % (member, one_line(bytes(raw)))) or EMPTY


def _read_response(text: str) -> tuple[str, Any]:
    """Return the member and the value of a response. Raise UsageError."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"invalid JSON: {error}") from None
    if not isinstance(fields, dict) or len(fields) != 1 or not fields.keys() <= {"result", "error"}:
        raise UsageError('use an object with either "result" or "error"')
    ((member, value),) = fields.items()
    return member, value


def _response_problems(text: str) -> list[ValidationProblem]:
    try:
        _read_response(text)
    except UsageError as error:
        return [ValidationProblem(str(error), is_json=False, is_fatal=True)]
    return []
