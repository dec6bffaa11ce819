"""The options of a replay: proposed servers, the texts that a user types, and the last ones.

`ReplayForm` has the texts of a dialog, `config` what the engine gets. Options are remembered per server, in a file that
only the user may read; secrets, headers and variables never are.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs, to_builtins

from mcpspy.analysis.diff import ignored
from mcpspy.analysis.load import gate
from mcpspy.core.hostconfig.layout import EntryLayout
from mcpspy.core.hostconfig.original import original
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame, Header, read_entry
from mcpspy.core.redact.placeholder import MARK, PLACEHOLDER
from mcpspy.core.rules.model import seconds
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.hosts.configuration import listed_servers
from mcpspy.io.load import load_options
from mcpspy.io.recording.scan import RecordingScan
from mcpspy.ui.model.remembered import has_secret, keep_form, read_form

REPLAY = "replay"
"""The kind of the remembered forms."""

RECORDED = "the recorded server"

ORDERS = {"recorded": "as recorded", "serial": "one request at a time"}
SPEEDS = {
    "0": "as fast as the server answers",
    "1": "with the client's pauses",
    "2": "with half of the pauses",
}
PAUSES = {"never": "never", "start": "before the first request", "different": "at each difference"}
MODES = {"once": "once, and compare", "load": "load test: many runs at once"}
VALUES = {
    "volatile": "ignore dates, ids, ports and temporary paths",
    "dates": "ignore dates and times",
    "all": "compare all values",
}
"""Values of the options, and their words."""

MOST_SECRETS = 8
"""Redacted values that are asked for by name."""

LARGEST = 64 << 20
"""Bytes of a recording that is searched for redacted values."""

Number = TypeVar("Number", int, float)

_URL = re.compile(r"https?://\S+")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class ProposedServer(Struct, frozen=True):
    """A server that a session can be replayed against."""

    title: str
    server: str
    """A command line with the quotes of a shell, or a URL."""
    cwd: str = ""
    environment: str = ""
    """Words `NAME=VALUE` with the quotes of a shell."""
    headers: str = ""
    """`NAME: VALUE`, separated by semicolons."""


class ReplayForm(Struct, frozen=True):
    """The texts of the dialog."""

    server: str = ""
    cwd: str = ""
    environment: str = ""
    headers: str = ""
    secrets: str = ""
    """Words `NAME=VALUE`: NAME is the tag of a placeholder, or the key of the value."""
    order: str = "recorded"
    speed: str = "0"
    pause: str = "never"
    values: str = "volatile"
    ignored: str = ""
    """Patterns, separated by semicolons."""
    timeout: str = "30"
    mode: str = "once"
    clients: str = "10"
    """These are the options of a load test, as on the command line."""
    rate: str = ""
    repeat: str = ""
    duration: str = ""
    ramp: str = ""
    fail_if: str = ""

    def config(self) -> dict[str, Any]:
        """Return what the engine needs to know of the server and the options. Raise UsageError."""
        try:
            timeout = float(self.timeout)
        except ValueError:
            raise UsageError("timeout: not a number of seconds", "use 30") from None
        patterns = [text for part in self.ignored.split(";") if (text := part.strip())]
        for pattern in patterns:
            try:
                ignored(pattern)
            except ValueError as error:
                raise UsageError(f"ignored values: {error}", "use /result/**/time") from None
        return {
            **self._target(),
            "secrets": _pairs("secret values", self.secrets),
            "serial": self.order == "serial",
            "speed": float(self.speed),
            "pause": self.pause,
            "volatile": self.values == "volatile",
            "dates": self.values == "dates",
            "ignored": patterns,
            "timeout": timeout,
            **(self._load() if self.mode == "load" else {}),
        }

    def _load(self) -> dict[str, Any]:
        try:
            gate(self.fail_if) if self.fail_if.strip() else None
        except ValueError as error:
            raise UsageError(f"fail if: {error}", "use p95>200ms or errors>1%") from None
        load = load_options(
            _number("clients", self.clients, int, "10"),
            _number("runs", self.repeat, int, "5"),
            _number("rate", self.rate, float, "0.5 runs per second"),
            _number("duration", self.duration, seconds, "30s"),
            _number("ramp", self.ramp, seconds, "10s") or 0.0,
        )
        return {"load": to_builtins(load), "fail_if": self.fail_if.strip()}

    def _target(self) -> dict[str, Any]:
        text = self.server.strip()
        if not text:
            raise UsageError("server: missing", "type a command, or a URL")
        if MARK.decode() in text or MARK.decode() in self.environment + self.headers:
            raise UsageError("server: fill in the redacted value", "${NAME} is the value of a variable")
        if _URL.fullmatch(text):
            return {"url": _filled(text), "headers": _headers(self.headers)}
        if text.startswith(("http:", "https:")):
            raise UsageError("server: not a URL", "use http://localhost:3001/mcp")
        environment = _pairs("environment", self.environment)
        cwd = os.path.expanduser(self.cwd.strip())
        return {
            "command": [_filled(word) for word in _words("server", text)],
            "cwd": cwd,
            "environment": environment,
        }


def proposals(header: Header) -> Iterator[ProposedServer]:
    """Yield the recorded server, and those of the configurations of hosts. Reads these files."""
    recorded = shlex.join(header.command) if header.command else header.upstream or ""
    yield ProposedServer(RECORDED, recorded, _folder(header.cwd) if header.command else "")
    for host, configuration, entry in listed_servers():
        if (found := _proposed(host.name, entry, configuration.location.layout)) is not None:
            yield found


def redacted_keys(path: Path) -> list[str]:
    """Return the keys, or else tags, of redacted values in the client's messages: those that a replay needs."""
    with suppress(OSError, McpspyError):
        if path.stat().st_size > LARGEST:
            return []
        found: dict[str, None] = {}
        for block in RecordingScan(path):
            for line in block.lines:
                if MARK in line and isinstance(entry := read_entry(line), Frame) and entry.side == CLIENT:
                    found |= dict.fromkeys(_keys(loads(entry.data), ""))
        return list(found)[:MOST_SECRETS]
    return []


def remembered(header: Header) -> ReplayForm:
    """Return the options of the last replay of this server, or the proposed ones."""
    form = read_form(REPLAY, header, ReplayForm) or ReplayForm()
    if (
        form.order not in ORDERS
        or form.speed not in SPEEDS
        or form.pause not in PAUSES
        or form.values not in VALUES
        or form.mode not in MODES
    ):
        return ReplayForm()
    return form


def remember(header: Header, form: ReplayForm) -> None:
    """Keep the options of a server. Raises OSError."""
    server = "" if has_secret(form.server) else form.server
    keep_form(REPLAY, header, structs.replace(form, server=server, environment="", headers="", secrets=""))


def _proposed(host: str, entry: ServerEntry, layout: EntryLayout) -> ProposedServer | None:
    server = original(entry, layout)
    if server is None:
        return None
    title = f"{host}: {entry.name}"
    if server.url:
        headers = "; ".join(f"{name}: {value}" for name, value in server.headers.items())
        return ProposedServer(title, server.url, headers=headers)
    environment = shlex.join(f"{name}={value}" for name, value in server.environment.items())
    return ProposedServer(title, shlex.join(server.command), server.cwd, environment)


def _folder(cwd: str | None) -> str:
    return cwd if cwd is not None and os.path.isdir(cwd) else ""


def _keys(value: Any, key: str) -> Iterator[str]:
    """Yield the key of each redacted text, or its tag if it is in a list or a longer text."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _keys(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item, "")
    elif isinstance(value, str):
        for tag in PLACEHOLDER.findall(value.encode("utf-8", "replace")):
            yield (
                key
                if re.fullmatch(r"[\w.-]+", key) and len(value) == len(MARK) + len(tag) + 1
                else tag.decode()
            )


def _number(what: str, text: str, read: Callable[[str], Number], example: str) -> Number | None:
    """Return the positive number in a field, None without one. Raise UsageError."""
    if not (text := text.strip()):
        return None
    try:
        if (found := read(text)) > 0 and isfinite(found):
            return found
    except ValueError:
        pass
    raise UsageError(f"{what} {text}: not a positive number", f"use {example}")


def _pairs(what: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in _words(what, text):
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"{what}: not NAME=VALUE", "quote a value with blanks: NAME='a b'")
        if value:
            found[name] = _filled(value)
    return found


def _headers(text: str) -> list[tuple[str, str]]:
    found = []
    for part in filter(None, map(str.strip, text.split(";"))):
        name, colon, value = part.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise UsageError("headers: not NAME: VALUE", "use Authorization: Bearer ${TOKEN}")
        found.append((name, _filled(value.strip())))
    return found


def _words(what: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{what}: {str(error).lower()}", "close the quote") from None


def _filled(text: str) -> str:
    """Return a text with the values of its `${VARIABLES}`. Raise UsageError if one is not set."""
    missing = [name for name in _VARIABLE.findall(text) if name not in os.environ]
    if missing:
        raise UsageError(f"environment variable {missing[0]} is not set")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)
