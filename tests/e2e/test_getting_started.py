"""The getting-started pages, followed word for word: their configuration, their commands, a real server."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import forks
from tests.e2e.test_wrap import MEMORY, NODE, bare, ran, started

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

PAGES = Path(__file__).resolve().parents[2] / "docs" / "getting-started"
NAMES = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index")
SYSTEM = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, "Linux")


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page, flags=re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def config_path(page: str) -> str:
    """Return the path of the user's file on this system, from the page's table."""
    for system, path in re.findall(r"^\| ([\w ]+) \| `([^`]+)`", page, flags=re.MULTILINE):
        if system in (SYSTEM, "all systems"):
            return str(path)
    raise AssertionError("the page names no file for this system")


def entry_of(text: str, language: str) -> dict[str, Any]:
    settings = tomllib.loads(text) if language == "toml" else json.loads(text)
    (servers,) = settings.values()
    (entry,) = servers.values()
    assert isinstance(entry, dict)
    return entry


@pytest.mark.skipif(sys.platform == "win32", reason="a PATH of POSIX")
@pytest.mark.parametrize("name", NAMES)
async def test_a_page_leads_from_the_host_s_configuration_to_a_recorded_session(
    name: str, peers: Peers, tmp_path: Path
) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    language = "toml" if "```toml" in page else "json"
    before, after = blocks(page, language)
    home, project, bin_folder = (tmp_path / folder for folder in ("home", "project", "bin"))
    path = home / config_path(page).removeprefix("~/")
    for folder in (project, bin_folder, path.parent):
        folder.mkdir(parents=True)
    path.write_text(before, encoding="utf-8")
    # `npx -y PACKAGE` without the network: the package is a peer.
    npx = bin_folder / "npx"
    npx.write_text(f"#!/bin/sh\nexec '{NODE}' '{MEMORY}'\n", encoding="utf-8")
    npx.chmod(0o700)
    wrap, use, undo = blocks(page, "sh")

    async def run(line: str) -> str:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "mcpspy"
        out, _ = await ran(forks.command(), *arguments, home=home, cwd=project)
        return out

    dry_run, real = wrap.splitlines()
    assert "+" in await run(dry_run)
    assert path.read_text(encoding="utf-8") == before
    await run(real)

    wrapped = path.read_text(encoding="utf-8")
    assert wrapped.replace(forks.command(), "/home/ada/.local/bin/mcpspy") == after

    entry = entry_of(wrapped, language)
    await started(entry | {"env": {"PATH": f"{bin_folder}:{bare(home)['PATH']}"}}, "memory", home, project)

    hosts, _, show = use.splitlines()
    assert re.search(r"memory +wrapped +1 error", await run(hosts))
    text = await run(show)
    assert all(method in text for method in ("initialize", "tools/list", "tools/call"))

    await run(undo.strip())
    assert path.read_text(encoding="utf-8") == before
