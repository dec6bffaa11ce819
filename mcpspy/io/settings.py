"""The user's settings in `mcpspy.toml`, and the default folder of recordings.

Computes the result of `platformdirs.user_data_dir` (checked by a test) without its import, which takes 21 ms:
every host starts `mcpspy run` once per server.
"""

from __future__ import annotations

import os
import sys

from mcpspy.errors import CannotStart, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def config_file() -> str:
    """Return the path of the user's `mcpspy.toml`."""
    return os.path.join(_user_folder("XDG_CONFIG_HOME", "~/.config"), "mcpspy", "mcpspy.toml")


def sessions_folder(chosen: str | None = None) -> str:
    """Return the folder of recordings: `chosen`, else `$MCPSPY_DIR`, else the user's data folder."""
    if chosen or (chosen := os.environ.get("MCPSPY_DIR")):
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(_user_folder("XDG_DATA_HOME", "~/.local/share"), "mcpspy", "sessions")


def slug(name: str) -> str:
    """Return the name in a form that fits into a file name."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in name)
    return safe.strip("-._")[:40] or "session"


def table(name: str, path: str | None = None) -> dict[str, Any]:
    """Return a table of the settings, or an empty one. Raises UsageError or CannotStart."""
    import tomllib
    from pathlib import Path

    file = Path(path or config_file())
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files must be UTF-8") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "check the permissions") from None
    try:
        found = tomllib.loads(text).get(name, {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}", "the file must be valid TOML") from None
    if not isinstance(found, dict):
        raise UsageError(f"{file}: {name} must be a table", f"write [{name}]")
    return found


def _user_folder(variable: str, default: str) -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # A relative path counts as unset (XDG base directories).
        return base
    return os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else default)
