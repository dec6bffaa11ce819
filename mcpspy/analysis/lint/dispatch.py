"""Selection of rules, by option and for each event, and the findings made from their reports.

`RuleDispatch` owns one table: the rules for each kind, method, side and revision, filled at the first such event.
The longer code prefix wins, as in ruff: `--select ENV --ignore ENV1 --select ENV101` leaves ENV101.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import decode

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind, Finding
from mcpspy.analysis.lint.rule import CALLED, MESSAGES, Check, LintRule, Report
from mcpspy.analysis.lint.rules import RULES
from mcpspy.analysis.lint.shapes import shape_codes
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.message import Failure, Message, Request, Result, text
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.outcome import is_error_response

EXCERPT = 200
"""Maximum characters of an excerpt."""

MAX_WORDS = 300
"""Maximum characters of the words of an error."""

# Reading a member of an Enum runs Python code; reading a name does not.
_RESULT, _MALFORMED = EventKind.RESULT, EventKind.MALFORMED

MOST = 1000
"""Maximum entries of the table: a peer may send any method."""


class _Choice(Struct):
    """The rules for the events of one kind, method, side and revision, and what else has to be known of an event."""

    rules: tuple[LintRule, ...]
    asks_plain: bool
    asks_compact: bool
    asks_shape: bool
    lists: dict[int, tuple[tuple[Check, LintRule], ...]] = field(default_factory=dict)
    """Sum of `_PLAIN`, `_COMPACT` and `_SHAPED`, as they hold of an event → the rules that remain."""

    @classmethod
    def of(cls, rules: Iterable[LintRule]) -> _Choice:
        given = tuple(rules)
        return cls(
            given,
            any(rule.beyond_plain for rule in given),
            any(rule.beyond_compact for rule in given),
            any(rule.only_shape for rule in given),
        )

    def list_for(self, number: int) -> tuple[tuple[Check, LintRule], ...]:
        found = self.lists[number] = tuple(
            (rule.check, rule)
            for rule in self.rules
            if not (number & _PLAIN and rule.beyond_plain)
            and not (number & _COMPACT and rule.beyond_compact)
            and not (number & _SHAPED and rule.only_shape)
        )
        return found


_PLAIN, _COMPACT, _SHAPED = 1, 2, 4

_Table: TypeAlias = dict[tuple[EventKind, str, str, str | None, bool, bool, bool], _Choice]


@lru_cache(maxsize=4)
def _tables(_: tuple[LintRule, ...]) -> _Table:
    """Return the table that all linters with the same rules fill."""
    return {}


class RuleDispatch:
    """The rules of one linter."""

    def __init__(self, rules: Iterable[LintRule]) -> None:
        self._rules = tuple(rules)
        self._tables = _tables(self._rules)
        self._reported_once: set[tuple[str, str]] = set()
        self._reported_lists: set[int] = set()
        """Hashes of findings in lists: a server may list the same tools again and again."""

    def _rules_of(self, kind: EventKind, event: LintEvent) -> tuple[tuple[Check, LintRule], ...]:
        """Return the rules that may find something in an event."""
        has_no_meta = kind in CALLED and not event.what.meta  # type: ignore[union-attr]  # Of both kinds.
        has_hosts = bool(event.state.hosts)
        key = kind, event.method, event.side, event.revision, event.is_unusual, has_no_meta, has_hosts
        choice = self._tables.get(key)
        if choice is None:
            choice = _Choice.of(self._rules_for(kind, event, has_no_meta=has_no_meta, has_hosts=has_hosts))
            if len(self._tables) < MOST:
                self._tables[key] = choice
        number = 0
        if choice.asks_plain and event.method == "tools/call" and event.is_plain:
            number = _PLAIN
        elif choice.asks_shape and event.is_shaped:
            number = _SHAPED
        if choice.asks_compact and kind in MESSAGES and event.is_compact:
            number |= _COMPACT
        rules = choice.lists.get(number)
        return choice.list_for(number) if rules is None else rules

    def check(self, kind: EventKind, event: LintEvent) -> list[Finding]:
        """Return the findings of all rules that concern an event."""
        found: list[Finding] = []
        for check, rule in self._rules_of(kind, event):
            reports = check(event)
            if not reports or not (every := list(reports)):  # A generator is true, also if it yields nothing.
                continue
            for report in _merged(every):
                if rule.once:
                    if (rule.code, event.side) in self._reported_once:
                        break
                    self._reported_once.add((rule.code, event.side))
                excerpt = _excerpt(report.excerpt, event)
                if kind is _RESULT and event.method in LISTINGS:
                    listed = hash((rule.code, report.message, excerpt))
                    if listed in self._reported_lists:
                        continue
                    if len(self._reported_lists) < MOST:
                        self._reported_lists.add(listed)
                found.append(
                    Finding(
                        rule.code,
                        rule.severity,
                        report.message,
                        excerpt,
                        event.place,
                        event.number,
                        event.at,
                        event.side,
                        f"{event.method} {event.subject or ''}".strip(),
                        report.excerpt is None and kind is not _MALFORMED,
                        *_message_of(event),
                    )
                )
        return found

    def _rules_for(
        self, kind: EventKind, event: LintEvent, *, has_no_meta: bool, has_hosts: bool
    ) -> Iterator[LintRule]:
        method, revision = event.method, event.revision
        for rule in self._rules:
            if (
                rule.concerns(kind, method, event.side)
                and rule.holds_in(revision)
                and (event.is_unusual or not rule.unusual)
                and not (has_no_meta and rule.in_meta)
                and not (rule.shape and rule.code not in shape_codes(kind, method, revision))
                and (has_hosts or rule.family != "HOST")
            ):
                yield rule


def _merged(every: list[Report]) -> Iterable[Report]:
    """Return the reports on one event; those with the same message are one, with their number."""
    first = {report.message: report for report in reversed(every)}
    if len(first) == len(every):
        return every
    counts = Counter(report.message for report in every)
    return (
        first[message]._replace(message=f"{message} ({count} times)") if count > 1 else first[message]
        for message, count in counts.items()
    )


def _excerpt(value: Any, event: LintEvent) -> str:
    what = event.what
    if isinstance(what, Message) and isinstance(value, dict | list | str):
        value = _written(value, event.document, what.data) or value
    if value is None:
        if isinstance(what, Message):
            value = what.data
        else:
            return what.text if isinstance(what, Note) else ""
    if isinstance(value, str):
        written = value
    elif isinstance(value, bytes):
        written = value[: EXCERPT * 4].decode("utf-8", "backslashreplace")
    elif isinstance(value, Raw):
        written = text(value) or ""
    else:
        try:
            written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            written = "…"
    return written if len(written) <= EXCERPT else written[: EXCERPT - 1] + "…"


def _written(value: Any, document: Any, data: bytes | Raw) -> bytes | None:
    """Return the text of a value in a message, as its sender wrote it; None if the value is not a part of it.

    Text between quotes is returned without them.
    """
    if value is document:
        return bytes(data)
    try:
        if isinstance(document, dict):
            parts: dict[Any, Raw] = decode(data, type=dict[str, Raw])
            steps: Iterable[tuple[Any, Any]] = document.items()
        elif isinstance(document, list):
            parts = dict(enumerate(decode(data, type=list[Raw])))
            steps = enumerate(document)
        else:
            return None
        for step, part in steps:
            if part is value:
                written = bytes(parts[step])
                return written[1:-1] if isinstance(value, str) else written
            if isinstance(part, dict | list) and (found := _written(value, part, parts[step])) is not None:
                return found
    except (DecodeError, ValueError, KeyError, RecursionError):
        pass
    return None


def _message_of(event: LintEvent) -> tuple[str | None, str, str | None]:
    """Return the id and the kind of the message of an event, and the words of the error that it reports."""
    what = event.what
    if not isinstance(what, Message):
        return None, "", None
    number = what.id if isinstance(what, Request | Result | Failure) else None
    error = None
    if isinstance(what, Result | Failure) and is_error_response(what):
        error = what.text[:MAX_WORDS]
    return number, what.kind, error


ALL = "ALL"
"""The code that selects every rule."""


def selected(
    select: Iterable[str] = (), ignore: Iterable[str] = (), rules: Sequence[LintRule] = RULES
) -> tuple[LintRule, ...]:
    """Return the selected rules, all if `select` is empty; raise ValueError with the first word that matches no code.

    Words may contain several codes, separated by commas.
    """
    chosen, left_out = _codes(select, rules), _codes(ignore, rules)
    return tuple(rule for rule in rules if _longest(rule, chosen, 0) > _longest(rule, left_out, -1))


def _codes(words: Iterable[str], rules: Sequence[LintRule]) -> list[str]:
    codes = [code.strip().upper() for word in words for code in word.split(",") if code.strip()]
    for code in codes:
        if code != ALL and not any(rule.code.startswith(code) for rule in rules):
            raise ValueError(code)
    return ["" if code == ALL else code for code in codes]


def _longest(rule: LintRule, codes: list[str], none: int) -> int:
    """Return the length of the longest prefix that matches a rule; `none` if there are no codes."""
    if not codes:
        return none
    return max((len(code) for code in codes if rule.code.startswith(code)), default=-1 if none == 0 else none)
