"""JSON-RPC: members of messages, one message per line, and ids that match requests with responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import orjson
from msgspec import Raw

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, EVERY_LINE, LEGACY, RESPONSES, RULES, Report, RuleGroup
from mcpspy.core.protocol.extensions.events import is_webhook
from mcpspy.core.protocol.message import Failure, Malformed, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER, other
from mcpspy.core.session.request_table import NO_ID, UNSOLICITED

MESSAGES_PAGE = "2025-11-25/basic#messages"
STDIO_PAGE = "2025-11-25/basic/transports#stdio"
JSONRPC = "https://www.jsonrpc.org/specification"

MOST_LINES = 1000
"""Maximum number of lines that are joined to find a message in them."""

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
    "line that is not JSON",
    valid=(PING, '* stderr {"text":"DEBUG: 3 stations in cache"}'),
    invalid=("<< DEBUG: 3 stations in cache", ">> {oops}"),
)
def not_json(event: LintEvent) -> Iterator[Report]:
    """Usually the server printed something to stdout: `print`, `console.log`, a banner, a library's logger.

    Stdout is reserved for messages; some clients end the session over anything else. Write to stderr instead: `print(…,
    file=sys.stderr)`, `logging.basicConfig()`, `console.error`.
    """
    why = reason(event)
    if (why.startswith("not JSON") or why == "nested too deep") and event.cut is None:
        what = "stdout" if event.side == SERVER else "stdin"
        place = f"on {what}" if event.message.frame.stream is None else "in an HTTP message"
        detail = (
            why.removeprefix("not JSON: ") if event.data.lstrip()[:1] in b"{[" and why != "not JSON" else ""
        )
        yield Report(f"not JSON {place}" + (f": {detail}" if detail else ""))


@line.warning(
    "ENV119",
    "message that was cut",
    invalid=(
        '> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"result":{"x":"\\x04',
        '@ http\n> {"id":2,"method":"ping"}\n<< {"jsonrpc":"2.0","id":2,"res\n* http-end {"http":3,"stream":"1","hung_up":"client"}',
    ),
)
def cut(event: LintEvent) -> Iterator[Report]:
    """The end of the message is missing, so its receiver could not read it; a request gets no response. Typical causes: a
    client that disconnects at its size limit (1 MiB in some SDKs), a process that ends while it writes, a wrapper that
    splits lines at 64 KiB.
    """
    if (why := event.cut) is not None:
        yield Report(f"message from the {event.side} was cut after {len(event.data)} bytes: {why}")


@member.error(
    "ENV102",
    "valid JSON, but not a JSON-RPC message",
    on=EventKind.MALFORMED,
    invalid=(
        '<< {"jsonrpc":"2.0","id":1}',
        '<< {"jsonrpc":"2.0","method":7}',
        "@ 2025-03-26\n<< [7]",
        "<< []",
    ),
)
def no_message(event: LintEvent) -> Iterator[Report]:
    """A message is an object with a `method` (a string), a `result` or an `error`. The POST of a webhook has none
    (EXT511).
    """
    why = reason(event)
    if _is_posted_webhook(event):
        return
    if why in ("not an object", "empty batch", "method is not a string", "neither method, result nor error"):
        yield Report(f"not a JSON-RPC message: {why}")


@line.warning("ENV103", "blank line", invalid=("<<  ", "<< \\x0d"))
def blank(event: LintEvent) -> Iterator[Report]:
    """Typical causes are an empty `print()` and a message written with two line endings. Most peers skip blank
    lines; older Python servers log an error for each.
    """
    if reason(event) == "blank line":
        yield Report("blank line between messages")


@message.error(
    "ENV104",
    '`jsonrpc` is missing or not "2.0"',
    invalid=(
        '> {"id":2,"method":"ping"}\n<< {"id":2,"result":{}}',
        '>> {"jsonrpc":"1.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}',
    ),
)
def version(event: LintEvent) -> Iterator[Report]:
    """Every message must contain `"jsonrpc":"2.0"`. The SDKs drop other messages, so a request gets no response."""
    if 'jsonrpc is not "2.0"' not in event.message.flaws or _is_posted_webhook(event):
        return
    if not isinstance(event.what, Malformed):
        document = event.document
        given = document.get("jsonrpc") if isinstance(document, dict) else None
        yield Report('no "jsonrpc":"2.0"' if given is None else f'jsonrpc is {json.dumps(given)}, not "2.0"')


@message.error(
    "ENV105",
    "response with both a result and an error",
    on=RESPONSES,
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":{"code":-32603,"message":"no"}}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":null}',
    ),
)
def both(event: LintEvent) -> Iterator[Report]:
    """A response has either a `result` or an `error`. Serializers that do not omit unset members write `"error":null`
    next to a result; strict peers reject that.
    """
    if "both result and error" in event.message.flaws:
        yield Report("the response has both result and error")


@member.error(
    "ENV106",
    "error without an integer code or a message",
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
        yield Report("error code is not an integer", error)
    elif not isinstance(error.get("message"), str):
        yield Report("error message is not a string", error)


@called.error(
    "ENV107",
    "params is not an object",
    beyond_plain=True,
    valid=(PING, '> {"id":2,"method":"ping","params":{}}\n< {"id":2,"result":{}}'),
    invalid=(
        '> {"id":2,"method":"ping","params":[]}\n< {"id":2,"result":{}}',
        '> {"method":"notifications/x","params":null}',
    ),
)
def params_shape(event: LintEvent) -> Iterable[Report]:
    """JSON-RPC also allows an array, MCP does not. To send no params, omit the member; `null` is not allowed."""
    raw: Raw = event.what.raw_params  # type: ignore[union-attr]  # Of both kinds.
    if event.params or not raw or event.has_object("params"):
        return ()
    return [Report("params is not an object", bytes(raw))]


@member.error(
    "ENV108",
    "result is not an object",
    on=EventKind.RESULT,
    beyond_plain=True,
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":null}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":"pong"}',
    ),
)
def result_shape(event: LintEvent) -> Iterable[Report]:
    """A result is always an object. An empty result is `"result":{}`."""
    if event.has_object("result") or "both result and error" in event.message.flaws:
        return ()
    return [Report("result is not an object", bytes(event.what.raw_result))]  # type: ignore[union-attr]  # A result.


@message.error(
    "ENV109",
    "batch in a revision without batches",
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
    """Only 2025-03-26 has JSON-RPC batches, and `initialize` is not part of one. Earlier revisions do not mention them, and 2025-06-18 removed them. The
    SDKs drop them.
    """
    if event.message.index == 0 and event.revision != "2025-03-26":
        yield Report(
            f"batch in {event.revision or 'a session of unknown revision'}", event.message.frame.data
        )
    elif event.message.index is not None and event.method == "initialize" and event.side == CLIENT:
        yield Report("initialize in a batch", event.message.frame.data)


@called.warning(
    "ENV116",
    "method name that begins with rpc.",
    page=JSONRPC + "#request_object",
    about="rpc.*",
    invalid='> {"id":2,"method":"rpc.discover"}\n< {"id":2,"result":{}}',
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """JSON-RPC reserves method names that begin with `rpc.`."""
    yield Report(f"method {event.method[:60]} is reserved by JSON-RPC")


@line.error(
    "ENV118",
    "message that spans several lines",
    valid=(PING, '@ http\n>> {"jsonrpc":"2.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid='<< {\n<<   "jsonrpc":"2.0",\n<<   "method":"notifications/x"\n<< }',
)
def pretty_printed(event: LintEvent) -> Iterator[Report]:
    """A message must be on one line, but this one was written with indentation. Serialize it without
    (`json.dumps(message)`, `JSON.stringify(message)`). ENV101 also reports each of its lines.
    """
    if event.message.frame.http is not None:
        return
    run = event.state.non_json[event.side]
    if run.number != event.number - 1 or len(run.lines) >= MOST_LINES:
        run.lines.clear()
    run.number = event.number
    data = event.data.strip()
    if data in (b"{", b"["):
        run.lines[:] = [data]
        return
    if not run.lines:
        return
    run.lines.append(event.data)
    if data[-1:] in (b"}", b"]"):
        whole = b"\n".join(run.lines)
        try:
            orjson.loads(whole)
        except ValueError:
            return
        yield Report(f"one message spans {len(run.lines)} lines", whole)
        run.lines.clear()


def _is_posted_webhook(event: LintEvent) -> bool:
    return event.message.frame.http is not None and event.side == CLIENT and is_webhook(event.document)


def reason(event: LintEvent) -> str:
    """Return why a line is malformed; empty if it is a message."""
    return event.what.why if isinstance(event.what, Malformed) else ""


@request.error(
    "ENV201",
    "id that is neither a string nor an integer",
    valid=(PING, '> {"id":"a","method":"ping"}\n< {"id":"a","result":{}}'),
    invalid=(
        '> {"id":null,"method":"ping"}',
        '> {"id":1.5,"method":"ping"}\n< {"id":1.5,"result":{}}',
        '> {"id":true,"method":"ping"}\n< {"id":true,"result":{}}',
    ),
)
def id_type(event: LintEvent) -> Iterator[Report]:
    """The SDKs treat such a request as a notification or drop it: it gets no response. `null` is not allowed."""
    if any(flaw.startswith("id is ") for flaw in event.message.flaws):
        yield Report(f"id {event.request.id[:40]} is neither a string nor an integer")


@request.error(
    "ENV202",
    "id of a request that is still pending",
    valid=(
        PING,
        '> {"id":2,"method":"ping"}\n< {"id":2,"method":"ping"}\n> {"id":2,"result":{}}\n< {"id":2,"result":{}}',
    ),
    invalid='> {"id":2,"method":"ping"}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',
)
def id_in_use(event: LintEvent) -> Iterator[Report]:
    """If two pending requests have the same id, their responses cannot be distinguished. Each side has its own ids: the
    server's 2 is not the client's 2.
    """
    if event.flaw is not None and event.flaw.endswith("is in use by an unanswered request"):
        yield Report(event.flaw)


@request.error(
    "ENV203",
    "id used before",
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
    """An id must be used only once per session. From 2026-07-28 on it may be reused after its response."""
    if event.flaw is not None and event.flaw.endswith("was used before"):
        yield Report(event.flaw)


@response.error(
    "ENV204",
    "unsolicited response",
    invalid=('< {"id":7,"result":{}}', '> {"id":2,"method":"ping"}\n< {"id":"2","result":{}}'),
)
def unsolicited(event: LintEvent) -> Iterator[Report]:
    """The other side has no pending request with this id. An id must be returned exactly as it was sent: `2` is not
    `"2"`, although the SDKs are lenient there.
    """
    if event.side == CLIENT and (event.revision or "") >= MODERN:
        return  # MOD105 reports it.
    if event.flaw is not None and event.flaw.startswith(UNSOLICITED):
        assert isinstance(event.what, Result | Failure)
        detail = event.flaw.partition(":")[2]
        yield Report(
            f"response to unknown request id {(event.what.id or '')[:40]}" + (detail and f":{detail}")
        )


@response.error(
    "ENV205",
    "second response to a request",
    invalid='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',
)
def second_response(event: LintEvent) -> Iterator[Report]:
    """Only the first response counts; no request waits for the second. Typical causes: a handler both returns and
    sends a result, or an error is written after the result.
    """
    if event.flaw is not None and event.flaw.endswith("was answered before"):
        yield Report(event.flaw)


@response.error(
    "ENV206",
    "response to a notification",
    page="2025-11-25/basic#notifications",
    valid=(PING, '> {"method":"notifications/x"}'),
    invalid=(
        '> {"method":"notifications/x"}\n< {"id":null,"result":{}}',
        '> {"method":"notifications/x"}\n< {"id":null,"error":{"code":-32601,"message":"no"}}',
    ),
)
def to_notification(event: LintEvent) -> Iterator[Report]:
    """A notification has no id, so its receiver must not respond to it. Servers do so if they look up the method before
    they check whether a response is expected.
    """
    if _is_anonymous(event) and event.conversation.has_notified[other(event.side)]:
        yield Report("response to a notification: it has no id")


@response.error(
    "ENV207",
    "response without an id",
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
    """The id of a response names its request. Only an error may omit the id, and only if the id of the request could
    not be read.
    """
    if _is_paired_by_post(event):
        yield Report("response without the id of its request")
    if not _is_anonymous(event) or event.conversation.has_notified[other(event.side)]:
        return
    if not (isinstance(event.what, Failure) and event.conversation.was_malformed[other(event.side)]):
        yield Report("response without an id")


@rule.warning(
    "ENV208",
    "error whose id is null",
    page="2025-11-25/schema#jsonrpcerrorresponse",
    on=EventKind.FAILURE,
    since="2025-11-25",
    valid='> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601,"message":"no"}}',
    invalid='>> {oops}\n< {"id":null,"error":{"code":-32700,"message":"not JSON"}}',
)
def null_id(event: LintEvent) -> Iterator[Report]:
    """If a request could not be read, its error omits `id` (since 2025-11-25). JSON-RPC uses `null`, which the schema
    no longer allows. TypeScript clients drop such a message.
    """
    document = event.document
    if (
        isinstance(document, dict)
        and "id" in document
        and document["id"] is None
        and event.conversation.was_malformed[other(event.side)]
    ):
        yield Report("the id of the error is null: omit it")


def _is_paired_by_post(event: LintEvent) -> bool:
    """Return whether a response is that of its HTTP exchange, which succeeded, and has not the id of its request."""
    number, what = event.message.frame.http, event.what
    post = event.state.posts.get(number) if number is not None else None
    if post is None or post.status >= 400 or event.exchange is None:
        return False
    given = what.id if isinstance(what, Result | Failure) else None
    return given in (None, "null") or (isinstance(what, Failure) and given != event.exchange.request.id)


def _is_anonymous(event: LintEvent) -> bool:
    return event.flaw == NO_ID
