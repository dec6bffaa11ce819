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
    from collections.abc import Callable
    from typing import Any


PYPROJECT = "pyproject.toml"
"""Name of the file in which the tables of mcpspy are below `tool.mcpspy`."""


def config_file() -> str:
    """Return the path of the user's `mcpspy.toml`."""
    return os.path.join(_user_folder("XDG_CONFIG_HOME", "~/.config"), "mcpspy", "mcpspy.toml")


def project_file() -> str | None:
    """Return the settings of the project: the nearest `mcpspy.toml`, or `pyproject.toml` with a table `tool.mcpspy`.

    Searches the current folder and those above it, up to one with `.git`. Raises UsageError or CannotStart.
    """
    from pathlib import Path

    try:
        here = Path.cwd()
    except OSError:  # The folder was deleted.
        return None
    for folder in (here, *here.parents):
        if (path := folder / "mcpspy.toml").is_file():
            return str(path)
        if (path := folder / PYPROJECT).is_file() and _settings(str(path)):
            return str(path)
        if (folder / ".git").exists():
            break
    return None


def sessions_folder(chosen: str | None = None) -> str:
    """Return the folder of recordings: `chosen`, else `$MCPSPY_DIR`, else the user's data folder."""
    if chosen or (chosen := os.environ.get("MCPSPY_DIR")):
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(_user_folder("XDG_DATA_HOME", "~/.local/share"), "mcpspy", "sessions")


def state_folder(name: str) -> str:
    """Return a folder for what mcpspy keeps between runs, which is neither a setting nor a recording."""
    return os.path.join(_user_folder("XDG_STATE_HOME", "~/.local/state"), "mcpspy", name)


def slug(name: str) -> str:
    """Return the name in a form that fits into a file name."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in name)
    return safe.strip("-._")[:40] or "session"


class UnsafeRegex:
    """The decision on regular expressions that RE2 cannot run: `--unsafe-regex`, or `unsafe_regex` of the settings.

    Reads the settings only for such a pattern, and warns about each pattern once.
    """

    def __init__(
        self,
        is_allowed: bool = False,
        say: Callable[[str], None] | None = None,
        config: str | None = None,
    ) -> None:
        self.is_allowed = is_allowed
        self.config = config
        """Path of the settings; None selects the user's `mcpspy.toml`."""
        self.say = say
        """Prints a warning; None discards it."""
        self._warned: set[str] = set()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnsafeRegex) and (self.is_allowed, self.config) == (
            other.is_allowed,
            other.config,
        )

    __hash__ = None  # type: ignore[assignment]  # It can change.

    def __call__(self, pattern: str, construct: str) -> bool:
        """Return True if Python's `re` may run the pattern. Raises UsageError or CannotStart for bad settings."""
        if not self.is_allowed and not flag("unsafe_regex", self.config):
            return False
        if self.say is not None and pattern not in self._warned:
            from mcpspy.core.sanitize import sanitize

            self._warned.add(pattern)
            self.say(sanitize(f"warning: /{pattern}/: {construct} runs on Python's re, which may never end"))
        return True


def flag(name: str, path: str | None = None) -> bool:
    """Return a switch of the settings; False if it is not set. Raises UsageError or CannotStart."""
    value = _settings(path).get(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{path or config_file()}: {name} must be true or false", f"write {name} = true")
    return value


def table(name: str, path: str | None = None) -> dict[str, Any]:
    """Return a table of the settings, or an empty one. Raises UsageError or CannotStart."""
    found = _settings(path).get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"{path or config_file()}: {name} must be a table", f"write [{name}]")
    return found


def _settings(path: str | None) -> dict[str, Any]:
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
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}", "the file must be valid TOML") from None
    for name in ("tool", "mcpspy") if file.name == PYPROJECT else ():
        settings = settings.get(name, {})
        if not isinstance(settings, dict):
            raise UsageError(f"{file}: {name} must be a table", "write [tool.mcpspy.lint]")
    return settings


def _user_folder(variable: str, default: str) -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # A relative path counts as unset (XDG base directories).
        return base
    return os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else default)
