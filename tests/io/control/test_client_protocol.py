"""Lines between a viewer and a session."""

from __future__ import annotations

import json
import socket

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import client as module
from mcpspy.io.control.client import ControlClient


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (b"SSH-2.0-OpenSSH\n", "not an mcpspy session"),
        (b"{}\n", "no valid greeting from the session"),
        (b'{"mcpspy":2}\n', "a newer mcpspy"),
        (b"", "the session has ended"),
    ],
)
def test_a_socket_of_another_program_is_reported_in_one_line(
    hello: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = socket.socketpair()
    other.sendall(hello)
    other.close()
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    with pytest.raises(CannotStart, match=why):
        ControlClient("x.sock")


def test_an_order_is_one_line_whatever_is_in_it() -> None:
    line = module.dumped({"n": 3, "order": "request", "method": "x\ny", "params": {"n": 10**30}})
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"n": 3, "order": "request", "method": "x\ny", "params": {"n": 10**30}}
