"""The environment and CAs of a program that `mcpspy exec` starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
