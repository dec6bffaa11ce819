"""The causes, one module for each area; the order decides between claims that are equally specific."""

from mcpspy.analysis.explain.causes import (
    apps,
    arguments,
    connection,
    definitions,
    ending,
    endpoints,
    environment,
    errors,
    framing,
    headers,
    hidden_refusals,
    http_sessions,
    http_sse,
    leaving,
    lost_sessions,
    matching,
    missing_tokens,
    noise,
    oauth,
    oauth_metadata,
    oauth_token,
    refusals,
    revisions,
    start,
    start_failures,
    statuses,
    streams,
    tokens,
    tools,
    unanswered,
    waiting,
    walls,
)
from mcpspy.analysis.explain.claims import CAUSES as CAUSES

AREAS = (
    *(
        start,
        start_failures,
        environment,
        framing,
        noise,
        matching,
        http_sse,
        streams,
        waiting,
        unanswered,
        connection,
        headers,
        http_sessions,
        lost_sessions,
        refusals,
        walls,
        statuses,
        endpoints,
    ),
    *(
        oauth_metadata,
        oauth,
        oauth_token,
        tokens,
        missing_tokens,
        tools,
        arguments,
        apps,
        revisions,
        hidden_refusals,
        errors,
        definitions,
        ending,
        leaving,
    ),
)

_ORDER = [area.__name__ for area in AREAS]
CAUSES.sort(key=lambda kind: _ORDER.index(kind.claims.__module__))

READ_RULES = frozenset().union(*(kind.rules for kind in CAUSES))
"""The rules of lint whose findings the causes read; the others need not be checked."""
