"""The context cost of sessions."""

from __future__ import annotations

import re

import pytest

from mcpspy.analysis.context import (
    ContextCollector,
    ContextReport,
    Size,
    read_window,
    result_text,
    size_of,
    summary,
)
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session.session import Session
from tests.analysis.pages import INTERLEAVED, WITHOUT_SESSIONS, of_pages

INITIALIZE = (
    (
        '> "id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        '"clientInfo":{"name":"host","version":"1"}}'
    ),
    (
        '< "id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"instructions":"Add numbers.",'
        '"serverInfo":{"name":"math","version":"1"}}'
    ),
)

ADD = '{"name":"add","title":"Addition","description":"Add.","inputSchema":{"type":"object"}}'


def session(*messages: str) -> Session:
    """Return a session; a message is `>` (client) or `<` (server) and members of a JSON-RPC message."""
    made = Session()
    for at, text in enumerate((*INITIALIZE, *messages), start=1):
        side = "client" if text[0] == ">" else "server"
        by = ',"by":"mcpspy"' if text[1] == "!" else ""
        line = f'{{"t":{at},"from":"{side}"{by},"msg":{{"jsonrpc":"2.0",{text[1:].lstrip("! ")}}}}}'
        made.add(read_entry(line.encode()))
    made.end()
    return made


def listed(number: int, tools: str, cursor: str = "", after: str = "") -> tuple[str, str]:
    params = f'{{"cursor":"{after}"}}' if after else "{}"
    more = f',"nextCursor":"{cursor}"' if cursor else ""
    return (
        f'> "id":{number},"method":"tools/list","params":{params}',
        f'< "id":{number},"result":{{"tools":[{tools}]{more}}}',
    )


def called(
    number: int, tool: str, arguments: str = "{}", text: str = "42", mark: str = ""
) -> tuple[str, str]:
    return (
        f'>{mark} "id":{number},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}',
        f'< "id":{number},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}',
    )


def report(*sessions: Session) -> ContextReport:
    collector = ContextCollector()
    for each in sessions:
        collector.add(each)
    return collector.report()


def test_a_definition_is_its_name_description_and_schema_as_compact_json() -> None:
    found = report(session(*listed(1, ADD)))
    sent = size_of('{"name":"add","description":"Add.","inputSchema":{"type":"object"}}')
    instructions = size_of("Add numbers.")

    assert [(tool.name, tool.definition) for tool in found.tools] == [("add", sent)]
    assert found.lists["instructions"].size == instructions
    assert found.start == Size(sent.bytes + instructions.bytes, sent.tokens + instructions.tokens)
    assert found.servers == ["math"]


def test_pages_are_one_list_and_a_new_list_replaces_the_old_one() -> None:
    tools = [f'{{"name":"{name}","inputSchema":{{}}}}' for name in "abc"]
    pages = (*listed(1, tools[0], cursor="2"), *listed(2, tools[1], after="2"))

    assert {tool.name for tool in report(session(*pages)).tools} == {"a", "b"}
    assert [tool.name for tool in report(session(*pages, *listed(3, tools[2]))).tools] == ["c"]


def test_each_tool_of_interleaved_listings_counts_once() -> None:
    templates = [of_pages(("1", None, "ab", "2")), WITHOUT_SESSIONS, INTERLEAVED]
    assert [report(each).lists["tools"].count for each in templates] == [2, 4, 4]


def test_pages_whose_first_page_is_unknown_count_until_a_listing_begins() -> None:
    late = [("1", "8", "ab", "9"), ("1", "9", "c", None)]
    assert report(of_pages(*late)).lists["tools"].count == 3
    assert report(of_pages(*late, ("1", None, "x", None))).lists["tools"].count == 1


def test_calls_and_results_count_per_tool_with_quantiles_by_nearest_rank() -> None:
    texts = ["a", "a b c", "a b c d e f g h i j"]
    calls = [line for at, text in enumerate(texts) for line in called(at + 2, "add", f'{{"a":{at}}}', text)]
    (tool,) = report(session(*listed(1, ADD), *calls)).tools

    assert tool.calls == 3
    assert tool.results is not None
    assert (tool.results.p50, tool.results.max) == (size_of(texts[1]), size_of(texts[2]))
    assert tool.results.p95 == tool.results.max
    assert tool.results.total.bytes == sum(map(len, texts))


def test_calls_with_the_same_arguments_count_within_one_session() -> None:
    one = session(*called(1, "add", '{"a":1,"b":2}'), *called(2, "add", '{"b":2,"a":1}'), *called(3, "add"))
    other = session(*called(1, "add"))

    assert [(call.tool, call.arguments, call.calls) for call in report(one, other).repeated] == [
        ("add", '{"a":1,"b":2}', 2)
    ]


def test_injected_requests_do_not_count_and_unlisted_tools_have_no_definition() -> None:
    found = report(session(*called(1, "add"), *called(2, "sub", mark="!")))

    assert [(tool.name, tool.definition, tool.calls) for tool in found.tools] == [("add", None, 1)]


def test_other_results_are_counted_by_method() -> None:
    found = report(
        session(
            '> "id":1,"method":"resources/read","params":{"uri":"a:b"}',
            '< "id":1,"result":{"contents":[{"uri":"a:b","text":"hello"},{"uri":"a:c","blob":"AAAA"}]}',
        )
    )

    assert found.others["resources/read"].total == size_of("hello")
    assert found.others["resources/read"].media == 1
    assert found.tools == []


@pytest.mark.parametrize(
    ("result", "text", "media"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb", 0),
        ({"content": [{"type": "text", "text": "1"}], "structuredContent": {"n": 1}}, "1", 0),
        ({"content": [], "structuredContent": {"n": 1}}, '{"n":1}', 0),
        ({"content": [{"type": "image", "data": "AAAA"}]}, "", 1),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "c"}}]}, "c", 0),
        ({"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]}, "Hi", 0),
        ({"content": "text"}, "", 0),
        ({"content": [7, None]}, "", 2),
    ],
)
def test_the_text_of_a_result(result: dict[str, object], text: str, media: int) -> None:
    assert result_text(result) == (text, media)


def test_a_window_is_a_number_or_a_model() -> None:
    assert [read_window(text) for text in ("200k", "1M", "128000", "GPT-5")] == [
        200_000,
        1_000_000,
        128_000,
        400_000,
    ]
    for wrong in ("", "k", "0", "-1", "1.5m", "10g", "gpt-99", "²k"):
        with pytest.raises(ValueError, match="not a number of tokens"):
            read_window(wrong)


def test_the_summary_has_the_tokens_the_share_unused_tools_and_repeated_calls() -> None:
    other = ADD.replace('"add"', '"sub"')
    found = report(session(*listed(1, f"{ADD},{other}"), *called(2, "add"), *called(3, "add")))

    assert re.sub(r"[\d,]+ tokens before", "N tokens before", summary(found, 1_000_000)).removeprefix(
        "about "
    ) == (
        "N tokens before the first call (< 0.1 % of 1,000,000), 1 of 2 tools never called, "
        "2 calls with the same arguments"
    )
    assert summary(report(session())) == ""


def test_pages_and_tools_of_apps_do_not_count() -> None:
    hidden = ADD.replace('"add"', '"redraw"').replace(
        '"title"', '"_meta":{"ui":{"visibility":["app"]}},"title"'
    )
    page = "<!DOCTYPE html>" + "x" * 1000
    contents = f'[{{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"{page}"}}]'
    found = report(
        session(
            *listed(1, f"{ADD},{hidden}"),
            *called(2, "redraw"),
            '> "id":3,"method":"resources/read","params":{"uri":"ui://a"}',
            f'< "id":3,"result":{{"contents":{contents}}}',
        )
    )

    assert found.lists["tools"].count == 1
    assert [tool.name for tool in found.tools] == ["add"]
    assert found.others == {}
    assert found.lists["apps"].count == 2
    assert found.lists["apps"].size.bytes > len(page)
