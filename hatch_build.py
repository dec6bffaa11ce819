"""Add the completion of shells to the wheel, where shells look for it. argcomplete writes its code at build time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from argcomplete.shell_integration import shellcode
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {
    "bash": "share/bash-completion/completions/mcpspy",
    "zsh": "share/zsh/site-functions/_mcpspy",
    "fish": "share/fish/vendor_completions.d/mcpspy.fish",
}


class CompletionHook(BuildHookInterface[Any]):
    """Writes one file a shell for the build, and removes them after it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel's data, which an installer puts below its prefix."""
        self._folder = tempfile.TemporaryDirectory(prefix="mcpspy-completion-")
        for shell, place in PLACES.items():
            path = Path(self._folder.name) / shell
            path.write_text(shellcode(["mcpspy"], shell=shell), encoding="utf-8")
            build_data["shared_data"][str(path)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files."""
        self._folder.cleanup()
