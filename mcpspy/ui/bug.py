"""The report of a bug in mcpspy: a line for the user, and a traceback in a private file."""

from __future__ import annotations

import sys
import tempfile
import traceback

from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize


def summary_of(error: Exception) -> str:
    """Return the type and text of an error, redacted, on one line."""
    return sanitize(redacted_text(f"{type(error).__name__}: {error}", sys.argv[1:]))


def keep_traceback() -> str:
    """Write the traceback, redacted, to a file that only the user can read: its error may contain traffic."""
    try:
        fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".log")
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(redacted_text(traceback.format_exc(), sys.argv[1:]))
    except OSError:
        return "its traceback could not be saved"
    return f"please report it with {path}"
