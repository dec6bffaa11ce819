"""JSON-RPC: members of messages, one message per line, and ids that match requests and responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import orjson
from msgspec import Raw

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, EVERY_LINE, LEGACY, RESPONSES, LintRule, Report, RuleGroup
from mcpspy.core.protocol.message import Failure, Malformed, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER, other
from mcpspy.core.session.correlation import NO_ID, UNSOLICITED

RULES: list[LintRule] = []

MESSAGES_PAGE = "2025-11-25/basic#messages"
STDIO_PAGE = "2025-11-25/basic/transports#stdio"
JSONRPC = "https://www.jsonrpc.org/specification"

MOST_LINES = 1000
"""Lines that are joined at most to find a message in them."""

PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'


line = RuleGroup(RULES, page=STDIO_PAGE, on=EventKind.MALFORMED, valid=PING)
message = RuleGroup(RULES, page=MESSAGES_PAGE, on=EVERY_LINE, unusual=True, valid=PING)
called = RuleGroup(RULES, page=MESSAGES_PAGE, on=CALLED, valid=PING)
member = RuleGroup(RULES, page=MESSAGES_PAGE, valid=PING)
request = RuleGroup(RULES, page="2025-11-25/basic#requests", on=EventKind.REQUEST, unusual=True)
response = RuleGroup(RULES, page="2025-11-25/basic#responses", on=RESPONSES, unusual=True, valid=PING)
rule = RuleGroup(RULES)


@line.error(
    "ENV101",
    "a line that is no JSON",
    valid=(PING, '* stderr {"text":"DEBUG: 3 stations in cache"}'),
    invalid=("<< DEBUG: 3 stations in cache", ">> {oops}"),
)
def not_json(event: LintEvent) -> Iterator[Report]:
    """Somebody printed to stdout, most likely: `print`, `console.log`, a banner, a library's logger.

    Nothing but messages may be written there. Send it to stderr: `print(…, file=sys.stderr)`,
    `logging.basicConfig()`, `console.error`. Some clients end the session over it.
    """
    why = reason(event)
    if why.startswith("not JSON") or why == "nested too deep":
        what = "stdout" if event.side == SERVER else "stdin"
        place = f"on {what}" if event.message.frame.stream is None else "in an HTTP message"
        detail = (
            why.removeprefix("not JSON: ") if event.data.lstrip()[:1] in b"{[" and why != "not JSON" else ""
        )
        yield Report(f"not JSON {place}" + (f": {detail}" if detail else ""))


@member.error(
    "ENV102",
    "JSON that is no message",
    on=EventKind.MALFORMED,
    invalid=(
        '<< {"jsonrpc":"2.0","id":1}',
        '<< {"jsonrpc":"2.0","method":7}',
        "@ 2025-03-26\n<< [7]",
        "<< []",
    ),
)
def no_message(event: LintEvent) -> Iterator[Report]:
    """A message is an object with a `method` (a string), a `result` or an `error`."""
    why = reason(event)
    if why in ("not an object", "empty batch", "method is not a string", "neither method, result nor error"):
        yield Report(f"no message: {why}")


@line.warning("ENV103", "a blank line", invalid=("<<  ", "<< \\x0d"))
def blank(event: LintEvent) -> Iterator[Report]:
    """An empty `print()`, or a message that is written with two line ends. Most peers skip it; older Python
    servers log an error for each.
    """
    if reason(event) == "blank line":
        yield Report("a blank line between messages")


@message.error(
    "ENV104",
    '`jsonrpc` is missing, or not "2.0"',
    invalid=(
        '> {"id":2,"method":"ping"}\n<< {"id":2,"result":{}}',
        '>> {"jsonrpc":"1.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}',
    ),
)
def version(event: LintEvent) -> Iterator[Report]:
    """Every message says `"jsonrpc":"2.0"`. The SDKs drop one that does not, and the request never gets its answer."""
    if 'jsonrpc is not "2.0"' in event.message.flaws and not isinstance(event.what, Malformed):
        document = event.document
        given = document.get("jsonrpc") if isinstance(document, dict) else None
        yield Report('no "jsonrpc":"2.0"' if given is None else f'jsonrpc is {json.dumps(given)}, not "2.0"')


@message.error(
    "ENV105",
    "both a result and an error",
    on=RESPONSES,
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":{"code":-32603,"message":"no"}}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":null}',
    ),
)
def both(event: LintEvent) -> Iterator[Report]:
    """An answer has one or the other. An `"error":null` beside a result is what serializers write that do not
    leave out what is not set; strict peers refuse it.
    """
    if "both result and error" in event.message.flaws:
        yield Report("both result and error")


@member.error(
    "ENV106",
    "an error without an integer code or a message",
    on=EventKind.FAILURE,
    valid='> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601,"message":"no such method"}}',
    invalid=(
        '> {"id":2,"method":"x"}\n< {"id":2,"error":"no such method"}',
        '> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":"ENOENT","message":"no"}}',
        '> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601}}',
    ),
)
def error_shape(event: LintEvent) -> Iterator[Report]:
    """An error is an object with an integer `code` and a string `message`; `data` may hold anything else."""
    error = event.error
    if "both result and error" in event.message.flaws:
        return
    if not isinstance(error, dict):
        yield Report("error is not an object", error)
    elif event.failure.code is None:
        yield Report("the error's code is not an integer", error)
    elif not isinstance(error.get("message"), str):
        yield Report("the error's message is not a string", error)


@called.error(
    "ENV107",
    "params that are no object",
    valid=(PING, '> {"id":2,"method":"ping","params":{}}\n< {"id":2,"result":{}}'),
    invalid=(
        '> {"id":2,"method":"ping","params":[]}\n< {"id":2,"result":{}}',
        '> {"method":"notifications/x","params":null}',
    ),
)
def params_shape(event: LintEvent) -> Iterable[Report]:
    """JSON-RPC also allows a list; MCP does not, and `null` is no way to leave them out."""
    raw: Raw = event.what.raw_params  # type: ignore[union-attr]  # Of both kinds.
    if event.params or not raw or event.has_object("params"):
        return ()
    return [Report("params is not an object", bytes(raw))]


@member.error(
    "ENV108",
    "a result that is no object",
    on=EventKind.RESULT,
    beyond_text=True,
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":null}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":"pong"}',
    ),
)
def result_shape(event: LintEvent) -> Iterable[Report]:
    """Results are objects, empty ones too: `"result":{}`."""
    if event.has_object("result") or "both result and error" in event.message.flaws:
        return ()
    return [Report("result is not an object", bytes(event.what.raw_result))]  # type: ignore[union-attr]  # A result.


@message.error(
    "ENV109",
    "a batch, where there are none",
    page="2025-06-18/changelog",
    valid=(
        PING,
        (
            '@ 2025-03-26\n>> [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]\n'
            '<< [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}}]'
        ),
    ),
    invalid=(
        '>> [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]\n'
        '< {"id":2,"result":{}}\n< {"id":3,"result":{}}'
    ),
)
def batch(event: LintEvent) -> Iterator[Report]:
    """Only 2025-03-26 has JSON-RPC batches. Before, nothing is said of them; 2025-06-18 took them out. The SDKs
    drop them.
    """
    if event.message.index == 0 and event.revision != "2025-03-26":
        yield Report(f"a batch in {event.revision or 'a session'}", event.message.frame.data)


@called.warning(
    "ENV116",
    "a method named rpc.…",
    page=JSONRPC + "#request_object",
    about="rpc.*",
    invalid='> {"id":2,"method":"rpc.discover"}\n< {"id":2,"result":{}}',
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """JSON-RPC keeps names that begin with `rpc.` for itself, for any purpose."""
    yield Report(f"the method {event.method[:60]} is reserved by JSON-RPC")


@line.error(
    "ENV118",
    "one message over several lines",
    valid=(PING, '@ http\n>> {"jsonrpc":"2.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid='<< {\n<<   "jsonrpc":"2.0",\n<<   "method":"notifications/x"\n<< }',
)
def pretty_printed(event: LintEvent) -> Iterator[Report]:
    """A message is one line. This one was written with an indentation: write it without (`json.dumps(message)`,
    `JSON.stringify(message)`). Each of its lines is told by ENV101, too.
    """
    if event.message.frame.http is not None:
        return
    torn = event.state.non_json[event.side]
    if torn.number != event.number - 1 or len(torn.lines) >= MOST_LINES:
        torn.lines.clear()
    torn.number = event.number
    data = event.data.strip()
    if data in (b"{", b"["):
        torn.lines[:] = [data]
        return
    if not torn.lines:
        return
    torn.lines.append(event.data)
    if data[-1:] in (b"}", b"]"):
        whole = b"\n".join(torn.lines)
        try:
            orjson.loads(whole)
        except ValueError:
            return
        yield Report(f"one message over {len(torn.lines)} lines", whole)
        torn.lines.clear()


def reason(event: LintEvent) -> str:
    """Return why a line is malformed; empty if it is a message."""
    return event.what.why if isinstance(event.what, Malformed) else ""


@request.error(
    "ENV201",
    "an id that is neither a string nor an integer",
    valid=(PING, '> {"id":"a","method":"ping"}\n< {"id":"a","result":{}}'),
    invalid=(
        '> {"id":null,"method":"ping"}',
        '> {"id":1.5,"method":"ping"}\n< {"id":1.5,"result":{}}',
        '> {"id":true,"method":"ping"}\n< {"id":true,"result":{}}',
    ),
)
def id_type(event: LintEvent) -> Iterator[Report]:
    """The SDKs take such a request for a notification, or drop it: it is never answered. `null` is forbidden by name."""
    if any(flaw.startswith("id is ") for flaw in event.message.flaws):
        yield Report(f"the id {event.request.id[:40]} is neither a string nor an integer")


@request.error(
    "ENV202",
    "an id that another request still waits under",
    valid=(
        PING,
        '> {"id":2,"method":"ping"}\n< {"id":2,"method":"ping"}\n> {"id":2,"result":{}}\n< {"id":2,"result":{}}',
    ),
    invalid='> {"id":2,"method":"ping"}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',
)
def id_in_use(event: LintEvent) -> Iterator[Report]:
    """Two requests wait for an answer under one id: nobody can tell whose it is. Each side counts by itself, so the
    server's 2 is not the client's 2.
    """
    if event.flaw is not None and event.flaw.endswith("is in use by an unanswered request"):
        yield Report(event.flaw)


@request.error(
    "ENV203",
    "an id that was used before",
    until=LEGACY,
    valid=(
        PING,
        (
            '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}\n'
            '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}'
        ),
    ),
    invalid='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def reused_id(event: LintEvent) -> Iterator[Report]:
    """Within a session an id is used once. From 2026-07-28 on it may be used again when it has its answer."""
    if event.flaw is not None and event.flaw.endswith("was used before"):
        yield Report(event.flaw)


@response.error(
    "ENV204",
    "an answer that nobody asked for",
    invalid=('< {"id":7,"result":{}}', '> {"id":2,"method":"ping"}\n< {"id":"2","result":{}}'),
)
def unsolicited(event: LintEvent) -> Iterator[Report]:
    """No request of the other side waits under this id. An id comes back exactly as it was sent: `2` is not `"2"`,
    though the SDKs are lenient there.
    """
    if event.side == CLIENT and (event.revision or "") >= MODERN:
        return  # MOD105 says it.
    if event.flaw is not None and event.flaw.startswith(UNSOLICITED):
        assert isinstance(event.what, Result | Failure)
        yield Report(
            event.flaw if ":" in event.flaw else f"nobody asked under the id {(event.what.id or '')[:40]}"
        )


@response.error(
    "ENV205",
    "a second answer to one request",
    invalid='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',
)
def second_response(event: LintEvent) -> Iterator[Report]:
    """The first one counts; whoever waits for the second waits for another. A handler that both returns and sends,
    or an error written after the result was.
    """
    if event.flaw is not None and event.flaw.endswith("was answered before"):
        yield Report(event.flaw)


@response.error(
    "ENV206",
    "an answer to a notification",
    page="2025-11-25/basic#notifications",
    valid=(PING, '> {"method":"notifications/x"}'),
    invalid=(
        '> {"method":"notifications/x"}\n< {"id":null,"result":{}}',
        '> {"method":"notifications/x"}\n< {"id":null,"error":{"code":-32601,"message":"no"}}',
    ),
)
def to_notification(event: LintEvent) -> Iterator[Report]:
    """A notification has no id, so an answer to it cannot have one; the receiver must not send any. Servers do it
    that look a method up before they look whether an answer is wanted.
    """
    if _is_anonymous(event) and event.conversation.has_notified[other(event.side)]:
        yield Report("answers a notification: it has no id")


@response.error(
    "ENV207",
    "an answer without an id",
    valid=(
        PING,
        '@ http\n> {"id":2,"method":"ping"}\n= 400 {} {}\n< {"error":{"code":-32600,"message":"no"}}',
    ),
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"result":{}}',
        '> {"id":2,"method":"x"}\n< {"id":null,"error":{"code":-32601,"message":"no"}}',
    ),
)
def without_id(event: LintEvent) -> Iterator[Report]:
    """An answer says which request it is for. Only an error may leave that out, and only where the request's id
    could not be read.
    """
    if not _is_anonymous(event) or event.conversation.has_notified[other(event.side)]:
        return
    if not (isinstance(event.what, Failure) and event.conversation.was_malformed[other(event.side)]):
        yield Report("an answer without an id")


@rule.warning(
    "ENV208",
    "an error whose id is null",
    page="2025-11-25/schema#jsonrpcerrorresponse",
    on=EventKind.FAILURE,
    since="2025-11-25",
    valid='> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601,"message":"no"}}',
    invalid='>> {oops}\n< {"id":null,"error":{"code":-32700,"message":"no JSON"}}',
)
def null_id(event: LintEvent) -> Iterator[Report]:
    """Where a request could not be read, an error leaves its `id` out (since 2025-11-25); `null`, as JSON-RPC has it,
    is not in the schema any more. TypeScript clients drop such a message.
    """
    document = event.document
    if (
        isinstance(document, dict)
        and "id" in document
        and document["id"] is None
        and event.conversation.was_malformed[other(event.side)]
    ):
        yield Report("the error's id is null: leave it out")


def _is_anonymous(event: LintEvent) -> bool:
    return event.flaw == NO_ID
