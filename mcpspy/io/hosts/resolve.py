"""Finds the configuration for a host's name or a path, and the command line of mcpspy.

The command line is absolute, because hosts start servers with a minimal PATH, and some in their own folder.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.hostconfig import command_line as command_lines
from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.hostconfig.servers import ServerEntry, read
from mcpspy.core.hostconfig.shapes import SHAPES, locate, places
from mcpspy.core.hostconfig.tree import Node
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.hosts.config_file import ConfigFile
from mcpspy.io.hosts.table import HOSTS, PROJECT, Host

_SYNTAXES = {".toml": ConfigSyntax.TOML, ".yaml": ConfigSyntax.YAML, ".yml": ConfigSyntax.YAML}

_CACHES = ("/uv/archive-v0/", "/uv/builds-v0/", "/uv/cache/", "/pipx/.cache/")
"""Folders in which tools install programs for a single run, and which they delete later."""


class ConfigTarget(NamedTuple):
    host: Host | None
    file: ConfigFile
    location: ServersLocation

    def servers(self) -> list[ServerEntry]:
        """Return the servers. Raise UsageError with the name of the file."""
        try:
            return self.location.servers(self.file.text)
        except UsageError as error:
            raise UsageError(f"{self.file.path}: {error.args[0]}", error.hint) from None

    def unread(self) -> str:
        """Return the keys of servers that the host does not read; empty if there are none."""
        if self.host is None or PROJECT in self.host.location.keys:
            return ""
        document = _document(self.file, self.location.syntax)
        found = locate(document, _shapes(self.location.syntax))
        if found is None or found.keys == self.location.keys:
            return ""
        return ".".join(found.keys) if found.servers(self.file.text) else ""


def find(which: str, folder: Path | None = None) -> ConfigTarget:
    """Return the configuration of a host or a file. Raise UsageError or CannotStart."""
    host = next((host for host in HOSTS if host.name == which), None)
    if host is not None:
        return target(host, folder)
    path = Path(which).expanduser()
    if not (path.exists() or path.suffix or len(path.parts) > 1):
        near = difflib.get_close_matches(which, [host.name for host in HOSTS], 3, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "mcpspy hosts --all lists the hosts"
        raise UsageError(f"{which}: no such host or file", hint)
    file = ConfigFile(path)
    hosts = _hosts_of(path)
    for host in hosts:
        if locate(_document(file, host.location.syntax), (host.location, *host.other_locations)) is not None:
            return _located(host, file, folder)
    location = _guess(file)
    if location is not None:
        return ConfigTarget(None, file, location)
    if hosts:
        return _located(hosts[0], file, folder)
    syntax = _syntax(file)
    document = _document(file, syntax)
    for shape in _shapes(syntax):
        if (
            shape.keys and document.get(*shape.keys) is not None
        ):  # A value of another type: an error with its key.
            return ConfigTarget(None, file, shape)
    if document.members:
        raise UsageError(
            f"{file.path}: no servers where mcpspy looks for them ({places(syntax)})",
            "docs/wrap.md lists the known shapes",
        )
    return ConfigTarget(None, file, next(iter(_shapes(syntax))))


def target(host: Host, folder: Path | None = None) -> ConfigTarget:
    """Return a host's configuration: the first of its files that exists."""
    paths = [Path(folder or "") / path for path in host.paths()]
    path = next((path for path in paths if path.exists()), paths[0])
    if not path.exists():
        raise UsageError(
            f"{path}: no such file; {host.title} configures servers there", "name the FILE if it is elsewhere"
        )
    return _located(host, ConfigFile(path), folder)


def other_files(host: Host | None, name: str | None = None) -> list[str]:
    """Return the hosts whose files belong to the same product and configure servers, or this server.

    Most products have one file for the user and one for a project, which are easy to confuse.
    """
    found = []
    for other in HOSTS:
        if host is not None and other.docs == host.docs and other is not host:
            try:
                names = [server.name for server in target(other).servers()]
            except McpspyError:  # Missing or not readable: not worth a hint.
                continue
            if names if name is None else name in names:
                found.append(other.name)
    return found


def _located(host: Host, file: ConfigFile, folder: Path | None) -> ConfigTarget:
    home = host.location
    if host.other_locations:
        home = locate(_document(file, home.syntax), (home, *host.other_locations)) or home
    if PROJECT in home.keys:
        key = _project(file, home, Path(folder or os.getcwd()))
        home = home._replace(keys=tuple(key if part == PROJECT else part for part in home.keys))
    return ConfigTarget(host, file, home)


def _project(file: ConfigFile, home: ServersLocation, folder: Path) -> str:
    """Return the key of the folder's project: the folder, or its nearest parent that is a key."""
    projects = _document(file, home.syntax).get(*home.keys[: home.keys.index(PROJECT)])
    known = {member.key for member in projects.members} if projects is not None else set()
    for path in (folder, *folder.parents):
        for key in (str(path), path.as_posix()):
            if key in known:
                return key
    return str(folder)


def _hosts_of(path: Path) -> list[Host]:
    """Return the hosts with this file, then those with a file of this name, such as `.cursor/mcp.json`."""
    real = os.path.realpath(path)
    same, alike = [], []
    for host in HOSTS:
        if PROJECT in host.location.keys:
            continue
        if any(os.path.realpath(own) == real for own in host.paths()):
            same.append(host)
        elif any(own.parts[-2:] == Path(real).parts[-len(own.parts[-2:]) :] for own in host.paths()):
            alike.append(host)
    return same + alike


def _guess(file: ConfigFile) -> ServersLocation | None:
    """Return the location of the servers in a file of an unknown host, by its suffix and content."""
    syntax = _syntax(file)
    return locate(_document(file, syntax), _shapes(syntax))


def _syntax(file: ConfigFile) -> ConfigSyntax:
    return _SYNTAXES.get(file.path.suffix.lower(), ConfigSyntax.JSON)


def _shapes(syntax: ConfigSyntax) -> list[ServersLocation]:
    return [shape for shape in SHAPES if shape.syntax is syntax]


def _document(file: ConfigFile, syntax: ConfigSyntax) -> Node:
    try:
        return read(file.text, syntax)
    except UsageError as error:
        raise UsageError(f"{file.path}: {error.args[0]}", error.hint) from None


def command_line() -> list[str]:
    """Return the command that started this mcpspy, without its arguments."""
    if getattr(sys, "frozen", False) and command_lines.read([sys.executable, "run"]) is not None:
        return [sys.executable]  # The executable of a release, unless it was renamed.
    started = os.path.abspath(sys.argv[0])
    stem, ending = os.path.splitext(os.path.basename(started))
    if stem == "mcpspy" and ending in ("", ".exe"):
        for path in (started, f"{started}.exe"):
            # Not resolved: a link in a folder of commands outlives its target.
            if os.path.isfile(path):
                return [path]
    return [sys.executable, "-m", "mcpspy"]


def isolated(program: list[str]) -> list[str]:
    """Return the same command with a Python that ignores its variables, or an empty list if there is none.

    The executable of a release ignores them anyway, and uvx starts a Python that does not.
    """
    if program[0] == sys.executable:
        return [] if len(program) == 1 else [sys.executable, command_lines.ISOLATED, *program[1:]]
    try:
        with open(program[0], "rb") as script:
            is_script = b"python" in script.readline(128)
    except OSError:
        return []
    if is_script and os.name == "posix":
        return [sys.executable, command_lines.ISOLATED, *program]
    return [sys.executable, command_lines.ISOLATED, "-m", "mcpspy"]


def uvx() -> list[str]:
    """Return the command with which uv starts mcpspy, whichever version is then installed."""
    return [shutil.which("uvx") or "uvx", "mcpspy"]


def is_temporary(program: list[str]) -> bool:
    """Return whether the command line uses a program in a cache."""
    path = program[0].replace("\\", "/")
    return any(cache in path for cache in _CACHES)
