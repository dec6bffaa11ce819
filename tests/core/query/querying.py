"""Filter items with fixed values, one of each kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Row:
    """An item with fixed values."""

    at: float = 0.0
    side: str = "client"
    kind: str = "request"
    method: str = ""
    subject: str = ""
    id: str = ""
    status: str = ""
    latency: float | None = None
    size: int = 0
    stream: str = ""
    has_issue: bool = False
    is_failed_event: bool = False
    is_batch: bool = False
    error_code: int | None = None
    findings: tuple[str, ...] = ()
    data: bytes = b""
    """Bytes of the message itself."""
    request: bytes = b""
    """Bytes of the request of a response."""
    reads: int = 0

    def text(self) -> bytes:
        self.reads += 1
        return self.data

    def message(self, member: str) -> bytes:
        self.reads += 1
        return self.request or self.data if member == "params" else self.data


CALL = Row(method="tools/call", subject="read_File", id="7", status="ok", latency=0.25, size=12_000, at=3.0)
READ = Row(method="resources/read", subject="file:///x?page=2", id='"7"', status="pending", stream="a1")
PROMPT = Row(
    method="prompts/get", subject="read_file", side="server", kind="result", status="ok", latency=1.5
)
FAILURE = Row(
    method="tools/call", side="server", kind="error", status="error", error_code=-32602, latency=0.1
)
TOOL_ERROR = Row(method="tools/call", side="server", kind="result", status="tool error")
REFUSED = Row(method="ping", status="refused")
LATE = Row(method="ping", kind="error", side="server", status="late error", error_code=1)
STRAY = Row(kind="error", side="server", status="error", has_issue=True)
PROGRESS = Row(method="notifications/progress", kind="notification", side="server", at=90.0)
STDERR = Row(side="", kind="stderr")
HTTP_END = Row(side="", kind="http-end")
FOUND = Row(findings=("ENV101 error", "SEC201 warning"))
EVERY = {name: row for name, row in globals().items() if isinstance(row, Row)}
NOTES = "STDERR HTTP_END"
