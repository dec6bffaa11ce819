"""Options of a comparison, and the parser of their text form."""

from __future__ import annotations

import re

from msgspec import Struct

from mcpspy.analysis.diff.ignore import Ignored

LISTED = {
    "tools": ("tools/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""Part of an interface → the methods that list it."""


class LatencyLimit(Struct, frozen=True):
    """Maximum latency: `factor` times the old latency, plus `allowance`."""

    factor: float
    allowance: float = 0.0

    def allows(self, old: float, new: float) -> bool:
        """Return whether the new latency is within the limit. In seconds."""
        return new <= old * self.factor + self.allowance


class DiffOptions(Struct, frozen=True, kw_only=True):
    """How to compare. Values that differ in every run are ignored in any case: see `normalize`."""

    only: frozenset[str] = frozenset()
    """Keys of `LISTED`: compare only these parts of the interface. Empty: everything."""
    ignored: tuple[Ignored, ...] = ()
    dates: bool = False
    slower_than: LatencyLimit | None = None

    @property
    def methods(self) -> frozenset[str]:
        """The only methods to compare; empty: all."""
        return frozenset(method for part in self.only for method in LISTED[part])


_SLOWER = re.compile(r"(?:(\d+(?:\.\d+)?)x)?\+?(?:(\d+(?:\.\d+)?)(us|ms|s))?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def slower(text: str) -> LatencyLimit:
    """Parse `2x`, `1.5x+20ms` or `200ms`; raise ValueError if it is invalid."""
    found = _SLOWER.fullmatch(text)
    if found is None or text.startswith("+") or text.endswith("+") or not any(found.groups()):
        raise ValueError("like 2x, 1.5x+20ms or 200ms")
    factor, allowance, unit = found.groups()
    if factor is not None and allowance is not None and "+" not in text:
        raise ValueError("like 2x, 1.5x+20ms or 200ms")
    if factor is not None and float(factor) < 1:
        raise ValueError("a factor below 1 would ask it to be faster")
    return LatencyLimit(
        1.0 if factor is None else float(factor),
        0.0 if allowance is None else float(allowance) * _UNITS[unit],
    )
