"""The copy of another machine's sessions, through a real sshd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.control import discovery
from mcpspy.io.control.client import ControlClient
from mcpspy.io.recording.reader import RecordingState, read_header_of, summarize
from mcpspy.io.remote.mirror import Mirror
from tests.io.files import EXIT, frame, write
from tests.io.remote.conftest import BOUND, Machine, until
from tests.ui.tui.conftest import Live

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="--ssh needs Unix sockets")

ASK = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ECHO = Path(__file__).parents[2] / "servers" / "echo.py"


def same(machine: Machine, copy: Mirror, name: str) -> bool:
    here, there = copy.folder / name, machine.sessions / name
    return here.exists() and here.read_bytes() == there.read_bytes()


def state(path: Path) -> RecordingState:
    return summarize(path, read_header_of(path)).state


def test_the_copy_has_the_same_bytes_is_private_and_is_deleted_at_the_end(machine: Machine) -> None:
    write(machine.sessions / "old.jsonl", frame(0.5, "client", ASK), EXIT)
    big = {"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * 3_000_000}}
    write(machine.sessions / "big.jsonl", frame(0.5, "server", big), EXIT)
    (machine.sessions / "notes.txt").write_text("not a recording", encoding="utf-8")
    with machine.mirror() as copy:
        for name in ("old.jsonl", "big.jsonl"):
            until(lambda name=name: same(machine, copy, name), name)  # type: ignore[misc]
            until(lambda name=name: state(copy.folder / name) is RecordingState.ENDED, "its end")  # type: ignore[misc]
        assert sorted(os.listdir(copy.folder)) == ["big.jsonl", "old.jsonl"]
        modes = [
            path.stat().st_mode & 0o777 for path in (copy.folder, copy.runtime, copy.folder / "old.jsonl")
        ]
        assert modes == [0o700, 0o700, 0o600]
    assert not copy.folder.parent.exists()


def test_a_live_session_is_followed_to_its_end_and_deleted_files_disappear(machine: Machine) -> None:
    write(machine.sessions / "old.jsonl", EXIT)
    live = Live(machine.sessions)
    try:
        with machine.mirror() as copy:
            live.calls(1, 3)
            until(lambda: same(machine, copy, live.path.name), "the calls")
            assert state(copy.folder / live.path.name) is RecordingState.LIVE
            live.end()
            until(lambda: state(copy.folder / live.path.name) is RecordingState.ENDED, "the end")
            assert same(machine, copy, live.path.name)
            (machine.sessions / "old.jsonl").unlink()
            until(lambda: not (copy.folder / "old.jsonl").exists(), "the deletion")
    finally:
        live.die()


def test_messages_are_held_released_and_sent_through_the_connection(machine: Machine) -> None:
    command = [sys.executable, "-m", "mcpspy", "run", "--", sys.executable, str(ECHO)]
    server = subprocess.Popen(
        command,
        env={**os.environ, **machine.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        with machine.mirror() as copy:
            until(lambda: list(copy.runtime.glob("*.sock")), "the socket")
            (recording,) = copy.folder.iterdir()
            with ControlClient(discovery.find(recording), "test") as client:
                assert client.hello["session"] == read_header_of(recording).id
                client.order("hold", query="tool:held")
                call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "held"}}
                server.stdin.write(json.dumps(call).encode() + b"\n")
                server.stdin.flush()
                held = next(event for event in client.events(BOUND) if event["event"] == "held")
                assert json.loads(held["text"]) == call
                changed = {**call, "params": {"name": "changed"}}
                client.order("release", ticket=held["ticket"], message=changed)
                assert json.loads(server.stdout.readline()) == changed
                client.order("notify", to="server", method="notifications/test")
                assert json.loads(server.stdout.readline())["method"] == "notifications/test"
    finally:
        server.stdin.close()
        server.wait(BOUND)
        server.stdout.close()


def test_a_lost_connection_comes_back_and_the_copy_continues(machine: Machine) -> None:
    live = Live(machine.sessions)
    reports: list[str] = []
    try:
        with machine.mirror(reports.append) as copy:
            live.calls(1, 3)
            until(lambda: same(machine, copy, live.path.name), "the calls")
            inode = (copy.folder / live.path.name).stat().st_ino
            ssh = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "/ssh_config"], stdout=subprocess.PIPE, check=True
            )
            os.kill(int(ssh.stdout), 9)
            until(lambda: reports, "the report")
            assert state(copy.folder / live.path.name) is RecordingState.LIVE
            live.calls(4, 6)
            live.end()
            until(lambda: state(copy.folder / live.path.name) is RecordingState.ENDED, "the end")
            assert same(machine, copy, live.path.name)
            assert (copy.folder / live.path.name).stat().st_ino == inode
        assert reports[0].startswith("lost the connection to box")
        assert reports[-1] == "connected to box again"
    finally:
        live.die()


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (None, "--ssh box: no program mcpspy there (install it there, for example: pipx install mcpspy)"),
        (
            "#!/bin/sh\necho 'mcpspy: unknown command remote (see mcpspy --help)' >&2; exit 2\n",
            "--ssh box: the mcpspy there is too old (install the same version on both machines)",
        ),
        (
            '#!/bin/sh\necho \'{"mcpspy_remote":99,"version":"9.0","folder":"/x"}\'\n',
            "--ssh box: mcpspy 9.0 there and ",
        ),
    ],
)
def test_a_machine_without_a_fitting_mcpspy_is_one_clear_line(
    machine: Machine, script: str | None, error: str
) -> None:
    machine.install(script)
    with pytest.raises(CannotStart) as raised, machine.mirror():
        pass
    assert str(raised.value).startswith(error)


def test_output_of_a_login_shell_is_skipped(machine: Machine) -> None:
    machine.install(f'#!/bin/sh\necho Welcome to box\nexec "{sys.executable}" -m mcpspy "$@"\n')
    write(machine.sessions / "old.jsonl", EXIT)
    with machine.mirror() as copy:
        until(lambda: same(machine, copy, "old.jsonl"), "the session")


def test_a_host_that_does_not_answer_is_one_clear_line(machine: Machine) -> None:
    machine.stop()
    with pytest.raises(CannotStart, match=r"--ssh box: .*Connection refused"), machine.mirror():
        pass


def test_an_option_is_not_a_host() -> None:
    with pytest.raises(UsageError, match="not a host"):
        Mirror("-oProxyCommand=true", None, print)


def test_the_copy_of_a_process_that_was_killed_is_deleted_by_the_next_one(
    machine: Machine, tmp_path: Path
) -> None:
    program = (
        "import os, signal, sys, tempfile; from mcpspy.io.remote.mirror import Mirror\n"
        "with Mirror('box', None, print, ssh=(sys.argv[1],)) as copy:\n"
        "    print(copy.folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    write(machine.sessions / "old.jsonl", EXIT)
    killed = subprocess.run(
        [sys.executable, "-c", program, str(machine.ssh)], stdout=subprocess.PIPE, timeout=BOUND, check=False
    )
    left = Path(killed.stdout.decode().strip())
    assert left.exists()
    with machine.mirror() as copy, machine.mirror() as other:
        assert not left.exists()
        assert copy.folder.exists()
        assert other.folder.exists()
