"""The diagnosis of a session: entries in, causes out, the most likely first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mcpspy.analysis.explain.causes import CAUSES, READ_RULES
from mcpspy.analysis.explain.claims import Claim, claims_of, folded, lines_of
from mcpspy.analysis.explain.collector import FactCollector
from mcpspy.analysis.explain.evidence import EvidenceLine, quote
from mcpspy.analysis.lint import RULES, EntryPosition, Linter
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.core.recording.decode import Entry, Header
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession

_RULES = tuple(rule for rule in RULES if rule.code in READ_RULES)

_new = (
    tuple.__new__
)  # What a named tuple's own class does takes three times as long, and there is one for each line.

SHOWN = 5
"""Maximum number of lines of one cause that are shown as evidence."""

MAX_TITLE = 300
"""Maximum characters of a sentence with a peer's words."""


class Cause(Struct, frozen=True):
    code: str
    """Its name (docs/explain.md)."""
    title: str
    """The event and its reason, in a sentence; sanitized."""
    detail: str
    """The first line of the evidence."""
    evidence: tuple[EvidenceLine, ...]
    count: int
    """Number of times that it happened."""
    next_step: str
    side: str = ""
    """The origin of the mistake: `server`, `client`, `proxy`, `configuration`, `environment`, `mcpspy`; empty if open."""


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
    observations: tuple[Cause, ...] = ()
    """Facts that are worth knowing, and are not failures."""


class Explainer:
    """Explains a session while it is read: entries in, a diagnosis out."""

    def __init__(
        self,
        header: Header,
        hosts: tuple[HostProfile, ...] | None = None,
        focus: frozenset[int] = frozenset(),
    ) -> None:
        """`hosts` are the hosts whose limits count; None for those that `clientInfo` names.

        `focus` are the numbers of the exchanges that are to be explained; empty for the whole session.
        """
        self._session, self._linter = StreamingSession(header), Linter(header, _RULES, hosts)
        self._collector = FactCollector(header, self._session, focus)
        self.facts = self._collector.facts
        self._focus = focus
        self._first = EntryPosition()
        """The position of the first of the lines that are being added."""
        self._lines: set[tuple[int, int]] = set()
        """Part and line of the messages of these exchanges."""

    def add(self, entry: Entry, place: EntryPosition) -> None:
        """Add the next entry."""
        self._first = place
        for change in self._session.add(entry):
            self._take(change, 0)

    def add_lines(self, lines: Sequence[bytes], first: EntryPosition) -> None:
        """Add consecutive lines of a file, without their LF; `first` is the position of the first one."""
        self._first = first
        self._session.add_lines(lines, self._take)

    def _take(self, change: Change, line: int) -> None:
        """Take a change by the line with this number after the first one."""
        number, part = self._first
        place = _new(EntryPosition, (number + line, part))
        if self._linter.take_ordinary(change, place):
            self._collector.add_ordinary(change, place)
        else:
            self._collector.add(change, place, self._linter.add(change, place))
        if self._focus and change.exchange is not None and change.exchange.number in self._focus:
            self._lines.add((place.part, place.line))

    def end(self) -> None:
        """Add what is known at the end of a session that is not live."""
        self._session.end()
        for finding in self._linter.end():
            self._collector.add_finding(finding)
        self._collector.end()

    def diagnosis(self, place: EntryPosition | None = None) -> Diagnosis:
        """Return the causes: all, or those of what is on a line and of its exchange."""
        claims = claims_of(self.facts, CAUSES)
        if place is None:
            claims = folded(claims)
        else:
            lines = self._lines | {(place.part, place.line)}
            claims = [claim for claim in claims if self._is_about(claim, lines)]
        causes = [_cause(claim) for claim in claims if not claim.is_observation]
        observations = [_cause(claim) for claim in claims if claim.is_observation]
        if causes:
            rest = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
            summary = f"{causes[0].title}{rest}"
        else:
            messages = self.facts.client.messages + self.facts.server.messages
            about = f"in {messages:,} messages"
            if place is not None:
                about = f"with line {place.line}" + (f" of part {place.part}" if place.part > 1 else "")
            summary = f"nothing wrong found {about}"
        return Diagnosis(summary, tuple(causes), None, tuple(observations))

    def _is_about(self, claim: Claim, lines: set[tuple[int, int]]) -> bool:
        numbers = {number for symptom in claim.symptoms for number in getattr(symptom, "numbers", ())}
        return bool(numbers & self._focus) or any((each.part, each.line) in lines for each in lines_of(claim))


def _cause(claim: Claim) -> Cause:
    evidence = tuple(lines_of(claim))
    count = sum(symptom.count for symptom in claim.symptoms)
    return Cause(
        claim.code,
        quote(claim.title, MAX_TITLE),
        evidence[0].text if evidence else "",
        evidence[:SHOWN],
        max(count, len(evidence)),
        quote(claim.next_step, 2 * MAX_TITLE),
        claim.side,
    )
