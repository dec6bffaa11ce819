"""The causes, one module for each area; the order decides between claims that are equally specific."""

from mcpspy.analysis.explain.causes import (
    apps,
    connection,
    definitions,
    ending,
    endpoints,
    environment,
    errors,
    framing,
    headers,
    http_sessions,
    http_sse,
    leaving,
    matching,
    missing_tokens,
    oauth,
    oauth_metadata,
    refusals,
    revisions,
    start,
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
        environment,
        framing,
        matching,
        http_sse,
        streams,
        waiting,
        unanswered,
        connection,
        headers,
        http_sessions,
        refusals,
        walls,
        statuses,
        endpoints,
    ),
    *(
        oauth_metadata,
        oauth,
        tokens,
        missing_tokens,
        tools,
        apps,
        revisions,
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
