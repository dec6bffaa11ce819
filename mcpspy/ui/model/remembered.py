"""The values of dialogs, remembered per server in files that only the user may read.

Secrets, headers and variables are never remembered: the forms leave them out.
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode, encode

from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.io.settings import state_folder

FormLike = TypeVar("FormLike", bound=Struct)


def read_form(kind: str, header: Header, form: type[FormLike]) -> FormLike | None:
    """Return the last form of this kind for a server; None if there is none, or it cannot be read."""
    with suppress(OSError, DecodeError, ValidationError):
        return decode(_file(kind, header).read_bytes(), type=form)
    return None


def keep_form(kind: str, header: Header, form: Struct) -> None:
    """Keep a form for a server. Raises OSError."""
    path = _file(kind, header)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = path.with_suffix(f".{os.getpid()}")
    fd = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(encode(form))
    waiting.replace(path)


def has_secret(server: str) -> bool:
    """Return whether a command line or URL may contain a secret."""
    try:
        words = shlex.split(server)
    except ValueError:
        return True
    return redacted_command(words) != words or server != redacted_url(server)


def _file(kind: str, header: Header) -> Path:
    """Return the file with the form of a server."""
    which = json.dumps([header.name, header.command, header.upstream]).encode()
    return Path(state_folder(kind)) / f"{blake2b(which, digest_size=8).hexdigest()}.json"
