"""All rules, family by family. A new module of rules is a row here."""

from mcpspy.analysis.lint.rule import Rule
from mcpspy.analysis.lint.rules import (
    calls,
    capabilities,
    content,
    envelope,
    errors,
    forms,
    handshake,
    headers,
    ids,
    lists,
    logs,
    methods,
    mirrors,
    modern,
    progress,
    questions,
    recording,
    requests,
    responses,
    security,
    session_ids,
    shapes,
    shutdown,
    tasks,
    tools,
    writing,
)

FAMILIES = {
    "ENV": "The envelope: JSON-RPC 2.0, and one message a line",
    "LIFE": "The life of a session, and of each request",
    "DATA": "What messages carry: tools, content, lists, error codes",
    "HTTP": "Streamable HTTP",
    "MOD": "What is new in 2026-07-28",
    "SEC": "Security",
    "REC": "The recording itself",
}
"""The letters of a code, and what its rules are about."""

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *envelope.RULES,
            *writing.RULES,
            *ids.RULES,
            *handshake.RULES,
            *capabilities.RULES,
            *methods.RULES,
            *logs.RULES,
            *requests.RULES,
            *progress.RULES,
            *shutdown.RULES,
            *shapes.RULES,
            *tools.RULES,
            *calls.RULES,
            *content.RULES,
            *lists.RULES,
            *errors.RULES,
            *tasks.RULES,
            *forms.RULES,
            *headers.RULES,
            *session_ids.RULES,
            *responses.RULES,
            *mirrors.RULES,
            *modern.RULES,
            *questions.RULES,
            *security.RULES,
            *recording.RULES,
        ),
        key=lambda rule: (list(FAMILIES).index(rule.family), rule.code),
    )
)
