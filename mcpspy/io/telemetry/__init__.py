"""Telemetry for OpenTelemetry: settings, sender, cursors, and the exporter that follows sessions."""
