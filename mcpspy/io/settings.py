"""The user's settings, in `mcpspy.toml`.

Owns reading the file, and saying in one line what is wrong with it. What a
table means is its reader's.
"""

from __future__ import annotations

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.folder import config_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def table(name: str, path: str | None = None) -> dict[str, Any]:
    """Return a table of the settings; empty if there is none. Raises UsageError or CannotStart."""
    import tomllib
    from pathlib import Path

    file = Path(path or config_file())
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files are") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "is it yours to read?") from None
    try:
        found = tomllib.loads(text).get(name, {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}", "it should be TOML") from None
    if not isinstance(found, dict):
        raise UsageError(f"{file}: {name} is no table", f"write [{name}]")
    return found
