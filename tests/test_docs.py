"""Generated pages are current: the help in the pages of commands, and the manual page."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path

from docs import make
from mcpspy.errors import UsageError
from mcpspy.ui.cli.main import COMMANDS, parse
from tests.examples import PAGES, command_lines


def test_every_page_and_the_manual_have_the_current_help() -> None:
    assert make.stale() == [], "make docs"


def test_the_help_of_a_page_is_replaced_and_the_rest_stays() -> None:
    page = make.with_help("# mcpspy ls\n\nLists.\n", "ls")
    changed = page.replace("--count", "--old") + "\n## More\n"

    assert "usage: mcpspy ls" in page
    assert make.with_help(changed, "ls") == page + "\n## More\n"


def test_the_manual_has_every_command_and_reads_as_roff() -> None:
    page = (make.DOCS / "mcpspy.1").read_text(encoding="utf-8")

    assert all(rf"\fBmcpspy\fR \fI\,{name}" in page or f"mcpspy {name}" in page for name in COMMANDS)


def test_files_that_the_readme_names_as_evidence_exist() -> None:
    readme = Path(make.DOCS.parent / "README.md").read_text(encoding="utf-8")
    for command in re.findall(r"`(?:pytest|make) [^`]+`", readme):
        words = command.strip("`").split()
        if words[0] == "make":
            assert f"\n{words[1]}:" in (make.DOCS.parent / "Makefile").read_text(encoding="utf-8")
        else:
            for path in (word for word in words if word.startswith("tests/")):
                assert (make.DOCS.parent / path).exists(), path


def test_no_page_has_the_marks_of_a_merge_conflict() -> None:
    pages = [*make.DOCS.parent.glob("*.md"), *make.DOCS.rglob("*.md")]
    marked = [
        page
        for page in pages
        if re.search(r"^(?:<{7}|>{7}) ", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert marked == []


def test_every_command_line_in_the_pages_is_valid() -> None:
    invalid = []
    for page in PAGES:
        for line in command_lines(page):
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(takewhile(lambda word: not re.fullmatch(r"[|&;<>]+", word), lexer))
            if "…" in line or len(words) == 1 or words[1].startswith("--"):
                continue
            try:
                parse(words[1], words[2:])
            except (KeyError, UsageError) as error:
                invalid.append(f"{page.name}: {line}: {error}")
    assert invalid == []
