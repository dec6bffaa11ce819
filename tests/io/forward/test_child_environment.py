"""The environment of a program that uses a proxy."""

from __future__ import annotations

from pathlib import Path

from mcpspy.io.forward.child import named_authorities, variables


def test_only_the_proxy_and_the_trusted_ca_are_set_for_a_program() -> None:
    given = {"PATH": "/bin", "HTTPS_PROXY": "http://corporate:1", "no_proxy": "localhost", "NO_PROXY": "*"}
    environment = variables(given, "http://127.0.0.1:5", "/b.pem")
    proxies = {name for name, value in environment.items() if value == "http://127.0.0.1:5"}
    assert proxies == {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}
    trusting = {name for name, value in environment.items() if value == "/b.pem"}
    assert {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"} <= trusting
    assert set(environment) == proxies | trusting | {"PATH", "NODE_USE_ENV_PROXY"}
    assert (environment["PATH"], environment["NODE_USE_ENV_PROXY"]) == ("/bin", "1")
    assert "NO_PROXY" in given


def test_authorities_named_in_the_environment_are_found(tmp_path: Path) -> None:
    one, two = tmp_path / "one.pem", tmp_path / "two.pem"
    one.write_text("one", encoding="utf-8")
    two.write_text("two\n", encoding="utf-8")
    environ = {
        "SSL_CERT_FILE": str(one),
        "CURL_CA_BUNDLE": str(one),
        "NODE_EXTRA_CA_CERTS": str(two),
        "REQUESTS_CA_BUNDLE": str(tmp_path),
        "PIP_CERT": str(tmp_path / "gone"),
    }
    assert named_authorities(environ) == b"one\ntwo\n"
    assert named_authorities({}) == b""
