"""Load tests with `mcpspy replay`: options, reports, and the condition under which they fail."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from mcpspy.ui.cli.main import main
from tests.io.changing import CARRY, command
from tests.io.files import POSIX
from tests.ui.cli.replays import Ran

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not let a busy machine add its own line."""
    monkeypatch.setattr("mcpspy.analysis.load.OVERHEAD", float("inf"))


def test_a_load_test_names_its_own_part_of_the_latencies(
    recorded: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.analysis.load.OVERHEAD", -1.0)

    ran = Ran(capfd, recorded, "same", "--clients", "2")

    assert ran.code == 0
    assert ran.err.startswith("mcpspy: about ")
    assert " of the p50 latency of " in ran.err


def test_clients_report_their_latencies_and_the_number_of_different_runs(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, "same", "--clients", "2", "--repeat", "2")

    assert ran.code == 0
    assert "tools/call add" in ran.out
    assert "4 runs · 32 requests in " in ran.out
    assert ran.err == "mcpspy: 0 of 4 runs are different\n"


def test_a_rate_starts_runs_for_a_duration(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capfd, recorded, "same", "--rate", "10", "--duration", "300ms")

    assert ran.code == 0
    assert "3 runs · 24 requests in " in ran.out


def test_a_condition_that_is_met_is_reported_with_the_measured_value(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, "same", "--fail-if", "p95>1h or errors<1% and max>0ms")
    assert ran.code == 1
    assert "--fail-if: met: errors<1% (0.00%), max>0ms (" in ran.err

    ran = Ran(capfd, recorded, "same", "--fail-if", "p95>1h or errors>1%")
    assert ran.code == 0
    assert "--fail-if: not met: p95>1h (" in ran.err


def test_different_runs_fail_a_load_test_unless_a_condition_decides(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, "crash", "--clients", "2")
    assert ran.code == 1
    assert "  no response" not in ran.out
    assert "2 of 2 runs are different" in ran.err

    assert Ran(capfd, recorded, "crash", "--clients", "2", "--fail-if", "p50>1h").code == 0
    assert Ran(capfd, recorded, "crash", "--clients", "2", "--fail-if", "different>1").code == 1


@pytest.mark.parametrize(
    ("form", "begins"), [("json", b"{"), ("csv", b"request,latency_ms"), ("html", b"<!doctype html>")]
)
def test_the_report_is_a_file_or_the_output(
    form: str, begins: bytes, recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report"
    ran = Ran(capfd, recorded, "same", "--clients", "2", "--format", form, "-o", str(file))
    assert ran.code == 0
    assert "2 runs · 16 requests" in ran.out
    assert file.read_bytes().startswith(begins)

    ran = Ran(capfd, recorded, "same", "--clients", "2", "--format", form)
    assert ran.out.encode().startswith(begins)
    assert form != "json" or json.loads(ran.out)["runs"] == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--rate", "5"], "--rate requires --duration or --repeat"),
        (["--clients", "2", "--format", "junit"], "a load test has no junit report"),
        (["--fail-if", "p95>200"], "--fail-if p95>200: no unit of time"),
        (["--update", "--duration", "1s"], "--update and --duration exclude each other"),
    ],
)
def test_invalid_options_are_reported_before_anything_starts(
    options: list[str], why: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, "same", *options)

    assert ran.code == 2
    assert why in ran.err


@POSIX
def test_runs_whose_server_no_longer_starts_fail_and_the_report_has_the_reason(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = tmp_path / "server"
    server.write_text(f'#!/bin/sh\nrm "$0"\nexec {shlex.join(command())}\n', encoding="utf-8")
    server.chmod(0o700)
    load = ["--clients", "1", "--rate", "1000", "--repeat", "3", "--carry", CARRY, "--no-record"]

    assert main(["replay", str(recorded), *load, "--", str(server)]) == 1
    out, error = capfd.readouterr()
    assert f"    16  not sent: cannot start {server}: no such file\n3 runs · 8 requests in " in out
    assert error == "mcpspy: 2 of 3 runs are different\n"

    assert main(["replay", str(recorded), *load, "--", str(server)]) == 3
    assert capfd.readouterr() == ("", f"mcpspy: cannot start {server}: no such file\n")


def test_a_server_that_never_responds_is_one_line(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capfd, recorded, "garbage", "--clients", "2")

    assert ran.code == 3
    assert "its output is not JSON-RPC" in ran.err


def test_ctrl_c_in_the_first_run_leaves_nothing_to_report(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, "SIGINT", "--duration", "10s")

    assert (ran.code, ran.out, ran.err) == (130, "", "")
