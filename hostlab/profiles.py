"""Profiles of `mcpspy lint --host` and docs/host-limits.md, made from the results of measurements.

    .venv/bin/python -m hostlab.profiles [--check]

A profile keeps its limits with a source in the web; those that were measured are replaced. With --check nothing is
written, and the exit code is 1 if a file would change.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostlab.hosts import REVISIONS, ROOT
from hostlab.probes import CALLS, LENGTHS, PROBES, SIZES, Json
from mcpspy.analysis.lint.host_profiles import MEASURED, NAMES, HostLimit, profile

RESULTS = Path(__file__).resolve().parent / "results"
PROFILES = ROOT / "mcpspy" / "analysis" / "lint" / "hosts"
PAGE = ROOT / "docs" / "host-limits.md"

EFFECTS = {
    "renamed": "renames",
    "changed": "changes",
    "cut": "cuts",
    "dropped": "drops",
    "drops all": "drops-all",
}

CHARACTERS = (
    ("name-hyphen", "-"),
    ("name-dot", "."),
    ("name-slash", "/"),
    ("name-space", " "),
    ("name-colon", ":"),
)

ROOTS = {
    "root-no-type": "no type",
    "root-empty": "no type",
    "root-array": "array",
    "root-string": "string",
    "root-type-list": "types",
    "root-bad-type": "other",
    "schema-missing": "missing",
    "schema-null": "null",
    "schema-true": "boolean",
    "schema-list": "list",
}
"""Probe → kind of the root (`rules.hosts.root_kind`)."""

ROOT_KEYWORDS = {f"root-{word}": word for word in ("anyOf", "oneOf", "allOf", "not", "if", "enum")} | {
    "root-ref": "$ref"
}

KEYWORDS = {
    "nested-bad-type": "unknown type",
    "nested-any": "empty schema",
    "nested-true": "boolean schema",
    "nested-null": "null schema",
    "nested-type-list": "list of types",
    "nested-anyOf": "anyOf",
    "nested-oneOf": "oneOf",
    "nested-allOf": "allOf",
    "nested-not": "not",
    "nested-const": "const",
    "nested-ref": "$ref",
    "nested-external": "external $ref",
    "nested-no-items": "array without items",
    "nested-tuple": "items that is a list",
    "nested-prefixItems": "prefixItems",
    "nested-format": "format",
    "nested-limits": "pattern",
    "nested-exclusive": "boolean exclusiveMinimum",
    "nested-patternProperties": "patternProperties",
    "nested-if": "if",
}
"""Probe → keyword (`rules.hosts.keywords`)."""

PROPERTIES = {"property-dot": ".", "property-space": " ", "property-dollar": "$", "property-65": ""}
"""Probe → character in the name of its property."""

CONTENTS = {
    "result-image": "image",
    "result-audio": "audio",
    "result-link": "resource_link",
    "result-resource": "resource",
    "result-structured-only": "structuredContent",
}


def limits_of(measured: Json) -> Iterator[Json]:
    """Yield the limits that follow from the outcomes of a host."""
    outcomes: dict[str, list[str]] = measured["outcomes"]

    def effect(probe: str) -> str:
        return EFFECTS.get(outcomes.get(probe, ["arrived"])[0], "")

    added = len(measured["prefix"].replace("{server}", "probe"))
    over = [length for length in LENGTHS if effect(f"name-{length}")]
    if over:
        within = [length for length in LENGTHS if length < over[0]]
        yield {"on": "name-length", "effect": effect(f"name-{over[0]}"), "max": added + max(within)}
    allowed = "".join(character for probe, character in CHARACTERS if not effect(probe))
    if wrong := [probe for probe, _ in CHARACTERS if effect(probe)]:
        yield {"on": "name", "effect": effect(wrong[-1]), "pattern": f"[A-Za-z0-9_{re.escape(allowed)}]*"}
    yield from _grouped("root", ROOTS, effect)
    yield from _grouped("root-keyword", ROOT_KEYWORDS, effect)
    yield from _grouped("keyword", KEYWORDS, effect)
    if wrong := [probe for probe in PROPERTIES if effect(probe)]:
        allowed = "".join(
            re.escape(character) for probe, character in PROPERTIES.items() if not effect(probe)
        )
        most = "{1,64}" if effect("property-65") else "+"
        yield {"on": "property", "effect": effect(wrong[-1]), "pattern": f"[A-Za-z0-9_\\-{allowed}]{most}"}
    if (does := effect("output-no-type")) and effect("output-array"):
        yield {"on": "output", "effect": does}
    for probes in (("description-5000", "description-50000"), ("instructions",)):
        if found := [probe for probe in probes if effect(probe) in ("cuts", "drops")]:
            yield {
                "on": probes[0].partition("-")[0],
                "effect": "cuts",
                "max": int(outcomes[found[0]][1] or 0),
            }
    if effect("pages"):
        yield {"on": "pages", "effect": "drops"}
    if effect("list-changed") == "drops":
        yield {"on": "notification", "effect": "ignores", "words": ["notifications/tools/list_changed"]}
    if hidden := [word for probe, word in CONTENTS.items() if effect(probe) == "drops"]:
        yield {"on": "content", "effect": "drops", "words": hidden}
    if cut := [size for size in SIZES if effect(f"result-text-{size}")]:
        kept = [int(number) for number in re.findall(r"\d+", outcomes[f"result-text-{cut[0]}"][1])]
        whole = max((size for size in SIZES if size < cut[0]), default=0)
        yield {
            "on": "result",
            "effect": "cuts",
            "max": max(sum(kept), whole),
        }
    revisions = [probe.removeprefix("revision-") for probe in outcomes if probe.startswith("revision-")]
    if any(effect(f"revision-{revision}") for revision in revisions):
        yield {
            "on": "revision",
            "effect": "refuses",
            "words": [revision for revision in revisions if not effect(f"revision-{revision}")],
        }


def _grouped(on: str, words: dict[str, str], effect: Any) -> Iterator[Json]:
    groups: dict[str, list[str]] = {}
    for probe, word in words.items():
        if (does := effect(probe)) and word not in groups.setdefault(does, []):
            groups[does].append(word)
    for does, found in groups.items():
        yield {"on": on, "effect": does, "words": found}


def profile_of(measured: Json, current: str) -> str:
    """Return the text of a profile: its limits with other sources, and those that were measured."""
    before = tomllib.loads(current)
    sourced = [limit for limit in before.get("limits", []) if "source" in limit]
    head = {key: measured[key] for key in ("title", "version", "date")}
    head |= {"clients": [measured["client"]], "prefix": measured["prefix"]}
    lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
    for limit in (*sourced, *limits_of(measured)):
        lines += ["", "[[limits]]", *(f"{key} = {_toml(value)}" for key, value in limit.items())]
    for feature in before.get("features", []):
        lines += ["", "[[features]]", *(f"{key} = {_toml(value)}" for key, value in feature.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a string, a number, a boolean or a list of strings as TOML: they are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def measurements() -> list[Json]:
    """Return the results of all measured hosts."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]


def about() -> dict[str, str]:
    """Return what each probe is, by its name in the results, in the order of the page."""
    revisions = {f"revision-{revision}": f"`initialize` answered with {revision}" for revision in REVISIONS}
    return {
        **{probe.id: probe.about for probe in PROBES},
        "instructions": "instructions of 20,000 characters",
        "pages": "`tools/list` in pages",
        "list-changed": "`notifications/tools/list_changed`",
        **{f"result-{probe.id}": f"result: {probe.about}" for probe in CALLS if probe.id != "grow"},
        **revisions,
    }


_INTRODUCTION = """\
# Limits of hosts

What hosts do with the tools, texts and results of a server, measured by `make hostlab`, and reported by others.
`mcpspy lint --host` checks a session for these limits ([lint.md](lint.md#hosts)).

Generated by `hostlab/profiles.py`; `make hostlab` installs the hosts in the versions of
`hostlab/package.json`, runs each of them offline with a probing server behind `mcpspy run` and a scripted model, and
compares the messages of the server in the recording with the requests that reach the model. The model accepts
everything: what the API of a real model rejects is not in this table, but in the profile of `openai` and among the
reported limits.

"""


def page() -> str:
    """Return docs/host-limits.md."""
    hosts = measurements()
    lines = [_INTRODUCTION + "## Measured\n", "| host | version | date | how |", "|---|---|---|---|"]
    lines += [f"| {host['title']} | {host['version']} | {host['date']} | {host['how']} |" for host in hosts]
    lines += [
        "",
        "| host | `clientInfo.name` | requested revision | name of a tool for the model |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {host['title']} | `{host['client']}` | {host['revision']} | `{host['prefix']}TOOL` |"
        for host in hosts
    ]
    lines += [
        "",
        "`arrived`: as the server sent it. `drops all`: all tools of the server are missing in the request to the model.",
        "A name counts with what the host puts before it, here for a server with the name `probe`.",
        "",
        "| probe | " + " | ".join(host["title"] for host in hosts) + " |",
        "|---|" + "---|" * len(hosts),
    ]
    for probe, what in about().items():
        cells = [_cell(probe, host["outcomes"].get(probe)) for host in hosts]
        if any(cell != "arrived" for cell in cells) or not probe.startswith("name-"):
            lines.append(f"| {what} | " + " | ".join(cells) + " |")
    lines += ["", "## Reported", "", "| host | limit | source |", "|---|---|---|"]
    for name in NAMES:
        host = profile(name)
        for limit in host.limits:
            if limit.source != MEASURED:
                lines.append(f"| {host.title} | {_limit(limit)} | [{limit.cause(host)}]({limit.source}) |")
    return "\n".join(lines) + "\n"


def _limit(limit: HostLimit) -> str:
    bound = f"{limit.max:,}" if limit.max else ", ".join(limit.words) or f"`{limit.pattern}`"
    versions = f", {limit.since} to {limit.until}" if limit.is_of_versions else ""
    when = f", {limit.when}" if limit.when else ""
    return f"{limit.on}: {bound} ({limit.effect}{versions}{when})"


def _cell(probe: str, outcome: list[str] | None) -> str:
    if outcome is None:
        return ""
    status, detail = outcome
    if probe.startswith("name-") and detail:
        detail = f"`{detail}`" if len(detail) < 50 and " of " not in detail else ""
    if status == "cut" and detail.isdigit():
        detail = f"at {int(detail):,}"
    if status == "drops all" or probe == "tools-300":
        detail = ""
    return f"{status}: {detail}".removesuffix(": ").replace("|", "\\|").replace("cut: at", "cut at")


def made() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with its text."""
    for measured in measurements():
        path = PROFILES / f"{measured['host']}.toml"
        current = path.read_text(encoding="utf-8") if path.exists() else ""
        yield path, profile_of(measured, current)
    yield PAGE, page()


def main() -> int:
    """Write the files that are out of date, or list them."""
    is_checked = "--check" in sys.argv[1:]
    is_stale = False
    for path, text in made():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            is_stale = True
            print(path.relative_to(ROOT))
            if not is_checked:
                path.write_text(text, encoding="utf-8")
    return int(is_stale and is_checked)


if __name__ == "__main__":
    sys.exit(main())
