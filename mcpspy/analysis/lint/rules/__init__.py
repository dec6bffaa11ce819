"""All lint rules, one module per family or part of a family. Add a new module to the list here."""

from mcpspy.analysis.lint.rule import RULES as DECLARED
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import (  # noqa: F401 - They declare their rules.
    agent,
    apps,
    capabilities,
    cards,
    content,
    dpop,
    elicitation,
    encoding,
    event_delivery,
    events,
    extensions,
    hosts,
    http,
    http_requests,
    http_sessions,
    jsonrpc,
    lifecycle,
    metadata,
    methods,
    oauth,
    schemas,
    security,
    shutdown,
    skill_files,
    skills,
    stateless,
    subscriptions,
    task_extension,
    tasks,
    tools,
    utilities,
)

FAMILIES = {
    "ENV": "Envelope: JSON-RPC 2.0 and message framing",
    "LIFE": "Life cycle of sessions and requests",
    "DATA": "Payloads: tools, content, lists, error codes",
    "HTTP": "Streamable HTTP",
    "AUTH": "OAuth and DPoP over HTTP",
    "MOD": "New in 2026-07-28",
    "EXT": "Extensions: MCP Apps, Skills, Server Cards, Events (tasks are in DATA)",
    "SEC": "Security",
    "AGENT": "Behaviour of the model and its host",
    "HOST": "Limits of hosts",
    "REC": "Recording",
}
"""Prefix of a code → the subject of its rules."""

RULES: tuple[LintRule, ...] = tuple(
    sorted(DECLARED, key=lambda rule: (list(FAMILIES).index(rule.family), rule.code))
)
