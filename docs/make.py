"""Generate the help in every command's page, and the manual page.

    .venv/bin/python docs/make.py [--check]

Owns the marks around the help in a page, and its width. With --check it writes nothing, and fails if a file would
change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from argparse_manpage.manpage import Manpage  # type: ignore[import-untyped]  # It has no types.

from mcpspy import __version__
from mcpspy.ui.cli.main import ABOUT, COMMANDS, EXIT_CODES, described
from mcpspy.ui.cli.parser import HelpFormatter
from mcpspy.ui.report.lint_docs import page as rules

DOCS = Path(__file__).resolve().parent

WIDTH = 96
"""Width of the help in a page, in columns."""

BEGIN = "<!-- what `mcpspy {} --help` says; docs/make.py writes it -->"
END = "<!-- end of help -->"


def parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    module = import_module(COMMANDS[name][0])
    made = argparse.ArgumentParser(**described(name, module))
    made.formatter_class = partial(HelpFormatter, width=WIDTH)
    module.configure(made)
    return made


def with_help(page: str, name: str) -> str:
    """Return the page with the current help: between its marks, or at its end if it has none."""
    begin = BEGIN.format(name)
    block = f"{begin}\n```\n{parser(name).format_help()}```\n{END}\n"
    if begin not in page:
        return f"{page.rstrip()}\n\n## Help\n\n{block}"
    pattern = re.escape(begin) + r"\n.*?" + re.escape(END) + r"\n"
    return re.sub(pattern, lambda _: block, page, count=1, flags=re.DOTALL)


def manual() -> str:
    """Return the manual page in roff."""
    parser_of_all = argparse.ArgumentParser(
        prog="mcpspy",
        description=f"{ABOUT} `mcpspy` alone opens the list of sessions.",
        epilog=EXIT_CODES,
    )
    parser_of_all.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
    commands = parser_of_all.add_subparsers(metavar="COMMAND", title="commands")
    for name, (path, text) in COMMANDS.items():
        module = import_module(path)
        command = commands.add_parser(name, help=text, **described(name, module))
        command.formatter_class = partial(HelpFormatter, width=WIDTH)
        module.configure(command)
    page = Manpage(
        parser_of_all,
        _data={
            "description": "the traffic inspector and record/replay proxy for the Model Context Protocol",
            "project_name": "mcpspy",
            "version": __version__,
            "manual_title": "mcpspy manual",
            "date": " ",
        },
    )
    for name, (path, _) in COMMANDS.items():
        page.add_section(f"mcpspy {name}", ">", roff(import_module(path).EPILOG))
    return re.sub("(?m)^'", r"\\&'", str(page))  # A line that begins with these would be a roff command.


def roff(text: str) -> str:
    """Return a text that roff prints unchanged, line by line."""
    lines = text.strip("\n").replace("\\", r"\e").replace("-", r"\-").split("\n")
    return "\n".join([".nf", *(rf"\&{line}" for line in lines), ".fi"])


def made() -> Iterator[tuple[Path, str]]:
    """Return every generated file with its content."""
    for name in COMMANDS:
        path = DOCS / f"{name}.md"
        page = rules() if name == "lint" else path.read_text(encoding="utf-8")
        yield path, with_help(page, name)
    yield DOCS / "mcpspy.1", manual()


def stale() -> list[Path]:
    """Return the files that are out of date."""
    return [path for path, text in made() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write the files that are out of date, or list them."""
    outdated = stale()
    for path in outdated:
        print(path.relative_to(DOCS.parent))
    if "--check" in sys.argv[1:]:
        return bool(outdated)
    for path, text in made():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
