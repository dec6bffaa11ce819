"""The process of the host, read from the system."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime

import pytest

from mcpspy.io import host_process

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

PRINT = "import json; from mcpspy.io.host_process import parent; print(json.dumps(parent()))"


def parent_in(*command: str) -> dict[str, object]:
    import json

    done = subprocess.run([*command], capture_output=True, text=True, timeout=30, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@linux
def test_the_parent_is_the_process_that_started_it_with_program_and_start() -> None:
    found = parent_in(sys.executable, "-c", PRINT)
    assert found["pid"] == os.getpid()
    assert str(found["program"]).startswith(("python", "pytest"))
    started = datetime.fromisoformat(str(found["started"])).timestamp()
    assert 0 < datetime.now().timestamp() - started < 86_400


@linux
def test_shells_and_launchers_between_are_skipped() -> None:
    quoted = f"'{sys.executable}' -c '{PRINT}'"
    assert parent_in("sh", "-c", f'env sh -c "{quoted}; true"; true')["pid"] == os.getpid()


@linux
def test_the_shell_of_a_terminal_is_the_host_of_what_it_starts() -> None:
    master, slave = os.openpty()
    command = ["setsid", "--ctty", "sh", "-c", f"'{sys.executable}' -c '{PRINT}'; echo $$"]
    with subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        found, pid = shell.stdout.read().splitlines()
    os.close(master)
    os.close(slave)
    assert f'"pid": {pid}, "program": "sh"' in found


def test_without_proc_only_the_pid_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert host_process.parent() == {"pid": os.getppid()}
    assert host_process.clients_of([("127.0.0.1", 1)]) == {}


CONNECT = "import socket,sys; s=socket.create_connection(('127.0.0.1', {port})); sys.stdin.read()"


@linux
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_the_clients_of_connections_on_this_machine_are_found(*, is_known: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as running:
        code = CONNECT.format(port=listener.getsockname()[1])
        expected, pids = {}, []
        for _ in range(2):
            client = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
            running.enter_context(client)
            connection, address = listener.accept()
            running.enter_context(connection)
            expected[address] = client.pid
            pids.append(client.pid)
        found = host_process.clients_of(expected, pids[1:] if is_known else [])
    assert {address: fields["pid"] for address, fields in found.items()} == expected


@pytest.mark.parametrize("address", [None, "", ("127.0.0.1", 1), ("10.0.0.1", 65_000)])
def test_other_addresses_have_no_known_client(address: object) -> None:
    assert host_process.clients_of([address]) == {}
