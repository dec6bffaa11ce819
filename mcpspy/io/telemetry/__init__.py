"""Telemetry for OpenTelemetry: the settings, the sender, cursors, and the exporter that follows sessions."""
