"""The extra that all of this takes, asked for once, by name."""

from __future__ import annotations

from importlib.util import find_spec

from mcpspy.errors import CannotStart


def need(command: str) -> None:
    """Raise CannotStart if mitmproxy is not installed."""
    if find_spec("mitmproxy") is None:
        raise CannotStart(f"{command} needs mitmproxy, which is not installed", "pip install 'mcpspy[mitm]'")
