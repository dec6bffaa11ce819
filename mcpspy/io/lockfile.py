"""The lockfile as mcpspy writes it: after a review by `mcpspy trust`, or at the first use of a server."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.core.intercept.trust_guard import TrustGuard
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.core.trust.lock import TrustedServer, digest, find, read_lock, select
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.recorder import say

SUMMARY = 100
"""Maximum number of characters of a summary."""

if TYPE_CHECKING:
    from mcpspy.analysis.trust import Interface


class ServerIdentity:
    """The command or the URL of a server, and its name."""

    def __init__(
        self, name: str = "", *, command: list[str] | None = None, cwd: str | None = None, url: str = ""
    ) -> None:
        self.name = name
        self._command = command
        self._cwd = cwd
        self._url = url

    def __str__(self) -> str:
        return " ".join(redacted_command(self._command)) if self._command else redacted_url(self._url)

    @property
    def names(self) -> list[str]:
        """The texts that may identify the server in a lockfile, the best one first."""
        return list(filter(None, [str(self), self.name]))

    def fields(self) -> dict[str, Any]:
        """Return the identity as it is written, with the digests of the files in the command."""
        if not self._command:
            return {"url": redacted_url(self._url)} if self._url else {}
        found: dict[str, Any] = {"command": redacted_command(self._command)}
        files = {
            word: "sha256:" + sha256(path.read_bytes()).hexdigest()
            for word in self._command
            if (path := Path(self._cwd or ".", word)).is_file()
        }
        if Path(self._command[0]).stem in ("npx", "uvx", "uv"):
            words = [word for word in self._command[1:] if not word.startswith("-")]
            found["package"] = next((word for word in words if word not in ("run", "exec")), "")
        return {**found, "files": files} if files else found

    def changes(self, known: TrustedServer, server: str) -> list[str]:
        """Return what is not the same program as at the review, one line each; `server` is its name and version."""
        now = self.fields()
        found = []
        pairs = ("server", known.server, server), ("package", known.package, now.get("package"))
        found += [f"{what}: {old} → {new}" for what, old, new in pairs if old and new and old != new]
        digests = now.get("files", {})
        for word, old in known.files.items():
            if digests.get(word) != old:
                found.append(f"file {word}: {'changed' if word in digests else 'not found'}")
        return found


class FirstUse:
    """Trusts what a server lists first, and adds it to the lockfile."""

    def __init__(self, file: str, identity: ServerIdentity, say: Callable[[str], None]) -> None:
        self._file = Path(file)
        self._identity = identity
        self._say = say

    def __call__(self, frames: list[Frame]) -> TrustedServer:
        """Return the server with the listings in these messages as trusted. Failures are only printed."""
        # Not at the top: a server that is in the lockfile does not wait for them.
        from mcpspy.analysis.trust import interface_of, security_findings
        from mcpspy.core.session.session import Session

        session = Session()
        for frame in frames:
            session.add(frame)
        found, name = interface_of(session), self._identity.name
        for finding in security_findings(session):
            self._say(sanitize(f"trust: {name}: {finding.code} {finding.severity}: {finding.message}"))
        try:
            with _exclusive(self._file.parent):
                text = read_text(self._file)
                known = find(read_lock(text, str(self._file)), self._identity.names) or TrustedServer()
                new = found.items.keys() - set(known.listed)
                if not new:  # Another session of the server was faster.
                    return known
                _keep(known, found)
                text = updated(text, name, found, self._identity, listed=found.items)
                save(self._file, [text], force=True)
            counts = ", ".join(f"{each} ({len(found.items[each])})" for each in sorted(new))
            self._say(f"trust: {name}: first use: trusted as listed, in {self._file}: {counts}")
        except (McpspyError, OSError) as error:
            self._say(f"trust: {error}; {name} is trusted as listed for this session only")
            text = updated("version = 1\n", name, found, self._identity, listed=found.items)
        return read_lock(text, str(self._file))[name]


def guard(
    file: str,
    identity: ServerIdentity,
    on_change: str,
    *,
    first_use: bool,
    may_be_unknown: bool,
    folder: str | None = None,
) -> TrustGuard | None:
    """Return the check of one session; None for an unknown server. Raise UsageError or CannotStart.

    `folder` is that of the recordings, unless it is the default one.
    """
    if not first_use and not Path(file).exists():
        raise CannotStart(f"{file}: no such lockfile", "write it with mcpspy trust")
    servers = read_lock(read_text(Path(file)), file)
    server = find(servers, identity.names)
    words = ["mcpspy", "trust", "--lock", file, *(["--dir", folder] if folder else []), identity.name]
    review = shlex.join(words)
    if first_use and identity.names:
        learn = FirstUse(file, identity, say)
        return TrustGuard(server or TrustedServer(), on_change, say, learn=learn, review=review)
    if server is None and may_be_unknown:
        if identity.names:
            say(f"trust: {file}: no entry for {identity}: it is not checked")
        return None
    return TrustGuard(select(servers, identity.names, file), on_change, say, review=review)


def read_text(file: Path) -> str:
    """Return the text of a lockfile; if it is missing, that of an empty one. Raise UsageError or CannotStart."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "version = 1\n"
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files must be UTF-8") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "is the path right?") from None


def updated(
    text: str, name: str, found: Interface, identity: ServerIdentity, *, listed: Collection[str]
) -> str:
    """Return the lockfile with this interface as trusted. The policy, volatile members and comments remain."""
    import tomlkit

    document = tomlkit.parse(text)
    servers = document.setdefault("servers", tomlkit.table(is_super_table=True))
    old = servers.get(name, {})
    table = tomlkit.table()
    for key, value in identity.fields().items():
        table[key] = value
    optional = {
        "server": found.server or old.get("server"),
        "revision": found.revision,
        "instructions": found.instructions,
    }
    for key, value in optional.items():
        if value:
            table[key] = value
    table["capabilities"] = json.dumps(found.capabilities, sort_keys=True)
    members = [each.member for each in LISTINGS.values() if each.member in listed]
    table["listed"] = members
    if "volatile" in old:
        table["volatile"] = old["volatile"]
    if "policy" in old:
        table["policy"] = old["policy"]
    for listing in LISTINGS.values():
        items = found.items.get(listing.member, {}) if listing.member in members else {}
        kept = {each.get(listing.key): each.get("volatile") for each in old.get(listing.member, [])}
        if items:
            tables = table[listing.member] = tomlkit.aot()
            for key in sorted(items):
                tables.append(_item(listing.key, key, items[key], kept.get(key)))
    servers[name] = table
    return tomlkit.dumps(document)


def _item(key: str, name: str, definition: dict[str, Any], volatile: Any) -> Any:
    import tomlkit

    table = tomlkit.table()
    table[key] = name
    table["digest"] = digest(definition)
    front = definition.get("frontmatter")  # Of a skill.
    texts = front if isinstance(front, dict) else definition
    description = " ".join(str(texts.get("description", "")).split())
    table["summary"] = description[:SUMMARY]
    schema = definition.get("inputSchema")
    if isinstance(schema, dict) and isinstance(properties := schema.get("properties"), dict):
        table["arguments"] = [*properties]
    if volatile is not None:
        table["volatile"] = volatile
    table["definition"] = json.dumps(definition, sort_keys=True)
    return table


def _keep(known: TrustedServer, found: Interface) -> None:
    """Add what was trusted before to an interface; the handshake of an entry with listings stays as it was."""
    for member in known.listed:
        found.items[member] = {name: item.definition for name, item in known.items[member].items()}
    if known.listed:
        found.instructions, found.capabilities = known.instructions, known.capabilities
        found.revision = known.revision


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Let no other mcpspy write a lockfile in this folder meanwhile. Raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:
        with _exclusive_on_windows(folder):
            yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _exclusive_on_windows(folder: Path) -> Iterator[None]:
    """Lock a file in the folder, because Windows does not open folders. Waits for up to ten seconds."""
    import msvcrt

    lock: Any = msvcrt  # Its functions exist only for a type checker on Windows.
    handle = os.open(folder / ".mcpspy-lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock.locking(handle, lock.LK_LOCK, 1)
        yield
        lock.locking(handle, lock.LK_UNLCK, 1)
    finally:
        os.close(handle)
