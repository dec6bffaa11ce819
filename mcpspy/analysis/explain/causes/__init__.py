"""The causes, one module for each area; the order decides between claims that are equally specific."""

from mcpspy.analysis.explain.causes import (
    calls,
    connection,
    definitions,
    ending,
    environment,
    framing,
    oauth,
    quoted,
    refusals,
    start,
    waiting,
)
from mcpspy.analysis.explain.claims import CAUSES as CAUSES

AREAS = (
    start,
    environment,
    framing,
    waiting,
    connection,
    refusals,
    oauth,
    calls,
    definitions,
    ending,
    quoted,
)
