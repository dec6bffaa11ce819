"""The environment and CAs of a program that `mcpspy exec` starts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.forward import child
from mcpspy.io.forward.child import ignored_proxy

if TYPE_CHECKING:
    from mcpspy.io.forward.ca import CertificateAuthority
    from tests.io.forward.conftest import Pki, Start

pytestmark = pytest.mark.timeout(60)

REPORT = """
import json, os, sys
bundle = open(os.environ["SSL_CERT_FILE"], "rb").read().decode()
print(json.dumps({"env": dict(os.environ), "bundle": bundle, "stdin": sys.stdin.read()}))
sys.exit(7)
"""


def test_exec_changes_only_the_environment_of_a_program(
    start: Start, pki: Pki, ca: CertificateAuthority
) -> None:
    process = start(
        *("exec", "--no-record", "--", sys.executable, "-c", REPORT),
        NODE_EXTRA_CA_CERTS=pki.authority,
        NO_PROXY="localhost",
        OWN="1",
    )
    out, err = process.communicate(b"said", timeout=40)
    assert (process.returncode, err) == (7, b"")
    report = json.loads(out)
    assert report["stdin"] == "said"
    assert report["env"]["OWN"] == "1"
    assert report["env"]["HTTPS_PROXY"].startswith("http://127.0.0.1:")
    assert "NO_PROXY" not in report["env"]
    # The system's CAs, the program's own, and mcpspy's. The file is deleted when the program ends.
    assert ca.certificate.read_text() in report["bundle"]
    assert pki.authority.read_text() in report["bundle"]
    assert report["bundle"].count("BEGIN") > 10
    assert not Path(report["env"]["NODE_EXTRA_CA_CERTS"]).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="its Node.js is a shell script")
@pytest.mark.parametrize(
    ("version", "warned"),
    [
        ("v20.20.2", "20.20"),
        ("v22.20.9", "22.20"),
        ("v22.21.0", ""),
        ("v23.11.0", "23.11"),
        ("v24.0.0", ""),
        ("bun 1", ""),
    ],
)
@pytest.mark.parametrize("program", ["node", "agent", "native"])
async def test_a_node_that_ignores_the_proxy_is_named_before_the_program_starts(
    program: str, version: str, warned: str, tmp_path: Path
) -> None:
    for name, text in {
        "node": f"#!/bin/sh\necho {version}\n",
        "agent": "#!/usr/bin/env node\n",
        "native": "#!/bin/sh\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    line = await ignored_proxy([program, "x"], {"PATH": f"{tmp_path}"})
    if warned and program != "native":
        assert line is not None
        assert line.startswith(f"{program} runs on Node.js {warned}, whose fetch() ignores HTTPS_PROXY: ")
    else:
        assert line is None


def write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_exec_warns_of_a_node_that_ignores_the_proxy(start: Start, tmp_path: Path) -> None:
    write_program(tmp_path / "node", "#!/bin/sh\necho v20.0.0\n")
    out, err = start("exec", "--no-record", "--", tmp_path / "node", "x").communicate(timeout=40)
    assert out == b"v20.0.0\n"
    assert b"node runs on Node.js 20.0, whose fetch() ignores HTTPS_PROXY: " in err


async def test_a_node_that_prints_no_version_in_time_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "node", f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    write_program(tmp_path / "agent", "#!/usr/bin/env node\n")
    monkeypatch.setattr(child, "NODE_TIMEOUT", 1.0)
    assert await ignored_proxy(["agent"], {"PATH": f"{tmp_path}:{os.defpath}"}) is None
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("has_authorities", [True, False])
def test_a_missing_file_of_authorities_is_one_line(
    start: Start, pki: Pki, tmp_path: Path, *, has_authorities: bool
) -> None:
    named = {"NODE_EXTRA_CA_CERTS": pki.authority} if has_authorities else {}
    process = start("exec", "--cacert", tmp_path / "none.pem", "--", "true", **named)
    out, err = process.communicate(timeout=40)
    line = f"mcpspy: {tmp_path}/none.pem: No such file or directory (--cacert takes a PEM file)\n"
    assert (process.returncode, out, err.decode()) == (3, b"", line)


async def test_a_program_that_does_not_exist_gets_no_warning(tmp_path: Path) -> None:
    assert await ignored_proxy(["missing"], {"PATH": f"{tmp_path}"}) is None
