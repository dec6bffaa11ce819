"""Placeholders where a server expects values: `${API_KEY}`, `<YOUR_KEY>`, `changeme`, `~/notes`.

A host that does not replace them passes them to the server as they are. Without regular expressions, because
`mcpspy run` starts with this.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MAX_NAMES = 20
"""Names of variables, and of arguments, in a note."""

MAX_NAME = 80
"""Characters of a name."""

MAX_VALUE = 200
"""Characters of a value that may be a placeholder."""

SYSTEM_NAMES = frozenset(
    """_ PS0 PS1 PS2 PS3 PS4 PROMPT PROMPT_COMMAND RPROMPT TIMEFORMAT HISTTIMEFORMAT LESSOPEN LESSCLOSE LS_COLORS
    PATH MANPATH""".split()
)
SYSTEM_PREFIXES = ("npm_", "BASH_FUNC_", "LESS_TERMCAP_", "GIT_PS1_", "FZF_", "_")
"""Variables of shells and of npm, which contain their own references."""

REMOTE = frozenset({"ssh", "wsl", "wsl.exe"})
"""Programs whose arguments another shell expands."""

SCRIPTS = frozenset({"-c", "-lc", "-ic", "/c", "/C", "-Command"})
"""Options of shells whose value is a script."""

SCHEMES = ("bearer", "basic", "token")

EXAMPLE_PATHS = ("/path/to/", "path/to/", "/absolute/path/to/", "c:/path/to/")

DUMMIES = frozenset("changeme changethis replaceme replacethis placeholder fillmein fixme inserthere".split())

VERBS = frozenset("insert enter paste put add replace set use change fill".split())

NOUNS = frozenset(
    "key token secret password pat id api username user email name url host domain project here".split()
)


def unfilled(environment: Mapping[str, str], command: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the variables, and of the arguments, whose values are placeholders; empty if none are."""
    found = {"variables": _names(_variables(environment)), "arguments": _names(_arguments(command))}
    return {kind: names for kind, names in found.items() if names}


def is_placeholder(value: str) -> bool:
    """Return whether a whole value has the form of a placeholder. A text that contains one is not."""
    value = value.strip()
    scheme, _, rest = value.partition(" ")
    if scheme.lower() in SCHEMES:
        value = rest.strip()
    if not 1 < len(value) <= MAX_VALUE:
        return False
    match value[0]:
        case "$":
            return _is_reference(value)
        case "%":
            name, _, rest = value[1:].partition("%")
            return _is_name(name) and value.count("%") == 2 and rest[:1] in ("", "/", "\\")
        case "<":
            return value.endswith(">") and _is_words(value[1:-1])
        case "{":
            inner = value[2:-2].strip() if value[:2] == "{{" and value[-2:] == "}}" else ""
            kind, _, name = value[1:-1].partition(":")
            return _is_name(inner) or (value[-1] == "}" and kind in ("env", "input") and _is_name(name))
        case "~":
            return value[1] in "/\\" and ":" not in value
    return _is_example(value.lower())


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if (
            is_placeholder(value)
            and name.upper() not in SYSTEM_NAMES
            and not name.startswith(SYSTEM_PREFIXES)
        ):
            yield name


def _arguments(command: Sequence[str]) -> Iterator[str]:
    """Yield options, names of assignments, or else positions."""
    if command and command[0].replace("\\", "/").rpartition("/")[2].lower() in REMOTE:
        return
    before = ""
    for number, argument in enumerate(command):
        name, equals, value = argument.partition("=")
        if equals and (name.startswith("-") or _is_name(name)):
            if is_placeholder(value):
                yield name
        elif before not in SCRIPTS and is_placeholder(argument):
            yield before if before.startswith("-") and "=" not in before else f"argument {number}"
        before = argument


def _names(names: Iterable[str]) -> list[str]:
    return [name[:MAX_NAME] for name, _ in zip(names, range(MAX_NAMES), strict=False)]


def _is_reference(value: str) -> bool:
    """Recognise `${NAME}`, `${input:key}`, `$NAME`, `$env:NAME`, also as the beginning of a path."""
    if value[1:2] == "{":
        name, closed, rest = value[2:].partition("}")
        return bool(closed) and _is_name(name) and " " not in rest
    name = value[1:].replace("\\", "/").partition("/")[0].removeprefix("env:")
    return len(name) > 1 and name.isupper() and _is_name(name)


def _is_name(text: str) -> bool:
    """Return whether a text is a name, perhaps with a kind or a default: `input:key`, `NAME:-default`."""
    plain = text.replace("_", "").replace(":", "").replace("-", "").replace(".", "")
    return len(text) > 1 and plain.isalnum() and text.isascii() and (text[0].isalpha() or text[0] == "_")


def _is_words(text: str) -> bool:
    plain = text
    for mark in " _-./|'":
        plain = plain.replace(mark, "")
    return plain.isalnum() and text[0].isalpha() and not text.endswith("/")


def _is_example(value: str) -> bool:
    """Recognise the values of documentation, in lower case: `your-api-key`, `sk-xxxx`, `/path/to/files`."""
    if value.replace("\\", "/").startswith(EXAMPLE_PATHS):
        return True
    scheme, _, host = value.rpartition("://")
    if "/" in value and not scheme:
        return False
    if scheme:
        return host.startswith("your-") and "." in host
    if value.endswith(("-...", "_...", "-…")):
        return True
    if not ("your" in value or "xxx" in value or "here" in value or value[0] in "cfipr"):
        return False
    words = "".join(char if char.isalnum() else " " for char in value).split()
    if not words or len(words) > 6:
        return False
    if "".join(words) in DUMMIES:
        return True
    if "your" in words:
        at = words.index("your")
        return at + 1 < len(words) and (at == 0 or words[0] in VERBS or words[-1] in NOUNS)
    if words[-1] == "here":
        return len(words) > 2 and bool(NOUNS & {*words[:-1]})
    hidden = [word for word in words if len(word) > 2 and not word.strip("x")]
    return (
        bool(hidden)
        and words[-len(hidden) :] == hidden
        and len(words) - len(hidden) <= 2
        and "." not in value
    )
