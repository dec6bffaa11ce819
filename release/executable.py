"""The entry point of the single-file executable.

mcpspy starts itself with `sys.executable -m MODULE`, which here is this file: it also runs modules, like Python does.
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    """Run the module after `-m`, or mcpspy."""
    arguments = [word for word in sys.argv[1:3] if word != "-P"]
    module = "mcpspy"
    if arguments[:1] == ["-m"]:
        at = sys.argv.index("-m")
        module = sys.argv[at + 1]
        sys.argv = [sys.argv[0], *sys.argv[at + 2 :]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
