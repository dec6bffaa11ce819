"""The fields of the filter language: what each of them asks of an item.

Owns the names of states, kinds, sides and units. Refuses to look anything up:
an item says what it is.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, NoReturn, Protocol

from mcpspy.core.exchange import State
from mcpspy.core.query_syntax import NUMBERS, ORDER, REGEX, WORD, Atom, QueryError
from mcpspy.core.spec import CLIENT, METHODS, SERVER


class Item(Protocol):
    """What a filter asks of one row: a message, a note, or a whole exchange."""

    @property
    def at(self) -> float:
        """Seconds since the start."""

    @property
    def side(self) -> str:
        """Who sent it, of an exchange who asked: `client` or `server`; empty if nobody did."""

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error`, `malformed`, `exchange`; of a note, the note's."""

    @property
    def method(self) -> str:
        """Of an answer, that of its request; empty if it has none."""

    @property
    def subject(self) -> str:
        """Which tool, resource, prompt …; empty if none."""

    @property
    def id(self) -> str:
        """The id's JSON text; empty if it has none."""

    @property
    def status(self) -> str:
        """A `State`, or empty."""

    @property
    def latency(self) -> float | None:
        """Seconds from request to answer."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def stream(self) -> str:
        """HTTP: the session it belongs to; else empty."""

    @property
    def odd(self) -> bool:
        """Whether it has a flaw."""

    @property
    def error_code(self) -> int | None:
        """The code of a JSON-RPC error."""

    def text(self) -> bytes:
        """Return its own bytes; of an exchange, the request's and the answer's."""


Test = Callable[[Item], bool]


class Part(NamedTuple):
    """A test, and what it costs."""

    test: Test
    reads: bool
    """Whether it asks for text."""


SLOW = 1.0
"""Seconds above which an answer is slow."""

FAILED = frozenset({State.ERROR.value, State.TOOL_ERROR.value, State.REFUSED.value})
"""States of what was answered, and badly."""

STATUSES: dict[str, frozenset[str]] = {
    "ok": frozenset({State.OK.value}),
    "error": FAILED,
    "toolerror": frozenset({State.TOOL_ERROR.value}),
    "rpcerror": frozenset({State.ERROR.value}),
    "pending": frozenset({State.PENDING.value}),
    "cancelled": frozenset({State.CANCELLED.value}),
    "late": frozenset({State.LATE.value}),
    "noanswer": frozenset({State.UNANSWERED.value}),
    "closed": frozenset({State.CLOSED.value}),
    "refused": frozenset({State.REFUSED.value}),
    "input": frozenset({State.INPUT_REQUIRED.value}),
}
"""What may stand behind `status:`, blanks aside, and which states it means."""

_SAME_STATUS = {
    "err": "error",
    "failed": "error",
    "toolerr": "toolerror",
    "open": "pending",
    "canceled": "cancelled",
    "answeredlate": "late",
    "unanswered": "noanswer",
    "inputrequired": "input",
}

KINDS = (
    *("request", "notification", "result", "error", "malformed", "exchange", "damaged"),
    *("stderr", "exit", "eof", "signal", "closed", "lost", "http", "http-end", "sse", "part"),
)
"""The kinds there are today. Notes may come to have others."""

_SAME_KIND = {"response": ("result", "error"), "answer": ("result", "error"), "failure": ("error",)}

_SIDES = {
    CLIENT: ("client", "c", "->", "→", "out"),
    SERVER: ("server", "s", "<-", "←", "in"),
}

_SUBJECTS = {
    "tool": frozenset({"tools/call"}),
    "prompt": frozenset({"prompts/get"}),
    "uri": frozenset(name for name, method in METHODS.items() if method.subject == "uri"),
}
"""Methods whose subject a field asks for."""

_TIMES = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {"b": 1.0, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}

_NUMBER = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([^\W\d_]*)")

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ":": operator.eq,
    "!=": operator.eq,  # And negated, as for every field.
}

_MANY = 4096
"""Different texts that one test remembers its answer to. Methods and subjects are few, and come again."""


class _Remembered(dict[str, bool]):
    """The answers of a test of texts."""

    def __init__(self, test: Callable[[str], bool]) -> None:
        super().__init__()
        self._test = test

    def __missing__(self, text: str) -> bool:
        if len(self) >= _MANY:
            self.clear()
        found = self[text] = self._test(text)
        return found


def _looks(atom: Atom) -> Callable[[str], bool]:
    """Return the test of a text: exact, a pattern of `*` and `?`, or a substring."""
    value = atom.value
    if atom.op in ("=", "!="):
        return lambda text: text == value
    _unordered(atom)
    value = value.casefold()
    if not atom.is_quoted and ("*" in value or "?" in value):
        wild = {"*": ".*", "?": "."}
        pattern = "".join(wild.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", value))
        fullmatch = re.compile(pattern, re.DOTALL).fullmatch
        # As it stands too: a uri's ? is no pattern.
        return lambda text: (
            bool(text) and (value in text.casefold() or fullmatch(text.casefold()) is not None)
        )
    return lambda text: value in text.casefold()


def _unordered(atom: Atom) -> None:
    if atom.op[0] in "<>":
        atom.fail(f"{atom.name} has no order: write {atom.name}:{atom.raw}")


def _remembered(atom: Atom) -> Callable[[str], bool]:
    return _Remembered(_looks(atom)).__getitem__


def _word(atom: Atom) -> Part:
    # A note has neither method nor subject: its kind stands where others have the method.
    looks = _remembered(atom)
    return Part(
        lambda item: looks(item.method) or looks(item.subject) or (not item.side and looks(item.kind)), False
    )


def _method(atom: Atom) -> Part:
    looks = _remembered(atom)
    return Part(lambda item: looks(item.method), False)


def _subject(atom: Atom) -> Part:
    looks, methods = _remembered(atom), _SUBJECTS.get(atom.field)
    if methods is None:
        return Part(lambda item: looks(item.subject), False)
    return Part(lambda item: item.method in methods and looks(item.subject), False)


def _stream(atom: Atom) -> Part:
    looks = _remembered(atom)
    return Part(lambda item: looks(item.stream), False)


def _id(atom: Atom) -> Part:
    """Compare with the id's JSON text, or loosely: 7 is `7` and `"7"` then."""
    if atom.op in ("=", "!="):
        exact = atom.raw
        try:
            json.loads(exact)
        except (ValueError, RecursionError):
            exact = f'"{exact}"'
        return Part(lambda item: item.id == exact, False)
    if "*" in atom.value and not atom.is_quoted:
        looks = _looks(atom)
        return Part(lambda item: looks(item.id.strip('"')), False)
    _unordered(atom)
    either = (atom.value, json.dumps(atom.value, ensure_ascii=False))
    return Part(lambda item: item.id in either, False)


def _dir(atom: Atom) -> Part:
    _unordered(atom)
    wanted = next((side for side, names in _SIDES.items() if atom.value.lower() in names), None)
    if wanted is None:
        _unknown(atom, ("client", "server", "->", "<-"))
    return Part(lambda item: item.side == wanted, False)


def _kind(atom: Atom) -> Part:
    of_note, value = atom.field == "note", atom.value.lower()
    same = _SAME_KIND.get(value)
    if same and not of_note:
        return Part(lambda item: item.kind in same and bool(item.side), False)
    if value == "note":
        return Part(lambda item: not item.side, False)
    looks = _remembered(atom)
    # A note may be of a kind that we never heard of, so only what is nearly one of ours is an error.
    near = [] if any(map(looks, KINDS)) else difflib.get_close_matches(value, KINDS, 1, 0.8)
    if near:
        atom.fail(f'unknown {atom.field} "{atom.value}": did you mean {near[0]}?')
    if of_note:
        return Part(lambda item: not item.side and looks(item.kind), False)
    return Part(lambda item: looks(item.kind), False)


def _status(atom: Atom) -> Part:
    _unordered(atom)
    if re.fullmatch(r"-?[0-9]+", atom.value):
        return _code(float(atom.value), operator.eq)
    test = _state(atom.value, exact=atom.op != ":")
    if test is None:
        _unknown(atom, STATUSES)
    return Part(test, False)


def _state(value: str, *, exact: bool) -> Test | None:
    """Return the test of a status by its name."""
    name = re.sub(r"[\s_-]", "", value.lower())
    name = _SAME_STATUS.get(name, name)
    if name == "error":
        if exact:
            name = "rpcerror"
        else:  # An error may be late, or answer nothing; then it has another status, or none.
            return lambda item: item.status in FAILED or item.kind == "error" or item.error_code is not None
    states = STATUSES.get(name)
    return None if states is None else lambda item: item.status in states


def _is(atom: Atom) -> Part:
    _unordered(atom)
    value = atom.value.lower()
    if value == "slow":
        return Part(lambda item: (latency := item.latency) is not None and latency > SLOW, False)
    if value == "odd":
        return Part(lambda item: item.odd, False)
    test = _state(value, exact=False)
    if test is not None:
        return Part(test, False)
    if value in KINDS or value in _SAME_KIND or value == "note":
        return _kind(atom._replace(op=":" if value in _SAME_KIND else "="))
    return _unknown(atom, ("slow", "odd", *STATUSES, *KINDS, "response", "note"))


def _text(atom: Atom) -> Part:
    """Find a text, as it stands or as a JSON string holds it, whatever its case."""
    if atom.op != ":":
        atom.fail(f"{atom.name} takes a colon: {atom.name}:{atom.raw}")
    value, plain = atom.value, atom.value.casefold()
    held = (json.dumps(plain, ensure_ascii=False), json.dumps(plain), json.dumps(value))
    forms = {plain, *(form[1:-1].casefold() for form in held)}
    if not plain.isascii():  # Only str knows the capitals of other alphabets.
        return Part(
            lambda item: any(map(item.text().decode("utf-8", "replace").casefold().__contains__, forms)), True
        )
    if len(forms) > 1:
        needles = [form.encode() for form in forms]
        return Part(lambda item: any(map(item.text().lower().__contains__, needles)), True)
    needle = plain.encode()
    if needle == needle.upper():
        return Part(lambda item: needle in item.text(), True)
    return Part(lambda item: needle in item.text().lower(), True)


def _regex(atom: Atom) -> Part:
    """Search with a pattern: over bytes where that is the same, because it is faster."""
    flags = re.IGNORECASE if atom.op else re.NOFLAG
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What Python may do to patterns one day is none of the user's.
            if atom.value.isascii():
                found = re.compile(atom.value.encode(), flags).search
                return Part(lambda item: found(item.text()) is not None, True)
            search = re.compile(atom.value, flags).search
    except re.error as error:
        at = min(atom.start + 1 + (error.pos or 0), atom.end - 1)
        raise QueryError(f"regex: {error.msg}", at, at + 1) from None
    except (OverflowError, RecursionError) as error:
        atom.fail(f"regex: {error}")
    return Part(lambda item: search(item.text().decode("utf-8", "replace")) is not None, True)


def _number(atom: Atom) -> Part:
    """Compare a number; one that stands alone says by its unit which."""
    found = _NUMBER.fullmatch(atom.value)
    if found is None:
        atom.fail(f"{atom.value} is no number: {_EXAMPLES[atom.field]}")
    number, unit, field = float(found[1]), found[2].lower(), atom.field
    if field == ORDER:
        if not unit:
            atom.fail(f"{atom.value} what? {_EXAMPLES[field]}")
        if unit == "m":
            atom.fail(f"{atom.value} may be minutes or megabytes: write {found[1]}min or {found[1]}mb")
        field = "size" if unit in _SIZES else "latency"
    compare = _COMPARE[atom.op]
    if field == "code":
        if unit:
            atom.fail(f'code takes a number, not "{atom.value}"')
        return _code(number, compare)
    if field == "size":
        bound = number * _factor(atom, found[2], {"": 1.0, **_SIZES}, "bytes")
        return Part(lambda item: compare(item.size, bound), False)
    if field == "time":
        bound = number * _factor(atom, found[2], {"": 1.0, **_TIMES}, "a time")
        return Part(lambda item: compare(item.at, bound), False)
    if atom.op in (":", "=", "!="):
        atom.fail(f"no latency is exactly that: write {atom.name}>{atom.value}")
    bound = number * _factor(atom, found[2], _TIMES, "a time")
    return Part(lambda item: (latency := item.latency) is not None and compare(latency, bound), False)


def _factor(atom: Atom, unit: str, units: Mapping[str, float], what: str) -> float:
    factor = units.get(unit.lower())
    if factor is not None:
        return factor
    if not unit:
        atom.fail(f"{atom.value} what? {_EXAMPLES['latency']}")
    if unit.lower() in {**_TIMES, **_SIZES}:
        atom.fail(f'{atom.name} takes {what}, not "{unit}"')
    return atom.fail(f'unknown unit "{unit}": us, ms, s, min, h for times; b, kb, mb, gb for sizes')


def _code(number: float, compare: Callable[[float, float], bool]) -> Part:
    return Part(lambda item: (code := item.error_code) is not None and compare(code, number), False)


def _unknown(atom: Atom, known: Iterable[str]) -> NoReturn:
    atom.fail(f'unknown {atom.field} "{atom.value}": one of {", ".join(known)}')


_EXAMPLES = {
    ORDER: "as in >200ms or >10kb",
    "latency": "as in latency>200ms",
    "size": "as in size>10kb",
    "time": "as in time>10s",
    "code": "as in code:-32602",
}

_ATOMS: dict[str, Callable[[Atom], Part]] = {
    WORD: _word,
    REGEX: _regex,
    ORDER: _number,
    "method": _method,
    "subject": _subject,
    "tool": _subject,
    "prompt": _subject,
    "uri": _subject,
    "id": _id,
    "dir": _dir,
    "kind": _kind,
    "note": _kind,
    "status": _status,
    "is": _is,
    "stream": _stream,
    "text": _text,
    **dict.fromkeys(NUMBERS, _number),
}


def atom(found: Atom) -> Part:
    """Return the test of an atom, its negation aside; raise QueryError."""
    return _ATOMS[found.field](found)
