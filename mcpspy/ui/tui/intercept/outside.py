"""A text in the editor of a person's own choice.

Owns which one that is, and the file it edits: nobody else can read it, and it
is gone afterwards.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from mcpspy.errors import CannotStart


def editor(environ: Mapping[str, str] = os.environ) -> str:
    """Return the command of the editor; empty if none was chosen."""
    return environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()


def edit_outside(command: str, text: str, suspended: Callable[[], AbstractContextManager[None]]) -> str:
    """Return the text as it was saved; raise CannotStart. `suspended` gives the terminal away, and takes it back."""
    descriptor, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".json")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        with suspended():
            code = subprocess.run([*shlex.split(command), path], check=False).returncode
        if code != 0:
            raise CannotStart(f"{command}: exit code {code}", "the text is as it was")
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CannotStart(f"{command}: what was saved is not UTF-8", "the text is as it was") from None
    except (OSError, ValueError) as error:  # ValueError: quotes that do not match.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStart(f"{command}: {why}", "EDITOR names the editor to use") from None
    finally:
        Path(path).unlink(missing_ok=True)
