"""All lint rules, one module per family or part of a family. Add a new module to both lists here."""

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import (
    agent,
    capabilities,
    content,
    elicitation,
    encoding,
    hosts,
    http,
    http_sessions,
    jsonrpc,
    lifecycle,
    metadata,
    methods,
    oauth,
    schemas,
    security,
    stateless,
    subscriptions,
    tasks,
    tools,
    utilities,
)

FAMILIES = {
    "ENV": "Envelope: JSON-RPC 2.0 and message framing",
    "LIFE": "Life cycle of sessions and requests",
    "DATA": "Payloads: tools, content, lists, error codes",
    "HTTP": "Streamable HTTP",
    "AUTH": "OAuth over HTTP",
    "MOD": "New in 2026-07-28",
    "SEC": "Security",
    "AGENT": "Behaviour of the model and its host",
    "HOST": "Limits of hosts",
    "REC": "Recording",
}
"""Prefix of a code → the subject of its rules."""

RULES: tuple[LintRule, ...] = tuple(
    sorted(
        (
            *capabilities.RULES,
            *agent.RULES,
            *content.RULES,
            *elicitation.RULES,
            *encoding.RULES,
            *hosts.RULES,
            *http.RULES,
            *http_sessions.RULES,
            *jsonrpc.RULES,
            *lifecycle.RULES,
            *metadata.RULES,
            *methods.RULES,
            *oauth.RULES,
            *schemas.RULES,
            *security.RULES,
            *stateless.RULES,
            *subscriptions.RULES,
            *tasks.RULES,
            *tools.RULES,
            *utilities.RULES,
        ),
        key=lambda rule: (list(FAMILIES).index(rule.family), rule.code),
    )
)
