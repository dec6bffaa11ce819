"""Progress: under whose token, how far, and when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import decoded, text
from mcpspy.core.session.exchange import State

RULES = Rules()
rule = RULES.rule

PROGRESS = "2025-11-25/basic/utilities/progress#behavior-requirements"
METHOD = "notifications/progress"

_ASK = '> {"id":%d,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}\n'
_REPORT = '< {"method":"notifications/progress","params":{"progressToken":"t","progress":%s}}\n'
_ANSWER = '< {"id":%d,"result":{"content":[]}}\n'
GOOD = _ASK % 2 + _REPORT % 1 + _REPORT % 2.5 + _ANSWER % 2


@rule(
    "LIFE301",
    ERROR,
    "progress that does not go on",
    page=PROGRESS,
    on=Kind.NOTIFICATION,
    about=METHOD,
    valid=(GOOD,),
    invalid=(
        _ASK % 2 + _REPORT % 2 + _REPORT % 1 + _ANSWER % 2,
        _ASK % 2 + _REPORT % 1 + _REPORT % 1 + _ANSWER % 2,
    ),
)
def backwards(seen: Seen) -> Iterator[Told]:
    """`progress` is greater in each notification than in the one before, even if the total is not known."""
    asked = seen.asked
    progress = decoded(seen.notification.body.progress)
    if asked is None or isinstance(progress, bool) or not isinstance(progress, int | float):
        return
    if asked.progress is not None and progress <= asked.progress:
        yield Told(f"progress {progress:g} after {asked.progress:g}")
    asked.progress = progress


@rule(
    "LIFE302",
    ERROR,
    "progress after the answer",
    page=PROGRESS,
    on=Kind.NOTIFICATION,
    about=METHOD,
    valid=(GOOD,),
    invalid=(_ASK % 2 + _ANSWER % 2 + _REPORT % 1,),
)
def after(seen: Seen) -> Iterator[Told]:
    """Progress ends with the answer. A callback that is not awaited, or a thread that goes on; the client has thrown
    the token away, and some raise an error.
    """
    if (
        seen.flaw == "progress after the answer"
        and seen.exchange is not None
        and seen.exchange.state is not State.CANCELLED
    ):
        yield Told(f"progress of {seen.exchange.request.method} after its answer")


@rule(
    "LIFE303",
    ERROR,
    "progress under a token that nobody gave",
    page=PROGRESS,
    on=Kind.NOTIFICATION,
    about=METHOD,
    valid=(GOOD,),
    invalid=(
        _REPORT % 1,
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n' + _REPORT % 1 + _ANSWER % 2,
    ),
)
def unasked(seen: Seen) -> Iterator[Told]:
    """Progress is sent only where a request asked for it, with a `progressToken` in its `_meta`. Of 1 and "1" the
    one that was given.
    """
    if seen.flaw == "nobody asked for progress under this token":
        token = text(seen.notification.body.progress_token)
        yield Told(
            "progress without a token" if token is None else f"nobody asked for progress under {token[:40]}"
        )


@rule(
    "LIFE304",
    ERROR,
    "a progress token that another request still uses",
    page=PROGRESS,
    on=Kind.REQUEST,
    valid=(GOOD + _ASK % 3 + _ANSWER % 3,),
    invalid=(_ASK % 2 + _ASK % 3 + _ANSWER % 2 + _ANSWER % 3,),
)
def taken(seen: Seen) -> Iterable[Told]:
    """Of the requests under way, each has a token of its own: else nobody can tell whose progress it is."""
    token = seen.request.progress_token if seen.request.body.meta else None
    earlier = seen.conversation.tokens.get((seen.side, token)) if token is not None else None
    if token is None or earlier is None or not earlier.exchange.is_open:
        return ()
    return [
        Told(f"the progress token {token[:40]} is in use by the request {earlier.exchange.request.id[:40]}")
    ]


@rule(
    "LIFE305",
    ERROR,
    "progress that is no number",
    page="2025-11-25/schema#progressnotificationparams",
    on=Kind.NOTIFICATION,
    about=METHOD,
    valid=(GOOD,),
    invalid=(
        _ASK % 2 + _REPORT % '"half"' + _ANSWER % 2,
        _ASK % 2 + '< {"method":"notifications/progress","params":{"progressToken":"t"}}\n' + _ANSWER % 2,
    ),
)
def number(seen: Seen) -> Iterator[Told]:
    """`progress` is a number, and so is `total` if there is one; words go into `message`."""
    for name in ("progress", "total"):
        value = seen.params.get(name)
        if (value is not None or name == "progress") and (
            isinstance(value, bool) or not isinstance(value, int | float)
        ):
            yield Told(f"{name} is not a number", value)
