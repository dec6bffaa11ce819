"""`mcpspy ca`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.io.forward.child import CA_BUNDLE_VARIABLES, EXTRA_CA_VARIABLES
from mcpspy.ui.cli.ca import STORES
from mcpspy.ui.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "mcpspy" / "ca"


def test_it_makes_one_and_prints_the_same_later(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not folder.exists()
    assert main(["ca", "--format", "json"]) == 0
    first = capsys.readouterr().out
    document = json.loads(first)
    assert document["key"] == str(folder / "ca.pem")
    assert len(document["sha256"].split(":")) == 32
    assert main(["ca", "--format", "json"]) == 0
    assert capsys.readouterr().out == first
    for flag, file in (("--cert", "ca-cert.pem"), ("--bundle", "bundle.pem")):
        assert main(["ca", flag]) == 0
        assert capsys.readouterr().out == f"{folder / file}\n"
    assert main(["ca"]) == 0
    page = capsys.readouterr().out
    assert document["sha256"] in page
    for name in (
        *CA_BUNDLE_VARIABLES,
        *EXTRA_CA_VARIABLES,
        "NODE_USE_ENV_PROXY",
        "ca-cert.pem",
        *(row[0] for row in STORES),
    ):
        assert name in page
    assert "{" not in page


def test_a_file_that_is_not_a_certificate_is_named_and_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir(parents=True)
    (folder / "ca.pem").write_text("mine", encoding="utf-8")
    assert main(["ca"]) == 3
    err = capsys.readouterr().err
    assert err == f"mcpspy: {folder}/ca.pem: contains no certificate (remove it to get a new one)\n"
    assert (folder / "ca.pem").read_text(encoding="utf-8") == "mine"
