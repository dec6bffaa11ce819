"""OAuth tokens and registrations of the user: in the system's keyring, or in files of mode 0600.

Each server has a file in the folder `oauth` beside the settings. Secrets are in it only if there is no keyring.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from mcpspy.errors import CannotStart
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.recorder import say
from mcpspy.io.settings import config_file, slug

if sys.platform != "win32":
    import fcntl

SERVICE = "mcpspy"
"""The name of the entries in the keyring."""

Entry = dict[str, Any]


class TokenStore:
    """The entry of one server: a JSON object, whose member `token` is secret, and `client` may be."""

    SECRETS = ("token", "client")

    def __init__(self, resource: str, folder: Path | None = None) -> None:
        """Create a store for the URL of a server. `folder` is the user's by default."""
        self._resource = resource
        digest = hashlib.sha256(resource.encode()).hexdigest()[:16]
        self._folder = folder or Path(config_file()).parent / "oauth"
        # Neither a password nor a query, which may have a key: a name of a file is in listings, backups and errors.
        host, slash, path = resource.partition("://")[2].partition("?")[0].partition("/")
        self._path = self._folder / f"{slug(host.rpartition('@')[2] + slash + path)}-{digest}.json"

    def load(self) -> Entry:
        """Return the entry; empty if there is none, or if it cannot be read."""
        try:
            entry = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            say(f"{self._path}: {error}; sign in again")
            return {}
        if not isinstance(entry, dict):
            return {}
        if entry.pop("keyring", False):
            entry |= self._from_keyring()
        return entry

    def save(self, entry: Entry) -> None:
        """Write the entry. Raises CannotStart."""
        secrets = {name: entry[name] for name in self.SECRETS if name in entry}
        public = {name: value for name, value in entry.items() if name not in secrets}
        is_in_keyring = self._to_keyring(json.dumps(secrets))
        stored = {**public, "keyring": True} if is_in_keyring else {**public, **secrets}
        self._make_folder()
        save(self._path, [json.dumps({"resource": self._resource, **stored}, indent=2), "\n"], force=True)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Keep other processes of the user from signing in to the same server."""
        self._make_folder()
        if sys.platform == "win32":
            yield
            return
        lock = self._path.with_suffix(".lock")
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise CannotStart(f"{lock}: {error.strerror}", "check the permissions") from None
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.2)
            yield
        finally:
            os.close(fd)

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(f"{self._folder}: {error.strerror}", "check the permissions") from None

    def _from_keyring(self) -> Entry:
        import keyring

        try:
            secrets = json.loads(keyring.get_password(SERVICE, self._resource) or "{}")
        except Exception as error:  # Each backend has its own exceptions.
            say(f"the keyring cannot be read: {error}; sign in again")
            return {}
        return secrets if isinstance(secrets, dict) else {}

    def _to_keyring(self, secrets: str) -> bool:
        """Return False if there is no keyring that takes the secrets."""
        with suppress(Exception):  # As above; the file is used then.
            import keyring

            if keyring.get_keyring().priority >= 1:
                keyring.set_password(SERVICE, self._resource, secrets)
                return True
        return False
