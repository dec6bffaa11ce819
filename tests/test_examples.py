"""The examples in the documentation are run: every command line of every page, against real peers.

`tests/examples.py` prepares the folder, and lists which lines are not run, and why. Pages run at once, as many as there
are cores, each in a separate folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recordings import make
from tests import examples
from tests.e2e.test_http import serving
from tests.examples import CODES, FIRST, NOT_RUN, SUBSTITUTED, command_lines, lines_of_pages
from tests.forks import forks, modules_of_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the lines are those of a POSIX shell"),
    # A page waits for the pages before it.
    pytest.mark.timeout(600),
]

SERVER = f"{make.PEERS}/venv/bin/python {make.SDK_SERVER} --transport streamable-http --port"
LINES = lines_of_pages()


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[list[str]]]]:
    """Start the selected pages; yield their problems, as they end."""
    folder = tmp_path_factory.mktemp("examples")
    wanted = {_page_of(item) for item in request.session.items}
    with (
        examples.collector() as collector,
        forks({Path(sys.executable): modules_of_commands()}) as forked,
        serving("sdk", SERVER, "/mcp", folder) as upstream,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        values = {"upstream": upstream, "collector": collector, "forks": forked}
        examples.prepare(folder / "all", values)

        def run(page: Path) -> list[str]:
            own = folder / f"{page.parent.name}-{page.stem}"
            shutil.copytree(folder / "all", own, symlinks=True)
            return examples.run_page(page, LINES[page], own, values)

        yield {page: pool.submit(run, page) for page in LINES if page in wanted}


def _page_of(item: pytest.Item) -> object:
    specification = getattr(item, "callspec", None)
    return specification.params.get("page") if item.path == Path(__file__) and specification else None


@pytest.mark.parametrize("page", LINES, ids=lambda page: page.stem)
def test_each_line_of_a_page_runs_as_documented(page: Path, running: dict[Path, Future[list[str]]]) -> None:
    problems = running[page].result()

    assert problems == [], "\n" + "\n".join(problems)


def test_each_exception_is_needed() -> None:
    every = [line for page in examples.PAGES for line in command_lines(page)]
    unused = [
        key for key in (*NOT_RUN, *SUBSTITUTED, *CODES) if not any(re.search(key, line) for line in every)
    ]

    assert unused == []
    assert set(FIRST) <= {page.stem for page in LINES}
    assert len([line for lines in LINES.values() for line in lines]) > 200
