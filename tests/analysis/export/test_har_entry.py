"""The members that HAR 1.2 requires of every entry, in the archives of all recordings."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcpspy.analysis.export.har import entry_request, entry_response, entry_times, export
from tests.analysis.export.sessions import EVERY, call, recorded, result, session_of

SCHEMAS = Path(__file__).parents[3] / ".peers" / "node_modules" / "har-schema" / "lib"

TIMES = ("blocked", "dns", "connect", "ssl", "send", "wait", "receive")


@cache
def schema() -> jsonschema_rs.Validator:
    """Return the schema of HAR 1.2 from npm's har-schema, the usual one: there is no official schema."""
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob("*.json")}
    # The files refer to each other by name; names in a schema without a base URI are resolved against this one.
    registry = jsonschema_rs.Registry([(f"json-schema:///{name}", file) for name, file in files.items()])
    return jsonschema_rs.validator_for(files["har.json"], registry=registry, validate_formats=True)


def valid(text: str) -> dict[str, Any]:
    """Return an archive that is valid by the schema, and by checks beyond it."""
    archive: dict[str, Any] = json.loads(text)
    assert [str(error) for error in schema().iter_errors(archive)] == []
    pages = [page["id"] for page in archive["log"]["pages"]]
    assert len(set(pages)) == len(pages)
    for entry in archive["log"]["entries"]:
        timings = entry["timings"]
        assert set(timings) == set(TIMES)
        assert all(timings[name] >= 0 for name in ("send", "wait", "receive"))
        assert all(timings[name] == -1 for name in ("blocked", "dns", "connect", "ssl"))
        assert entry["time"] == pytest.approx(timings["wait"] + timings["receive"], abs=1e-9)
        assert entry["pageref"] in pages
        assert datetime.fromisoformat(entry["startedDateTime"]).tzinfo is not None
    custom = {key for entry in archive["log"]["entries"] for key in entry if key.startswith("_")}
    assert custom <= {"_resourceType", "_http", "_from", "_exchange", "_error"}
    return archive


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_the_archive_of_every_recording_is_valid(path: Path) -> None:
    archive = valid("".join(export([recorded(path)])))

    assert len(archive["log"]["entries"]) >= 1
    assert [page["title"] for page in archive["log"]["pages"]] == [path.stem]


def test_the_schema_rejects_an_invalid_archive() -> None:
    archive = json.loads("".join(export([session_of(call(0.1), result(0.2))])))
    del archive["log"]["entries"][0]["request"]["headersSize"]

    assert not schema().is_valid(archive)


def test_several_sessions_and_none_are_valid_too() -> None:
    two = valid("".join(export([session_of(call(0.1)), session_of(call(0.2), result(0.3))])))

    assert [entry["pageref"] for entry in two["log"]["entries"]] == [
        page["id"] for page in two["log"]["pages"]
    ]
    assert valid("".join(export([])))["log"]["entries"] == []


def test_a_body_that_is_not_utf_8_is_base64_and_a_missing_body_is_omitted() -> None:
    response = entry_response(200, None, {"content-type": "x"}, b"\xff")
    request = entry_request("POST", "http://h/p?a=1&b=", {}, b"\xff")

    assert response["content"]["encoding"] == "base64"
    assert b64decode(response["content"]["text"]) == b"\xff"
    assert b64decode(request["postData"]["text"]) == b"\xff"
    assert request["queryString"] == [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert "postData" not in entry_request("GET", "http://h/", {}, None)
    assert "text" not in entry_response(204, None, {}, b"")["content"]


def test_no_time_is_negative() -> None:
    assert entry_times(-1.0, 0.0125)["timings"]["wait"] == 0
    assert entry_times(0.001, 0.0125)["time"] == 13.5
