"""Judge messages by the models of the Python SDK: one verdict per line of stdin, as JSON.

Types are not converted (the SDK itself takes "1" for 1). A line is `[revision, sender, kind, method, value]`; a verdict is null (accepted), the place and the reason of the first
error, or `?` if the models do not have the message. With SDK 1.x, all revisions have the models of its last one.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError


@cache
def adapter(revision: str, sender: str, kind: str, method: str) -> TypeAdapter[Any] | None:
    """Return what validates a message; None if the SDK does not know it."""
    try:
        from mcp_types import methods
    except ImportError:
        found = _of_version_1(kind, method)
    else:
        maps = {"request": "REQUESTS", "notification": "NOTIFICATIONS", "result": "RESULTS"}
        found = getattr(methods, f"{sender.upper()}_{maps[kind]}").get((method, revision))
    return None if found is None else TypeAdapter(found)


def _of_version_1(kind: str, method: str) -> Any:
    import mcp.types

    for name, each in vars(mcp.types).items():
        field = getattr(each, "model_fields", {}).get("method")
        if field is not None and method in get_args(field.annotation):
            return (
                each
                if kind != "result"
                else getattr(mcp.types, name.replace("Request", "Result"), mcp.types.EmptyResult)
            )
    return getattr(mcp.types, "CreateTaskResult", None) if method == "task" else None


for line in sys.stdin:
    revision, sender, kind, method, value = json.loads(line)
    judge = adapter(revision, sender, kind, method)
    if judge is None:
        print('"?"')
        continue
    try:
        identified = {"id": 1} if kind == "request" else {}
        message = {"jsonrpc": "2.0", **identified, "method": method, "params": value}
        judge.validate_json(json.dumps(value if kind == "result" else message), strict=True)
        print("null")
    except ValidationError as error:
        first = error.errors()[0]
        print(json.dumps(f"{'.'.join(map(str, first['loc']))}: {first['msg']}"))
