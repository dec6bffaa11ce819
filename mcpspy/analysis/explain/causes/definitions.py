"""Definitions and results that a host or client refuses although the exchange looks fine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import Advice, advised
from mcpspy.analysis.explain.causes.requests import answers_to_notifications
from mcpspy.analysis.explain.causes.troubles import trouble_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import named_error, of_finding, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, ClientLeft, FailedRequest, Violation
from mcpspy.analysis.lint.finding import Finding
from mcpspy.core.counted import counted
from mcpspy.core.protocol.spec import CLIENT, SERVER


class _Row(NamedTuple):
    """A cause that is findings of lint which peers are known to react to."""

    code: str
    summary: str
    rules: str
    """The most specific first."""
    next_step: str | Advice
    """If it depends on the rule, with codes of rules as patterns."""
    positive: str | tuple[str, ...]
    side: str = SERVER
    is_observation: bool = False
    negative: str | tuple[str, ...] = ()
    more: Callable[[Facts], list[Violation]] = lambda facts: []
    """Further findings, if the rest of the session decides that they are of this cause."""


_CHANGED = ex.notified("<", "notifications/tools/list_changed")
_PROGRESS = ex.notified("<", "notifications/progress", progressToken="t", progress=1)
_WITH_TOKEN = ex.call(_meta={"progressToken": "t"})


def _image(kind: str) -> str:
    """Return the result of a call with the bytes of a PNG under a media type."""
    return ex.result(content=[{"type": "image", "data": "iVBORw0KGgo=", "mimeType": kind}])


_TABLE = (
    _Row(
        "tool-dropped",
        "the host does not offer tools of this server to its model",
        rules="HOST102 HOST101 HOST107 HOST106 HOST108 DATA202 DATA201",
        next_step="correct the definition that the evidence quotes; mcpspy lint --host all checks every host",
        positive=ex.host("claude-code", ex.listed(ex.with_schema(type="array"))),
        negative=ex.host("claude-code", ex.listed("a")),
    ),
    _Row(
        "result-rejected",
        "a result has a form that clients reject",
        rules="DATA303 DATA302 DATA304 ENV108 DATA102 DATA401 DATA402 DATA403 DATA406 ENV105 DATA103 MOD201 DATA411",
        next_step=(
            (
                "DATA411",
                "let the server name the type of the bytes that it sends; models refuse an image whose type is wrong",
            ),
            (
                "",
                "correct the form of this result: clients that check it raise an error, although the exchange looks fine",
            ),
        ),
        positive=(
            ex.session(ex.call(), ex.result(content="done")),
            ex.session(ex.call(), _image("image/jpeg")),
        ),
        negative=ex.session(ex.call(), _image("image/png")),
    ),
    _Row(
        "error-swallowed",
        "a tool failed, but its result reports a success",
        rules="AGENT103 DATA306",
        next_step="set isError: true in the result, or raise an error in the handler",
        positive=(
            ex.session(ex.call(), ex.done(2, "Error: ENOENT: no such file or directory, open 'a'")),
            ex.session(
                ex.listed(ex.with_schema(properties={"parent": {"type": "object"}})),
                ex.request("tools/call", 3, name="a", arguments={"parent": '{"id":1}'}),
                ex.done(3, "Error: body failed validation: body.parent should be an object"),
            ),
        ),
        negative=ex.session(ex.call(), ex.done(2, "no file is missing")),
    ),
    _Row(
        "object-as-text",
        "a result has the name of an object in place of its content",
        rules="AGENT107",
        next_step="let the server write the object as JSON (JSON.stringify, json.dumps), and await what is asynchronous, before it makes a "
        "text block of it",
        positive=ex.session(ex.call(), ex.done(2, "[object Object]")),
        negative=ex.session(ex.call(), ex.done(2, '{"temperature":21}')),
    ),
    _Row(
        "response-to-notification",
        "the server answered a notification",
        rules="ENV206",
        next_step="let the server answer only messages with an id: a notification gets no response, not "
        "even an error",
        positive=(
            ex.session(ex.notified(">", "notifications/x"), ex.error("Method not found", -32601, None)),
            ex.session(
                *(ex.notified(">", "notifications/x"), ex.request("tools/list")),
                *('< {"id":null,"result":{}}', ex.result(tools=[])),
            ),
        ),
        more=answers_to_notifications,
    ),
    _Row(
        "progress-unknown",
        "progress was reported for no open request",
        rules="LIFE302 LIFE303",
        next_step="let the server send progress only with the progressToken of an open request, and before "
        "its response: some clients raise an error for an unknown token",
        positive=ex.session(_WITH_TOKEN, ex.done(), _PROGRESS),
        negative=ex.session(_WITH_TOKEN, _PROGRESS, ex.done()),
    ),
    _Row(
        "pagination-endless",
        "a list never ends, or its cursors are wrong",
        rules="DATA502 DATA503 DATA505",
        next_step="let the last page have no nextCursor, and each other page its own cursor",
        positive=ex.session(
            ex.listed("a", nextCursor="p"),
            *(
                ex.session(ex.request("tools/list", n, cursor="p"), ex.result(n, tools=[], nextCursor="p"))
                for n in (3, 4)
            ),
        ),
        negative=ex.session(
            ex.listed("a", nextCursor="p"), ex.request("tools/list", 3, cursor="p"), ex.result(3, tools=[])
        ),
    ),
    _Row(
        "beyond-host-limit",
        "a result is too large for the host, or a response came after its timeout",
        rules="HOST201 HOST301",
        next_step=(
            ("HOST201", "return less: pages, a summary, or a resource link"),
            ("", "make the call or the start faster, report progress, or raise the timeout of the host"),
        ),
        positive=(
            ex.host("codex-mcp-client", ex.call(), ex.done(2, "x" * 66_000)),
            ex.host("codex-mcp-client", ex.call(), ex.done()).replace("@ bare", "@ bare\n+ 12"),
        ),
        negative=ex.host("codex-mcp-client", ex.call(), ex.done()),
    ),
    _Row(
        "not-strict-json",
        "a message has values that strict parsers of JSON refuse",
        rules="ENV117",
        next_step="let the sender write no NaN, Infinity or lone surrogates (Python: json.dumps(…, "
        "allow_nan=False))",
        side="",
        positive=ex.session(
            ex.call(), '<< {"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"x":NaN}}}'
        ),
    ),
    _Row(
        "list-changed-ignored",
        "the client did not list the tools again after they changed",
        rules="LIFE113",
        next_step="restart the server in the host; not every host follows notifications/tools/list_changed",
        side=CLIENT,
        positive=ex.session(ex.listed("a"), _CHANGED, ex.call(3), ex.done(3)),
    ),
    _Row(
        "host-ignores",
        "the host ignores what the server sent",
        rules="HOST302 HOST202",
        next_step="do not rely on it with this host",
        side="",
        is_observation=True,
        positive=ex.host("cursor-vscode", ex.listed("a"), _CHANGED),
        negative=ex.host("cursor-vscode", ex.listed("a")),
    ),
    _Row(
        "records-lost",
        "a part of the session was not recorded",
        rules="REC101",
        next_step="make room on the disk, or raise --max-body: messages were forwarded, but some are "
        "missing here",
        side="mcpspy",
        is_observation=True,
        positive=ex.note("lost", entries=3, why="No space left on device"),
    ),
    _Row(
        "repeated-calls",
        "the same call was sent again and again",
        rules="AGENT101 AGENT102 AGENT104",
        next_step="say in the result what to do instead",
        side="",
        is_observation=True,
        positive=ex.session(*(ex.session(ex.call(n), ex.done(n, "3")) for n in range(3, 15))),
    ),
)

_ENDS_SESSIONS = ("tool-dropped", "result-rejected", "response-to-notification")
"""Causes for which clients leave."""


def _blame(facts: Facts, claim: Claim, words: str) -> None:
    """Let a claim of a hidden failure say what to do about the failure itself, which is not that it was hidden."""
    trouble = trouble_of(words, at_start=False)
    step = "correct what these words name" if trouble is None else advised(trouble.next_step, words)
    if trouble is not None and trouble.code == "service-refused-key" and not facts.is_stdio:
        step = "set a valid key or token for the service where the client gives it to this server (a header, the URL)"
    side = "" if trouble is None else trouble.side
    if broken := _broken_arguments(facts, words):
        claim.title += (
            f"; against the schema, the client sent {quote(broken.message.partition(': ')[2], 100)}"
        )
        claim.evidence.append(of_finding(broken))
        side, step = CLIENT, "let the client send what the schema of the tool has"
    claim.next_step = f"{step}; the server should set isError: true in such a result"
    claim.side = side


def _broken_arguments(facts: Facts, words: str) -> Finding | None:
    """Return the argument that a hidden failure of a tool names, and that violates the schema of the tool; else None."""
    tool = words.partition(" ")[0]
    for violation in facts.violations("DATA301", side=CLIENT):
        for finding in violation.findings:
            named = re.match(rf"arguments of {re.escape(tool)}: /(\w+)", finding.message)
            if named is not None and re.search(rf"\b{named[1]}\b", words.removeprefix(tool)):
                return finding
    return None


def _has(failed: FailedRequest, rules: list[str]) -> bool:
    return any(finding.code in rules for finding in failed.findings)


def _define(row: _Row) -> None:
    rules = row.rules.split()

    def claims(facts: Facts) -> Iterator[Claim]:
        found = [each for rule in rules for each in facts.violations(rule)] + row.more(facts)
        if found:
            first, count = found[0].findings[0], sum(each.count for each in found)
            more = f" (and {counted(count - 1, 'more finding')})" if count > 1 else ""
            # An error under the id of another request ends clients, and a host continues without a tool that it drops.
            is_other = first.code.startswith("HOST") and bool(
                facts.violations("ENV204", "ENV205", side=SERVER)
            )
            is_fatal = row.code in _ENDS_SESSIONS and not is_other
            left = facts.of(ClientLeft) if is_fatal else []
            title, symptoms = f"{quote(first.message)}{more}", [*found, *left]
            # A tool error without words has none because of its form.
            symptoms += [each for each in facts.failed(*ERRORS) if not each.words and _has(each, rules)]
            claim = Claim(
                title=title, next_step=advised(row.next_step, first.code), symptoms=symptoms, side=row.side
            )
            claim.is_observation = row.is_observation
            if first.code == "AGENT103":
                _blame(facts, claim, first.message)
            if first.code == "HOST301":
                claim.side = ""  # The work may take as long, or the limit be too short for it.
            is_exact = first.code.startswith("HOST") and not row.is_observation
            claim.level = Level.EXACT if is_exact else None
            yield claim

    claims.__doc__ = f"{row.summary[0].upper()}{row.summary[1:]}: findings of {', '.join(rules)}."
    # What it reads beside its own rules, to recognise a client that left for another reason, other causes declare.
    add = cause(
        row.code, row.summary, Level.GENERAL, rules=row.rules, positive=row.positive, negative=row.negative
    )
    add(claims)


for _row in _TABLE:
    _define(_row)


@cause(
    "schema-root-combined",
    "an input schema has oneOf, anyOf or allOf at its root",
    Level.GENERAL,
    positive=ex.listed(ex.with_schema(oneOf=[{}])),
)
def schema_root_combined(facts: Facts) -> Iterator[Claim]:
    """MCP allows it. The interfaces of several models refuse it, and with it the whole list of
    tools, also of other servers.
    """
    for name, line in facts.listed.combined[:1]:
        title = (
            f"the inputSchema of {quote(name)} has oneOf, anyOf or allOf at its root: interfaces of "
            f"models refuse such a list of tools"
        )
        next_step = "let the schema be a flat object: an enum for the action, and the other members optional"
        yield Claim(
            title, next_step, [], [line], SERVER, is_observation=bool(facts.client.methods["tools/call"])
        )


@cause(
    "no-tools",
    "the list of tools is empty",
    Level.GENERAL,
    positive=ex.session(ex.request("tools/list"), ex.result(tools=[]), ex.END),
    negative=(ex.session(ex.listed("a"), ex.END), ex.session(ex.request("ping"), ex.result(), ex.END)),
)
def no_tools(facts: Facts) -> Iterator[Claim]:
    """A server may have none; or they wait for a setting, a sign-in or a service, or failed to load."""
    if (
        facts.answered[CLIENT, "tools/list"]
        and not facts.listed.tools
        and not facts.client.methods["tools/call"]
    ):
        title = "the server answered tools/list with an empty list"
        error = named_error(facts.stderr, certain=True)
        title += "" if error is None else f"; on stderr: {quote(error.text, 100)}"
        next_step = "if it should have tools: look what it prints at its start, and whether they wait for a setting or a sign-in"
        yield Claim(
            title, next_step, [], is_observation=True, evidence=[] if error is None else [error.evidence]
        )


_MODEL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names of functions that the interfaces of Anthropic and OpenAI allow."""


_TOOL_NAME = re.compile(r"[a-zA-Z0-9_./-]{1,128}")
"""The names that the specification has for tools (2025-11-25, Tools), and the slash of drafts before it."""


@cause(
    "name-refused-by-models",
    "tool names have characters that the interfaces of models refuse",
    Level.GENERAL,
    positive=(ex.listed("files.read"), ex.listed("Read Files")),
)
def name_refused(facts: Facts) -> Iterator[Claim]:
    """MCP allows dots and 128 characters, interfaces of models do not; hosts that do not replace
    them fail at the model.
    """
    names = sorted(name for name in facts.listed.tools if not _MODEL_NAME.fullmatch(name))
    broken = [name for name in names if not _TOOL_NAME.fullmatch(name)]
    shown = ", ".join(quote(name, 40) for name in (broken or names)[:3])
    if broken and not facts.client.methods["tools/call"]:
        title = (
            f"{counted(len(broken), 'tool')} ({shown}) have names with characters that no tool should have (2025-11-25, Tools), and "
            f"that interfaces of models refuse; no tool was called"
        )
        next_step = "rename the tools in the server: letters, digits, _ and -; some hosts replace other characters, and many do not"
        yield Claim(title, next_step, [], side=SERVER)
    elif names and not facts.client.methods["tools/call"]:
        title = (
            f"{counted(len(names), 'tool')} ({shown}) have names that MCP allows and interfaces of "
            f"models refuse (other characters than letters, digits, _ and -), and no tool was called"
        )
        next_step = "the host should replace these characters; in the server, use _ in place of the dot"
        yield Claim(title, next_step, [], side=CLIENT, is_observation=True)


@cause(
    "pages-not-requested",
    "the client did not ask for the next page of a list",
    Level.SPECIFIC,
    rules="DATA502",
    positive=ex.session(ex.listed("a", nextCursor="p"), ex.END),
)
def pages_not_requested(facts: Facts) -> Iterator[Claim]:
    """A list with nextCursor has more pages, and their items do not exist for a client that does
    not ask for them.
    """
    is_endless = bool(facts.violations("DATA502"))
    for method, (_, line) in () if is_endless else facts.listed.next_pages.items():
        title = f"the result of {method} has a nextCursor, and the client never asked for the next page"
        next_step = "the client must follow nextCursor; or let the server put everything on one page"
        yield Claim(title, next_step, [], [line], CLIENT, is_observation=method != "tools/list")


@cause(
    "schema-dialect",
    "an output schema is in another dialect than 2020-12",
    Level.GENERAL,
    positive=ex.listed(
        {
            **ex.with_schema(),
            "outputSchema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"},
        }
    ),
)
def schema_dialect(facts: Facts) -> Iterator[Claim]:
    """Some hosts of 2026 compile output schemas strictly as 2020-12, and refuse a tool that
    declares draft-07.
    """
    for name, dialect, line in facts.listed.dialects[:1]:
        title = (
            f"the outputSchema of {quote(name)} declares {quote(dialect, 80)}: some hosts of 2026 refuse "
            f"it, and never call the tool"
        )
        yield Claim(title, "declare 2020-12 or no $schema", [], [line], SERVER, is_observation=True)
