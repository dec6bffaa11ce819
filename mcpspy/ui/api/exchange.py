"""Properties that the exchanges of recorded and of live sessions have in common.

It imports almost nothing, because the process that runs scripts uses it too.
"""

from __future__ import annotations

from typing import Any


class BaseExchange:
    """A request. A subclass has its method, subject and params."""

    __slots__ = ()

    @property
    def method(self) -> str:
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """Name or URI of the tool, resource or prompt; empty if there is none."""
        raise NotImplementedError

    @property
    def params(self) -> Any:
        """The decoded params; None if there are none."""
        raise NotImplementedError

    @property
    def tool(self) -> str:
        """The name of the called tool; empty for other requests."""
        return self.subject if self.method == "tools/call" else ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for a tool or a prompt; empty if the request has none."""
        found = self.params.get("arguments") if isinstance(self.params, dict) else None
        return found if isinstance(found, dict) else {}
