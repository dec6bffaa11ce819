"""Definitions and results that a host or client refuses although the exchange looks fine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, Symptom, Violation
from mcpspy.core.counted import counted
from mcpspy.core.protocol.spec import CLIENT, SERVER


class _Row(NamedTuple):
    code: str
    summary: str
    rules: tuple[str, ...]
    """The most specific first."""
    next_step: str
    side: str
    is_observation: bool


_TABLE = (
    _Row(
        "tool-dropped", "the host does not offer tools of this server to its model",
        ("HOST102", "HOST101", "HOST107", "HOST106", "DATA202", "DATA201"),
        "correct the definition that the evidence quotes; mcpspy lint --host all checks every host", SERVER, False,
    ),
    _Row(
        "result-rejected", "a result has a form that clients reject",
        ("DATA303", "DATA302", "DATA304", "ENV108", "DATA102", "DATA401", "DATA402", "DATA403", "DATA406", "ENV105", "DATA103"),
        "correct the form of this result: clients that check it raise an error, although the exchange looks fine", SERVER, False,
    ),
    _Row(
        "error-swallowed", "a tool failed, but its result reports a success",
        ("AGENT103", "DATA306"),
        "set isError: true in the result, or raise an error in the handler", SERVER, False,
    ),
    _Row(
        "response-to-notification", "the server answered a notification",
        ("ENV206",),
        "let the server answer only messages with an id: a notification gets no response, not even an error", SERVER, False,
    ),
    _Row(
        "progress-unknown", "progress was reported for no open request",
        ("LIFE302", "LIFE303"),
        "let the server send progress only with the progressToken of an open request, and before its response: some clients raise"
        " an error for an unknown token",
        SERVER, False,
    ),
    _Row(
        "pagination-endless", "a list never ends, or its cursors are wrong",
        ("DATA502", "DATA503", "DATA505"),
        "let the last page have no nextCursor, and each other page its own cursor", SERVER, False,
    ),
    _Row(
        "result-too-large", "a result is too large for the host",
        ("HOST201",),
        "return less: pages, a summary, or a resource link", SERVER, False,
    ),
    _Row(
        "late-for-host", "a response came after the host's timeout",
        ("HOST301",),
        "make the call or the start faster, report progress, or raise the timeout of the host", SERVER, False,
    ),
    _Row(
        "content-type-wrong", "the bytes of a content block are of another type than its mimeType",
        ("DATA411",),
        "let the server name the type of the bytes that it sends; models refuse an image whose type is wrong", SERVER, False,
    ),
    _Row(
        "not-strict-json", "a message has values that strict parsers of JSON refuse",
        ("ENV117",),
        "let the sender write no NaN, Infinity or lone surrogates (Python: json.dumps(…, allow_nan=False))", "", False,
    ),
    _Row(
        "list-changed-ignored", "the client did not list the tools again after they changed",
        ("LIFE113",),
        "restart the server in the host; not every host follows notifications/tools/list_changed", CLIENT, False,
    ),
    _Row(
        "host-ignores", "the host ignores what the server sent",
        ("HOST302", "HOST202"),
        "do not rely on it with this host", "", True,
    ),
    _Row(
        "records-lost", "a part of the session was not recorded",
        ("REC101",),
        "make room on the disk, or raise --max-body: messages were forwarded, but some are missing here", "mcpspy", True,
    ),
    _Row(
        "repeated-calls", "the same call was sent again and again",
        ("AGENT101", "AGENT102", "AGENT104"),
        "say in the result what to do instead", "", True,
    ),
)  # fmt: skip
"""Causes that are findings of lint which peers are known to react to."""


def _add(row: _Row) -> None:
    def claims(facts: Facts) -> Iterator[Claim]:
        found: list[Violation] = [each for rule in row.rules for each in facts.violations(rule)]
        if not found:
            return
        first = found[0].findings[0]
        count = sum(each.count for each in found)
        more = f" (and {counted(count - 1, 'more finding')})" if count > 1 else ""
        symptoms: list[Symptom] = [*found]
        # A host continues without a tool that it drops; a client that cannot parse a message ends.
        if (
            row.code in ("tool-dropped", "result-rejected", "response-to-notification")
            and first.code[:4] != "HOST"
        ):
            symptoms += facts.of(ClientLeft)
        yield Claim(
            title=f"{quote(first.message)}{more}",
            next_step=row.next_step,
            symptoms=symptoms,
            side=row.side,
            is_observation=row.is_observation,
            level=Level.EXACT if first.code.startswith("HOST") and not row.is_observation else None,
        )

    claims.__doc__ = f"{row.summary[0].upper()}{row.summary[1:]}: findings of {', '.join(row.rules)}."
    positive, negative = _EXAMPLES[row.code]
    cause(row.code, row.summary, level=Level.GENERAL, positive=positive, negative=negative)(claims)


_EXAMPLES: dict[str, tuple[str, str]] = {
    "tool-dropped": (
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"array"}}]}}
        """,
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
        """,
    ),
    "result-rejected": (
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":"done"}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
    "error-swallowed": (
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[{"type":"text","text":"Error: ENOENT: no such file or directory, open 'a'"}]}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[{"type":"text","text":"no file is missing"}]}}
        """,
    ),
    "response-to-notification": (
        """
            > {"method":"notifications/x"}
            < {"id":null,"error":{"code":-32601,"message":"Method not found"}}
        """,
        """
            > {"id":2,"method":"ping"}
            < {"id":2,"result":{}}
        """,
    ),
    "progress-unknown": (
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":"t"}}}
            < {"id":2,"result":{"content":[]}}
            < {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":"t"}}}
            < {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
    "pagination-endless": (
        """
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}],"nextCursor":"p"}}
            > {"id":3,"method":"tools/list","params":{"cursor":"p"}}
            < {"id":3,"result":{"tools":[],"nextCursor":"p"}}
            > {"id":4,"method":"tools/list","params":{"cursor":"p"}}
            < {"id":4,"result":{"tools":[],"nextCursor":"p"}}
        """,
        """
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}],"nextCursor":"p"}}
            > {"id":3,"method":"tools/list","params":{"cursor":"p"}}
            < {"id":3,"result":{"tools":[]}}
        """,
    ),
    "result-too-large": (
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"codex-mcp-client","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        """
        + '< {"id":2,"result":{"content":[{"type":"text","text":"%s"}]}}' % ("x" * 66_000),
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"codex-mcp-client","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
    "late-for-host": (
        """
            @ bare
            + 12
            > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"codex-mcp-client","version":"1"}}}
            < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
            + 1
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"codex-mcp-client","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
    "content-type-wrong": (
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/jpeg"}]}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}}
        """,
    ),
    "not-strict-json": (
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            << {"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"x":NaN}}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
    "list-changed-ignored": (
        """
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
            < {"method":"notifications/tools/list_changed"}
            > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":3,"result":{"content":[]}}
        """,
        """
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
            > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":3,"result":{"content":[]}}
        """,
    ),
    "host-ignores": (
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cursor-vscode","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
            < {"method":"notifications/tools/list_changed"}
        """,
        """
            @ bare
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cursor-vscode","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
            > {"method":"notifications/initialized"}
            > {"id":2,"method":"tools/list"}
            < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
        """,
    ),
    "records-lost": (
        """
            * lost {"entries":3,"why":"No space left on device"}
        """,
        """
            * stderr {"text":"lost"}
        """,
    ),
    "repeated-calls": (
        """
            > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":3,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":4,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":4,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":5,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":5,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":6,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":6,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":7,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":7,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":8,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":8,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":9,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":9,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":10,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":10,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":11,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":11,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":12,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":12,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":13,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":13,"result":{"content":[{"type":"text","text":"3"}]}}
            > {"id":14,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":14,"result":{"content":[{"type":"text","text":"3"}]}}
        """,
        """
            > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
            < {"id":2,"result":{"content":[]}}
        """,
    ),
}
"""Code of a row → an example with it, and one without it."""


for _row in _TABLE:
    _add(_row)


@cause(
    "downgrade",
    "the server answered with an older revision than the client asked for",
    level=Level.GENERAL,
    positive="""
        @ bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        < {"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
    """,
    negative="""
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
    """,
)
def downgrade(facts: Facts) -> Iterator[Claim]:
    """Both speak the older revision, so all is well; features of the newer one are not available."""
    asked, agreed = facts.listed.asked_revision, facts.session.agreed_revision
    if asked is not None and agreed is not None and agreed < asked:
        yield Claim(
            title=f"the client asked for {quote(asked, 20)}, and the server chose {quote(agreed, 20)}",
            next_step="update the server's SDK for features of the newer revision",
            symptoms=[],
            is_observation=True,
        )


_MODEL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@cause(
    "schema-root-combined",
    "an input schema has oneOf, anyOf or allOf at its root",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object","oneOf":[{}]}}]}}
    """,
    negative="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}
    """,
)
def schema_root_combined(facts: Facts) -> Iterator[Claim]:
    """MCP allows it. The interfaces of several models refuse it, and with it the whole list of tools, also of other servers."""
    if facts.listed.combined:
        name, line = facts.listed.combined[0]
        yield Claim(
            title=f"the inputSchema of {quote(name)} has oneOf, anyOf or allOf at its root: interfaces of models refuse such a list of tools",
            next_step="let the schema be one flat object: an enum for the action, and the other members optional",
            symptoms=[],
            evidence=[line],
            side=SERVER,
            is_observation=bool(facts.client.methods["tools/call"]),
        )


@cause(
    "name-refused-by-models",
    "tool names have characters that the interfaces of models refuse",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"files.read","description":"b","inputSchema":{"type":"object"}}]}}
    """,
    negative="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def name_refused(facts: Facts) -> Iterator[Claim]:
    """MCP allows dots and 128 characters; several interfaces of models allow only letters, digits, _ and -, and hosts that do
    not replace the others fail at the first request to the model.
    """
    names = sorted(name for name in facts.listed.tools if not _MODEL_NAME.fullmatch(name))
    if names and not facts.client.methods["tools/call"]:
        yield Claim(
            title=f"{counted(len(names), 'tool')} ({', '.join(quote(name, 40) for name in names[:3])}) have names that MCP allows and"
            " interfaces of models refuse (other characters than letters, digits, _ and -), and no tool was called",
            next_step="the host should replace these characters; in the server, use _ in place of the dot",
            symptoms=[],
            side=CLIENT,
            is_observation=True,
        )


@cause(
    "pages-not-requested",
    "the client did not ask for the next page of a list",
    level=Level.SPECIFIC,
    positive="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}],"nextCursor":"p"}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
    negative="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
)
def pages_not_requested(facts: Facts) -> Iterator[Claim]:
    """A list with nextCursor has more pages, and their items do not exist for a client that does not ask for them."""
    for method, (_, line) in facts.listed.next_pages.items():
        if facts.violations("DATA502"):
            continue
        yield Claim(
            title=f"the result of {method} has a nextCursor, and the client never asked for the next page",
            next_step="the client must follow nextCursor; or let the server put everything on one page",
            symptoms=[],
            evidence=[line],
            side=CLIENT,
            is_observation=method != "tools/list",
        )


@cause(
    "one-at-a-time",
    "the server works on one request at a time",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
        + 0.1
        < {"id":2,"result":{"content":[]}}
        < {"id":3,"result":{"content":[]}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
        + 0.1
        < {"id":3,"result":{"content":[]}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def one_at_a_time(facts: Facts) -> Iterator[Claim]:
    """Calls that were sent while a slow one ran are answered right after it: they waited for it, and are not slow themselves."""
    for slow in facts.slow:
        after = [
            each for each in facts.slow
            if slow.asked_at < each.asked_at < slow.answer_at <= each.answer_at <= slow.answer_at + 0.25
            and each.answer_at - each.asked_at < slow.answer_at - slow.asked_at
        ]  # fmt: skip
        if after:
            names = ", ".join(dict.fromkeys(each.about for each in after[:3]))
            yield Claim(
                title=f"{names} waited until {slow.about} had its response after {slow.answer_at - slow.asked_at:.1f} s: the server works on one request at a time",
                next_step="let the server work on calls concurrently (async, threads); these calls are not slow themselves",
                symptoms=[],
                evidence=[
                    evidence(each.place, f"{each.about}: {each.answer_at - each.asked_at:.1f} s")
                    for each in (slow, *after[:2])
                ],
                side=SERVER,
                is_observation=True,
            )
            break


@cause(
    "schema-dialect",
    "an output schema is in another dialect than 2020-12",
    level=Level.GENERAL,
    positive="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"outputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}}]}}
    """,
    negative="""
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def schema_dialect(facts: Facts) -> Iterator[Claim]:
    """Some hosts of 2026 compile output schemas strictly as 2020-12, and refuse a tool that declares draft-07."""
    if facts.listed.dialects:
        name, dialect, place = facts.listed.dialects[0]
        yield Claim(
            title=f"the outputSchema of {quote(name)} declares {quote(dialect, 80)}: some hosts of 2026 refuse it, and never call the tool",
            next_step="declare 2020-12 or no $schema",
            symptoms=[],
            evidence=[place],
            side=SERVER,
            is_observation=True,
        )
