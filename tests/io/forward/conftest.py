"""A forward proxy in this process, TLS servers on loopback with a private CA, and clients of both."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import orjson
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcpspy.io.forward.ca import CertificateAuthority, authority
from mcpspy.io.forward.proxy import ForwardOptions, forwarding

if TYPE_CHECKING:
    from mcpspy.io.forward.proxy import ForwardProxy

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pki(NamedTuple):
    """A private CA, and a server's certificate issued by it, for 127.0.0.1 and localhost."""

    authority: Path
    certificate: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def make_pki(folder: Path, *, terse: bool = False) -> Pki:
    """Create them according to RFC 5280; `terse` omits key identifiers, as many private CAs do."""
    now = datetime.now(UTC)
    ca, forwarded = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "private")])

    def certificate(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    root = certificate("private", ca).add_extension(x509.BasicConstraints(True, None), critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    leaf = certificate("server", forwarded).add_extension(names, critical=False)
    if not terse:
        signs = dict.fromkeys(USES, False) | {"key_cert_sign": True}
        root = root.add_extension(x509.KeyUsage(**signs), critical=True)
        root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(ca.public_key()), critical=False)
        issued = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())
        leaf = leaf.add_extension(issued, critical=False)
    pki = Pki(folder / "private.pem", folder / "server.pem", folder / "server-key.pem")
    pem = serialization.Encoding.PEM
    pki.authority.write_bytes(root.sign(ca, hashes.SHA256()).public_bytes(pem))
    pki.certificate.write_bytes(leaf.sign(ca, hashes.SHA256()).public_bytes(pem))
    pki.key.write_bytes(
        forwarded.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pki


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return make_pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="session")
def ca(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return authority(tmp_path_factory.mktemp("ca"))


class Spy:
    """A running forward proxy, and a client that uses it and trusts it."""

    def __init__(self, proxy: ForwardProxy, client: aiohttp.ClientSession, folder: Path) -> None:
        self.url = proxy.url
        self.client = client
        self.core = proxy.endpoints.port
        self._folder = folder

    async def post(self, url: str, message: bytes, **headers: str) -> tuple[int, bytes]:
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        async with self.client.post(url, data=BytesIO(message), headers=given | headers) as response:
            return response.status, await response.read()

    def count(self) -> int:
        """Return the number of recordings."""
        return len([*self._folder.glob("*.jsonl")])

    def recorded(self) -> dict[str, list[dict[str, Any]]]:
        """Return the entries of each recording, by the server's address."""
        found = {}
        for path in sorted(self._folder.glob("*.jsonl")):
            header, *entries = map(orjson.loads, path.read_bytes().splitlines())
            found[header["upstream"]] = entries
        return found


@pytest.fixture
def spying(
    pki: Pki, ca: CertificateAuthority, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[Spy]]:
    """Run a forward proxy that trusts the private CA, with options by name."""

    @asynccontextmanager
    async def run(**given: Any) -> AsyncIterator[Spy]:
        options = ForwardOptions("127.0.0.1", 0)
        folder = tmp_path / "recorded"
        options.record, options.cacert = f"{folder}/", str(pki.authority)
        for name, value in given.items():
            assert hasattr(options, name)
            setattr(options, name, value)
        trusting = ssl.create_default_context(cafile=str(ca.certificate))
        async with forwarding(options, ca) as proxy:
            connector = aiohttp.TCPConnector(ssl=trusting, limit=0)
            patient = aiohttp.ClientTimeout(total=None)
            async with aiohttp.ClientSession(connector=connector, proxy=proxy.url, timeout=patient) as client:
                yield Spy(proxy, client, folder)

    return run


@pytest.fixture
def serving(pki: Pki) -> Callable[..., AbstractAsyncContextManager[str]]:
    """Serve with a handler over TLS. Return the origin."""

    @asynccontextmanager
    async def run(handler: Handler, *, plain: bool = False) -> AsyncIterator[str]:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=None if plain else pki.server())
        await site.start()
        try:
            yield f"http{'' if plain else 's'}://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    return run


class Start:
    """Starts mcpspy, with an existing CA."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, *arguments: str | Path, **environment: str | Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcpspy", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_CONFIG_HOME": str(self._home), **environment},
            start_new_session=True,
        )
        self.started.append(process)
        return process


@pytest.fixture
def start(ca: CertificateAuthority, tmp_path: Path) -> Iterator[Start]:
    home = tmp_path / "home"
    (home / "mcpspy").mkdir(parents=True)
    (home / "mcpspy" / "ca").symlink_to(ca.folder)
    starter = Start(home)
    yield starter
    for process in starter.started:
        process.kill()
        process.communicate()
