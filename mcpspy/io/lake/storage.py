"""Storage of a lake: a folder, or an object store (`s3://`, `gs://`, `az://`) by obstore.

A file is written under its name completely or not at all. Only one process changes a lake at a time: in a folder it
holds a file lock, in an object store a lease, an object that is created and renewed by conditional puts.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.extras import require
from mcpspy.io.recording.cache import replace_own
from mcpspy.io.settings import config_file

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from obstore import PutMode

SCHEMES = ("s3", "gs", "az")

INPUTS = "_inputs.jsonl"
"""The recordings that were added, with their stamps: a run with nothing new does not read them again."""
TEMPORARY = "_tmp"
LOCK = "_lock"

LEASE = 15.0
"""Seconds without a renewal after which a waiting process takes over the lease of another one."""
PATIENCE = 60.0
"""Seconds to wait for a process that renews its lease."""
POLL = 0.5
"""Seconds between two looks at the lease of another process."""

RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
TIMEOUTS = {"connect_timeout": "5s", "timeout": "120s"}


class StoredFile(NamedTuple):
    name: str
    """Path in the lake, with `/`."""
    size: int

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]


class Storage(Protocol):
    """The files of a lake by their names. Every method raises OSError; FileNotFoundError for a missing file."""

    location: str
    """The folder, or the URL: `storage_of` opens it in another process."""
    inputs: Path
    """A local file with the recordings that were added."""

    def read(self, name: str) -> bytes: ...

    def replace(self, name: str, data: bytes) -> None: ...

    def create(self, name: str, data: bytes) -> None:
        """Write a file that does not exist; raise FileExistsError if another process was faster."""

    def writing(self, name: str) -> Any:
        """Return a context manager: the path of a local file, which becomes the stored file at its end."""

    def move(self, name: str, new: str) -> None: ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; ignore those that do not exist."""

    def list(self, prefix: str) -> list[StoredFile]:
        """Return the files below a folder of the lake, sorted by name; "" for all."""

    def is_empty(self, marker: str) -> bool:
        """Return whether the lake has no files, except those whose names begin with the marker's."""

    def exclusive(self) -> Any:
        """Return a context manager that keeps other processes out. It raises BlockingIOError."""


def is_url(location: str | Path) -> bool:
    return isinstance(location, str) and "://" in location


def storage_of(location: str | Path) -> Storage:
    """Return the storage at a folder or URL. Raise UsageError for an unknown kind of URL, or CannotStart."""
    return ObjectStore(str(location)) if is_url(location) else Folder(Path(location).expanduser())


class Folder:
    def __init__(self, folder: Path) -> None:
        self.location, self._folder, self.inputs = str(folder.absolute()), folder, folder / INPUTS

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def replace(self, name: str, data: bytes) -> None:
        replace_own(self._folder / name, [data])

    def create(self, name: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.replace(name, data)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        aside = self._folder / TEMPORARY / f"{name.partition('/')[0]}-{os.getpid()}-{name.rpartition('/')[2]}"
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        aside.touch(mode=0o600)
        yield aside
        self._rename(aside, name)

    def move(self, name: str, new: str) -> None:
        self._rename(self._folder / name, new)

    def _rename(self, path: Path, name: str) -> None:
        (self._folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.replace(self._folder / name)

    def delete(self, names: Iterable[str]) -> None:
        folders = set()
        for name in names:
            path = self._folder / name
            path.unlink(missing_ok=True)
            folders |= {*path.parents} - {self._folder, *self._folder.parents}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            with suppress(OSError):  # It contains other files.
                folder.rmdir()

    def list(self, prefix: str) -> list[StoredFile]:
        root = self._folder / prefix
        found = []
        for path in sorted(Path(folder) / name for folder, _, names in os.walk(root) for name in names):
            with suppress(FileNotFoundError):  # Another process merged or deleted it meanwhile.
                found.append(StoredFile(path.relative_to(self._folder).as_posix(), path.stat().st_size))
        return found

    def is_empty(self, marker: str) -> bool:
        return not self._folder.exists() or all(
            path.name.startswith(marker) for path in self._folder.iterdir()
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        fd = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(fd)


class ObjectStore:
    """Objects below a prefix of a bucket. Credentials and endpoint come from the usual environment variables."""

    def __init__(self, location: str) -> None:
        scheme, _, path = location.partition("://")
        if scheme not in SCHEMES or not path.partition("/")[0]:
            raise UsageError(
                f"{sanitize(location)}: not a location of a lake",
                "use a folder, s3://BUCKET/PREFIX, gs://… or az://…",
            )
        require("obstore", "lake")
        import obstore
        from obstore.store import from_url

        self.location = location.rstrip("/")
        name = f"lake-{hashlib.sha256(self.location.encode()).hexdigest()[:16]}.jsonl"
        self.inputs = Path(config_file()).parent / name
        self._obstore = obstore
        with self._errors():
            self._store = from_url(self.location, **_options())
        self._lost = False

    def read(self, name: str) -> bytes:
        with self._errors():
            return bytes(self._obstore.get(self._store, name).bytes())

    def replace(self, name: str, data: bytes) -> None:
        self._put(name, data)

    def create(self, name: str, data: bytes) -> None:
        self._put(name, data, "create")

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with TemporaryDirectory(prefix="mcpspy-lake-") as folder:
            yield (path := Path(folder, "file"))
            self._put(name, path)

    def move(self, name: str, new: str) -> None:
        with self._errors():
            self._obstore.copy(self._store, name, new)
        self.delete([name])

    def delete(self, names: Iterable[str]) -> None:
        self._check_lease()
        with self._errors(), suppress(FileNotFoundError):
            self._obstore.delete(self._store, [*names])

    def list(self, prefix: str) -> list[StoredFile]:
        with self._errors():
            chunks = self._obstore.list(self._store, prefix or None)
            return sorted(StoredFile(each["path"], each["size"]) for chunk in chunks for each in chunk)

    def is_empty(self, marker: str) -> bool:
        with self._errors():
            first = next(iter(self._obstore.list(self._store)), [])
            return all(each["path"].startswith(marker) for each in first)

    def filesystem(self) -> Any:
        """Return the store as a file system of fsspec, which DuckDB reads."""
        require("fsspec", "query")
        from obstore.fsspec import FsspecStore

        return FsspecStore(self.location.partition("://")[0], **_options())  # type: ignore[call-overload]  # A str.

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self._lost, self._lease = False, self._acquired()
        ended = threading.Event()
        renewal = threading.Thread(target=self._keep, args=(ended,), daemon=True)
        renewal.start()
        try:
            yield
            self._check_lease()
        finally:
            ended.set()
            renewal.join()
            if not self._lost:
                with suppress(FileExistsError, FileNotFoundError):  # Another process took it over.
                    self._renew()
                    self.delete([LOCK])

    def _acquired(self) -> dict[str, Any]:
        """Create the lease, or take over one that is not renewed; return its version. Raise BlockingIOError."""
        seen, began, changed = None, time.monotonic(), time.monotonic()
        while True:
            with suppress(FileExistsError, FileNotFoundError):
                return self._put(LOCK, _holder(), "create")
            with suppress(FileExistsError, FileNotFoundError), self._errors():
                found = self._obstore.head(self._store, LOCK)
                version = _version(found)
                now = time.monotonic()
                if version != seen:
                    seen, changed = version, now
                if now - changed >= LEASE:
                    return self._put(LOCK, _holder(), version)  # type: ignore[arg-type]  # Its keys.
                if now - began >= PATIENCE:
                    raise BlockingIOError(errno.EAGAIN, "another mcpspy is changing this lake")
            time.sleep(POLL)

    def _renew(self) -> None:
        self._lease = self._put(LOCK, _holder(), self._lease)  # type: ignore[arg-type]  # Its keys.

    def _keep(self, ended: threading.Event) -> None:
        renewed = time.monotonic()
        while not ended.wait(LEASE / 4):
            try:
                self._renew()
                renewed = time.monotonic()
            except (FileExistsError, FileNotFoundError):
                self._lost = True
            except OSError:  # Without a network for a moment: the lease is lost only after its time.
                self._lost = time.monotonic() - renewed >= LEASE
            if self._lost:
                return

    def _check_lease(self) -> None:
        if self._lost:
            raise OSError(errno.EIO, "another mcpspy took over this lake, because this one did not respond")

    def _put(self, name: str, data: bytes | Path, mode: PutMode = "overwrite") -> dict[str, Any]:
        self._check_lease()
        with self._errors():
            return _version(self._obstore.put(self._store, name, data, mode=mode))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the errors of obstore as OSError with a reason of one line."""
        from obstore.exceptions import (
            AlreadyExistsError,
            BaseError,
            PermissionDeniedError,
            PreconditionError,
            UnauthenticatedError,
        )

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such object or bucket") from None
        except (AlreadyExistsError, PreconditionError):
            raise FileExistsError(errno.EEXIST, "written by another process meanwhile") from None
        except (PermissionDeniedError, UnauthenticatedError):
            raise PermissionError(
                errno.EACCES, "access denied: check the credentials in the environment"
            ) from None
        except (BaseError, ValueError) as error:
            if "<Code>NoSuchBucket</Code>" in str(error):
                raise OSError(errno.EIO, "no such bucket") from None
            reason = str(error).partition("\n")[0].partition(": <?xml")[0]
            raise OSError(errno.EIO, f"object store not usable: {sanitize(reason)}") from None


def _options() -> dict[str, Any]:
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    options: dict[str, Any] = {**TIMEOUTS, "allow_http": endpoint.startswith("http://")}
    return {"client_options": options, "retry_config": RETRIES}


def _version(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the version of an object, as a condition of the next put: the stores use one of the two values."""
    return {name: found[name] for name in ("e_tag", "version") if found[name] is not None}


def _holder() -> bytes:
    """Return a value that differs from every other one: two renewals must not have the same ETag."""
    return f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}\n".encode()
