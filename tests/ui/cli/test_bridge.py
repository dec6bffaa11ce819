"""`mcpspy bridge`: its options."""

from __future__ import annotations

import pytest

from mcpspy.io.bridge import run as bridge
from mcpspy.io.bridge.bridge import BridgeOptions
from mcpspy.io.client.oauth import OAuthOptions
from mcpspy.io.extras import install_command
from mcpspy.ui.cli.main import main


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[BridgeOptions]:
    """Store the options instead of starting the bridge."""
    found: list[BridgeOptions] = []

    def run(options: BridgeOptions) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(bridge, "run", run)
    return found


def test_every_option_arrives(ran: list[BridgeOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    arguments = (
        "--upstream https://example.com/mcp --name n --record r.jsonl --dir d --max-size 1k --sse "
        "--cacert ca.pem --insecure --no-redact --max-body 2M"
    )
    assert main(["bridge", *arguments.split(), "--header", "Authorization: Bearer ${TOKEN}"]) == 0
    (options,) = ran
    assert options.address == (
        "https://example.com/mcp",
        (("Authorization", "Bearer t0ken"),),
        "ca.pem",
        True,
        True,
        2 << 20,
        "https://example.com/mcp",
    )
    assert (options.name, options.record, options.folder, options.max_size) == ("n", "r.jsonl", "d", 1024)
    assert options.recording
    assert options.redaction.off


def test_by_default_it_is_named_after_the_host_and_finds_out_what_the_server_speaks(
    ran: list[BridgeOptions],
) -> None:
    assert main(["bridge", "--upstream", "https://example.com:8443/mcp", "--no-record"]) == 0
    (options,) = ran
    assert (options.name, options.recording, options.address.is_sse) == ("example.com:8443", False, None)


def test_secrets_are_read_from_variables(ran: list[BridgeOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "https://example.com/mcp?key=s3cret")
    monkeypatch.setenv("KEY", " ${k} \n")
    monkeypatch.setenv("TOKEN", "t0ken")

    arguments = (
        "--upstream-env URL --header-env X-Key=KEY --header-env A=TOKEN --bearer-env TOKEN --header B:b"
    )
    assert main(["bridge", *arguments.split()]) == 0

    (options,) = ran
    assert options.address.url == "https://example.com/mcp?key=s3cret"
    assert options.address.headers == (
        ("B", "b"),
        ("X-Key", "${k}"),
        ("A", "t0ken"),
        ("Authorization", "Bearer t0ken"),
    )
    assert options.name == "example.com"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["--upstream-env", "NOT_SET_AT_ALL"],
            "--upstream-env: environment variable NOT_SET_AT_ALL is not set (hosts set it by env in their config)",
        ),
        (["--upstream-env", "SECRET"], "--upstream-env SECRET: not a server URL"),
        (
            ["--upstream", "http://a", "--upstream-env", "SECRET"],
            "--upstream-env and --upstream exclude each other",
        ),
        (
            ["--upstream", "http://a", "--header-env", "X=NOT_SET_AT_ALL"],
            "--header-env X: environment variable NOT_SET_AT_ALL is not set",
        ),
        (
            ["--upstream", "http://a", "--bearer-env", "NOT_SET_AT_ALL"],
            "--bearer-env: environment variable NOT_SET_AT_ALL is not set",
        ),
        (["--upstream", "http://a", "--header-env", "X=LINES"], "variable LINES has several lines"),
        (["--upstream", "http://a", "--header-env", "X: y"], "--header-env: not a header and a variable"),
        (["--upstream", "http://a", "--header-env", "=X"], "(use NAME=VARIABLE)"),
        (["--upstream", "http://a", "--header-env", "X="], "(use NAME=VARIABLE)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_variable_that_is_of_no_use_is_one_line_without_its_value(
    arguments: list[str],
    why: str,
    ran: list[BridgeOptions],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NOT_SET_AT_ALL", raising=False)
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("LINES", "s3cret\ns3cret")

    try:
        code = main(["bridge", *arguments])
    except SystemExit as exit_:
        code = int(str(exit_.code))

    err = capsys.readouterr().err
    assert (code, ran, err.count("\n")) == (2, [], 1)
    assert why in err
    assert "s3cret" not in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--upstream", "nowhere"], "--upstream nowhere: not a server URL"),
        (
            ["--upstream", "http://a", "--header", "no colon"],
            "--header: not a valid header (use 'Name: value')",
        ),
        (
            ["--upstream", "http://a", "--header", "A: ${NOT_SET_AT_ALL}"],
            "environment variable NOT_SET_AT_ALL is not set",
        ),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bridge", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_a_registered_client_is_used_with_its_secret(
    ran: list[BridgeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")

    given = "--upstream https://example.com --oauth-client-id me --oauth-secret-env SECRET --oauth-scope read"
    assert main(["bridge", *given.split()]) == 0

    (options,) = ran
    assert options.oauth == OAuthOptions("me", "s3cret", "read")


def test_options_of_oauth_without_the_extra_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcpspy.io.client.oauth.find_spec", lambda _: None)

    assert main(["bridge", "--upstream", "https://example.com", "--oauth-scope", "read"]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: bridge: --oauth-… needs the extra oauth ({install_command('oauth')})\n"
    )
