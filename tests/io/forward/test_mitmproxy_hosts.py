"""The hosts that are decrypted."""

from __future__ import annotations

import pytest
from mitmproxy.tls import ClientHello

from mcpspy.io.forward.mitmproxy import HostSet, fingerprint


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


def test_a_host_is_closed_for_one_client_on_one_port() -> None:
    hosts = HostSet()
    assert hosts.close("a.example", 443, "node")
    assert not hosts.close("A.example", 443, "node")
    assert not hosts.is_open("A.example", 443, "node")
    assert hosts.is_open("a.example", 8443, "node")
    assert hosts.is_open("a.example", 443, "python")


def test_a_host_is_doubted_until_the_client_trusts_it() -> None:
    hosts = HostSet()
    marked = [
        hosts.mark_doubted(name, 1, client)
        for name, client in (("a", "x"), ("b", "x"), ("a", "y"), ("A", "x"))
    ]
    assert marked == [False, False, False, True]
    hosts.trust("a", 1, "x")
    assert [hosts.mark_doubted(name, 1, "x") for name in "ab"] == [False, True]


def hello(ciphers: list[int], extensions: list[int]) -> ClientHello:
    """Return a ClientHello (RFC 8446, 4.1.2) with empty extensions."""
    listed = b"".join(cipher.to_bytes(2) for cipher in ciphers)
    given = b"".join(kind.to_bytes(2) + b"\0\0" for kind in extensions)
    return ClientHello(
        b"\x03\x03"
        + bytes(32)
        + b"\0"
        + len(listed).to_bytes(2)
        + listed
        + b"\x01\0"
        + len(given).to_bytes(2)
        + given
    )


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (([0x1301, 0x1302], [10, 13, 43]), True),
        (([0x1301, 0x1302], [43, 13, 10]), True),
        (([0x2A2A, 0x1301, 0x1302], [0xFAFA, 10, 13, 43]), True),
        (([0x1301, 0x1302], [10, 13, 43, 35, 21]), True),
        (([0x1302, 0x1301], [10, 13, 43]), False),
        (([0x1301, 0x1302], [10, 13]), False),
        (([0x1301, 0x1302, 0x2A3A], [10, 13, 43]), False),
    ],
)
def test_the_connections_of_one_client_have_one_fingerprint(
    other: tuple[list[int], list[int]], is_same: bool
) -> None:
    first = fingerprint(hello([0x1301, 0x1302], [10, 13, 43]), "127.0.0.1")
    assert (fingerprint(hello(*other), "127.0.0.1") == first) is is_same
    assert fingerprint(hello(*other), "127.0.0.2") != first
