"""The workers of a Dask cluster: the same lake, and one line without a scheduler."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake import executors
from mcpspy.io.lake.executors import cluster, executor_of, mapped
from mcpspy.io.lake.files import Lake
from tests.io.lake.lakes import content


def test_a_lake_is_the_same_by_a_cluster_of_two(recordings: Path, whole: Path, tmp_path: Path) -> None:
    """In another process: Dask leaves threads and processes behind that end with it."""
    code = """
import sys
from multiprocessing import resource_tracker
from distributed import LocalCluster
from mcpspy.io.lake import executors
from mcpspy.ui.cli.main import main

executors.TASK_BYTES = 1 << 15
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        print(main(["lake", "add", *sys.argv[1:], "--on", cluster.scheduler_address]))
    with LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as cluster:
        print(main(["lake", "add", *sys.argv[1:], "--on", cluster.scheduler_address]))
    resource_tracker._resource_tracker._stop()  # Its process would outlive this one.
"""
    (tmp_path / "cluster.py").write_text(code, encoding="utf-8")
    command = [sys.executable, *map(str, (tmp_path / "cluster.py", tmp_path / "lake", recordings))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert done.stdout.splitlines() == [f"{tmp_path / 'lake'}: 12 sessions added, 0 present", "0", "3"], (
        done.stderr
    )
    assert ": this cluster has no workers (start one with dask worker tcp://127.0.0.1:" in done.stderr
    assert content(Lake(tmp_path / "lake")) == content(Lake(whole))


@pytest.mark.parametrize("task", [1, 10, 25, 1000])
def test_results_before_an_error_come_first(monkeypatch: pytest.MonkeyPatch, task: int) -> None:
    def halved(number: int) -> float:
        if number % 2:
            raise UsageError(f"{number}: not even")
        return number / 2

    monkeypatch.setattr(executors, "TASK_BYTES", task)
    with ThreadPoolExecutor(2) as pool:
        assert [*mapped(pool, halved, range(0, 20, 2), lambda _: 10)] == [*range(10)]
        results = mapped(pool, halved, [0, 2, 4, 5, 6, 7], lambda _: 10)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(UsageError, match="5: not even"):
            next(results)


def test_without_a_scheduler_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nothing://x"):
        with (
            pytest.raises(CannotStart, match=f"--on {address}: no Dask scheduler") as error,
            cluster(address),
        ):
            pass
        assert "\n" not in str(error.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.io.extras.find_spec", lambda name: None)
    with (
        pytest.raises(CannotStart, match=r"--on needs distributed, .+\[cluster\]"),
        executor_of(1, "tcp://x:1"),
    ):
        pass
