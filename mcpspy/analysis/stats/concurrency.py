"""The number of requests in flight over time, and which side waited.

Owns the count of either side, its peaks, and the shares of the time. Keeps a few hundred numbers for a session
of any length: when the bins are used up, pairs of them are merged. A time before the latest counts as the latest.
"""

from __future__ import annotations

from array import array

BINS = 256
"""Intervals whose peak is kept: more than a terminal has columns. At least half of them are in use."""

FINEST = 1 / 1024
"""Initial length of an interval in seconds."""


class Concurrency:
    """The requests in flight, except subscriptions."""

    def __init__(self) -> None:
        self.peak = 0
        self.server_peak = 0
        self.served = 0.0
        """Seconds in which the client waited for the server and the server did not wait for the client."""
        self.client_seconds = 0.0
        """Seconds in which the server waited for the client."""
        self.area = 0.0
        """Sum of the seconds that the client's requests were in flight."""
        self._from_client = self._from_server = 0
        self._at = 0.0
        self._width = self._bin_end = FINEST
        self._peaks = array("I", bytes(array("I").itemsize * BINS))
        self._bin = 0

    def change(self, is_client: bool, by: int, at: float) -> None:
        """Change the number of requests in flight that one side sent, at a time."""
        passed = at - self._at
        if passed > 0.0:
            self._at = at
            now = self._from_client
            if self._from_server:
                self.client_seconds += passed
                self.area += now * passed
            elif now:
                self.served += passed
                self.area += now * passed
            if at >= self._bin_end:
                self._advance(at)
        if is_client:
            self._from_client = now = self._from_client + by
            if now > self._peaks[self._bin]:
                self._peaks[self._bin] = now
                self.peak = max(self.peak, now)
        else:
            self._from_server = now = self._from_server + by
            self.server_peak = max(self.server_peak, now)

    def advance(self, at: float) -> None:
        """Advance the time without a change."""
        self.change(True, 0, at)

    @property
    def span(self) -> float:
        """Seconds that a profile covers: to the end of the last change's interval."""
        return self._bin_end

    def profile(self, columns: int) -> list[int]:
        """Return the peaks of the client's requests in flight, in at most `columns` intervals of equal length."""
        used = self._bin + 1
        columns = max(min(columns, used), 1)
        return [
            max(self._peaks[used * column // columns : used * (column + 1) // columns])
            for column in range(columns)
        ]

    def _advance(self, at: float) -> None:
        """Advance to the bin of a time. Requests in flight are counted in all bins in between."""
        peaks = self._peaks
        while at / self._width >= BINS:
            halves = map(max, peaks[::2], peaks[1::2])
            self._peaks = peaks = array("I", [*halves, *bytes(BINS // 2)])
            self._width *= 2
            self._bin //= 2
        reached = int(at / self._width)
        for place in range(self._bin + 1, reached + 1):
            peaks[place] = self._from_client
        self._bin = reached
        self._bin_end = (reached + 1) * self._width
