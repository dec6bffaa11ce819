"""The causes, one module for each area; the order decides between claims that are equally specific."""

from mcpspy.analysis.explain.causes import (
    calls,
    connection,
    definitions,
    ending,
    environment,
    framing,
    http_sessions,
    matching,
    oauth,
    quoted,
    refusals,
    start,
    waiting,
)
from mcpspy.analysis.explain.claims import CAUSES as CAUSES

AREAS = (
    *(start, environment, framing, matching, waiting, connection, http_sessions),
    *(refusals, oauth, calls, definitions, ending, quoted),
)

_ORDER = [area.__name__ for area in AREAS]
CAUSES.sort(key=lambda kind: _ORDER.index(kind.claims.__module__))
