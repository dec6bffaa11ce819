"""CPU time of `mcpspy lake add` and `mcpspy query`.

Owns the bars: a message costs the same in a folder ten times as large, a run with nothing new costs next to nothing,
two processes or workers of Dask are faster than one (on two idle cores), memory does not grow with the number of
sessions, and the lakes of one process, two processes and a Dask cluster are the same, byte for byte. Ten questions in
SQL are compared with `export -q` of the same exchanges, and with SQLite in the schema of mcphawk, which
`bench/rivals.sh` installs.

    .venv/bin/python bench/lake.py [--quick|--huge] [--check] [--json FILE]
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.many_sessions import write_sessions  # noqa: E402 - the line above must come first.
from bench.measure import Report, Row, main, mcpspy_command  # noqa: E402
from mcpspy.io.lake.files import Lake  # noqa: E402
from mcpspy.io.lake.query import LakeConnection  # noqa: E402

GROWTH = 1.25
"""Maximum ratio of the cost of a message, and of memory, to those in a tenth of the sessions."""

NOTHING_NEW = {10_000_000: 0.01, 1_000_000: 0.01, 100_000: 0.02}
"""Messages → maximum share of the first run that a run with nothing new takes: its start alone is 70 ms."""

SPEEDUP = 1.7
"""Minimum speed of two processes, relative to one."""

FASTER_THAN_EXPORT, FASTER_THAN_SQLITE = 50, 5
"""Minimum speed of SQL over the lake, relative to `export -q` and to SQLite."""

SEARCH_SECONDS = 2
"""Maximum seconds of `query -q` for the slowest of the ten filters, over ten million messages."""

MCPHAWK = Path(__file__).resolve().parent.parent / ".peers" / "mcphawk" / "bin" / "python"

_CALL = "method = 'tools/call'"
_JSON = {"duckdb": "request->>'$.params.arguments.limit' = '5'"}
_JSON["sqlite"] = (
    "json_extract((SELECT body FROM messages m WHERE m.id = request_msg_id), '$.params.arguments.limit') = 5"
)
_TEXT = {"duckdb": "contains(response, 'limit is required')"}
_TEXT["sqlite"] = "(SELECT instr(body, 'limit is required') FROM messages m WHERE m.id = response_msg_id) > 0"
_BYTES = {"duckdb": "response_bytes", "sqlite": "(SELECT size FROM messages m WHERE m.id = response_msg_id)"}
_LATENCY = {"duckdb": "latency_ms", "sqlite": "duration_ms"}
_CODE = {"duckdb": "code", "sqlite": "error_code"}
_DAY = {"duckdb": "strftime(time, '%Y-%m-%d')", "sqlite": "date(e.started_at, 'unixepoch')"}
_SERVER = {"duckdb": "server", "sqlite": "server_name"}
_CLIENT = {"duckdb": "client", "sqlite": "client_name || ' ' || client_version"}


def questions(engine: str) -> dict[str, str]:
    """Return ten questions in SQL of `duckdb` or `sqlite`, each with the filter of its rows."""
    exchanges = "exchanges e" if engine == "duckdb" else "exchanges e JOIN sessions s ON s.id = e.session_id"
    return {
        "method:*": f"SELECT method, count(*) FROM {exchanges} GROUP BY 1 ORDER BY 1",
        "method=tools/call": f"SELECT {_SERVER[engine]}, e.target, count(*) FROM {exchanges} WHERE {_CALL}"
        " GROUP BY 1, 2 ORDER BY 1, 2",
        "method=tools/call status:rpcerror": f"SELECT {_CODE[engine]}, count(*) FROM {exchanges}"
        f" WHERE {_CALL} AND status = 'error' GROUP BY 1 ORDER BY 1",
        "method=tools/call status:ok": f"SELECT e.target, max({_LATENCY[engine]}) FROM {exchanges}"
        f" WHERE {_CALL} AND status = 'ok' GROUP BY 1 ORDER BY 1",
        ">15ms": f"SELECT count(*) FROM {exchanges} WHERE {_LATENCY[engine]} > 15",
        "method=tools/list": f"SELECT {_SERVER[engine]}, sum({_BYTES[engine]}) FROM {exchanges}"
        " WHERE method = 'tools/list' GROUP BY 1 ORDER BY 1",
        "from:client": f"SELECT {_CLIENT[engine]}, count(*) FROM {exchanges} GROUP BY 1 ORDER BY 1",
        "is:unanswered": f"SELECT {_DAY[engine]}, count(*) FROM {exchanges} WHERE status = 'no answer'"
        " GROUP BY 1 ORDER BY 1",
        'text:"limit is required"': f"SELECT count(*) FROM {exchanges} WHERE {_TEXT[engine]}",
        "params.arguments.limit=5": f"SELECT count(*) FROM {exchanges} WHERE {_JSON[engine]}",
    }


CLUSTER = """
import sys
import time
from distributed import LocalCluster
from mcpspy.ui.cli.main import main

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        began = time.perf_counter()
        code = main([*sys.argv[1:], "--on", cluster.scheduler_address])
        print(time.perf_counter() - began)
    sys.exit(code)
"""


class Cost(NamedTuple):
    wall: float
    cpu: float
    memory: float
    """Peak megabytes of its largest process."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    sessions: int
    messages: int
    exports: int = 10
    """Number of questions that are compared with `export -q`."""


class Spent(NamedTuple):
    """Seconds of one question."""

    question: str
    lake: float
    sqlite: float
    query: float
    filtered: float
    export: float | None


def cost(*arguments: str | Path) -> Cost:
    """Return the cost of a command and its children."""
    began = time.perf_counter()
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Users do not compile the package at every start.
    command = [*mcpspy_command(), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    wall = time.perf_counter() - began
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def digest(lake: Path) -> str:
    """Return one digest of the names and bytes of all files, except those of mcpspy alone."""
    files = (path for path in lake.rglob("*") if path.is_file())
    content = hashlib.sha256()
    for name, path in sorted((path.relative_to(lake).as_posix(), path) for path in files):
        if not name.startswith("_"):
            content.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return content.hexdigest()


def mcphawk_database(lake: Path, path: Path) -> sqlite3.Connection:
    """Return a database with mcphawk's own schema and indices, and the exchanges of the lake."""
    make = f"from mcphawk.store.db import connect; connect({str(path)!r}).close()"
    subprocess.run([MCPHAWK, "-c", make], check=True)
    database = sqlite3.connect(path)
    connection = LakeConnection(Lake(lake))
    clients = "SELECT session, any_value(client) AS client FROM exchanges GROUP BY 1"
    sessions = connection.run(
        "SELECT s.session, 'stdio', 'stdio', split_part(c.client, ' ', 1), split_part(c.client, ' ', 2), s.server,"
        f" epoch(s.started), epoch(s.ended) FROM sessions s JOIN ({clients}) c USING (session)"
    ).fetchall()
    database.executemany(
        "INSERT INTO sessions (id, capture, transport, client_name, client_version, server_name, started_at,"
        " last_seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        sessions,
    )
    rows = connection.run(
        "SELECT session, side, method, target, id, epoch(time), latency_ms, status, code, request, response,"
        " request_bytes, response_bytes FROM exchanges ORDER BY session, n"
    )
    number = 0
    while batch := rows.fetchmany(10_000):
        for session, side, method, target, rpc_id, at, latency, status, code, *messages in batch:
            first, (request, response, size, response_size) = number + 1, messages
            stored = [(request, "c2s", "request", size, at), (response, "s2c", "response", response_size, at)]
            stored = [each for each in stored if each[0] is not None]
            number += len(stored)
            database.executemany(
                "INSERT INTO messages (session_id, body, direction, kind, size, ts, tokens) VALUES (?, ?, ?, ?, ?, ?, 0)",
                [(session, *each) for each in stored],
            )
            database.execute(
                "INSERT INTO exchanges (session_id, initiator, method, target, rpc_id, started_at, duration_ms, status,"
                " error_code, request_msg_id, response_msg_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    session,
                    side,
                    method,
                    target,
                    rpc_id,
                    at,
                    latency,
                    status,
                    code,
                    first,
                    None if number == first else number,
                ),
            )
    database.commit()
    return database


def asking(report: Report, size: Size) -> None:
    """Ask ten questions of a compacted lake, of SQLite, and by `export -q`, which takes minutes at ten million."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as name:
        folder = Path(name)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        write_sessions(folder / "many", size.sessions, size.messages)
        cost("lake", "add", folder / "lake", folder / "many", "--workers", "2", "--no-jsonl")
        cost("lake", "compact", folder / "lake")
        database = mcphawk_database(folder / "lake", folder / "mcphawk.db")
        connection = LakeConnection(Lake(folder / "lake"))
        spent: list[Spent] = []
        for (text, sql), other in zip(questions("duckdb").items(), questions("sqlite").values(), strict=True):
            began = time.perf_counter()
            answer = connection.run(sql).fetchall()
            middle = time.perf_counter()
            found = database.execute(other).fetchall()
            ended = time.perf_counter()
            assert answer == found, (text, answer[:3], found[:3])
            count = "SELECT count(*) FROM exchanges"
            export = ("export", folder / "many", "-q", text, "-o", folder / "out.jsonl", "--force")
            spent.append(
                Spent(
                    text,
                    middle - began,
                    ended - middle,
                    cost("query", sql, "--lake", folder / "lake").wall,
                    cost("query", "-q", text, count, "--lake", folder / "lake").wall,
                    cost(*export).wall if len(spent) < size.exports else None,
                )
            )
        database.close()
    _report_questions(report, f"{size.messages:,} messages", spent)


def _report_questions(report: Report, what: str, spent: list[Spent]) -> None:
    for each in spent:
        ratio = each.lake / each.sqlite
        report.add(
            Row(f"{what}, {each.question}: lake", f"{each.lake:.3f} s", f"sqlite {each.sqlite:.3f} s", ratio)
        )
    exported = [each for each in spent if each.export is not None]
    for mine, other, few, most in (
        ("lake", "sqlite", spent, 1 / FASTER_THAN_SQLITE),
        ("query", "export", exported, 1 / FASTER_THAN_EXPORT),
        ("filtered", "export", exported, 1 / FASTER_THAN_EXPORT),
    ):
        seconds, others = (sum(getattr(each, name) for each in few) / len(few) for name in (mine, other))
        name = "query -q" if mine == "filtered" else mine
        figure = f"{what}, mean of {len(few)} questions: {name}"
        report.add(Row(figure, f"{seconds:.3f} s", f"{other} {others:.3f} s", seconds / others, most=most))
    slowest = max(spent, key=attrgetter("filtered"))
    report.add(
        Row(
            f"{what} searched by a filter, the slowest of ten",
            f"{slowest.filtered:.2f} s",
            slowest.question,
            slowest.filtered,
            most=SEARCH_SECONDS,
            unit="s",
        )
    )


def adding(report: Report, size: Size) -> None:
    """Add many sessions, a tenth of them, nothing new, with two processes, and on a cluster of two workers."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as name:
        folder = Path(name)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        write_sessions(folder / "few", size.sessions // 10, size.messages // 10)
        write_sessions(folder / "many", size.sessions, size.messages)
        few = cost("lake", "add", folder / "lake-few", folder / "few")
        many = cost("lake", "add", folder / "lake", folder / "many")
        again = cost("lake", "add", folder / "lake", folder / "many")
        two = cost("lake", "add", folder / "lake-two", folder / "many", "--workers", "2")
        (folder / "cluster.py").write_text(CLUSTER, encoding="utf-8")
        command = [
            sys.executable,
            *map(str, (folder / "cluster.py", "lake", "add", folder / "lake-on", folder / "many")),
        ]
        root = Path(__file__).resolve().parent.parent
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root).stdout
        on_cluster = float(output.split()[-1])
        digests = {digest(folder / each) for each in ("lake", "lake-two", "lake-on")}
    what = f"{size.messages:,} messages"
    each, least = (
        1e6 * used.cpu / count for used, count in ((many, size.messages), (few, size.messages // 10))
    )
    report.add(
        Row(
            f"lake add, {what}: a message",
            f"{each:.0f} µs CPU",
            f"in a tenth of the sessions {least:.0f} µs",
            each / least,
            most=GROWTH,
        ),
        Row(
            f"lake add, {what}: memory",
            f"{many.memory:.0f} MB",
            f"{few.memory:.0f} MB",
            many.memory / few.memory,
            most=GROWTH,
        ),
        Row(
            f"lake add, {what}: nothing new",
            f"{again.cpu:.2f} s CPU",
            f"first run {many.cpu:.1f} s",
            again.cpu / many.cpu,
            most=NOTHING_NEW[size.messages],
        ),
        Row(
            f"lake add, {what}: two processes",
            f"{two.wall:.1f} s",
            f"one {many.wall:.1f} s",
            two.wall / many.wall,
            most=1 / SPEEDUP,
        ),
        Row(
            f"lake add, {what}: two workers of Dask",
            f"{on_cluster:.1f} s",
            f"one process {many.wall:.1f} s",
            on_cluster / many.wall,
            most=1 / SPEEDUP,
        ),
        Row(
            f"lake add, {what}: digests",
            f"{len(digests)}",
            "one process, two, and two workers of Dask",
            len(digests),
            most=1,
            unit="digest",
        ),
    )


if __name__ == "__main__":
    sys.exit(
        main(
            "lake",
            "CPU time of `mcpspy lake add` and `mcpspy query`.",
            full=Size(1_000, 1_000_000),
            quick=Size(100, 100_000),
            huge=Size(1_000, 10_000_000, exports=2),
            figures={"adding": adding, "asking": asking},
            lacks=None if MCPHAWK.exists() else "mcphawk is missing: run bench/rivals.sh",
        )
    )
