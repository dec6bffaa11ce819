"""One rule: when, what, and how often.

Owns what the actions are and which messages a rule is about. Refuses to count
or to act: that is `core.intercept`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from mcpspy.core import query_syntax
from mcpspy.core.canonical import Pointer
from mcpspy.core.query import Query
from mcpspy.core.query_syntax import All, Either, Node, Not
from mcpspy.core.query_tokens import PATH, WORD, Atom
from mcpspy.core.rules.template import asks_request

OVERSIZE = 16 << 20
"""Bytes of an oversized message, unless told otherwise: more than any client or server takes in good faith."""


@dataclass(frozen=True, slots=True)
class Delay:
    """It goes on later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drop:
    """It does not go on."""


@dataclass(frozen=True, slots=True)
class Fail:
    """A request is answered with an error, and does not go on."""

    code: int
    message: str
    data: Any = None
    has_data: bool = False


@dataclass(frozen=True, slots=True)
class Respond:
    """A request is answered with a result, and does not go on."""

    result: Any


@dataclass(frozen=True, slots=True)
class Replace:
    """It goes on with something else in it."""

    patch: Any = None
    """A merge patch (RFC 7396), unless there are values."""
    values: tuple[tuple[Pointer, Any], ...] = ()
    """What to put where."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """It goes on as nonsense."""

    way: str
    size: int = OVERSIZE


@dataclass(frozen=True, slots=True)
class Disconnect:
    """It does not go on, and the connection ends."""


@dataclass(frozen=True, slots=True)
class Hold:
    """It waits until somebody says what becomes of it."""


Action: TypeAlias = Delay | Drop | Fail | Respond | Replace | Corrupt | Disconnect | Hold

NAMES: dict[type, str] = {
    Delay: "delay",
    Drop: "drop",
    Fail: "error",
    Respond: "respond",
    Replace: "replace",
    Corrupt: "corrupt",
    Disconnect: "disconnect",
    Hold: "hold",
}
"""What an action is called, where it is written and where it is noted."""

ANSWERS = (Fail, Respond)
"""Actions that answer, and so are about requests alone."""

GOES_ON = (Delay, Replace)
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
    node = query_syntax.read(text)
    return node is not None and all(map(_is_of_request, _atoms(node)))


_OF_REQUEST = frozenset({WORD, "method", "subject", "tool", "prompt", "uri", "id", "stream"})


def _is_of_request(atom: Atom) -> bool:
    return atom.field in _OF_REQUEST or (atom.field == PATH and atom.name.startswith("params"))


def _atoms(node: Node) -> list[Atom]:
    if isinstance(node, Atom):
        return [node]
    if isinstance(node, Not):
        return _atoms(node.part)
    assert isinstance(node, All | Either)
    return [atom for part in node.parts for atom in _atoms(part)]


def _values(action: Action) -> list[Any]:
    """Return what may have places to fill."""
    if isinstance(action, Fail):
        return [action.message, action.data]
    if isinstance(action, Respond):
        return [action.result]
    if isinstance(action, Replace):
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
