"""Every recording of the repository, played against its server, its mock, over HTTP, and over a bridge."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpspy.ui.cli.main import main
from recordings import make
from tests.e2e.test_http import SERVERS, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOCK = "resources/read demo://resource/dynamic/text/1 /result/contents/0/text"

VOLATILE = {f"everything-sdk-{mode}": [CLOCK] for mode in ("auto", "legacy", "modern")}
"""Values that may differ, by recording: the time of day in a text. No others may."""

FILES = [(recipe, name.removesuffix(".jsonl")) for recipe in make.RECIPES for name in recipe.files]
EVERY_FILE = pytest.mark.parametrize(("recipe", "name"), FILES, ids=[name for _, name in FILES])

OVER_HTTP = {
    "peer": "peer-sdk-auto",
    "peer-sse": "peer-sdk-legacy",
    "everything": "everything-ts-auto-2",
}
"""Servers over HTTP, one of each era, and the recordings played against them."""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run where the recordings were made: their commands are found, and the one folder they name exists."""
    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    for name, value in make.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "graph.json"))
    monkeypatch.chdir(tmp_path)
    shutil.copy(make.SDK_SERVER, tmp_path)
    (make.DEMO / "files").mkdir(parents=True, exist_ok=True)
    yield
    shutil.rmtree(make.DEMO)


def replay(recording: object, *options: str) -> int:
    ignored = [
        word for rule in VOLATILE.get(Path(str(recording)).stem, ()) for word in ("--ignore-path", rule)
    ]
    return main(["replay", str(recording), *ignored, *options])


@EVERY_FILE
def test_the_server_it_came_from_gives_the_same_results(recipe: make.Recipe, name: str) -> None:
    assert replay(make.HERE / f"{name}.jsonl", "--no-record", "--", *recipe.server.split()) == 0


@EVERY_FILE
def test_the_mock_of_a_recording_gives_the_recorded_responses(recipe: make.Recipe, name: str) -> None:
    path = str(make.HERE / f"{name}.jsonl")

    assert main(["replay", path, "--no-record", "--", "mcpspy", "mock", path]) == 0


@pytest.mark.parametrize("server", OVER_HTTP)
def test_a_stdio_recording_replays_over_http_and_back(server: str, tmp_path: Path) -> None:
    name = OVER_HTTP[server]
    (recipe,) = (recipe for recipe, file in FILES if file == name)
    with serving(server, *SERVERS[server], tmp_path) as url:
        assert replay(make.HERE / f"{name}.jsonl", "--upstream", url, "--record", f"{name}.jsonl") == 0

    assert f'"upstream":"{url}"' in (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8")
    assert replay(f"{name}.jsonl", "--no-record", "--", *recipe.server.split()) == 0


def test_the_page_lists_what_may_differ_and_nothing_else() -> None:
    page = (make.ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w-]+)\.jsonl` \| `([^`]+)` \|", page, re.MULTILINE)

    assert listed == [(name, rule) for name, rules in VOLATILE.items() for rule in rules]
