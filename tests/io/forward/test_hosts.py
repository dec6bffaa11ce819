"""The hosts that are decrypted."""

from __future__ import annotations

import pytest

from mcpspy.io.forward.hosts import HostSet


@pytest.mark.parametrize(
    ("allowed", "ignored", "is_open"),
    [
        ([], [], True),
        (["mcp.example.com"], [], True),
        (["MCP.Example.com"], [], True),
        (["*.example.com"], [], True),
        (["*.example.com:443"], [], True),
        (["*.example.com:8443"], [], False),
        (["example.com"], [], False),
        (["other", "mcp.*"], [], True),
        ([], ["*.example.com"], False),
        (["mcp.example.com"], ["*"], False),
        ([], ["example.com"], True),
    ],
)
def test_globs_choose_by_name_and_by_name_and_port(
    allowed: list[str], ignored: list[str], is_open: bool
) -> None:
    assert HostSet(allowed, ignored).is_open("mcp.Example.com", 443) is is_open


def test_a_closed_host_stays_closed_on_its_port() -> None:
    hosts = HostSet()
    assert hosts.close("a.example", 443)
    assert not hosts.close("A.example", 443)
    assert not hosts.is_open("A.example", 443)
    assert hosts.is_open("a.example", 8443)


def test_a_host_is_doubted_until_a_client_trusts_it() -> None:
    hosts = HostSet()
    assert [hosts.mark_doubted("a", 1), hosts.mark_doubted("b", 1), hosts.mark_doubted("A", 1)] == [
        False,
        False,
        True,
    ]
    hosts.trust("a", 1)
    assert [hosts.mark_doubted("a", 1), hosts.mark_doubted("b", 1)] == [False, True]
