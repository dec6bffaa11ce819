"""Timeouts of hosts."""

from __future__ import annotations

from mcpspy.core.hostconfig.servers import patience


def test_a_known_host_gives_up_on_what_it_gives_up_on() -> None:
    desktop, cline = patience("claude-ai", "ping"), patience("Cline", "tools/call")
    assert desktop is not None
    assert cline is not None
    assert (desktop.host, desktop.seconds, cline.seconds) == ("Claude Desktop", 60, 60)
    assert patience("Cline", "tools/list") is None


def test_a_host_that_adds_a_servers_name_to_its_own_is_known() -> None:
    for name in ("gemini-cli-mcp-client", "gemini-cli-mcp-client-files"):
        found = patience(name, "tools/call")
        assert found is not None
        assert found.seconds == 600


def test_of_others_nothing_is_claimed() -> None:
    assert patience("claude-code", "tools/call") is None
    assert patience("Clineish", "tools/call") is None
    assert patience("", "tools/call") is None
