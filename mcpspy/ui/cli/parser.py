"""The table of options read by argparse, for every command except `run`.

One line per usage error, and the same help on every Python. The values become settings, by the paths in the table.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.io.recording.recorder import RecordingTarget
    from mcpspy.io.recording.redaction import RedactionOptions
    from mcpspy.io.settings import UnsafeRegex
    from mcpspy.ui.cli.options import Option, Options

Target = TypeVar("Target")
Value = TypeVar("Value")
Recorded = TypeVar("Recorded", bound="RecordingTarget")

_NUMBER = re.compile(r"-\.?\d")

_SERVERS = ("http://", "https://", "localhost", "127.0.0.1")
"""Beginnings of a word that looks like the URL of a server."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that is the same on every Python: the value of an option is printed once, as 3.13 does."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError with the command, the wrong value and a suggestion.

    argparse's own message is the usage of all options, followed by an error that suggests nothing. The function of an
    option's `type` raises ArgumentTypeError with the value, a colon and the reason.
    """

    _words: Sequence[str] = ()
    lacks_dashes = False
    """True if the command line may end with a command after `--`, and has no `--`."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and keep the words: `error` reports an unknown option before its consequences."""
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and keep the words: since 3.13 argparse does not call `parse_known_args` here."""
        self._words = args or ()
        return super().parse_known_intermixed_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError for a message of argparse."""
        if (unknown := self._unknown_option()) is not None:
            hint = self._see_help()
            if self.lacks_dashes and self._words[0] not in self._option_string_actions:
                hint = "put -- before COMMAND; " + hint
            self._fail(f"unknown option {unknown}", self._other_option(unknown) or hint)
        if (extra := _after(message, "unrecognized arguments: ")) is not None:
            first = redacted_text(extra.split(" ")[0])
            self._fail(f"unexpected argument {first or repr(first)}", self._instead_of_argument(first))
        if (names := _after(message, "the following arguments are required: ")) is not None:
            # A server's command after -- may be empty: the command itself checks it.
            missing = [name for name in names.split(", ") if not name.startswith("-- ")]
            self._fail(f"missing {' and '.join(missing)}", self._choices_of(missing[-1:]) or self._see_help())
        if (names := _after(message, "one of the arguments ")) is not None:
            names = names.removesuffix(" is required").replace(" ", " or ")
            is_url = any(word.startswith(_SERVERS) for word in self._words)
            self._fail(f"missing {names}", "write --upstream before the URL" if is_url else self._see_help())
        option, _, reason = message.removeprefix("argument ").partition(": ")
        option = option.rpartition("/")[2] if option.startswith("-") else option
        if (other := _after(reason, "not allowed with argument ")) is not None:
            self._fail(f"{option} and {other.rpartition('/')[2]} exclude each other")
        if reason.startswith("expected "):
            self._fail(f"{option} needs a value", self._see_help())
        if reason.startswith("ignored explicit argument"):
            self._fail(f"{option} takes no value")
        self._fail(f"{option} {reason}" if reason else message)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the value of an argument. argparse drops `--` before 3.13, also in `--filter=--`."""
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        name = action.option_strings[-1] if action.option_strings else action.metavar or action.dest.upper()
        hint = did_you_mean(str(value), choices)
        self._fail(f"{name} {value}: not one of {', '.join(choices)}", hint)

    def _unknown_option(self) -> str | None:
        """Return the first word that looks like an option and is not one."""
        for word in self._words:
            if word == "--":
                return None
            flag = word.partition("=")[0]
            if len(word) < 2 or word[0] != "-" or " " in word or _NUMBER.match(word):
                continue
            if flag not in self._option_string_actions and (
                word[1] == "-" or word[:2] not in self._option_string_actions
            ):
                return flag
        return None

    def _other_option(self, unknown: str) -> str:
        """Return the hint for an unknown option: an option with a similar name, or of the same meaning."""
        known = self._options()
        same = next((each for each in SAME_OPTIONS.get(unknown, ()) if each in known), None)
        if unknown == "--last":
            return f"use {self.prog} last"
        return f"use {same}" if same else did_you_mean(unknown, known)

    def _instead_of_argument(self, word: str) -> str:
        """Return the hint for an unexpected argument."""
        if self.lacks_dashes and self._words[0] != word:
            return f"put -- before COMMAND; {self._see_help()}"
        if self.prog == "mcpspy ls":
            return f"use mcpspy ls -q {word} to filter"
        return self._see_help()

    def _choices_of(self, missing: list[str]) -> str:
        """Return the hint for a missing argument that has few values."""
        found = (
            each.choices for each in self._actions if each.choices and {each.metavar, each.dest} & {*missing}
        )
        return next((f"use one of {', '.join(map(str, choices))}" for choices in found), "")

    def _options(self) -> list[str]:
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [option for action in shown for option in action.option_strings]

    def _see_help(self) -> str:
        return f"see {self.prog} --help"

    def _fail(self, message: str, hint: str = "") -> NoReturn:
        raise UsageError(sanitize(f"{self.prog.removeprefix('mcpspy ')}: {message}"), hint) from None


SAME_OPTIONS = {
    "--port": ("--listen", "--http"),
    "--host": ("--listen",),
    "--url": ("--upstream",),
    "--file": ("--output",),
    "--out": ("--output",),
    "--query": ("--filter",),
    "--folder": ("--dir",),
}
"""Options of other tools → options of mcpspy with the same meaning."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelled word; empty if nothing is close."""
    # Without the dashes, which would make any two short options similar: --rules and --lake.
    bare = {each.lstrip("-"): each for each in known}
    close = difflib.get_close_matches(word.lstrip("-"), list(bare), 1)
    return f"did you mean {bare[close[0]]}?" if close else ""


def _after(message: str, start: str) -> str | None:
    return message.removeprefix(start) if message.startswith(start) else None


def describe(parser: argparse._ActionsContainer, options: Options) -> None:
    """Add options to a parser of argparse, in order."""
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for option in options:
        if option.one_of not in groups:
            groups[option.one_of] = parser.add_mutually_exclusive_group(required=option.is_required)
        _add(groups[option.one_of], option)


def _add(parser: argparse._ActionsContainer, option: Option) -> None:
    settings = _settings(option)
    if option.is_argument:
        parser.add_argument(option.flags, **settings)
        return
    parser.add_argument(*option.flags.split(), dest=option.attribute, **settings)


def _settings(option: Option) -> dict[str, Any]:
    """Return the arguments of `add_argument`, except the names."""
    from mcpspy.ui.cli.options import Switch

    about = option.about + "; repeatable" * option.is_repeated if option.about else argparse.SUPPRESS
    default = argparse.SUPPRESS if option.is_alias else [] if option.is_repeated else option.default
    settings: dict[str, Any] = {"help": about, "default": default}
    if isinstance(option, Switch):
        return {**settings, "action": "store_const", "const": option.sets if option.is_alias else True}
    settings |= {"metavar": option.metavar, "choices": option.choices or None}
    if option.read is not None:
        settings["type"] = partial(_value_of, option)
    if option.nargs is not None:
        settings["nargs"] = option.nargs
    if option.is_required and not option.one_of:
        settings["required"] = True
    if option.is_repeated:
        settings["action"] = "append" if option.nargs is None else "extend"
    return settings


def _value_of(option: Option, text: str) -> Any:
    try:
        return option.value_of(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def given(options: Options, args: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the options that a command line has, by the names of the options."""
    values = {option: getattr(args, option.attribute, None) for option in options}
    return {
        option.name: value
        for option, value in values.items()
        if value not in (None, False, [], option.default)
    }


def fill(target: Target, args: argparse.Namespace, options: Options) -> Target:
    """Return the target with the values of the options that go into it."""
    for option in filter(lambda each: each.into, options):
        value = getattr(args, option.attribute)
        if not option.is_repeated:
            value = [] if value in (None, False) else [value]
        for each in value:
            option.put(target, each)
    return target


def without(options: Options, words: Sequence[str]) -> list[str]:
    """Return the words of a command line without some options and their values, up to `--`."""
    from mcpspy.ui.cli.options import Switch

    flags = {option.flags: option for option in options}
    found, left = [], list(words)
    while left and left[0] != "--":
        word = left.pop(0)
        flag, equals, _ = word.partition("=")
        if flag not in flags:
            found.append(word)
        elif not equals and not isinstance(flags[flag], Switch):
            del left[:1]
    return found + left


def integer(what: str, use: str, least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """Return a function that reads an integer, and raises UsageError for any other text."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text) and (most is None or int(text) <= most):
            return int(text)
        raise UsageError(f"not a {what}", use)

    return read


def reading(read: Callable[[str], Value], use: str, problem: str = "") -> Callable[[str], Value]:
    """Return a function like `read`; it raises UsageError, with a hint, where that raises ValueError."""

    def read_value(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise UsageError(problem or str(error), use) from None

    return read_value


def finite(text: str) -> float | None:
    """Return a finite number, None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None  # Also not NaN.


def speed(text: str) -> float:
    """Return a factor of the recorded speed; raise UsageError."""
    number = finite(text)
    if number is None or number < 0:
        raise UsageError("not a speed", "0: no pauses, 1: as recorded, 2: twice as fast")
    return number


def suggested_folder(args: argparse.Namespace) -> str:
    """Return ` --dir DIR` for commands that are suggested to a user who has chosen a folder; else ""."""
    import shlex

    return f" --dir {shlex.quote(args.dir)}" if args.dir else ""


def read_redaction(args: argparse.Namespace, options: Options) -> RedactionOptions:
    """Return the options of `REDACTION`, or of a part of them, with warnings on stderr."""
    from mcpspy.io.recording.recorder import RecordingTarget, say

    redaction = fill(RecordingTarget(), args, options).redaction
    redaction.unsafe_regex.say = say
    return redaction


def recorded(target: Recorded, args: argparse.Namespace, options: Options) -> Recorded:
    """Return the target with the values of the options that go into it, among them `REDACTION`.

    Raises UsageError or CannotStart.
    """
    from mcpspy.io.recording.recorder import say

    fill(target, args, options)
    target.redaction.unsafe_regex.say = say
    check_redaction(target.redaction)
    return target


def read_unsafe_regex(args: argparse.Namespace) -> UnsafeRegex:
    """Return the decision of `--unsafe-regex` and the settings, with warnings on stderr."""
    from mcpspy.io.recording.recorder import say
    from mcpspy.io.settings import UnsafeRegex

    return UnsafeRegex(args.unsafe_regex, say, getattr(args, "config", None))


def check_redaction(options: RedactionOptions) -> None:
    """Raise UsageError or CannotStart for invalid options. `run` does not call it: its server starts first."""
    from mcpspy.io.recording.redaction import redactor

    redactor(options, lambda _: None)
