"""Runs of pytest with a suite that uses the plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.ui.pytest_plugin import conversing

SERVER = (sys.executable, str(Path(__file__).parents[2] / "servers" / "changing.py"))


class Runs:
    """Runs of a suite, in a folder."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        (folder / "test_suite.py").write_text(suite, encoding="utf-8")
        (folder / "pytest.ini").write_text(
            "[pytest]\nmcpspy_config = mcpspy.toml\nfilterwarnings = error\n", encoding="utf-8"
        )
        (folder / "mcpspy.toml").write_text('[redact]\nkeys = ["pin"]\n', encoding="utf-8")
        shutil.copy(conversing.__file__, folder)

    def pytest(self, *options: str, **environment: str) -> str:
        """Run pytest with only the plugins under test; return its output."""
        plugins = ("-p", "xdist", "-p", "mcpspy.ui.pytest_plugin", "-p", "no:cacheprovider")
        given = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST_"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", *plugins, "--basetemp", "tmp", *options],
            cwd=self.folder,
            env={**given, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SERVER": SERVER[1], **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
        return done.stdout

    def recordings(self) -> dict[str, bytes]:
        """Return the content of each file, by name."""
        return {path.name: path.read_bytes() for path in self.folder.glob("[!t]*/**/*.jsonl")} | {
            path.name: path.read_bytes() for path in self.folder.glob("*.jsonl")
        }
