"""`mcpspy web` over TLS, with a certificate of the test's own CA, and real clients."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from mcpspy.ui.cli.main import main

BOUND = 30.0


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=BOUND)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a CA, a certificate of it for localhost and box.test, and an unrelated key."""
    folder = tmp_path_factory.mktemp("pki")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    # Python 3.13 verifies strictly, as RFC 5280 requires.
    usage = ("-addext", "keyUsage=critical,keyCertSign", "-subj", "/CN=test CA")
    openssl(folder, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", *usage)
    openssl(folder, "req", *curve, "-keyout", "box.key", "-out", "box.csr", "-subj", "/CN=box")
    identifiers = "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    (folder / "names").write_text(
        f"subjectAltName=DNS:localhost,DNS:box.test\n{identifiers}", encoding="utf-8"
    )
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl(folder, "x509", "-req", "-in", "box.csr", *signing, "-out", "box.pem")
    purpose = ("-addext", "extendedKeyUsage=clientAuth", "-subj", "/CN=localhost")
    openssl(folder, "req", "-x509", *curve, "-keyout", "client.key", "-out", "client.pem", *purpose)
    openssl(folder, "genpkey", "-algorithm", "ed25519", "-out", "other.key")
    return folder


async def test_the_page_is_served_over_https_by_the_names_of_its_certificate(
    pki: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "mcpspy", "web", "--dir", str(tmp_path), "--listen", "0.0.0.0:0"]
    command += ["--tls-cert", str(pki / "box.pem"), "--tls-key", str(pki / "box.key")]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    trusting = ssl.create_default_context(cafile=pki / "ca.pem")
    async with asyncio.timeout(BOUND):
        try:
            assert process.stdout is not None
            address, _, token = (await process.stdout.readline()).decode().strip().partition("#")
            port = address.rstrip("/").rpartition(":")[2]
            assert address == f"https://0.0.0.0:{port}/"
            here = f"https://localhost:{port}"
            connector = aiohttp.TCPConnector(ssl=trusting)
            async with aiohttp.ClientSession(connector=connector) as client:
                async with client.post(f"{here}/api/login", data=token, headers={"Origin": here}) as response:
                    assert (response.status, "Secure" in response.headers["Set-Cookie"]) == (204, True)
                async with client.get(f"{here}/api/sessions") as response:
                    assert (await response.json())["total"] == 0
                for host, status in ((f"box.test:{port}", 200), (f"evil.test:{port}", 403)):
                    async with client.get(f"{here}/", headers={"Host": host}) as response:
                        assert response.status == status
                plain = {"Origin": here.replace("https", "http")}
                async with client.post(f"{here}/api/login", data=token, headers=plain) as response:
                    assert response.status == 403
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                async with aiohttp.ClientSession() as client, client.get(f"{here}/"):
                    pass
        finally:
            process.terminate()
        _, errors = await process.communicate()
    assert errors == b""


def test_a_certificate_without_its_key_is_an_error(pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--tls-cert", str(pki / "box.pem")]) == 2
    assert "--tls-cert requires --tls-key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        ("box.pem", "other.key", "both must be PEM files, and belong together"),
        ("names", "box.key", "both must be PEM files, and belong together"),
        ("none.pem", "box.key", "No such file or directory"),
        ("client.pem", "client.key", "certificate purpose (use another certificate)"),
    ],
)
def test_files_that_do_not_fit_are_one_clear_line(
    pki: Path, certificate: str, key: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", "--tls-cert", str(pki / certificate), "--tls-key", str(pki / key)]) == 3
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1
