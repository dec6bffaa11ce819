"""TLS of the web server: the user's certificate and key, and the names that the certificate has."""

from __future__ import annotations

import ssl

from mcpspy.errors import CannotStart

_NAMES = ("DNS", "IP Address")


def server_context(certificate: str, key: str) -> tuple[ssl.SSLContext, list[str]]:
    """Return the context of the server, and the names of its certificate. Raises CannotStart."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
        return context, _names(context, certificate)
    except ssl.SSLCertVerificationError as error:
        raise CannotStart(
            f"--tls-cert {certificate}: {error.verify_message}", "use another certificate"
        ) from None
    except ssl.SSLError as error:
        why = (error.reason or str(error)).replace("_", " ").lower()
        raise CannotStart(
            f"--tls-cert {certificate}, --tls-key {key}: {why}", "both must be PEM files, and belong together"
        ) from None
    except OSError as error:
        raise CannotStart(f"--tls-cert {certificate}, --tls-key {key}: {error.strerror}") from None


def _names(context: ssl.SSLContext, certificate: str) -> list[str]:
    """Return the names of a certificate, from a handshake with itself: Python decodes only those that are verified."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert() or {}
    names: list[str] = []
    for entry in found.get("subjectAltName", ()):
        kind, name = str(entry[0]), str(entry[1])
        if kind in _NAMES and "*" not in name:
            names.append(name)
    return names
