"""The options that say what becomes of messages on their way, the same for every proxy.

Imports next to nothing: `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

from mcpspy.errors import UsageError
from mcpspy.io.interception import InterceptionOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

OPTIONS: dict[str, tuple[str | None, str]] = {
    "--rules": ("FILE", "rules for what to delay, drop, answer, change or hold, as TOML; may be given again"),
    "--rule": ("RULE", "one of them: 'tool:echo => delay 2s'; may be given again"),
    "--call-timeout": ("S", "answer a request that hangs for so many seconds with an error"),
    "--slow": ("S", "mark in the recording what takes longer than so many seconds"),
    "--hold-timeout": ("S", "let a held message go on after so many seconds (default: 300)"),
}

_LISTS = {"--rules": "files", "--rule": "flags"}
_TIMES = {"--call-timeout": "call_timeout", "--slow": "slow", "--hold-timeout": "hold_timeout"}


def take(asked: InterceptionOptions, flag: str, value: str) -> bool:
    """Keep an option that is one of these; say whether it was. Raises UsageError."""
    if flag in _LISTS:
        getattr(asked, _LISTS[flag]).append(value)
    elif flag in _TIMES:
        setattr(asked, _TIMES[flag], _seconds(flag, value))
    else:
        return False
    return True


def configure(parser: argparse.ArgumentParser) -> None:
    from mcpspy.ui.cli.options import describe

    describe(parser, OPTIONS, repeated=_LISTS)


def asked(args: argparse.Namespace) -> InterceptionOptions:
    found = InterceptionOptions()
    for flag in OPTIONS:
        value = getattr(args, flag[2:].replace("-", "_"))
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                take(found, flag, each)
    return found


def check(asked: InterceptionOptions) -> None:
    if asked.files or asked.flags:
        asked.rules()


def _seconds(flag: str, value: str) -> float:
    from mcpspy.core.rules.model import seconds

    try:
        if number := seconds(value):
            return number
    except ValueError:
        pass
    raise UsageError(f"{flag} {value}: no time", "like 30, 30s, 500ms or 5min")
