"""`lint`, `stats`, `diff` and `export`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.agent.answer import AgentAnswer, rendered
from mcpspy.ui.agent.reports import (
    DiffArguments,
    ExplainArguments,
    ExplainFacts,
    ExportArguments,
    LintArguments,
    StatsArguments,
    diff,
    explain,
    export,
    lint,
    stats,
)
from mcpspy.ui.agent.sessions import SessionStore

RECORDINGS = Path(__file__).parents[3] / "recordings"
FAULTS = Path(__file__).parents[1] / "report" / "faults"


@pytest.fixture
def store() -> Iterator[SessionStore]:
    store = SessionStore(str(RECORDINGS))
    yield store
    store.close()


def texts(answer: AgentAnswer) -> list[str]:
    return [block.text for block in answer.blocks]


def test_explain_ranks_causes_with_lines_and_the_next_step(store: SessionStore) -> None:
    answer = explain(store, ExplainArguments("everything-sdk-modern"))
    first = texts(answer)[0].splitlines()
    facts = answer.facts
    assert isinstance(facts, ExplainFacts)

    assert answer.summary.startswith(f"session 0fc001d6: {len(facts.causes)} causes; most likely: ")
    assert facts.causes[0] == "unknown-tool"
    assert facts.sides[0] == "client"
    assert len(facts.sides) == len(facts.causes)
    assert first[0].startswith("1. ")
    assert first[0].endswith("(unknown-tool)")
    assert first[1].startswith(f"  #{facts.lines[0]} ")
    assert first[-1].startswith("  next: ")


def test_the_summary_of_explain_names_the_kind_of_cause_without_text_of_peers(store: SessionStore) -> None:
    answer = explain(store, ExplainArguments(str(FAULTS / "unknown-tool.jsonl")))

    assert answer.summary.endswith(": 1 cause; most likely: a tool was called that the server does not offer")
    assert texts(answer)[0].startswith("1. the tool 'missing' was called")


def test_observations_of_explain_have_a_heading_and_are_not_causes(store: SessionStore) -> None:
    answer = explain(store, ExplainArguments(str(FAULTS / "older-revision.jsonl")))
    facts = answer.facts
    assert isinstance(facts, ExplainFacts)

    assert answer.summary.endswith(": 0 causes; nothing wrong found")
    assert (facts.causes, facts.sides, facts.observations) == ([], [], ["downgrade"])
    assert texts(answer)[0].startswith("worth knowing:\n- the client asked for 2025-11-25")


def test_explain_of_a_session_without_failures_is_one_line(store: SessionStore) -> None:
    answer = explain(store, ExplainArguments("peer-ts-auto"))

    assert answer.summary.endswith(": 0 causes; nothing wrong found")
    assert texts(answer) == []


def test_lint_has_one_entry_per_rule_with_lines_and_a_fix(store: SessionStore) -> None:
    answer = lint(store, LintArguments("everything-sdk-modern"))
    first = texts(answer)[0].splitlines()

    assert answer.summary == "lint of session 0fc001d6: 5 errors, 9 warnings, 0 infos; one entry per rule"
    assert first[0].startswith("LIFE108 error, #58 #60 #63 #66: logging/setLevel was removed")
    assert first[2].startswith("  fix: ")
    assert answer.facts.codes[0] == "LIFE108"  # type: ignore[attr-defined]


def test_lint_can_be_limited_to_rules(store: SessionStore) -> None:
    (text,) = texts(lint(store, LintArguments("everything-sdk-modern", codes=["MOD"])))

    assert text.startswith("MOD106 error, #4: ")


def test_stats_count_and_name_the_slowest_requests(store: SessionStore) -> None:
    answer = stats(store, StatsArguments("peer-sdk-legacy"))
    lines = texts(answer)

    assert answer.summary.startswith(
        "session ba42897e: 29 requests in 0.934 s, 6 errors, 0 unanswered, latency p50 "
    )
    assert any(line.startswith("  → echo: 3, p50 1.13ms, p95 1.58ms, max 1.58ms") for line in lines)
    assert (
        next(line for line in lines if line.startswith("slow: "))
        == "slow: #2→4 0.001s → initialize 532.0 ms ok"
    )


def test_stats_count_errors_that_settle_no_request(tmp_path: Path) -> None:
    error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    ask = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    header = {"mcpspy": 1, "id": "ab12cd34", "started": "2026-11-27T00:00:00.000Z", "transport": "stdio"}
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps({**header, "command": ["server"], "name": "a", "redacted": True})
        + f'\n{{"t":0.1,"from":"client","msg":{ask}}}\n{{"t":0.2,"from":"server","msg":{error}}}\n'
        + '{"t":0.3,"note":"exit","code":0,"signal":null}\n',
        encoding="utf-8",
    )
    store = SessionStore(str(tmp_path))
    found = stats(store, StatsArguments(str(path)))
    filtered = stats(store, StatsArguments(str(path), "is:request"))
    store.close()

    assert found.summary.startswith("session ab12cd34: 1 requests in 0.3 s, 1 errors, 1 unanswered, latency")
    assert filtered.facts.errors == 0  # type: ignore[attr-defined]


def test_stats_obey_a_filter_and_an_order(store: SessionStore) -> None:
    lines = texts(stats(store, StatsArguments("peer-sdk-legacy", "method:tools/call -tool:slow", "errors")))

    tables = [line for line in lines if "→ " in line[:4]]
    assert tables[0].startswith("→ tools/call: 14, 4 errors")
    assert tables[1].startswith("  → fail: 2, 2 errors")
    assert lines.index(tables[0]) == 5
    assert not any("initialize" in line for line in lines)


def test_sessions_that_are_the_same_have_no_changes(store: SessionStore) -> None:
    answer = diff(store, DiffArguments("everything-sdk-legacy", "everything-sdk-auto"))

    assert answer.summary.startswith("same: session 6471b16b → b5d36025, 0 breaking")
    assert texts(answer) == []


def test_changes_between_sessions_have_lines_and_the_most_severe_are_first(store: SessionStore) -> None:
    answer = diff(store, DiffArguments("peer-sdk-legacy", "peer-sdk-modern"))
    first = texts(answer)[0].splitlines()

    assert not answer.facts.same  # type: ignore[attr-defined]
    assert "line " in first[0]
    severities = [text.split()[0] for text in texts(answer)]
    assert severities == sorted(severities, key=["breaking", "different", "note"].index)


def test_an_invalid_pattern_is_reported(store: SessionStore) -> None:
    with pytest.raises(UsageError, match="ignore: "):
        diff(store, DiffArguments("peer-sdk-legacy", "peer-sdk-modern", ignore=["/time"]))


@pytest.mark.parametrize("form", ["markdown", "mermaid", "csv", "jsonl", "har", "otlp"])
def test_an_export_continues_at_an_offset(store: SessionStore, form: str) -> None:
    arguments = ExportArguments(form, "peer-sdk-legacy", "method:tools/call")  # type: ignore[arg-type]
    (whole,) = texts(export(store, arguments))
    first = rendered(export(store, arguments), 250, store.gated)
    offset = int(first.structured["omitted"].partition("offset=")[2].partition(" ")[0])
    arguments.offset = offset

    assert whole.startswith("\n".join(first.structured["recorded"].split("\n")[1:-1]))
    assert texts(export(store, arguments)) == [whole[offset:]]
