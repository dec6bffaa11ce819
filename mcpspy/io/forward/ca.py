"""The certificate authority (CA) with which mcpspy decrypts HTTPS, on this machine only.

Its files are `ca.pem` (key and certificate, 0600), `ca-cert.pem` (the certificate to be trusted) and
`bundle.pem` (that certificate and the system's CAs, for programs that read only one file). mcpspy never
installs anything.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import tempfile
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from mitmproxy.certs import CertStore, create_ca

from mcpspy.errors import CannotStart
from mcpspy.io.settings import config_file

KEY_SIZE = 2048

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, FreeBSD
)


class CertificateAuthority:
    """An existing CA."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = folder / "ca.pem"
        self.certificate = folder / "ca-cert.pem"
        self.bundle = folder / "bundle.pem"
        try:
            self._x509 = x509.load_pem_x509_certificate(self.key.read_bytes())
        except ValueError:
            raise CannotStart(f"{self.key}: contains no certificate", "remove it to get a new one") from None
        except OSError as error:
            raise CannotStart(f"{self.key}: {error.strerror}", "check the permissions") from None
        if self.until < datetime.now(UTC):
            raise CannotStart(f"{self.key}: expired on {self.until:%Y-%m-%d}", "remove it to get a new one")
        pem = self._x509.public_bytes(serialization.Encoding.PEM)
        self._put(self.certificate, pem)
        # Without this CA's own certificate: inside `mcpspy exec`, the system's bundle is this very file.
        self._put(self.bundle, system_authorities().replace(pem, b"") + pem)

    @property
    def name(self) -> str:
        """The common name of the certificate."""
        return str(self._x509.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)

    @property
    def until(self) -> datetime:
        return self._x509.not_valid_after_utc

    def fingerprint(self, algorithm: str) -> str:
        """Return the SHA256 or SHA1 fingerprint, as hexadecimal digits with colons."""
        return self._x509.fingerprint(getattr(hashes, algorithm)()).hex(":").upper()

    @cached_property
    def store(self) -> CertStore:
        return CertStore.from_files(self.key, self.folder / "dhparam.pem")

    def _put(self, path: Path, data: bytes) -> None:
        """Replace a file, which other programs may be reading, if its content differs."""
        try:
            if path.exists() and path.read_bytes() == data:
                return
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(data)
            os.replace(file.name, path)
        except OSError as error:
            raise CannotStart(f"{path}: {error.strerror}", "check the permissions of its folder") from None


def authority(folder: Path | None = None) -> CertificateAuthority:
    """Return the CA in a folder, by default the user's; create it if needed. Raises CannotStart."""
    folder = folder or Path(config_file()).parent / "ca"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (folder / "ca.pem").exists():
            _make(folder / "ca.pem")
    except OSError as error:
        raise CannotStart(f"{error.filename or folder}: {error.strerror}", "check the permissions") from None
    return CertificateAuthority(folder)


def system_authorities() -> bytes:
    """Return the certificates that this machine trusts, as PEM."""
    if sys.platform == "win32":
        stores = (*ssl.enum_certificates("ROOT"), *ssl.enum_certificates("CA"))
        return b"".join(
            ssl.DER_cert_to_PEM_cert(data).encode() for data, form, _ in stores if form == "x509_asn"
        )
    for file in (ssl.get_default_verify_paths().cafile, *SYSTEM_BUNDLES):  # The first honours SSL_CERT_FILE.
        if file:
            try:
                data = Path(file).read_bytes()
            except OSError:  # The file does not exist on this system.
                continue
            return data if data.endswith(b"\n") else data + b"\n"
    import certifi

    return Path(certifi.where()).read_bytes()


def _make(path: Path) -> None:
    key, certificate = create_ca("mcpspy", f"mcpspy on {socket.gethostname()}"[:64], KEY_SIZE)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    # Mode 0600 from the start, and complete or absent. If two processes create a CA, the first one wins.
    fd, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with open(fd, "wb") as file:
            file.write(pem + certificate.public_bytes(serialization.Encoding.PEM))
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
