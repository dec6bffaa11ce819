"""Entry point of the `mcpspy` command: starts `run` directly, and all other commands through argparse."""

from __future__ import annotations

import sys

PYTHON = (3, 11)


def main() -> int:
    """Run the command and return its exit code."""
    # pip refuses an older Python; this is a checkout that was not installed.
    if sys.version_info < PYTHON:
        found = sys.version.split()[0]
        sys.stderr.write(
            f"mcpspy: needs Python 3.11 or newer, and this is {found} (use python3.11 -m mcpspy)\n"
        )
        return 3
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        from mcpspy.ui.cli.run import main as run

        return run(arguments[1:])
    from mcpspy.ui.cli.main import main as run_any

    return run_any(arguments)


if __name__ == "__main__":
    sys.exit(main())
