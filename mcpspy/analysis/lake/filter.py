"""The filter language as SQL conditions on the tables of the lake.

A row of `exchanges` is tested like a request in `mcpspy stats -q`: with the status, latency, size and text of its
response. Of `messages`, the notifications are tested. Every node of a filter becomes two conditions: one of rows that
surely match, and one of rows that may match. Python's own filter decides on the rows between the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

from mcpspy.analysis.lake.schema import COMPACT, UNCOUNTED
from mcpspy.core.protocol.message import Failure, read_frame
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.query import values
from mcpspy.core.query.fields import SLOW, SUBJECTS, atom_test
from mcpspy.core.query.item import ExchangeItem, SessionEnd
from mcpspy.core.query.lexer import MOMENTS, NUMBERS, ORDER, PATH, WORD, Atom, path_steps
from mcpspy.core.query.parser import AllOf, Node, Not, parse, parse_tree
from mcpspy.core.query.path import json_literal, path_names
from mcpspy.core.recording.decode import Frame
from mcpspy.core.regex import refuse
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import FAILED, UNANSWERED
from mcpspy.errors import UsageError


class Bounds(NamedTuple):
    """Two SQL conditions, never NULL. They are equal if SQL alone can decide."""

    sure: str
    """Rows that match."""
    possible: str
    """Rows that may match, and all that do."""
    doubts: frozenset[str] = frozenset()
    """Conditions, one of which is true in every row in which the two differ."""


_UNDECIDED = Bounds("false", "true", frozenset(["true"]))


class _Table(NamedTuple):
    kind: str
    """Kind of its items."""
    key: str
    """The column that identifies a row in its session."""
    fields: Mapping[str, str]
    """Field of the item → SQL."""
    texts: Mapping[str, str]
    """Column of text → column with the bytes that are not UTF-8."""
    rows: str
    """Condition of the rows that have items."""


_COUNTED = ", ".join(sorted(f"'{state}'" for state in FAILED | UNANSWERED))

_NAMES = {"subject": "coalesce(target, '')", "stream": "coalesce(stream, '')", "side": "side"}

_TABLES = {
    "exchanges": _Table(
        "request",
        "n",
        {
            **_NAMES,
            "method": "method",
            "id": "id",
            "status": f"CASE WHEN {UNCOUNTED} AND status IN ({_COUNTED}) THEN '' ELSE status END",
            "latency": "latency_ms / 1000",
            "size": "request_bytes + coalesce(response_bytes, 0)",
            "has_issue": "len(issues) > 0",
            "error_code": "code",
        },
        {"request": "request_raw", "response": "response_raw"},
        "true",
    ),
    "messages": _Table(
        "notification",
        "place",
        {
            **_NAMES,
            "method": "coalesce(method, '')",
            "id": "''",
            "status": "''",
            "latency": "NULL::DOUBLE",
            "size": "bytes",
            "has_issue": "len(issues) > 0",
            "error_code": "NULL::BIGINT",
        },
        {"message": "message_raw"},
        "kind = 'notification'",
    ),
}


class LakeFilter:
    """A filter of the rows of one table. Raises QueryError."""

    def __init__(self, text: str, table: str) -> None:
        self.table = table
        self._table = _TABLES[table]
        self._query = parse(text, linted=True)  # It reports errors; the compiler refuses findings.
        node = parse_tree(text)
        bounds = _exact("true") if node is None else _Compiler(self._table).bounds(node)
        self.key = self._table.key
        """The column that identifies a row in its session."""
        self.sure = f"({self._table.rows}) AND ({bounds.sure})"
        """Condition of the rows that match."""
        self.doubtful = " OR ".join(f"({each})" for each in sorted(bounds.doubts))
        """Condition of rows among which are those that SQL cannot decide, fast to test; empty if SQL decides on all."""
        self.undecided = (
            f"({self.doubtful}) AND ({self._table.rows}) AND ({bounds.possible}) AND NOT ({bounds.sure})"
        )
        """Condition of the rows on which `matches` decides, if `doubtful` is not empty."""
        first, *others = (
            f"coalesce(encode({text}), {raw}, ''::BLOB)" for text, raw in self._table.texts.items()
        )
        texts = {"data": first, "answer": others[0] if others else "''::BLOB"}
        fields = {**self._table.fields, **(texts if self._query.reads_text else {})}
        self.columns = ", ".join(f"{sql} AS {name}" for name, sql in fields.items())
        """The SELECT list of the rows for `matches`."""

    def matches(self, row: dict[str, Any]) -> bool:
        """Decide on a row by the filter itself, given `columns`."""
        item = ExchangeItem(**{"at": 0.0, "kind": self._table.kind, "data": b"", **row})
        if item.answer and isinstance(read_frame(Frame(0.0, SERVER, item.answer))[0], Failure):
            item.answer_member = "error"
        return self._query.matches(item)


def lake_filters(text: str) -> list[LakeFilter]:
    """Return a filter of each table that has messages. Raise QueryError, UsageError for text that is not UTF-8."""
    check_utf8(text)
    return [LakeFilter(text, table) for table in _TABLES]


class _Compiler:
    def __init__(self, table: _Table) -> None:
        self._table = table

    def bounds(self, node: Node) -> Bounds:
        if isinstance(node, Atom):
            bounds = self._atom(node)
            return _negated(bounds) if node.op == "!=" else bounds
        if isinstance(node, Not):
            return _negated(self.bounds(node.part))
        word = " AND " if isinstance(node, AllOf) else " OR "
        return _joined(word, [*map(self.bounds, node.parts)])

    def _atom(self, atom: Atom) -> Bounds:
        field, fields = atom.field, self._table.fields
        if field in (*MOMENTS, "time"):
            atom.fail("a time in a session: compare the column time in SQL, as in time >= '2026-11-01'")
        if field == "lint" or (field == "is" and atom.value.lower() == "finding"):
            atom.fail("findings are in the table findings")
        if field == WORD:
            return _joined(" OR ", [_text(atom, fields["method"]), _text(atom, fields["subject"])])
        if field in ("method", "subject", "stream"):
            return _text(atom, fields[field])
        if field in SUBJECTS:
            methods = ", ".join(map(quoted, sorted(SUBJECTS[field])))
            found = _text(atom, fields["subject"])
            return _joined(" AND ", [_exact(f"{fields['method']} IN ({methods})"), found])
        if field == "status" and re.fullmatch("-?[0-9]+", atom.value):
            return self._number("error_code", "=", float(atom.value))
        if field in ("dir", "kind", "note", "status", "is"):
            return self._outcome(atom)
        if field in (ORDER, *NUMBERS):
            compared, bound = values.number_bound(atom)
            return self._number({"code": "error_code"}.get(compared, compared), atom.op, bound)
        if field == "text":
            return self._search(atom)
        if field == PATH:
            return self._path(atom)
        return _UNDECIDED  # A regular expression, or an id: JSON spells a number in several ways.

    def _number(self, field: str, op: str, bound: float) -> Bounds:
        if abs(bound) >= 1 << 53:  # DuckDB would compare the nearest floating-point numbers.
            return _UNDECIDED
        compare = "=" if op in (":", "!=") else op
        compared = f"coalesce({self._table.fields[field]} {compare} '{bound!r}'::DOUBLE, false)"
        return _exact(compared)

    def _outcome(self, atom: Atom) -> Bounds:
        """Return the condition of an atom about the sender, kind and outcome, from the results of its test."""
        test = atom_test(atom, SessionEnd(), refuse).test
        if not any(
            test(_sample(kind, each)) for kind in ("request", "notification") for each in product(*_SAMPLES)
        ):
            atom.fail(
                f"{atom.name}:{atom.raw} matches no request and no notification: see mcpspy query --schema"
            )
        matching = {each for each in product(*_SAMPLES) if test(_sample(self._table.kind, each))}
        # A column matters if other values of it alone change the result.
        used = [
            place
            for place, samples in enumerate(_SAMPLES)
            if any(
                (*each[:place], other, *each[place + 1 :]) not in matching
                for each in matching
                for other in samples
            )
        ]
        if not used:
            return _exact(literal(bool(matching)))
        columns = ", ".join(_OUTCOME[place].format(**self._table.fields) for place in used)
        rows = {", ".join(literal(each[place]) for place in used) for each in matching}
        return _exact(f"({columns}) IN ({', '.join(f'({row})' for row in sorted(rows))})")

    def _search(self, atom: Atom) -> Bounds:
        if atom.op != ":" or not atom.value.isascii() or len(values.text_forms(atom.value)) > 1:
            return _UNDECIDED
        found = []
        rare = next((each for each in _RARE if each in atom.value.lower()), None)
        for text, raw in self._table.texts.items():
            # Three times as fast as lower(), and (?i) would match two letters outside ASCII.
            matches = f"regexp_matches({text}, {quoted(_pattern(atom.value))})"
            if rare is not None:
                has_rare = f"contains({text}, '{rare}') OR contains({text}, '{rare.upper()}')"
                matches = f"CASE WHEN {has_rare} THEN {matches} ELSE false END"
            matches = f"coalesce({matches}, false)"
            is_raw = f"{raw} IS NOT NULL"
            found.append(Bounds(matches, f"{matches} OR {is_raw}", frozenset([is_raw])))
        return _joined(" OR ", found)

    def _path(self, atom: Atom) -> Bounds:
        root = atom.name.partition(".")[0].partition("[")[0]
        request, *response = self._table.texts.items()
        if root != "params" and not response:
            return _exact("false")
        text, raw = request if root == "params" else response[0]
        steps = path_steps(atom.name[len(root) :])
        names = [f"contains({text}, {quoted(name)})" for name in path_names(steps)]
        named = " AND ".join(names) or "true"
        escaped = f"regexp_matches({text}, {quoted(_ESCAPED_NAME)})"
        path = "".join(f'."{each}"' for each in (root, *steps))
        value = f"TRY(json_extract({text}, {quoted('$' + path)}))::VARCHAR"
        decided = _value(atom, value) if len({root, *steps}) == 1 + len(names) == 1 + len(steps) else None
        if decided is None:
            return _UNDECIDED._replace(possible=f"coalesce({named} OR {escaped}, false) OR {raw} IS NOT NULL")
        # DuckDB takes the first of two members of one name, and does not read what some peers accept.
        twice = [f'"{re.escape(each)}".*"{re.escape(each)}"' for each in map(str, (root, *steps))]
        hidden = f"regexp_matches({text}, {quoted('(?s)' + '|'.join(twice))})"
        if other := _OTHER_MEMBER.get(root):
            hidden += f" OR contains({text}, '{other}')"
        matches, exceptions = decided
        matches = f"coalesce({matches}, false)"
        odd = f"regexp_full_match({value}, {quoted('(?s)' + exceptions)})"
        # DuckDB evaluates a branch of CASE only for its rows, but each part of OR and AND for all.
        unusual = (
            f"CASE WHEN {COMPACT} THEN {f'coalesce({odd}, false)' if atom.op == ':' else 'false'}"
            f" WHEN {escaped} THEN true"
            f" WHEN {named} THEN {hidden} OR coalesce({odd}, true) ELSE false END"
        )
        return Bounds(
            f"{matches} AND NOT {unusual}",
            f"{matches} OR {unusual} OR {raw} IS NOT NULL",
            frozenset([f"{unusual} OR {raw} IS NOT NULL" if atom.op == ":" else f"NOT {COMPACT}"]),
        )


_RARE = "qzxjkvwbyg"
"""The rarest letters in English, the rarest first. DuckDB finds a letter in a tenth of the time of a text."""

_ESCAPED_NAME = r"\\(?:u00|/)"
"""Escapes that may be part of a name of printable ASCII."""

_OTHER_MEMBER = {"result": '"error"', "error": '"result"'}
"""Root of a path → the member that a response of the other kind has. Few responses have both."""

_NUMBERS = r"-?[0-9]{16,}.*|-?[0-9]+[.eE].*|-0|-?(?i:nan|inf).*"
"""JSON numbers in a notation that DuckDB does not compare as Python does."""


def _value(atom: Atom, value: str) -> tuple[str, str] | None:
    """Return the condition of a value at a path, given its JSON in SQL, and a pattern of values on which it is wrong.

    Return None if SQL cannot decide it. The conditions name the value once: DuckDB would compute it each time.
    """
    if atom.op == ":":
        needle = atom.value.lower()
        if not _SIMPLE.fullmatch(needle):
            return None
        patterns = [
            '"(?s:.*)' + _pattern(needle),
            *([f"{needle}$"] if needle in ("true", "false", "null") else []),
        ]
        matches = f"regexp_matches({value}, {quoted('^(?:' + '|'.join(patterns) + ')')})"
        return matches, r"[-0-9{\[].*|(?i:nan|inf).*|.*[^\x00-\x5b\x5d-\x7f].*"
    literal = atom.value if atom.is_quoted else json_literal(atom.raw)
    if isinstance(literal, int | float) and not isinstance(literal, bool):
        compare = "=" if atom.op == "!=" else atom.op
        matches = f"TRY_CAST({value} AS DOUBLE) {compare} '{literal!r}'::DOUBLE"
        return (matches, _NUMBERS) if abs(literal) < 1 << 53 else None
    if isinstance(literal, str) and _SIMPLE.fullmatch(literal):
        return f"{value} = {quoted(chr(34) + literal + chr(34))}", "x^"
    return (
        (f"{value} = '{json.dumps(literal)}'", "x^") if literal is None or isinstance(literal, bool) else None
    )


_SIMPLE = re.compile(r"[ !#-)+->@-\[\]-~]+", re.ASCII)
"""Printable ASCII without the characters of wildcards and escapes."""


_SAMPLES = (
    ("", *(state.value for state in State)),
    (CLIENT, SERVER),
    (False, True),
    (False, True),
    (False, True),
)
"""The values on which the sender, kind and outcome of an item may depend: status, sender, code, issue, slow."""

_OUTCOME = (
    "{status}",
    "{side}",
    "{error_code} IS NOT NULL",
    "{has_issue}",
    f"coalesce({{latency}} > {SLOW}, false)",
)
"""The same values in SQL."""


def _sample(kind: str, outcome: tuple[str, str, bool, bool, bool]) -> ExchangeItem:
    """Return an item with this outcome and nothing else."""
    status, side, has_code, has_issue, is_slow = outcome
    return ExchangeItem(
        at=0.0,
        side=side,
        kind=kind,
        method="",
        subject="",
        size=0,
        stream="",
        has_issue=has_issue,
        data=b"",
        status=status,
        latency=2 * SLOW if is_slow else None,
        error_code=0 if has_code else None,
    )


def _pattern(needle: str) -> str:
    """Return a regular expression of ASCII text in upper and lower case."""
    return "".join(
        f"[{each.lower()}{each.upper()}]" if each.isalpha() else rf"\x{ord(each):02x}" for each in needle
    )


def _text(atom: Atom, column: str) -> Bounds:
    """Return the condition of a name. Case is folded by Python outside ASCII."""
    if atom.op in ("=", "!="):
        return _exact(f"{column} = {quoted(atom.value)}")
    value, is_ascii = atom.value.casefold(), f"strlen({column}) = length({column})"
    if not value.isascii():
        return Bounds("false", f"NOT ({is_ascii})", frozenset([f"NOT ({is_ascii})"]))
    found = f"contains(lower({column}), {quoted(value)})"
    if not atom.is_quoted and ("*" in value or "?" in value):
        pattern = value.translate(
            {ord(each): "\\" + each for each in "\\%_"} | {ord("*"): "%", ord("?"): "_"}
        )
        found = f"{column} <> '' AND ({found} OR lower({column}) LIKE {quoted(pattern)} ESCAPE '\\')"
    return Bounds(
        f"({found}) AND {is_ascii}", f"({found}) OR NOT ({is_ascii})", frozenset([f"NOT ({is_ascii})"])
    )


def _exact(condition: str) -> Bounds:
    return Bounds(condition, condition)


def _joined(word: str, parts: list[Bounds]) -> Bounds:
    sure, possible = (word.join(f"({part[place]})" for part in parts) for place in (0, 1))
    return Bounds(sure, possible, frozenset().union(*(part.doubts for part in parts)))


def _negated(bounds: Bounds) -> Bounds:
    return Bounds(f"NOT ({bounds.possible})", f"NOT ({bounds.sure})", bounds.doubts)


def literal(value: str | bool) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


def check_utf8(text: str) -> None:
    """Raise UsageError for text of the command line that DuckDB cannot read."""
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise UsageError(f"query: {sanitize(text)}: not UTF-8")


def quoted(text: str) -> str:
    """Return text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
