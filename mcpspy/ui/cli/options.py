"""Command-line options that several commands share, described once.

Owns their names and help texts, and how a table of options becomes argparse's. An option is a flag (`-q --filter`
has two) with a metavar, or None for a switch, and its help. argparse's own `parents=` would put these options
before a command's own, and the help in another order.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Container, Mapping
from typing import TypeAlias

Options: TypeAlias = Mapping[str, tuple[str | None, str]]

VARIABLE = "${NAME} is a variable of the environment"

FOLDER: Options = {"--dir": ("DIR", "the folder of sessions")}

RECORDING: Options = {
    "--record": ("PATH", "record to this file, or into this folder"),
    "--no-record": (None, "record nothing"),
    **FOLDER,
}

SESSION: Options = {
    "--name": ("NAME", "what to call the session (default: the server's host)"),
    **RECORDING,
    "--max-size": ("SIZE", "go on in a next part when a part has this size"),
}

CACERT: Options = {"--cacert": ("FILE", "trust this authority's certificates as well")}

CERTIFICATES: Options = {**CACERT, "--insecure": (None, "do not check the server's certificate")}


def describe(parser: argparse._ActionsContainer, options: Options, *, repeated: Container[str] = ()) -> None:
    """Add options to a parser, in order; those of `repeated` collect their values in a list."""
    for flags, (metavar, text) in options.items():
        if metavar is None:
            parser.add_argument(*flags.split(), action="store_true", help=text)
        elif flags in repeated:
            parser.add_argument(*flags.split(), metavar=metavar, action="append", default=[], help=text)
        else:
            parser.add_argument(*flags.split(), metavar=metavar, help=text)


def speed(text: str) -> float:
    """Return a factor of the recorded speed; raise argparse.ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f"{text} is no speed: 0 is at once, 1 as it was recorded")
    return number
