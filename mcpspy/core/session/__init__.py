"""Correlation of requests and responses; Session, and the columnar Index for a million rows."""
