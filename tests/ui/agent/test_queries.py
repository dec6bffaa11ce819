"""`list_sessions`, `find` and `read`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.agent.answer import AgentAnswer, rendered
from mcpspy.ui.agent.queries import (
    FindArguments,
    ListArguments,
    ReadArguments,
    find,
    list_sessions,
    outline,
    read,
)
from mcpspy.ui.agent.sessions import SessionStore
from tests.io.files import EXIT, frame, write

Make = Callable[..., Path]

RECORDINGS = Path(__file__).parents[3] / "recordings"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    store = SessionStore(str(tmp_path))
    yield store
    store.close()


def texts(answer: AgentAnswer) -> list[str]:
    return [block.text for block in answer.blocks]


def test_sessions_are_listed_with_state_errors_and_peers(make_recording: Make, store: SessionStore) -> None:
    make_recording(name="before")
    make_recording(name="after", exit_code=None)

    answer = list_sessions(store, ListArguments())
    (line,) = texts(list_sessions(store, ListArguments(filter="BEFORE errors>0 since:1h -state:died")))

    assert answer.summary.startswith("2 sessions")
    assert re.search(
        " · before · failures · [0-9]+ s ago · 1.00 s, 6 lines · 1 error · tested 2 → tested 2 · 2025-11-25 · tested --x",
        line,
    )
    assert any(" · after · died · " in text for text in texts(answer))


def test_a_filter_of_sessions_without_a_match_names_the_sessions_that_exist(
    make_recording: Make, store: SessionStore
) -> None:
    make_recording(name="weather")
    wanted = ListArguments(filter="name:wether")
    answer = list_sessions(store, wanted)

    assert answer.summary.startswith("0 sessions")
    assert texts(answer) == ['No name matches "wether": did you mean weather? The names are weather.']
    shown = rendered(list_sessions(store, wanted), 1000, store.gated)
    assert ("omitted" in shown.structured, "did you mean weather?" in shown.text) == (False, True)
    assert texts(list_sessions(store, ListArguments(filter="errors>9"))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state:live eror>0", "filter, character 12: unknown field eror: did you mean errors>?"),
        ("state:liv", 'filter, character 7: unknown state "liv": did you mean live?'),
        ("tool:forecast", "filter, character 1: unknown field tool: the fields are id, name"),
    ],
)
def test_an_invalid_filter_of_sessions_is_an_error_with_a_suggestion(
    store: SessionStore, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        list_sessions(store, ListArguments(filter=text))


def test_a_long_list_continues_at_an_offset(make_recording: Make, store: SessionStore) -> None:
    for _ in range(30):
        make_recording([])
    shown = rendered(list_sessions(store, ListArguments(offset=2)), 400, store.gated).structured
    seen = shown["recorded"].count(" · tested · ")

    assert shown["omitted"] == f"{28 - seen} more; list_sessions with offset={2 + seen}, or a filter"


def test_a_request_and_its_response_are_one_row(make_recording: Make, store: SessionStore) -> None:
    make_recording()

    assert texts(find(store, FindArguments())) == [
        "#2→3 0.000s → initialize 1.0 ms ok",
        "#4→6 0.002s → tools/call echo 2.0 ms error -32602 invalid params: no",
        r"#5 0.003s ← (not JSON) DEBUG: \x1b[31mhello",
        "#7 1.000s · exit 0",
    ]


def test_a_filter_selects_exchanges_by_either_message(make_recording: Make, store: SessionStore) -> None:
    make_recording()
    answer = find(store, FindArguments(filter="status:error"))

    assert [text.split()[0] for text in texts(answer)] == ["#4→6"]
    assert (answer.facts.matches, answer.facts.searched) == (1, 1)  # type: ignore[attr-defined]


def test_a_search_continues_after_a_line(store: SessionStore) -> None:
    path = str(RECORDINGS / "everything-sdk-legacy.jsonl")
    first = rendered(find(store, FindArguments(sessions=[path], max_tokens=400)), 400, store.gated)
    after = int(first.structured["omitted"].partition("after=")[2].partition(",")[0])
    second = find(store, FindArguments(sessions=[path], after=after))
    rows = [line for line in first.text.splitlines() if line.startswith("#")]

    assert len(rows) + len(texts(second)) == first.structured["matches"]
    assert int(texts(second)[0].partition(" ")[0].strip("#").partition("→")[0]) > after


def test_all_sessions_are_searched_until_the_budget_is_used(store: SessionStore) -> None:
    store.folder = str(RECORDINGS)
    few = find(store, FindArguments(sessions=["all"], filter="status:error", max_tokens=300))
    all_ = find(store, FindArguments(sessions=["all"], filter="tool:no-such-tool", max_tokens=20_000))

    assert "older sessions not searched" in few.summary
    assert all_.facts.searched == 15  # type: ignore[attr-defined]
    assert texts(all_)[0].startswith("session ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (FindArguments(filter="tol:x"), "filter, character 1: unknown field tol"),
        (FindArguments(sessions=["a", "b"], after=3), "after: only possible with one session"),
        (FindArguments(sessions=["missing"]), "missing: no such file or session"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    make_recording: Make, store: SessionStore, arguments: FindArguments, message: str
) -> None:
    make_recording()

    with pytest.raises(UsageError, match=message) as error:
        find(store, arguments)
    assert "\n" not in str(error.value)


def test_a_message_is_read_with_its_row_and_its_json(make_recording: Make, store: SessionStore) -> None:
    make_recording()

    (text,) = texts(read(store, ReadArguments(line=6)))

    assert text.splitlines() == [
        "#6 0.004s ← tools/call echo 2.0 ms error -32602 invalid params: no",
        '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}',
    ]


def test_an_exchange_has_both_messages_from_either_line(make_recording: Make, store: SessionStore) -> None:
    make_recording()

    for line in (4, 6):
        found = texts(read(store, ReadArguments(line=line, exchange=True)))
        assert [text.split()[0] for text in found] == ["#4→6", "#6"]


def test_several_lines_are_read_at_once(make_recording: Make, store: SessionStore) -> None:
    make_recording()

    assert [text.split()[0] for text in texts(read(store, ReadArguments(line=5, count=3)))] == [
        "#5",
        "#6",
        "#7",
    ]


def test_a_line_that_does_not_exist_is_an_error_that_names_the_lines(
    make_recording: Make, store: SessionStore
) -> None:
    make_recording()

    with pytest.raises(UsageError, match=r"has no line 8 \(its lines are 2 to 7\)"):
        read(store, ReadArguments(line=8))


def large(tmp_path: Path) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": "0123456789" * 20_000}], "items": [*range(5000)]}
    write(tmp_path / "a.jsonl", frame(1, "server", {"jsonrpc": "2.0", "id": 1, "result": result}), EXIT)
    return result


def test_a_large_message_is_shortened_with_the_pointers_of_its_parts(
    tmp_path: Path, store: SessionStore
) -> None:
    large(tmp_path)

    shown = rendered(read(store, ReadArguments(line=2)), 1500, store.gated)

    assert "(200,000 characters: pointer=/result/content/0/text)" in shown.text
    assert "more items: pointer=/result/items/" in shown.text
    assert "omitted" not in shown.structured
    assert json.loads(shown.text.splitlines()[3])["result"]["content"][0]["type"] == "text"


def test_a_part_is_read_by_its_pointer_and_continued_by_an_offset(
    tmp_path: Path, store: SessionStore
) -> None:
    whole = large(tmp_path)["content"][0]["text"]
    found, offset = "", 0
    for _ in range(3):
        (text,) = texts(read(store, ReadArguments(line=2, pointer="/result/content/0/text", offset=offset)))
        _, part, more = text.split("\n")
        found += part
        offset = int(more.partition("offset=")[2].rstrip(")"))

    assert len(found) == offset > 1000
    assert whole.startswith(found)


def test_pointers_that_are_wrong_or_lead_nowhere_are_reported(
    make_recording: Make, store: SessionStore
) -> None:
    make_recording()

    with pytest.raises(UsageError, match="a JSON pointer must begin with /"):
        read(store, ReadArguments(line=2, pointer="result"))
    assert texts(read(store, ReadArguments(line=2, pointer="/nothing")))[0].endswith("(no value at /nothing)")


def test_text_with_control_characters_is_shown_as_escapes_and_keeps_its_lines(
    tmp_path: Path, store: SessionStore
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"text": "one\ntwo \x1b]0;x\x07\u202e\U000e0041"}}
    write(tmp_path / "a.jsonl", frame(1, "server", message))

    (text,) = texts(read(store, ReadArguments(line=2, pointer="/result/text")))

    assert text.splitlines()[1:] == ["one", r"two \x1b]0;x\x07\u202e\U000e0041"]


def test_a_small_value_is_complete_in_its_outline() -> None:
    value = {"a": [1, "x", None], "b": {"c": 1.5}}

    assert json.loads(outline(value, 100)) == value
