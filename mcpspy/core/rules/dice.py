"""Dice that fall the same way every time.

Owns the promise of a chaos run: the n-th match of a rule under a seed is
decided the same, whatever came between, on every machine. A hash, not a
generator: there is no state that the timing of messages could reach.
"""

from __future__ import annotations

from hashlib import blake2b


def roll(seed: int | str, rule: str, match: int) -> float:
    """Return a number from 0 to below 1 for the match of this number of the rule."""
    digest = blake2b(f"{seed}:{rule}:{match}".encode("utf-8", "replace"), digest_size=7).digest()
    return (int.from_bytes(digest) >> 3) / (1 << 53)
