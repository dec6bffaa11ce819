"""The layout of the code follows ARCHITECTURE.md: layers, packages with their tests, docstrings, pages.

Each test checks all of the code and lists every offender at once.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from mcpspy.core.exchange import states
from mcpspy.core.exchange.states import ASKING_TRANSITIONS, READING_TRANSITIONS
from mcpspy.core.session.exchange import TRANSITIONS
from mcpspy.ui.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcpspy"
TESTS = ROOT / "tests"

LAYERS = {"core": 0, "analysis": 1, "io": 2, "ui": 3}
"""Higher may import lower; `errors` and the package itself lie below all."""

PURE = ("core", "analysis")
"""Layers that use no clock, file, thread or socket."""

WORLD = frozenset(
    """aiofiles aiohttp asyncio concurrent io logging mitmproxy multiprocessing os pathlib random select
    shutil signal socket ssl subprocess sys tempfile textual rich threading time urllib uuid""".split()
)

CLOCKS = frozenset(("now", "today", "utcnow", "astimezone", "fromtimestamp"))
"""Methods of `datetime` that read the clock or the time zone of the machine; the module itself is calculation."""

IO_LEVELS = (
    ("settings", "manifest", "host_process", "extras", "network", "engine"),
    ("session_name",),
    ("recording", "scripts"),
    ("lockfile",),
    ("intercept", "control", "hosts", "importing", "lake"),
    ("stdio", "remote"),
    ("client",),
    ("bridge", "http", "replay", "telemetry"),
    ("serving",),
    ("load",),
    ("mock", "forward", "doctor", "listing", "watch"),
    ("gateway",),
)
"""The packages and lone modules of `io`, lowest first: each imports only from rows before its row."""


EXTRAS = {
    "mcpspy.analysis.metrics": "metrics",
    "mcpspy.io.client": "oauth",
    "mcpspy.io.forward": "mitm",
    "mcpspy.io.http.http2_connection": "http2",
    "mcpspy.core.protocol.http2_pipe": "http2",  # Without it, frames are recorded without their headers.
    "mcpspy.io.lake": "lake",
    "mcpspy.io.lake.executors": "cluster",
    "mcpspy.io.telemetry": "otel",
    "mcpspy.io.watch": "watch",
    "mcpspy.ui.agent": "agent",
    "mcpspy.ui.api.record": "agent",
    "mcpspy.ui.api.session": "lake",
    "mcpspy.ui.cli.query": "lake",
    "mcpspy.ui.pytest_plugin": "agent",
    "mcpspy.ui.report.chart": "plot",
    "mcpspy.ui.views.content": "images",
}
"""Modules and packages that may import what an extra declares → the extra."""

DISTRIBUTIONS = {
    "grpc": "grpcio",
    "mcp_types": "mcp",
    "opentelemetry": "opentelemetry-sdk",
    "PIL": "pillow",
    "re2": "google-re2",
    "ruamel": "ruamel.yaml",
}
"""Modules whose names differ from those of their distributions."""

OWN_PROGRAMS = frozenset({"pandas", "pytest"})
"""Modules that are imported only for a program of the user that has them."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> list[str]:
    """Return the module behind every import: at the top, in functions and for type checkers.

    `from package import name` imports `package.name` if that is a module, else `package`. A relative import starts
    with its dots.
    """
    found = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            named = [f"{source}.{alias.name}" for alias in node.names]
            found += [name if name in MODULES else source for name in named]
    return found


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "mcpspy" and len(parts) > 1 and parts[1] in LAYERS else ""


def package(module: str) -> str:
    """Return the package of a layer to which a module belongs, or the module itself if it is beside the packages."""
    return ".".join(module.split(".")[:3])


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of two nodes or more, by Tarjan's algorithm."""
    numbers: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def lowest(node: str) -> int:
        number = low = numbers[node] = len(numbers)
        stack.append(node)
        for following in graph.get(node, ()):
            if following not in numbers:
                low = min(low, lowest(following))
            elif following in stack:
                low = min(low, numbers[following])
        if low == number:
            start = stack.index(node)
            if len(stack) - start > 1:
                found.append(sorted(stack[start:]))
            del stack[start:]
        return low

    for node in graph:
        if node not in numbers:
            lowest(node)
    return sorted(found)


def upward(levels: Iterable[Iterable[str]], graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the imports within `io` that do not point to a lower level, and the packages that have no level."""
    level = {package: number for number, row in enumerate(levels) for package in row}
    inside = {module: module.split(".")[2] for module in graph if module.startswith("mcpspy.io.")}
    return (
        [f"{package}: not in the table" for package in inside.values() if package not in level]
        + [f"{package}: in the table only" for package in level if package not in inside.values()]
        + [
            f"{module} → {imported}"
            for module, package in inside.items()
            for imported in graph[module]
            if imported in inside
            and inside[imported] != package
            and level.get(inside[imported], -1) >= level.get(package, len(level))
        ]
    )


def fail_for(offenders: Iterable[str]) -> None:
    """Fail with all offenders, one per line; pytest itself truncates long lists."""
    if named := "\n".join(sorted(set(offenders))):
        pytest.fail(named, pytrace=False)


def packages(top: Path, pattern: str) -> set[str]:
    """Return the folders under `top` that hold a file of this name; the folder itself is '.'."""
    return {
        path.parent.relative_to(top).as_posix() for path in top.rglob(pattern) if path.name != "__init__.py"
    }


def test_every_package_with_modules_has_tests_in_the_same_place() -> None:
    fail_for(packages(PACKAGE, "*.py") - packages(TESTS, "test_*.py"))


def test_every_folder_of_tests_has_its_package() -> None:
    mirrored = {folder for folder in packages(TESTS, "test_*.py") if folder.split("/")[0] in LAYERS}

    fail_for(mirrored - packages(PACKAGE, "*.py"))


def test_every_module_has_a_docstring_with_a_short_first_line() -> None:
    docstrings = {module: ast.get_docstring(tree(module)) or "" for module in MODULES}

    fail_for(
        f"{module}: {text.splitlines()[0]}" if text else module
        for module, text in docstrings.items()
        if not text or len(text.splitlines()[0]) > 100
    )


def test_no_import_is_relative() -> None:
    fail_for(f"{module}: {name}" for module in MODULES for name in imports(module) if name.startswith("."))


def test_imports_point_down() -> None:
    fail_for(
        f"{module} → {imported}"
        for module in MODULES
        if layer(module)  # The entry point, `errors` and the package itself belong to no layer.
        for imported in imports(module)
        if layer(imported) and LAYERS[layer(imported)] > LAYERS[layer(module)]
    )


def test_reports_and_the_agent_server_import_no_command() -> None:
    fail_for(
        f"{module} → {imported}"
        for module in MODULES
        if module.startswith(("mcpspy.ui.agent", "mcpspy.ui.report"))
        for imported in imports(module)
        if imported.startswith("mcpspy.ui.cli")
    )


def test_interfaces_read_no_columns_of_the_index() -> None:
    """`ui/model` answers for the rows of a session, to everything that shows them."""
    fail_for(
        f"{module} → {imported}"
        for module in MODULES
        if module.startswith(tuple(f"mcpspy.ui.{each}." for each in ("tui", "web", "agent", "api", "cli")))
        for imported in imports(module)
        if imported.startswith("mcpspy.core.session.columns")
    )


def test_pure_layers_import_no_io() -> None:
    fail_for(
        f"{module} → {imported}"
        for module in MODULES
        if layer(module) in PURE
        for imported in imports(module)
        # `urllib.parse` is text to text; the rest of urllib is not.
        if imported.split(".")[0] in WORLD and imported != "urllib.parse"
    )


@cache
def declared(module: str) -> set[str]:
    """Return the names of the distributions that a module may import."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [extra for name, extra in EXTRAS.items() if f"{module}.".startswith(f"{name}.")]
    lines = [
        *project["dependencies"],
        *(line for e in extras for line in project["optional-dependencies"][e]),
    ]
    return {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in lines}


def test_every_import_is_declared() -> None:
    fail_for(
        f"{module} → {name}"
        for module in MODULES
        for name in {imported.split(".")[0] for imported in imports(module)}
        if name not in sys.stdlib_module_names | OWN_PROGRAMS | {"mcpspy"}
        and DISTRIBUTIONS.get(name, name).replace("_", "-") not in declared(module)
    )


def test_pure_layers_read_no_clock_and_no_time_zone_of_the_machine() -> None:
    fail_for(
        f"{module}:{node.lineno}: {node.func.attr}()"
        for module in MODULES
        if layer(module) in PURE and "datetime" in imports(module)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
    )


def test_errors_lies_below_all() -> None:
    fail_for(name for name in imports("mcpspy.errors") if name not in sys.stdlib_module_names)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    graph = {module: {name for name in imports(module) if name in MODULES} for module in MODULES}

    fail_for(" ".join(cycle) for cycle in cycles(graph))


def test_no_packages_import_each_other_in_a_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        if layer(module):
            found = {package(name) for name in imports(module) if name in MODULES and layer(name)}
            graph.setdefault(package(module), set()).update(found - {package(module)})

    fail_for(" ".join(cycle) for cycle in cycles(graph))


def test_no_two_public_classes_have_one_name() -> None:
    modules: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(module)

    fail_for(f"{name}: {' '.join(where)}" for name, where in modules.items() if len(where) > 1)


def test_a_cycle_is_found_with_all_of_its_modules_and_no_others() -> None:
    graph = {
        "a": {"b"},
        "b": {"c", "d"},
        "c": {"b"},
        "d": {"e"},
        "e": {"f", "g"},
        "f": {"d"},
        "g": set[str](),
    }

    assert cycles(graph) == [["b", "c"], ["d", "e", "f"]]


def test_imports_within_io_point_down() -> None:
    fail_for(upward(IO_LEVELS, {module: imports(module) for module in MODULES}))


def test_an_import_that_points_up_or_sideways_is_found() -> None:
    graph = {
        "mcpspy.io.low": ["mcpspy.io.high.a", "mcpspy.core.x"],
        "mcpspy.io.high.a": ["mcpspy.io.low", "mcpspy.io.high.b", "mcpspy.io.beside"],
        "mcpspy.io.high.b": [],
        "mcpspy.io.beside": ["os"],
        "mcpspy.io.new": ["mcpspy.io.low"],
        "mcpspy.core.x": [],
    }

    assert upward([["low"], ["high", "beside"], ["gone"]], graph) == [
        "new: not in the table",
        "gone: in the table only",
        "mcpspy.io.low → mcpspy.io.high.a",
        "mcpspy.io.high.a → mcpspy.io.beside",
    ]


def test_every_command_has_a_page_that_the_readme_links_to() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {command: ROOT / "docs" / f"{command}.md" for command in COMMANDS}

    fail_for(
        command
        for command, page in pages.items()
        if not page.exists()
        or not page.read_text(encoding="utf-8").startswith(f"# mcpspy {command}\n")
        or f"docs/{command}.md" not in readme
    )


def test_the_diagrams_of_states_are_drawn_from_their_tables() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    diagrams = re.findall(r"^```mermaid\nstateDiagram-v2\n(.+?)^```$", page, re.MULTILINE | re.DOTALL)
    drawn = [re.findall(r"^  (\w+) --> (\w+): (.+)$", diagram, re.MULTILINE) for diagram in diagrams]
    tables = (TRANSITIONS, states.TRANSITIONS, READING_TRANSITIONS, ASKING_TRANSITIONS)

    assert drawn == [
        [
            (state.name, following.name, str(event))
            for state, row in table.items()
            for event, following in row.items()
        ]
        for table in tables
    ]


def test_links_between_pages_have_a_target() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
    ]

    fail_for(
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    )
