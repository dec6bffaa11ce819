"""Causes outside the protocol that an error names: settings, files, the network.

The same words mean the same, wherever they appear: on stderr of a server that ended, in a tool error, in a JSON-RPC error,
or on stderr while a request had no response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes.definition import advised
from mcpspy.analysis.explain.causes.examples import not_started
from mcpspy.analysis.explain.causes.troubles import TROUBLES, Trouble, trouble_of
from mcpspy.analysis.explain.claims import Claim, Explain, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, NamedError, named_error, quote, quote_error
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, ServerEnd, Symptom
from mcpspy.core.session.exchange import State


class _Named(NamedTuple):
    """A symptom whose error names a trouble."""

    symptom: Symptom
    trouble: Trouble
    about: str
    words: str
    line: EvidenceLine | None


def _named(facts: Facts) -> Iterator[_Named]:
    for symptom in facts.symptoms:
        match symptom:
            case ServerEnd(named=NamedError() as named, error=""):
                if around := _trouble_around(facts, named, at_start=not symptom.has_answered):
                    kind, text = around
                    about = "the server ended" if symptom.has_answered else "the server did not start"
                    words = named.framed if text == named.text else text
                    yield _Named(symptom, kind, about, words, named.evidence)
            case FailedRequest(effects=[]) if symptom.words and symptom.refusal is None:
                if trouble := trouble_of(symptom.words[:600], at_start=False):
                    yield _Named(symptom, trouble, f"{symptom.about} failed", symptom.words, None)
                elif (error := named_error(symptom.stderr, certain=True)) and (
                    trouble := trouble_of(error.text, at_start=False)
                ):
                    words = f"{quote(symptom.words, 80)}; on stderr: {error.text}"
                    yield _Named(symptom, trouble, f"{symptom.about} failed", words, error.evidence)
            case FailedRequest(effects=[], state=State.CANCELLED | State.UNANSWERED | State.LATE_OK):
                error = named_error(symptom.stderr, certain=True)
                if error and (trouble := trouble_of(error.text, at_start=False)):
                    about = f"{symptom.about} got no response"
                    yield _Named(symptom, trouble, about, error.text, error.evidence)


def _trouble_around(facts: Facts, named: NamedError, *, at_start: bool) -> tuple[Trouble, str] | None:
    """Return the trouble of the error of a server that ended, and the line that names it, which may be one before it."""
    lines = [line.text.strip() for line in facts.stderr if line.at <= named.line.at + 0.5][-8:]
    for text in (named.text, *reversed(lines)):
        if trouble := trouble_of(text, at_start=at_start):
            return trouble, text
    return None


def _explains(trouble: Trouble) -> Explain:
    def claims(facts: Facts) -> Iterator[Claim]:
        every = [named for named in _named(facts) if named.trouble is trouble]
        for is_end in (True, False):
            same = [named for named in every if isinstance(named.symptom, ServerEnd) is is_end]
            if not same:
                continue
            symptoms: list[Symptom] = [named.symptom for named in same]
            symptoms += [each for end in symptoms if isinstance(end, ServerEnd) for each in end.during]
            others = {named.about for named in same[1:]} - {same[0].about}
            title = f"{same[0].about}: {quote_error(same[0].words)}"
            title += f"; also {', '.join(sorted(others)[:3])}" if others else ""
            lines = [each.line for each in same[:2] if each.line is not None]
            step = _next_step(facts, trouble, same[0].words)
            claim = Claim(title=title, next_step=step, symptoms=symptoms, evidence=lines, side=trouble.side)
            claim.level = Level.EXACT if is_end else Level.SPECIFIC
            yield claim

    claims.__doc__ = trouble.named_by
    return claims


_MISSING = re.compile(r"No module named '?([\w-]+)")

_OTHER_VERSION = re.compile(
    r"No module named '\w+\.|cannot import name|does not provide an export"
    r"|ERR_PACKAGE_PATH_NOT_EXPORTED|was (?:renamed|removed|moved)"
)
"""A part of a package is missing, and not the package."""

_ROOT_PATH = re.compile(r"['\"\s]/[\w.-]+/?['\"\s]?$|Read-only file system")
_RELATIVE_PATH = re.compile(r"['\"\s](?:\./|\.\./)?[\w-]+(?:/[\w.-]+)*\.\w{1,5}\b")


def _next_step(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the next step; of a path, also where the server was started, and of a module whose
    package is there, its version.
    """
    cwd, next_step = facts.header.cwd, advised(trouble.next_step, words)
    if trouble.code == "module-missing":
        missing = _MISSING.search(words)
        names = {name for word in facts.header.command or () for name in re.split(r"[./\\]", word)}
        if missing and missing[1] in names:
            return (
                f"{quote(missing[1], 40)!r} is the program's own package, and is not found from "
                f"{quote(cwd or 'the working directory', 80)}: give the absolute path of the file, set "
                f"PYTHONPATH by env, or install the project"
            )
        if _OTHER_VERSION.search(words):
            return (
                "the package is installed in a version that has no such module: start the server with "
                "the version that it was written for (uvx --with 'package<2'), or update the server"
            )
    is_of_root = trouble.code in (
        "permission-denied",
        "read-only-folder",
        "file-missing",
    ) and _ROOT_PATH.search(words)
    is_relative = trouble.code == "file-missing" and _RELATIVE_PATH.search(words)
    if cwd is not None and (is_of_root or is_relative):
        return f"{next_step}; this server was started in {quote(cwd, 80)}"
    return next_step


for _each in TROUBLES:
    _add = cause(_each.code, _each.what, Level.SPECIFIC, positive=tuple(map(not_started, _each.errors)))
    _add(_explains(_each))
