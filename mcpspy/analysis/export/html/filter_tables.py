"""The names of the filter language as JSON, for the filter of the exported page (`filter.js`)."""

from __future__ import annotations

from typing import Any

from mcpspy.core.query import fields, lexer, values


def filter_tables() -> dict[str, Any]:
    return {
        "fields": dict(lexer.FIELDS),
        "numbers": list(lexer.NUMBERS),
        "statuses": {name: sorted(states) for name, states in fields.STATUSES.items()},
        "sameStatus": fields.SAME_STATUS,
        "kinds": list(fields.KINDS),
        "notes": list(fields.NOTES),
        "groups": list(fields.KIND_GROUPS),
        "sameKind": {name: list(kinds) for name, kinds in fields.SAME_KIND.items()},
        "sides": {side: list(names) for side, names in fields.SIDES.items()},
        "subjects": {name: sorted(methods) for name, methods in fields.SUBJECTS.items()},
        "times": values.TIMES,
        "sizes": values.SIZES,
        "slow": fields.SLOW,
    }
