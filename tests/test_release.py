"""The files of a release: those that `make release` fills in, and those of containers."""

from __future__ import annotations

import json
from string import Template

import pytest
from ruamel.yaml import YAML

from mcpspy import __version__
from release import executable, make

VALUES = dict.fromkeys(("version", "url", "homepage", "sdist", "wheel"), "x")


def filled(name: str) -> str:
    """Return a template with values."""
    return Template(make.read(make.RELEASE / f"{name}.in")).substitute(VALUES)


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    changelog = (
        "# Changelog\n\n## [Unreleased]\n\n- c\n\n## [0.2.0] - 2026-12-01\n\n- b\n\n## [0.1.0]\n\n- a\n"
    )

    assert make.notes(changelog, "0.2.0") == "- b\n"
    assert make.notes(changelog, "0.1.0") == "- a\n"
    assert make.notes(changelog, "0.3.0") == "- c\n"


def test_the_changelog_has_notes_for_this_version() -> None:
    assert "### Added" in make.notes(make.read(make.ROOT / "CHANGELOG.md"), __version__)


def test_the_scoop_manifest_is_json_with_the_variables_of_scoop() -> None:
    manifest = json.loads(filled("mcpspy.json"))

    assert manifest["url"] == "x/mcpspy-x-py3-none-any.whl"
    assert manifest["hash"] == "x"
    assert all("$dir" in line for line in manifest["installer"]["script"])


def test_the_formula_installs_what_the_wheel_adds_to_its_prefix() -> None:
    formula = filled("mcpspy.rb")

    assert "$" not in formula
    assert (
        make.read(make.ROOT / "pyproject.toml").count("share/man/man1/mcpspy.1")
        == formula.count("man1/mcpspy.1")
        == 1
    )


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_the_containers_use_the_port_of_the_image(name: str) -> None:
    text = make.read(make.RELEASE / name)

    assert list(YAML(typ="safe").load_all(text))
    assert "8808" in text
    assert "EXPOSE 8808" in make.read(make.RELEASE / "Dockerfile")


def test_the_executable_hides_its_libraries_from_servers() -> None:
    environment = {
        "LD_LIBRARY_PATH": "/tmp/_MEI1",
        "LD_LIBRARY_PATH_ORIG": "/opt/lib",
        "LIBPATH": "/tmp/_MEI1",
        "PATH": "/bin",
        "_PYI_ARCHIVE_FILE": "/opt/mcpspy",
    }
    executable.restore(environment)
    assert environment == {"LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin"}

    executable.restore(environment)
    assert environment == {"LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin"}
