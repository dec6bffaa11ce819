"""All prose of the project is plain English: docstrings, comments, messages, help and Markdown."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs import make
from mcpspy.ui.cli.main import COMMANDS, usage
from tests import prose

ROOT = Path(__file__).resolve().parents[1]
CODE = [
    path
    for folder in ("mcpspy", "tests", "bench", "fuzz", "docs", "recordings")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name not in ("prose.py", "test_prose.py")
]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "recordings/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)

ALLOWED: dict[tuple[str, str], str] = {
    ("docs/filter.md", "us, ms, s, m or min, h"): "the unit of microseconds",
    ("mcpspy/analysis/lint/rules/security.py", "without\\s+(?:telling|"): "a pattern of prompt injection",
    ("mcpspy/analysis/lint/rules/security.py", "be\\s+(?:told|"): "a pattern of prompt injection",
    ("mcpspy/analysis/lint/rules/security.py", "(?:this|our)"): "a pattern of prompt injection",
    ("tests/core/replay/test_carry_hints.py", "/result/said=session"): "a key in the test's data",
    ("tests/e2e/test_recordings.py", "/Users/somebody/notes"): "a path in the test's data",
    ("tests/io/http/test_intercepted_exchange.py", "region = us"): "a value in the test's data",
    ("tests/io/test_replay.py", "Hello, this is no JSON-RPC"): "output of a test server",
    ("tests/peers/servers/sdk_server.py", "What `add` answers"): "on the wire of recordings",
    ("tests/peers/servers/sdk_server.py", "nobody cancelled"): "on the wire of recordings",
    ("tests/peers/servers/sdk_server.py", "does what its name says"): "on the wire of recordings",
    ("tests/ui/cli/test_mock.py", '{"said": "the server\'s"}'): "a key in the test's data",
    ("tests/ui/cli/test_replay.py", "Hello, this is no JSON-RPC"): "output of a test server",
}
"""(File, words) → the reason why they may stay."""


def offences(paths: list[Path]) -> list[str]:
    """Return what is found in files, one line each, without what is allowed."""
    return [
        f"{name}:{found.line}: {found.found!r}, rather {found.advice}: {found.context}"
        for path in paths
        for name in [path.relative_to(ROOT).as_posix()]
        for found in prose.offences(prose.prose(path))
        if not any(name == file and words in found.context for file, words in ALLOWED)
    ]


@pytest.mark.timeout(300)  # It takes a quarter of a minute of CPU time.
def test_code_speaks_plain_english() -> None:
    assert offences(CODE) == []


def test_pages_speak_plain_english() -> None:
    assert offences(PAGES) == []


def test_help_speaks_plain_english() -> None:
    helps = {"mcpspy": usage(), **{name: make.parser(name).format_help() for name in COMMANDS}}
    texts = (prose.Text(f"{name} --help", 1, "help", text) for name, text in helps.items())
    assert list(prose.offences(texts)) == []


def test_names_of_tests_are_plain_english() -> None:
    names = (
        prose.Text(f"{file}::{node.name}", node.lineno, "docstring", words.capitalize())
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for file in [path.relative_to(ROOT).as_posix()]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for words in [node.name.removeprefix("test_").replace("_", " ")]
    )
    assert [f"{found.path}: {found.found!r}, rather {found.advice}" for found in prose.offences(names)] == []


def test_lines_of_prose_are_no_longer_than_120_characters() -> None:
    long = [
        f"{path.relative_to(ROOT).as_posix()}:{line}"
        for path in PAGES
        for line in prose.long_lines(path.read_text(encoding="utf-8"))
    ]
    assert long == []


def test_every_exception_is_still_needed_and_has_a_reason() -> None:
    needless = [
        (file, words)
        for (file, words), reason in ALLOWED.items()
        if not reason or not any(words in found.context for found in prose.offences(prose.prose(ROOT / file)))
    ]
    assert needless == []
    assert len(ALLOWED) < 30


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for who has no mcpspy", "for who"),
        ("It is no message.", "is no "),
        ("There is no session.", None),
        ("It goes on at once.", "goes on"),
        ("One exchange per line", None),
        ("prints an exchange a line", "an exchange a line"),
        ("`what goes on`", None),
        ("costs a warning", "costs a "),
        ("it stands there", "stands"),
        ("it stands out", None),
    ],
)
def test_the_gate_finds_what_it_is_for_and_nothing_else(text: str, found: str | None) -> None:
    offences = list(prose.offences(iter([prose.Text("page", 1, "page", text)])))
    assert [offence.found for offence in offences] == ([] if found is None else [found])


def test_a_docstring_does_not_begin_with_a_free_relative() -> None:
    source = 'def f():\n    """Whether it is open."""\n'
    assert [found.found for found in prose.offences(prose.python("m.py", source))] == ["Whether"]
