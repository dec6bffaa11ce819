"""Saved calls: the contents of their files (docs/call.md)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, field

from mcpspy.analysis.diff import ignored
from mcpspy.core.hostconfig.yaml import resolved
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError

CALLS = "tests/calls"
"""The folder of saved calls."""

ENDINGS = (".yaml", ".yml", ".json")


class Expectation(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The expected response."""

    result: Any = UNSET
    """The result as a whole."""
    error: Any = UNSET
    """The error as a whole."""
    contains: list[str] = []
    """Texts that must be in the texts of the result, or in the message of the error."""
    isError: bool | UnsetType = UNSET  # noqa: N815 - MCP's own name.
    """True if the result must be a tool error."""


class SavedCall(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The contents of a file."""

    command: list[str] = []
    url: str = ""
    entry: str = ""
    """HOST/SERVER of a host's configuration."""
    tool: str = ""
    method: str = ""
    """A method other than `tools/call`."""
    arguments: dict[str, Any] = {}
    """Arguments of the tool, or params of the method."""
    task: dict[str, Any] | UnsetType = UNSET
    """The task that the tool requires (2025-11-25)."""
    expect: Expectation = field(default_factory=Expectation)
    ignore: list[str] = []
    """Patterns of values that may differ, as for `mcpspy diff --ignore-path`."""
    compare: Literal["all", "dates", "volatile"] = "all"
    """`dates` and `volatile`: what the options of `mcpspy diff` ignore."""

    @property
    def server(self) -> tuple[list[str], str | None, str | None]:
        """The command, or the URL, or the entry, with the values of its variables."""
        command = [os.path.expandvars(word) for word in self.command]
        return command, os.path.expandvars(self.url) or None, self.entry or None

    @property
    def request(self) -> tuple[str, dict[str, Any]]:
        if self.tool:
            task = {} if self.task is UNSET else {"task": self.task}
            return "tools/call", {"name": self.tool, "arguments": self.arguments, **task}
        return self.method, self.arguments


def read_saved(path: Path) -> SavedCall:
    """Return the contents of a file. Raise UsageError with its name and what is wrong."""
    try:
        saved = convert(resolved(path.read_text(encoding="utf-8")), SavedCall)
        for pattern in saved.ignore:
            ignored(pattern)
    except FileNotFoundError:
        known = sorted(each.stem for each in path.parent.glob("*.yaml"))
        hint = f"saved here: {', '.join(known)}" if known else "save one with --save NAME"
        raise UsageError(sanitize(f"{path}: no such file"), sanitize(hint)) from None
    except OSError as error:
        raise CannotStart(sanitize(f"{path}: {error.strerror}")) from None
    except (ValidationError, ValueError) as error:
        raise UsageError(sanitize(f"{path}: {error}"), "docs/call.md has the members") from None
    except McpspyError as error:
        raise UsageError(sanitize(f"{path}: {error}")) from None
    if not saved.tool and not saved.method:
        raise UsageError(sanitize(f"{path}: no tool and no method"), "name one")
    return saved
