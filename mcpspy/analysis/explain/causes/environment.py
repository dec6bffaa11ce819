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
from mcpspy.core.protocol.spec import SERVER
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
                    kind, text, line = around
                    about = "the server ended" if symptom.has_answered else "the server did not start"
                    words = named.framed if text == named.text else text
                    yield _Named(symptom, kind, about, words, line)
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


def _trouble_around(
    facts: Facts, named: NamedError, *, at_start: bool
) -> tuple[Trouble, str, EvidenceLine] | None:
    """Return the trouble of the error of a server that ended, and the line that names it, which may be one before it."""
    lines = [line for line in facts.stderr if line.at <= named.line.at + 0.5][-8:]
    texts = [(line.text.strip(), line.evidence) for line in reversed(lines)]
    for text, line in ((named.text, named.evidence), *texts):
        if trouble := trouble_of(text, at_start=at_start):
            return trouble, text, line
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
            side = _side(facts, trouble, same[0].words)
            claim = Claim(title=title, next_step=step, symptoms=symptoms, evidence=lines, side=side)
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

_PACKAGE_RUNNER = re.compile(r"(?:^|[/\\])(?:uvx|npx|bunx|pnpx|pipx)(?:\.exe|\.cmd)?$")
"""They install a package with all that it declares, and nothing else."""

_MISSING_IN_NODE = re.compile(r"(?i)cannot find (?:module|package) '[^/\\.']")

_IN_PACKAGE = re.compile(r"[/\\](?:node_modules|site-packages|dist-packages)[/\\]")

_HOME = re.compile(r"['\"`\s]~[/\\]")
_VARIABLE = re.compile(r"\$\{\w+\}|%[A-Za-z_]\w+%|\$[A-Z][A-Z_]{2,}\b")
_QUOTED = re.compile(r"""(["']).+\1""")
_ROOT_PATH = re.compile(r"['\"\s]/[\w.-]+/?['\"\s]?$|Read-only file system")
_RELATIVE_PATH = re.compile(r"['\"\s](?:\./|\.\./)?[\w-]+(?:/[\w.-]+)*\.\w{1,5}\b")


def _own_package(facts: Facts, words: str) -> str:
    """Return the missing package if it is that of the program itself; else nothing."""
    missing = _MISSING.search(words)
    names = {name for word in facts.header.command or () for name in re.split(r"[./\\]", word)}
    return missing[1] if missing and missing[1] in names else ""


def _is_other_version(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether the server was installed with a version of a package that it does not work with."""
    is_missing = trouble.code == "module-missing" and not _own_package(facts, words)
    return is_missing and _OTHER_VERSION.search(words) is not None


def _is_undeclared(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether a package imports what it does not declare: its runner has installed what it declares."""
    is_run = _PACKAGE_RUNNER.search((facts.header.command or [""])[0]) is not None
    is_import = _MISSING.search(words) is not None or _MISSING_IN_NODE.search(words) is not None
    return trouble.code == "module-missing" and is_run and is_import and not _own_package(facts, words)


def _is_home_unexpanded(facts: Facts, words: str) -> bool:
    """Return whether a path begins with ~ that is not from the command."""
    return _HOME.search(words) is not None and not any("~" in word for word in facts.header.command or ())


def _side(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the side that has to correct a trouble; empty if the error does not tell."""
    if _is_other_version(facts, trouble, words) or _is_undeclared(facts, trouble, words):
        return SERVER
    if trouble.code == "file-missing" and _is_home_unexpanded(facts, words):
        return ""  # A script around the server has it, or the server.
    if trouble.code == "file-missing" and _IN_PACKAGE.search(words):
        named = [
            word for word in (facts.header.command or ()) if len(word) > 2 and word.strip("\"'") in words
        ]
        return trouble.side if named else ""  # A file of the installed package, which no configuration names.
    return trouble.side


def _next_step(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the next step; of a path, also where the server was started, and of a module whose
    package is there, its version.
    """
    cwd, next_step = facts.header.cwd, advised(trouble.next_step, words)
    if trouble.code == "module-missing":
        if (own := _own_package(facts, words)) and own in (facts.header.command or ()):  # python -m NAME
            return (
                f"install the package that has {quote(own, 40)!r} into this interpreter ({quote((facts.header.command or [''])[0], 80)}), or "
                f"start the server with uvx, or with the interpreter that has it"
            )
        if own:
            return (
                f"{quote(own, 40)!r} is the program's own package, and is not found from "
                f"{quote(cwd or 'the working directory', 80)}: give the absolute path of the file, set "
                f"PYTHONPATH by env, or install the project"
            )
        if _is_undeclared(facts, trouble, words) and not _OTHER_VERSION.search(words):
            return (
                "the package imports what it does not declare: tell its author; until then name the missing one beside it "
                "(uvx --with NAME, npx -p NAME -p PACKAGE), or use the version before"
            )
        if _is_other_version(facts, trouble, words):
            return (
                "the package is installed in a version that has no such module: let the server's dependencies name the "
                "version that it was written for, or update it; until then start it with that version (uvx --with "
                "'package<2')"
            )
    if trouble.code == "file-missing" and (unset := _VARIABLE.search(words)) is not None:
        return (
            f"the path has a variable in it that no one replaced, {quote(unset[0], 60)}: hosts pass only few variables on, "
            f"and not all replace them; set it by env in the host's configuration, or write its value"
        )
    if trouble.code == "file-missing" and _is_home_unexpanded(facts, words):
        return (
            "the path begins with ~, which no shell replaces in quotes: correct the script or the program "
            "that has it ($HOME, or the whole path)"
        )
    quoted = next((word for word in facts.header.command or () if _QUOTED.fullmatch(word)), None)
    if quoted is not None and trouble.code in ("file-missing", "command-not-found", "module-missing"):
        return (
            f"remove the quotation marks inside the argument {quote(quoted, 100)}: a host starts no shell, so they are part "
            f"of the name; an argument may contain spaces"
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
