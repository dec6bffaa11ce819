"""A lint rule: a check with its code, severity, scope, page of the specification, and examples.

Owns the decorators that declare rules, and what they require of each: a new code, a summary, an explanation, a page
of the specification, and valid and invalid examples. The tests and docs/lint.md are made from these.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack

from mcpspy.analysis.lint.finding import EventKind, Severity
from mcpspy.analysis.lint.finding import Report as Report  # noqa: PLC0414 - Rules import it from here.
from mcpspy.core.protocol.spec import REVISIONS

if TYPE_CHECKING:
    from mcpspy.analysis.lint.event import LintEvent

SPECIFICATION = "https://modelcontextprotocol.io/specification/"

LEGACY = "2025-11-25"
"""The last revision with a handshake."""

CALLED = (EventKind.REQUEST, EventKind.NOTIFICATION)
RESPONSES = (EventKind.RESULT, EventKind.FAILURE)
MESSAGES = (*CALLED, *RESPONSES)
EVERY_LINE = (*MESSAGES, EventKind.MALFORMED)

T = TypeVar("T")


Check: TypeAlias = Callable[["LintEvent"], Iterable[Report]]
Decorator: TypeAlias = Callable[[Check], Check]

Only: TypeAlias = Callable[[EventKind, str, str], bool]
"""Kind, method and side → whether a rule applies to all such events: called once for each combination."""


@dataclass(frozen=True, kw_only=True)
class LintRule:
    """One rule."""

    code: str
    severity: Severity
    summary: str
    """Title: the finding, in one line."""
    page: str
    """Page of the specification, starting with the revision; or a complete URL."""
    on: tuple[EventKind, ...]
    about: frozenset[str] | None = None
    """Methods (of a response: of its request), kinds of notes, or the content of an HTTP exchange (`state.POSTED` and
    others); None for all. `rpc.*` matches all methods that begin with `rpc.`.
    """
    by: str | None = None
    """The side whose messages it checks; None for both."""
    only: Only | None = None
    """A further condition on kind, method and side."""
    shape: bool = False
    """Check only messages whose shape may have violations with this code (`shapes.shape_codes`)."""
    only_shape: bool = False
    """Skip messages whose shape has no violations, which most are: it reports nothing else."""
    since: str = REVISIONS[0]
    until: str | None = None
    once: bool = False
    """Report one finding per side and session, as every message has the same flaw."""
    unusual: bool = False
    """Check only events with `LintEvent.is_unusual`, which are few."""
    beyond_plain: bool = False
    """Skip events with `LintEvent.is_plain`, which most are: they cannot violate it."""
    beyond_compact: bool = False
    """Skip messages with `LintEvent.is_compact`, which most are: they cannot violate it."""
    in_meta: bool = False
    """Skip requests and notifications without `_meta`, which most are: they cannot violate it."""
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    check: Check

    @property
    def family(self) -> str:
        """The letters of the code."""
        return self.code.rstrip("0123456789")

    @property
    def explanation(self) -> str:
        """The reason for the rule, and the fix."""
        return inspect.cleandoc(self.check.__doc__ or "")

    @property
    def url(self) -> str:
        """The page of the specification that it enforces."""
        return self.page if "://" in self.page else SPECIFICATION + self.page

    @property
    def revisions(self) -> str:
        """The revisions it applies to, as text."""
        if self.until is None:
            return "all" if self.since == REVISIONS[0] else f"{self.since} and later"
        if self.since == REVISIONS[0]:
            return f"{self.until} and earlier"
        return self.since if self.since == self.until else f"{self.since} to {self.until}"

    def concerns(self, kind: EventKind, method: str, side: str) -> bool:
        """Return whether the rule checks such events from that side."""
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
        """Return whether the rule applies; while the revision is unknown, only if it holds in all revisions."""
        if revision is None:
            return self.since == REVISIONS[0] and self.until is None
        return self.since <= revision and (self.until is None or revision <= self.until)


RULES: list[LintRule] = []
"""The rules of mcpspy, as the modules in `rules` declare them."""


class RuleOptions(TypedDict, total=False):
    """The fields of a `LintRule` after its summary; a single value is the same as a tuple of one."""

    page: str
    on: EventKind | tuple[EventKind, ...]
    about: str | tuple[str, ...] | None
    by: str
    only: Only
    shape: bool
    only_shape: bool
    since: str
    until: str | None
    once: bool
    unusual: bool
    beyond_plain: bool
    beyond_compact: bool
    in_meta: bool
    valid: str | tuple[str, ...]
    invalid: str | tuple[str, ...]


_CODE = re.compile(r"[A-Z]{3,5}\d{3}")
_REVISION_PAGE = re.compile(r"\d{4}-\d{2}-\d{2}/\S+")


class RuleGroup:
    """Decorators, one for each severity, that add rules to a list; `shared` are the options that most have in common."""

    def __init__(self, rules: list[LintRule], **shared: Unpack[RuleOptions]) -> None:
        self._rules = rules
        self._shared = shared

    def group(self, **more: Unpack[RuleOptions]) -> RuleGroup:
        """Return a group of the same list that shares more options."""
        shared: RuleOptions = {**self._shared, **more}
        return RuleGroup(self._rules, **shared)

    def error(self, code: str, summary: str, **options: Unpack[RuleOptions]) -> Decorator:
        """Add the decorated function as a rule; raise ValueError if a required part of a rule is missing."""
        return self._rule(Severity.ERROR, code, summary, options)

    def warning(self, code: str, summary: str, **options: Unpack[RuleOptions]) -> Decorator:
        return self._rule(Severity.WARNING, code, summary, options)

    def info(self, code: str, summary: str, **options: Unpack[RuleOptions]) -> Decorator:
        return self._rule(Severity.INFO, code, summary, options)

    def shape_error(self, code: str, summary: str, why: str, **options: Unpack[RuleOptions]) -> None:
        """Add a rule on shapes, which the tables check (`shapes`); `why` is its explanation."""
        self._shape(Severity.ERROR, code, summary, why, options)

    def shape_warning(self, code: str, summary: str, why: str, **options: Unpack[RuleOptions]) -> None:
        self._shape(Severity.WARNING, code, summary, why, options)

    def _shape(self, severity: Severity, code: str, summary: str, why: str, options: RuleOptions) -> None:
        def check(event: LintEvent) -> Iterable[Report]:
            return event.violations(code)

        check.__doc__ = why
        self._rule(severity, code, summary, {**options, "shape": True, "only_shape": True})(check)

    def _rule(self, severity: Severity, code: str, summary: str, options: RuleOptions) -> Decorator:
        given: dict[str, Any] = {**self._shared, **options}
        given |= {name: _several(given.get(name, ())) for name in ("on", "valid", "invalid")}
        if (about := given.get("about")) is not None:
            given["about"] = frozenset(_several(about))
        if not _CODE.fullmatch(code) or any(other.code == code for other in self._rules):
            raise ValueError(f"{code}: not a valid code, or already in use")
        if not (given["valid"] and given["invalid"]):
            raise ValueError(f"{code}: valid and invalid examples are required")
        page = given.get("page", "")
        if "://" not in page and not _REVISION_PAGE.fullmatch(page):
            raise ValueError(f"{code}: {page} is not a page of the specification")

        def add(check: Check) -> Check:
            if not check.__doc__:
                raise ValueError(f"{code}: docstring is missing")
            self._rules.append(LintRule(code=code, severity=severity, summary=summary, check=check, **given))
            return check

        return add


def _several(value: T | tuple[T, ...]) -> tuple[T, ...]:
    return value if isinstance(value, tuple) else (value,)
