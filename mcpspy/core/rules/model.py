"""One rule: when, what, and how often.

Owns what the actions are and which messages a rule is about. Refuses to count
or to act: that is `core.intercept`'s.

Dice that fall the same way every time.

Owns the promise of a chaos run: the n-th match of a rule under a seed is
decided the same, whatever came between, on every machine. A hash, not a
generator: there is no state that the timing of messages could reach.

Times and sizes as people type them: `2s`, `500ms`, `16MB`.

Refuses, by ValueError, what is no such thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from mcpspy.core.jsontools import Pointer
from mcpspy.core.query import parser
from mcpspy.core.query.lexer import PATH, WORD, Atom
from mcpspy.core.query.parser import AllOf, AnyOf, Node, Not, Query
from mcpspy.core.rules.template import asks_request

OVERSIZE = 16 << 20
"""Bytes of an oversized message, unless told otherwise: more than any client or server takes in good faith."""


@dataclass(frozen=True, slots=True)
class DelayAction:
    """It goes on later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DropAction:
    """It does not go on."""


@dataclass(frozen=True, slots=True)
class FailAction:
    """A request is answered with an error, and does not go on."""

    code: int
    message: str
    data: Any = None
    has_data: bool = False


@dataclass(frozen=True, slots=True)
class RespondAction:
    """A request is answered with a result, and does not go on."""

    result: Any


@dataclass(frozen=True, slots=True)
class ReplaceAction:
    """It goes on with something else in it."""

    patch: Any = None
    """A merge patch (RFC 7396), unless there are values."""
    values: tuple[tuple[Pointer, Any], ...] = ()
    """What to put where."""


@dataclass(frozen=True, slots=True)
class CorruptAction:
    """It goes on as nonsense."""

    way: str
    size: int = OVERSIZE


@dataclass(frozen=True, slots=True)
class DisconnectAction:
    """It does not go on, and the connection ends."""


@dataclass(frozen=True, slots=True)
class HoldAction:
    """It waits until somebody says what becomes of it."""


Action: TypeAlias = (
    DelayAction
    | DropAction
    | FailAction
    | RespondAction
    | ReplaceAction
    | CorruptAction
    | DisconnectAction
    | HoldAction
)

NAMES: dict[type, str] = {
    DelayAction: "delay",
    DropAction: "drop",
    FailAction: "error",
    RespondAction: "respond",
    ReplaceAction: "replace",
    CorruptAction: "corrupt",
    DisconnectAction: "disconnect",
    HoldAction: "hold",
}
"""What an action is called, where it is written and where it is noted."""

ANSWERS = (FailAction, RespondAction)
"""Actions that answer, and so are about requests alone."""

GOES_ON = (DelayAction, ReplaceAction)
"""Actions after which the next rules are asked: the others are the last word."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When which message, what."""

    number: int
    """Place among all rules, from 1."""
    query: Query
    of_requests: bool
    """Whether answers are left out (`means_request`)."""
    action: Action
    name: str = ""
    probability: float = 1.0
    """How many of the matches it takes."""
    seed: int | str | None = None
    """Of its dice; None for that of the run."""
    times: int | None = None
    """How often at most; None is always."""
    after: int = 0
    """How many matches it lets pass first."""

    @property
    def label(self) -> str:
        """What it is called in notes: its name, else its number."""
        return self.name or str(self.number)

    @property
    def action_name(self) -> str:
        """What its action is called."""
        return NAMES[type(self.action)]


class Rules:
    """All rules of a run, in the order in which they are asked."""

    def __init__(self, rules: tuple[Rule, ...] = (), seed: int | str = 0) -> None:
        self.rules = rules
        self.seed = seed
        """Of the dice of rules that have none of their own."""
        self.wants_requests = any(
            asks_request(_values(rule.action)) or (rule.query.reads_text and not rule.of_requests)
            for rule in rules
        )
        """Whether a request has to be kept until its answer comes."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def said(self) -> list[dict[str, Any]]:
        """Return the rules in plain words, with the seeds that repeat a run."""
        return [_said(rule, self.seed) for rule in self.rules]


def means_request(text: str) -> bool:
    """Whether a query speaks of what is asked alone: methods, subjects, ids, params. Raise QueryError.

    An answer has these from its request. So `tool:echo` is the call, and nobody
    has to add that the answer should not be delayed once more.
    """
    node = parser.parse_tree(text)
    return node is not None and all(map(_is_of_request, _atoms(node)))


_OF_REQUEST = frozenset({WORD, "method", "subject", "tool", "prompt", "uri", "id", "stream"})


def _is_of_request(atom: Atom) -> bool:
    return atom.field in _OF_REQUEST or (atom.field == PATH and atom.name.startswith("params"))


def _atoms(node: Node) -> list[Atom]:
    if isinstance(node, Atom):
        return [node]
    if isinstance(node, Not):
        return _atoms(node.part)
    assert isinstance(node, AllOf | AnyOf)
    return [atom for part in node.parts for atom in _atoms(part)]


def _values(action: Action) -> list[Any]:
    """Return what may have places to fill."""
    if isinstance(action, FailAction):
        return [action.message, action.data]
    if isinstance(action, RespondAction):
        return [action.result]
    if isinstance(action, ReplaceAction):
        return [action.patch, *(value for _, value in action.values)]
    return []


def _said(rule: Rule, seed: int | str) -> dict[str, Any]:
    said: dict[str, Any] = {"rule": rule.label, "when": rule.query.text, "action": rule.action_name}
    if rule.probability < 1:
        said |= {"probability": rule.probability, "seed": seed if rule.seed is None else rule.seed}
    if rule.times is not None:
        said["times"] = rule.times
    if rule.after:
        said["after"] = rule.after
    return said


def roll(seed: int | str, rule: str, match: int) -> float:
    """Return a number from 0 to below 1 for the match of this number of the rule."""
    digest = blake2b(f"{seed}:{rule}:{match}".encode("utf-8", "replace"), digest_size=7).digest()
    return (int.from_bytes(digest) >> 3) / (1 << 53)


_SECONDS = {"ms": 0.001, "min": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "g": 1 << 30, "m": 1 << 20, "k": 1 << 10, "b": 1}

_LONGEST = 1e6
"""Seconds that no wait of ours lasts: eleven days."""


def seconds(value: object) -> float:
    """Return a time in seconds: a number is one, a text may have a unit."""
    number = _number(value, _SECONDS)
    if number is None or not 0 <= number <= _LONGEST:
        raise ValueError(f"{value or 'nothing'} is no time: write 2s, 500ms or 5min")
    return number


def size(value: object) -> int:
    """Return a size in bytes: a number is one, a text may have a unit."""
    number = _number(value, _BYTES)
    if number is None or not 0 < number <= 1 << 40:
        raise ValueError(f"{value or 'nothing'} is no size: write 500kb, 16mb or 1gb")
    return int(number)


def _number(value: object, units: dict[str, float] | dict[str, int]) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().lower()
    unit = next((unit for unit in units if text.endswith(unit)), "")
    digits = text.removesuffix(unit).rstrip()
    if not digits.replace(".", "", 1).replace("e-", "", 1).isdigit() or not digits.isascii():
        return None
    return float(digits) * (units[unit] if unit else 1)
