"""Imports point down only, and the lower floors touch nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "mcpspy"

FLOORS = {"core": 0, "analysis": 1, "io": 2, "ui": 3}
"""Higher may import lower; `errors` and the package itself lie under all."""

PURE = ("core", "analysis")
"""Floors that see neither a clock nor the world."""

WORLD = frozenset(
    """aiofiles aiohttp asyncio concurrent datetime io logging mitmproxy multiprocessing os pathlib random select
    shutil signal socket ssl subprocess sys tempfile textual rich threading time urllib uuid""".split()
)

MODULES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            yield node.module
            # `from mcpspy.io import posix` names a module too.
            yield from (
                f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("mcpspy")
            )


def floor(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_what_lies_below_it(path: Path) -> None:
    here = floor(name(path))
    if not here:  # errors, __init__ and __main__ are on no floor.
        return
    above = [other for other in imports(path) if floor(other) and FLOORS[floor(other)] > FLOORS[here]]
    assert not above


@pytest.mark.parametrize("path", [p for p in MODULES if floor(name(p)) in PURE], ids=name)
def test_a_pure_floor_imports_nothing_of_the_world(path: Path) -> None:
    # `urllib.parse` is text to text; the rest of urllib is not.
    named = {other for other in imports(path) if other != "urllib.parse"}
    assert not {other.partition(".")[0] for other in named} & WORLD


def test_errors_lies_under_all() -> None:
    below = [other for other in imports(ROOT / "errors.py") if other not in sys.stdlib_module_names]
    assert not below
