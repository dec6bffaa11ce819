"""A filter as SQL selects the rows that the filter itself matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.lake.filter import LakeFilter, lake_filters
from mcpspy.analysis.lake.schema import TABLES
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.parser import parse
from mcpspy.io.lake.files import MARKER, Lake
from mcpspy.io.lake.maintenance import compact, verify
from mcpspy.io.lake.query import LakeConnection
from mcpspy.io.recording.reader import Recording, Summary
from tests.io.lake.lakes import filled, folder_of, generated, items, paths, summaries

RECORDINGS = Path(__file__).parents[3] / "recordings"

Key = tuple[str, int]
Rows = tuple[Lake, dict[str, dict[Key, ExchangeItem]]]
"""A lake, and the items of the filter in each table."""

UNUSUAL_TEXTS = (
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"twice":1,"twice":2,"nan":1,"s":"100","zero":-0}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"twice":1,"deep":{"x":1},"e":1e2,"o":{"b":1},"b":true}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"n":null,"zero":0,"e":100.0,"big":123456789012345678901}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"x":{"y":1.0},"b":"true","\\u0073":100,"a":"7"}}',
    '{"jsonrpc":"2.0","method":"notifications/x","x":{"params":{"zero":0}},"params":{"x":[1],"zero":1}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"zero":-0.0,"e":1.5,"s":"a\\nb","big":18446744073709551615}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"zero":NaN,"e":1e400,"s":"ab","x":{"s":"\\n","y":1}}}',
)
"""Notifications whose JSON parsers read differently, and some that they read alike."""

UNUSUAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("client", {"id": 1.0, "method": "tools/call", "params": {"name": "Straße", "arguments": {"a": 7}}}),
    ("server", {"id": 1, "result": {"content": [{"type": "text", "text": "300 \u212aelvin"}]}}),
    ("client", {"id": "7", "method": "tools/call", "params": {"name": "\u212aeep_100%", "arguments": {}}}),
    ("server", {"id": "7", "error": {"code": -32602, "message": 'no \\u212a: it\'s "wrong"'}}),
    ("client", {"id": "a\u00e9", "method": "resources/read", "params": {"uri": "file:///x?page=2"}}),
    ("server", {"id": "a\u00e9", "error": {"code": 9007199254740993, "message": ""}, "result": {"a": [1]}}),
    ("client", {"id": 8, "method": "x\\y_z \u0130stanbul", "params": {}}),
    ("client", {"id": 10, "method": "prompts/get", "params": {"name": "\u0130stanbul"}}),
    ("server", {"id": 10, "error": {"code": -1, "message": "x"}, "result": {"both": 5}}),
    ("server", {"id": 3, "method": "sampling/createMessage", "params": {"a.b": {"c": [1, "K\u00c9"]}}}),
    ("client", {"method": "notifications/progress", "params": {"name": "Straße", "a": 7.0}}),
    ("server", {"method": "notifications/message", "params": {"data": "kelvin", "level": "info"}}),
)


def unusual_recording(path: Path, key: str, separators: tuple[str, str]) -> None:
    """Write names, ids and texts whose case, spelling or encoding differs between SQL and Python."""
    header = {"mcpspy": 1, "id": key, "started": "2026-11-02T00:00:00Z", "transport": "stdio"}
    lines = [json.dumps({**header, "command": ["x"], "name": "unusual", "redacted": True})]
    for at, (side, message) in enumerate(UNUSUAL):
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=at % 3 == 0, separators=separators)
        lines.append(f'{{"t":{at / 8},"from":"{side}","msg":{text}}}')
    lines += [f'{{"t":8,"from":"client","raw":{json.dumps(text)}}}' for text in UNUSUAL_TEXTS]
    raw = b'{"t":9,"from":"client","b64":"eyJqc29ucnBjIjoiMi4wIiwiaWQiOjksIm1ldGhvZCI6Imv/In0="}'
    path.write_bytes("\n".join(lines).encode() + b"\n" + raw + b"\n")


FAILURE = {"error": {"code": -32000, "message": "needle"}}

UNCOUNTED: tuple[tuple[dict[str, str], dict[str, Any]], ...] = (
    ({"from": "client", "by": "viewer"}, {"id": 1, "method": "tools/call", "params": {"name": "injected"}}),
    ({"from": "server", "to": "viewer"}, {"id": 1, **FAILURE}),
    ({"from": "client", "by": "viewer"}, {"id": 2, "method": "tools/call", "params": {"name": "injected"}}),
    ({"from": "client"}, {"id": 3, "method": "tools/call", "params": {"name": "long"}}),
    ({"from": "server"}, {"id": 3, "result": {"task": {"taskId": "t", "status": "working"}}}),
    ({"from": "client"}, {"id": 4, "method": "tasks/get", "params": {"taskId": "t"}}),
    ({"from": "server"}, {"id": 4, **FAILURE}),
    ({"from": "client"}, {"id": 5, "method": "tasks/get", "params": {"taskId": "t"}}),
    ({"from": "client"}, {"id": 6, "method": "tasks/get", "params": {"taskId": "unknown"}}),
    ({"from": "server"}, {"id": 6, **FAILURE}),
)
"""Requests that a viewer sent, and polls of a task: none of their failures counts."""


def uncounted_recording(path: Path) -> None:
    header = {"mcpspy": 1, "id": "0dd00dd2", "started": "2026-11-02T00:00:00Z", "transport": "stdio"}
    lines = [json.dumps({**header, "command": ["x"], "name": "uncounted", "redacted": True})]
    for at, (head, message) in enumerate(UNCOUNTED):
        start = json.dumps({"t": float(at), **head})[:-1]
        lines.append(f'{start}, "msg":{json.dumps({"jsonrpc": "2.0", **message})}}}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def of_sessions(folder: Path, found: list[Summary]) -> Rows:
    """Return a lake of sessions, and their rows as items of the filter."""
    lake, result = filled(folder / "lake", found)
    assert not result.failures
    table: dict[str, dict[Key, ExchangeItem]] = {"exchanges": {}, "messages": {}}
    for summary in found:
        for name, number, item in items(Recording(summary.path).session()):
            table[name][summary.header.id, number] = item
    return lake, table


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A lake of generated, real and unusual sessions, and their rows as items of the filter."""
    folder = tmp_path_factory.mktemp("selected")
    generated(folder / "generated", 4, 80)
    unusual_recording(folder / "generated" / "unusual.jsonl", "0dd00dd0", (", ", ": "))
    unusual_recording(folder / "generated" / "compact.jsonl", "0dd00dd1", (",", ":"))
    uncounted_recording(folder / "generated" / "uncounted.jsonl")
    found = [*summaries(folder / "generated"), *summaries(RECORDINGS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        lake, table = of_sessions(folder, found)
    compact(lake)  # Fewer files: a connection opens all of them.
    return lake, table


@pytest.fixture(scope="module")
def compact_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A lake of generated sessions, whose messages are compact, and their rows."""
    folder = tmp_path_factory.mktemp("compact")
    generated(folder / "generated", 4, 400)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        return of_sessions(folder, summaries(folder / "generated"))


@pytest.fixture(scope="module")
def first_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A lake of the first version, to which this one has added sessions, and their rows."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "lake").mkdir()
    (folder / "lake" / MARKER).write_text('{"mcpspy_lake":1}\n', encoding="utf-8")
    generated(folder / "generated", 4, 80)
    unusual_recording(folder / "generated" / "unusual.jsonl", "0dd00dd0", (",", ":"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        lake, table = of_sessions(folder, summaries(folder / "generated"))
    compact(lake)
    return lake, table


def selected(lake: Lake, text: str) -> dict[str, set[Key]]:
    """Return the keys of the rows that SQL selects."""
    connection = LakeConnection(lake, lake_filters(text))
    return {
        table: {
            (key[: -len("-") - 16], number)
            for key, number in connection.run(f"SELECT session, {column} FROM {table}").fetchall()
        }
        for table, column in (("exchanges", "n"), ("messages", "place"))
    }


def expected(table: dict[str, dict[Key, ExchangeItem]], text: str) -> dict[str, set[Key]]:
    matches = parse(text).matches
    return {name: {key for key, item in found.items() if matches(item)} for name, found in table.items()}


ATOMS = """
call istan keep TOOLS ool* "tools/call" straße STRASSE keep istanbul _ % \\ ' elvin x\\y_? *z é
method:tools/* method=tools/call method!=tools/call method:* method="" subject:* target=echo tool:echo tool:K*
prompt:* uri:file uri:page=? uri:* stream:x stream:* stream=""
id:7 id=7 id="7" id:1 id=1.0 id:aé id:null id:* id!=1 id:a*
from:client from:server kind:request kind:notification -kind:request
status:ok status:error status=error status:rpcerror status:toolerror status:noanswer status:cancelled status:late
status:-32602 code:-32602 code<0 code>=-32700 code:9007199254740993 code:9007199254740992 is:input status!=ok
is:slow is:issue is:problem is:error is:unanswered is:request
>1ms <10kb >200b latency>3ms latency<100ms size>=100 size:100 size!=100 size<1m
text:kelvin text:ELVIN text:keep text:istanbul text:"it's" text:straße text:é text:needle text:"\\"name\\"" text:i text:300
/kelvin/i /^\\{"jsonrpc/ /\\}$/ /[0-9]{3}/
params.name:* params.name=Straße params.arguments.a>5 params.arguments.a=7 params["a.b"].c[]:ké result.content[0].text:k
params.arguments.a=7 params.arguments.a!=7 params.arguments.a=7.0 params.arguments.a<7 params.arguments.a>=7
params.name=echo params.name="echo" params.name:ech params.name:k params.a:7 params.a>6 params.a=null params.name:true
params.level=info params.data:KELVIN error.code=-32602 error.message=no error.message:no error.code<=0
params.x.y=1 params.twice=1 params.twice=2 params.twice!=1 params.nan=1 params.o:1 params.b=true params.b:true params.n:null
params.n=null params.zero=0 params.e=100 params.s=100 params.s="100" params.e:100 params.big>1 params.o:b params.deep.x=1
result.a[0]=1 error.code<0 error.message:wrong result.isError:true params.a=7 params:x
result.both=5 error.code=-1 params.zero<=0 params.zero>=0 params.zero!=0 params.e>1 params.e=1.5 params.big>=0 params.s:nb params.s:a
""".split()


PATHS = """
params.arguments.limit=5 params.arguments.limit!=5 params.arguments.limit>4 params.arguments.limit<=4 params.arguments.limit=5.0
params.name=search params.name!=search params.name:EAR params.name:true result.isError=true result.isError!=true
result.isError:true result.isError:rue error.code<0 error.code=-32602 error.message:Such params.arguments.limit=null
""".split()


@pytest.mark.parametrize("atom", PATHS)
def test_sql_decides_paths_in_compact_messages(
    atom: str,
    compact_rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, table = compact_rows
    monkeypatch.setattr(LakeFilter, "matches", None)  # The filter itself is not asked.

    assert selected(lake, atom) == expected(table, atom)


@pytest.mark.parametrize("atom", PATHS)
def test_a_lake_of_the_first_version_is_searched(atom: str, first_rows: Rows) -> None:
    lake, table = first_rows

    assert selected(lake, atom) == expected(table, atom)


def test_a_lake_of_the_first_version_keeps_it(
    first_rows: Rows,
) -> None:
    lake, _ = first_rows

    assert verify(Lake.opened(folder_of(lake))).problems == []
    for name in TABLES:
        for path in paths(lake, name):
            assert "compact" not in pq.read_schema(path).names
            assert pq.read_schema(path).metadata == {b"mcpspy.lake": b"1"}
    for name in ("exchanges", "messages"):
        sql = f"SELECT DISTINCT compact FROM {name}"
        assert LakeConnection(lake).run(sql).fetchall() == [(False,)]


def test_an_uncounted_failure_is_not_found(tmp_path: Path) -> None:
    uncounted_recording(tmp_path / "uncounted.jsonl")
    lake, _ = of_sessions(tmp_path, summaries(tmp_path))

    assert selected(lake, "is:error")["exchanges"] == {("0dd00dd2", 5)}, "the task that no call created"
    assert selected(lake, "is:unanswered")["exchanges"] == {("0dd00dd2", 2)}, "the call"
    sql = "SELECT errors, unanswered FROM sessions"
    assert LakeConnection(lake).run(sql).fetchall() == [(1, 1)]


def test_a_lake_of_the_second_version_is_read_without_the_calls_of_polls(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / MARKER).write_text('{"mcpspy_lake":2}\n', encoding="utf-8")
    uncounted_recording(tmp_path / "uncounted.jsonl")
    lake, _ = of_sessions(tmp_path, summaries(tmp_path))

    for path in paths(lake, "exchanges"):
        assert pq.read_schema(path).names[-1] == "compact"
    sql = "SELECT DISTINCT poll_of FROM exchanges"
    assert LakeConnection(lake).run(sql).fetchall() == [(None,)]
    assert selected(lake, "is:error")["exchanges"] == {("0dd00dd2", 3), ("0dd00dd2", 5)}


@pytest.mark.parametrize("atom", [*dict.fromkeys(ATOMS)])
def test_sql_selects_what_the_filter_matches(rows: Rows, atom: str) -> None:
    lake, table = rows

    assert selected(lake, atom) == expected(table, atom)


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    both = st.tuples(parts, st.sampled_from([" ", " or "]), parts).map(lambda found: f"({''.join(found)})")
    return st.one_of(both, parts.map(lambda part: f"-({part})"))


@settings(max_examples=25, deadline=None)
@given(text=st.recursive(st.sampled_from(ATOMS), joined, max_leaves=5))
def test_sql_selects_what_a_combined_filter_matches(rows: Rows, text: str) -> None:
    lake, table = rows

    assert selected(lake, text) == expected(table, text)


def test_most_filters_are_decided_by_sql_alone_except_outside_ascii() -> None:
    for text in ("status:error from:client", "is:problem >200ms", "method=tools/call -size>10kb code:1"):
        assert [each.doubtful for each in lake_filters(text)] == ["", ""]
    assert all(each.doubtful for each in lake_filters("/x/"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("since:-5m", "compare the column time in SQL"),
        ("time>10s", "compare the column time in SQL"),
        ("lint:ENV", "table findings"),
        ("is:finding", "table findings"),
        ("kind:exit", "matches no request and no notification"),
        ("note:stderr", "matches no request and no notification"),
        ("is:batch", "matches no request and no notification"),
        ("tol:x", "did you mean tool"),
    ],
)
def test_conditions_without_a_column_are_refused(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        lake_filters(f"tool:x or -({text})")
