"""Progress, log messages, pagination and completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.event import LintEvent, is_number
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.stateless import CALL, DONE
from mcpspy.core.protocol.listing import LISTINGS, joined
from mcpspy.core.protocol.message import Request, decoded, text
from mcpspy.core.protocol.spec import LEVELS, MODERN, SERVER
from mcpspy.core.session.exchange import State
from mcpspy.core.session.request_table import UNKNOWN_PROGRESS

_LOGGED = '> {"id":2,"method":"logging/setLevel","params":{"level":"warning"}}\n< {"id":2,"result":{}}\n< {"method":"notifications/message","params":{"level":"%s","data":"a"}}'
PROGRESS = "2025-11-25/basic/utilities/progress#behavior-requirements"

_CALL = '> {"id":%d,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}\n'
_REPORT = '< {"method":"notifications/progress","params":{"progressToken":"t","progress":%s}}\n'
_RESULT = '< {"id":%d,"result":{"content":[]}}\n'
GOOD = _CALL % 2 + _REPORT % 1 + _REPORT % 2.5 + _RESULT % 2

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
    RULES, page="2025-11-25/server/utilities/pagination", on=EventKind.RESULT, about=tuple(LISTINGS)
)
rule = RuleGroup(RULES)


@progress.error(
    "LIFE301",
    "progress that does not increase",
    invalid=(
        _CALL % 2 + _REPORT % 2 + _REPORT % 1 + _RESULT % 2,
        _CALL % 2 + _REPORT % 1 + _REPORT % 1 + _RESULT % 2,
    ),
)
def backwards(event: LintEvent) -> Iterator[Report]:
    """`progress` must increase with each notification, even if the total is unknown."""
    pending = event.pending
    progress = decoded(event.notification.body.progress)
    if pending is None or not is_number(progress):
        return
    if pending.progress is not None and progress <= pending.progress:
        yield Report(f"progress {progress:g} after {pending.progress:g}")
    pending.progress = progress


@progress.error("LIFE302", "progress after the response", invalid=_CALL % 2 + _RESULT % 2 + _REPORT % 1)
def after(event: LintEvent) -> Iterator[Report]:
    """Progress must stop with the response. Typical causes: a callback that is not awaited, or a thread that keeps
    running. The client has discarded the token, and some clients raise an error.
    """
    if event.flaw is not None and event.exchange is not None and event.exchange.state is not State.CANCELLED:
        yield Report(f"progress of {event.exchange.request.method} after its response")


@progress.error(
    "LIFE303",
    "progress with an unknown token",
    invalid=(
        _REPORT % 1,
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n' + _REPORT % 1 + _RESULT % 2,
    ),
)
def unsolicited_progress(event: LintEvent) -> Iterator[Report]:
    """Progress may be sent only for a request with a `progressToken` in its `_meta`, and must repeat that token
    exactly: 1 is not "1".
    """
    flaw = event.flaw or ""
    if flaw.startswith(UNKNOWN_PROGRESS):
        token = text(event.notification.body.progress_token)
        that = flaw.removeprefix(UNKNOWN_PROGRESS)[:120]
        yield Report(
            "progress without a token" if token is None else f"progress with unknown token {token[:40]}{that}"
        )


@rule.error(
    "LIFE304",
    "progress token of a request that is still pending",
    page=PROGRESS,
    on=EventKind.REQUEST,
    in_meta=True,
    valid=GOOD + _CALL % 3 + _RESULT % 3,
    invalid=_CALL % 2 + _CALL % 3 + _RESULT % 2 + _RESULT % 3,
)
def token_in_use(event: LintEvent) -> Iterable[Report]:
    """Each pending request needs its own progress token; otherwise progress cannot be matched to a request."""
    request = event.what
    assert isinstance(request, Request)
    token = request.progress_token
    earlier = event.conversation.tokens.get((event.side, token)) if token is not None else None
    if token is None or earlier is None or not earlier.exchange.is_open:
        return ()
    return [Report(f"progress token {token[:40]} is in use by request {earlier.exchange.request.id[:40]}")]


progress.shape_error(
    "LIFE305",
    "progress that is not a number",
    """`progress` must be a number, and `total` too if present. Put text into `message`.""",
    page="2025-11-25/schema#progressnotificationparams",
    invalid=(
        _CALL % 2 + _REPORT % '"half"' + _RESULT % 2,
        _CALL % 2 + '< {"method":"notifications/progress","params":{"progressToken":"t"}}\n' + _RESULT % 2,
    ),
)


@by_level.warning(
    "LIFE111",
    "log message below the requested level",
    page="2025-11-25/server/utilities/logging",
    until=LEGACY,
    valid=_LOGGED % "error",
    invalid=_LOGGED % "info",
)
def below_level(event: LintEvent) -> Iterator[Report]:
    """After `logging/setLevel`, a server sends only messages of that level and above."""
    least, level = event.conversation.log_level, event.params.get("level")
    if least in LEVELS and level in LEVELS and LEVELS.index(level) < LEVELS.index(least):
        yield Report(f"log message of level {level}; the client requested {least}")


@by_level.error(
    "MOD401",
    "log message without a request for it",
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
    """2026-07-28 has no `logging/setLevel`: a request sets the lowest `logLevel` in its `_meta`. A server sends no log
    messages without it.
    """
    if not event.conversation.logs_requested:
        yield Report("log message, but no request set a logLevel")


@listing.warning(
    "DATA501",
    "duplicate name in a list",
    page="2025-11-25/server/tools#tool-names",
    valid=_PAGE % ('{"name":"a"},{"name":"b"}', ""),
    invalid=_PAGE % ('{"name":"a"},{"name":"a"}', ""),
)
def duplicate_name(event: LintEvent) -> Iterator[Report]:
    """Names (for resources: URIs) must be unique within a server. A client cannot choose between duplicates."""
    listing = event.listing.listing
    names = Counter(listing.page)
    if listing.before is not None:
        names.update(names.keys() & set(joined(listing.before)))
    for name, count in names.items():
        if count > 1:
            yield Report(f"{name[:80]} is listed {count} times", name)


@listing.error(
    "DATA502",
    "endless pagination",
    valid=(_FIRST + _NEXT % (',"params":{"cursor":"p2"}', ""), _FIRST + _NEXT % ("", ',"nextCursor":"p2"')),
    invalid=(
        _FIRST + _NEXT % (',"params":{"cursor":"p2"}', ',"nextCursor":"p2"'),
        (_FIRST + _NEXT % (',"params":{"cursor":"p2"}', ',"nextCursor":"p2"')).replace("p2", ""),
    ),
)
def endless(event: LintEvent) -> Iterator[Report]:
    """The cursor of the next page was already used in this listing, so a client that reads all pages never finishes.
    Omit `nextCursor` on the last page.
    """
    following = event.result.get("nextCursor")
    if isinstance(following, str) and event.listing.listing.is_endless:
        yield Report(f"nextCursor {following[:60]!r} was already used", following)


listing.shape_error(
    "DATA503",
    "nextCursor that is not a string",
    """`nextCursor` must be a string, or be omitted. TypeScript clients reject the whole list if it is `null`.""",
    about=None,
    valid=_FIRST,
    invalid=(_PAGE % ("", ',"nextCursor":null'), _PAGE % ("", ',"nextCursor":2')),
)


@listing.error(
    "DATA504",
    "completion with more than 100 values",
    page="2025-11-25/server/utilities/completion#completion-results",
    about="completion/complete",
    valid=_COMPLETE % '["a"]',
    invalid=_COMPLETE % ("[" + ",".join(f'"{n}"' for n in range(101)) + "]"),
)
def completion(event: LintEvent) -> Iterator[Report]:
    """The limit is 100 values, the best first; `total` and `hasMore` announce more. Clients reject longer lists."""
    given = event.result.get("completion")
    values = given.get("values") if isinstance(given, dict) else None
    if isinstance(values, list) and len(values) > 100:
        yield Report(f"completion with {len(values)} values; the maximum is 100", len(values))
