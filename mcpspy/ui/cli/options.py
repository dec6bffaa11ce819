"""Command-line options that several commands share: names, help texts and values.

A table maps a flag (`-q --filter` has two) or an argument to its metavar (None for a switch) and its help. argparse's
own `parents=` would put these options before a command's own, and change the order of the help.

Imports next to nothing: `mcpspy run` parses its options without argparse, from the same tables, before it starts the server.
"""

from __future__ import annotations

import math

from mcpspy.errors import UsageError
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.scripts import TIMED_HOOKS, ScriptOptions
from mcpspy.io.settings import UnsafeRegex

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Container, Mapping
    from typing import Any, TypeAlias

    from mcpspy.io.recording.recorder import RecordingTarget

    Options: TypeAlias = Mapping[str, tuple[str | None, str]]

VARIABLE = "${NAME} expands to an environment variable"

FOLDER: Options = {"--dir": ("DIR", "sessions folder (default: $MCPSPY_DIR, or the user's data folder)")}

SSH: Options = {
    "--ssh": ("HOST", "show the sessions of another machine: HOST, USER@HOST or ssh://USER@HOST:PORT"),
}

LAKE: Options = {"--lake": ("LAKE", "the lake of lake:SESSION (default: $MCPSPY_LAKE)")}

RECORDING: Options = {
    "--record": ("PATH", "record to this new file, or into this folder"),
    "--no-record": (None, "do not record"),
    **FOLDER,
}

SESSION: Options = {
    "--name": ("NAME", "session name (default: the server's host)"),
    **RECORDING,
    "--max-size": ("SIZE", "start a new part at this size: 500k, 100M, 2G (default: never)"),
}

BODY: Options = {
    "--max-body": ("SIZE", "record only size and digest of a larger decoded body or event (default: 64M)")
}

LINE: Options = {"--max-body": ("SIZE", "record only size and digest of a larger line (default: 64M)")}

CACERT: Options = {"--cacert": ("FILE", "also trust the CA certificates in this file")}

CERTIFICATES: Options = {**CACERT, "--insecure": (None, "do not verify the server's certificate")}

TRUST: Options = {
    "--trust": ("FILE", "compare what the server lists, and calls, with this lockfile of mcpspy trust"),
    "--on-change": ("ACTION", "--trust: report a difference (default), hold its message, or block it"),
    "--first-use": (None, "--trust: add a server to the lockfile with what it lists first"),
}

RULES: Options = {
    "--rules": ("FILE", "TOML file of rules that delay, drop, answer, change or hold messages; repeatable"),
    "--rule": ("RULE", "one such rule, e.g. 'tool:echo => delay 2s'; repeatable"),
    "--call-timeout": ("TIME", "answer a request with an error if it takes longer: 30, 500ms, 5min"),
    "--slow": ("TIME", "mark requests in the recording that take longer"),
    "--hold-timeout": ("TIME", "forward a held message after this time (default: 300)"),
    **TRUST,
}

SCRIPTS: Options = {
    "--script": ("FILE", "Python file with hooks that see and change messages, or builtin:NAME; repeatable"),
    "--script-option": ("NAME=VALUE", "value for the script's hook configure(options); repeatable"),
    "--script-timeout": ("TIME", "time limit of a hook, or HOOK=TIME for one (default: 5s); repeatable"),
    "--reload": (None, "load a script again when its file changes"),
}

UNSAFE_REGEX: Options = {
    "--unsafe-regex": (None, "also run regular expressions that RE2 cannot; on some texts they never end")
}

REDACTION: Options = {
    "--no-redact": (None, "keep secrets in the recording; its header records this choice"),
    "--redact-key": ("NAME", "also redact the value of this key; repeatable"),
    "--redact-pattern": ("REGEX", "also redact text that matches, or its first group; repeatable"),
    "--redact-pointer": (
        "POINTER",
        "also redact the value at this JSON pointer, e.g. /params/arguments/pin; repeatable",
    ),
    "--redact-env": ("NAME", "also redact the value of this environment variable; repeatable"),
    "--redact-rules": (
        "FILE",
        "also redact what the rules of this file find, mcpspy's or gitleaks' TOML; repeatable",
    ),
    "--redact-entropy": (None, "also redact values that look random, of 20 characters or more"),
    **UNSAFE_REGEX,
    "--config": ("FILE", "settings file (default: mcpspy.toml in the user's config folder)"),
}

VIEW_SCRIPT: Options = {
    "--script": ("FILE", "Python file with columns and views (docs/scripting.md); repeatable"),
}

_SCRIPT_LISTS = ("--script", "--script-option", "--script-timeout")

# Option: attribute of InterceptionOptions or RedactionOptions.
_RULE_LISTS = {"--rules": "files", "--rule": "flags"}
_RULE_TIMES = {"--call-timeout": "call_timeout", "--slow": "slow", "--hold-timeout": "hold_timeout"}
_REDACTION_LISTS = {
    "--redact-key": "keys",
    "--redact-pattern": "patterns",
    "--redact-pointer": "pointers",
    "--redact-env": "env",
    "--redact-rules": "rules",
}

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def describe(parser: argparse._ActionsContainer, options: Options, *, repeated: Container[str] = ()) -> None:
    """Add options to a parser, in order; those of `repeated` collect their values in a list."""
    for flags, (metavar, text) in options.items():
        if metavar is None:
            parser.add_argument(*flags.split(), action="store_true", help=text)
        elif flags in repeated:
            parser.add_argument(*flags.split(), metavar=metavar, action="append", default=[], help=text)
        else:
            parser.add_argument(*flags.split(), metavar=metavar, help=text)


def suggested_folder(args: argparse.Namespace) -> str:
    """Return ` --dir DIR` for commands that are suggested to a user who has chosen a folder; else ""."""
    import shlex

    return f" --dir {shlex.quote(args.dir)}" if args.dir else ""


def describe_headers(parser: argparse._ActionsContainer, only_with: str = "") -> None:
    """Add `--header` and `--header-env`; `only_with` is the option that they need, with a colon."""
    what = f"{only_with} send this header with every request".strip()
    options: Options = {
        "--header": ("'NAME: VALUE'", f"{what}; {VARIABLE}; repeatable"),
        "--header-env": ("NAME=VARIABLE", f"{what}, with the value of an environment variable; repeatable"),
    }
    describe(parser, options, repeated=options)


def describe_format(parser: argparse._ActionsContainer, about: str, *, choices: tuple[str, ...] = ()) -> None:
    """Add `--format`: text, or one of `choices` (default: json)."""
    text = f"output format (default: text); {about}"
    parser.add_argument("--format", choices=["text", *(choices or ("json",))], default="text", help=text)
    old_spelling(parser, "--json", "format", action="store_const", const="json")


def old_spelling(parser: argparse._ActionsContainer, flag: str, dest: str, **action: Any) -> None:
    """Add the old name of an option: it works for one more release, and help and completion do not show it."""
    from argparse import SUPPRESS

    parser.add_argument(flag, dest=dest, help=SUPPRESS, default=SUPPRESS, **action)


def describe_rules(parser: argparse.ArgumentParser) -> None:
    describe(parser, RULES, repeated=_RULE_LISTS)


def describe_redaction(parser: argparse.ArgumentParser, *, can_be_off: bool = True) -> None:
    options = {flag: REDACTION[flag] for flag in REDACTION if can_be_off or flag != "--no-redact"}
    describe(parser, options, repeated=_REDACTION_LISTS)


def set_rule_option(options: InterceptionOptions, flag: str, value: str) -> bool:
    """Set one of `RULES` or `SCRIPTS`; return False for any other option. Raises UsageError."""
    if flag in SCRIPTS:
        _set_script_option(options.scripts, flag, value)
    elif flag in _RULE_LISTS:
        getattr(options, _RULE_LISTS[flag]).append(value)
    elif flag in _RULE_TIMES:
        setattr(options, _RULE_TIMES[flag], _seconds(flag, value))
    elif flag == "--trust":
        options.trust = value
    elif flag == "--on-change":
        if value not in ("report", "hold", "block"):
            raise UsageError(f"--on-change {value}: unknown action", "use report, hold or block")
        options.on_change = value
    elif flag == "--first-use":
        options.first_use = True
    else:
        return False
    return True


def _set_script_option(options: ScriptOptions, flag: str, value: str) -> None:
    if flag == "--script":
        options.files.append(value)
    elif flag == "--reload":
        options.is_reloaded = True
    elif flag == "--script-option":
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise UsageError(f"{flag} {value}: not NAME=VALUE", "use limit=5")
        options.values[name] = text
    else:
        hook, equals, text = value.rpartition("=")
        if equals and hook not in TIMED_HOOKS:
            raise UsageError(f"{flag} {value}: no such hook", f"use one of {', '.join(TIMED_HOOKS)}")
        if equals:
            options.hook_timeouts[hook] = _seconds(flag, text)
        else:
            options.timeout = _seconds(flag, text)


def set_redaction_option(options: RedactionOptions, flag: str, value: str) -> bool:
    """Set one of `REDACTION`; return False for any other option."""
    if flag in _REDACTION_LISTS:
        getattr(options, _REDACTION_LISTS[flag]).append(value)
    elif flag == "--no-redact":
        options.off = True
    elif flag == "--redact-entropy":
        options.entropy = True
    elif flag == "--unsafe-regex":
        options.unsafe_regex.is_allowed = True
    elif flag == "--config":
        options.config = options.unsafe_regex.config = value
    else:
        return False
    return True


def read_rules(args: argparse.Namespace, flags: Options = RULES) -> InterceptionOptions:
    """Return the options of `RULES`, or of a part of them. Raises UsageError."""
    options = InterceptionOptions()
    for flag in flags:
        value = _value(args, flag)
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, False):
                set_rule_option(options, flag, each)
    return options


def read_scripts(options: InterceptionOptions, args: argparse.Namespace) -> None:
    """Set the options of `SCRIPTS`. Raises UsageError."""
    for flag in _SCRIPT_LISTS:
        for each in _value(args, flag):
            _set_script_option(options.scripts, flag, each)
    options.scripts.is_reloaded = args.reload


def describe_scripts(parser: argparse.ArgumentParser) -> None:
    describe(parser, SCRIPTS, repeated=_SCRIPT_LISTS)


def check_rules(options: InterceptionOptions) -> None:
    """Raise UsageError or CannotStart for rules, scripts or a lockfile that cannot be read."""
    scripts = options.scripts
    if not scripts.files and (scripts.values or scripts.hook_timeouts or scripts.is_reloaded):
        raise UsageError("--script-option, --script-timeout and --reload require --script")
    scripts.check()
    if options.files or options.flags:
        options.rules()
    if options.on_change is not None and options.trust is None:
        raise UsageError("--on-change requires --trust FILE")
    if options.first_use and options.trust is None:
        raise UsageError("--first-use requires --trust FILE")
    options.guard()


def read_redaction(args: argparse.Namespace) -> RedactionOptions:
    options = RedactionOptions()
    for flag, name in _REDACTION_LISTS.items():
        setattr(options, name, _value(args, flag))
    options.off = getattr(args, "no_redact", False)
    options.entropy = args.redact_entropy
    options.config = args.config
    options.unsafe_regex = read_unsafe_regex(args)
    return options


def read_unsafe_regex(args: argparse.Namespace) -> UnsafeRegex:
    """Return the decision of `--unsafe-regex` and the settings, with warnings on stderr."""
    return UnsafeRegex(args.unsafe_regex, say, getattr(args, "config", None))


def check_redaction(options: RedactionOptions) -> None:
    """Raise UsageError or CannotStart for invalid options. `run` does not call it: its server starts first."""
    from mcpspy.io.recording.redaction import redactor

    redactor(options, lambda _: None)


def set_recording(target: RecordingTarget, args: argparse.Namespace) -> None:
    """Set where to record and what to redact, by `RECORDING` and `REDACTION`. Raises UsageError or CannotStart."""
    target.recording, target.record, target.folder = not args.no_record, args.record, args.dir
    target.redaction = read_redaction(args)
    check_redaction(target.redaction)
    if getattr(args, "max_size", None) is not None:
        target.max_size = read_size("--max-size", args.max_size)


def read_size(flag: str, text: str) -> int:
    """Return the bytes of `500k`, `100M` or `2G`; raise UsageError, which names the flag."""
    small = text.lower().removesuffix("b")
    number = small.rstrip("kmg")
    unit = small[len(number) :]
    if not number.isdecimal() or unit not in _UNITS or int(number) == 0:
        raise UsageError(f"{flag} {text}: not a size", "use 500k, 100M or 2G")
    return int(number) * _UNITS[unit]


def speed(text: str) -> float:
    """Return a factor of the recorded speed; raise argparse.ArgumentTypeError."""
    number = finite(text)
    if number is None or number < 0:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text}: not a speed (0: no pauses, 1: as recorded, 2: twice as fast)")
    return number


def time_limit(text: str) -> float:
    """Return seconds; raise argparse.ArgumentTypeError."""
    try:
        return _seconds("", text)
    except UsageError as error:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(str(error).lstrip()) from None


def finite(text: str) -> float | None:
    """Return a finite number, None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds(flag: str, value: str) -> float:
    from mcpspy.core.rules.model import seconds

    try:
        if number := seconds(value):
            return number
    except ValueError:
        pass
    raise UsageError(f"{flag} {value}: not a duration", "use 30, 30s, 500ms or 5min")


def _value(args: argparse.Namespace, flag: str) -> Any:
    return getattr(args, flag[2:].replace("-", "_"))
