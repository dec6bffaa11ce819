"""Profiles of hosts: what a host does with the tools, texts and results of a server.

A profile is a file hosts/NAME.toml, with the version of the host, a date, and the source of each limit. Profiles are
loaded when they are needed first, like modules: they are part of the package.
"""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct, convert, structs

NAMES = "claude-code claude-desktop codex cursor gemini-cli inspector openai vscode windsurf".split()

MEASURED = "measured"
"""The source of limits that `make hostlab` has measured with the version and on the date of the profile."""

_ISSUE = re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)")


class HostLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """One limit of a host."""

    on: str
    """The limited thing: in `CHECKS` of `rules.hosts`, or `tools`, `description`, `result` and others."""
    effect: str
    """The reaction of the host: `drops`, `drops-all`, `refuses`, `renames`, `changes`, `cuts`, `ignores`."""
    source: str = MEASURED
    max: int = 0
    """Characters of names and texts, bytes of results, tools, or seconds."""
    words: tuple[str, ...] = ()
    """Keywords, kinds of schemas, types of content, or revisions."""
    pattern: str = ""
    """A regular expression that names must match."""
    since: str = ""
    until: str = ""
    """The first and the last version of the host with the limit. It then replaces limits on the same thing."""
    when: str = ""
    """A condition that a session does not show: `in its Code tab`."""

    @property
    def is_of_versions(self) -> bool:
        return bool(self.since or self.until)

    def holds_in(self, version: str) -> bool:
        """Return True if the limit is one of this version of the host."""
        given = _numbers(version)
        return (not self.since or given >= _numbers(self.since)) and (
            not self.until or given <= _numbers(self.until)
        )

    def cause(self, host: HostProfile) -> str:
        """Return the source in a few words."""
        if self.source == MEASURED:
            return f"measured with {host.version} on {host.date}"
        found = _ISSUE.match(self.source)
        return f"{found[1]}#{found[2]}" if found is not None else self.source


class HostFeature(Struct, frozen=True, forbid_unknown_fields=True):
    """A feature that not every host shows, and whether this one does."""

    name: str
    """`apps`, `images` or `skills`."""
    is_shown: bool
    source: str = MEASURED


class HostProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of one host."""

    title: str
    version: str
    """The version that was measured, or that the latest source names."""
    date: str
    clients: tuple[str, ...] = ()
    """Values of `clientInfo.name` in its sessions."""
    prefix: str = ""
    """The text before a tool's name in requests to the model; `{server}` is the name of the server."""
    limits: tuple[HostLimit, ...] = ()
    features: tuple[HostFeature, ...] = ()

    @property
    def is_measured(self) -> bool:
        return any(limit.source == MEASURED for limit in self.limits)

    @property
    def certain(self) -> HostProfile:
        """The profile without limits under a condition: a session of the host need not meet it."""
        return structs.replace(self, limits=tuple(limit for limit in self.limits if not limit.when))

    def at(self, version: str) -> HostProfile:
        """Return the profile of a version; of the latest, if it is empty or no version."""
        known = version[:1].isdigit()
        ranged = [
            limit for limit in self.limits if limit.is_of_versions and known and limit.holds_in(version)
        ]
        replaced = {limit.on for limit in ranged}
        rest = [limit for limit in self.limits if not limit.is_of_versions and limit.on not in replaced]
        return structs.replace(self, limits=(*rest, *ranged))

    def of(self, *kinds: str) -> Iterator[HostLimit]:
        """Yield the limits on these things."""
        return (limit for limit in self.limits if limit.on in kinds)

    def qualified(self, name: str, server: str) -> str:
        """Return the name of a tool as the model sees it."""
        return self.prefix.replace("{server}", server) + name


@cache
def profile(name: str) -> HostProfile:
    """Return a profile by its name in `NAMES`."""
    data = pkgutil.get_data(__package__, f"hosts/{name}.toml")
    assert data is not None
    read: dict[str, Any] = tomllib.loads(data.decode())
    return convert(read, HostProfile)


@cache
def _by_client() -> dict[str, HostProfile]:
    return {client: profile(name) for name in NAMES for client in profile(name).clients}


def profile_of_client(client: str, version: str = "") -> HostProfile | None:
    """Return the profile of the host with this `clientInfo`; None if there is none."""
    found = _by_client().get(client)
    return None if found is None else found.at(version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison: those before the first part that is not a number."""
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].split(".") if part)  # type: ignore[index]  # It matches any text.


def chosen(words: str) -> tuple[HostProfile, ...]:
    """Return the profiles of names between commas, `all` or `none`; raise ValueError with an unknown name."""
    names = [word.strip().lower() for word in words.split(",") if word.strip()]
    if names == ["none"]:
        return ()
    unknown = next((name for name in names if name not in NAMES and name != "all"), None)
    if unknown is not None or not names:
        raise ValueError(unknown or words)
    return tuple(profile(name).at("") for name in (NAMES if "all" in names else dict.fromkeys(names)))
