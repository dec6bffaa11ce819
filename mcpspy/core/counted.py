"""A number with its noun, and a time span with its unit."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 message`, `2,000 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Return a time span with its unit: `850 µs`, `12.1 ms`, `1.25 s`, `2m05s`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def damaged_lines(count: int) -> str:
    """Return a warning about lines in the middle of a recording that are not valid entries."""
    return "1 damaged line skipped" if count == 1 else f"{count} damaged lines skipped"
