"""Utilities of the protocol: progress, log messages, pagination and completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.event import LintEvent, is_number
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, LintRule, Report, RuleGroup
from mcpspy.analysis.lint.rules.content import LISTS, listed_of
from mcpspy.analysis.lint.rules.stateless import CALL, DONE
from mcpspy.analysis.lint.state import KEPT
from mcpspy.core.protocol.message import decoded, text
from mcpspy.core.protocol.spec import MODERN, SERVER
from mcpspy.core.session.correlation import UNKNOWN_PROGRESS
from mcpspy.core.session.exchange import State

RULES: list[LintRule] = []

_LOGGED = '> {"id":2,"method":"logging/setLevel","params":{"level":"warning"}}\n< {"id":2,"result":{}}\n< {"method":"notifications/message","params":{"level":"%s","data":"a"}}'
PROGRESS = "2025-11-25/basic/utilities/progress#behavior-requirements"

_CALL = '> {"id":%d,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}\n'
_REPORT = '< {"method":"notifications/progress","params":{"progressToken":"t","progress":%s}}\n'
_RESULT = '< {"id":%d,"result":{"content":[]}}\n'
GOOD = _CALL % 2 + _REPORT % 1 + _REPORT % 2.5 + _RESULT % 2


LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Levels of log messages, the least severe first (RFC 5424)."""
_PAGE = '> {"id":2,"method":"prompts/list"}\n< {"id":2,"result":{"prompts":[%s]%s}}\n'
_FIRST = _PAGE % ("", ',"nextCursor":"p2"')
_NEXT = '> {"id":3,"method":"prompts/list"%s}\n< {"id":3,"result":{"prompts":[]%s}}\n'
_COMPLETE = (
    '> {"id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}\n'
    '< {"id":2,"result":{"completion":{"values":%s}}}'
)

progress = RuleGroup(
    RULES, page=PROGRESS, on=EventKind.NOTIFICATION, about="notifications/progress", valid=GOOD
)
by_level = RuleGroup(RULES, on=EventKind.NOTIFICATION, about="notifications/message")
listing = RuleGroup(
    RULES, page="2025-11-25/server/utilities/pagination", on=EventKind.RESULT, about=tuple(LISTS)
)
rule = RuleGroup(RULES)


@progress.error(
    "LIFE301",
    "progress that does not go on",
    invalid=(
        _CALL % 2 + _REPORT % 2 + _REPORT % 1 + _RESULT % 2,
        _CALL % 2 + _REPORT % 1 + _REPORT % 1 + _RESULT % 2,
    ),
)
def backwards(event: LintEvent) -> Iterator[Report]:
    """`progress` is greater in each notification than in the one before, even if the total is not known."""
    pending = event.pending
    progress = decoded(event.notification.body.progress)
    if pending is None or not is_number(progress):
        return
    if pending.progress is not None and progress <= pending.progress:
        yield Report(f"progress {progress:g} after {pending.progress:g}")
    pending.progress = progress


@progress.error("LIFE302", "progress after the answer", invalid=_CALL % 2 + _RESULT % 2 + _REPORT % 1)
def after(event: LintEvent) -> Iterator[Report]:
    """Progress ends with the answer. A callback that is not awaited, or a thread that goes on; the client has thrown
    the token away, and some raise an error.
    """
    if (
        event.flaw == "progress after the answer"
        and event.exchange is not None
        and event.exchange.state is not State.CANCELLED
    ):
        yield Report(f"progress of {event.exchange.request.method} after its answer")


@progress.error(
    "LIFE303",
    "progress under a token that nobody gave",
    invalid=(
        _REPORT % 1,
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n' + _REPORT % 1 + _RESULT % 2,
    ),
)
def unsolicited_progress(event: LintEvent) -> Iterator[Report]:
    """Progress is sent only where a request asked for it, with a `progressToken` in its `_meta`. Of 1 and "1" the
    one that was given.
    """
    if event.flaw == UNKNOWN_PROGRESS:
        token = text(event.notification.body.progress_token)
        yield Report(
            "progress without a token" if token is None else f"nobody asked for progress under {token[:40]}"
        )


@rule.error(
    "LIFE304",
    "a progress token that another request still uses",
    page=PROGRESS,
    on=EventKind.REQUEST,
    valid=GOOD + _CALL % 3 + _RESULT % 3,
    invalid=_CALL % 2 + _CALL % 3 + _RESULT % 2 + _RESULT % 3,
)
def token_in_use(event: LintEvent) -> Iterable[Report]:
    """Of the requests under way, each has a token of its own: else nobody can tell whose progress it is."""
    token = event.request.progress_token if event.request.body.meta else None
    earlier = event.conversation.tokens.get((event.side, token)) if token is not None else None
    if token is None or earlier is None or not earlier.exchange.is_open:
        return ()
    return [
        Report(f"the progress token {token[:40]} is in use by the request {earlier.exchange.request.id[:40]}")
    ]


@progress.error(
    "LIFE305",
    "progress that is no number",
    page="2025-11-25/schema#progressnotificationparams",
    invalid=(
        _CALL % 2 + _REPORT % '"half"' + _RESULT % 2,
        _CALL % 2 + '< {"method":"notifications/progress","params":{"progressToken":"t"}}\n' + _RESULT % 2,
    ),
)
def number(event: LintEvent) -> Iterator[Report]:
    """`progress` is a number, and so is `total` if there is one; words go into `message`."""
    for name in ("progress", "total"):
        value = event.params.get(name)
        if (value is not None or name == "progress") and not is_number(value):
            yield Report(f"{name} is not a number", value)


@by_level.warning(
    "LIFE111",
    "a log message below the level that was asked for",
    page="2025-11-25/server/utilities/logging",
    until=LEGACY,
    valid=_LOGGED % "error",
    invalid=_LOGGED % "info",
)
def below_level(event: LintEvent) -> Iterator[Report]:
    """After `logging/setLevel` a server sends messages of that level and above, and no others."""
    least, level = event.conversation.log_level, event.params.get("level")
    if least in LEVELS and level in LEVELS and LEVELS.index(level) < LEVELS.index(least):
        yield Report(f"a log message of level {level}; {least} was asked for")


@by_level.error(
    "MOD401",
    "a log message that nobody asked for",
    page="2026-07-28/server/utilities/logging",
    by=SERVER,
    since=MODERN,
    valid=(
        '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"info"}}}\n< {"method":"notifications/message","params":{"level":"info","data":"a"}}\n'
        + DONE
    ),
    invalid=CALL + '< {"method":"notifications/message","params":{"level":"info","data":"a"}}\n' + DONE,
)
def unsolicited_log(event: LintEvent) -> Iterator[Report]:
    """There is no `logging/setLevel` any more: a request says in its `_meta` from which `logLevel` on it wants log
    messages. Without it a server sends none.
    """
    if not event.conversation.logs_requested:
        yield Report("a log message, and no request said a logLevel")


@listing.warning(
    "DATA501",
    "a name that is listed twice",
    page="2025-11-25/server/tools#tool-names",
    valid=_PAGE % ('{"name":"a"},{"name":"b"}', ""),
    invalid=_PAGE % ('{"name":"a"},{"name":"a"}', ""),
)
def duplicate_name(event: LintEvent) -> Iterator[Report]:
    """Names are unique within a server (of resources, URIs): which of the two is meant is the server's secret."""
    key = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}.get(event.method, "name")
    names = Counter(name for item in listed_of(event) if isinstance(name := item.get(key), str))
    for name, count in names.items():
        if count > 1:
            yield Report(f"{name[:80]} is listed {count} times", name)


@listing.error(
    "DATA502",
    "pages that never end",
    valid=(_FIRST + _NEXT % (',"params":{"cursor":"p2"}', ""), _FIRST + _NEXT % ("", ',"nextCursor":"p2"')),
    invalid=(
        _FIRST + _NEXT % (',"params":{"cursor":"p2"}', ',"nextCursor":"p2"'),
        (_FIRST + _NEXT % (',"params":{"cursor":"p2"}', ',"nextCursor":"p2"')).replace("p2", ""),
    ),
)
def endless(event: LintEvent) -> Iterator[Report]:
    """The cursor of the next page is one that this listing has had: a client that goes on to the end goes on for
    ever. On the last page leave `nextCursor` out.
    """
    used = event.conversation.cursors.setdefault(event.method, set())
    requested = decoded(event.request.body.cursor)
    if not isinstance(requested, str) or len(used) >= KEPT:
        used.clear()
    if isinstance(requested, str):
        used.add(requested)
    following = event.result.get("nextCursor")
    if isinstance(following, str) and following in used:
        yield Report(f"nextCursor {following[:60]!r} was there before", following)


@listing.error(
    "DATA503",
    "a nextCursor that is no string",
    valid=_FIRST,
    invalid=(_PAGE % ("", ',"nextCursor":null'), _PAGE % ("", ',"nextCursor":2')),
)
def cursor(event: LintEvent) -> Iterator[Report]:
    """It is a string, or left out. TypeScript clients refuse the whole list over a `null`."""
    if "nextCursor" in event.result and not isinstance(event.result["nextCursor"], str):
        yield Report("nextCursor is no string: leave it out", event.result["nextCursor"])


@listing.error(
    "DATA504",
    "a completion of more than 100 values",
    page="2025-11-25/server/utilities/completion#completion-results",
    about="completion/complete",
    valid=_COMPLETE % '["a"]',
    invalid=_COMPLETE % ("[" + ",".join(f'"{n}"' for n in range(101)) + "]"),
)
def completion(event: LintEvent) -> Iterator[Report]:
    """At most 100, the best first; `total` and `hasMore` say that there are more. Clients refuse the rest."""
    given = event.result.get("completion")
    values = given.get("values") if isinstance(given, dict) else None
    if isinstance(values, list) and len(values) > 100:
        yield Report(f"a completion of {len(values)} values; 100 is the most", len(values))
