"""`mcpspy metrics`: its address, and who may read it."""

from __future__ import annotations

import sys

import pytest

from mcpspy.io.extras import install_command
from mcpspy.ui.cli.main import main


def test_it_listens_on_loopback_unless_the_user_insists(capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("0.0.0.0:0", "192.168.0.7:80", "[::]:0"):
        assert main(["metrics", "--listen", address]) == 2
        assert "--i-know" in capsys.readouterr().err


def test_without_its_package_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "mcpspy.analysis.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    assert main(["metrics"]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: metrics needs prometheus-client, which is not installed ({install_command('metrics')})\n"
    )
