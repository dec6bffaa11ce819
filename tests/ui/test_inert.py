"""What a terminal is shown is what a document is written with."""

from __future__ import annotations

from mcpspy.core import inert as below
from mcpspy.ui.inert import inert, inert_bytes


def test_there_is_one_door() -> None:
    assert inert is below.inert
    assert inert_bytes is below.inert_bytes
