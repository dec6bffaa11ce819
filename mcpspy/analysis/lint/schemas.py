"""JSON Schemas of tools: their validity, and validation of values.

Owns the only use of jsonschema-rs, imported with the first schema (0.03 s), and one cached validator per schema.
Fetches nothing: an external `$ref` makes a schema unusable (2026-07-28, basic, JSON Schema Usage). Never raises
an error for the input of a peer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import orjson

if TYPE_CHECKING:
    from jsonschema_rs import Validator

KEPT = 256
"""Maximum number of cached validators."""

LARGE = 1 << 18
"""Maximum bytes of a schema that is compiled: no tool has a larger one, and it could take a minute."""

EFFORT = 1_000_000
"""Maximum steps for one value: crafted schemas can take 2^30 (2026-07-28, Composition-Keyword Resource Use)."""

MOST = 3
"""Maximum number of reported violations of one value."""

_SCHEMES = ("http:", "https:", "file:", "ftp:")
_DIALECTS = ("2020-12/schema", "2019-09/schema", "draft-07/schema", "draft-06/schema", "draft-04/schema")


class ExternalReference(Exception):  # noqa: N818 - Names the cause.
    """A `$ref` points out of its schema."""


class SchemaViolation(NamedTuple):
    """A violation of a schema by a value."""

    path: tuple[str, ...]
    """Names and numbers of the items from the root to the value."""
    message: str
    lacks: str | None
    """The member that the value lacks, if it is that."""


class CheckedSchema(NamedTuple):
    """A schema and its validator."""

    validator: Validator | None
    why: str | None
    """The reason why the schema is invalid; None if it is valid, even without a validator for it."""
    fan: int = 0
    """References in a schema that refers to itself, each a branch at every level of a value; otherwise 0."""

    def accepts(self, value: Any) -> bool | None:
        """Return whether a value is valid; None if validation is not possible."""
        if self.validator is None or (self.fan > 1 and self.fan ** _depth(value) > EFFORT):
            return None
        try:
            return self.validator.is_valid(value)
        except (ValueError, RecursionError):  # Lone surrogates; nested too deep.
            return None

    def breaches(self, value: Any) -> list[str]:
        """Return the violations of a value, each below its root with a JSON pointer; none if validation is not possible."""
        found = []
        for each in self.violations(value, MOST):
            pointer = "".join(f"/{step}" for step in each.path)
            found.append(f"{pointer}: {each.message}" if pointer else each.message)
        return found

    def violations(self, value: Any, most: int) -> list[SchemaViolation]:
        """Return at most `most` violations of a value; none if validation is not possible."""
        if self.accepts(value) is not False or self.validator is None:
            return []
        try:
            found = []
            for error in self.validator.iter_errors(value):
                if _is_not_json(value, error.instance_path):
                    continue  # ENV117 reports it.
                lacks = getattr(error.kind, "property", None) if error.kind.name == "required" else None
                found.append(SchemaViolation(tuple(map(str, error.instance_path)), error.message, lacks))
                if len(found) == most:
                    break
            return found
        except (ValueError, RecursionError):  # Lone surrogates; nested too deep.
            return []


def _is_not_json(value: Any, path: Iterable[str | int]) -> bool:
    """Return whether a part is one that only Python reads: NaN or an infinity, which the validator takes for null."""
    for step in path:
        value = value[step]
    return isinstance(value, float) and not isfinite(value)


class SchemaCache:
    """The checked schemas of a session. `formats`: the validators assert the formats that they know."""

    def __init__(self, *, formats: bool = False) -> None:
        self._formats = formats
        self._checked: OrderedDict[bytes, CheckedSchema] = OrderedDict()

    def check(self, schema: Any) -> CheckedSchema:
        try:
            key = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
        except TypeError:
            return CheckedSchema(None, None)
        found = self._checked.get(key)
        if found is None:
            found = self._checked[key] = _check(schema, key, formats=self._formats)
            if len(self._checked) > KEPT:
                self._checked.popitem(last=False)
        return found


def outside_references(schema: Any) -> list[str]:
    """Return the `$ref`s of a schema that point to a network or a file."""
    found: list[str] = []
    todo = [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and reference.startswith(_SCHEMES) and not is_dialect(reference):
                found.append(reference)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found


def is_dialect(reference: str) -> bool:
    """Return whether a URI is that of a draft of JSON Schema that is known here."""
    return "json-schema.org/" in reference and reference.rstrip("#").endswith(_DIALECTS)


def _check(schema: Any, written: bytes, *, formats: bool) -> CheckedSchema:
    from jsonschema_rs import ReferencingError, ValidationError, validator_for

    if len(written) > LARGE:
        return CheckedSchema(None, None)
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is not None and not (isinstance(dialect, str) and is_dialect(dialect)):
        return CheckedSchema(None, None if isinstance(dialect, str) else "$schema is not a string")
    try:
        validator = validator_for(schema, retriever=_outside, validate_formats=formats)
        effort = SchemaCost(schema)
        return (
            CheckedSchema(validator, None, effort.fan)
            if effort.steps <= EFFORT
            else CheckedSchema(None, None)
        )
    except ReferencingError as error:
        return CheckedSchema(None, _first_line(error))
    except ValidationError as error:
        if outside_references(schema):
            return CheckedSchema(None, None)  # DATA203 reports it.
        where = "".join(f"/{step}" for step in error.instance_path)
        return CheckedSchema(None, f"{where}: {_first_line(error)}" if where else _first_line(error))
    except RecursionError:
        return CheckedSchema(None, None)
    except ValueError as error:
        return CheckedSchema(None, _first_line(error))


class SchemaCost:
    """Upper bound of the steps that validation by a schema takes."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._known: dict[int, int] = {}
        self._active: set[int] = set()
        self._references = 0
        self._is_recursive = False
        self.steps = self._steps(schema)
        """At each level of a value; references count each time."""

    @property
    def fan(self) -> int:
        """See `CheckedSchema`."""
        return self._references if self._is_recursive else 0

    def _steps(self, node: Any) -> int:
        if isinstance(node, list):
            return sum(map(self._steps, node))
        if not isinstance(node, dict):
            return 0
        number = id(node)
        if number in self._active:
            self._is_recursive = True
            return 1
        if number not in self._known:
            self._active.add(number)
            steps = 1 + sum(map(self._steps, node.values()))
            for key in ("$ref", "$dynamicRef", "$recursiveRef"):
                if isinstance(reference := node.get(key), str):
                    self._references += 1
                    steps += self._referred(reference)
            self._active.discard(number)
            self._known[number] = min(steps, EFFORT + 1)
        return self._known[number]

    def _referred(self, reference: str) -> int:
        target = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - RFC 6901, 4.
            target = target.get(step) if isinstance(target, dict) else _item(target, step)
        if reference != "#" and not reference.startswith("#/"):
            self._is_recursive = True  # An anchor or a URL may lead anywhere.
            return 1
        return self._steps(target)


def _item(value: Any, step: str) -> Any:
    return (
        value[int(step)] if isinstance(value, list) and step.isdecimal() and int(step) < len(value) else None
    )


def _depth(value: Any) -> int:
    """Return the number of levels of a value."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
    return depth


def _outside(uri: str) -> Any:
    raise ExternalReference(uri)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
