"""Test of the built wheel in an empty environment, as users install it.

Builds the wheel, installs it with its dependencies and no extra, and uses it like a
user: wrap a command, list, show. `make wheel` runs it; it needs no peers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def run(*command: str | Path, stdin: bytes = b"", cwd: Path = ROOT, **environment: str) -> bytes:
    """Run a command to its end; exit with its output if it failed."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, timeout=300, cwd=cwd, env={**os.environ, **environment}
    )
    if done.returncode:
        sys.exit(
            f"wheel: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr.decode()}"
        )
    return done.stdout


def main() -> None:
    """Build, install and use the wheel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "bare", with_pip=True)
        scripts = folder / "bare" / ("Scripts" if os.name == "nt" else "bin")
        pip = (scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--constraint", ROOT / "constraints.txt", wheel)
        mcpspy, sessions = scripts / "mcpspy", str(folder / "sessions")

        echoed = run(
            mcpspy, "run", "--name", "bare", "--", "cat", stdin=MESSAGE, cwd=folder, MCPSPY_DIR=sessions
        )
        assert echoed == MESSAGE, echoed
        assert b"bare" in run(mcpspy, "ls", cwd=folder, MCPSPY_DIR=sessions)
        assert b"ping" in run(mcpspy, "show", "last", cwd=folder, MCPSPY_DIR=sessions)
        assert b"forecast" in run(mcpspy, "demo", cwd=folder, MCPSPY_DIR=sessions)
        run(mcpspy, "export", "origin:demo", "-o", "page.html", cwd=folder, MCPSPY_DIR=sessions)
        assert b"forecast" in (folder / "page.html").read_bytes()
        run(mcpspy, "lint", "last", "--select", "HOST", "--host", "all", cwd=folder, MCPSPY_DIR=sessions)
        run(mcpspy, "--help", cwd=folder)
        assert b"export function recorded" in run(mcpspy, "scripts", "vitest", cwd=folder)
        if os.name != "nt":
            share = folder / "bare" / "share"
            run("bash", "-n", share / "bash-completion" / "completions" / "mcpspy")
            assert b"mcpspy" in (share / "man" / "man1" / "mcpspy.1").read_bytes()
    print(f"wheel: {wheel.name} works alone")


if __name__ == "__main__":
    main()
