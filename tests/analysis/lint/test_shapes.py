"""The shapes of messages: tables of the revisions, and the violations that they find."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import RULES
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.shapes import shape_codes, shape_of, table
from mcpspy.core.protocol.spec import METHODS, MODERN, REVISIONS, is_known, other
from tests.analysis.lint.proving import findings

REQUEST = '> {"id":2,"method":"%s","params":%s}\n< {"id":2,"error":{"code":-32602,"message":"no"}}'
RESULT = '> {"id":2,"method":"%s","params":{"name":"a"}}\n< {"id":2,"result":%s}'
TOOL = '{"name":"a","description":"b","inputSchema":{"type":"object"},%s}'
ASKED = (
    '< {"id":7,"method":"sampling/createMessage","params":%s}\n> {"id":7,"error":{"code":-1,"message":"no"}}'
)
HELLO = (
    '@ bare\n> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '< {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b"}}}'
)


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (
            REQUEST % ("logging/setLevel", '{"level":"loud"}'),
            'DATA101 logging/setLevel: params.level is "loud", not debug, info, notice, warning, error, critical, alert or emergency',
        ),
        (
            '< {"method":"notifications/message","params":{"level":7,"data":"a"}}',
            "DATA101 notifications/message: params.level is 7, not debug, info, notice, warning, error, critical, alert or emergency",
        ),
        (
            RESULT % ("prompts/get", '{"messages":[{"role":"system","content":{"type":"text","text":"a"}}]}'),
            'DATA102 prompts/get: result.messages[0].role is "system", not user or assistant',
        ),
        (
            REQUEST
            % ("completion/complete", '{"ref":{"type":"ref/tool"},"argument":{"name":"a","value":""}}'),
            'DATA101 completion/complete: params.ref.type is "ref/tool", not ref/prompt or ref/resource',
        ),
        (
            RESULT % ("tools/list", '{"tools":[%s]}' % (TOOL % '"execution":{"taskSupport":"always"}')),
            'DATA103 tools/list: result.tools[0].execution.taskSupport is "always", not forbidden, optional or required',
        ),
        (
            REQUEST % ("tools/call", '{"name":"a","_meta":{"progressToken":1.5}}'),
            "DATA101 tools/call: params._meta.progressToken is not a string or an integer",
        ),
        (
            RESULT
            % ("resources/templates/list", '{"resourceTemplates":[{"name":"a","uriTemplate":"a:{b"}]}'),
            'DATA405 resources/templates/list: result.resourceTemplates[0].uriTemplate is not a URI template: "a:{b"',
        ),
        (HELLO, "DATA102 initialize: result.serverInfo has no version"),
        (
            ASKED
            % '{"maxTokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"a","input":{}}]}]}',
            "DATA402 sampling/createMessage: params.messages[0].content[0] has no id",
        ),
        (
            "@ 2025-03-26\n" + RESULT % ("tools/call", '{"content":[{"type":"resource_link"}]}'),
            'DATA401 tools/call: result.content[0].type is "resource_link", which requires 2025-06-18; the revision is 2025-03-26',
        ),
    ],
)
def test_a_violation_names_its_place_and_value(example: str, expected: str) -> None:
    assert [f"{finding.code} {finding.message}" for finding in findings(example)] == [expected]


def test_several_missing_members_of_one_object_are_one_finding() -> None:
    example = (
        '@ bare\n> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        '"clientInfo":{"name":"a","version":"1"}}}\n< {"id":1,"result":{"tools":[]}}'
    )

    assert [finding.message for finding in findings(example)] == [
        "initialize: result has no protocolVersion, capabilities, serverInfo"
    ]


def test_members_of_later_revisions_are_not_checked_in_earlier_ones() -> None:
    example = RESULT % ("tools/list", '{"tools":[%s]}' % (TOOL % '"title":7'))

    assert not findings("@ 2025-03-26\n" + example)
    assert [finding.code for finding in findings("@ 2025-06-18\n" + example)] == ["DATA103"]


def test_members_that_a_table_does_not_name_are_allowed() -> None:
    assert shape_of(EventKind.RESULT, "tools/call", "2025-11-25").accepts({"content": [], "x": None})


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_object_has_a_page_and_a_schema_and_every_code_is_one_of_a_rule(revision: str) -> None:
    known = table(revision)

    for name, each in known.objects.items():
        assert each.page, name
        known.schema(name)
    rules = {rule.code: rule for rule in RULES}
    for method in METHODS.values():
        if is_known(method.name, revision) and method.sender != "either":
            kind = EventKind.REQUEST if method.kind == "request" else EventKind.NOTIFICATION
            kinds = ((kind, method.sender), (EventKind.RESULT, other(method.sender)))
            for each_kind, side in kinds[: 2 if kind is EventKind.REQUEST else 1]:
                for code in shape_codes(each_kind, method.name, revision) - {"MOD305"}:
                    assert rules[code].concerns(each_kind, method.name, side), (code, method.name)
                    assert rules[code].holds_in(revision), (code, method.name)


def test_a_value_nested_too_deep_raises_nothing() -> None:
    value: dict[str, object] = {}
    for _ in range(5000):
        value = {"name": "a", "arguments": value}

    assert shape_of(EventKind.REQUEST, "tools/call", "2025-11-25").accepts(value) in (True, False)


def test_a_value_with_a_lone_surrogate_cannot_be_checked() -> None:
    shape = shape_of(EventKind.REQUEST, "tools/call", "2025-11-25")
    assert shape.accepts({"name": "a", "arguments": {}, "\ud800": 1})
    assert shape.violations({"name": "a", "arguments": {}, "\ud800": 1}, "tools/call") == {}


@pytest.mark.parametrize("revision", [known for known in REVISIONS if known < MODERN])
def test_a_plain_call_has_no_violations(revision: str) -> None:
    shape = shape_of(EventKind.REQUEST, "tools/call", revision)
    assert shape.accepts({"name": "", "arguments": {}})
    assert shape.accepts({"name": "a", "arguments": {"name": 1, "_meta": [None]}})
