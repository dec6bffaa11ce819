"""The facts of a session, which the causes read: its symptoms, and their surroundings.

`collector` gathers them in one pass. Memory is bounded: requests that failed in the same way are one symptom, and lists
keep their first or last items.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult

from mcpspy.analysis.explain.evidence import EvidenceLine, PrintedLine, url_parts
from mcpspy.analysis.explain.http_facts import HttpFacts
from mcpspy.analysis.explain.listed_facts import ListedFacts
from mcpspy.analysis.explain.side_facts import SentText, SideFacts
from mcpspy.analysis.explain.symptoms import FailedRequest, Symptom, Violation
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.streaming import StreamingSession

MAX_STDERR = 300
"""Lines on stderr that are kept: the last ones, and as many of the first seconds."""

PATIENCE = 1.0
"""Seconds before which no client gives up a request."""

_VERSION_AND_ENDING = re.compile(r"[\d.]*(?:\.(?:exe|cmd|bat))?$")

S = TypeVar("S", bound=Symptom)


class SlowCall(NamedTuple):
    """A call that was answered after more than `PATIENCE`."""

    asked_at: float
    answer_at: float
    place: EntryPosition
    about: str


class Facts:
    def __init__(self, header: Header, session: StreamingSession) -> None:
        self.header, self.session = header, session
        self.is_stdio = header.transport == "stdio"
        self.sides = {CLIENT: SideFacts(), SERVER: SideFacts()}
        self.symptoms: list[Symptom] = []
        self.stderr: deque[PrintedLine] = deque(maxlen=MAX_STDERR)
        self.first_stderr: list[PrintedLine] = []
        self.stderr_size = 0
        """Characters on stderr."""
        self.notes: dict[str, list[tuple[Note, EntryPosition]]] = {}
        """Kind → notes that are neither of HTTP exchanges nor stderr, at most `MAX_ODD_LINES` of each."""
        self.http = HttpFacts()
        self.findings: dict[str, Violation] = {}
        """Code of a rule and side → its findings."""
        self.listed = ListedFacts()
        self.sent_text = SentText()
        self.held_back: EvidenceLine | None = None
        """A call whose progress came all at once, with its response."""
        self.held_back_calls: set[int] = set()
        """Numbers of the calls to which a request of the server came only with the response; at most some."""
        self.surplus: dict[str, set[str]] = {}
        """Tool → arguments of calls that its schema does not name, if the result hides a failure; at most some."""
        self.slow: list[SlowCall] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        """Side and method → number of its requests that got a result."""
        self.text_ids_answered = 0
        """Requests with a text as their id that got a result."""
        self.exit: Note | None = None
        self.exit_place = EntryPosition()
        self.last_at = 0.0

    @property
    def client(self) -> SideFacts:
        return self.sides[CLIENT]

    @property
    def server(self) -> SideFacts:
        return self.sides[SERVER]

    @property
    def command(self) -> list[str]:
        """The command that starts the server, with its arguments; empty if none is known."""
        return self.header.command or []

    @property
    def program(self) -> str:
        """The first word of the command; empty if none is known."""
        return self.command[0] if self.command else ""

    @property
    def program_name(self) -> str:
        """The name of this program, without its folder, its version and the ending of Windows: `python`."""
        return _VERSION_AND_ENDING.sub("", re.split(r"[/\\]", self.program)[-1].lower())

    @property
    def endpoint(self) -> SplitResult:
        """The URL of the server over HTTP."""
        return url_parts(self.header.upstream or "")

    @property
    def has_worked(self) -> bool:
        """True if the tools were listed, or one was called."""
        return bool(self.answered[CLIENT, "tools/list"] or self.answered[CLIENT, "tools/call"])

    def of(self, kind: type[S]) -> list[S]:
        """Return the symptoms of a kind, in the order in which they began."""
        return [each for each in self.symptoms if isinstance(each, kind)]

    def failed(self, *states: State) -> list[FailedRequest]:
        """Return the requests that failed; in these states, if any are given."""
        return [each for each in self.of(FailedRequest) if not states or each.state in states]

    def violations(self, *codes: str, side: str = "") -> list[Violation]:
        """Return the findings of these rules, each with its count."""
        return [
            each for each in self.findings.values() if each.code in codes and (not side or each.side == side)
        ]
