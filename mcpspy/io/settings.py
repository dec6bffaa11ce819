"""The user's settings in `mcpspy.toml`, and the default folder and names of recordings.

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

LAUNCHERS = frozenset(
    "bash bun bunx cmd deno docker env node npm npx pipx pnpm podman python python3 sh tsx uv uvx yarn".split()
)
"""Commands that start a server but are not one. Sessions are not named after them."""

LAUNCHER_WORDS = frozenset("dlx exec run tool x".split())

_ENDINGS = frozenset("bat cjs cmd exe js mjs ps1 py rb sh ts".split())


def config_file() -> str:
    """Return the path of the user's `mcpspy.toml`."""
    return os.path.join(_user_folder("XDG_CONFIG_HOME", "~/.config"), "mcpspy", "mcpspy.toml")


def sessions_folder(chosen: str | None = None) -> str:
    """Return the folder of recordings: `chosen`, else `$MCPSPY_DIR`, else the user's data folder."""
    if chosen or (chosen := os.environ.get("MCPSPY_DIR")):
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(_user_folder("XDG_DATA_HOME", "~/.local/share"), "mcpspy", "sessions")


def session_name(command: list[str]) -> str:
    """Return the session name for a command: the name of the server, not of its launcher.

    `npx -y @modelcontextprotocol/server-memory` is `server-memory`;
    `python -m weather.server` is `weather.server`; `/opt/bin/thing --x` is `thing`.
    """
    program = _stem(command[0])
    if program.rstrip("0123456789.") not in LAUNCHERS and program not in LAUNCHERS:
        return program
    words = [word for word in command[1:] if not word.startswith("-") and word not in LAUNCHER_WORDS]
    return _stem(words[0]) if words else program


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


def _stem(word: str) -> str:
    base = word.replace("\\", "/").rstrip("/").rpartition("/")[2]
    package, at, _version = base.partition("@")
    stem, dot, ending = (package if at and package else base).rpartition(".")
    return stem if dot and stem and ending.lower() in _ENDINGS else package or base
