"""Addresses to listen on, as users write them."""

from __future__ import annotations

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import listen_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8808", ("127.0.0.1", 8808)),
        (":0", ("127.0.0.1", 0)),
        ("localhost:1", ("localhost", 1)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_a_port_and_perhaps_a_host(text: str, address: tuple[str, int]) -> None:
    assert listen_address("--listen", text) == address


@pytest.mark.parametrize("text", ["", ":", "x", "localhost", "host:x", "1.5", "-1", "host:", "[::1]"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a valid address \(use HOST:PORT\)"):
        listen_address("--listen", text)


def test_a_port_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"65536: not a valid port \(use 1 to 65535, or 0 for a free one\)"):
        listen_address("--listen", "65536")
    with pytest.raises(UsageError, match=r"x: not a valid port \(use a number, such as 8809\)"):
        listen_address("--http", "x")
