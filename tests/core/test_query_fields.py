"""What every field means, by examples: what matches, and what does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpspy.core.exchange import State
from mcpspy.core.query import parse
from mcpspy.core.query_fields import KINDS, STATUSES
from mcpspy.core.query_syntax import FIELDS, QueryError


@dataclass
class Row:
    """An item made of what it answers."""

    at: float = 0.0
    side: str = "client"
    kind: str = "request"
    method: str = ""
    subject: str = ""
    id: str = ""
    status: str = ""
    latency: float | None = None
    size: int = 0
    stream: str = ""
    odd: bool = False
    error_code: int | None = None
    data: bytes = b""

    def text(self) -> bytes:
        return self.data


CALL = Row(method="tools/call", subject="read_File", id="7", status="ok", latency=0.25, size=12_000, at=3.0)
READ = Row(method="resources/read", subject="file:///x?page=2", id='"7"', status="pending", stream="a1")
PROMPT = Row(
    method="prompts/get", subject="read_file", side="server", kind="result", status="ok", latency=1.5
)
FAILURE = Row(
    method="tools/call", side="server", kind="error", status="error", error_code=-32602, latency=0.1
)
TOOL_ERROR = Row(method="tools/call", side="server", kind="result", status="tool error")
REFUSED = Row(method="ping", status="refused")
LATE = Row(method="ping", kind="error", side="server", status="answered late", error_code=1)
STRAY = Row(kind="error", side="server", odd=True)
PROGRESS = Row(method="notifications/progress", kind="notification", side="server", at=90.0)
STDERR = Row(side="", kind="stderr")
HTTP_END = Row(side="", kind="http-end")
EVERY = {name: row for name, row in globals().items() if isinstance(row, Row)}
NOTES = "STDERR HTTP_END"

STATUS_OKAY = f'unknown status "okay": one of {", ".join(STATUSES)}'


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
        ('id:"7"', "CALL READ"),
        ("id=7", "CALL"),
        ('id="7"', "READ"),
        ("id:7*", "CALL READ"),
        ("id:8", ""),
        # Sides.
        ("dir:client side:c from:-> dir:out dir:→", "CALL READ REFUSED"),
        ("dir:server side:s from:<- dir:IN dir:←", "PROMPT FAILURE TOOL_ERROR LATE STRAY PROGRESS"),
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
        ("is:request", "CALL READ REFUSED"),
        ("is:note", NOTES),
        ("is:http-end", "HTTP_END"),
        ("is:response dir:c", ""),
        # States.
        ("status:ok", "CALL PROMPT"),
        ("status:err", "FAILURE TOOL_ERROR REFUSED LATE STRAY"),
        ("is:failed", "FAILURE TOOL_ERROR REFUSED LATE STRAY"),
        ("status=error", "FAILURE"),
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
        ("is:odd", "STRAY"),
        # Numbers.
        ("is:slow", "PROMPT"),
        (">200ms", "CALL PROMPT"),
        ("lat>200ms", "CALL PROMPT"),
        ("latency >= .25s", "CALL PROMPT"),
        ("lat:<150ms", "FAILURE"),
        ("<100001us", "FAILURE"),
        ("<100001µs", "FAILURE"),
        (">0.02min", "PROMPT"),
        (">1s -(<1h)", ""),
        (">10kb", "CALL"),
        ("size>=12k size<=0.012M", "CALL"),
        ("size:12000", "CALL"),
        ("size>12000b", ""),
        ("time>10s", "PROGRESS"),
        ("time>1.5m", ""),
        ("time=3", "CALL"),
        ("-lat>0s -note:*", "READ TOOL_ERROR REFUSED LATE STRAY PROGRESS"),
    ],
)
def test_a_filter_finds_what_it_says(query: str, found: str) -> None:
    wants = parse(query).matches

    assert [name for name, row in EVERY.items() if wants(row)] == found.split()


@pytest.mark.parametrize(
    ("query", "data", "found"),
    [
        ("text:NEEDLE", b'{"a":"Needle"}', True),
        ("text:other", b'{"a":"Needle"}', False),
        ("text:123", b"[0,1234]", True),
        ('text:"say \\"hi\\""', rb'{"a":"say \"hi\""}', True),
        ('text:"\\"a\\":"', b'{"a":1}', True),
        ("text:ÉTÉ", '{"a":"été"}'.encode(), True),
        ("text:Été", rb'{"a":"\u00e9t\u00E9"}', True),
        ("text:été", b"ete", False),
        ("text:a*b", b"aXb", False),
        ("/N.+le/", b'{"a":"Needle"}', True),
        ("/n.+le/", b'{"a":"Needle"}', False),
        ("/n.+le/i", b'{"a":"Needle"}', True),
        ("/^.t.$/", "été".encode(), False),
        ("/^ét.$/", "été".encode(), True),
        ("/É/i", "été".encode(), True),
        ("/é/", b"\xff\xfe", False),
        ("text:/n.{4}E/i", b'{"a":"Needle"}', True),
    ],
)
def test_the_text_is_searched_as_it_was_on_the_wire(query: str, data: bytes, found: bool) -> None:
    assert parse(query).matches(Row(data=data)) is found
    assert parse(query).reads_text


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        (
            "a status:okay",
            STATUS_OKAY,
            "okay",
        ),
        ("is:fast", None, "fast"),
        ("dir:up", 'unknown dir "up": one of client, server, ->, <-', "up"),
        ("kind:reqst", 'unknown kind "reqst": did you mean request?', "reqst"),
        ("note:stder1", 'unknown note "stder1": did you mean stderr?', "stder1"),
        ("method>5", "method has no order: write method:5", "5"),
        ("status<5", "status has no order: write status:5", "5"),
        ("text=x", "text takes a colon: text:x", "x"),
        ("size>5ms", 'size takes bytes, not "ms"', "5ms"),
        ("lat>5kb", 'lat takes a time, not "kb"', "5kb"),
        ("time<5kb", 'time takes a time, not "kb"', "5kb"),
        ("lat>5", "5 what? as in latency>200ms", "5"),
        (">5", "5 what? as in >200ms or >10kb", "5"),
        (">5m", "5m may be minutes or megabytes: write 5min or 5mb", "5m"),
        (">5x", 'unknown unit "x": us, ms, s, min, h for times; b, kb, mb, gb for sizes', "5x"),
        ("size>big", "big is no number: as in size>10kb", "big"),
        ("lat:200ms", "no latency is exactly that: write lat>200ms", "200ms"),
        ("code>5s", 'code takes a number, not "5s"', "5s"),
        ("a /b(c/", "regex: missing ), unterminated subpattern", "("),
        ("/*/", "regex: nothing to repeat", "*"),
        (
            "/a{99999999999999999999}/",
            "regex: the repetition number is too large",
            "/a{99999999999999999999}/",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_the_place(text: str, message: str | None, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert message is None or str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined


def test_case_is_nothing_in_any_alphabet() -> None:
    assert parse("ΑΣ").matches(Row(subject="ΑΣΑ"))  # Python's lower() has two small sigmas.
    assert parse("STRASSE").matches(Row(subject="straße"))


def test_a_note_of_a_kind_we_never_heard_of_can_be_asked_for() -> None:
    assert parse("note:weather").matches(Row(side="", kind="weather-report"))


def test_every_state_has_its_name_without_blanks() -> None:
    for state in State:
        if state is not State.ERROR:  # That name stands for whatever went wrong.
            assert [s for s in State if parse(f"status:{state.replace(' ', '')}").matches(Row(status=s))] == [
                state
            ]


def test_every_kind_can_be_asked_for() -> None:
    for kind in KINDS:
        if kind not in STATUSES:  # Then it is the state.
            assert [k for k in KINDS if parse(f"is:{kind}").matches(Row(kind=k))] == [kind]


@pytest.mark.parametrize("name", [*FIELDS, *STATUSES, *KINDS])
def test_the_page_names_every_field_status_and_kind(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "filter.md"

    assert f"`{name}" in page.read_text(encoding="utf-8")
