"""Lists and their pages; completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mcpspy.analysis.lint.conversation import KEPT
from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, WARNING, Rules, Told
from mcpspy.analysis.lint.rules.content import listed_of
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import decoded

RULES = Rules()
rule = RULES.rule

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")

_PAGE = '> {"id":%d,"method":"prompts/list"%s}\n< {"id":%d,"result":{"prompts":[%s]%s}}\n'
_COMPLETE = (
    '> {"id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}\n'
    '< {"id":2,"result":{"completion":{"values":%s}}}'
)
_NAMED = '{"name":"%s"}'


@rule(
    "DATA501",
    WARNING,
    "a name that is listed twice",
    page="2025-11-25/server/tools#tool-names",
    on=Kind.RESULT,
    about=LISTS,
    valid=(_PAGE % (2, "", 2, _NAMED % "a" + "," + _NAMED % "b", ""),),
    invalid=(_PAGE % (2, "", 2, _NAMED % "a" + "," + _NAMED % "a", ""),),
)
def doubled(seen: Seen) -> Iterator[Told]:
    """Names are unique within a server (of resources, URIs): which of the two is meant is the server's secret."""
    key = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}.get(seen.method, "name")
    names = Counter(name for item in listed_of(seen) if isinstance(name := item.get(key), str))
    for name, count in names.items():
        if count > 1:
            yield Told(f"{name[:80]} is listed {count} times", name)


@rule(
    "DATA502",
    ERROR,
    "pages that never end",
    page="2025-11-25/server/utilities/pagination",
    on=Kind.RESULT,
    about=LISTS,
    valid=(
        _PAGE % (2, "", 2, "", ',"nextCursor":"p2"') + _PAGE % (3, ',"params":{"cursor":"p2"}', 3, "", ""),
        _PAGE % (2, "", 2, "", ',"nextCursor":"p2"') + _PAGE % (3, "", 3, "", ',"nextCursor":"p2"'),
    ),
    invalid=(
        _PAGE % (2, "", 2, "", ',"nextCursor":"p2"')
        + _PAGE % (3, ',"params":{"cursor":"p2"}', 3, "", ',"nextCursor":"p2"'),
        _PAGE % (2, "", 2, "", ',"nextCursor":""')
        + _PAGE % (3, ',"params":{"cursor":""}', 3, "", ',"nextCursor":""'),
    ),
)
def endless(seen: Seen) -> Iterator[Told]:
    """The cursor of the next page is one that this listing has had: a client that goes on to the end goes on for
    ever. On the last page leave `nextCursor` out.
    """
    used = seen.conversation.cursors.setdefault(seen.method, set())
    asked = decoded(seen.request.body.cursor)
    if not isinstance(asked, str) or len(used) >= KEPT:
        used.clear()
    if isinstance(asked, str):
        used.add(asked)
    following = seen.result.get("nextCursor")
    if isinstance(following, str) and following in used:
        yield Told(f"nextCursor {following[:60]!r} was there before", following)


@rule(
    "DATA503",
    ERROR,
    "a nextCursor that is no string",
    page="2025-11-25/server/utilities/pagination",
    on=Kind.RESULT,
    about=LISTS,
    valid=(_PAGE % (2, "", 2, "", ',"nextCursor":"p2"'),),
    invalid=(_PAGE % (2, "", 2, "", ',"nextCursor":null'), _PAGE % (2, "", 2, "", ',"nextCursor":2')),
)
def cursor(seen: Seen) -> Iterator[Told]:
    """It is a string, or left out. TypeScript clients refuse the whole list over a `null`."""
    if "nextCursor" in seen.result and not isinstance(seen.result["nextCursor"], str):
        yield Told("nextCursor is no string: leave it out", seen.result["nextCursor"])


@rule(
    "DATA504",
    ERROR,
    "a completion of more than 100 values",
    page="2025-11-25/server/utilities/completion#completion-results",
    on=Kind.RESULT,
    about="completion/complete",
    valid=(_COMPLETE % '["a"]',),
    invalid=(_COMPLETE % ("[" + ",".join(f'"{n}"' for n in range(101)) + "]"),),
)
def completion(seen: Seen) -> Iterator[Told]:
    """At most 100, the best first; `total` and `hasMore` say that there are more. Clients refuse the rest."""
    given = seen.result.get("completion")
    values = given.get("values") if isinstance(given, dict) else None
    if isinstance(values, list) and len(values) > 100:
        yield Told(f"a completion of {len(values)} values; 100 is the most", len(values))
