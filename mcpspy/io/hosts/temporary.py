"""Entries in configurations of hosts that last as long as mcpspy serves, and their later removal.

Before a configuration changes, a file in the state folder states what will be entered. The process that serves locks
it, so that a later mcpspy recognises the entry of a process that was killed, and removes it (`remove_left`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path

from msgspec import DecodeError, Struct, structs
from msgspec.json import decode, encode

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.entry import added, removed
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.hosts.configuration import ConfigTarget, find
from mcpspy.io.recording.writer import is_live, try_lock
from mcpspy.io.settings import slug, state_folder


class EntryNote(Struct, frozen=True):
    """An entry that is, or is about to be, in a configuration."""

    host: str
    """Name of the host, or path of the file."""
    path: str
    """The file that has the entry."""
    server: str
    argv: list[str]
    backup: str = ""
    """The file with the configuration without the entry; empty until the configuration is written."""
    digest: str = ""
    """Digest of the configuration with the entry."""


class TemporaryEntry:
    """An entry of this process."""

    def __init__(self, host: str, name: str, argv: Sequence[str]) -> None:
        """Enter a server into the configuration of a host or into a file. Raise UsageError or CannotStart.

        A server that has the name already keeps it: the entry then gets a number.
        """
        target = find(host)
        names = {server.name for server in target.servers()}
        self.server = next(each for each in _names(name) if each not in names)
        self.product = target.product
        self.path = target.file.path
        new = _edited(target, lambda text, place: added(text, place, self.server, argv))
        self._note = EntryNote(host, os.path.abspath(self.path), self.server, [*argv])
        self._fd, self._file = _begun(self._note)
        try:
            backup = target.file.replace(new)
            self._note = structs.replace(self._note, backup=str(backup), digest=_digest(new))
            _write(self._fd, self._note)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the entry, unless someone else has changed it. Raise UsageError or CannotStart: then it stays noted."""
        _remove(self._note)
        self._file.unlink(missing_ok=True)
        os.close(self._fd)


def remove_left() -> Iterator[str]:
    """Remove the entries of processes that were killed; yield one line for each, also if it cannot be removed."""
    try:
        files = sorted(Path(_folder()).iterdir())
    except OSError:  # There has never been an entry.
        return
    for file in files:
        try:
            fd = os.open(file, os.O_RDWR)
        except OSError:  # Removed by another process in the meantime.
            continue
        try:
            if is_live(fd) or not try_lock(fd):
                continue
            note = decode(file.read_bytes(), type=EntryNote)
            was_there = _remove(note)
            file.unlink(missing_ok=True)
            if was_there:
                yield f"{note.path}: removed {note.server}, which an mcpspy that was killed had entered"
        except DecodeError:  # It was killed before it changed anything.
            file.unlink(missing_ok=True)
        except McpspyError as error:
            yield f"cannot remove {note.server}, which an mcpspy that was killed had entered: {error}"
        finally:
            os.close(fd)


def _remove(note: EntryNote) -> bool:
    """Remove an entry; return whether it was there. Raise UsageError or CannotStart."""
    if not os.path.exists(note.path):
        return False
    target = find(note.host)
    if os.path.abspath(target.file.path) != note.path:
        target = find(note.path)
    found = next((each for each in target.servers() if each.name == note.server), None)
    if found is None or found.argv != note.argv:
        return False
    new = ""
    if note.digest == _digest(target.file.text):  # Nothing else has changed: the file becomes what it was.
        with suppress(OSError, UnicodeDecodeError):
            new = Path(note.backup).read_bytes().decode()
    target.file.replace(new or _edited(target, lambda text, place: removed(text, place, note.server)))
    return True


def _edited(target: ConfigTarget, edit: Callable[[str, ServersLocation], str]) -> str:
    """Return the edited text of a configuration; name the file in an error."""
    try:
        return edit(target.file.text, target.location)
    except UsageError as error:
        raise UsageError(f"{target.file.path}: {error.args[0]}", error.hint) from None


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folder() -> str:
    return state_folder("entries")


def _begun(note: EntryNote) -> tuple[int, Path]:
    """Write a note to a new file that this process locks; return the descriptor and the file. Raise CannotStart."""
    folder = _folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = Path(folder, f"{slug(note.server)}-{os.getpid()}-{os.urandom(4).hex()}.json")
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(fd)
        _write(fd, note)
    except OSError as error:
        raise CannotStart(f"{folder}: {error.strerror}", "nothing was changed") from None
    return fd, file


def _write(fd: int, note: EntryNote) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    data = encode(note)
    os.truncate(fd, 0)
    while data:
        data = data[os.write(fd, data) :]
    os.fsync(fd)
