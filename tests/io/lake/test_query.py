"""SQL over a lake, and over a folder of sessions."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.analysis.export import RecordedSession
from mcpspy.analysis.export.exchange_lines import export_jsonl
from mcpspy.analysis.lake.filter import lake_filters
from mcpspy.analysis.lake.schema import PARTITIONS, QUERIES, TABLES, VERSION
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.files import MARKER, Lake
from mcpspy.io.lake.query import LakeConnection, lake_of
from mcpspy.io.recording.reader import LAKE_CACHE, Recording, delete
from tests.io.lake.lakes import filled, folder_of, generated, paths, summaries

if TYPE_CHECKING:
    from mcpspy.io.recording.reader import Summary

Line = dict[str, Any]


@pytest.fixture(scope="session")
def lines(recordings: Path) -> list[Line]:
    """The exchanges of all recordings, by the exporter of JSONL."""
    found = []
    for summary in summaries(recordings):
        recording = Recording(summary.path)
        session = recording.session()
        exported = export_jsonl([RecordedSession(recording.header, "", session.changes, lambda _: True)])
        found += [json.loads(line) for line in exported]
    return found


@pytest.fixture(scope="session")
def connection(whole: Path) -> LakeConnection:
    return LakeConnection(Lake(whole))


def answer(connection: LakeConnection, sql: str) -> list[tuple[Any, ...]]:
    return [*connection.query(sql).rows]


def calls(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["method"] == "tools/call"]


def counted(keys: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (*key, count) if isinstance(key, tuple) else (key, count) for key, count in Counter(keys).items()
    )


def by(lines: list[Line], name: str, value: str) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for line in lines:
        if line.get(value) is not None:
            found[line[name]].append(line[value])
    return found


QUESTIONS: dict[str, Callable[[list[Line]], list[tuple[Any, ...]]]] = {
    "SELECT count(*) FROM exchanges": lambda lines: [(len(lines),)],
    "SELECT method, count(*) FROM exchanges GROUP BY ALL ORDER BY ALL": lambda lines: counted(
        line["method"] for line in lines
    ),
    "SELECT status, count(*) FROM exchanges GROUP BY ALL ORDER BY ALL": lambda lines: counted(
        line["status"] for line in lines
    ),
    "SELECT target, count(*) FROM exchanges WHERE method = 'tools/call' GROUP BY ALL ORDER BY ALL": (
        lambda lines: counted(line["tool"] for line in calls(lines))
    ),
    "SELECT server, status, count(*) FROM exchanges WHERE status IN ('error', 'tool error') GROUP BY ALL ORDER BY ALL": (
        lambda lines: counted(
            (line["name"], line["status"]) for line in lines if line["status"] in ("error", "tool error")
        )
    ),
    "SELECT method, max(latency_ms) FROM exchanges GROUP BY ALL HAVING max(latency_ms) > 0 ORDER BY ALL": (
        lambda lines: sorted(
            (method, max(found)) for method, found in by(lines, "method", "latency_ms").items()
        )
    ),
    "SELECT sum(request_bytes)::BIGINT, sum(response_bytes)::BIGINT FROM exchanges": lambda lines: [
        (sum(line["request_bytes"] for line in lines), sum(line["response_bytes"] or 0 for line in lines))
    ],
    "SELECT client, count(*) FROM exchanges GROUP BY ALL ORDER BY ALL": lambda lines: counted(
        line["client"] for line in lines
    ),
    "SELECT code, error, count(*) FROM exchanges WHERE code IS NOT NULL GROUP BY ALL ORDER BY ALL": (
        lambda lines: counted((line["code"], line["error"]["message"]) for line in lines if "code" in line)
    ),
    "SELECT json_extract_string(request, '$.params.arguments.text') AS t, count(*) FROM exchanges"
    " WHERE t IS NOT NULL GROUP BY ALL ORDER BY ALL": lambda lines: counted(
        line["request"]["params"]["arguments"]["text"] for line in calls(lines)
    ),
    "SELECT strftime(time, '%Y-%m-%dT%H:%M:%S.%fZ') FROM exchanges ORDER BY ALL": lambda lines: sorted(
        (line["time"],) for line in lines
    ),
}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_sql_and_the_exported_lines_give_the_same_answer(
    connection: LakeConnection, lines: list[Line], sql: str
) -> None:
    expected = QUESTIONS[sql](lines)

    assert expected
    assert answer(connection, sql) == expected


@pytest.mark.parametrize("name", QUERIES)
def test_each_saved_query_has_rows(connection: LakeConnection, name: str) -> None:
    assert answer(connection, QUERIES[name].sql)


def test_saved_queries_count_calls_tools_and_clients(connection: LakeConnection, lines: list[Line]) -> None:
    tools = {row[:4] for row in answer(connection, QUERIES["top-tools"].sql)}
    failed = Counter((line["name"], line["tool"]) for line in calls(lines) if "error" in line)
    assert tools == {
        (*key, count, failed[key])
        for key, count in Counter((line["name"], line["tool"]) for line in calls(lines)).items()
    }
    assert {row[1] for row in answer(connection, QUERIES["unused-tools"].sql)} == {"sum"}
    assert sum(row[3] for row in answer(connection, QUERIES["agents"].sql)) == len(calls(lines))
    assert sum(row[0] for row in answer(connection, QUERIES["errors"].sql)) == sum(failed.values())


def test_the_tables_have_the_documented_columns(connection: LakeConnection, tmp_path: Path) -> None:
    empty = LakeConnection(Lake.created(tmp_path / "empty"))
    for table, columns in TABLES.items():
        names = [column.name for column in (*PARTITIONS, *columns)]
        described = answer(connection, f"SELECT column_name, column_type FROM (DESCRIBE {table})")
        assert [name for name, _ in described] == names
        assert answer(empty, f"SELECT column_name, column_type FROM (DESCRIBE {table})") == described
        assert answer(empty, f"SELECT count(*) FROM {table}") == [(0,)]


def test_partitions_have_the_names_of_servers_and_days(connection: LakeConnection) -> None:
    assert {row[0] for row in answer(connection, "SELECT DISTINCT server FROM sessions")} == {
        "weather",
        "files/local",
        "issues",
        "datenbank-größe",
    }
    assert answer(connection, "SELECT count(*) FROM sessions WHERE day <> started::DATE") == [(0,)]


def test_another_engine_reads_the_lake(connection: LakeConnection, whole: Path) -> None:
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(whole / "exchanges", format="parquet", partitioning="hive")
    found = Counter(
        (row["server"], row["day"]) for row in dataset.to_table(columns=["server", "day"]).to_pylist()
    )

    sql = "SELECT server, day::VARCHAR, count(*) FROM exchanges GROUP BY ALL ORDER BY ALL"
    assert sorted((*key, count) for key, count in found.items()) == answer(connection, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hosts')",
        "SELECT * FROM '/etc/hosts.csv'",
        "SELECT * FROM glob('/*')",
        "FROM read_parquet('s3://bucket/x.parquet')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
    ],
)
def test_sql_reads_no_other_file(connection: LakeConnection, sql: str) -> None:
    with pytest.raises(UsageError, match=r"Permission|disabled|Missing Extension|requires the extension"):
        answer(connection, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO 'x.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "ATTACH 'x.db'",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "",
    ],
)
def test_sql_changes_nothing(connection: LakeConnection, sql: str) -> None:
    with pytest.raises(UsageError, match="not one SELECT statement"):
        connection.query(sql)


@pytest.mark.parametrize("sql", ["SELECT\n  nothing FROM exchanges", "SELEC\n  nothing FROM exchanges"])
def test_an_error_in_sql_is_one_line(sql: str, connection: LakeConnection) -> None:
    for run in (connection.query, connection.arrow):
        with pytest.raises(
            UsageError, match=r"query: .*Error: .*(nothing|SELEC).*see mcpspy query --schema"
        ) as error:
            run(sql)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("rows", [10, 1_000_000])
def test_an_error_in_a_late_row_is_one_line(rows: int, connection: LakeConnection) -> None:
    sql = f"SELECT CASE WHEN i = {rows - 1} THEN error('late\n') ELSE i::VARCHAR END FROM range({rows}) t(i)"
    with pytest.raises(CannotStart, match="late") as error:
        [*connection.query(sql).rows]
    assert "\n" not in str(error.value)
    with pytest.raises(CannotStart, match="late") as error:
        [*connection.arrow(sql)[1]]
    assert "\n" not in str(error.value)


def test_a_folder_of_sessions_is_converted_once_and_followed(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    generated(folder, 3, 30)
    lake, result = lake_of(str(folder))
    assert result is not None
    assert (result.added, len(lake.keys())) == (3, 3)

    _, again = lake_of(str(folder))
    assert again is not None
    assert (again.added, again.present) == (0, 3)
    (folder / "session-00001.jsonl").unlink()
    assert len(lake_of(str(folder))[0].keys()) == 2
    assert len(list(folder_of(lake).rglob("*.parquet"))) < 12


def test_converted_sessions_of_an_older_version_are_converted_again(tmp_path: Path) -> None:
    generated(tmp_path, 2, 30)
    older = tmp_path / LAKE_CACHE
    older.mkdir()
    (older / MARKER).write_text('{"mcpspy_lake":1}', encoding="utf-8")
    filled(older, summaries(tmp_path))
    lake, result = lake_of(str(tmp_path))

    assert (lake.version, result and result.added) == (VERSION, 2)
    assert answer(LakeConnection(lake), "SELECT DISTINCT compact FROM exchanges") == [(True,)]


def test_a_deleted_session_is_deleted_from_the_tables_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    (first, *_) = generated(folder, 2, 30)
    lake, _ = lake_of(str(folder))
    delete(first)

    assert not folder_of(lake).exists()


def test_a_folder_without_sessions_is_neither(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a lake nor a folder with sessions"):
        lake_of(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"PAR1 and not much more than that, but no footer"])
def test_a_damaged_file_is_one_line(lake: Lake, data: bytes) -> None:
    for path in paths(lake, "notes"):
        path.write_bytes(data)
    with pytest.raises(CannotStart, match=r"mcpspy lake verify checks the files") as error:
        answer(LakeConnection(lake), "SELECT count(*) FROM notes")
    assert "\n" not in str(error.value)


def test_a_question_opens_only_the_tables_that_it_names(lake: Lake) -> None:
    for path in paths(lake, "notes"):
        path.write_bytes(b"")

    assert answer(LakeConnection(lake), "SELECT count(*) FROM main.Sessions JOIN tools USING (session)")[0][0]
    with pytest.raises(CannotStart, match="mcpspy lake verify checks the files"):
        answer(LakeConnection(lake), "SELECT 1 FROM sessions WHERE session IN (SELECT session FROM notes)")


@pytest.mark.parametrize("sql", ["SHOW TABLES", "SELECT view_name FROM duckdb_views() WHERE NOT internal"])
def test_all_tables_are_listed(whole: Path, sql: str) -> None:
    assert {row[0] for row in answer(LakeConnection(Lake(whole)), sql)} == {*TABLES}


def test_an_error_in_a_value_is_not_an_error_in_sql(connection: LakeConnection) -> None:
    with pytest.raises(CannotStart, match="Could not convert string 'weather'"):
        answer(connection, "SELECT server::INT FROM sessions WHERE server = 'weather'")


@pytest.mark.parametrize("text", ["text:LIMIT", 'text:"is Required"', "not text:ok", "text:[]"])
def test_a_search_of_text_finds_the_same_rows_if_all_messages_are_text(
    whole: Path, lines: list[Line], text: str
) -> None:
    needle = text.split(":")[1].strip('"').lower()
    found = [
        needle in (json.dumps(line["request"]) + "\n" + json.dumps(line.get("response"))).lower()
        for line in lines
    ]
    connection = LakeConnection(Lake(whole), lake_filters(text))

    assert answer(connection, "SELECT count(*) FROM exchanges") == [
        (found.count(not text.startswith("not")),)
    ]


def test_a_lake_may_have_any_path(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "it's a [lake]*?")

    assert answer(LakeConnection(Lake(folder)), "SELECT count(*) FROM sessions") == [(12,)]


def test_a_lake_is_read_as_it_is(lake: Lake, found: list[Summary]) -> None:
    read, result = lake_of(lake.storage.location)

    assert (folder_of(read), result) == (folder_of(lake), None)
