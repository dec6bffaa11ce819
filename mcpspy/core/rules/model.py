"""Rules and their actions, which messages they match, their random numbers and units.

The n-th match of a rule under a seed gets the same random number on every machine, whatever happened
between: it is a hash, so there is no state that the timing of messages could change. `core.intercept`
counts matches and acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from mcpspy.core.jsontools import Pointer
from mcpspy.core.query import parser
from mcpspy.core.query.lexer import PATH, WORD, Atom
from mcpspy.core.query.parser import AllOf, AnyOf, Node, Not, Query
from mcpspy.core.rules.template import uses_request

OVERSIZE = 16 << 20
"""Default size of an oversized message: more than clients and servers accept."""


_REQUEST_FIELDS = frozenset({WORD, "method", "subject", "tool", "prompt", "uri", "id", "stream"})

_SECONDS = {"ms": 0.001, "min": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "g": 1 << 30, "m": 1 << 20, "k": 1 << 10, "b": 1}

_MAX_SECONDS = 1e6
"""Maximum delay in seconds: eleven days."""


@dataclass(frozen=True, slots=True)
class DelayAction:
    """Forward the message later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DropAction:
    """Do not forward the message."""


@dataclass(frozen=True, slots=True)
class FailAction:
    """Respond to a request with an error, and do not forward it."""

    code: int
    message: str
    data: Any = None
    has_data: bool = False


@dataclass(frozen=True, slots=True)
class RespondAction:
    """Respond to a request with a result, and do not forward it."""

    result: Any


@dataclass(frozen=True, slots=True)
class ReplaceAction:
    patch: Any = None
    """A merge patch (RFC 7396), unless there are `values`."""
    values: tuple[tuple[Pointer, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RepairAction:
    """Change listed tools so that hosts accept them (`core.rules.repair`)."""

    longest_name: int | None
    """None leaves names as they are."""
    schemas: bool


@dataclass(frozen=True, slots=True)
class CorruptAction:
    """Forward an invalid message instead."""

    way: str
    size: int = OVERSIZE


@dataclass(frozen=True, slots=True)
class DisconnectAction:
    """Do not forward the message, and close the connection."""


@dataclass(frozen=True, slots=True)
class HoldAction:
    """Hold the message until a viewer decides."""


Action: TypeAlias = (
    DelayAction
    | DropAction
    | FailAction
    | RespondAction
    | ReplaceAction
    | RepairAction
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
    RepairAction: "repair",
    CorruptAction: "corrupt",
    DisconnectAction: "disconnect",
    HoldAction: "hold",
}
"""Names of actions in rules and in notes."""

RESPONDING_ACTIONS = (FailAction, RespondAction)
"""Actions that respond, and so apply to requests only."""

NON_FINAL_ACTIONS = (DelayAction, ReplaceAction, RepairAction)
"""Actions after which the next rules are evaluated; all others are final."""


@dataclass(frozen=True, slots=True)
class Rule:
    number: int
    """Position among all rules, from 1."""
    query: Query
    of_requests: bool
    """True if responses do not match (`means_request`)."""
    action: Action
    name: str = ""
    probability: float = 1.0
    """Share of the matches to which it applies."""
    seed: int | str | None = None
    """Of its random numbers; None for the seed of the run."""
    times: int | None = None
    """Maximum number of applications; None for no limit."""
    after: int = 0

    @property
    def label(self) -> str:
        """Its name in notes: `name`, or else its number."""
        return self.name or str(self.number)

    @property
    def action_name(self) -> str:
        return NAMES[type(self.action)]


class Rules:
    """All rules of a run, in the order of evaluation."""

    def __init__(self, rules: tuple[Rule, ...] = (), seed: int | str = 0) -> None:
        self.rules = rules
        self.seed = seed
        self.needs_requests = any(
            uses_request(_values(rule.action)) or (rule.query.reads_text and not rule.of_requests)
            for rule in rules
        )
        """True if requests must be kept until their responses arrive."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def said(self) -> list[dict[str, Any]]:
        """Return descriptions of the rules, with the seeds that repeat a run."""
        return [_described(rule, self.seed) for rule in self.rules]


def is_request_only(text: str) -> bool:
    """Return True if a query tests only fields of requests: methods, subjects, ids, params. Raise QueryError.

    A response inherits these from its request. So `tool:echo` means the call only, and its response is not
    delayed again.
    """
    node = parser.parse_tree(text)
    return node is not None and all(map(_is_request_field, _atoms(node)))


def _is_request_field(atom: Atom) -> bool:
    return atom.field in _REQUEST_FIELDS or (atom.field == PATH and atom.name.startswith("params"))


def _atoms(node: Node) -> list[Atom]:
    if isinstance(node, Atom):
        return [node]
    if isinstance(node, Not):
        return _atoms(node.part)
    assert isinstance(node, AllOf | AnyOf)
    return [atom for part in node.parts for atom in _atoms(part)]


def _values(action: Action) -> list[Any]:
    if isinstance(action, FailAction):
        return [action.message, action.data]
    if isinstance(action, RespondAction):
        return [action.result]
    if isinstance(action, ReplaceAction):
        return [action.patch, *(value for _, value in action.values)]
    return []


def _described(rule: Rule, seed: int | str) -> dict[str, Any]:
    fields: dict[str, Any] = {"rule": rule.label, "when": rule.query.text, "action": rule.action_name}
    if rule.probability < 1:
        fields |= {"probability": rule.probability, "seed": seed if rule.seed is None else rule.seed}
    if rule.times is not None:
        fields["times"] = rule.times
    if rule.after:
        fields["after"] = rule.after
    return fields


def roll(seed: int | str, rule: str, match: int) -> float:
    """Return a random number from 0 to below 1 for the n-th match of a rule."""
    digest = blake2b(f"{seed}:{rule}:{match}".encode("utf-8", "replace"), digest_size=7).digest()
    return (int.from_bytes(digest) >> 3) / (1 << 53)


def seconds(value: object) -> float:
    """Return a time in seconds from a number, or from text like `2s`, `500ms`; raise ValueError."""
    number = _number(value, _SECONDS)
    if number is None or not 0 <= number <= _MAX_SECONDS:
        raise ValueError(f"{value or 'an empty value'} is not a time: write 2s, 500ms or 5min")
    return number


def size(value: object) -> int:
    """Return a size in bytes from a number, or from text like `16MB`; raise ValueError."""
    number = _number(value, _BYTES)
    if number is None or not 0 < number <= 1 << 40:
        raise ValueError(f"{value or 'an empty value'} is not a size: write 500kb, 16mb or 1gb")
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
