"""Steering of a mock that is serving: what a viewer changes, and the notes on what each request got.

`Steering` is shared by all clients of a mock. A viewer changes how misses are answered, the matching mode and the
speed, and sets answers in place of recorded ones (docs/control.md, order `mock`). Each request of a client becomes a
note of kind `mock` (docs/format.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.selector import MatchMode, Selection
from mcpspy.core.mock.unrecorded import Miss, value_text
from mcpspy.core.protocol.message import Request
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS, client_of
from mcpspy.core.protocol.spec import INTERNAL_ERROR, METHOD_NOT_FOUND
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError

MISSES = ("error", "method-not-found", "nearest", "forward")
"""Responses to unrecorded requests, as of `--on-miss`."""

LONGEST = 3600.0
"""Maximum delay of an answer in seconds."""


class MockOptions(Struct, frozen=True, kw_only=True):
    match: MatchMode = MatchMode.EXACT
    repeats: bool = True
    """True to repeat the last response of a key; otherwise further requests are misses."""
    miss: int = INTERNAL_ERROR
    plays_nearest: bool = False
    """True to play the nearest recorded request after a miss, instead of an error."""
    forwards: bool = False
    """True to forward misses to the real server, through `MockSession.passthrough`."""
    forwards_all: bool = False
    """True to forward every message to the real server, and to play nothing."""
    may_forward: bool = False
    """True if there is a real server, to which misses may be forwarded later."""
    speed: float = 0.0
    """Playback speed relative to the recording; 0: without delays."""
    gap: float = 0.0
    """Minimum seconds between the last progress of a request and its response, without delays."""

    @property
    def misses(self) -> str:
        """The response to unrecorded requests, one of MISSES."""
        if self.forwards:
            return "forward"
        if self.plays_nearest:
            return "nearest"
        return "method-not-found" if self.miss == METHOD_NOT_FOUND else "error"

    def with_misses(self, name: str) -> MockOptions:
        """Return the options with another one of MISSES."""
        return structs.replace(
            self,
            miss=METHOD_NOT_FOUND if name == "method-not-found" else INTERNAL_ERROR,
            plays_nearest=name == "nearest",
            forwards=name == "forward",
        )


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """An answer of the user: to the next request, or to those that get one recorded interaction."""

    interaction: int | None = None
    """Number of the recorded request; None for the next request, whatever it is."""
    times: int | None = None
    """Number of requests that still get it; None for no limit."""
    delay: float = 0.0
    """Seconds before the response."""
    member: str = ""
    """`result` or `error` in place of the recorded response; empty to send that."""
    value: Any = None

    @property
    def fields(self) -> dict[str, Any]:
        """The answer as a viewer sees it."""
        fields: dict[str, Any] = {"interaction": self.interaction, "times": self.times, "delay": self.delay}
        return fields | ({self.member: self.value} if self.member else {})


class Steering:
    """The current options of a mock, and the answers of the user."""

    def __init__(self, options: MockOptions) -> None:
        self.options = options
        self._answers: dict[int | None, GivenAnswer] = {}
        """Number of an interaction, or None for the next request → the answer."""

    def order(self, fields: Mapping[str, Any]) -> None:
        """Execute the order `mock` of a viewer. Raise UsageError; then nothing has changed."""
        options = self.options
        for name, value in fields.items():
            if name in ("n", "order", "answer"):
                continue
            if (read := _READERS.get(name)) is None:
                raise UsageError(f"mock: unknown key {name}")
            options = read(options, value)
        given = _answer(fields["answer"]) if "answer" in fields else None
        self.options = options
        if given is not None:
            self._answers.pop(given.interaction, None)
            if given.member or given.delay:
                self._answers[given.interaction] = given

    def take(self, method: str, interaction: Interaction | None) -> GivenAnswer | None:
        """Return the answer of the user to a request; None if it gets what the mock selected. Handshakes always do."""
        number = None if interaction is None else interaction.number
        if method in HANDSHAKE_METHODS or not self._answers:
            return None
        key = None if None in self._answers else number
        given = self._answers.get(key)
        if given is None or given.times is None:
            return given
        del self._answers[key]
        if given.times > 1:
            self._answers[key] = structs.replace(given, times=given.times - 1)
        return given

    @property
    def state(self) -> dict[str, Any]:
        """The state for viewers: options, and the answers that are still given."""
        return {
            "match": str(self.options.match),
            "speed": self.options.speed,
            "misses": self.options.misses,
            "may_forward": self.options.may_forward,
            "answers": [each.fields for each in self._answers.values()],
        }


class RequestNote(Struct, kw_only=True):
    """The outcome of one request of a client."""

    request: Request
    about: str
    did: str
    """`played`, `generated` (a handshake or an empty result), `missed`, `nearest`, `forwarded` or `answered`."""
    interaction: Interaction | None = None
    place: int = 0
    """The interaction's place among those with the same key, from 1; 0 without one."""
    count: int = 0
    """The number of those."""
    miss: Miss | None = None
    given: GivenAnswer | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the note, without secrets in the values of a difference."""
        found: dict[str, Any] = {"did": self.did, "id": self.request.id, "request": self.about}
        if (peer := client_of(self.request)) is not None:
            found["name"] = sanitize(str(peer))
        if self.interaction is not None:
            found |= {"interaction": self.interaction.number, "recording": self.interaction.recording}
        if self.count:
            found |= {"place": self.place, "count": self.count}
        if self.miss is not None:
            found |= _miss_fields(self.miss)
        if self.given is not None:
            found |= {key: value for key, value in self.given.fields.items() if key not in found and value}
        return found


def noted(
    request: Request,
    about: str,
    selected: Selection,
    taken: int,
    given: GivenAnswer | None,
    *,
    forwards: bool,
) -> RequestNote:
    """Return the note on a request; `taken` is the number of its interactions that the client has received."""
    if given is not None and given.member:
        did = "answered"
    elif selected.interaction is not None:
        did = "played" if selected.miss is None else "nearest"
    elif selected.miss is None:
        did = "generated"
    else:
        did = "forwarded" if forwards else "missed"
    count = 0 if selected.queue is None else len(selected.queue)
    return RequestNote(
        request=request,
        about=about,
        did=did,
        interaction=selected.interaction,
        place=min(taken, count),
        count=count,
        miss=selected.miss,
        given=given,
    )


def _miss_fields(miss: Miss) -> dict[str, Any]:
    fields: dict[str, Any] = {"miss": miss.why}
    if miss.nearest:
        near = miss.nearest[0]
        fields |= {"nearest": near.number, "nearest_request": near.key.about}
        if near.first is not None:
            at, recorded, sent = near.first
            fields |= {"at": at, "more": near.more}
            if at != "/method":
                fields |= {"recorded": value_text(at, recorded), "sent": value_text(at, sent)}
    return fields


def _match(options: MockOptions, value: object) -> MockOptions:
    if value not in list(MatchMode):
        raise UsageError(f"mock: match must be one of {', '.join(MatchMode)}")
    return structs.replace(options, match=MatchMode(str(value)))


def _speed(options: MockOptions, value: object) -> MockOptions:
    return structs.replace(options, speed=_number("speed", value, 1e6))


def _misses(options: MockOptions, value: object) -> MockOptions:
    if value not in MISSES:
        raise UsageError(f"mock: misses must be one of {', '.join(MISSES)}")
    if value == "forward" and not options.may_forward:
        raise UsageError("mock: no real server is known to which misses could be forwarded")
    return options.with_misses(str(value))


_READERS: dict[str, Callable[[MockOptions, object], MockOptions]] = {
    "match": _match,
    "speed": _speed,
    "misses": _misses,
}


def _answer(fields: object) -> GivenAnswer:
    if not isinstance(fields, dict):
        raise UsageError("mock: answer must be an object")
    if unknown := fields.keys() - {"interaction", "times", "delay", "result", "error"}:
        raise UsageError(f"mock: answer has the unknown key {min(map(str, unknown))}")
    number, times = fields.get("interaction"), fields.get("times")
    for name, value, least in (("interaction", number, 0), ("times", times, 1)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise UsageError(f"mock: {name} must be a number from {least}, or null")
    member = next((name for name in ("result", "error") if name in fields), "")
    if "result" in fields and "error" in fields:
        raise UsageError("mock: answer has either a result or an error")
    value = fields.get(member)
    if member and not isinstance(value, dict):
        raise UsageError(f"mock: {member} must be an object")
    if member == "error" and not (
        isinstance(value, dict)
        and isinstance(value.get("code"), int)
        and not isinstance(value["code"], bool)
        and isinstance(value.get("message"), str)
    ):
        raise UsageError("mock: error must be an object with an integer code and a string message")
    return GivenAnswer(
        interaction=number,
        times=1 if number is None else times,
        delay=_number("delay", fields.get("delay", 0.0), LONGEST),
        member=member,
        value=value,
    )


def _number(name: str, value: object, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise UsageError(f"mock: {name} must be a number from 0 to {most:g}")
    return float(value)
