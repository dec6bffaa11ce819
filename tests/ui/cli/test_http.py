"""The options of `mcpspy http`."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.forward import proxy as forward_proxy
from mcpspy.io.gateway import gateway
from mcpspy.io.http import proxy
from mcpspy.ui.cli.http import main
from mcpspy.ui.cli.main import parse

if TYPE_CHECKING:
    from mcpspy.io.gateway.gateway import GatewayOptions
    from mcpspy.io.http.proxy import HttpOptions


def parsed(*arguments: str) -> Namespace:
    return parse("http", list(arguments))[1]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[HttpOptions]:
    """Store the options of every run instead of running it."""
    options: list[HttpOptions] = []

    def run(passed_on: HttpOptions) -> int:
        options.append(passed_on)
        return 0

    monkeypatch.setattr(proxy, "run", run)
    return options


def test_every_option_arrives(ran: list[HttpOptions]) -> None:
    arguments = (
        "--upstream http://up:1/x --listen :7 --name n --record r --dir d --max-size 2k --cacert c --insecure"
    )
    assert main(parsed(*arguments.split(), "--allow-host", "a", "--allow-host", "b")) == 0
    (options,) = ran
    assert (options.host, options.port) == ("127.0.0.1", 7)
    assert options.upstream == ("http://up:1", "/x", "up:1", "")
    assert (options.name, options.record, options.folder, options.max_size) == ("n", "r", "d", 2048)
    assert (options.cacert, options.insecure, options.allowed_hosts) == ("c", True, ["a", "b"])
    assert options.recording


def test_a_pattern_that_re2_cannot_run_needs_an_option_and_is_warned_about_once(
    ran: list[HttpOptions], capfd: pytest.CaptureFixture[str]
) -> None:
    pattern = "id(?=7)"
    arguments = ("--upstream", "http://up", "--rule", f"/{pattern}/ => drop", "--redact-pattern", pattern)
    with pytest.raises(UsageError, match=r"look-ahead \(\?= is not supported .*--unsafe-regex"):
        main(parsed(*arguments))
    assert main(parsed(*arguments, "--unsafe-regex")) == 0
    (options,) = ran
    options.interception.interceptor()
    assert capfd.readouterr().err.splitlines() == [
        f"mcpspy: warning: /{pattern}/: look-ahead (?= runs on Python's re, which may never end"
    ]


def test_rules_and_the_watchdog_arrive_and_a_wrong_rule_is_reported_before(ran: list[HttpOptions]) -> None:
    arguments = (
        "--upstream",
        "http://up",
        "--rule",
        "tool:echo => drop",
        "--call-timeout",
        "2s",
        "--slow",
        "1",
    )
    main(parsed(*arguments, "--hold-timeout", "1min"))
    (options,) = ran
    interception = options.interception
    assert (interception.flags, interception.call_timeout, interception.slow, interception.hold_timeout) == (
        ["tool:echo => drop"],
        2,
        1,
        60,
    )
    with pytest.raises(UsageError, match="missing => between"):
        main(parsed(*arguments, "--rule", "drop all"))
    assert len(ran) == 1


def test_without_options_it_listens_on_loopback_and_records(
    ran: list[HttpOptions], capfd: pytest.CaptureFixture[str]
) -> None:
    main(parsed("--upstream", "http://up"))
    (options,) = ran
    assert (options.host, options.port) == ("127.0.0.1", 8808)
    assert options.recording
    assert (options.record, options.insecure, options.allowed_hosts) == (None, False, [])
    assert capfd.readouterr().err == ""


def test_no_record_records_nothing(ran: list[HttpOptions]) -> None:
    main(parsed("--upstream", "http://up", "--no-record"))
    assert not ran[0].recording


def test_a_forward_proxy_gets_what_a_server_would_and_its_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[forward_proxy.ForwardOptions] = []

    def run(passed_on: forward_proxy.ForwardOptions) -> int:
        ran.append(passed_on)
        return 0

    monkeypatch.setattr(forward_proxy, "run", run)
    words = (
        "--forward --allow a --ignore-host b --listen :7 --name n --record r --dir d --max-size 2k --cacert c"
    )
    assert main(parsed(*words.split(), "--insecure", "--no-redact")) == 0
    assert main(parsed("--forward", "--no-record")) == 0
    options, plain = ran
    assert (options.allowed, options.ignored, options.port) == (["a"], ["b"], 7)
    assert (options.name, options.record, options.folder, options.max_size) == ("n", "r", "d", 2048)
    assert (options.cacert, options.insecure, options.redaction.off) == ("c", True, True)
    assert (plain.host, plain.port, plain.allowed, plain.recording) == ("127.0.0.1", 8899, [], False)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "box.example"])
def test_listening_for_other_machines_is_warned_of(
    ran: list[HttpOptions], capfd: pytest.CaptureFixture[str], host: str
) -> None:
    main(parsed("--upstream", "http://up/mcp", "--listen", f"{host}:1"))
    assert len(ran) == 1
    err = capfd.readouterr().err
    assert err.startswith(f"mcpspy: warning: listening on {host}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("--upstream localhost:3001/mcp", "--upstream localhost:3001/mcp: not a server URL"),
        ("--upstream ftp://x", "--upstream ftp://x: not a server URL"),
        ("--upstream http://x --listen here", "--listen here: not a valid address (use HOST:PORT)"),
        ("--upstream http://x --listen :99999", "--listen :99999: not a valid port"),
        ("--upstream http://x --max-size 0", "--max-size 0: not a size"),
        ("--upstream http://x --allow y", "--allow requires --forward"),
        ("--upstream http://x --ignore-host y", "--ignore-host requires --forward"),
        ("--forward --allow-host y", "--allow-host requires --upstream"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(arguments: str, what: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mcpspy", "http", *arguments.split()],
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert ended.stderr.decode().startswith(f"mcpspy: http: {what}")
    assert ended.stderr.count(b"\n") == 1


def test_a_command_arrives_with_its_name_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[GatewayOptions] = []

    def run(given: GatewayOptions) -> int:
        options.append(given)
        return 0

    monkeypatch.setattr(gateway, "run", run)
    arguments = "--shared --listen :7 --allow-host a --slow 1 -- python weather.py --cacert x".split()
    assert main(parsed(*arguments)) == 0
    (given,) = options
    assert given.command == given.interception.command == ["python", "weather.py", "--cacert", "x"]
    assert (given.name, given.port, given.is_shared) == ("weather", 7, True)
    assert (given.allowed_hosts, given.interception.slow) == (["a"], 1)
    assert not given.interception.may_be_unknown


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--upstream http://up", "-- COMMAND and --upstream exclude each other"),
        ("--forward", "-- COMMAND and --forward exclude each other"),
        ("--unix-socket s", "--unix-socket requires --upstream"),
        ("--keep-resource", "--keep-resource requires --upstream"),
        ("--cacert f", "--cacert and -- COMMAND exclude each other"),
        ("--insecure", "--insecure and -- COMMAND exclude each other"),
        ("--allow x", "--allow requires --forward"),
    ],
)
def test_options_of_a_connection_over_http_do_not_fit_a_command(option: str, error: str) -> None:
    with pytest.raises(UsageError, match=f"^http: {error}"):
        parsed(*option.split(), "--", "true")


def test_a_program_that_does_not_exist_is_reported_before_the_listener_starts() -> None:
    with pytest.raises(CannotStart, match="cannot start no-such-program: not found on PATH"):
        main(parsed("--no-record", "--", "no-such-program"))
