"""Default timeouts of hosts."""

from __future__ import annotations

from mcpspy.core.hostconfig.servers import response_timeout


def test_a_known_host_gives_up_on_what_it_gives_up_on() -> None:
    desktop, cline = response_timeout("claude-ai", "ping"), response_timeout("Cline", "tools/call")
    assert desktop is not None
    assert cline is not None
    assert (desktop.host, desktop.seconds, cline.seconds) == ("Claude Desktop", 60, 60)
    assert response_timeout("Cline", "tools/list") is None


def test_a_host_that_adds_a_servers_name_to_its_own_is_known() -> None:
    for name in ("gemini-cli-mcp-client", "gemini-cli-mcp-client-files"):
        found = response_timeout(name, "tools/call")
        assert found is not None
        assert found.seconds == 600


def test_of_others_nothing_is_claimed() -> None:
    assert response_timeout("claude-code", "tools/call") is None
    assert response_timeout("Clineish", "tools/call") is None
    assert response_timeout("", "tools/call") is None
