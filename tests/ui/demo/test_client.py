"""The demo client, with servers that fail."""

from __future__ import annotations

import sys

import pytest

from mcpspy.errors import CannotStart
from mcpspy.ui.demo.client import converse


def test_a_conversation_with_the_server_itself_ends_well() -> None:
    assert converse([sys.executable, "-m", "mcpspy.ui.demo.weather"]) == 0


def test_a_server_that_stops_halfway_is_an_error_with_a_way_out() -> None:
    with pytest.raises(CannotStart, match="exited before it responded"):
        converse([sys.executable, "-c", "input()"])
