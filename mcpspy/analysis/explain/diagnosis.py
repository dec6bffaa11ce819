"""The diagnosis of a session: ranks the causes by their signs.

Causes are in the order of `causes.CAUSES`; those that another cause brings about are left out.
"""

from __future__ import annotations

from msgspec import Struct

from mcpspy.analysis.explain.causes import CAUSES
from mcpspy.analysis.explain.signs import (
    AT_START,
    EvidenceLine,
    Signs,
    add_change,
    add_exit,
    add_finding,
    add_unfinished,
)
from mcpspy.analysis.lint import EntryPosition, Linter
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.core.recording.decode import Entry, Header
from mcpspy.core.session.streaming import StreamingSession

SHOWN = 5
"""Maximum number of signs of one cause that are kept as evidence."""

_NO_START = (
    "crash",
    "timeout",
    "stdout-noise",
    "no-response",
    "orphaned-process",
    "handshake",
    "protocol-violation",
)
_OF_CRASH = ("no-response", "orphaned-process", "handshake", "protocol-violation")

CONSEQUENCES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(AT_START[:-1], ("start-failed", *_NO_START)),
    "start-failed": _NO_START,
    **dict.fromkeys(
        ("tls-failure", "upstream-unreachable", "authorization", "session-lost"),
        ("wrong-endpoint", "http-error", "request-failed", "invalid-result", *_OF_CRASH),
    ),
    "wrong-endpoint": ("http-error", "request-failed", *_OF_CRASH),
    "version-mismatch": ("http-error", "request-failed", "downgrade", *_OF_CRASH),
    "mcpspy-rule": ("request-failed", "timeout", "message-cut", "stdout-noise", "http-error", *_OF_CRASH),
    "crash": _OF_CRASH,
    "message-cut": ("stdout-noise", "timeout", *_OF_CRASH),
    "stdout-noise": ("protocol-violation",),
    "timeout": ("no-response", "orphaned-process"),
    "no-response": ("orphaned-process",),
    "http-error": ("request-failed", *_OF_CRASH),
    "capability-missing": ("method-not-found", "request-failed"),
    "unlisted-tool": ("request-failed", "invalid-arguments"),
    "invalid-arguments": ("request-failed",),
    "method-not-found": ("request-failed",),
    "schema-dropped": ("invalid-result", "protocol-violation"),
}
"""Cause → the causes that are reported only without it."""

OF_REQUEST = ("no-response", "timeout", "crash", "stdout-noise", "message-cut", "mcpspy-rule", "upstream-unreachable", "tls-failure", "authorization", "session-lost", "http-error", *AT_START)  # fmt: skip
"""Causes, also on later lines, because of which a request has no response."""


class Cause(Struct, frozen=True):
    code: str
    """Its name in `CAUSES`."""
    title: str
    detail: str
    """The first sign in words."""
    evidence: tuple[EvidenceLine, ...]
    count: int
    """Number of signs, also of those that are not in `evidence`; at most `MOST`."""
    next_step: str


class LastGood(Struct, frozen=True):
    """The last session of the server that had no error, and what changed since then."""

    session: str
    """Its id."""
    started: str
    changes: tuple[EvidenceLine, ...]
    """Differences of definitions, capabilities, versions, outcomes and latency; the most relevant first."""
    count: int
    """Number of differences, also of those that are not in `changes`."""
    known: tuple[str, ...]
    """Codes of the causes that the good session has too."""


class Diagnosis(Struct, frozen=True):
    summary: str
    causes: tuple[Cause, ...]
    """The most likely one first."""
    last_good: LastGood | None = None


class Explainer:
    """Explains a session while it is read: entries in, a diagnosis out."""

    def __init__(self, header: Header, hosts: tuple[HostProfile, ...] | None = None) -> None:
        """`hosts` are the hosts whose limits count; None for those that `clientInfo` names."""
        self._session, self._linter = StreamingSession(header), Linter(header, hosts=hosts)
        self._signs = Signs()
        self._is_stdio = header.transport == "stdio"

    def add(self, entry: Entry, place: EntryPosition) -> list[int]:
        """Add the next entry; return the numbers of the exchanges to which its messages belong."""
        exchanges = []
        for change in self._session.add(entry):
            if change.exchange is not None:
                exchanges.append(change.exchange.number)
            add_change(self._signs, change, place)
            for finding in self._linter.add(change, place):
                add_finding(self._signs, finding)
        return exchanges

    def end(self) -> None:
        """Add what is known at the end of a session that is not live."""
        self._session.end()
        add_unfinished(self._signs)
        for finding in self._linter.end():
            add_finding(self._signs, finding)
        if self._session.exit is not None and self._is_stdio:
            add_exit(self._signs, self._session.exit)
        if self._signs.waits_since is not None:
            for cause in ("timeout", "no-response"):
                if cause in self._signs.found:
                    self._signs.add_stderr(cause, self._signs.waits_since)

    def diagnosis(self, lines: set[int] | None = None) -> Diagnosis:
        """Return the causes: all, or those of the exchange on these lines of the first file."""
        signs = self._signs
        causes = _ranked(signs, lines)
        if causes:
            rest = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
            return Diagnosis(f"{causes[0].title}{rest}", causes)
        about = f"in {signs.messages:,} messages" if lines is None else f"with line {min(lines)}"
        return Diagnosis(f"nothing wrong found {about}", ())


def _ranked(signs: Signs, related: set[int] | None) -> tuple[Cause, ...]:
    """Return the causes with signs, the first in `CAUSES` first, without consequences of others."""
    found = {code: [*every] for code, every in signs.found.items()}
    for (code, _), refusals in signs.refused.items():
        found.setdefault(code, []).extend(refusals)
    for code, status in signs.statuses.values():
        found.setdefault(code, []).append(status)
    if related is not None:
        first = min(related)
        is_open = any(place.line in related for place in signs.places.values())
        found = {
            code: kept
            for code, every in found.items()
            if (
                kept := [
                    each
                    for each in every
                    if each.line in related or (is_open and code in OF_REQUEST and each.line >= first)
                ]
            )
        }
    left_out = {consequence for code in found for consequence in CONSEQUENCES.get(code, ())}
    return tuple(_cause(code, found[code]) for code in CAUSES if code in found and code not in left_out)


def _cause(code: str, signs: list[EvidenceLine]) -> Cause:
    kind = CAUSES[code]
    evidence = tuple(dict.fromkeys(signs))
    return Cause(code, kind.title, evidence[0].text, evidence[:SHOWN], len(evidence), kind.next_step)
