"""One script: loading a Python file and finding its hooks."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

MESSAGE_HOOKS = ("request", "response", "notification", "http_request", "http_response", "stderr")
"""Hooks that are called for traffic."""

HOOKS = ("configure", "session_started", *MESSAGE_HOOKS, "session_ended", "reloaded")


class ScriptError(Exception):
    """A failure of a script, on one line."""


class Script:
    """A loaded script. Its hooks are functions of the module, or methods of the module's object `script`."""

    def __init__(self, name: str, path: str) -> None:
        """Load the script. Raise ScriptError."""
        self.name = name
        self.path = path
        self.modified = _modified(path)
        self.module, self.hooks = self._load()

    def reload(self) -> bool:
        """Load the script again if its file has changed; return True if it did.

        The hook `reloaded` gets the old module. Raise ScriptError; then the old code stays in use.
        """
        modified = _modified(self.path)
        if modified in (self.modified, None):
            return False
        self.modified = modified
        module, hooks = self._load()
        if "reloaded" in hooks:
            try:
                hooks["reloaded"](self.module)
            except (Exception, SystemExit) as error:
                raise ScriptError(self.failure("reloaded", error)) from None
        self.module, self.hooks = module, hooks
        return True

    def failure(self, hook: str, error: BaseException) -> str:
        """Return the line about an exception of a hook."""
        return failure(self.path, hook, error)

    def _load(self) -> tuple[ModuleType, dict[str, Callable[..., Any]]]:
        module = load(self.path)
        owners = [getattr(module, "script", None), module]
        hooks = {
            hook: next(getattr(owner, hook) for owner in owners if callable(getattr(owner, hook, None)))
            for hook in HOOKS
            if any(callable(getattr(owner, hook, None)) for owner in owners)
        }
        if not hooks:
            raise ScriptError(f"not loaded: defines none of the hooks {', '.join(HOOKS)}")
        return module, hooks


def load(path: str) -> ModuleType:
    """Return the module of a file that the user has named. Raise ScriptError."""
    module = ModuleType(f"mcpspy_script_{os.path.basename(path).removesuffix('.py')}")
    module.__file__ = path
    try:
        with open(path, "rb") as file:
            code = SourceFileLoader(module.__name__, path).source_to_code(file.read(), path)
        exec(code, module.__dict__)  # noqa: S102 - The user names the file.
    except (Exception, SystemExit) as error:
        raise ScriptError(failure(path, "not loaded", error)) from None
    return module


def failure(path: str, name: str, error: BaseException) -> str:
    """Return the line about an exception of a function: its name, type, text, and the line of the script."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = f" (line {lines[-1]})" if lines else ""
    text = " ".join(str(error).split())
    return f"{name}: {type(error).__name__}{': ' if text else ''}{text}{place}"


def _modified(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:  # An editor replaces the file.
        return None
