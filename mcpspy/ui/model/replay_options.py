"""The options of a replay: proposed servers, the texts that a user types, and the last ones.

`ReplayForm` has the texts of a dialog, `config` what the engine gets. Options are remembered per server, in a file that
only the user may read; secrets, headers and variables never are.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, structs
from msgspec.json import decode, encode

from mcpspy.analysis.diff import ignored
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame, Header, read_entry
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.redact.placeholder import MARK, PLACEHOLDER
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.hosts.configuration import target
from mcpspy.io.hosts.table import HOSTS
from mcpspy.io.recording.scan import RecordingScan
from mcpspy.io.settings import state_folder

RECORDED = "the recorded server"

ORDERS = {"recorded": "as recorded", "serial": "one request at a time"}
SPEEDS = {
    "0": "as fast as the server answers",
    "1": "with the client's pauses",
    "2": "with half of the pauses",
}
PAUSES = {"never": "never", "start": "before the first request", "different": "at each difference"}
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
        }

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
    recorded = header.upstream or shlex.join(header.command or [])
    yield ProposedServer(RECORDED, recorded, "" if header.upstream else _folder(header.cwd))
    for host in HOSTS:
        if not any(os.path.lexists(path) for path in host.paths()):
            continue
        with suppress(McpspyError):  # `mcpspy hosts` shows what is wrong with the file.
            for entry in target(host).servers():
                if (found := _proposed(host.name, entry, target(host).location.layout.env)) is not None:
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
    form = ReplayForm()
    with suppress(OSError, DecodeError, ValidationError):
        form = decode(_memory(header).read_bytes(), type=ReplayForm)
    if (
        form.order not in ORDERS
        or form.speed not in SPEEDS
        or form.pause not in PAUSES
        or form.values not in VALUES
    ):
        return ReplayForm()
    return form


def remember(header: Header, form: ReplayForm) -> None:
    """Keep the options of a server. Raises OSError."""
    kept = structs.replace(form, environment="", headers="", secrets="")
    if (
        (words := _words_or_none(form.server)) is None
        or redacted_command(words) != words
        or form.server != redacted_url(form.server)
    ):
        kept = structs.replace(kept, server="")
    path = _memory(header)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = path.with_suffix(f".{os.getpid()}")
    fd = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(encode(kept))
    waiting.replace(path)


def _memory(header: Header) -> Path:
    """Return the file with the options of a server."""
    which = json.dumps([header.name, header.command, header.upstream]).encode()
    return Path(state_folder("replay")) / f"{blake2b(which, digest_size=8).hexdigest()}.json"


def _proposed(host: str, entry: ServerEntry, env: str) -> ProposedServer | None:
    title = f"{host}: {entry.name}"
    if entry.what is EntryKind.URL:
        return ProposedServer(
            title,
            entry.url,
            headers="; ".join(f"{name}: {value}" for name, value in _texts(entry.node.get("headers"))),
        )
    if entry.what is not EntryKind.STDIO:
        return None
    words = entry.argv if entry.proxy is None else entry.argv[entry.proxy.at :]
    cwd = entry.node.get("cwd")
    environment = shlex.join(f"{name}={value}" for name, value in _texts(entry.node.get(env)))
    return ProposedServer(title, shlex.join(words), "" if cwd is None else cwd.text, environment)


def _texts(node: Node | None) -> list[tuple[str, str]]:
    """Return the members of an object that are texts."""
    members = () if node is None else node.members
    return [(each.key, each.node.text) for each in members if each.node.kind is NodeKind.STRING]


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


def _words_or_none(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _filled(text: str) -> str:
    """Return a text with the values of its `${VARIABLES}`. Raise UsageError if one is not set."""
    missing = [name for name in _VARIABLE.findall(text) if name not in os.environ]
    if missing:
        raise UsageError(f"environment variable {missing[0]} is not set")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)
