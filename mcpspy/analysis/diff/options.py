"""What a comparison leaves out, and what it looks at besides.

Owns the options, and the reading of those that people type.
"""

from __future__ import annotations

import re

from msgspec import Struct

from mcpspy.analysis.diff.ignore import Ignored

LISTED = {
    "tools": ("tools/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""What an interface is made of → the methods that list it."""


class LatencyLimit(Struct, frozen=True):
    """How much slower is too slow: beyond `factor` times the old latency and `allowance` on top."""

    factor: float
    allowance: float = 0.0
    """Seconds."""

    def allows(self, old: float, new: float) -> bool:
        """Whether a latency may be what it is now. In seconds."""
        return new <= old * self.factor + self.allowance


class DiffOptions(Struct, frozen=True, kw_only=True):
    """How to compare. What differs from run to run is left out without being named: see `volatile`."""

    only: frozenset[str] = frozenset()
    """Of `LISTED`: compare nothing but these parts of the interface. Empty: everything."""
    ignored: tuple[Ignored, ...] = ()
    """What may differ."""
    dates: bool = False
    """Whether two texts are the same that differ only in dates and times."""
    slower_than: LatencyLimit | None = None
    """What is too slow; None: time is not compared."""

    @property
    def methods(self) -> frozenset[str]:
        """The only methods to compare; empty: all."""
        return frozenset(method for part in self.only for method in LISTED[part])


_SLOWER = re.compile(r"(?:(\d+(?:\.\d+)?)x)?\+?(?:(\d+(?:\.\d+)?)(us|ms|s))?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def slower(text: str) -> LatencyLimit:
    """Return what `2x`, `1.5x+20ms` or `200ms` means; raise ValueError if it means nothing."""
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
