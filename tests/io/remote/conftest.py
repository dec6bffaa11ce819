"""A real sshd on a loopback port, with its own keys and folders: another machine for the tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy.io.remote import mirror
from mcpspy.io.remote.mirror import Mirror
from tests.io.conftest import _own_children

BOUND = 30.0
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "sshd"


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition; fail after a while."""
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline, f"timeout: {what}"
        time.sleep(0.01)


class Machine:
    """The other machine. Its programs are in `bin`, its sessions in `sessions`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.bin, self.home = base / "bin", base / "home"
        self.sessions, self.runtime = base / "sessions", base / "live"
        self._before = set(_own_children())
        for each in (self.bin, self.home, self.sessions):
            each.mkdir()
        self.runtime.mkdir(mode=0o700)
        self.environment = {"MCPSPY_DIR": str(self.sessions), "MCPSPY_RUNTIME": str(self.runtime)}
        self.install(f'#!/bin/sh\nexec "{sys.executable}" -m mcpspy "$@"\n')
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(base / name)]
            subprocess.run(command, check=True, timeout=BOUND)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        variables = {"HOME": self.home, "PATH": f"{self.bin}:/usr/bin:/bin", **self.environment}
        (base / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {base}/host\nAuthorizedKeysFile {base}/user.pub\n"
            "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv "
            + " ".join(f"{name}={value}" for name, value in variables.items())
            + "\n",
            encoding="utf-8",
        )
        (base / "ssh_config").write_text(
            f"Host box\n  HostName 127.0.0.1\n  Port {self.port}\n  IdentityFile {base}/user\n  IdentitiesOnly yes\n"
            f"  StrictHostKeyChecking accept-new\n  UserKnownHostsFile {base}/known_hosts\n  LogLevel ERROR\n",
            encoding="utf-8",
        )
        local = base / "here"
        local.mkdir()
        self.ssh = local / "ssh"
        self.ssh.write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F {base}/ssh_config "$@"\n', encoding="utf-8"
        )
        self.ssh.chmod(0o700)
        if os.getuid() == 0:  # sshd of root drops its privileges there.
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.log = (base / "log").open("wb")
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", f"{base}/sshd_config"], stderr=self.log)
        until(self._is_listening, f"sshd: {(base / 'log').read_text(encoding='utf-8')}")

    def _is_listening(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def install(self, script: str | None) -> None:
        """Have another program as mcpspy, or none."""
        program = self.bin / "mcpspy"
        program.unlink(missing_ok=True)
        if script is not None:
            program.write_text(script, encoding="utf-8")
            program.chmod(0o700)

    def has_login(self) -> bool:
        """Return whether a program of this machine runs that ssh has started."""
        return any(self._programs())

    def disconnect(self) -> None:
        """Kill the ssh that this process has started."""
        found = subprocess.run(
            ["pgrep", "-P", str(os.getpid()), "-f", "/ssh_config"], stdout=subprocess.PIPE, check=True
        )
        os.kill(int(found.stdout), signal.SIGKILL)

    def mirror(self, report: Callable[[str], None] = lambda _: None) -> Mirror:
        return Mirror("box", None, report, ssh=(str(self.ssh),))

    def stop(self) -> None:
        """End sshd, and wait until the programs of its connections have ended."""
        self.process.terminate()
        self.process.wait(BOUND)
        until(self._is_empty, "the end of the programs on the other machine")
        self.log.close()

    def _is_empty(self) -> bool:
        """Return whether the tests have adopted no process of sshd that still runs; reap the others."""
        for pid in set(_own_children()) - self._before:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return not any(self._programs()) and not set(_own_children()) - self._before

    def _programs(self) -> Iterator[str]:
        """Yield the processes of programs that run on the other machine."""
        mark = f"MCPSPY_DIR={self.sessions}".encode()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes():
                    yield name


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(mirror, "RETRY", (0.05,))
    monkeypatch.setenv("MCPSPY_RUNTIME", "")  # A mirror sets it.
    found = Machine(tmp_path_factory.mktemp("box"))
    yield found
    found.stop()
