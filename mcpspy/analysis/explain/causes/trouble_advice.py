"""The side and the next step of an error outside the protocol, by the command and the words."""

from __future__ import annotations

import re

from mcpspy.analysis.explain.causes.definition import Trouble, advised
from mcpspy.analysis.explain.causes.start_troubles import OF_CACHE
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.core.protocol.spec import SERVER

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


def _has_conflict(words: str) -> bool:
    """Return whether the packages that a server needs exclude each other."""
    return _CONFLICT.search(words) is not None and _NOT_THERE.search(words) is None


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

_OF_WINDOWS = re.compile(r"(?<![\w/])[A-Za-z]:\\+\w")
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


def _is_undeclared(facts: Facts, words: str) -> bool:
    """Return whether a package imports what it does not declare: its runner has installed what it declares."""
    is_run = facts.program_name in _PACKAGE_RUNNERS
    is_import = _MISSING.search(words) is not None or _MISSING_IN_NODE.search(words) is not None
    return is_run and is_import and not _own_package(facts, words)


_IMPORTER = re.compile(r"imported from .*[/\\]node_modules[/\\]((?:@[\w.-]+[/\\])?[\w.-]+)")
_FILE_MISSING = re.compile(r"(?i)cannot find module ['\"][^'\"]*[/\\]node_modules[/\\]")


def _is_half_installed(facts: Facts, words: str) -> bool:
    """Return whether a file is missing between two packages that the command does not name: not the server's own mistake."""
    importer = _IMPORTER.search(words)
    if importer is None or not _FILE_MISSING.search(words):
        return False
    name = importer[1].replace("\\", "/")
    return bool(facts.command) and not any(name in word for word in facts.command)


def _is_home_unexpanded(facts: Facts, words: str) -> bool:
    """Return whether a path begins with ~ that is not from the command."""
    return _HOME.search(words) is not None and not any("~" in word for word in facts.command)


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


def _of_module(facts: Facts, side: str, words: str) -> tuple[str, str] | None:
    """Return the side and the next step if a package was found, and something else about it is wrong; None if it is missing."""
    if _has_conflict(words):
        return "" if "--with" in facts.command else SERVER, (
            "packages that the server needs exclude each other: use another version of it, and tell its author; a newer "
            "release of one of them may be the reason (uvx --exclude-newer DATE)"
        )
    if _lacks_itself(facts, words):
        return SERVER, (
            "the package was installed, and does not have its own module: it was built without it. Tell its author, and use the "
            "version before; a stale cache has the same effect (uv cache clean, uvx --refresh)"
        )
    if other := _other_package(facts, words):
        # The package needs what was never published, or the registry does not show it (a mirror, a minimal age).
        return "", (
            f"the server's package needs {quote(other, 60)!r}, which the registry does not have in this version: try it with "
            f"the public registry; if that has it, look at the mirror (npm config get registry, a minimal age of releases); if "
            f"not, use the version of the server before, and tell its author"
        )
    if (own := _own_package(facts, words)) and own in facts.command:  # python -m NAME
        return side, (
            f"install the package that has {quote(own, 40)!r} into this interpreter ({quote(facts.program, 80)}), or "
            f"start the server with uvx, or with the interpreter that has it"
        )
    if own:
        return side, (
            f"{quote(own, 40)!r} is the program's own package, and is not found from "
            f"{quote(facts.header.cwd or 'the working directory', 80)}: give the absolute path of the file, set "
            f"PYTHONPATH by env, or install the project"
        )
    if _OTHER_VERSION.search(words):
        return SERVER, (
            "the package is installed in a version that has no such module: let the server's dependencies name the "
            f"version that it was written for, or update it; until then start it with that version (uvx --with "
            f"'{'mcp' if _OF_SDK.search(words) else 'package'}<2')"
        )
    if _is_undeclared(facts, words):
        return SERVER, (
            "the package imports what it does not declare: tell its author; until then name the missing one beside it "
            "(uvx --with NAME, npx -p NAME -p PACKAGE), or use the version before"
        )
    return None


def _empty_variable(facts: Facts, words: str) -> str | None:
    """Return the variable in a command of a shell after which a missing path of the root comes; None if there is none."""
    path = re.search(r"['\"\s](/[\w./-]+)['\"]?\s*$", words)
    found = (
        re.search(rf"\$\{{?\w+[^/\s]{{0,40}}?(?={re.escape(path[1])})", " ".join(facts.command))
        if path
        else None
    )
    return None if found is None else found[0].rstrip("\"'")


def _of_file(facts: Facts, side: str, words: str) -> tuple[str, str]:
    """Return the side, and the next step if more is known of a missing file than its path; else an empty one."""
    if whole := _split_path(facts, words):  # The user or the host divided it at its blanks.
        return "", (
            f"the path may be {quote(whole, 100)!r}, which was divided at its blanks: write it as one argument, without quotation marks; "
            f"if the configuration has it so, the host starts the server through a shell: let it quote its arguments, or use a path "
            f"without blanks"
        )
    if (empty := _empty_variable(facts, words)) is not None:
        return "", (
            f"the path begins where the command has a variable, {quote(empty, 60)}, which was empty or not set: hosts pass only few variables "
            f"on; set it by env in the host's configuration, or write the whole path"
        )
    if _beside_program(facts, words):
        # The program should bring it, or the user has to make it, such as a file of credentials.
        return "", (
            "this file belongs beside the program that the command names: if it is a part of the program, its build left it out "
            "(build it again, tell its author); if it holds your settings or credentials, create it there"
        )
    is_of_home = _is_home_unexpanded(facts, words)  # A script around the server has it, or the server.
    named = [word for word in facts.command if len(word) > 2 and word.strip("\"'") in words]
    if is_of_home or not named:
        side = ""  # The command does not have this path.
    if (unset := _VARIABLE.search(words)) is not None:
        return side, (
            f"the path has a variable in it that no one replaced, {quote(unset[0], 60)}: hosts pass only few variables on, "
            f"and not all replace them; set it by env in the host's configuration, or write its value"
        )
    if is_of_home:
        return side, (
            "the path begins with ~, which no shell replaces in quotes: correct the script or the program "
            "that has it ($HOME, or the whole path)"
        )
    return side, ""


_OF_ACCOUNT = re.compile(r"(?i)default credentials|sequence in u[s]-ascii")
"""Credentials from a login of the user's account or from a variable, and the encoding of Ruby without a locale (LANG)."""


def advice_on(facts: Facts, trouble: Trouble, words: str) -> tuple[str, str]:
    """Return the side that has to correct a trouble, which is empty if the error does not tell, and the next step."""
    side, next_step, cwd = trouble.side, advised(trouble.next_step, words), facts.header.cwd
    match trouble.code:
        case "install-failed" if re.search(OF_CACHE, words, re.IGNORECASE):
            side = "environment"
        case "setting-missing" | "text-encoding" if _OF_ACCOUNT.search(words):
            side = ""
        case "package-broken" if _is_half_installed(facts, words):
            side = ""  # An interrupted installation, or a release of one of them.
        case "permission-denied" if ".bin" in words and _IN_PACKAGE.search(words):
            side = ""  # The package was published so, or its installation.
        case "module-missing":
            if (found := _of_module(facts, side, words)) is not None:
                return found
        case "file-missing":
            side, step = _of_file(facts, side, words)
            if step:
                return side, step
            if _OF_WINDOWS.search(words) and (cwd or "").startswith("/"):
                return "", (
                    "this is a path of Windows, and the server runs on another system (WSL, a container): give it the path that the file "
                    "has there (/mnt/c/…); if the configuration has that one, the server rewrites it"
                )
            if _is_absolute(facts, words):
                next_step = (
                    "no file has this path: correct it in the host's configuration, or build the project first (npm run build), if the "
                    "path is of a file that its build makes"
                )
    quoted = next((word for word in facts.command if _QUOTED.fullmatch(word)), None)
    if quoted is not None and trouble.code in ("file-missing", "module-missing"):
        next_step = (
            f"remove the quotation marks inside the argument {quote(quoted, 100)}: a host starts no shell, so they are part "
            f"of the name; an argument may contain spaces"
        )
    elif cwd is not None and _is_of_folder(trouble, words):
        next_step = f"{next_step}; this server was started in {quote(cwd, 80)}"
    return side, next_step


def _is_of_folder(trouble: Trouble, words: str) -> bool:
    """Return whether a path is one of the folder in which the server was started: a relative one, or of the root."""
    if trouble.code == "file-missing" and _RELATIVE_PATH.search(words):
        return True
    is_path = trouble.code in ("permission-denied", "read-only-folder", "file-missing")
    return is_path and _ROOT_PATH.search(words) is not None
