"""The parameters of a request, as a person types them.

Owns the small language: JSON, `key=value`, `a.b=value`, `@FILE`, `-`. What is
given later is put over what was given before.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson

from mcpspy.errors import CannotStart, UsageError

HINT = """like '{"name":"echo"}', name=echo, arguments.text=hi, @params.json or - for stdin"""


def read_parameters(words: list[str]) -> dict[str, Any] | None:
    """Return the object that the words make; None if there are none. Raises UsageError or CannotStart."""
    if not words:
        return None
    found: dict[str, Any] = {}
    for word in words:
        if word == "-":
            _lay_over(found, _object(sys.stdin.read(), "stdin"))
        elif word.startswith("@"):
            _lay_over(found, _object(_read(word[1:]), word[1:]))
        elif word.lstrip().startswith(("{", "[")):
            _lay_over(found, _object(word, "PARAMS"))
        else:
            _set(found, word)
    return found


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise UsageError(f"send: {where}: not JSON: {error}", HINT) from None
    if not isinstance(value, dict):
        raise UsageError(f"send: {where}: parameters are an object", HINT)
    return value


def _set(found: dict[str, Any], word: str) -> None:
    path, equals, text = word.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise UsageError(f"send: {word}: no parameters", HINT)
    at = found
    for key in keys[:-1]:
        inner = at.setdefault(key, {})
        if not isinstance(inner, dict):
            raise UsageError(f"send: {word}: {key} is no object", HINT)
        at = inner
    at[keys[-1]] = _value(text)


def _value(text: str) -> Any:
    """Return what a value means: JSON, if it is any; else itself."""
    if text.startswith("@"):
        text = _read(text[1:])
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _lay_over(found: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        inner = found.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _lay_over(inner, value)
        else:
            found[key] = value


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"send: {file}: not UTF-8", "JSON is") from None
    except OSError as error:
        raise CannotStart(f"send: {file}: {error.strerror}", "is the path right?") from None
