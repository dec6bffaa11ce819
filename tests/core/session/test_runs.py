"""Runs of a host: the evidence that joins sessions, and what does not."""

from __future__ import annotations

import random

import pytest

from mcpspy.core.session.runs import GAP, HostProcess, Run, RunMember, runs_of

HOST = HostProcess(100, "agent", 1000.0)


def member(name: str, began: float, *hosts: HostProcess, ended: float = 0.0, traces: str = "") -> RunMember:
    return RunMember(name, began, ended or began + 5, hosts, frozenset(traces.split()))


def ids(runs: list[Run]) -> list[list[str]]:
    return [[each.id for each in run.members] for run in runs]


def test_sessions_of_one_process_are_a_run() -> None:
    later = HOST._replace(started=1000.01)
    assert ids(runs_of([member("b", 1002, later), member("a", 1001, HOST)])) == [["a", "b"]]


def test_a_pid_that_is_used_again_is_another_run() -> None:
    again = HOST._replace(started=9000.0)
    assert ids(runs_of([member("a", 1001, HOST), member("b", 9001, again)])) == [["a"], ["b"]]


@pytest.mark.parametrize(("pause", "joined"), [(GAP - 1, True), (GAP + 1, False)])
def test_without_a_start_sessions_of_a_pid_must_follow_each_other(pause: float, joined: bool) -> None:
    host = HostProcess(100)
    runs = runs_of([member("a", 1000, host, ended=1010), member("b", 1010 + pause, host)])
    assert ids(runs) == ([["a", "b"]] if joined else [["a"], ["b"]])


def test_a_session_over_http_is_in_the_run_of_each_of_its_clients() -> None:
    other = HostProcess(200, "agent", 1000.0)
    runs = runs_of([member("a", 1001, HOST), member("b", 1001, other), member("http", 1002, HOST, other)])
    assert ids(runs) == [["a", "http"], ["b", "http"]]


def test_a_shared_trace_joins_a_session_without_a_process_and_nothing_else_does() -> None:
    first = member("a", 1001, HOST, traces="t1")
    assert ids(runs_of([first, member("b", 1002, traces="t1 t2"), member("c", 1002)])) == [["a", "b"]]


def test_a_trace_of_two_runs_joins_neither() -> None:
    other = HostProcess(200, "agent", 1000.0)
    runs = [member("a", 1001, HOST, traces="t"), member("b", 1001, other, traces="t")]
    assert ids(runs_of([*runs, member("c", 1002, traces="t")])) == [["a"], ["b"]]


def test_the_id_stays_while_more_sessions_begin() -> None:
    (before,) = runs_of([member("a", 1001, HOST)])
    (after,) = runs_of([member("a", 1001, HOST), member("b", 1002, HOST)])
    assert before.id == after.id
    assert len(before.id) == 8


def test_a_thousand_interleavings_of_hosts_are_joined_right_and_never_across_users() -> None:
    """Hosts of two users start and stop on one machine, with pids that are used again, and share an HTTP proxy."""
    right = wrong = total = 0
    for seed in range(1000):
        chance = random.Random(seed)
        truth: dict[str, int] = {}
        found: list[RunMember] = []
        for number in range(chance.randrange(2, 7)):
            began = chance.uniform(0, 600)
            pid = chance.choice([1000 + number, 1000])  # Pids are used again, after the process has ended.
            started = began if pid != 1000 else number * 1000.0
            knows_start = chance.random() < 0.9 or pid == 1000
            host = HostProcess(pid, "agent", started if knows_start else None)
            for server in range(chance.randrange(1, 5)):
                name, at = f"{number}.{server}", started + chance.uniform(0.1, 3)
                read = host._replace(
                    started=host.started + chance.uniform(-0.02, 0.02) if host.started else None
                )
                transport = chance.choice(["stdio", "http", "traced"])
                traces = f"trace{number}" if transport == "traced" or server == 0 else ""
                hosts = () if transport == "traced" and server else (read,)
                truth[name] = number
                found.append(member(name, at, *hosts, ended=at + chance.uniform(1, 30), traces=traces))
        runs = runs_of(found)
        run_of = {each.id: run for run in runs for each in run.members}
        for name, number in truth.items():
            total += 1
            mates = {truth[each.id] for each in run_of[name].members} if name in run_of else set()
            wrong += bool(mates - {number})
            right += name in run_of and {each for each in truth if truth[each] == number} == {
                each.id for each in run_of[name].members
            }
    assert wrong == 0
    assert right / total >= 0.99


def test_a_run_recognises_its_process_by_pid_and_start() -> None:
    run = Run(HOST, member("a", 1001, HOST))
    assert run.has_host(HOST._replace(started=1000.01), 5000.0)
    assert not run.has_host(HOST._replace(pid=101), 1001.0)
    assert not run.has_host(HOST._replace(started=9000.0), 1001.0)
    assert not run.has_host(HOST._replace(started=None), 1001.0)
