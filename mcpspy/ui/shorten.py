"""Methods, ids, subjects and statuses in few columns, for `mcpspy show` and the terminal UI.

What identifies a text stays: the end of a method, an id or a URI, and the reason of an error.
"""

from __future__ import annotations

from mcpspy.ui.terminal import cells, cut

LONGEST_ID = 12
"""Columns of the longest id that is shown in full where space is short."""

_HEAD = 3
"""Columns of a method's beginning that are worth showing before its end."""

_SDK_PREFIX = "Error executing tool "
"""The beginning of a tool error of the Python SDK, before the name of the tool, which has its own column."""

_CODE_PREFIX = "MCP error "
"""The beginning of an error of the TypeScript SDK, before the code."""


def elide(method: str, width: int) -> str:
    """Return a method in at most N columns; its end identifies it: `…/list_changed`, `noti…/progress`."""
    if cells(method) <= width:
        return method
    if method.startswith("("):  # Words in place of a method: `(not JSON)`.
        return cut(method, width)
    end = ""
    for part in reversed(method.split("/")[1:]):
        if cells(f"…/{part}{end}") > width:
            break
        end = f"/{part}{end}"
    if end:
        head = width - cells(end) - 1
        return f"{cut(method, head + 1) if head >= _HEAD else '…'}{end}"
    if "/" in method:
        return tail(method, width)
    return _cut_middle(method, width)


def tail(text: str, width: int) -> str:
    """Return the last N columns of a text, with an ellipsis before them if it is cut."""
    if cells(text) <= width:
        return text
    start = max(len(text) - width + 1, 0)
    while start < len(text) and cells(text[start:]) > width - 1:
        start += 1
    return "…" + text[start:]


def shorten_subject(subject: str, width: int) -> str:
    """Return a subject in at most N columns; the end of a URI identifies it."""
    if "://" not in subject or cells(subject) <= width:
        return subject
    return _cut_middle(subject, width) if width >= 24 else tail(subject, width)


def shorten_status(status: str, width: int) -> str:
    """Return the reason of an error, for a column of N columns.

    Of an error response, the code, its name and the message, without the code if they do not fit; of a tool error,
    the text. Prefixes of SDKs are left out.
    """
    if status.startswith("tool error: "):
        text = status.removeprefix("tool error: ")
        if text.startswith((_SDK_PREFIX, _CODE_PREFIX)):
            text = text.partition(": ")[2] or text
        return f"✗ {text}"
    reason = status.removeprefix("error ")
    if reason == status or cells(reason) <= width:
        return reason
    code, _, rest = reason.partition(" ")
    rest = rest.replace(f"{_CODE_PREFIX}{code}: ", "", 1)
    return rest if rest and code.lstrip("-").isdigit() else reason


def _cut_middle(text: str, width: int) -> str:
    head = cut(text, max(width // 3, 1))
    return head[:-1] + tail(text, width - cells(head) + 1)
