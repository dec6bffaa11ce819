"""The destination of telemetry: endpoints, the settings, and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.telemetry.options import GRPC, SIGNALS, TelemetryOptions, read_options, read_settings


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://h/", "https://h/v1/traces"),
        ("http://h/otlp/v1/traces?x=1", "http://h/otlp/v1/traces?x=1"),
        ("http://h:9090/api/v1/otlp/v1/metrics", "http://h:9090/api/v1/otlp/v1/traces"),
        ("http://h/otlp", "http://h/otlp/v1/traces"),
    ],
)
def test_each_signal_has_its_path_below_the_endpoint(endpoint: str, url: str) -> None:
    assert read_options(endpoint).url("traces") == url


@pytest.mark.parametrize(
    "endpoint", ["localhost:4318", "", "file:///etc", "grpc://h:4317", "http://", "http://[x"]
)
def test_an_invalid_url_is_an_error(endpoint: str) -> None:
    with pytest.raises(UsageError, match=r"--endpoint .*not a URL"):
        read_options(endpoint)


def settings(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mcpspy.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_settings_are_a_table_with_variables_in_its_headers(tmp_path: Path) -> None:
    path = settings(
        tmp_path,
        '[telemetry]\nendpoint = "http://h:4317"\nprotocol = "grpc"\nsignals = ["logs"]\ncacert = "/ca"\n'
        'headers = { x-token = "${TOKEN}" }\n',
    )

    assert read_settings(lambda text: text.replace("${TOKEN}", "s3"), path) == TelemetryOptions(
        "http://h:4317", GRPC, (("x-token", "s3"),), "/ca", ("logs",)
    )
    assert read_settings(str, settings(tmp_path, "[lint]\n")) is None


def test_the_environment_replaces_the_endpoint_or_turns_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings(tmp_path, '[telemetry]\nendpoint = "http://h:4318"\n')
    monkeypatch.setenv("MCPSPY_TELEMETRY", "http://other:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert read_settings(str, path) == TelemetryOptions("http://other:4317", GRPC, signals=SIGNALS)
    monkeypatch.setenv("MCPSPY_TELEMETRY", "off")
    assert read_settings(str, path) is None
    monkeypatch.delenv("MCPSPY_TELEMETRY")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(UsageError, match="protocol http/json: unknown protocol"):
        read_settings(str, path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("endpoint = 7", "telemetry.endpoint: must be text"),
        ('endpoint = "h"', "telemetry.endpoint h: not a URL"),
        ('endpoint = "http://h"\nprotocol = "udp"', "telemetry.protocol udp: unknown protocol"),
        ('endpoint = "http://h"\nsignals = ["spans"]', "telemetry.signals spans: unknown signal"),
        ('endpoint = "http://h"\nsignals = []', "telemetry.signals: no signal"),
        ('endpoint = "http://h"\nurl = "x"', "telemetry.url: unknown setting"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, text: str, expected: str) -> None:
    path = settings(tmp_path, f"[telemetry]\n{text}\n")
    with pytest.raises(UsageError) as refused:
        read_settings(str, path)
    assert str(refused.value).startswith(f"{path}: {expected}")
