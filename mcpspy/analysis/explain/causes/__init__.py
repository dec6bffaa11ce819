"""The causes, one module for each area; the order decides between claims that are equally specific."""

from mcpspy.analysis.explain.causes import (
    apps,
    calls,
    connection,
    definitions,
    ending,
    environment,
    framing,
    http_sessions,
    oauth,
    refusals,
    start,
    waiting,
)
from mcpspy.analysis.explain.claims import CAUSES as CAUSES

AREAS = (start, environment, framing, waiting, connection, http_sessions, refusals, oauth, calls, apps, definitions, ending)  # fmt: skip

_ORDER = [area.__name__ for area in AREAS]
CAUSES.sort(key=lambda kind: _ORDER.index(kind.claims.__module__))

READ_RULES = frozenset(
    """AGENT101 AGENT102 AGENT103 AGENT104 AUTH101 AUTH102 AUTH103 AUTH104 AUTH105 AUTH201 AUTH202 AUTH203
    AUTH204 DATA101 DATA102 DATA103 DATA201 DATA202 DATA206 DATA301 DATA302 DATA303 DATA304 DATA306
    DATA307 DATA401 DATA402 DATA403 DATA406 DATA411 DATA502 DATA503 DATA505 DATA603 DATA706 ENV101
    ENV102 ENV103 ENV104 ENV105 ENV106 ENV108 ENV110 ENV111 ENV113 ENV117 ENV118 ENV119 ENV201 ENV202
    ENV204 ENV205 ENV206 ENV207 ENV208 HOST101 HOST102 HOST106 HOST107 HOST201 HOST202 HOST301 EXT201 EXT202 EXT203 EXT204 EXT205 EXT206 EXT208 HOST302
    HOST303 HTTP101 HTTP102 HTTP103 HTTP104 HTTP106 HTTP202 HTTP205 HTTP301 HTTP302 HTTP303 HTTP304
    HTTP307 HTTP310 HTTP502 LIFE102 LIFE103 LIFE104 LIFE105 LIFE106 LIFE108 LIFE109 LIFE113 LIFE114
    LIFE115 LIFE202 LIFE302 LIFE303 LIFE401 LIFE402 LIFE403 LIFE404 LIFE405 LIFE406 MOD106 MOD108 MOD201
    MOD305 REC101""".split()
)
"""The rules of lint whose findings the causes read; the others need not be checked."""
