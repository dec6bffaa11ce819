"""All lint rules, one module per family or part of one; a new module is a row here."""

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import (
    content,
    elicitation,
    encoding,
    http,
    jsonrpc,
    lifecycle,
    methods,
    schemas,
    security,
    stateless,
    tasks,
    tools,
    utilities,
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
"""Letters of a code → the subject of its rules."""

RULES: tuple[LintRule, ...] = tuple(
    sorted(
        (
            *content.RULES,
            *elicitation.RULES,
            *encoding.RULES,
            *http.RULES,
            *jsonrpc.RULES,
            *lifecycle.RULES,
            *methods.RULES,
            *schemas.RULES,
            *security.RULES,
            *stateless.RULES,
            *tasks.RULES,
            *tools.RULES,
            *utilities.RULES,
        ),
        key=lambda rule: (list(FAMILIES).index(rule.family), rule.code),
    )
)
