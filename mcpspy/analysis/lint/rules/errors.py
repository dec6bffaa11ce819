"""Error codes, and whether they mean what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, INFO, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import ERRORS, METHODS, MODERN, SERVER

RULES = Rules()
rule = RULES.rule

CODES = "2026-07-28/basic#error-codes"

_FAIL = '> {"id":2,"method":"%s","params":{%s}}\n< {"id":2,"error":{"code":%d,"message":"no"}}'
_CALL = '"name":"a"'


@rule(
    "DATA601",
    ERROR,
    "an error code that this revision does not have",
    page=CODES,
    on=Kind.FAILURE,
    since=MODERN,
    valid=(
        "@ 2026-07-28\n" + _FAIL % ("resources/read", '"uri":"a:b"', -32602),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, 7),
    ),
    invalid=(
        "@ 2026-07-28\n" + _FAIL % ("resources/read", '"uri":"a:b"', -32002),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, -32042),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, -32050),
    ),
)
def removed(seen: Seen) -> Iterator[Told]:
    """-32020 to -32099 are the specification's own, and it defines three of them; -32002 and -32042 were taken out
    with 2026-07-28: a resource that is not found is -32602.
    """
    code = seen.failure.code
    if code in (-32002, -32042):
        yield Told(f"{code} is not an error code any more ({ERRORS[code]}, until {LEGACY})")
    elif code is not None and -32099 <= code <= -32020 and code not in ERRORS:
        yield Told(f"{code} is reserved, and not defined")


@rule(
    "DATA602",
    WARNING,
    "an error code that means something else",
    page="2025-11-25/server/tools#error-handling",
    on=Kind.FAILURE,
    until=LEGACY,
    valid=(
        _FAIL % ("resources/read", '"uri":"a:b"', -32002),
        _FAIL % ("tools/call", _CALL, -32602),
        _FAIL % ("tools/call", _CALL, -32042),
    ),
    invalid=(
        _FAIL % ("tools/call", _CALL, -32002),
        "@ 2025-06-18\n" + _FAIL % ("tools/call", _CALL, -32042),
    ),
)
def misused(seen: Seen) -> Iterator[Told]:
    """-32002 is a resource that is not found: for an unknown tool or prompt it is -32602. -32042, an elicitation by
    URL, is of 2025-11-25 alone.
    """
    code = seen.failure.code
    if code == -32002 and seen.method and not seen.method.startswith("resources/"):
        yield Told(f"-32002 (resource not found) for {seen.method}")
    elif code == -32042 and seen.revision is not None and seen.revision < LEGACY:
        yield Told(f"-32042 came with {LEGACY}; this is {seen.revision}")


@rule(
    "DATA603",
    WARNING,
    "method not found, for a method that was declared",
    page="2025-11-25/server/tools#error-handling",
    on=Kind.FAILURE,
    by=SERVER,
    valid=(_FAIL % ("tools/call", _CALL, -32602), _FAIL % ("x/y", "", -32601)),
    invalid=(_FAIL % ("tools/call", _CALL, -32601), _FAIL % ("prompts/get", _CALL, -32601)),
)
def found(seen: Seen) -> Iterator[Told]:
    """The server declared the capability, so it has the method: an unknown tool, prompt or resource is -32602
    (invalid params). A task that a tool needs (`taskSupport`) is the exception, and says so.
    """
    method = METHODS.get(seen.method)
    if seen.failure.code != -32601 or method is None or method.needs is None:
        return
    declared = seen.capabilities or {}
    about = seen.request.subject
    if (
        method.needs.partition(".")[0] in declared
        and "task" not in seen.failure.text.lower()
        and method.subject in ("name", "uri")
    ):
        yield Told(f"-32601 for {seen.method} {about or ''}, which the server declared".replace("  ", " "))


@rule(
    "DATA604",
    INFO,
    "an error code from the range that JSON-RPC keeps",
    page="https://www.jsonrpc.org/specification#error_object",
    on=Kind.FAILURE,
    valid=(_FAIL % ("tools/call", _CALL, -32603), _FAIL % ("tools/call", _CALL, 404)),
    invalid=(_FAIL % ("tools/call", _CALL, -32500), _FAIL % ("tools/call", _CALL, -32768)),
)
def reserved(seen: Seen) -> Iterator[Told]:
    """-32768 to -32100 are JSON-RPC's own, and it defines five of them. Codes of an application are outside of
    -32768 to -32000.
    """
    code = seen.failure.code
    if code is not None and -32768 <= code <= -32100 and code not in ERRORS:
        yield Told(f"{code} is reserved by JSON-RPC, and not defined")
