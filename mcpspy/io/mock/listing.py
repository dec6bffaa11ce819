"""The files of a mock without a recording: listings and fixtures.

A listing is a JSON file or a recording in which a client lists; fixtures are YAML or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcpspy.analysis.trust import interface_of
from mcpspy.core.mock.answer_rules import AnswerRules, rules_of_fixtures, rules_of_listing
from mcpspy.core.mock.listing import Fixture, ServerListing, listing_of_fixtures, read_fixtures, read_listing
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording

MAX_SIZE = 64 << 20
"""Bytes of a file with a listing or fixtures."""


def listing_at(name: str, find: Callable[[str], Path]) -> ServerListing:
    """Return the listing in a JSON file, or that of a session, which `find` finds. Raise UsageError or CannotStart."""
    if name.lower().endswith(".json") and Path(name).is_file():
        text = _text(Path(name))
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{name}: not JSON: {error}") from None
        return read_listing(value, name)
    session = Recording(find(name)).session()
    found = interface_of(session)
    if not found.items:
        raise UsageError(
            f"{name}: contains no complete list of tools, prompts or resources",
            "record a session in which the client lists them",
        )
    listing = ServerListing({member: list(items.values()) for member, items in found.items.items()})
    server = session.server
    if server is not None:
        listing.name, listing.version = server.name, server.version
    listing.instructions = found.instructions
    return listing


def fixtures_at(names: Sequence[str], listing: ServerListing | None) -> list[Fixture]:
    """Return the fixtures of files, in their order. Raise UsageError or CannotStart."""
    return [fixture for name in names for fixture in read_fixtures(_document(name), name, listing)]


def rules_of(
    listed: str | None,
    fixtures: Sequence[str],
    recordings: Sequence[Path],
    *,
    seed: str,
    find: Callable[[str], Path],
) -> AnswerRules | None:
    """Return the rules of a mock; None if it has only recordings. Raise UsageError or CannotStart."""
    if listed is None and not fixtures:
        return None
    if listed is not None:
        listing = listing_at(listed, find)
        return rules_of_listing(listing, fixtures_at(fixtures, listing), Path(listed).name, seed)
    written = fixtures_at(fixtures, None)
    if not recordings:
        return rules_of_listing(listing_of_fixtures(written), written, Path(fixtures[0]).name, seed)
    # Which revisions the server accepts is known when the recordings are read.
    versions = RecordingsLoader(recordings, (), merge=True).recordings().versions
    return rules_of_fixtures(written, versions)


def _document(name: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        # JSON is YAML 1.2, except for a few characters in strings, so it has its own reader.
        text = _text(Path(name))
        return json.loads(text) if name.lower().endswith(".json") else YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{name}: not {'JSON' if name.lower().endswith('.json') else 'YAML'}: {reason}"
        ) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_SIZE:
            raise UsageError(f"{path}: larger than {MAX_SIZE >> 20} MB")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
