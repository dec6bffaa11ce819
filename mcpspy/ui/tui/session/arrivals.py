"""Rows that have come, and when the list is given them.

Owns that what arrives out of sight waits, because each new height is a new
layout, and how much of it a person has not seen.
"""

from __future__ import annotations

import time
from bisect import bisect_left

from mcpspy.ui.tui.session.feed import Feed
from mcpspy.ui.tui.session.messages import MessageList
from mcpspy.ui.tui.session.view import View

PAUSED = 0.5
"""Seconds between two growths of a list whose end is not in view."""

SORTED_EVERY = 1.0
"""Seconds between two times that a growing list is sorted."""


class Arrivals:
    """From the view to the list."""

    def __init__(self, feed: Feed, view: View, listing: MessageList) -> None:
        self._feed = feed
        self._view = view
        self._listing = listing
        self._seen = 0
        """Rows of the session that were there when it was last followed."""
        self._shown_at = 0.0
        self._sorted_at = 0.0
        self._generation = 0

    @property
    def unseen(self) -> int:
        """How many rows came since it was followed; those that a filter lets in again are not new."""
        view = self._view
        return 0 if view.wish.is_sorted else len(view) - bisect_left(view.rows, self._seen)

    def show(self, *, at_once: bool = False) -> None:
        """Give the list the rows that arrived."""
        view, listing, now = self._view, self._listing, time.monotonic()
        listing.can_follow = self._feed.is_live and not view.wish.is_sorted
        if view.is_stale and now > self._sorted_at + SORTED_EVERY:
            self._sorted_at = now
            view.sort()
        if view.generation != self._generation:
            self._generation = view.generation
            at_once = True
        at_once |= listing.follow or listing.has_room or now > self._shown_at + PAUSED
        if at_once and (len(view) or not view.is_behind):
            self._shown_at = now
            listing.sync(len(view))
        if not view.is_behind:  # The last row was gone to.
            listing.follow &= listing.can_follow
        listing.renew()
        if listing.follow or not self._feed.is_live:
            self._seen = view.judged
