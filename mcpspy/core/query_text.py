"""The texts of the filter language: what is like one, and where in a message one stands.

Owns `*` and `?`, and in which forms a text may stand in JSON.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable

from mcpspy.core.query_item import Part
from mcpspy.core.query_tokens import Atom, QueryError

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


def looks(atom: Atom) -> Callable[[str], bool]:
    """Return the test of a text: exact, a pattern of `*` and `?`, or a substring."""
    value = atom.value
    if atom.op in ("=", "!="):
        return lambda text: text == value
    unordered(atom)
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


def unordered(atom: Atom) -> None:
    """Refuse to compare what has no order."""
    if atom.op[0] in "<>":
        atom.fail(f"{atom.name} has no order: write {atom.name}:{atom.raw}")


def remembered(atom: Atom) -> Callable[[str], bool]:
    """Return the same test, which knows its answers: for texts that are few, and come again."""
    return _Remembered(looks(atom)).__getitem__


def searched(atom: Atom) -> Part:
    """Find a text, as it stands or as a JSON string holds it, whatever its case."""
    if atom.op != ":":
        atom.fail(f"{atom.name} takes a colon: {atom.name}:{atom.raw}")
    value, plain = atom.value, atom.value.casefold()
    held = (json.dumps(plain, ensure_ascii=False), json.dumps(plain), json.dumps(value))
    forms = {plain, *(form[1:-1].casefold() for form in held)}
    if not value.isascii():  # Only str knows the capitals of other alphabets; some fold to ASCII, as ß to ss.
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


def pattern(atom: Atom) -> Part:
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
