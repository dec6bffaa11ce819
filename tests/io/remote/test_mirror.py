"""The copy of another machine's sessions, through a real sshd."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy import __version__
from mcpspy.core.recording.decode import Frame
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.control.client import ControlClient, find_session
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of, summarize
from mcpspy.io.recording.writer import Writer
from mcpspy.io.remote import mirror
from mcpspy.io.remote.mirror import Mirror
from tests.io.files import EXIT, frame, write
from tests.io.remote.conftest import BOUND, Machine, until
from tests.ui.tui.conftest import Live

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="--ssh needs Unix sockets")

ASK = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = f"""#!/bin/sh
echo '{{"mcpspy_remote":1,"version":"{__version__}","folder":"/x"}}'
"""
"""The beginning of a program that greets as mcpspy does."""

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


def test_the_next_part_of_a_live_session_is_copied_and_read(machine: Machine) -> None:
    writer = Writer(str(machine.sessions), None, {"name": "srv"}, say=print, max_size=400)
    first = Path(writer.path).name
    try:
        with machine.mirror() as copy:
            until(lambda: same(machine, copy, first), "the first part")
            for number in range(9):
                writer.write(frame(number / 10, "client", {**ASK, "id": number}))
            parts = [part.name for part in machine.sessions.iterdir()]
            assert len(parts) > 1
            until(lambda: all(same(machine, copy, name) for name in parts), "all parts")
            assert sum(1 for entry in Recording(copy.folder / first) if isinstance(entry, Frame)) == 9
    finally:
        writer.close()


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
            with ControlClient(find_session(recording), "test") as client:
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


def test_a_viewer_that_leaves_and_a_session_that_ends_close_both_ends(machine: Machine) -> None:
    command = [sys.executable, "-m", "mcpspy", "run", "--", sys.executable, str(ECHO)]
    with subprocess.Popen(
        command,
        env={**os.environ, **machine.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        with machine.mirror() as copy:
            until(lambda: list(copy.runtime.glob("*.sock")), "the socket")
            (path,) = copy.runtime.glob("*.sock")
            with ControlClient(str(path), "first") as client:
                client.order("hold", query="tool:held")
                assert client.order("list")
            with ControlClient(
                str(path), "second"
            ) as client:  # The session has noticed that the first one left.
                assert client.hello["session"] == path.stem
                until(lambda: "first" not in str(client.order("list")), "the end of the first viewer")
                server.stdin.close()
                assert [event["event"] for event in client.events(BOUND)][-1] == "end"
            until(lambda: not path.exists(), "the end of the socket")
            with pytest.raises(CannotStart, match="the session has ended"):
                ControlClient(str(path), "third")


@pytest.mark.parametrize("how", ["truncated", "replaced"])
def test_a_recording_that_begins_again_is_copied_again(machine: Machine, how: str) -> None:
    call = [frame(number / 10, "client", {**ASK, "id": number}) for number in range(9)]
    path = write(machine.sessions / "old.jsonl", *call, EXIT)
    with machine.mirror() as copy:
        until(lambda: same(machine, copy, "old.jsonl"), "the session")
        if how == "replaced":
            path.rename(machine.base / "moved.jsonl")
        write(path, *call[:2], EXIT, id="cd34ef56")
        until(lambda: same(machine, copy, "old.jsonl"), "the new content")


def test_files_that_disappear_while_there_is_no_connection_disappear_from_the_copy(machine: Machine) -> None:
    write(machine.sessions / "old.jsonl", EXIT)
    write(machine.sessions / "kept.jsonl", EXIT)
    os.mkfifo(machine.sessions / "pipe.jsonl")  # Would block its reader.
    reports: list[str] = []
    with machine.mirror(reports.append) as copy:
        until(lambda: same(machine, copy, "old.jsonl") and same(machine, copy, "kept.jsonl"), "the sessions")
        script = (machine.bin / "mcpspy").read_text(encoding="utf-8")
        failing = "#!/bin/sh\necho 'out of order' >&2; exit 1\n"
        machine.install(failing)
        for losses in (1, 2):  # Each loss is reported, and none of the attempts after it.
            machine.disconnect()
            until(lambda losses=losses: len(reports) == 2 * losses - 1, "the report")  # type: ignore[misc]
            if losses == 1:
                machine.install(script)
                until(lambda: len(reports) == 2, "the connection")
                machine.install(failing)
        (machine.sessions / "old.jsonl").unlink()
        machine.install(script)
        until(lambda: not (copy.folder / "old.jsonl").exists(), "the deletion")
        assert os.listdir(copy.folder) == ["kept.jsonl"]
    assert [each.partition(" (")[0].partition(";")[0] for each in reports] == [
        *("lost the connection to box", "connected to box again") * 2
    ]


def test_a_machine_chooses_no_files_outside_of_the_copy(machine: Machine) -> None:
    names = "../evil.jsonl", "/tmp/evil.jsonl", "sub/evil.jsonl", "evil.sh", ".."
    events = [{"event": "file", "file": name, "at": 0, "live": True} for name in names]
    events += [{"event": "data", "file": name, "at": 0, "size": 0} for name in names]
    events += [{"event": "sockets", "sessions": ["../evil", "a/b", "x" * 65]}, {"event": "synced"}]
    lines = "".join(f"echo {shlex.quote(json.dumps(each))}\n" for each in events)
    machine.install(f"{HELLO}{lines}exec cat >/dev/null\n")
    with machine.mirror() as copy:
        found = {str(path.relative_to(copy.folder.parent)) for path in copy.folder.parent.rglob("*")}
    assert found <= {"sessions", "live", "lock"}


def test_a_lost_connection_comes_back_and_the_copy_continues(machine: Machine) -> None:
    live = Live(machine.sessions)
    reports: list[str] = []
    try:
        with machine.mirror(reports.append) as copy:
            live.calls(1, 3)
            until(lambda: same(machine, copy, live.path.name), "the calls")
            inode = (copy.folder / live.path.name).stat().st_ino
            machine.disconnect()
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


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("#!/bin/sh\nexec sleep 3\n", r"--ssh box: no answer within 1 s$"),
        ("#!/bin/sh\nhead -c 5000000 /dev/zero\n", r"^the other side does not speak the protocol"),
        (HELLO + """echo '{"event":"file","file":"x.jsonl"}'\n""", r"^the other side does not speak"),
        (
            HELLO + "echo '[1]'\n",
            r"^the other side does not speak the protocol of mcpspy \(is its shell quiet",
        ),
        (HELLO + "echo 'Session closed by administrator'\n", r"^the other side does not speak the protocol"),
        (HELLO + 'echo \'{"event":"data","size":9}\'\n', r"^lost the connection to box$"),
        (HELLO + "echo 'no space left' >&2; exit 1\n", r"^lost the connection to box \(no space left\)$"),
    ],
    ids=["silent", "no line", "no field", "JSON", "text", "torn", "failure"],
)
def test_a_machine_that_speaks_another_protocol_is_one_clear_line(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, script: str, error: str
) -> None:
    if "sleep" in script:  # ssh waits for its end, and has to be ended.
        monkeypatch.setattr(mirror, "PATIENCE", 0.1)
        monkeypatch.setattr(mirror, "GREETING", 1.0)
    machine.install(script)
    with pytest.raises(CannotStart, match=error), machine.mirror():
        pass


def test_without_an_ssh_program_the_error_has_a_hint(tmp_path: Path) -> None:
    program = str(tmp_path / "ssh")
    error = rf"--ssh: no program {program} \(install OpenSSH\)$"
    with pytest.raises(CannotStart, match=error), Mirror("box", None, print, ssh=(program,)):
        pass
    Path(program).touch(0o600)
    error = "--ssh box: Permission denied$"
    with pytest.raises(CannotStart, match=error), Mirror("box", None, print, ssh=(program,)):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=str)
@pytest.mark.parametrize("is_connected", [True, False])
def test_a_signal_deletes_the_copy(machine: Machine, number: signal.Signals, *, is_connected: bool) -> None:
    if not is_connected:
        machine.install("#!/bin/sh\nexec cat\n")
    write(machine.sessions / "old.jsonl", EXIT)
    program = (
        "import sys, time; from mcpspy.io.remote.mirror import Mirror\n"
        "copy = Mirror('box', None, print, ssh=(sys.argv[1],))\n"
        "print(copy.folder.parent, flush=True)\n"
        "with copy: print('connected', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(machine.ssh)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert folder.exists()
        if is_connected:
            assert process.stdout.readline() == b"connected\n"
        else:
            until(machine.has_login, "the login")
        process.send_signal(number)
        assert process.wait(BOUND) == -number
    assert not folder.exists()


def test_the_command_that_ssh_runs_is_not_for_users() -> None:
    terminal, stdin = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "remote"], stdin=stdin, capture_output=True, timeout=BOUND
    )
    os.close(terminal)
    os.close(stdin)
    assert done.returncode == 3
    assert done.stderr.decode() == (
        "mcpspy: remote: started by mcpspy tui --ssh HOST and mcpspy web --ssh HOST (use one of them)\n"
    )


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
