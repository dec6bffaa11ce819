"""The table of options: names, help, values, where the values go, and which options fit together.

A command puts its `OPTIONS` together from single options and from the groups here. argparse interprets them for every
command except `run`, which every host starts once per server: it has its own small parser, for the same table.
`parents=` of argparse would put shared options before a command's own, and change the order of the help.

Imports next to nothing, because `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

from mcpspy.core.recording.origin import ORIGINS
from mcpspy.errors import UsageError
from mcpspy.io.scripts import TIMED_HOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Self, TypeAlias

    from mcpspy.io.intercept.interception import InterceptionOptions


ACTION = "ACTION"
"""Name of the argument that selects one of several actions, such as `add` of `mcpspy lake`."""

COMMAND = "-- COMMAND"
"""Name of the argument that is the command line of a server, after `--`."""


class Option:
    """An option of a command that has a value. Its subclasses are the other kinds."""

    is_repeated = False

    def __init__(
        self,
        flags: str,
        metavar: str | None,
        about: str,
        into: str = "",
        read: Callable[[str], Any] | None = None,
        *,
        choices: Collection[str] = (),
        default: Any = None,
        nargs: str | None = None,
        is_required: bool = False,
        requires: str = "",
        excludes: Sequence[str] = (),
        hint: str = "",
        dest: str = "",
        one_of: str = "",
    ) -> None:
        self.flags = flags
        """`-q --filter`, or for an argument its name in the namespace of argparse."""
        self.metavar = metavar
        """None: the choices."""
        self.about = about
        """The help; empty for an option that the help does not show."""
        self.into = into
        """Attributes of the settings that take the value, as paths; several are separated by blanks."""
        self.read = read
        """Text → value. Raises ValueError, or UsageError with a hint."""
        self.choices = choices
        self.default = default
        self.nargs = nargs
        self.is_required = is_required
        self.requires = requires
        """The options of which one must be given too: `--http`, `--format html`, `--rate or --repeat`, or an action."""
        self.excludes = excludes
        """Options, as in `requires`, that must not be given too."""
        self.hint = hint
        """The next step after an error about `requires` or `excludes`."""
        self.dest = dest
        self.one_of = one_of
        """Name of a group of options, of which one can be given, and if they are required one must be given."""

    @property
    def is_argument(self) -> bool:
        return self.flags[0] != "-"

    @property
    def name(self) -> str:
        """Return the name in errors."""
        return (self.metavar or self.flags.upper()) if self.is_argument else self.flags.rpartition(" ")[2]

    @property
    def attribute(self) -> str:
        """Return the name in the namespace of argparse."""
        return self.dest or self.flags.rpartition(" ")[2].lstrip("-").replace("-", "_")

    @property
    def is_alias(self) -> bool:
        """Return whether it sets the attribute of another option, which has the default."""
        return self.dest != "" and not self.about

    def but(self, **changes: Any) -> Self:
        """Return this option with other attributes."""
        changed = self.__new__(type(self))
        vars(changed).update(vars(self) | changes)
        return changed

    def value_of(self, text: str) -> Any:
        """Return the value of a text; raise UsageError, which begins with the text."""
        try:
            return text if self.read is None else self.read(text)
        except (UsageError, ValueError) as error:
            problem = str(error.args[0]) if error.args else "not a valid value"
            begins = "" if problem.startswith(f"{text}: ") else f"{text}: "
            raise UsageError(begins + problem, getattr(error, "hint", "")) from None

    def put(self, target: object, value: Any) -> None:
        """Set the attributes of a target, or add to them if they are lists or dictionaries."""
        for path in self.into.split():
            holder, (*way, name) = target, path.split(".")
            for step in way:
                holder = getattr(holder, step)
            present = getattr(holder, name)
            if isinstance(present, list):
                present.append(value)
            elif isinstance(present, dict):
                present.update([value])
            else:
                setattr(holder, name, value)


class Repeated(Option):
    """An option that can be repeated: its values are a list."""

    is_repeated = True


class Switch(Option):
    """An option without a value."""

    def __init__(self, flags: str, about: str, into: str = "", *, sets: Any = True, **more: Any) -> None:
        super().__init__(flags, None, about, into, default=False, **more)
        self.sets = sets
        """The value of its attribute of the settings, or of that of another option."""

    def put(self, target: object, value: Any) -> None:
        super().put(target, self.sets)


Argument = Option
"""An argument by its position: its name has no dashes."""


Options: TypeAlias = "Sequence[Option]"


def check(options: Options, values: Mapping[str, Any]) -> None:
    """Raise UsageError for values, by the names of their options, that do not fit together."""
    for option in options:
        if not (option.requires or option.excludes) or (name := option.name) not in values:
            continue
        if option.requires and not any(_is_given(each, values) for each in option.requires.split(" or ")):
            shown = f"{name} {values[name]}" if option.choices and option.default else name
            raise UsageError(f"{shown} requires {option.requires}", option.hint)
        for other in option.excludes:
            if _is_given(other, values):
                raise UsageError(f"{name} and {other} exclude each other", option.hint)


def _is_given(text: str, values: Mapping[str, Any]) -> bool:
    """Return whether an option is given, or the action; `--lake LAKE` has any value, and `--format html` this one."""
    name, _, value = (text, "", "") if text == COMMAND else text.partition(" ")
    if name not in values:
        return text == values.get(ACTION)
    return not value or value.isupper() or values[name] == value


def duration(text: str) -> float:
    """Return the seconds of `30`, `500ms` or `5min`; raise UsageError."""
    from mcpspy.core.rules.model import seconds

    try:
        if number := seconds(text):
            return number
    except ValueError:
        pass
    raise UsageError("not a duration", "use 30, 30s, 500ms or 5min")


def size(text: str) -> int:
    """Return the bytes of `500k`, `100M` or `2G`; raise UsageError."""
    small = text.lower().removesuffix("b")
    number = small.rstrip("kmg")
    unit = small[len(number) :]
    if not number.isdecimal() or unit not in _UNITS or int(number) == 0:
        raise UsageError("not a size", "use 500k, 100M or 2G")
    return int(number) * _UNITS[unit]


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _path(text: str) -> str:
    if not text:
        raise UsageError("needs a path")
    return text


def _script_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError("not NAME=VALUE", "use limit=5")
    return name, value


def _script_timeout(text: str) -> tuple[str, float]:
    hook, equals, time = text.rpartition("=")
    if equals and hook not in TIMED_HOOKS:
        raise UsageError("no such hook", f"use one of {', '.join(TIMED_HOOKS)}")
    return hook, duration(time)


VARIABLE = "${NAME} expands to an environment variable"

FOLDER = Option("--dir", "DIR", "sessions folder (default: $MCPSPY_DIR, or the user's data folder)", "folder")

SSH = Option("--ssh", "HOST", "show the sessions of another machine: HOST, USER@HOST or ssh://USER@HOST:PORT")

LAKE = Option("--lake", "LAKE", "the lake of lake:SESSION (default: $MCPSPY_LAKE)")

NAME = Option("--name", "NAME", "session name (default: the server's host)", "name")

RECORDING = (
    Option("--record", "PATH", "record to this new file, or into this folder", "record", _path,
        excludes=("--no-record",)),
    Switch("--no-record", "do not record", "recording", sets=False),
    FOLDER,
)  # fmt: skip

ORIGIN = Option("--origin", None,
    "what makes this session (default: host): names and `last` mean hosts' sessions first", "origin",
    choices=ORIGINS)  # fmt: skip

SESSION = (
    NAME,
    *RECORDING,
    ORIGIN,
    Option("--max-size", "SIZE", "start a new part at this size: 500k, 100M, 2G (default: never)", "max_size",
        size),
)  # fmt: skip

MAX_BODY = Option("--max-body", "SIZE",
    "record only size and digest of a larger decoded body or event (default: 64M)", "max_body",
    size)  # fmt: skip

CACERT = Option("--cacert", "FILE", "also trust the CA certificates in this file", "cacert")

CERTIFICATES = (
    CACERT,
    Switch("--insecure", "do not verify the server's certificate", "insecure"),
)  # fmt: skip

TRUST = (
    Option("--trust", "FILE", "compare what the server lists, and calls, with this lockfile of mcpspy trust",
        "interception.trust"),
    Option("--on-change", "ACTION", "--trust: report a difference (default), hold its message, or block it",
        "interception.on_change", choices=("report", "hold", "block"), requires="--trust FILE"),
    Switch("--first-use", "--trust: add a server to the lockfile with what it lists first",
        "interception.first_use", requires="--trust FILE"),
)  # fmt: skip

RULES = (
    Repeated("--rules", "FILE", "TOML file of rules that delay, drop, answer, change or hold messages",
        "interception.files"),
    Repeated("--rule", "RULE", "one such rule, e.g. 'tool:echo => delay 2s'", "interception.flags"),
    Option("--call-timeout", "TIME", "answer a request with an error if it takes longer: 30, 500ms, 5min",
        "interception.call_timeout", duration),
    Option("--slow", "TIME", "mark requests in the recording that take longer", "interception.slow",
        duration),
    Option("--hold-timeout", "TIME", "forward a held message after this time (default: 300)",
        "interception.hold_timeout", duration),
    *TRUST,
)  # fmt: skip

_SCRIPTS = "interception.scripts."

SCRIPTS = (
    Repeated("--script", "FILE", "Python file with hooks that see and change messages, or builtin:NAME",
        _SCRIPTS + "files"),
    Repeated("--script-option", "NAME=VALUE", "value for the script's hook configure(options)",
        _SCRIPTS + "values", _script_value, requires="--script"),
    Repeated("--script-timeout", "TIME", "time limit of a hook, or HOOK=TIME for one (default: 5s)",
        _SCRIPTS + "timeouts", _script_timeout, requires="--script"),
    Switch("--reload", "load a script again when its file changes", _SCRIPTS + "is_reloaded",
        requires="--script"),
)  # fmt: skip

UNSAFE_REGEX = Switch("--unsafe-regex",
    "also run regular expressions that RE2 cannot; on some texts they never end",
    "redaction.unsafe_regex.is_allowed")  # fmt: skip

CONFIG = Option("--config", "FILE", "settings file (default: mcpspy.toml in the user's config folder)",
    "redaction.config redaction.unsafe_regex.config")  # fmt: skip

ALWAYS_REDACTED = (
    Repeated("--redact-key", "NAME", "also redact the value of this key", "redaction.keys"),
    Repeated("--redact-pattern", "REGEX", "also redact text that matches, or its first group",
        "redaction.patterns"),
    Repeated("--redact-pointer", "POINTER",
        "also redact the value at this JSON pointer, e.g. /params/arguments/pin", "redaction.pointers"),
    Repeated("--redact-env", "NAME", "also redact the value of this environment variable", "redaction.env"),
    Repeated("--redact-rules", "FILE",
        "also redact what the rules of this file find, mcpspy's or gitleaks' TOML", "redaction.rules"),
    Switch("--redact-entropy", "also redact values that look random, of 20 characters or more",
        "redaction.entropy"),
    UNSAFE_REGEX,
    CONFIG,
)  # fmt: skip

REDACTION = (
    Switch("--no-redact", "keep secrets in the recording; its header records this choice", "redaction.off"),
    *ALWAYS_REDACTED,
)  # fmt: skip

VIEW_SCRIPT = Repeated("--script", "FILE", "Python file with columns and views (docs/scripting.md)")


HEADERS = (
    Repeated("--header", "'NAME: VALUE'", f"send this header with every request; {VARIABLE}"),
    Repeated("--header-env", "NAME=VARIABLE",
        "send this header with every request, with the value of an environment variable"),
)  # fmt: skip


def only_with(needs: str, options: Options) -> Options:
    """Return options that require another one, or an action, which begins their help."""
    return [
        option.but(requires=needs, about=f"{needs.partition(' ')[0]}: {option.about}") for option in options
    ]


def formats(about: str = "", *choices: str) -> Options:
    """Return `--format`: text, or one of `choices`, by default JSON."""
    text = "output format (default: text)" + (f"; {about}" if about else "")
    return (
        Option("--format", None, text, choices=("text", *(choices or ("json",))), default="text"),
        Switch("--json", "", sets="json", dest="format"),
    )


def check_interception(options: InterceptionOptions) -> None:
    """Raise UsageError or CannotStart for rules, scripts or a lockfile that cannot be read."""
    options.scripts.check()
    if options.files or options.flags:
        options.rules()
    options.guard()
