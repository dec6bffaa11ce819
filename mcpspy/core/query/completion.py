"""Completion of a filter: the possible forms of its last term. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from mcpspy.core.query.fields import KIND_GROUPS, KINDS, SIDES, STATUSES, SUBJECTS
from mcpspy.core.query.lexer import FIELDS

MESSAGE_VALUES: Mapping[str, Iterable[str]] = {
    "is": ("problem", "slow", "issue", "finding", *STATUSES),
    "status": tuple(STATUSES),
    "kind": (*KINDS, *KIND_GROUPS),
    "dir": tuple(SIDES),
}
"""Field of a filter of messages → its values, as far as they are the same in every session."""

Names = Iterable[tuple[str, str]]
"""Methods of messages, each with its subject: `("tools/call", "echo")`."""

_PLAIN = re.compile(r'[^\s()|"]+')


MESSAGE_FIELDS = tuple(name for name, canonical in FIELDS.items() if name == canonical)
"""The fields of a filter of messages, without their other names."""

MOST = 50
"""Candidates that a list shows at most."""


def completed(
    text: str,
    fields: Iterable[str],
    values: Mapping[str, Iterable[str]],
    names: Callable[[], Names] = lambda: (),
) -> list[str]:
    """Return the text with each possible last term: a field with a colon, or a value of the field that is typed.

    `names` returns the names of the session; it is called for `tool:`, `prompt:`, `uri:` and `method:` only.
    """
    before, space, term = text.rpartition(" ")
    sign = term[: len(term) - len(term.lstrip("-("))]
    field, colon, _typed = term[len(sign) :].partition(":")
    if not colon:
        terms = [f"{name}:" for name in fields]
    else:
        terms = [f"{field}:{_quoted(value)}" for value in _values(field, values, names)]
    return [f"{before}{space}{sign}{each}" for each in terms]


def continuing(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that continue a text, at most `MOST`."""
    lower = text.lower()
    return list(islice((each for each in candidates if each.lower().startswith(lower)), MOST))


def suggestion(text: str, candidates: Iterable[str]) -> str | None:
    """Return the first candidate that continues a text; None without one, and for a text without a last term."""
    if not text or text[-1] in " (-":
        return None
    lower = text.lower()
    return next(
        (each for each in candidates if each.lower().startswith(lower) and len(each) > len(text)), None
    )


def _values(field: str, values: Mapping[str, Iterable[str]], names: Callable[[], Names]) -> Iterable[str]:
    # In order of their names: `names` may be a set, and a page shows the first few.
    if field in SUBJECTS:
        return sorted({subject for method, subject in names() if method in SUBJECTS[field] and subject})
    if field == "method":
        return sorted({method for method, _ in names() if method})
    return dict.fromkeys(value for value in values.get(field, ()) if value)


def _quoted(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else f'"{value.replace(chr(34), "")}"'
