"""What a rule is: a function that looks, and everything a person wants to know of it.

Owns the decorator and its checks: a code is given once, and every rule carries
a summary, an explanation, its place in the specification, and examples of both
kinds, which the tests and docs/lint.md are made from. Refuses to know any rule.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mcpspy.analysis.lint.finding import EventKind, Severity
from mcpspy.core.protocol.spec import REVISIONS

if TYPE_CHECKING:
    from mcpspy.analysis.lint.event import LintEvent

ERROR, WARNING, INFO = Severity

SPECIFICATION = "https://modelcontextprotocol.io/specification/"

LEGACY = "2025-11-25"
"""The last revision with a handshake."""


MESSAGES = (EventKind.REQUEST, EventKind.NOTIFICATION, EventKind.RESULT, EventKind.FAILURE)
EVERY_LINE = (*MESSAGES, EventKind.MALFORMED)
ANSWERS = (EventKind.RESULT, EventKind.FAILURE)


class Report(NamedTuple):
    """What a rule says of what it saw."""

    message: str
    excerpt: Any = None
    """A value, or bytes as they came; None for the message as a whole."""


Look: TypeAlias = Callable[["LintEvent"], Iterable[Report]]

Only: TypeAlias = Callable[[EventKind, str, str], bool]
"""Kind, method and side → whether a rule looks at all there is of them: asked once for each."""


@dataclass(frozen=True)
class LintRule:
    """One rule."""

    code: str
    severity: Severity
    summary: str
    """What is wrong when it fires, in a line."""
    page: str
    """Page of the specification, from the revision on."""
    on: tuple[EventKind, ...]
    about: frozenset[str] | None
    """Methods (of an answer: of its request), kinds of note, or what an HTTP exchange carried (`posts`); None for all.
    `rpc.*` is all that begin so.
    """
    by: str | None
    only: Only | None
    since: str
    until: str | None
    once: bool
    odd: bool
    beyond_text: bool
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    look: Look

    @property
    def family(self) -> str:
        """The letters of the code."""
        return self.code.rstrip("0123456789")

    @property
    def explanation(self) -> str:
        """Why it matters, and what to do."""
        return inspect.cleandoc(self.look.__doc__ or "")

    @property
    def url(self) -> str:
        """The page it enforces."""
        return self.page if "://" in self.page else SPECIFICATION + self.page

    @property
    def revisions(self) -> str:
        """The revisions it holds for, in words."""
        if self.until is None:
            return "all" if self.since == REVISIONS[0] else f"{self.since} and later"
        if self.since == REVISIONS[0]:
            return f"{self.until} and earlier"
        return self.since if self.since == self.until else f"{self.since} to {self.until}"

    def concerns(self, kind: EventKind, method: str, side: str) -> bool:
        """Whether it looks at such things, from that side."""
        return (
            kind in self.on
            and (self.by is None or side == self.by)
            and self._is_about(method)
            and (self.only is None or self.only(kind, method, side))
        )

    def _is_about(self, method: str) -> bool:
        return (
            self.about is None
            or method in self.about
            or any(word.endswith("*") and method.startswith(word[:-1]) for word in self.about)
        )

    def holds_in(self, revision: str | None) -> bool:
        """Whether it applies; where nobody has said the revision, only if it always does."""
        if revision is None:
            return self.since == REVISIONS[0] and self.until is None
        return self.since <= revision and (self.until is None or revision <= self.until)


_CODE = re.compile(r"[A-Z]{3,4}\d{3}")
_REVISION_PAGE = re.compile(r"\d{4}-\d{2}-\d{2}/\S+")


class RuleFamily(list[LintRule]):
    """The rules of one family, and the decorator that adds one."""

    def rule(
        self,
        code: str,
        severity: Severity,
        summary: str,
        *,
        page: str,
        on: EventKind | tuple[EventKind, ...],
        about: str | tuple[str, ...] | None = None,
        by: str | None = None,
        only: Only | None = None,
        since: str = REVISIONS[0],
        until: str | None = None,
        once: bool = False,
        odd: bool = False,
        beyond_text: bool = False,
        valid: tuple[str, ...],
        invalid: tuple[str, ...],
    ) -> Callable[[Look], Look]:
        """Add the decorated function; raise ValueError if the rule does not tell all it should.

        `by`: it only looks at what this side sent.
        `only`: what else can be told from the kind, the method and the side alone.
        `once`: one finding a side and session is enough, as every message has the same flaw.
        `odd`: it only looks at what `Seen.is_odd` says is odd, which is little.
        `beyond_text`: there is nothing for it in a tool's result of plain text, which most are.
        """
        if not _CODE.fullmatch(code) or any(other.code == code for other in self):
            raise ValueError(f"{code}: no code, or taken")
        if not (valid and invalid):
            raise ValueError(f"{code}: it needs examples of both kinds")
        if "://" not in page and not _REVISION_PAGE.fullmatch(page):
            raise ValueError(f"{code}: {page} is no page of the specification")

        def add(look: Look) -> Look:
            if not look.__doc__:
                raise ValueError(f"{code}: it does not say why")
            self.append(
                LintRule(
                    code=code,
                    severity=severity,
                    summary=summary,
                    page=page,
                    on=(on,) if isinstance(on, EventKind) else on,
                    about=None if about is None else frozenset((about,) if isinstance(about, str) else about),
                    by=by,
                    only=only,
                    since=since,
                    until=until,
                    once=once,
                    odd=odd,
                    beyond_text=beyond_text,
                    valid=valid,
                    invalid=invalid,
                    look=look,
                )
            )
            return look

        return add
