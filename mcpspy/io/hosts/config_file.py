"""A host's configuration file, read and replaced as a whole.

A new version is written next to the file, synced and renamed, with the same owner and permissions. Links are
followed. A file that has changed since it was read is not replaced. The old version is backed up in a private
folder: such files contain secrets, and a copy next to the file could be committed with the project.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from mcpspy.errors import CannotStart, UsageError
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
        if not is_forced and self._is_read_only():
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

    def _is_read_only(self) -> bool:
        # The superuser may write to any file, but a file without permission to write was made so for a reason.
        return not os.access(self.real, os.W_OK) or not os.stat(self.real).st_mode & 0o222

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
