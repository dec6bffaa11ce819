"""`mcpspy lake`, `mcpspy query` and `mcpspy drift` on one lake: output and exit codes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from bench.many_sessions import write_sessions
from mcpspy.io.extras import install_command
from mcpspy.io.lake import files
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import lake as lake_command
from mcpspy.ui.cli.main import main


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `recordings` and their `lake`."""
    folder = tmp_path_factory.mktemp("lake")
    write_sessions(folder / "recordings", 12, 360)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        assert main(["lake", "add", str(folder / "lake"), str(folder / "recordings")]) == 0
    return folder


@pytest.fixture(autouse=True)
def _settings(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(made / "config"))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(each) for each in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_adding_again_reports_what_is_present(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = made / "lake"
    assert run(capsys, "lake", "add", lake, made / "recordings") == (
        0,
        f"{lake}: 0 sessions added, 12 present\n",
        "",
    )
    code, out, _ = run(
        capsys, "lake", "add", lake, made / "recordings" / "session-00000.jsonl", "--format", "json"
    )
    assert (code, json.loads(out)) == (
        0,
        {"lake": str(lake), "added": 0, "present": 1, "live": 0, "failures": []},
    )


def test_a_session_that_cannot_be_added_is_reported(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sessions(tmp_path / "more", 2, 20)
    (made / "lake" / "_inputs.jsonl").touch()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.Lake, "put", fail)
    code, out, err = run(capsys, "lake", "add", tmp_path / "lake", tmp_path / "more")
    assert code == 3
    assert out.endswith("0 sessions added, 0 present\n")
    assert err.count("No space left on device") == 2


def test_verify_compact_and_rm(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    assert run(capsys, "lake", "add", lake, made / "recordings")[0] == 0
    code, out, err = run(capsys, "lake", "verify", lake)
    assert (code, err) == (0, "")
    assert out.startswith(f"{lake}: 12 sessions, ")
    assert out.endswith("no problems\n")
    assert run(capsys, "lake", "compact", lake)[0] == 0
    next(lake.glob("tools/*/*/*.parquet")).unlink()
    code, out, err = run(capsys, "lake", "verify", lake, "--format", "json")
    assert (code, len(json.loads(out)["problems"]), err.count("\n")) == (1, 1, 1)
    days = {path.name.removeprefix("day=") for path in lake.glob("*/day=*")}
    code, out, err = run(capsys, "lake", "rm", lake, "--older-than", "1d", "--format", "json")
    removed = json.loads(out)
    assert (code, err) == (0, "")
    assert removed["days"] == sum(day < removed["before"] for day in days)
    assert {path.parent.parent.name[4:] for path in lake.rglob("*.parquet")} == {
        day for day in days if day >= removed["before"]
    }


def test_an_age_before_all_times_removes_nothing_and_a_wrong_one_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    run(capsys, "lake", "add", lake, made / "recordings")
    assert run(capsys, "lake", "rm", lake, "--older-than", "99999999w") == (
        0,
        f"{lake}: 0 days before 0001-01-01 deleted\n",
        "",
    )
    assert run(capsys, "lake", "rm", lake, "--older-than", "soon") == (
        2,
        "",
        "mcpspy: lake: --older-than soon: not an age (use 12h, 30d or 8w)\n",
    )


def test_live_sessions_are_counted_and_not_added(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sessions"
    write_sessions(folder, 2, 20)
    writer = Writer(str(folder), None, {"name": "live"}, say=pytest.fail)
    writer.note(0.0, "stderr", text="x")
    try:
        code, out, err = run(capsys, "lake", "add", tmp_path / "lake", folder)
        assert (code, out, err) == (
            0,
            f"{tmp_path / 'lake'}: 2 sessions added, 0 present, 1 live and not added\n",
            "",
        )
        query = ("query", "SELECT count(*) AS c FROM sessions", "--dir", folder, "--format", "json")
        assert run(capsys, *query) == (0, '{"c":2}\n', "mcpspy: query: 1 live session not included\n")
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["lake", "add", "x"], "lake add: missing SESSION (see mcpspy lake --help)"),
        (["lake", "verify", "x", "y"], "lake: SESSION requires add"),
        (
            ["lake", "verify", "/nowhere"],
            "/nowhere: not a lake (create one with mcpspy lake add LAKE SESSION)",
        ),
        (["lake", "rm", "x"], "lake rm: missing --older-than"),
        (["lake", "compact", "x", "--older-than", "1d"], "lake: --older-than requires rm"),
        (["lake", "fill", "x"], "lake: ACTION fill: not one of add, verify, compact, rm"),
        (["query"], "query: missing SQL or --filter (see mcpspy query --help)"),
        (["query", "-q", "x", "--schema"], "query: --filter and --schema exclude each other"),
        (["query", "SELECT 1", "--schema"], "query: SQL and --schema exclude each other"),
        (
            ["query", "SELECT 1", "--format", "parquet"],
            "query: --format parquet: missing --output (use -o FILE)",
        ),
        (
            ["query", "--schema", "--format", "csv"],
            "query: --schema and --format exclude each other (it is printed as text)",
        ),
        (["drift", "x"], "drift: missing --server (see mcpspy drift --help)"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *arguments) == (2, "", f"mcpspy: {error}\n")


@pytest.mark.parametrize(
    "command", [["lake", "verify", "x"], ["query", "drift"], ["drift", "x", "--server", "y"]]
)
def test_a_missing_package_is_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.io.extras.find_spec", lambda name: None)

    assert run(capsys, *command) == (
        3,
        "",
        f"mcpspy: {command[0]} needs pyarrow, which is not installed ({install_command('lake')})\n",
    )


SQL = "SELECT server, n, time, latency_ms, issues, status FROM exchanges WHERE n = 2 ORDER BY time, session LIMIT 2"


def test_results_are_a_table(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "query", SQL, "--lake", made / "lake")
    head, first, second, count = out.splitlines()

    assert (code, err) == (0, "")
    assert head.split() == ["server", "n", "time", "latency_ms", "issues", "status"]
    assert first.split()[:3] == ["weather", "2", "2026-10-01"]
    assert first.index("2026") == head.index("time") == second.index("2026")
    assert count == "(2 rows)"


def test_results_are_json_lines_csv_and_parquet(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = ("--lake", made / "lake", "--format")
    lines = [json.loads(line) for line in run(capsys, "query", SQL, *lake, "json")[1].splitlines()]
    cells = list(csv.DictReader(run(capsys, "query", SQL, *lake, "csv")[1].splitlines()))
    assert run(capsys, "query", SQL, *lake, "parquet", "-o", tmp_path / "out.parquet") == (0, "", "")
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()

    assert [row["latency_ms"] for row in lines] == [row["latency_ms"] for row in table]
    assert [row["latency_ms"] for row in lines] == [float(row["latency_ms"]) for row in cells]
    assert [row["server"] for row in cells] == [row["server"] for row in table]
    assert lines[0]["issues"] == []
    assert lines[0]["time"].startswith("2026-10-01T00:00:")
    assert lines[0]["time"].endswith("Z")


def test_sums_are_numbers_in_json(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT sum(n) AS n, sum(n) / 4.0 AS m, 1.5::DECIMAL(3, 1) AS d FROM exchanges WHERE n = 1"
    (line,) = run(capsys, "query", sql, "--lake", made / "lake", "--format", "json")[1].splitlines()

    assert json.loads(line) == {"n": 12, "m": 3.0, "d": 1.5}


def test_columns_are_aligned(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 'größe' AS a, 12 AS n, 'x' AS b UNION ALL SELECT 'a', 3, 'y' ORDER BY n DESC"

    assert run(capsys, "query", sql, "--lake", made / "lake")[1].splitlines() == [
        "a       n  b",
        "größe  12  x",
        "a       3  y",
        "(2 rows)",
    ]


def test_an_existing_file_is_not_overwritten(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("x")
    code, _, err = run(
        capsys, "query", SQL, "--lake", made / "lake", "--format", "csv", "-o", tmp_path / "out"
    )

    assert (code, "file exists" in err) == (2, True)
    assert (tmp_path / "out").read_text() == "x"


def test_a_formula_in_a_cell_is_text(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "query", "SELECT '=1+1' AS a", "--lake", made / "lake", "--format", "csv")[1]

    assert out == "a\r\n'=1+1\r\n"


def test_control_characters_do_not_reach_the_terminal(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "query", "SELECT chr(27) || '[2J' AS a, 'x' AS b", "--lake", made / "lake")[1]

    assert "\x1b" not in out


def test_the_schema_lists_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "query", "--schema")

    assert code == 0
    tables = [line for line in out.splitlines() if not line.startswith(" ")]
    assert tables == ["exchanges", "messages", "tools", "findings", "notes", "sessions"]


def test_a_folder_of_sessions_needs_no_lake(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys,
        "query",
        "SELECT count(*) AS c FROM sessions",
        "--dir",
        made / "recordings",
        "--format",
        "json",
    )

    assert (code, out) == (0, '{"c":12}\n')


def test_drift_lists_breaking_changes_of_a_server(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "drift", made / "lake", "--server", "weather", "--format", "json")
    changes = json.loads(out)["changes"]

    assert code == 1
    assert {change["tool"] for change in changes} <= {"search", "sum"}
    assert any(change["severity"] == "breaking" for change in changes)
    assert (
        run(capsys, "drift", made / "lake", "--server", "weather")[1].splitlines()[-1].startswith("weather: ")
    )
    assert run(capsys, "drift", made / "lake", "--server", "weather", "--format", "markdown")[1].startswith(
        "### "
    )


def test_drift_as_a_page_shows_every_change_and_runs_nothing(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "drift", made / "lake", "--server", "weather", "--format", "html")
    changes = json.loads(run(capsys, "drift", made / "lake", "--server", "weather", "--format", "json")[1])[
        "changes"
    ]

    assert code == 1
    assert out.count("<h2>") == len(changes) > 0
    assert out.count('<span class="bad">') == sum(change["severity"] == "breaking" for change in changes)
    assert "default-src 'none'" in out
    assert "<script" not in out


def test_drift_of_an_unknown_server_names_the_known_ones(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "drift", made / "lake", "--server", "weathr")

    assert code == 2
    assert err == (
        f"mcpspy: drift: --server weathr: not in {made / 'lake'}"
        " (servers: datenbank-größe, files/local, issues, weather)\n"
    )


def test_show_mock_replay_and_diff_read_a_session_of_the_lake(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lake = made / "recordings" / "session-00003.jsonl", made / "lake"
    session = f"lake:{json.loads(path.read_text(encoding='utf-8').splitlines()[0])['id']}"
    expected = run(capsys, "show", path, "--width", "0")
    monkeypatch.delenv("MCPSPY_LAKE", raising=False)

    assert expected[1].count("\n") > 20
    assert run(capsys, "show", session, "--width", "0", "--lake", lake) == expected
    assert run(capsys, "show", session)[2].endswith("(use --lake LAKE, or set MCPSPY_LAKE)\n")
    monkeypatch.setenv("MCPSPY_LAKE", str(lake))
    assert run(capsys, "show", session, "--width", "0") == expected
    assert run(capsys, "query", "SELECT count(*) AS c FROM sessions", "--format", "json")[1] == '{"c":12}\n'
    assert run(capsys, "diff", session, path)[0] == 0
    server = [sys.executable, "-m", "mcpspy", "mock", session]
    code, out, err = run(capsys, "replay", session, "--no-record", "--", *server)
    assert (code, err) == (0, ""), out


def test_watch_adds_sessions_when_they_have_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sessions(tmp_path / "more", 3, 30)
    folder, waiting = tmp_path / "recordings", [*(tmp_path / "more").glob("*.jsonl")]
    folder.mkdir()
    waiting.pop().rename(folder / "first.jsonl")

    def sleep(_: float) -> None:
        """Another session ends while the command waits; at last, the user presses Ctrl-C."""
        if not waiting:
            raise KeyboardInterrupt
        path = waiting.pop()
        path.rename(folder / path.name)

    monkeypatch.setattr(lake_command, "time", SimpleNamespace(sleep=sleep))
    code, out, err = run(capsys, "lake", "add", tmp_path / "lake", folder, "--watch")

    assert (code, err) == (130, "")
    assert out.splitlines() == [f"{tmp_path / 'lake'}: 1 session added, 0 present"] * 3
    assert run(capsys, "lake", "verify", tmp_path / "lake")[1].startswith(f"{tmp_path / 'lake'}: 3 sessions")


def test_a_filter_selects_exchanges_and_narrows_queries(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = ("--lake", made / "lake", "--format", "json")
    code, out, _ = run(capsys, "query", "-q", "tool:search status:ok", *lake)
    found = [json.loads(line) for line in out.splitlines()]
    sql = "SELECT count(*) AS c FROM exchanges WHERE method = 'tools/call' AND target = 'search' AND status = 'ok'"
    count = json.loads(run(capsys, "query", sql, *lake)[1])["c"]

    assert (code, len(found)) == (0, count)
    assert {(row["method"], row["target"], row["status"]) for row in found} == {
        ("tools/call", "search", "ok")
    }
    narrowed = run(capsys, "query", "SELECT count(*) AS c FROM exchanges", "-q", "/^.*search/ is:ok", *lake)
    assert json.loads(narrowed[1])["c"] == count
    assert run(capsys, "query", "top-tools", "-q", "tool:nothing", *lake) == (0, "", "")


def test_a_filter_that_the_tables_cannot_answer_is_one_line(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "query", "-q", "tool:x since:-5m", "--lake", made / "lake")
    assert (code, out) == (2, "")
    assert err == (
        "mcpspy: query: --filter, character 14: a time in a session: compare the column time in SQL,"
        " as in time >= '2026-11-01' (see docs/filter.md)\n"
    )


VALUES = """\
SELECT TIMESTAMPTZ '2026-11-21 08:28:06.5+01' AS at, DATE '2026-11-21' AS day, sum(range) AS small,
  sum(9000000000000000000::HUGEINT) AS large, 1.5::DECIMAL(4, 1) AS share, [1::HUGEINT << 70] AS list, MAP {2: 'b'} AS map,
  'x'::BLOB AS bytes, INTERVAL 3 DAY AS age, NULL AS none FROM range(3)"""
"""A row with values of many types."""


def test_values_of_all_types_are_printed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = ("query", VALUES, "--lake", made / "lake", "--format")
    assert json.loads(run(capsys, *query, "json")[1]) == {
        "at": "2026-11-21T07:28:06.500000Z",
        "day": "2026-11-21",
        "small": 3,
        "large": "27000000000000000000",
        "share": 1.5,
        "list": ["1180591620717411303424"],
        "map": {"2": "b"},
        "bytes": "x",
        "age": "3 days, 0:00:00",
        "none": None,
    }
    (row,) = csv.DictReader(run(capsys, *query, "csv")[1].splitlines())
    assert (row["at"], row["large"], row["none"]) == ("2026-11-21 07:28:06.500", "27000000000000000000", "")


@pytest.mark.parametrize("options", [[], ["-q", "params.arguments.limit=5 or result.isError=true"]])
def test_a_query_of_a_lake_does_not_import_pyarrow(made: Path, options: list[str]) -> None:
    code = "import sys; from mcpspy.ui.cli.main import main; main(sys.argv[1:]); print(*{'pyarrow', 'numpy', 'textual'} & {*sys.modules})"
    command = [sys.executable, "-c", code, "query", "agents", *options, "--lake", str(made / "lake")]
    found = subprocess.run(command, capture_output=True, timeout=60, check=True)

    assert found.stdout.decode().splitlines()[-2:] == ["(3 rows)", ""]


def test_a_query_draws_a_chart(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = ("query", "SELECT server, count(*) AS calls FROM exchanges GROUP BY 1 ORDER BY 1", "--plot")
    lake = ("--lake", made / "lake")
    code, out, _ = run(capsys, *query, *lake)

    assert (code, len(out.splitlines())) == (0, 20)
    assert "calls" in out
    assert "weather" in out
    for name, start in (("x.svg", "<svg"), ("x.html", "<!doctype html>")):
        assert run(capsys, *query, *lake, "-o", tmp_path / name) == (0, "", "")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize("options", [["-o", "x.png"], ["--format", "json"], ["-o", "x"]])
def test_a_chart_has_no_other_format(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "query", "SELECT 1", "--plot", *options)

    assert code == 2
    begins = (
        "--plot and --format exclude"
        if "--format" in options
        else f"--output {options[1]}: not a file for --plot"
    )
    assert err.startswith(f"mcpspy: query: {begins}")


@pytest.mark.parametrize("options", [["SELECT '\udcff'"], ["-q", "tool=\udcff"]])
def test_text_that_is_not_utf_8_is_one_line(
    made: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "query", *options, "--lake", made / "lake")

    assert code == 2
    assert "not UTF-8" in err
    assert err.count("\n") == 1


def test_columns_of_the_same_name_are_numbered(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = ("--lake", made / "lake")
    sql = "SELECT 'x' AS a, 1 AS a, 2 AS a"

    assert run(capsys, "query", sql, *lake)[1].split()[:6] == ["a", "a_2", "a_3", "x", "1", "2"]
    assert run(capsys, "query", sql, *lake, "--plot")[0] == 0
    assert json.loads(run(capsys, "query", sql, *lake, "--format", "json")[1]) == {
        "a": "x",
        "a_2": 1,
        "a_3": 2,
    }
