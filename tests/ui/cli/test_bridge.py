"""`mcpspy bridge`: its options."""

from __future__ import annotations

import pytest

from mcpspy.io import bridge
from mcpspy.io.bridge import BridgeOptions
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
        "--cacert ca.pem --insecure --no-redact"
    )
    assert main(["bridge", *arguments.split(), "--header", "Authorization: Bearer ${TOKEN}"]) == 0
    (options,) = ran
    assert options.address == (
        "https://example.com/mcp",
        (("Authorization", "Bearer t0ken"),),
        "ca.pem",
        True,
        True,
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
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bridge", *arguments]) == 2
    assert why in capsys.readouterr().err
