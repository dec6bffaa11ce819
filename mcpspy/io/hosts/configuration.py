"""The configuration of a host, found by the host's name or a path, and the command line of mcpspy.

A file is read and replaced as a whole. A new version is written next to the file, synced and renamed, with the same
owner and permissions. Links are followed. A file that has changed since it was read is not replaced. The old version is
backed up in a private folder: such files contain secrets, and a copy next to the file could be committed with the
project.

The command line is absolute, because hosts start servers with a minimal PATH, and some in their own folder.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.hostconfig import command_line as command_lines
from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.hostconfig.mistakes import Mistake, ignored, mistakes, unread
from mcpspy.core.hostconfig.reading import IGNORED, UNKNOWN
from mcpspy.core.hostconfig.servers import ServerEntry, read
from mcpspy.core.hostconfig.shapes import SHAPES, locate, places
from mcpspy.core.hostconfig.tree import Node
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.hosts.table import HOSTS, PROJECT, Host
from mcpspy.io.settings import sessions_folder, slug


class ConfigFile:
    """The content of a file when it was read."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raise UsageError or CannotStart if that fails."""
        self.path = path
        try:
            # A link is kept, and the file that it points to is replaced.
            self.real = Path(os.path.realpath(path))
            self.data = self.real.read_bytes()
        except FileNotFoundError:
            raise UsageError(f"{path}: no such file", "mcpspy hosts lists the existing files") from None
        except IsADirectoryError:
            raise UsageError(f"{path}: a folder, not a configuration file") from None
        except OSError as error:
            raise CannotStart(f"{path}: {error.strerror}", "check the permissions") from None
        try:
            self.text = self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: not UTF-8, at byte {error.start}", "save it as UTF-8") from None

    def replace(self, text: str, *, is_forced: bool = False) -> Path:
        """Replace the content. Return the path of the backup. Raise CannotStart, also if the file is read-only.

        `is_forced` replaces a read-only file, which then has the same permissions.
        """
        data = text.encode("utf-8")
        # The superuser may write to any file, but a file without permission to write was made so for a reason.
        is_writable = os.access(self.real, os.W_OK) and os.stat(self.real).st_mode & 0o222
        if not is_forced and not is_writable:
            raise CannotStart(
                f"{self.path}: read-only; nothing was changed", "use --force to replace it anyway"
            )
        backup = self._back_up()
        try:
            self._write(data)
        except OSError as error:
            raise CannotStart(
                f"{self.real.parent}: {error.strerror}, so {self.path.name} could not be replaced",
                "nothing was changed",
            ) from None
        return backup

    def _write(self, data: bytes) -> None:
        fd, name = tempfile.mkstemp(dir=self.real.parent, prefix=f".{self.real.name}.", suffix=".mcpspy")
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._copy_metadata(name)
            if self.real.read_bytes() != self.data:
                raise CannotStart(
                    f"{self.path}: another program has changed it", "nothing was written; try again"
                )
            os.replace(name, self.real)
        except BaseException:
            os.unlink(name)
            raise
        _sync_folder(self.real.parent)

    def _copy_metadata(self, name: str) -> None:
        old = os.stat(self.real)
        shutil.copystat(self.real, name)  # Also copies extended attributes, if there are any.
        os.utime(name)
        new = os.stat(name)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and hasattr(os, "chown"):
            os.chown(name, old.st_uid, old.st_gid)
            os.chmod(name, old.st_mode & 0o7777)  # A change of the owner clears some mode bits.

    def _back_up(self) -> Path:
        home = Path(sessions_folder())
        folder = home / "backups"
        stem = f"{time.strftime('%Y%m%dT%H%M%S')}-{slug(self.path.absolute().parent.name)}-{slug(self.path.name)}"
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)  # mkdir ignores `mode` for parents.
            folder.mkdir(mode=0o700, exist_ok=True)
            for number in range(1, 1000):
                path = folder / (stem if number == 1 else f"{stem}-{number}")
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                except FileExistsError:
                    continue
                with open(fd, "wb") as file:
                    file.write(self.data)
                    file.flush()
                    os.fsync(file.fileno())
                return path
        except OSError as error:
            raise CannotStart(
                f"{folder}: {error.strerror}, so no backup could be written", "nothing was changed"
            ) from None
        raise CannotStart(f"{folder}: too many backups within one second", "nothing was changed")


def _sync_folder(folder: Path) -> None:
    """Sync the renamed entry to disk. Systems that cannot open folders do not need this."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_SYNTAXES = {".toml": ConfigSyntax.TOML, ".yaml": ConfigSyntax.YAML, ".yml": ConfigSyntax.YAML}

_CACHES = ("/uv/archive-v0/", "/uv/builds-v0/", "/uv/cache/", "/pipx/.cache/")
"""Folders in which tools install programs for a single run, and which they delete later."""


class ConfigTarget(NamedTuple):
    host: Host | None
    file: ConfigFile
    location: ServersLocation

    @property
    def product(self) -> str:
        """Return the name of the host without that of the file, such as `project`."""
        return "the host" if self.host is None else self.host.product

    def servers(self) -> list[ServerEntry]:
        """Return the servers. Raise UsageError with the name of the file."""
        try:
            return self.location.servers(self.file.text)
        except UsageError as error:
            raise UsageError(f"{self.file.path}: {error.args[0]}", error.hint) from None

    def mistakes(self) -> list[Mistake]:
        """Return the mistakes that its host does not report. Raise UsageError if the file cannot be read."""
        path, text = self.file.path, self.file.text
        how = UNKNOWN if self.host is None else self.host.reading
        is_plugin = (path.absolute().parent / ".claude-plugin").is_dir()
        found = mistakes(
            text,
            self.location,
            self.product,
            how,
            allows_bare=self.host is None or is_plugin,
            others=[
                host.location.keys for host in HOSTS if host is not self.host and _is_file_of(host, path)
            ],
        )
        if self.host is None:
            # Servers that were found by their content, in a file whose host reads another key or none of it.
            for host in _hosts_of(path)[:1]:
                if host.location.syntax is self.location.syntax:
                    document = _document(self.file, self.location.syntax)
                    found += unread(text, document, host.location, host.product, allows_bare=True)
            for name, places in IGNORED.items():
                product = next(host.product for host in HOSTS if host.name == name)
                for place in places:
                    if _is_at(path, place.path) and (mistake := ignored(text, place, product)):
                        found.append(mistake)
        return found


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
    # By its suffix and content, as that of an unknown host.
    syntax = _SYNTAXES.get(file.path.suffix.lower(), ConfigSyntax.JSON)
    document = _document(file, syntax)
    location = locate(document, _shapes(syntax))
    if location is not None:
        return ConfigTarget(None, file, location)
    if hosts:
        return _located(hosts[0], file, folder)
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


def listed_servers() -> Iterator[tuple[Host, ConfigTarget, ServerEntry]]:
    """Yield the servers in the configurations of all hosts. `mcpspy hosts` shows what is wrong with the other files."""
    for host in HOSTS:
        with suppress(McpspyError):
            configuration = target(host)
            for entry in configuration.servers():
                yield host, configuration, entry


def ignored_files(host: Host, folder: Path | None = None) -> list[tuple[Path, Mistake]]:
    """Return the files with servers that a host ignores because of their place."""
    found = []
    for place in IGNORED.get(host.name, ()):
        path = Path(folder or "") / Path(place.path).expanduser()
        if not path.is_file():
            continue
        try:
            mistake = ignored(ConfigFile(path).text, place, host.product)
        except McpspyError:  # Not readable: it is not known whether servers are in it.
            continue
        if mistake is not None:
            found.append((path, mistake))
    return found


def _is_at(path: Path, place: str) -> bool:
    parts = Path(place).expanduser().parts if place.startswith("~") else Path(place).parts
    return path.expanduser().absolute().parts[-len(parts) :] == parts


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
        if _is_file_of(host, path):
            same.append(host)
        elif any(own.parts[-2:] == Path(real).parts[-len(own.parts[-2:]) :] for own in host.paths()):
            alike.append(host)
    return same + alike


def _is_file_of(host: Host, path: Path) -> bool:
    real = os.path.realpath(path)
    return any(os.path.realpath(own) == real for own in host.paths())


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
