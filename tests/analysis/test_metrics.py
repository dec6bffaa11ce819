"""Metrics of recorded sessions, and the queries of the dashboard over them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import mcpspy
from mcpspy.analysis import metrics as module
from mcpspy.analysis.metrics import PrometheusMetrics, SessionMetrics
from mcpspy.core.recording.decode import Header, read_entry

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((ROOT / "recordings").glob("*.jsonl"))

OPERATIONS = "mcp_client_operation_duration_seconds"


def counted(metrics: PrometheusMetrics, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a series by its labels, in the order of their names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == name
    }


def add(metrics: PrometheusMetrics, lines: list[str], name: str = "s") -> SessionMetrics:
    session = SessionMetrics(metrics, Header(mcpspy=1, id="1", started="2026-11-24T00:00:00.000Z", name=name))
    for line in lines:
        session.add(read_entry(line.encode()))
    return session


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_message_and_every_response_of_real_sessions_is_counted_once(path: Path) -> None:
    read, metrics = mcpspy.read(path), PrometheusMetrics()
    add(metrics, path.read_text(encoding="utf-8").splitlines()[1:]).end()

    sent = Counter(message.side for message in read.messages)
    assert counted(metrics, "mcpspy_messages_total") == {(side, "s"): count for side, count in sent.items()}
    answered = [each for each in read.exchanges if each.latency is not None and each._exchange.is_counted]
    assert sum(counted(metrics, f"{OPERATIONS}_count").values()) == len(answered)
    total = sum(each.latency or 0.0 for each in answered)
    assert sum(counted(metrics, f"{OPERATIONS}_sum").values()) == pytest.approx(total)
    assert list(counted(metrics, "mcp_client_session_duration_seconds_count").values()) == [1]
    assert counted(metrics, "mcpspy_sessions_live") == {("s",): 0}


def call(number: int, tool: str, answer: str) -> Iterator[str]:
    yield (
        f'{{"t":{number}.0,"from":"client","msg":{{"jsonrpc":"2.0","id":{number},"method":"tools/call",'
        f'"params":{{"name":"{tool}"}}}}}}'
    )
    if answer:
        yield f'{{"t":{number}.5,"from":"server","msg":{{"jsonrpc":"2.0","id":{number},{answer}}}}}'


def test_a_request_has_the_tool_and_the_kind_of_its_failure() -> None:
    metrics = PrometheusMetrics()
    session = add(
        metrics,
        [
            *call(1, "a", '"result":{"content":[]}'),
            *call(2, "a", '"result":{"content":[],"isError":true}'),
            *call(3, "b", '"error":{"code":-32602,"message":"no"}'),
            *call(4, "c", ""),
        ],
    )
    assert counted(metrics, f"{OPERATIONS}_count") == {
        ("", "a", "tools/call", "client", "s"): 1,
        ("tool_error", "a", "tools/call", "client", "s"): 1,
        ("-32602", "b", "tools/call", "client", "s"): 1,
    }
    assert counted(metrics, "mcpspy_requests_unanswered_total") == {}
    session.end()
    assert counted(metrics, "mcpspy_requests_unanswered_total") == {
        ("no_answer", "c", "tools/call", "client", "s"): 1
    }


def test_errors_unanswered_requests_and_those_that_were_given_up_are_counted_apart() -> None:
    def message(at: float, side: str, members: str, head: str = "") -> str:
        return f'{{"t":{at},"from":"{side}"{head},"msg":{{"jsonrpc":"2.0",{members}}}}}'

    def cancel(at: float, number: int) -> str:
        params = f'"method":"notifications/cancelled","params":{{"requestId":{number}}}'
        return message(at, "client", params)

    metrics = PrometheusMetrics()
    add(
        metrics,
        [
            *call(1, "failed", '"result":{"content":[],"isError":true}'),
            *call(2, "late", ""),
            cancel(2.1, 2),
            message(2.5, "server", '"id":2,"error":{"code":-32001,"message":"gone"}'),
            *call(3, "cancelled", ""),
            cancel(3.1, 3),
            *call(4, "open", ""),
            message(5, "server", '"id":99,"error":{"code":-32002,"message":"whose?"}'),
            message(6, "client", '"id":7,"method":"tools/call","params":{"name":"sent"}', ',"by":"viewer"'),
            message(6.5, "server", '"id":7,"error":{"code":-32003,"message":"no"}', ',"to":"viewer"'),
        ],
    ).end()

    assert counted(metrics, "mcpspy_errors_total") == {
        ("tool_error", "failed", "tools/call", "client", "s"): 1,
        ("-32001", "late", "tools/call", "client", "s"): 1,
        ("-32002", "", "", "client", "s"): 1,
    }
    assert counted(metrics, "mcpspy_requests_unanswered_total") == {
        ("no_answer", "open", "tools/call", "client", "s"): 1
    }
    assert counted(metrics, "mcpspy_requests_given_up_total") == {
        ("cancelled", "tools/call", "cancelled", "client", "s"): 1
    }
    assert counted(metrics, "mcpspy_messages_injected_total") == {("client", "s"): 1}
    assert sum(counted(metrics, f"{OPERATIONS}_count").values()) == 2


def test_a_peer_cannot_make_more_labels_than_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_SERVERS", "MOST_TOOLS", "MOST_ERRORS"):
        monkeypatch.setattr(module, name, 2)
    metrics = PrometheusMetrics()
    for name in "pqr":
        lines = [
            line for n in range(1, 5) for line in call(n, f"t{n}", f'"error":{{"code":{n},"message":""}}')
        ]
        lines.append('{"t":9.0,"from":"client","msg":{"jsonrpc":"2.0","id":9,"method":"own/method"}}')
        lines.append('{"t":9.5,"from":"server","msg":{"jsonrpc":"2.0","id":9,"result":{}}}')
        add(metrics, lines, name)

    errors, tools, methods, _, servers = zip(*counted(metrics, f"{OPERATIONS}_count"), strict=True)
    assert set(servers) == {"p", "q", "_OTHER"}
    assert set(methods) == {"tools/call", "_OTHER"}
    assert set(tools) == {"", "t1", "t2", "_OTHER"}
    assert set(errors) == {"", "1", "2", "_OTHER"}


def test_a_session_that_is_no_longer_followed_is_not_observed_as_ended() -> None:
    metrics = PrometheusMetrics()
    add(metrics, [*call(1, "a", "")]).end(is_over=False)

    assert counted(metrics, "mcp_client_session_duration_seconds_count") == {}
    assert counted(metrics, "mcpspy_sessions_live") == {("s",): 0}


def test_the_queries_of_the_dashboard_name_series_and_labels_that_exist() -> None:
    metrics = PrometheusMetrics()
    failed = '"result":{"content":[],"isError":true}'
    add(metrics, [*call(1, "a", '"result":{"content":[]}'), *call(2, "b", ""), *call(3, "c", failed)]).end()
    series: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            series.setdefault(sample.name, set()).update(sample.labels)

    board: dict[str, Any] = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) > 8
    for query in queries:
        names = set(re.findall(r"\bmcp\w+", re.sub(r"\([\w, ]+\) \(", "(", query))) & {*series}
        assert names, query
        assert set(re.findall(r"\bmcp(?:spy)?_\w+(?=\{)", query)) <= {*series}, query
        labels = {label for text in re.findall(r"by \(([\w, ]+)\)", query) for label in text.split(", ")}
        labels |= set(re.findall(r"(\w+)(?:=~|!=|=)\"", query))
        for name in names:
            assert labels <= series[name], query


def test_requests_that_mcpspy_sends_are_not_observed() -> None:
    metrics = PrometheusMetrics()
    own = [
        line.replace('"from":"client"', '"from":"client","by":"mcpspy"')
        for line in (*call(1, "a", ""), *call(3, "c", ""))
    ]
    answer = '{"t":1.5,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"result":{"content":[]}}}'
    add(metrics, [*own, answer, *call(2, "b", '"result":{"content":[]}')]).end()
    assert counted(metrics, f"{OPERATIONS}_count") == {("", "b", "tools/call", "client", "s"): 1}
    assert counted(metrics, "mcpspy_requests_unanswered_total") == {}
