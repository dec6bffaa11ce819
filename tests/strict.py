"""Strict JSON, as three strict parsers read it: every line of every recording is that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson


def strict_json(line: bytes) -> Any:
    """Return the value of a line; raise ValueError unless three strict parsers accept it."""

    def reject(constant: str) -> None:
        raise ValueError(constant)

    msgspec.json.decode(line)
    orjson.loads(line)
    return json.loads(line.decode(), parse_constant=reject)
