"""Command lines of mcpspy in a host's configuration.

The module writes `mcpspy run --name SERVER -- COMMAND…` and `mcpspy bridge --name SERVER --upstream URL`, and
recognises them however mcpspy is started, also with the `--header 'NAME: ${VARIABLE}'` of older versions. Shell quoting
is irrelevant: arguments are data, also those of `cmd /c npx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SWITCHES = frozenset(
    [
        "--no-record",
        "--no-redact",
        "--no-oauth",
        "--sse",
        "--insecure",
        "--redact-entropy",
        "--unsafe-regex",
        "--reload",
        "--first-use",
    ]
)


ISOLATED = "-EP"
"""Options of Python with which it ignores its variables, such as PYTHONHOME. The server still gets them."""

_HARMLESS = frozenset(
    ["PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"]
)


def affects_python(variable: str) -> bool:
    """Return whether a variable that is set for the server could break the Python that runs mcpspy."""
    return variable.startswith("PYTHON") and variable not in _HARMLESS


class ProxyCommand(NamedTuple):
    """A command line that starts `mcpspy run` or `mcpspy bridge`."""

    does: str
    at: int
    """Index of the first argument of the original command line; the number of arguments if there is none."""
    options: tuple[tuple[str, str], ...]
    is_joined: bool
    """True for `--name=NAME`: the entry had no `args` (see `run`)."""

    def option(self, flag: str) -> str | None:
        return next((value for name, value in reversed(self.options) if name == flag), None)


def run(name: str, options: Sequence[str] = (), *, has_args: bool) -> list[str]:
    """Return the arguments between mcpspy and the server's command.

    The form of `--name` (with a blank or `=`) records for `unwrap` whether the entry had `args`; `run` accepts both.
    """
    return ["run", *(["--name", name] if has_args else [f"--name={name}"]), *options, "--"]


class BridgeUpstream(NamedTuple):
    """The server of a bridge. Values that may be secrets are given by the names of their variables."""

    url: str
    url_variable: str
    """The variable with the URL, if `url` is empty."""
    headers: Sequence[tuple[str, str]]
    """Names of headers, and of the variables with their values."""
    bearer: str
    """The variable with a bearer token; may be empty."""
    is_sse: bool
    """True if the entry selects HTTP+SSE of 2024-11-05, which the URL does not show."""


def bridge(name: str, options: Sequence[str], upstream: BridgeUpstream) -> list[str]:
    """Return the arguments that replace a URL.

    They contain no `${VARIABLE}`, which several hosts would expand themselves.
    """
    words = ["bridge", *([f"--name={name}"] if name.startswith("-") else ["--name", name]), *options]
    words += ["--upstream", upstream.url] if upstream.url else ["--upstream-env", upstream.url_variable]
    words += ["--sse"] if upstream.is_sse else []
    for header, variable in upstream.headers:
        words += ["--header-env", f"{header}={variable}"]
    return [*words, *(["--bearer-env", upstream.bearer] if upstream.bearer else [])]


def read(argv: Sequence[str]) -> ProxyCommand | None:
    """Parse a command line; return None unless it starts `mcpspy run` or `mcpspy bridge`."""
    at = _program(argv)
    if at is None or at >= len(argv) or argv[at] not in ("run", "bridge"):
        return None
    does = argv[at]
    at += 1
    options = []
    is_joined = False
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        flag, equals, value = argv[at].partition("=")
        at += 1
        if not equals and flag not in SWITCHES and at < len(argv):
            value = argv[at]
            at += 1
        is_joined |= flag == "--name" and bool(equals)
        options.append((flag, value))
    if at < len(argv) and argv[at] == "--":
        at += 1
    return ProxyCommand(does, at, tuple(options), is_joined)


def _program(argv: Sequence[str]) -> int | None:
    """Return the number of arguments that start mcpspy; None if they start something else."""
    at = 2 if len(argv) > 2 and argv[1] in (ISOLATED, "-I") else 0
    module = max(at, 1)
    if tuple(argv[module : module + 2]) == ("-m", "mcpspy"):
        return module + 2
    stem = argv[at].replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe") if argv else ""
    # `mcpspy-0.1.0-linux-x86_64` is the executable of a release.
    if stem == "mcpspy" or (stem.startswith("mcpspy-") and stem[7:8].isdigit()):
        return at + 1
    if stem == "uvx" and len(argv) > 1 and argv[1].partition("@")[0].partition("[")[0] == "mcpspy":
        return 2
    return None
