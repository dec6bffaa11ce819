"""Entry point of the `mcpspy` command: starts `run` directly, and all other commands through argparse."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        from mcpspy.ui.cli.run import main as run

        return run(arguments[1:])
    from mcpspy.ui.cli.main import main as run_any

    return run_any(arguments)


if __name__ == "__main__":
    sys.exit(main())
