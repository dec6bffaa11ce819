"""Extras: the command line that adds one is that of the tool that installed mcpspy."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io import extras
from mcpspy.io.extras import install_command, require

PYTHON = shlex.quote(sys.executable)
CHECKOUT = {"url": "file:///home/ada/mcp%20spy", "dir_info": {}}
EDITABLE = {"url": "file:///home/ada/mcpspy", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///tmp/mcpspy-0.1.0-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://example.com/mcpspy.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}

# As uv 0.13 and pipx 1.8 write them.
UV = '[tool]\nrequirements = [{ name = "rich" }, { name = "mcpspy", extras = ["http2"], directory = "/home/ada/mcpspy" }]\n'
PIPX = json.dumps({"main_package": {"package": "mcpspy", "package_or_url": "/home/ada/mcpspy[mitm, http2]"}})


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment that mcpspy runs in."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install mcpspy from what the test names; by default from an index."""
    found = getattr(request, "param", None)
    text = None if found is None else json.dumps(found)
    monkeypatch.setattr(metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "'mcpspy[lake]'"),
        (CHECKOUT, "'/home/ada/mcp spy[lake]'"),
        (EDITABLE, "--editable '/home/ada/mcpspy[lake]'"),
        (WHEEL, "'/tmp/mcpspy-0.1.0-py3-none-any.whl[lake]'"),
        (GIT, "'mcpspy[lake] @ git+https://example.com/mcpspy.git'"),
    ],
    indirect=["source"],
)
@pytest.mark.usefixtures("prefix", "source")
def test_pip_installs_the_extra_from_where_mcpspy_came_from(words: str) -> None:
    assert install_command("lake") == f"{PYTHON} -m pip install {words}"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("uv-receipt.toml", UV, "uv tool install 'mcpspy[http2,lake]'"),
        ("pipx_metadata.json", PIPX, "pipx install --force 'mcpspy[http2,lake,mitm]'"),
        ("pipx_metadata.json", PIPX.replace("[mitm, http2]", ""), "pipx install --force 'mcpspy[lake]'"),
    ],
)
def test_uv_and_pipx_keep_the_extras_that_they_have_installed(
    prefix: Path, name: str, text: str, line: str
) -> None:
    (prefix / name).write_text(text, encoding="utf-8")

    assert install_command("lake") == line


def test_an_environment_for_a_single_run_gets_the_line_of_such_a_run(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = prefix / ".cache" / "04d56ff5"
    cache.mkdir(parents=True)
    (cache / "pipx_metadata.json").write_text(PIPX, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(cache))
    assert install_command("lake") == "pipx run --spec 'mcpspy[lake]' mcpspy …"

    monkeypatch.setattr(sys, "prefix", str(prefix / "uv" / "archive-v0" / "zc4JolCX"))
    assert install_command("lake") == "uvx --from 'mcpspy[lake]' mcpspy …"


@pytest.mark.usefixtures("prefix")
def test_an_environment_without_pip_is_one_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)

    assert install_command("lake") == f"uv pip install --python {PYTHON} 'mcpspy[lake]'"


@pytest.mark.usefixtures("prefix")
def test_a_checkout_that_is_not_installed_is_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    root = Path(extras.__file__).parents[2]

    assert install_command("lake") == f"{PYTHON} -m pip install {shlex.quote(f'{root}[lake]')}"


def test_the_executable_names_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert install_command("mitm") == (
        "not in the executable; pipx install 'mcpspy[mitm]' installs mcpspy with it"
    )


def test_a_missing_package_is_named_with_its_command_and_the_line_that_installs_it() -> None:
    require("msgspec", "lake")
    with pytest.raises(CannotStart) as error:
        require("no_such_package", "lake")

    assert str(error.value) == (
        f"lake needs no_such_package, which is not installed ({install_command('lake')})"
    )
