"""The findings in sessions of official SDKs and real servers, each judged: docs/lint-findings.md contains the table."""

from __future__ import annotations

import re
from typing import NamedTuple

SPECIFICATION = "https://modelcontextprotocol.io/specification/"


class Judgement(NamedTuple):
    """Findings with the same cause."""

    code: str
    about: str
    """A pattern for the method and subject of the message; docs/lint.md has the summary of the rule."""
    where: str
    """A pattern for `client.server.revision`."""
    verdict: str
    """`right`, or `pedantic`: the specification says so, and nothing fails because of it."""
    why: str
    page: str = ""

    def covers(self, code: str, about: str, where: str) -> bool:
        return (
            code == self.code
            and re.fullmatch(self.about, about) is not None
            and re.search(self.where, where) is not None
        )

    @property
    def row(self) -> str:
        page = f" ([specification]({SPECIFICATION}{self.page}))" if self.page else ""
        return f"| {self.code} | {self.verdict} | {self.why}{page} |"


OLDER = r"(2024-11-05|2025-03-26)$"

SDK_SESSIONS = (
    Judgement(
        "DATA301",
        "tools/call add|tools/call get-sum",
        "",
        "right",
        "The client sends a text for an integer on purpose. Each violation of the schema is one finding",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "DATA307",
        "tools/call no-such-tool",
        "",
        "right",
        "The client calls a tool that does not exist on purpose",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "DATA401",
        "tools/call get-resource-links",
        rf"\.typescript-1.*{OLDER}",
        "right",
        "`server-everything` sends resource links in revisions that do not have them. Clients of these revisions "
        "reject the result",
        "2025-06-18/changelog",
    ),
    Judgement(
        "DATA603",
        "tools/call ask",
        rf"\.python-2.*{OLDER}",
        "right",
        "The Python SDK 2 returns the client's error for `elicitation/create`, -32601, as the response to the tool "
        "call, where it means that the server has no `tools/call`",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "DATA801",
        "elicitation/create.*",
        r"\.typescript-1.*2025-06-18$",
        "right",
        "`server-everything` sends a form with lists in a revision whose forms have only single values",
        "2025-06-18/client/elicitation#supported-schema-types",
    ),
    Judgement(
        "LIFE107",
        "notifications/message",
        r"\.python-[12]",
        "right",
        "The Python SDKs send log messages of `ctx.log` and `ctx.info` without declaring `logging`",
        "2025-11-25/server/utilities/logging#capabilities",
    ),
    Judgement(
        "LIFE108",
        "elicitation/create.*",
        OLDER,
        "right",
        "The SDKs send `elicitation/create` in revisions that do not have it, if the client declared the capability",
        "2025-06-18/changelog",
    ),
    Judgement(
        "LIFE112",
        "tools/call sample",
        "(auto|2026-07-28)$",
        "right",
        "The tool asks for sampling, which 2026-07-28 has deprecated",
        "2026-07-28/changelog",
    ),
    Judgement(
        "LIFE201",
        "tools/call",
        "^python-1",
        "right",
        "The Python SDK 1 sends no `notifications/cancelled` when its caller gives up, so the server still works",
        "2025-11-25/basic/utilities/cancellation",
    ),
    Judgement(
        "LIFE202",
        "tools/call hang",
        "",
        "pedantic",
        "The server responds to a request that was cancelled; the client ignores the response",
        "2025-11-25/basic/utilities/cancellation#behavior-requirements",
    ),
    Judgement(
        "LIFE402",
        "exit",
        r"\.(?:python-[12]|typescript-1)\.",
        "right",
        "On a busy machine, the server ends later than 2 s after its stdin was closed, when the TypeScript SDK sends SIGTERM",
        "2025-11-25/basic/lifecycle#stdio",
    ),
    Judgement(
        "LIFE408",
        "exit",
        r"^typescript-2\..*\.(auto|2026-07-28)$",
        "right",
        "The TypeScript SDK 2 asks a separate process for the revision, and ends it by SIGTERM; it closes stdin right "
        "after the signal, on a busy machine later than the server ends",
        "2026-07-28/basic/transports/stdio#shutdown",
    ),
)
"""Of tests/e2e/test_benign.py."""

REAL_SERVERS = (
    Judgement(
        "DATA301",
        "tools/call (get-sum|browser_tabs|list-databases|git_status|search)",
        "",
        "right",
        "The client sends arguments that the schema does not allow on purpose",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "DATA307",
        "tools/call no-such-tool",
        "",
        "right",
        "The client calls a tool that does not exist on purpose",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "DATA603",
        "tools/call no-such-tool",
        r"\.(firecrawl|tavily)\.",
        "right",
        "`firecrawl` and `tavily` answer a call of an unknown tool with -32601, which means that they have no "
        "`tools/call`",
        "2025-11-25/server/tools#error-handling",
    ),
    Judgement(
        "ENV101",
        "",
        r"\.kubernetes\.stdio",
        "right",
        "`kubernetes` writes `Received SIGTERM, shutting down...` to stdout",
        "2025-11-25/basic/transports#stdio",
    ),
    Judgement(
        "LIFE402",
        "exit",
        r"\.(duckduckgo|excel|fetch|git|time)\.stdio",
        "right",
        "The Python servers were still running 2 s after their stdin was closed, on a busy machine, when the client "
        "sent SIGTERM",
        "2025-11-25/basic/lifecycle#stdio",
    ),
)
"""Of recordings/findings.py."""
