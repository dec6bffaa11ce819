"""Gaps of a recording, because of which a judgment on it is "incomplete".

`lint`, `check`, `trust --check` and `replay` ask here, and only after they found nothing wrong: what is wrong with the
rest of a session does not become right by more entries, but what was not recorded, or not requested, cannot be judged.

- A recording may be cut: its last line is incomplete, or mcpspy was killed while requests were pending.
- Entries may be lost, because a disk was full, and lines damaged. A response may be among them.
- A list may have pages that no one requested (server/utilities/pagination): a tool may be on one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcpspy.analysis.trust import Interface
from mcpspy.core.counted import counted, damaged_lines
from mcpspy.core.protocol.listing import EVERY_LISTING, ListingPages
from mcpspy.core.protocol.message import Result
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Change, Session
from mcpspy.core.trust.lock import TrustedServer


class Gap(NamedTuple):
    """Something that a recording lacks."""

    text: str
    """One line; may contain text of a peer that is not sanitized yet."""
    is_listing: bool = False
    """Only a list is incomplete: what was called, and how it ended, is known."""


class Completeness:
    """The gaps of a session that is read once. It keeps no message."""

    def __init__(self) -> None:
        self._lost = self._damaged = 0
        self._pages = ListingPages[None]()
        self._unread: dict[str, str] = {}
        """Method → the cursor of the page that the latest listing lacks."""
        self._whole: set[str] = set()
        """Methods of which one listing had all pages."""

    def add(self, change: Change) -> None:
        what = change.what
        if isinstance(what, Note):
            if what.kind == "lost":
                entries = what.fields.get("entries")
                self._lost += entries if isinstance(entries, int) else 1
        elif isinstance(what, Damaged):
            self._damaged += 1
        elif isinstance(what, Result) and change.exchange is not None:
            request = change.exchange.request
            if request.method in EVERY_LISTING and isinstance(result := what.result, dict):
                listing = self._pages.add_result(request, result, None)
                if listing.is_whole:
                    self._whole.add(request.method)
                elif listing.following is not None:
                    self._unread[request.method] = listing.following

    def gaps(self, *, torn: int = 0, pending: int = 0) -> list[Gap]:
        """Return the gaps. `torn` are the bytes of an incomplete last line, `pending` the requests without a response at
        the end of a recording that has no end.
        """
        found = []
        if torn:
            found.append(Gap(f"the last line is incomplete ({torn} bytes skipped)"))
        if pending:
            found.append(Gap(f"the recording ends while {counted(pending, 'request')} had no response"))
        if self._lost:
            entries = "1 entry was" if self._lost == 1 else f"{self._lost:,} entries were"
            found.append(Gap(f"{entries} not recorded"))
        if self._damaged:
            found.append(Gap(damaged_lines(self._damaged)))
        for method, cursor in self._unread.items():
            if method not in self._whole:
                found.append(
                    Gap(f"{method}: the page with the cursor {cursor[:40]!r} was not requested", True)
                )
        return found


def gaps(session: Session, *, torn: int = 0, is_cut: bool = False) -> list[Gap]:
    """Return the gaps of a session that has been read; `is_cut` if its recording has no end."""
    found = Completeness()
    for change in session.changes:
        found.add(change)
    unanswered = [each for each in session.exchanges if each.state is State.UNANSWERED and each.is_counted]
    missing = len(unanswered) if is_cut else 0
    return found.gaps(torn=torn, pending=missing)


def unseen_lists(trusted: TrustedServer, seen: Interface) -> Iterable[Gap]:
    """Yield the lists in a lockfile of which the session of a server does not show every page."""
    for member in trusted.listed:
        if trusted.items.get(member) and member not in seen.items:
            yield Gap(f"the session does not show the list of {member}", True)
