"""Commands on many sessions with workers: the output of one process, and a killed worker."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from bench.many_sessions import write_sessions
from mcpspy.io.lake import executors
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.main import main
from tests.io.files import POSIX

RECORDINGS = Path(__file__).parents[3] / "recordings"
PLACEHOLDER = re.compile(rb"\[redacted:[0-9a-f]{8}\]")
CAPTURES = Path(__file__).parents[2] / "core" / "importers" / "files"

KILLING_RULES = '''
import multiprocessing, os, signal
from mcpspy.analysis.lint import EventKind, LintRule, Report, RuleGroup

RULES: list[LintRule] = []
rule = RuleGroup(RULES, page="https://example.com/rules")

@rule.info("ACME102", "session", on=EventKind.SESSION_END, valid="@ bare", invalid="@ bare\\n* exit {{}}")
def ended(event):
    """It ended."""
    yield Report("the end", "")

if multiprocessing.parent_process() is not None:
    with open({log!r}, "a+") as log:
        log.write("x")
        log.flush()
        if log.tell() == 3:
            os.kill(os.getpid(), signal.SIGKILL)
'''
"""A file of rules: the third execution in a worker kills it."""

CLUSTER = """
import json, os, sys
from multiprocessing import resource_tracker
from distributed import Client, LocalCluster, WorkerPlugin
from mcpspy.io.lake import executors
from mcpspy.ui.cli.main import main

class Killer(WorkerPlugin):
    def __init__(self, log, after):
        self.log, self.after = log, after

    def transition(self, key, start, finish, **_):
        if finish == "executing":
            with open(self.log, "a+") as log:
                log.write("x")
                log.flush()
                if log.tell() in self.after:
                    os.kill(os.getpid(), 9)

executors.TASK_BYTES = 1 << 13
if __name__ == "__main__":
    killing, *commands = json.loads(sys.argv[1])
    codes = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        if killing:
            with Client(cluster) as client:
                client.register_plugin(Killer(*killing))
        os.environ["MCPSPY_TEST_SECRET"] = "tangerine-4711"  # Of this process: the workers run already.
        for command in commands:
            codes.append(main([*command, "--on", cluster.scheduler_address]))
    resource_tracker._resource_tracker._stop()  # Its process would outlive this one.
    sys.exit(max(codes))
"""
"""Runs commands on a cluster of two workers; one of them is killed when it starts a task of one of these numbers."""


class Pickling(Executor):
    """Executes tasks in this process, with pickled functions, arguments and results, as workers do."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        function, args = pickle.loads(pickle.dumps((function, args)))
        future.set_result(pickle.loads(pickle.dumps(function(*args))))
        return future


@pytest.fixture
def _pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def pool(_: int) -> Iterator[Executor]:
        yield Pickling()

    monkeypatch.setattr(executors, "pool", pool)
    monkeypatch.setattr(executors, "TASK_BYTES", 1 << 15)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real sessions, and one whose last line is incomplete."""
    folder = tmp_path_factory.mktemp("sessions")
    for path in RECORDINGS.glob("*.jsonl"):
        (folder / path.name).write_bytes(path.read_bytes())
    torn = (RECORDINGS / "peer-sdk-auto.jsonl").read_bytes()
    (folder / "torn.jsonl").write_bytes(torn[: len(torn) // 2].replace(b'"id":"', b'"id":"f', 1))
    return folder


def on_cluster(
    folder: Path, killing: tuple[str, list[int]] | None, *commands: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run commands on a cluster, in another process: Dask leaves threads and processes behind that end with it."""
    (folder / "cluster.py").write_text(CLUSTER, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(folder / "cluster.py"), json.dumps([killing, *commands])],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def output(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capfd.readouterr()
    return (main([str(each) for each in arguments]), *capfd.readouterr())


@pytest.mark.usefixtures("_pickling")
@pytest.mark.parametrize(
    "command",
    [
        "lint",
        "lint --format json --hints",
        "lint --format sarif -q tool:*",
        "lint --statistics --host all",
        "stats",
        "stats --format json -q tool:echo",
        "stats --format json -q text:echo --top 2",
    ],
)
def test_workers_print_what_one_process_prints(
    folder: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    one = output(capfd, *command.split(), folder)

    assert output(capfd, *command.split(), folder, "--workers", 2) == one
    assert one[1]
    assert "incomplete last line" in one[2]


@pytest.mark.usefixtures("_pickling")
@pytest.mark.parametrize("command", ["redact --check", "redact --check --format json --redact-key text"])
def test_workers_find_the_same_secrets(folder: Path, command: str, capfd: pytest.CaptureFixture[str]) -> None:
    one = output(capfd, *command.split(), folder)

    assert output(capfd, *command.split(), folder, "--workers", 2) == one
    assert ("secret" in one[1], one[2]) == (True, "")


def test_workers_redact_a_folder_and_continue_an_interrupted_run(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", lambda size: b"k" * size)
    options = ("--redact-key", "text")
    assert output(capfd, "redact", folder, "-o", tmp_path / "one", *options)[0] == 0
    one = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert one.keys() == {path.name for path in folder.glob("*.jsonl")}
    assert b"[redacted:" in one["peer-sdk-auto.jsonl"]

    missing = sorted(one)[::2]
    (tmp_path / "two").mkdir()
    for name in one.keys() - {*missing}:
        (tmp_path / "two" / name).write_bytes(one[name])
    (tmp_path / "two" / f".{missing[0]}.tmp").write_bytes(b"half a file of a killed process")
    code, out, err = output(
        capfd, "redact", folder, "-o", tmp_path / "two", *options, "--workers", 2, "--format", "json"
    )
    document = json.loads(out)

    assert (code, err) == (0, "")
    assert (document["files"], document["present"]) == (len(missing), len(one) - len(missing))
    assert {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()} == one


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Files of other tools: logs with several sessions, files that are not captures, and the log of a database."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in ("mcp.log", "mcp-cassette.json", "mcphawk.db", "vscode.log", "otlp.json"):
        (folder / name).write_bytes((CAPTURES / name).read_bytes())
    (folder / "notes.txt").write_text("not a capture", encoding="utf-8")
    (folder / "other.db").write_text("neither", encoding="utf-8")
    (folder / "other.db-shm").write_text("of other.db", encoding="utf-8")
    (folder / ".hidden").write_text("hidden", encoding="utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("_pickling")
def test_workers_import_a_folder_as_one_process_does(
    captures: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", lambda size: b"k" * size)
    options = ("import", captures, "--redact-key", "text")
    code, out, err = output(capfd, *options, "-o", tmp_path / "one")
    again = output(capfd, *options, "-o", tmp_path / "two", "--workers", 2)

    assert code == 3
    assert again == (3, out.replace(f"{tmp_path / 'one'}", f"{tmp_path / 'two'}"), err)
    assert [line.partition(": unknown format")[0] for line in err.splitlines()[:2]] == [
        f"mcpspy: {captures / name}" for name in ("notes.txt", "other.db")
    ]
    assert sum("claude-desktop does not contain" in line for line in err.splitlines()) == 1
    assert out.splitlines()[-1] == f"{tmp_path / 'one'}: 10 recordings of 5 files"
    assert {*contents(tmp_path / "one")} == {
        *(f"{name}.jsonl" for name in ("mcp.log", "mcp.log-2", "mcp.log-3", "mcp-cassette.json")),
        *(f"{name}.jsonl" for name in ("mcphawk.db", "mcphawk.db-2", "vscode.log", "vscode.log-2")),
        *("otlp.json.jsonl", "otlp.json-2.jsonl"),
    }
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert b"[redacted:" in contents(tmp_path / "one")["mcphawk.db.jsonl"]
    assert len({Recording(path).header.id for path in (tmp_path / "one").iterdir()}) == 10


@pytest.mark.usefixtures("_pickling")
def test_an_interrupted_import_continues_in_the_middle_of_a_file(
    captures: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", lambda size: b"k" * size)
    output(capfd, "import", captures, "-o", tmp_path / "one")
    whole = contents(tmp_path / "one")
    (tmp_path / "two").mkdir()
    for name in ("otlp.json.jsonl", "otlp.json-2.jsonl", "mcp.log-3.jsonl"):
        (tmp_path / "two" / name).write_bytes(whole[name])
    (tmp_path / "two" / ".mcp.log-2.jsonl.tmp").write_bytes(b"half a recording of a killed process")
    written = (tmp_path / "two" / "mcp.log-3.jsonl").stat().st_mtime_ns
    code, out, _ = output(
        capfd, "import", captures, "-o", tmp_path / "two", "--format", "json", "--workers", 2
    )
    document = json.loads(out)

    assert (code, document["files"], document["present"], len(document["failures"])) == (3, 4, 1, 2)
    assert contents(tmp_path / "two") == whole
    assert (tmp_path / "two" / "mcp.log-3.jsonl").stat().st_mtime_ns == written
    (tmp_path / "two" / "mcp.log.jsonl").unlink()
    (tmp_path / "two" / "mcp.log-2.jsonl").write_bytes(whole["vscode.log.jsonl"])
    code, _, err = output(capfd, "import", captures, "-o", tmp_path / "two")
    assert "mcp.log-2.jsonl: another recording has this name (use another folder)" in err
    assert contents(tmp_path / "two")["mcp.log-2.jsonl"] == whole["vscode.log.jsonl"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["{folder}", "--session", "1"], "--session: not possible with a folder"),
        (["{folder}", "-o", "{folder}"], "the folder of the recordings (use another folder)"),
        (["{folder}/mcp.log", "--workers", "2"], "not a folder, which --workers and --on need"),
        (["{folder}/empty"], "this folder contains no files"),
    ],
)
def test_an_import_that_does_not_fit_is_one_line(
    captures: Path, options: list[str], error: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (captures / "empty").mkdir()
    code, _, err = output(capfd, "import", *(each.format(folder=captures) for each in options))

    assert code == 2
    assert error in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("_pickling")
def test_workers_compare_the_definitions_of_a_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_sessions(tmp_path / "one", 12, 240)
    write_sessions(tmp_path / "two", 12, 240)
    for form in ("text", "json"):
        one = output(capfd, "drift", tmp_path / "one", "--server", "weather", "--format", form)
        two = output(
            capfd, "drift", tmp_path / "two", "--server", "weather", "--format", form, "--workers", 2
        )
        assert (one[0], two) == (1, one)
        assert "lost the tool sum" in one[1]


@POSIX
def test_a_cluster_checks_every_session_if_a_worker_is_killed(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, rules = tmp_path / "log", tmp_path / "rules.py"
    command = ["lint", str(folder), "--format", "json", "--rules-file", str(rules)]
    rules.write_text(KILLING_RULES.format(log=str(log)), encoding="utf-8")
    code, out, _ = output(capfd, *command)
    done = on_cluster(tmp_path, None, command)

    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert len(log.read_text(encoding="utf-8")) > len(list(folder.iterdir()))


@POSIX
def test_a_killed_process_is_one_line(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(KILLING_RULES.format(log=str(tmp_path / "log")), encoding="utf-8")
    code, _, err = output(capfd, "lint", folder, "--rules-file", rules, "--workers", 2)
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]  # Its process would outlive the test.

    assert code == 3
    assert err.splitlines()[-1] == (
        "mcpspy: a worker process was killed, or the scheduler of the cluster"
        " (run it again; with --workers, use fewer if memory is short)"
    )


def test_lint_checks_the_selected_sessions_of_a_lake(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    lake = ("--lake", tmp_path / "lake")
    assert output(capfd, "lake", "add", tmp_path / "lake", RECORDINGS)[0] == 0
    every = json.loads(output(capfd, "lint", RECORDINGS, "--format", "json")[1])["findings"]
    stored = json.loads(output(capfd, "lint", *lake, "--format", "json")[1])["findings"]

    assert sorted((each["code"], each["line"]) for each in stored) == sorted(
        (each["code"], each["line"]) for each in every
    )
    where = "server = 'sdk-peer' AND day >= '2026-08-01' -- comment"
    _, out, _ = output(capfd, "lint", *lake, "--where", where, "--select", "DATA307")
    found = [line for line in out.splitlines() if "DATA307 warning" in line]
    assert len(found) == sum(each["code"] == "DATA307" and "peer-" in each["path"] for each in every) > 0
    assert all(line.startswith("lake:") for line in found)
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--where", "true"], "lint: --where requires --lake LAKE"),
        (["--lake", "x", "last"], "lint: --lake and SESSION exclude each other"),
        (["--workers", "0"], "0: not a number of processes (use 1 to 1024)"),
    ],
)
def test_options_that_do_not_fit_are_one_line(
    options: list[str], error: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = output(capfd, "lint", *options)

    assert code == 2
    assert error in err
    assert err.count("\n") == 1


@POSIX
def test_a_cluster_writes_what_one_process_writes_if_workers_are_killed(
    folder: Path,
    captures: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files, except placeholders: their key is of the run. The secret is in the environment of this process alone."""
    monkeypatch.setenv("MCPSPY_TEST_SECRET", "tangerine-4711")
    secret = tmp_path / "recordings"
    write_sessions(secret, 12, 600)
    for path in secret.iterdir():
        path.write_bytes(path.read_bytes().replace(b"lorem", b"tangerine-4711", 1))
    redact = ["redact", str(secret), "--redact-env", "MCPSPY_TEST_SECRET", "--format", "json", "-o"]
    convert = ["import", str(captures), "--redact-key", "text", "--format", "json", "-o"]
    compare = ["drift", str(secret), "--server", "weather", "--format", "json"]
    here, there = str(tmp_path / "one"), str(tmp_path / "two")
    printed = [output(capfd, *each)[1] for each in ([*redact, here], [*convert, f"{here}-imported"], compare)]
    shutil.rmtree(secret / ".mcpspy-lake")
    log = tmp_path / "log"
    done = on_cluster(
        tmp_path,
        (str(log), [3, 16, 24]),
        [*redact, there],
        [*convert, f"{there}-imported"],
        compare,
    )

    assert done.returncode == 3, done.stderr  # Two of the captures are not captures.
    assert done.stdout.replace(there, here).splitlines() == "".join(printed).splitlines(), done.stderr
    assert json.loads(printed[2])["changes"]
    assert len(log.read_bytes()) > 24
    for name in ("", "-imported"):
        one, two = contents(Path(here + name)), contents(Path(there + name))
        assert {path: masked(data) for path, data in two.items()} == {
            path: masked(data) for path, data in one.items()
        }
    redacted = contents(Path(there))
    assert len(redacted) == 12
    assert not any(b"tangerine" in data for data in redacted.values())
    assert len({placeholder for data in redacted.values() for placeholder in PLACEHOLDER.findall(data)}) == 1


def masked(data: bytes) -> bytes:
    return PLACEHOLDER.sub(b"[redacted]", data)
