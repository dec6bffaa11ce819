"""The CA and its files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.forward import ca as module
from mcpspy.io.forward.ca import CertificateAuthority, authority, system_authorities


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = authority(tmp_path / "deep" / "ca")
    finally:
        os.umask(old)
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    assert b"PRIVATE KEY" in made.key.read_bytes()
    assert b"PRIVATE KEY" not in made.certificate.read_bytes() + made.bundle.read_bytes()
    assert made.name.startswith("mcpspy on ")
    assert timedelta(days=9 * 365) < made.until - datetime.now(UTC) < timedelta(days=11 * 365)


def test_concurrent_calls_create_one_ca(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: authority(tmp_path / "ca").fingerprint("SHA256"), range(4)))
    assert len(set(made)) == 1
    assert authority(tmp_path / "ca").fingerprint("SHA256") == made[0]
    assert {path.name for path in (tmp_path / "ca").iterdir()} == {"ca.pem", "ca-cert.pem", "bundle.pem"}


def test_the_bundle_adds_the_ca_to_the_system_authorities_only_once(
    ca: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ca.bundle.read_bytes()
    assert before == system_authorities() + ca.certificate.read_bytes()
    # As inside `mcpspy exec`, where the system's bundle is this bundle.
    monkeypatch.setenv("SSL_CERT_FILE", str(ca.bundle))
    assert system_authorities() == before
    assert authority(ca.folder).bundle.read_bytes() == before


def test_openssl_accepts_an_issued_certificate_in_strict_mode(
    ca: CertificateAuthority, tmp_path: Path
) -> None:
    from cryptography import x509

    made = ca.store.get_cert("a.example", [x509.DNSName("a.example")])
    leaf = tmp_path / "leaf.pem"
    leaf.write_bytes(made.cert.to_pem())
    command = ("openssl", "verify", "-x509_strict", "-verify_hostname", "a.example")
    subprocess.run([*command, "-CAfile", ca.certificate, leaf], check=True, timeout=20, capture_output=True)


@pytest.mark.parametrize(
    ("content", "why"), [(b"nonsense", "contains no certificate"), (None, "Is a directory")]
)
def test_an_invalid_file_is_reported_with_a_hint(content: bytes | None, why: str, tmp_path: Path) -> None:
    if content is None:
        (tmp_path / "ca.pem").mkdir()
    else:
        (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(CannotStart, match=f"ca.pem: {why} \\("):
        authority(tmp_path)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="file/ca: Not a directory"):
        authority(tmp_path / "file" / "ca")


def test_a_certificate_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    authority(tmp_path).certificate.unlink()
    (tmp_path / "ca-cert.pem").mkdir()
    with pytest.raises(
        CannotStart, match=r"ca-cert\.pem: Is a directory \(check the permissions of its folder"
    ):
        authority(tmp_path)


def test_an_expired_ca_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until = authority(tmp_path).until

    class Later(datetime):
        @classmethod
        def now(cls, _: object = None) -> datetime:  # type: ignore[override]  # As it is called here.
            return until + timedelta(seconds=1)

    monkeypatch.setattr(module, "datetime", Later)
    with pytest.raises(CannotStart, match=rf"ca.pem: expired on {until:%Y-%m-%d} \(remove it"):
        authority(tmp_path)


def test_the_authorities_of_mozilla_are_used_without_a_system_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sys.platform != "win32"
    monkeypatch.setattr(module, "SYSTEM_BUNDLES", ("/nowhere",))
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    assert system_authorities().count(b"BEGIN CERTIFICATE") > 50
