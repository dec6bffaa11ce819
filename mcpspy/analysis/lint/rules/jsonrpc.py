"""What a message is made of: one object a line, with the members that JSON-RPC knows.

Owns the rules that look at a message without asking what came before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import orjson
from msgspec import Raw

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ANSWERS, ERROR, EVERY_LINE, WARNING, Report, RuleFamily
from mcpspy.core.protocol.message import Malformed
from mcpspy.core.protocol.spec import SERVER

RULES = RuleFamily()
rule = RULES.rule

MESSAGES_PAGE = "2025-11-25/basic#messages"
STDIO_PAGE = "2025-11-25/basic/transports#stdio"
JSONRPC = "https://www.jsonrpc.org/specification"

TORN_MOST = 1000
"""Lines that are put together to see whether they are one message."""

PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'


@rule(
    "ENV101",
    ERROR,
    "a line that is no JSON",
    page=STDIO_PAGE,
    on=EventKind.MALFORMED,
    valid=(PING, '* stderr {"text":"DEBUG: 3 stations in cache"}'),
    invalid=("<< DEBUG: 3 stations in cache", ">> {oops}"),
)
def not_json(seen: LintEvent) -> Iterator[Report]:
    """Somebody printed to stdout, most likely: `print`, `console.log`, a banner, a library's logger.

    Nothing but messages may be written there. Send it to stderr: `print(…, file=sys.stderr)`,
    `logging.basicConfig()`, `console.error`. Some clients end the session over it.
    """
    why = reason(seen)
    if why.startswith("not JSON") or why == "nested too deep":
        what = "stdout" if seen.side == SERVER else "stdin"
        place = f"on {what}" if seen.message.frame.stream is None else "in an HTTP message"
        detail = (
            why.removeprefix("not JSON: ") if seen.data.lstrip()[:1] in b"{[" and why != "not JSON" else ""
        )
        yield Report(f"not JSON {place}" + (f": {detail}" if detail else ""))


@rule(
    "ENV102",
    ERROR,
    "JSON that is no message",
    page=MESSAGES_PAGE,
    on=EventKind.MALFORMED,
    valid=(PING,),
    invalid=(
        '<< {"jsonrpc":"2.0","id":1}',
        '<< {"jsonrpc":"2.0","method":7}',
        "@ 2025-03-26\n<< [7]",
        "<< []",
    ),
)
def no_message(seen: LintEvent) -> Iterator[Report]:
    """A message is an object with a `method` (a string), a `result` or an `error`."""
    why = reason(seen)
    if why in ("not an object", "empty batch", "method is not a string", "neither method, result nor error"):
        yield Report(f"no message: {why}")


@rule(
    "ENV103",
    WARNING,
    "a blank line",
    page=STDIO_PAGE,
    on=EventKind.MALFORMED,
    valid=(PING,),
    invalid=("<<  ", "<< \\x0d"),
)
def blank(seen: LintEvent) -> Iterator[Report]:
    """An empty `print()`, or a message that is written with two line ends. Most peers skip it; older Python
    servers log an error for each.
    """
    if reason(seen) == "blank line":
        yield Report("a blank line between messages")


@rule(
    "ENV104",
    ERROR,
    '`jsonrpc` is missing, or not "2.0"',
    page=MESSAGES_PAGE,
    on=EVERY_LINE,
    odd=True,
    valid=(PING,),
    invalid=(
        '> {"id":2,"method":"ping"}\n<< {"id":2,"result":{}}',
        '>> {"jsonrpc":"1.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}',
    ),
)
def version(seen: LintEvent) -> Iterator[Report]:
    """Every message says `"jsonrpc":"2.0"`. The SDKs drop one that does not, and the request never gets its answer."""
    if 'jsonrpc is not "2.0"' in seen.message.flaws and not isinstance(seen.what, Malformed):
        document = seen.document
        given = document.get("jsonrpc") if isinstance(document, dict) else None
        yield Report('no "jsonrpc":"2.0"' if given is None else f'jsonrpc is {json.dumps(given)}, not "2.0"')


@rule(
    "ENV105",
    ERROR,
    "both a result and an error",
    page=MESSAGES_PAGE,
    on=ANSWERS,
    odd=True,
    valid=(PING,),
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":{"code":-32603,"message":"no"}}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{},"error":null}',
    ),
)
def both(seen: LintEvent) -> Iterator[Report]:
    """An answer has one or the other. An `"error":null` beside a result is what serializers write that do not
    leave out what is not set; strict peers refuse it.
    """
    if "both result and error" in seen.message.flaws:
        yield Report("both result and error")


@rule(
    "ENV106",
    ERROR,
    "an error without an integer code or a message",
    page=MESSAGES_PAGE,
    on=EventKind.FAILURE,
    valid=('> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601,"message":"no such method"}}',),
    invalid=(
        '> {"id":2,"method":"x"}\n< {"id":2,"error":"no such method"}',
        '> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":"ENOENT","message":"no"}}',
        '> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601}}',
    ),
)
def error_shape(seen: LintEvent) -> Iterator[Report]:
    """An error is an object with an integer `code` and a string `message`; `data` may hold anything else."""
    error = seen.error
    if "both result and error" in seen.message.flaws:
        return
    if not isinstance(error, dict):
        yield Report("error is not an object", error)
    elif seen.failure.code is None:
        yield Report("the error's code is not an integer", error)
    elif not isinstance(error.get("message"), str):
        yield Report("the error's message is not a string", error)


@rule(
    "ENV107",
    ERROR,
    "params that are no object",
    page=MESSAGES_PAGE,
    on=(EventKind.REQUEST, EventKind.NOTIFICATION),
    valid=(PING, '> {"id":2,"method":"ping","params":{}}\n< {"id":2,"result":{}}'),
    invalid=(
        '> {"id":2,"method":"ping","params":[]}\n< {"id":2,"result":{}}',
        '> {"method":"notifications/x","params":null}',
    ),
)
def params_shape(seen: LintEvent) -> Iterable[Report]:
    """JSON-RPC also allows a list; MCP does not, and `null` is no way to leave them out."""
    raw: Raw = seen.what.raw_params  # type: ignore[union-attr]  # Of both kinds.
    if seen.params or not raw or seen.has_object("params"):
        return ()
    return [Report("params is not an object", bytes(raw))]


@rule(
    "ENV108",
    ERROR,
    "a result that is no object",
    page=MESSAGES_PAGE,
    on=EventKind.RESULT,
    beyond_text=True,
    valid=(PING,),
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":null}',
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":"pong"}',
    ),
)
def result_shape(seen: LintEvent) -> Iterable[Report]:
    """Results are objects, empty ones too: `"result":{}`."""
    if seen.has_object("result") or "both result and error" in seen.message.flaws:
        return ()
    return [Report("result is not an object", bytes(seen.what.raw_result))]  # type: ignore[union-attr]  # A result.


@rule(
    "ENV109",
    ERROR,
    "a batch, where there are none",
    page="2025-06-18/changelog",
    on=EVERY_LINE,
    odd=True,
    valid=(
        PING,
        (
            '@ 2025-03-26\n>> [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]\n'
            '<< [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}}]'
        ),
    ),
    invalid=(
        (
            '>> [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]\n'
            '< {"id":2,"result":{}}\n< {"id":3,"result":{}}'
        ),
    ),
)
def batch(seen: LintEvent) -> Iterator[Report]:
    """Only 2025-03-26 has JSON-RPC batches. Before, nothing is said of them; 2025-06-18 took them out. The SDKs
    drop them.
    """
    if seen.message.index == 0 and seen.revision != "2025-03-26":
        yield Report(f"a batch in {seen.revision or 'a session'}", seen.message.frame.data)


@rule(
    "ENV116",
    WARNING,
    "a method named rpc.…",
    page=JSONRPC + "#request_object",
    on=(EventKind.REQUEST, EventKind.NOTIFICATION),
    about="rpc.*",
    valid=(PING,),
    invalid=('> {"id":2,"method":"rpc.discover"}\n< {"id":2,"result":{}}',),
)
def reserved(seen: LintEvent) -> Iterator[Report]:
    """JSON-RPC keeps names that begin with `rpc.` for itself, for any purpose."""
    yield Report(f"the method {seen.method[:60]} is reserved by JSON-RPC")


@rule(
    "ENV118",
    ERROR,
    "one message over several lines",
    page=STDIO_PAGE,
    on=EventKind.MALFORMED,
    valid=(PING, '@ http\n>> {"jsonrpc":"2.0","id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=('<< {\n<<   "jsonrpc":"2.0",\n<<   "method":"notifications/x"\n<< }',),
)
def pretty_printed(seen: LintEvent) -> Iterator[Report]:
    """A message is one line. This one was written with an indentation: write it without (`json.dumps(message)`,
    `JSON.stringify(message)`). Each of its lines is told by ENV101, too.
    """
    if seen.message.frame.http is not None:
        return
    torn = seen.known.torn[seen.side]
    if torn.number != seen.number - 1 or len(torn.lines) >= TORN_MOST:
        torn.lines.clear()
    torn.number = seen.number
    data = seen.data.strip()
    if data in (b"{", b"["):
        torn.lines[:] = [data]
        return
    if not torn.lines:
        return
    torn.lines.append(seen.data)
    if data[-1:] in (b"}", b"]"):
        whole = b"\n".join(torn.lines)
        try:
            orjson.loads(whole)
        except ValueError:
            return
        yield Report(f"one message over {len(torn.lines)} lines", whole)
        torn.lines.clear()


def reason(seen: LintEvent) -> str:
    """Return why a line is no message; empty if it is one."""
    return seen.what.why if isinstance(seen.what, Malformed) else ""
