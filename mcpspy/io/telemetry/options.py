"""Destination of telemetry: the options of `mcpspy export`, or the table `telemetry` of the settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mcpspy.core.redact.display import redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.background import TELEMETRY
from mcpspy.io.settings import config_file, table

TRACES, METRICS, LOGS = SIGNALS = ("traces", "metrics", "logs")

HTTP, GRPC = PROTOCOLS = ("http", "grpc")

DEFAULTS = {HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}
"""Examples of endpoints, with the ports that OpenTelemetry assigns."""


class TelemetryOptions(NamedTuple):
    endpoint: str
    """A URL without the path of a signal."""
    protocol: str = HTTP
    headers: tuple[tuple[str, str], ...] = ()
    cacert: str | None = None
    signals: tuple[str, ...] = SIGNALS

    @property
    def shown(self) -> str:
        """Return the endpoint for messages, without secrets."""
        return sanitize(redacted_url(self.endpoint))

    def url(self, signal: str) -> str:
        """Return the URL of a signal over HTTP."""
        from yarl import URL

        url = URL(self.endpoint)
        return str(url.with_path(f"{url.path.rstrip('/')}/v1/{signal}").with_query(url.query))


def read_options(
    endpoint: str,
    protocol: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    cacert: str | None = None,
    signals: Iterable[str] | None = None,
    *,
    where: str = "--",
) -> TelemetryOptions:
    """Return checked options; raise UsageError, in which `where` is before the name of an option."""
    from yarl import URL

    protocol = protocol or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", HTTP).removesuffix("/protobuf")
    if protocol not in PROTOCOLS:
        raise UsageError(f"{where}protocol {protocol}: unknown protocol", f"use {' or '.join(PROTOCOLS)}")
    chosen = SIGNALS if signals is None else tuple(signals)
    for name in chosen:
        if name not in SIGNALS:
            raise UsageError(f"{where}signals {name}: unknown signal", f"use {', '.join(SIGNALS)}")
    if not chosen:
        raise UsageError(f"{where}signals: no signal", f"use {', '.join(SIGNALS)}")
    try:
        url = URL(endpoint)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(
            sanitize(f"{where}endpoint {redacted_url(endpoint)}: not a URL"),
            f"an example: {DEFAULTS[protocol]}",
        )
    for signal in SIGNALS:  # The URL of one signal, as other tools need it.
        url = url.with_path(url.path.removesuffix(f"/v1/{signal}")).with_query(url.query)
    shown = str(url) if url.query else str(url).rstrip("/")
    return TelemetryOptions(shown, protocol, tuple(headers), cacert, chosen)


def read_settings(expand: Callable[[str], str], config: str | None = None) -> TelemetryOptions | None:
    """Return the options of the settings and the environment; None if there are none, or they are off.

    `expand` replaces variables of the environment in the values of headers. Raises UsageError or CannotStart.
    """
    found = table("telemetry", config)
    endpoint = os.environ.get(TELEMETRY) or found.get("endpoint")
    if endpoint is None or endpoint == "off":
        return None
    where = f"{config or config_file()}: telemetry."
    types: dict[str, tuple[type[Any], str]] = {
        "endpoint": (str, "text"),
        "protocol": (str, "text"),
        "headers": (dict, "a table"),
        "cacert": (str, "text"),
        "signals": (list, "a list"),
    }
    for key, value in found.items():
        if key not in types:
            raise UsageError(f"{where}{key}: unknown setting", f"known are {', '.join(types)}")
        if not isinstance(value, types[key][0]):
            raise UsageError(f"{where}{key}: must be {types[key][1]}", "see docs/telemetry.md")
    headers = [(name, expand(str(value))) for name, value in found.get("headers", {}).items()]
    of_setting = None if os.environ.get(TELEMETRY) else found.get("protocol")
    return read_options(endpoint, of_setting, headers, found.get("cacert"), found.get("signals"), where=where)
