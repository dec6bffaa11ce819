"""The argument parser of every command: one line per usage error, and the same help on every Python."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError

_NUMBER = re.compile(r"-\.?\d")


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
            self._fail(f"unknown option {unknown}", did_you_mean(unknown, self._options()) or hint)
        if (extra := _after(message, "unrecognized arguments: ")) is not None:
            first = redacted_text(extra.split(" ")[0])
            self._fail(f"unexpected argument {first or repr(first)}", self._see_help())
        if (names := _after(message, "the following arguments are required: ")) is not None:
            # A server's command after -- may be empty: the command itself checks it.
            missing = [name for name in names.split(", ") if not name.startswith("-- ")]
            self._fail(f"missing {' and '.join(missing)}", self._see_help())
        if (names := _after(message, "one of the arguments ")) is not None:
            names = names.removesuffix(" is required").replace(" ", " or ")
            is_url = any(_looks_like_server(word) for word in self._words)
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

    def _options(self) -> list[str]:
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [option for action in shown for option in action.option_strings]

    def _see_help(self) -> str:
        return f"see {self.prog} --help"

    def _fail(self, message: str, hint: str = "") -> NoReturn:
        raise UsageError(sanitize(f"{self.prog.removeprefix('mcpspy ')}: {message}"), hint) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelled word; empty if nothing is close."""
    close = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]}?" if close else ""


def _looks_like_server(word: str) -> bool:
    return word.startswith(("http://", "https://", "localhost", "127.0.0.1"))


def _after(message: str, start: str) -> str | None:
    return message.removeprefix(start) if message.startswith(start) else None
