"""The entry point of the single-file executable.

mcpspy starts itself with `sys.executable -m MODULE`, which here is this file: it also runs modules, like Python does,
and the worker processes of `--workers`.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping, MutableMapping
from multiprocessing import spawn
from typing import Any

prepare = spawn.prepare


def main() -> None:
    """Run the module after `-m`, or mcpspy."""
    restore(os.environ)
    spawn.prepare = prepare_worker
    multiprocessing.freeze_support()
    arguments = [word for word in sys.argv[1:3] if word != "-P"]
    module = "mcpspy"
    if arguments[:1] == ["-m"]:
        at = sys.argv.index("-m")
        module = sys.argv[at + 1]
        sys.argv = [sys.argv[0], *sys.argv[at + 2 :]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def prepare_worker(data: Mapping[str, Any]) -> None:
    """Prepare a worker, which has unpacked its own modules: those of its parent are at another path."""
    prepare({name: value for name, value in data.items() if name != "sys_path"})


def restore(environment: MutableMapping[str, str]) -> None:
    """Undo what PyInstaller changed in the environment: servers must not load the libraries of the executable.

    Source: PyInstaller's manual, "LD_LIBRARY_PATH / LIBPATH considerations".
    """
    own = [name for name in environment if name.startswith("_PYI_")]
    if not own:
        return
    for name in own:
        del environment[name]
    for name in ("LD_LIBRARY_PATH", "LIBPATH"):
        environment.pop(name, None)
        if (before := environment.pop(f"{name}_ORIG", None)) is not None:
            environment[name] = before


if __name__ == "__main__":
    main()
