"""Ordinary messages: what is recognised as one has no finding, and the linter knows the same after it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec import structs

from mcpspy.analysis.explain.causes import CAUSES, READ_RULES
from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.analysis.lint.failure_text import is_failure, may_be_failure
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.ordinary import OrdinaryCalls
from mcpspy.analysis.lint.rule import MESSAGES
from mcpspy.analysis.lint.state import LintState
from mcpspy.core.protocol.message import Message
from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession
from tests.analysis.recorded import recorded

READ = tuple(rule for rule in RULES if rule.code in READ_RULES)

TOOLS = """
> {"id":900,"method":"tools/list"}
< {"id":900,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}, {"name":"o",
 "description":"b","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"outputSchema":{"type":"object","required":["sum"]}}]}}
> {"id":901,"method":"tools/call","params":{"name":"a","arguments":{"n":1}}}
< {"id":901,"result":{"content":[{"type":"text","text":"fine"}]}}
> {"id":902,"method":"tools/call","params":{"name":"a","arguments":{"n":2},"_meta":{"progressToken":"p"}}}
< {"method":"notifications/progress","params":{"progressToken":"p","progress":1}}
< {"id":902,"result":{"content":[{"type":"text","text":"fine"}],"isError":false}}
> {"id":903,"method":"tools/call","params":{"name":"o","arguments":{"n":2}}}
""".replace(",\n ", ",")


def apart(entry: Entry) -> Entry:
    """Return an entry of 2026-07-28 over HTTP as mcpspy records it: each HTTP exchange is a stream."""
    if isinstance(entry, Frame) and entry.http is not None:
        return structs.replace(entry, stream=str(entry.http))
    if isinstance(entry, Note) and "http" in entry.fields:
        return structs.replace(entry, fields={**entry.fields, "stream": str(entry.fields["http"])})
    return entry


def both(text: str) -> tuple[list[Finding], list[Finding], int]:
    """Return the findings of a session by entries and by lines, and the number of ordinary messages in it."""
    entries, header = list(entries_of(text)), header_of(text)
    if text.lstrip().startswith("@ 2026-07-28 http"):
        entries = list(map(apart, entries))
    session, linter, slow = StreamingSession(header), Linter(header, READ), list[Finding]()
    for number, entry in enumerate(entries, 2):
        for change in session.add(entry):
            slow += linter.add(change, EntryPosition(number))
    session.end()
    slow += linter.end()
    session, linter, fast = StreamingSession(header), Linter(header, READ), list[Finding]()
    checked, check, messages = [], linter._check, []

    def take(change: Change, line: int) -> None:
        if isinstance(change.what, Message):
            messages.append(change)
        place = EntryPosition(line + 2)
        if not linter.take_ordinary(change, place):
            fast.extend(linter.add(change, place))

    def counted(kind: EventKind, event: LintEvent) -> list[Finding]:
        if kind in MESSAGES:
            checked.append(event)
        return check(kind, event)

    linter._check = counted
    session.add_lines(recorded(entries), take)
    session.end()
    fast += linter.end()
    return slow, fast, len(messages) - len(checked)


def examples() -> Iterator[str]:
    for rule in RULES:
        yield from (*rule.valid, *rule.invalid)
    for kind in CAUSES:
        yield from (*kind.positive, *kind.negative)


def with_calls(text: str) -> str:
    """Return a session in which some ordinary calls come first, and one is open meanwhile."""
    first, _, rest = text.lstrip().partition("\n")
    if not first.startswith("@"):
        return TOOLS.lstrip() + text.lstrip()
    return text if "bare" in first else f"{first}{TOOLS}{rest.lstrip()}"


def test_no_example_has_another_finding_if_ordinary_messages_are_recognised() -> None:
    ordinary = 0
    for text in {*examples(), *map(with_calls, examples())}:
        slow, fast, taken = both(text)
        assert fast == slow, text
        ordinary += taken
    assert ordinary > 1000


CALL = '> {"id":3,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n< {"id":3,"result":%s}\n'
TEXT = '{"content":[{"type":"text","text":%s}]%s}'


@pytest.mark.parametrize(
    ("name", "arguments", "result", "is_ordinary"),
    [
        ("a", '{"n":1}', TEXT % ('"1"', ""), True),
        ("a", '{"n":1}', TEXT % ('"1"', ',"isError":false'), True),
        ("a", '{"n":1}', TEXT % ('"1"', ',"_meta":{"x":1}'), True),
        ("o", '{"n":1}', TEXT % ('"1"', ',"structuredContent":{"sum":1}'), True),
        ("o", '{"n":1}', TEXT % ('"1"', ',"structuredContent":{}'), False),
        ("o", '{"n":1}', TEXT % ('"1"', ""), False),
        ("a", '{"n":1}', TEXT % ('"1"', ',"isError":true'), True),
        ("a", '{"n":1}', TEXT % (json.dumps("Error: ENOENT: no such file"), ',"isError":true'), True),
        ("o", '{"n":1}', TEXT % ('"1"', ',"isError":true'), True),
        ("o", '{"n":1}', TEXT % ('"1"', ',"structuredContent":{},"isError":true'), False),
        ("a", '{"n":1}', TEXT % ('"1"', ',"isError":"true"'), False),
        ("a", '{"n":1}', TEXT % ("1", ""), False),
        ("a", '{"n":1}', TEXT % (json.dumps("Error: ENOENT: no such file"), ""), False),
        ("a", '{"n":1}', TEXT % (r'"\u0045rror: ENOENT: no such file"', ""), False),
        ("a", '{"n":1}', TEXT % (json.dumps('{"error":"no","success":false}'), ""), False),
        ("a", '{"n":1}', '{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}', False),
        ("o", '{"n":"1"}', TEXT % ('"1"', ',"structuredContent":{"sum":1}'), False),
        ("b", "{}", TEXT % ('"1"', ""), False),
        ("a", "[]", TEXT % ('"1"', ""), False),
    ],
)
def test_a_call_is_ordinary_if_no_rule_can_report_it_or_its_result(
    name: str, arguments: str, result: str, is_ordinary: bool
) -> None:
    listed = TOOLS.lstrip().partition('> {"id":901')[0]
    before = both(listed)[2]

    slow, fast, taken = both(listed + CALL % (name, arguments, result))

    assert slow == fast
    assert (taken - before == 2) is is_ordinary


@pytest.mark.parametrize(
    ("error", "is_ordinary"),
    [
        ('{"code":-32603,"message":"no"}', True),
        ('{"code":7,"message":"no","data":[1]}', True),
        ('{"code":-32601,"message":"no"}', False),
        ('{"code":"no","message":"no"}', False),
        ('{"code":-32603}', False),
        ('{"code":-32603.0,"message":"no"}', False),
    ],
)
def test_an_error_of_a_call_is_ordinary_if_no_rule_can_report_it(error: str, is_ordinary: bool) -> None:
    listed = TOOLS.lstrip().partition('> {"id":901')[0]
    before = both(listed)[2]

    slow, fast, taken = both(listed + CALL.replace("result", "error") % ("a", '{"n":1}', error))

    assert slow == fast
    assert (taken - before == 2) is is_ordinary


# Over HTTP: what the rules found nothing in is remembered, and anything else goes through them.

DISCOVERED = (
    '> {"id":1,"method":"server/discover"}\n'
    '< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}}\n'
)


def over_http(revision: str, *last: str) -> str:
    """Return a session over HTTP in which tools were called, which ends with a further call and these lines."""
    listed = (
        TOOLS.replace('"tools":[', '"ttlMs":0,"cacheScope":"public","tools":[')
        if revision == "2026-07-28"
        else TOOLS
    )
    before = DISCOVERED if revision == "2026-07-28" else ""
    calls = "".join(
        (CALL % ("a", f'{{"n":{n}}}', TEXT % ('"1"', ""))).replace('"id":3', f'"id":{n}')
        for n in range(910, 920)
    )
    call = '> {"id":990,"method":"tools/call","params":{"name":"a","arguments":{"n":77}}}'
    return f"@ {revision} http\n{before}{listed.lstrip()}{calls}" + "\n".join([call, *last])


ANSWER = '< {"id":990,"result":{"content":[{"type":"text","text":"1"}]}}'


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_calls_over_http_are_ordinary_together_with_their_exchanges(revision: str) -> None:
    slow, fast, taken = both(over_http(revision, "= 200", ANSWER))

    assert (slow, fast) == ([], [])
    assert taken >= 22


@pytest.mark.parametrize(
    ("revision", "headers", "code"),
    [
        ("2025-11-25", '200 {"mcp-session-id":null}', "HTTP202"),
        ("2025-11-25", '200 {"mcp-session-id":"other"}', "HTTP205"),
        ("2025-11-25", '200 {"mcp-protocol-version":"2025-06-18"}', "HTTP102"),
        ("2025-11-25", '200 {"accept":"application/json"}', "HTTP304"),
        ("2025-11-25", '200 {} {"content-type":"text/html"}', "HTTP303"),
        ("2025-11-25", "202", "HTTP302"),
        ("2026-07-28", '200 {"mcp-method":"tools/list"}', "HTTP103"),
        ("2026-07-28", '200 {"mcp-name":"b"}', "HTTP104"),
        ("2026-07-28", '200 {"mcp-name":null}', "HTTP104"),
        ("2026-07-28", '200 {"mcp-protocol-version":null}', "HTTP101"),
        ("2026-07-28", "405", "HTTP307"),
    ],
)
def test_an_exchange_with_other_headers_is_checked(revision: str, headers: str, code: str) -> None:
    slow, fast, _ = both(over_http(revision, f"= {headers}", ANSWER))

    assert code in {finding.code for finding in slow}
    assert fast == slow


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER.replace('"result":{', '"result":{"resultType":7,'),
        ANSWER.replace('"result":{', '"result":{"_meta":{"io.modelcontextprotocol/serverInfo":7},'),
        ANSWER.replace('"content"', '"contents"'),
    ],
)
def test_a_result_of_another_form_is_checked_in_each_conversation(answer: str) -> None:
    slow, fast, _ = both(over_http("2026-07-28", "= 200", answer))

    assert fast == slow
    assert slow


def test_meta_that_is_not_like_that_of_earlier_requests_is_checked() -> None:
    text = over_http("2026-07-28", "= 200", ANSWER)
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":7}'
    changed = text.replace('{"n":77}', f'{{"n":77}},"_meta":{meta}')
    slow, fast, _ = both(changed)

    assert slow
    assert fast == slow


@pytest.mark.parametrize(
    "failed",
    [
        CALL % ("a", '{"n":9}', '{"content":[{"type":"text","text":"busy"}],"isError":true}'),
        CALL.replace("result", "error") % ("a", '{"n":9}', '{"code":-32603,"message":"busy"}'),
    ],
)
@pytest.mark.parametrize(("pause", "is_found"), [("+ 0.1", True), ("+ 3", False)])
def test_a_retry_of_a_call_that_failed_is_checked(pause: str, is_found: bool, failed: str) -> None:
    calls = [
        *(failed for _ in range(6)),
        CALL % ("a", '{"n":10}', TEXT % ('"1"', "")),
    ]
    numbered = (call.replace('"id":3', f'"id":{n}') for n, call in enumerate(calls, 910))
    slow, fast, _ = both(TOOLS.lstrip() + pause + "\n" + "".join(numbered))

    assert ("AGENT104" in {finding.code for finding in slow}) is is_found
    assert fast == slow


def test_a_text_that_may_be_a_failure_is_decided_like_any_other() -> None:
    for text in (
        "",
        "fine",
        " {",
        "Error: 404",
        "é" * 2000 + "Error: x",
        "\ud800",
        '"',
        "\n\tPermission denied",
    ):
        assert may_be_failure(json.dumps(text).encode()) is is_failure(text), text


def test_with_a_rule_that_is_not_known_no_message_is_ordinary() -> None:
    assert OrdinaryCalls(READ, LintState(None)).is_possible
    assert not OrdinaryCalls(RULES, LintState(None)).is_possible
