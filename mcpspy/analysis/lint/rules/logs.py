"""Log messages: of the level that was asked for, and none that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.rules.modern import CALL, DONE
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import MODERN, SERVER

RULES = Rules()
rule = RULES.rule

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Of log messages, the least first (RFC 5424)."""


@rule(
    "LIFE111",
    WARNING,
    "a log message below the level that was asked for",
    page="2025-11-25/server/utilities/logging",
    on=Kind.NOTIFICATION,
    about="notifications/message",
    until=LEGACY,
    valid=(
        '> {"id":2,"method":"logging/setLevel","params":{"level":"warning"}}\n< {"id":2,"result":{}}\n< {"method":"notifications/message","params":{"level":"error","data":"a"}}',
    ),
    invalid=(
        '> {"id":2,"method":"logging/setLevel","params":{"level":"warning"}}\n< {"id":2,"result":{}}\n< {"method":"notifications/message","params":{"level":"info","data":"a"}}',
    ),
)
def too_chatty(seen: Seen) -> Iterator[Told]:
    """After `logging/setLevel` a server sends messages of that level and above, and no others."""
    asked, level = seen.conversation.log_level, seen.params.get("level")
    if asked in LEVELS and level in LEVELS and LEVELS.index(level) < LEVELS.index(asked):
        yield Told(f"a log message of level {level}; {asked} was asked for")


@rule(
    "MOD401",
    ERROR,
    "a log message that nobody asked for",
    page="2026-07-28/server/utilities/logging",
    on=Kind.NOTIFICATION,
    about="notifications/message",
    by=SERVER,
    since=MODERN,
    valid=(
        '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"info"}}}\n< {"method":"notifications/message","params":{"level":"info","data":"a"}}\n'
        + DONE,
    ),
    invalid=(CALL + '< {"method":"notifications/message","params":{"level":"info","data":"a"}}\n' + DONE,),
)
def unasked_log(seen: Seen) -> Iterator[Told]:
    """There is no `logging/setLevel` any more: a request says in its `_meta` from which `logLevel` on it wants log
    messages. Without it a server sends none.
    """
    if not seen.conversation.wants_logs:
        yield Told("a log message, and no request said a logLevel")
