"""tests/ mirrors mcpspy/, every module says what it owns, every command has its page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mcpspy.core.exchange import TRANSITIONS
from mcpspy.ui.cli.table import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcpspy"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
TESTS = sorted(
    path
    for path in (ROOT / "tests").rglob("test_*.py")
    if path.relative_to(ROOT / "tests").parts[0] in ("core", "analysis", "io", "ui")
)

MORE = {
    "ui/tui/test_in_a_terminal.py": "the program in a real terminal, every widget together",
    "io/test_lifecycle.py": "the contract of `run`, which several modules keep together",
}
"""Tests of more than one module, and of what."""


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_has_its_test(path: Path) -> None:
    inside = path.relative_to(PACKAGE)
    name = inside.name.strip("_").removesuffix(".py").strip("_")

    assert (ROOT / "tests" / inside.parent / f"test_{name}.py").exists()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT / "tests").as_posix())
def test_a_test_has_its_module(path: Path) -> None:
    inside = path.relative_to(ROOT / "tests")
    module = PACKAGE / inside.parent / inside.name.removeprefix("test_")
    # What Python keeps for itself has an underscore: `import_`.
    keyword = module.with_stem(f"{module.stem}_")

    assert module.exists() or keyword.exists() or inside.as_posix() in MORE


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=relative)
def test_a_module_says_what_it_is_for_in_a_short_first_line(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

    assert said
    assert len(said.splitlines()[0]) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_page(command: str) -> None:
    page = (ROOT / "docs" / f"{command}.md").read_text(encoding="utf-8")

    assert page.startswith(f"# mcpspy {command}\n")
    assert f"docs/{command}.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_diagram_of_an_exchange_is_drawn_from_its_table() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^  (\w+) --> (\w+): (.+)$", page, re.MULTILINE)

    assert drawn == [
        (state.name, following.name, str(event))
        for state, row in TRANSITIONS.items()
        for event, following in row.items()
    ]


def test_links_between_pages_lead_somewhere() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
    ]
    missing = [
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]

    assert not missing
