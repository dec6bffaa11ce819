"""Fields of the filter language, by examples: items that match, and items that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.query.fields import KIND_GROUPS, KINDS, STATUSES
from mcpspy.core.query.fields import NOTES as NOTE_KINDS
from mcpspy.core.query.lexer import FIELDS, QueryError
from mcpspy.core.query.parser import parse
from mcpspy.core.session.exchange import State
from tests.core.query.querying import EVERY, NOTES, Row

STATUS_OKAY = f'unknown status "okay": use one of {", ".join(STATUSES)}'


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # Words: anywhere in the method or the subject; of a note, its kind.
        ("READ", "CALL READ PROMPT"),
        ("tools/c", "CALL FAILURE TOOL_ERROR"),
        ("tools/*", "CALL FAILURE TOOL_ERROR"),
        ("stderr", "STDERR"),
        ("request", ""),
        ('"tools/*"', ""),
        # Texts.
        ("method:tools", "CALL FAILURE TOOL_ERROR"),
        ("method:TOOLS/*", "CALL FAILURE TOOL_ERROR"),
        ("method:*/?et", "PROMPT"),
        ("method=tools", ""),
        ("method=prompts/get", "PROMPT"),
        ("method:* -method!=ping", "REFUSED LATE"),
        ("subject:*", "CALL READ PROMPT"),
        ("subject:read_?ile", "CALL PROMPT"),
        ("subject=read_file", "PROMPT"),
        ("tool:read_file", "CALL"),
        ("tool=read_file", ""),
        ("prompt:read", "PROMPT"),
        ("uri:file:///", "READ"),
        ("uri:x?page", "READ"),
        ("uri:file:*page=?", "READ"),
        ("resource:nothing", ""),
        ("stream:a", "READ"),
        ("session:*", "READ"),
        # Ids.
        ("id:7", "CALL READ"),
        ('id:"7"', "READ"),
        ("id:7.0", "CALL"),
        ("id=7e0", "CALL"),
        ("id!=7.0 id:*", "READ"),
        ("id=8", ""),
        ("id:null", "PROMPT FAILURE TOOL_ERROR LATE STRAY"),
        ("id=7", "CALL"),
        ('id="7"', "READ"),
        ("id:7*", "CALL READ"),
        ("id:8", ""),
        # Sides.
        ("dir:client side:c dir:C2S from:-> dir:out dir:→", "CALL READ REFUSED FOUND"),
        ("dir:server side:s dir:s2c from:<- dir:IN dir:←", "PROMPT FAILURE TOOL_ERROR LATE STRAY PROGRESS"),
        # Kinds.
        ("kind:notif", "PROGRESS"),
        ("kind:response", "PROMPT FAILURE TOOL_ERROR LATE STRAY"),
        ("kind:failure", "FAILURE LATE STRAY"),
        ("kind:http", "HTTP_END"),
        ("kind=http", ""),
        ("kind:note", NOTES),
        ("note:*", NOTES),
        ("note:stderr", "STDERR"),
        ("note:error", ""),
        ("is:request", "CALL READ REFUSED FOUND"),
        ("is:note", NOTES),
        ("is:http-end", "HTTP_END"),
        ("is:response dir:c", ""),
        # States.
        ("status:ok", "CALL PROMPT"),
        ("status:err", "FAILURE TOOL_ERROR REFUSED LATE STRAY"),
        ("is:failed", "FAILURE TOOL_ERROR REFUSED LATE STRAY"),
        ("status=error", "FAILURE LATE STRAY"),
        ("status:rpcerror", "FAILURE LATE STRAY"),
        ("status:toolerr", "TOOL_ERROR"),
        ('status:"Tool Error"', "TOOL_ERROR"),
        ("status:late", "LATE"),
        ("status:answered-late", "LATE"),
        ("status:pending", "READ"),
        ("is:open", "READ"),
        ("status:refused", "REFUSED"),
        ("status:noanswer", ""),
        ("status:-32602", "FAILURE"),
        ("code=-32602", "FAILURE"),
        ("code:>0", "LATE"),
        ("code!=1 code!=-32602 is:err", "TOOL_ERROR REFUSED STRAY"),
        ("is:issue", "STRAY"),
        # Findings.
        ("is:finding", "FOUND"),
        ("lint:env lint:SEC2 lint:* lint:error lint:*1", "FOUND"),
        ("lint:ENV*1 lint:warn*", "FOUND"),
        ("lint:ENV*9", ""),
        ("lint=SEC201 lint=error lint!=SEC2", "FOUND"),
        ("is:slow", "PROMPT"),
        ("is:problem", "PROMPT FAILURE TOOL_ERROR REFUSED LATE STRAY"),
    ],
)
def test_a_filter_finds_matching_items(query: str, found: str) -> None:
    wants = parse(query, linted=True).matches

    assert [name for name, row in EVERY.items() if wants(row)] == found.split()


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        (
            "a status:okay",
            STATUS_OKAY,
            "okay",
        ),
        ("is:fast", None, "fast"),
        ("dir:up", 'unknown sender "up": use one of client, server, c2s, s2c, ->, <-', "up"),
        (
            "from:clients",
            'unknown sender "clients": did you mean client? Use one of client, server, c2s, s2c, ->, <-',
            "clients",
        ),
        (
            "kind:reqst",
            f'unknown kind "reqst": did you mean request? Use one of {", ".join((*KINDS, *KIND_GROUPS))}',
            "reqst",
        ),
        ("-kind!=foo", f'unknown kind "foo": use one of {", ".join((*KINDS, *KIND_GROUPS))}', "foo"),
        ("kind:foo*", f'unknown kind "foo*": use one of {", ".join((*KINDS, *KIND_GROUPS))}', "foo*"),
        (
            "note:stder1",
            f'unknown kind of event "stder1": did you mean stderr? Use one of {", ".join(NOTE_KINDS)}',
            "stder1",
        ),
        (
            "status:unaswered",
            f'unknown status "unaswered": did you mean unanswered? Use one of {", ".join(STATUSES)}',
            "unaswered",
        ),
        ("id>5", "id cannot be compared with >: write id:5", "5"),
        ("method>5", "method cannot be compared with >: write method:5", "5"),
        ("status<5", "status cannot be compared with <: write status:5", "5"),
    ],
)
def test_an_error_is_one_line_with_a_position(text: str, message: str | None, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert message is None or str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined


def test_is_issue_has_a_hidden_alias() -> None:
    issue, alias = parse("is:issue").matches, parse("is:odd").matches

    assert [name for name, row in EVERY.items() if issue(row)] == ["STRAY"]
    assert [name for name, row in EVERY.items() if alias(row)] == ["STRAY"]
    with pytest.raises(QueryError, match="use one of problem, slow, issue, finding") as caught:
        parse("is:fast")
    assert "odd" not in str(caught.value)


def test_case_is_ignored_in_any_alphabet() -> None:
    assert parse("ΑΣ").matches(Row(subject="ΑΣΑ"))  # Python's lower() distinguishes two small sigmas.
    assert parse("STRASSE").matches(Row(subject="straße"))


def test_a_note_of_an_unknown_kind_can_be_found() -> None:
    assert parse('note:"weather"').matches(Row(side="", kind="weather-report"))


def test_every_state_has_its_name_without_blanks() -> None:
    for state in State:
        if state is not State.ERROR:  # That name matches every failure.
            assert parse(f"status:{state.replace(' ', '')}").matches(Row(status=state))


def test_an_id_is_compared_by_value_and_a_string_is_not_a_number() -> None:
    ids = [
        "1",
        "1.0",
        "1e0",
        "10E-1",
        '"1"',
        '"1.0"',
        "-1",
        "12345678901234567890",
        "1e400",
        "1e99999999999999999999",
        "null",
        '"null"',
    ]

    def found(query: str) -> list[str]:
        matches = parse(query).matches
        return [each for each in ids if matches(Row(id=each))]

    assert found("id:1") == ["1", "1.0", "1e0", "10E-1", '"1"']
    assert found("id:1.0") == ["1", "1.0", "1e0", "10E-1", '"1.0"']
    assert found("id=1e0") == ["1", "1.0", "1e0", "10E-1"]
    assert found('id:"1"') == found('id="1"') == ['"1"']
    assert found("id:12345678901234567891") == []
    assert found("id=12345678901234567890.0") == ["12345678901234567890"]
    assert found("id:1e999999999") == []
    assert found("id=1e99999999999999999999") == ["1e99999999999999999999"]
    assert found("id:null") == ["null", '"null"']
    assert found("id=null") == ["null"]


def test_an_error_without_an_open_request_is_found_by_its_status_code_and_id() -> None:
    stray = Row(kind="error", side="server", error_code=-32700, status="error")
    request, note = Row(), Row(kind="error", side="")

    for query in ("status:error", "status=error", "status:rpcerror", "code:-32700", "id:null", "id=null"):
        matches = parse(query).matches
        assert (query, matches(stray), matches(request)) == (query, True, False)
    assert not parse("status=error").matches(note)
    assert not parse("id:null").matches(note)


def test_members_of_a_batch_are_found() -> None:
    for query in ("kind:batch", "is:batch"):
        assert parse(query).matches(Row(is_batch=True))
        assert not parse(query).matches(Row())


def test_the_kinds_of_events_are_those_of_the_format() -> None:
    page = (Path(__file__).parents[3] / "docs" / "format.md").read_text(encoding="utf-8")
    table = page.split("| `note` | further keys | |")[1].split("\n\n")[0]

    assert {line.split("`")[1] for line in table.splitlines()[2:]} == set(NOTE_KINDS)


def test_every_kind_can_be_found() -> None:
    for kind in KINDS:
        if kind not in STATUSES:  # Otherwise `is:` selects the state.
            assert [k for k in KINDS if parse(f"is:{kind}").matches(Row(kind=k))] == [kind]


def test_the_page_names_every_field_status_and_kind() -> None:
    page = (Path(__file__).parents[3] / "docs" / "filter.md").read_text(encoding="utf-8")

    assert not [name for name in (*FIELDS, *STATUSES, *KINDS, *KIND_GROUPS) if f"`{name}" not in page]


def test_crashes_and_requests_without_a_response_are_problems() -> None:
    wants = parse("is:problem").matches

    assert wants(Row(side="", kind="exit", is_failed_event=True))
    assert wants(Row(method="ping", status="no answer"))
    assert not wants(Row(side="", kind="exit"))
    assert not wants(Row(method="ping", status="pending"))
