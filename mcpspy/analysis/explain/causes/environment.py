"""Causes outside the protocol that an error names: settings, files, the network.

The same words mean the same, wherever they appear: on stderr of a server that ended, in a tool error, in a JSON-RPC error,
or on stderr while a request had no response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes.definition import Trouble, advised
from mcpspy.analysis.explain.causes.examples import (
    call,
    done,
    exited,
    initialize,
    not_started,
    session,
    stderr,
)
from mcpspy.analysis.explain.causes.start_troubles import OF_CACHE
from mcpspy.analysis.explain.causes.troubles import TROUBLES, trouble_of
from mcpspy.analysis.explain.claims import Claim, Explain, Level, cause
from mcpspy.analysis.explain.evidence import BUG, EvidenceLine, NamedError, named_error, quote, quote_error
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
            case FailedRequest(effects=[]) if symptom.words and not symptom.is_refused:
                trouble = trouble_of(symptom.words[:600], at_start=False)
                if trouble and trouble.code == "setting-missing" and _DATA.search(symptom.words):
                    continue
                if trouble:
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
    if trouble := trouble_of(named.text, at_start=at_start):
        setting = _setting_before(facts, named) if at_start and trouble.code == "file-missing" else None
        return setting or (trouble, named.text, named.evidence)
    for text, line in texts:
        trouble = trouble_of(text, at_start=at_start)
        # A program that continues after a warning ends for another reason, but a runtime of the wrong version for this one.
        is_other = BUG.search(named.text) or _GOES_ON.search(text)
        if trouble is not None and not (is_other and trouble.code != "runtime-version"):
            return trouble, text, line
    return None


_NAMED_SETTING = re.compile(
    r"\b(?i:set|provide|export|missing|requires?|required)\b.{0,40}\b[A-Z][A-Z0-9]+_[A-Z0-9_]+"
)


def _setting_before(facts: Facts, named: NamedError) -> tuple[Trouble, str, EvidenceLine] | None:
    """Return the setting that a server names before the file which it looks for without it; None if it names none."""
    for line in facts.stderr:
        text = line.text.strip()
        trouble = trouble_of(text, at_start=True) if _NAMED_SETTING.search(text) else None
        if (
            trouble is not None
            and trouble.code == "setting-missing"
            and named.line.at - 1.0 <= line.at <= named.line.at
        ):
            return trouble, f"{named.text}; before it: {text}", line.evidence
    return None


_GOES_ON = re.compile(
    r"(?i)\bwarn(?:ing)?\b|\bdefaults?\b|\bskip|\bignor|fall(?:ing)?[- ]?back|\bcontinu|\boptional\b"
)
"""The words of a program that does without something."""

_DATA = re.compile(r"validation errors? for (?!\w*(?:Settings|Config|Env)\b)")
"""Pydantic, about an object that is not the settings of the program."""

_NETWORK = ("name-not-resolved", "service-unreachable", "tls-failure", "service-refused-key")
_ADDRESS = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?")
_HOST_IN_URL = re.compile(r"(?i)^(?:https?|wss?|ftp)://(?:[^/@\s]*@)?([^/:?#\s]+)")


def _named_by_call(symptom: Symptom, trouble: Trouble, words: str) -> str:
    """Return the text among the arguments of a call that its error is about; empty if there is none."""
    for text in symptom.texts if isinstance(symptom, FailedRequest) else ():
        if trouble.code in _NETWORK:
            host = _HOST_IN_URL.search(text)
            if host is not None and (host[1] in words or "://" not in words):
                return host[1]
            is_address = _ADDRESS.fullmatch(text) is not None and trouble.code != "service-refused-key"
            if is_address and text in words:
                return text
        elif trouble.code in ("file-missing", "text-encoding", "setting-missing"):
            is_plain = re.fullmatch(r"\w+", text) is not None
            found = re.search(rf"[\"'`]{re.escape(text)}[\"'`]", words) if is_plain else text in words
            if found:
                return text
    return ""


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
            if not is_end and (named := _named_by_call(same[0].symptom, trouble, same[0].words)):
                side = ""
                step = f"the call itself names {quote(named, 80)!r}: check that first; if it is right: {step}"
            elif trouble.code == "port-in-use" and not is_end:
                side = ""  # This server may have the port itself.
            elif trouble.code == "service-refused-key" and not facts.is_stdio:
                side = ""
                step = (
                    "set a valid key or token for the service where this server has it from: its own settings or store of "
                    "credentials (it may still use the one before), or what the client sends to it (a header, the URL)"
                )
            elif trouble.code == "service-refused-key" and _FORBIDDEN.search(same[0].words):
                side = ""  # The service may know who asks.
                step = (
                    "the service refused with 403: look whether this key has the permission (scope, plan, region), and "
                    "whether the service lets programs in at all"
                )
            claim = Claim(title, step, symptoms, evidence=lines, side=side)
            claim.level = Level.EXACT if is_end else Level.SPECIFIC
            yield claim

    claims.__doc__ = trouble.named_by
    return claims


_FORBIDDEN = re.compile(r"(?is)^(?!.*(?:\b401\b|key|token|credential|auth|expired)).*\b403\b")
"""A status that is not about the form or the age of credentials."""

_CONFLICT = re.compile(
    r"(?i)depends? on .{1,200}\bdepends? on\b|conflicting dependencies|are incompatible|ERESOLVE"
)
_NOT_THERE = re.compile(r"not found in the package registry|there (?:is|are) no version|was not found in")
_OF_REGISTRY = re.compile(
    r"(?i)no matching (?:version|distribution) found for ['\"]?(@?[\w./-]+)|['\"](@?[\w./-]+)@[^'\"]{0,60}['\"] is not in"
)
"""pip and npm name what no registry has."""


_UNMET = re.compile(r"Because only (\S+?)==\S+ is available and .{1,200}\bdepends? on \1\b")
"""uv, about a dependency that exists only in other versions than those that are asked for."""


def _other_package(facts: Facts, words: str) -> str:
    """Return the package that no registry has, if the command does not name it: one that the server's package needs."""
    found = _UNMET.search(" ".join(words.split())) or _OF_REGISTRY.search(words)
    name = next((each for each in found.groups() if each), "") if found else ""
    return "" if any(name in word for word in facts.command or ["."]) else name


def _has_conflict(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether the packages that a server needs exclude each other."""
    is_named = trouble.code == "module-missing" and _CONFLICT.search(words) is not None
    return is_named and _NOT_THERE.search(words) is None


_MISSING = re.compile(r"No module named '?([\w-]+)")

_OTHER_VERSION = re.compile(
    r"No module named '\w+\.|cannot import name|does not provide an export"
    r"|ERR_PACKAGE_PATH_NOT_EXPORTED|was (?:renamed|removed|moved)"
)
"""A part of a package is missing, and not the package."""

_OF_SDK = re.compile(r"['\s]mcp(?:\.[\w.]+)?'")
"""The Python SDK or a module of it, in the words of an import."""

_PACKAGE_RUNNERS = frozenset(("bunx", "npx", "pipx", "pnpx", "uvx"))
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
    if "named 'mcp." in words:
        return ""  # The SDK is there, in another version, although its own command (mcp run) may start the server.
    names = {name for word in facts.command for name in re.split(r"[./\\]", word)}
    return missing[1] if missing and missing[1] in names else ""


def _lacks_itself(facts: Facts, words: str) -> bool:
    """Return whether a package that a runner has installed does not have its own module."""
    missing = _MISSING.search(words)
    names = {
        re.split(r"[@=\[<>~]", word)[0].rsplit("/", 1)[-1].replace("-", "_").lower()
        for word in facts.command[1:]
    }
    is_run = facts.program_name in _PACKAGE_RUNNERS
    return is_run and missing is not None and missing[1].lower() in names


def _beside_program(facts: Facts, words: str) -> bool:
    """Return whether a missing file is in the folder of the program that the command names, and is not that program."""
    paths = [word for word in facts.command if re.match(r"/|[A-Za-z]:[\\/]", word)]
    if any(path in words for path in paths):
        return False
    folders = [
        re.split(r"[/\\](?=[^/\\]*$)", path)[0]
        for path in paths
        if re.search(r"\.(?:[cm]?js|ts|py|jar|rb|php)$", path)
    ]
    return any(len(folder) > 1 and folder in words for folder in folders)


def _is_other_version(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether the server was installed with a version of a package that it does not work with."""
    is_missing = trouble.code == "module-missing" and not _own_package(facts, words)
    return is_missing and _OTHER_VERSION.search(words) is not None


def _is_undeclared(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether a package imports what it does not declare: its runner has installed what it declares."""
    is_run = facts.program_name in _PACKAGE_RUNNERS
    is_import = _MISSING.search(words) is not None or _MISSING_IN_NODE.search(words) is not None
    return trouble.code == "module-missing" and is_run and is_import and not _own_package(facts, words)


_IMPORTER = re.compile(r"imported from .*[/\\]node_modules[/\\]((?:@[\w.-]+[/\\])?[\w.-]+)")
_FILE_MISSING = re.compile(r"(?i)cannot find module ['\"][^'\"]*[/\\]node_modules[/\\]")


def _is_half_installed(facts: Facts, trouble: Trouble, words: str) -> bool:
    """Return whether a file is missing between two packages that the command does not name: not the server's own mistake."""
    importer = _IMPORTER.search(words)
    if trouble.code != "package-broken" or importer is None or not _FILE_MISSING.search(words):
        return False
    name = importer[1].replace("\\", "/")
    return bool(facts.command) and not any(name in word for word in facts.command)


def _is_home_unexpanded(facts: Facts, words: str) -> bool:
    """Return whether a path begins with ~ that is not from the command."""
    return _HOME.search(words) is not None and not any("~" in word for word in facts.command)


def _side(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the side that has to correct a trouble; empty if the error does not tell."""
    if _is_other_version(facts, trouble, words) or _is_undeclared(facts, trouble, words):
        return SERVER
    if trouble.code == "install-failed" and re.search(OF_CACHE, words, re.IGNORECASE):
        return "environment"
    if trouble.code == "file-missing" and _split_path(facts, words):
        return ""  # The user or the host divided it at its blanks.
    if trouble.code == "file-missing" and _beside_program(facts, words):
        return ""  # The program should bring it, or the user has to make it, such as a file of credentials.
    if trouble.code == "module-missing" and _lacks_itself(facts, words):
        return SERVER
    if trouble.code == "permission-denied" and ".bin" in words and _IN_PACKAGE.search(words):
        return ""  # The package was published so, or its installation.
    if _is_half_installed(facts, trouble, words):
        return ""  # An interrupted installation, or a release of one of them.
    if _has_conflict(facts, trouble, words):
        return "" if "--with" in facts.command else SERVER
    if trouble.code == "module-missing" and _other_package(facts, words):
        return ""  # The package needs what was never published, or the registry does not show it (a mirror, a minimal age).
    if trouble.code == "file-missing" and _is_home_unexpanded(facts, words):
        return ""  # A script around the server has it, or the server.
    if trouble.code == "file-missing" and _IN_PACKAGE.search(words):
        named = [word for word in facts.command if len(word) > 2 and word.strip("\"'") in words]
        return trouble.side if named else ""  # A file of the installed package, which no configuration names.
    if trouble.code == "file-missing" and not any(word in words for word in facts.command if len(word) > 2):
        return ""  # A path that the command does not have.
    return trouble.side


_BARE = re.compile(r"[^\s/\\=:.@-][^/\\=:@]*")
"""A word that is neither an option nor a path, a package or an address."""


def _split_path(facts: Facts, words: str) -> str:
    """Return the path that a missing one may be the beginning of: words without a folder follow it in the command."""
    command = facts.command
    for number, word in enumerate(command[1:-1], 1):
        is_path = re.match(r"/.*/|[A-Za-z]:[\\/]", word) is not None and not re.search(r"\.\w{1,5}$", word)
        if is_path and word in words and _BARE.fullmatch(command[number + 1]):
            rest = [each for each in command[number + 1 :] if _BARE.fullmatch(each)]
            return " ".join([word, *rest])
    return ""


def _is_absolute(facts: Facts, words: str) -> bool:
    """Return whether a missing file is named by its whole path in the command."""
    return any(word in words for word in facts.command if re.match(r"/.*/|[A-Za-z]:[\\/]", word))


def _next_step_of_module(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the next step if a package was found, and something else about it is wrong; empty if it is missing."""
    cwd = facts.header.cwd
    if _has_conflict(facts, trouble, words):
        return (
            "packages that the server needs exclude each other: use another version of it, and tell its author; a newer "
            "release of one of them may be the reason (uvx --exclude-newer DATE)"
        )
    if _lacks_itself(facts, words):
        return (
            "the package was installed, and does not have its own module: it was built without it. Tell its author, and use the "
            "version before; a stale cache has the same effect (uv cache clean, uvx --refresh)"
        )
    if other := _other_package(facts, words):
        return (
            f"the server's package needs {quote(other, 60)!r}, which the registry does not have in this version: try it with "
            f"the public registry; if that has it, look at the mirror (npm config get registry, a minimal age of releases); if "
            f"not, use the version of the server before, and tell its author"
        )
    if (own := _own_package(facts, words)) and own in facts.command:  # python -m NAME
        return (
            f"install the package that has {quote(own, 40)!r} into this interpreter ({quote(facts.program, 80)}), or "
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
            f"version that it was written for, or update it; until then start it with that version (uvx --with "
            f"'{'mcp' if _OF_SDK.search(words) else 'package'}<2')"
        )
    return ""


def _next_step(facts: Facts, trouble: Trouble, words: str) -> str:
    """Return the next step; of a path, also where the server was started, and of a module whose
    package is there, its version.
    """
    cwd, next_step = facts.header.cwd, advised(trouble.next_step, words)
    if trouble.code == "file-missing" and _is_absolute(facts, words):
        next_step = (
            "no file has this path: correct it in the host's configuration, or build the project first (npm run build), if the "
            "path is of a file that its build makes"
        )
    if trouble.code == "file-missing" and (whole := _split_path(facts, words)):
        return (
            f"the path may be {quote(whole, 100)!r}, which was divided at its blanks: write it as one argument, without quotation marks; "
            f"if the configuration has it so, the host starts the server through a shell: let it quote its arguments, or use a path "
            f"without blanks"
        )
    if trouble.code == "file-missing" and _beside_program(facts, words):
        return (
            "this file belongs beside the program that the command names: if it is a part of the program, its build left it out "
            "(build it again, tell its author); if it holds your settings or credentials, create it there"
        )
    if trouble.code == "module-missing" and (step := _next_step_of_module(facts, trouble, words)):
        return step
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
    quoted = next((word for word in facts.command if _QUOTED.fullmatch(word)), None)
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


_NOT_OF_TROUBLES: dict[str, str | tuple[str, ...]] = {
    "setting-missing": (
        session(
            *("@ bare", initialize(), stderr("Warning: config file not found, using defaults")),
            *(stderr("TypeError: Cannot read properties of undefined (reading 'x')"), exited(1)),
        ),
        session(call(), done(2, "1 validation error for WeatherResponse temp Field required", isError=True)),
    ),
    "container-failed": session(
        *("@ bare", initialize(), stderr("Unable to find image 'mcp/x:latest' locally")),
        *(stderr("RuntimeError: boom"), exited(1)),
    ),
}
"""Code of a trouble → sessions in which its words are not the reason."""

for _each in TROUBLES:
    _add = cause(
        _each.code,
        _each.what,
        Level.SPECIFIC,
        positive=tuple(map(not_started, _each.errors)),
        negative=_NOT_OF_TROUBLES.get(_each.code, ()),
    )
    _add(_explains(_each))
