"""Read a configuration of gitleaks (https://github.com/gitleaks/gitleaks#configuration), as it is.

Honoured are regex, keywords, secretGroup, entropy, and the allowlists of a rule and of the file. What concerns
files and commits is not: a message is neither.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_HONOURED = frozenset("id description regex keywords secretGroup entropy allowlist allowlists tags".split())
_TOP = frozenset("title description minVersion rules allowlist allowlists".split())
_NO_MEANING = frozenset(
    "description condition paths commits regexTarget regexes stopwords targetRules".split()
)
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PART = re.compile(
    r"""(?x)
    \\Q (?P<quoted>.*?) (?:\\E|\Z)
    | \\x\{(?P<code>[0-9A-Fa-f]{1,6})\}
    | \\. | \[:(?P<posix>\^?[a-z]+):\]
    | \(\?P?<[A-Za-z]\w*> | \(\?[A-Za-z-]*[:)] | \(\?[=!<>#] | \(
    | [\[\])] | .
    """,
    re.DOTALL,
)


class Allowlist(NamedTuple):
    regexes: tuple[str, ...]
    stopwords: tuple[str, ...]
    target: str
    """Text that a regex is searched in: the secret, its `match`, or its `line`."""
    needs_all: bool


class GitleaksRule(NamedTuple):
    id: str
    regex: str
    group: int | None
    """The group that is the secret; None: the first one, if the rule has any."""
    keywords: tuple[str, ...]
    entropy: float
    allowlists: tuple[Allowlist, ...]


class Configuration(NamedTuple):
    rules: list[GitleaksRule]
    ignored: str
    """One line about everything that is not honoured; may be empty."""


def read(tables: dict[str, Any]) -> Configuration:
    """Return the rules of a configuration; raise ValueError with rule and reason."""
    ignored: list[str] = [f"[{name}]" for name in sorted(tables.keys() - _TOP)]
    if not isinstance(tables["rules"], list):
        raise ValueError("rules: write [[rules]] above each rule")
    everywhere, targeted = _file_allowlists(tables)
    rules: list[GitleaksRule] = []
    unused: list[str] = []
    for number, table in enumerate(tables["rules"], 1):
        label = table.get("id") if isinstance(table, dict) else None
        label = label if isinstance(label, str) else f"{number}"
        try:
            rule = _rule(table, label)
        except ValueError as error:
            raise ValueError(f"rule {label!r}: {error}") from None
        if isinstance(rule, str):
            unused.append(f"{label} ({rule})")
            continue
        more = [each for names, each in targeted if rule.id in names]
        rules.append(rule._replace(allowlists=(*rule.allowlists, *everywhere, *more)))
        ignored += (f"{key} of {label}" for key in sorted(table.keys() - _HONOURED))
    total = len(tables["rules"])
    if unused:
        ignored.append(f"{len(unused)} of {total} rules: {', '.join(unused)}")
    return Configuration(rules, f"not honoured: {'; '.join(ignored)}" if ignored else "")


def _rule(table: Any, label: str) -> GitleaksRule | str:
    """Return a rule, or the reason why it does not apply to messages."""
    if not isinstance(table, dict):
        raise ValueError("write [[rules]] above its keys")
    regex = table.get("regex")
    if regex is None:
        return "no regex"
    if not isinstance(regex, str) or not regex:
        raise ValueError("regex must be a string")
    if "path" in table:
        return "it needs a path"
    if table.get("skipReport"):
        return "skipReport"
    group = table.get("secretGroup", 0)
    if type(group) is not int or not 0 <= group < 100:
        raise ValueError("secretGroup must be the number of a group")
    entropy = table.get("entropy", 0)
    if isinstance(entropy, bool) or not isinstance(entropy, int | float):
        raise ValueError("entropy must be a number")
    alone = table.get("allowlist")
    lists = _list(table, "allowlists", dict) + ([alone] if isinstance(alone, dict) else [])
    allowlists = tuple(each for each in map(_allowlist, lists) if each is not None)
    keywords = tuple(_list(table, "keywords", str))
    return GitleaksRule(label, regex, group or None, keywords, float(entropy), allowlists)


def _file_allowlists(tables: dict[str, Any]) -> tuple[list[Allowlist], list[tuple[list[str], Allowlist]]]:
    """Return the allowlists of all rules, and those of certain rules with the rules' ids."""
    everywhere: list[Allowlist] = []
    targeted: list[tuple[list[str], Allowlist]] = []
    alone = tables.get("allowlist")
    for table in _list(tables, "allowlists", dict) + ([alone] if isinstance(alone, dict) else []):
        if (allowlist := _allowlist(table)) is None:
            continue
        if names := _list(table, "targetRules", str):
            targeted.append((names, allowlist))
        else:
            everywhere.append(allowlist)
    return everywhere, targeted


def _allowlist(table: dict[str, Any]) -> Allowlist | None:
    """Return an allowlist; None if it can never apply to a message."""
    if unknown := sorted(table.keys() - _NO_MEANING):
        raise ValueError(f"unknown key {unknown[0]} in an allowlist")
    regexes, stopwords = _list(table, "regexes", str), _list(table, "stopwords", str)
    needs_all = str(table.get("condition", "OR")).upper() in ("AND", "&&")
    if not (regexes or stopwords) or (needs_all and (table.get("paths") or table.get("commits"))):
        return None
    target = table.get("regexTarget", "secret")
    if target not in ("secret", "match", "line"):
        raise ValueError(f"regexTarget {target!r}: use secret, match or line")
    return Allowlist(tuple(regexes), tuple(stopwords), target, needs_all)


def _list(table: dict[str, Any], key: str, kind: type) -> list[Any]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{key} must be a list of {'strings' if kind is str else 'tables'}")
    return values


def portable(regex: str, group: int | None) -> str:  # noqa: PLR0912 - one branch for each part of the syntax.
    r"""Return a regular expression of Go in the syntax that RE2 and Python's `re` have in common.

    Flags in the middle become a group around the rest, `[[:alnum:]]` a range, `\z` `$`. Only the group of this number
    captures; without a number, all groups do. Raises ValueError if there is no such group.
    """
    pieces: list[str] = []
    flags: list[list[str]] = [[]]
    """The flag groups opened since each open parenthesis."""
    number = 0
    in_class = False
    for found in _PART.finditer(regex):
        part = found[0]
        if found["quoted"] is not None:
            pieces.append(re.escape(found["quoted"]))
        elif found["code"] is not None:
            pieces.append(re.escape(chr(int(found["code"], 16))))
        elif found["posix"] is not None and in_class:
            pieces.append(_posix(found["posix"]))
        elif in_class:
            is_first = pieces[-1] in ("[", "[^")
            in_class = part != "]" or is_first
            pieces.append("\\[" if part == "[" else "\\]" if part == "]" and is_first else part)
            if part == "^" and pieces[-2] == "[":
                pieces[-2:] = ["[^"]
        elif part == "[":
            in_class = True
            pieces.append(part)
        elif part == r"\z":
            pieces.append("$")
        elif part == "(" or (part.startswith(("(?P<", "(?<")) and part.endswith(">")):
            number += 1
            pieces.append("(" if group in (None, number) else "(?:")
            flags.append([])
        elif part.startswith("(?") and part.endswith(")"):
            flags[-1].append(f"{part[:-1]}:")
            pieces.append(flags[-1][-1])
        elif part.startswith("(?"):
            pieces.append(part)
            flags.append([])
        elif part == ")" and len(flags) > 1:
            pieces.append(")" * len(flags.pop()) + part)
        elif part == "|":
            # A flag is in force until the end of its group, also in the other alternatives.
            pieces += (")" * len(flags[-1]), part, *flags[-1])
        else:
            pieces.append(part)
    if group is not None and group > number:
        raise ValueError(f"secretGroup {group}: the regex has {number} groups")
    return "".join(pieces) + ")" * len(flags[0])


def _posix(name: str) -> str:
    if name.startswith("^") or name not in _POSIX:
        raise ValueError(f"[:{name}:] is not supported")
    return _POSIX[name]
