"""A replay as its viewer sees it: steps, outcomes, counts, and the last message of the engine.

`ReplayModel` takes the events of `replay_engine` and judges nothing. It keeps a few bytes per step, and no message but
the two that are shown.
"""

from __future__ import annotations

import json
import shlex
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from mcpspy.core.redact.display import redacted_command, redacted_url

STDERR_LINES = 200
"""Lines of the server's stderr that are kept."""

MISSING = -1.0
"""The latency of a request without a response."""


class StepState(IntEnum):
    WAITING = 0
    SENT = 1
    SAME = 2
    NOTE = 3
    DIFFERENT = 4
    BREAKING = 5
    LOST = 6
    """It got no response."""
    UNSENT = 7
    OTHER = 8
    """Not a request of the client: a message or a listing that only the comparison of both sessions finds."""


WORDS = {
    StepState.WAITING: "waiting",
    StepState.SENT: "sent …",
    StepState.SAME: "same",
    StepState.NOTE: "note",
    StepState.DIFFERENT: "different",
    StepState.BREAKING: "BREAKING",
    StepState.LOST: "no answer",
    StepState.UNSENT: "not sent",
}

_SEVERITIES = {
    None: StepState.SAME,
    "note": StepState.NOTE,
    "different": StepState.DIFFERENT,
    "breaking": StepState.BREAKING,
}

CHANGED = (StepState.DIFFERENT, StepState.BREAKING, StepState.LOST, StepState.UNSENT)
"""The states of a difference, an error, or a missing response."""


class ShownStep(NamedTuple):
    """Both messages of a step, as far as they exist, and what differs between them."""

    number: int
    recorded: Sequence[str]
    """The request, and the response: JSON."""
    new: Sequence[str]
    changes: Sequence[Mapping[str, Any]]
    """`severity`, `kind`, `pointer`, `why`, and the values `old` and `new` in one line each."""
    more: int
    """Changes that are not in the list."""


class Phase(IntEnum):
    STARTING = 0
    PLAYING = 1
    PAUSED = 2
    ENDED = 3
    FAILED = 4
    """The server never answered, or the engine failed."""


class ReplayModel:
    """All that is known of one replay. `version` changes with it."""

    ENGINE = "mcpspy.ui.model.replay_engine"
    """The module of the engine whose events it takes."""

    def __init__(self) -> None:
        self.version = 0
        self.phase = Phase.STARTING
        self.numbers = array("I")
        """Step → the number of its exchange in the recording."""
        self.about: list[str] = []
        """Step → method and subject; sanitized."""
        self.states = bytearray()
        self.recorded = array("d")
        """Step → latency in the recording, in seconds."""
        self.latency = array("d")
        self.reasons: dict[int, str] = {}
        """Step → the first difference, or why it was not sent or not answered; sanitized."""
        self.changes: dict[int, int] = {}
        """Step → number of differences."""
        self.counts = [0] * len(StepState)
        self.next: int | None = None
        """The step that is sent next."""
        self.patterns: list[str] = []
        """The ignored values."""
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.warnings: deque[str] = deque(maxlen=STDERR_LINES)
        self.shown: ShownStep | None = None
        self.is_stale = False
        """True if the messages that were shown were judged again."""
        self.ending: list[str] = []
        """The reason why it ended early or failed, and the next step; empty if it did not."""
        self.message = ""
        """The last message of the engine, for the status line."""
        self.source: tuple[int, str] | None = None
        """Step and text of a request that the user wants to edit."""
        self.saved: str | None = None
        self._steps: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.states)

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.ENDED, Phase.FAILED)

    @property
    def done(self) -> int:
        """Return the number of requests that are over."""
        return self.requests - self.counts[StepState.WAITING] - self.counts[StepState.SENT]

    @property
    def requests(self) -> int:
        return len(self.numbers)

    def following(self, place: int, step: int) -> int | None:
        """Return the next step after this one that is not as recorded, in a direction; None if there is none."""
        places = range(place + 1, len(self)) if step > 0 else range(place - 1, -1, -1)
        return next((each for each in places if self._stands_out(each)), None)

    def take(self, event: dict[str, Any]) -> None:
        """Take an event of the engine."""
        self.version += 1
        getattr(self, f"_on_{event.pop('event')}")(**event)

    def failed(self, reason: str) -> None:
        """Take note that the engine itself failed."""
        self.version += 1
        self.phase = Phase.FAILED
        self.ending = [f"the replay failed: {reason}"]

    # Events of the engine, by their names.

    def _on_steps(self, steps: Sequence[tuple[int, str, float | None]]) -> None:
        for number, about, latency in steps:
            self._steps[number] = len(self)
            self.numbers.append(number)
            self._append(about, StepState.WAITING, latency)
        self.phase = Phase.PLAYING

    def _on_state(self, paused: bool, next: int | None, over: bool) -> None:  # noqa: A002 - The name of the event.
        self.next = None if next is None or over else self._steps.get(next)
        self.phase = Phase.PAUSED if paused else Phase.PLAYING

    def _on_sent(self, number: int) -> None:
        self._set(number, StepState.SENT, "")

    def _on_unsent(self, number: int, why: str) -> None:
        self._set(number, StepState.UNSENT, f"because {why}")

    def _on_lost(self, number: int, why: str, severity: str | None, changes: int, about: str) -> None:
        # A request that had no response either is as recorded.
        if severity is None:
            self._on_judged(number, severity, changes, about)
        else:
            self._set(number, StepState.LOST, why)
            self.changes[self._steps[number]] = changes

    def _on_answered(
        self, number: int, latency: float | None, severity: str | None, changes: int, about: str
    ) -> None:
        self.latency[self._steps[number]] = MISSING if latency is None else latency
        self._on_judged(number, severity, changes, about)

    def _on_judged(self, number: int, severity: str | None, changes: int, about: str) -> None:
        place = self._steps[number]
        if self.states[place] == StepState.LOST and severity is not None:
            return
        self._set(number, _SEVERITIES[severity], about)
        self.changes.pop(place, None)
        if changes:
            self.changes[place] = changes
        self._forget(number)

    def _on_others(self, cases: Sequence[tuple[str, str, str]], count: int) -> None:
        """Replace the rows after the requests."""
        del self.states[self.requests :], self.about[self.requests :]
        del self.recorded[self.requests :], self.latency[self.requests :]
        self.counts[StepState.OTHER] = 0
        for severity, about, change in cases:
            self.reasons[len(self)] = f"{severity}: {change}"
            self._append(about, StepState.OTHER, None)
        if count > len(cases):
            self.message = f"{count - len(cases):,} more differences are in the report"

    def _on_stderr(self, line: str) -> None:
        self.stderr.append(line)

    def _on_warning(self, text: str) -> None:
        self.warnings.append(text)

    def _on_shown(
        self,
        number: int,
        recorded: Sequence[str],
        new: Sequence[str] | None,
        changes: Sequence[Mapping[str, Any]],
        more: int,
    ) -> None:
        self.shown = ShownStep(self._steps[number], recorded, new or (), changes, more)

    def _on_source(self, number: int, text: str) -> None:
        self.source = (self._steps[number], text)

    def _on_ignored(self, patterns: list[str]) -> None:
        self.message = f"ignored from here on: {patterns[-1]}" if len(patterns) > len(self.patterns) else ""
        self.patterns = patterns

    def _on_ended(self, stopped: str | None, unsent: int, cause: list[str], stderr: list[str]) -> None:
        self.phase, self.next = Phase.ENDED, None
        self._give_up(stopped or "the replay ended")
        self.ending = [] if stopped is None else [f"stopped: {stopped}", *cause]
        self._keep_last(stderr)

    def _on_failed(self, why: str, hint: str, cause: list[str], stderr: list[str]) -> None:
        self.phase, self.next = Phase.FAILED, None
        self._give_up("the server never answered" if self.requests else why)
        self.ending = [why, *([hint] if hint and not cause else []), *cause]
        self._keep_last(stderr)

    def _on_refused(self, text: str) -> None:
        self.message = text

    def _on_saved(self, path: str) -> None:
        self.saved = path
        self.message = f"saved to {path}"

    def _on_reported(self, path: str, size: int) -> None:
        self.message = f"saved {size:,} bytes to {path}"

    def _on_updated(self, path: str, backup: str) -> None:
        self.message = f"{path} is now the new session; {backup} is the old one"

    def _append(self, about: str, state: StepState, latency: float | None) -> None:
        self.about.append(about)
        self.states.append(state)
        self.recorded.append(MISSING if latency is None else latency)
        self.latency.append(MISSING)
        self.counts[state] += 1

    def _set(self, number: int, state: StepState, reason: str) -> None:
        place = self._steps[number]
        self.counts[self.states[place]] -= 1
        self.counts[state] += 1
        self.states[place] = state
        self.reasons.pop(place, None)
        if reason:
            self.reasons[place] = reason
        if state is StepState.SENT:
            self.latency[place] = MISSING

    def _forget(self, number: int) -> None:
        """Forget the messages of a step that was judged again."""
        if self.shown is not None and self.shown.number == self._steps[number]:
            self.shown, self.is_stale = None, True

    def _give_up(self, why: str) -> None:
        for place in range(self.requests):
            if self.states[place] in (StepState.WAITING, StepState.SENT):
                is_sent = self.states[place] == StepState.SENT
                state = StepState.LOST if is_sent else StepState.UNSENT
                self._set(self.numbers[place], state, f"because {why}")

    def _keep_last(self, lines: Sequence[str]) -> None:
        """Keep the last lines of stderr, if they did not arrive as events."""
        if not self.stderr:
            self.stderr.extend(lines)

    def _stands_out(self, place: int) -> bool:
        return self.states[place] in CHANGED or self.states[place] == StepState.OTHER


def command_line(config: Mapping[str, Any], patterns: Sequence[str]) -> str:
    """Return the command that replays the same in a shell or in CI. Secrets are named, never written."""
    words = ["mcpspy", "replay", str(config["path"])]
    if config.get("query"):
        words.append(f"--filter={config['query']}")
    if config.get("serial"):
        words += ["--concurrency", "serial"]
    if config.get("speed"):
        words += ["--speed", f"{config['speed']:g}"]
    if config.get("timeout"):
        words += ["--timeout", f"{config['timeout']:g}"]
    words += [f"--{name}" for name in ("volatile", "dates") if config.get(name)]
    words += [f"--ignore-path={pattern}" for pattern in patterns]
    words += [f"--secret={name}={_variable(name)}" for name in config.get("secrets", {})]
    if (load := config.get("load")) is not None:
        words += [f"--{name}={load[name]:g}" for name in ("clients", "rate", "repeat") if load.get(name)]
        words += [f"--{name}={load[name]:g}s" for name in ("duration", "ramp") if load.get(name)]
        words += [f"--fail-if={config['fail_if']}"] if config.get("fail_if") else []
    before = ""
    if "url" in config:
        words += [f"--header-env={name}={_variable(name)}" for name, _ in config.get("headers", ())]
        words += ["--upstream", redacted_url(config["url"])]
    else:
        words += ["--", *redacted_command(list(config["command"]))]
        before = "".join(f'{name}="${name}" ' for name in config.get("environment", {}))
    line = before + shlex.join(words)
    return f"cd {shlex.quote(config['cwd'])} && {line}" if config.get("cwd") else line


def request_text(source: str, edited: str) -> str:
    """Return an edited request on one line; the recorded text if it was not changed."""
    try:
        return source if json.loads(source) == json.loads(edited) else edited.replace("\n", " ")
    except ValueError:
        return edited.replace("\n", " ")


def _variable(name: str) -> str:
    """Return the environment variable for a header or a secret of this name."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()
