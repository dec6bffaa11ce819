"""Skills: their entries, their files, and the requests for both."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from mcpspy.analysis.lint.event import LintEvent, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.extensions import HAS_SKILLS
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.skills import EXTENSION, SOURCE
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.spec import META, SERVER

AGENT_SKILLS = "https://agentskills.io/specification"
MOST_FILES, MOST_BYTES = 512, 16 << 20
MOST_KEPT = 4096
"""Maximum number of skills and files that are remembered."""

FILE = "/SKILL.md"
LISTS = ("skills/list", "skills/get")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

URI = "skill://a/SKILL.md"
TEXT = "---\\nname: a\\ndescription: b\\n---\\n# A\\n"
_DIGEST = "sha256:" + sha256(json.loads(f'"{TEXT}"').encode()).hexdigest()
ENTRY = '{"uri":"%s","digest":"' + _DIGEST + '","size":35}'
SKILL = '{"uri":"%s","frontmatter":{"name":"%s","description":"b"%s},"resources":%s}'
GOOD_SKILL = SKILL % (URI, "a", "", f"[{ENTRY % URI}]")
LIST = HAS_SKILLS + '> {"id":2,"method":"skills/list"}\n< {"id":2,"result":{"skills":[%s]}}\n'
_DISCOVER = '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{%s"extensions":{"io.modelcontextprotocol/skills":{}}}}}'

rule = RuleGroup(RULES, page=SOURCE + "#skill-entries")
entries = rule.group(
    on=EventKind.RESULT, by=SERVER, about=LISTS, page=SOURCE + "#resources", valid=LIST % GOOD_SKILL
)


class SkillBook:
    """The skills of a session, by their latest entries."""

    def __init__(self) -> None:
        self.skills: dict[str, dict[str, Any]] = {}
        """URI → entry."""
        self.files: dict[str, dict[str, Any]] = {}
        """URI → digest and size."""
        self.loaded: dict[str, None] = {}
        """URIs of the skills that were read."""
        self.learned: LintEvent | None = None

    def learn(self, event: LintEvent) -> SkillBook:
        """Add the skills in a result; a rule calls it for each of its events, whichever other rules are selected."""
        if self.learned is event or not isinstance(event.what, Result):
            return self
        self.learned = event
        if event.method == "resources/read" and event.subject in self.skills:
            self.loaded[event.subject or ""] = None
        for skill in skills_in(event):
            if isinstance(uri := skill.get("uri"), str) and len(self.skills) < MOST_KEPT:
                self.skills[uri] = skill
                for file in objects(skill.get("resources")):
                    if isinstance(name := file.get("uri"), str) and len(self.files) < MOST_KEPT:
                        self.files[name] = file
        return self


def skills_in(event: LintEvent) -> list[dict[str, Any]]:
    """Return the entries in a result of `skills/list` or `skills/get`."""
    if event.method == "skills/list":
        return event.listed("skills")
    return objects([event.result.get("skill")]) if event.method == "skills/get" else []


def book_of(event: LintEvent) -> SkillBook:
    return event.state.memory[SkillBook].learn(event)


def directory_of(uri: str) -> str:
    """Return the directory of a skill, with a slash at its end."""
    return uri.removesuffix("SKILL.md")


rule.shape_error(
    "EXT301",
    "invalid entry of a skill",
    """An entry has its `uri`, its `frontmatter` with `name` and `description`, and `resources`: `dynamic`, or a list of
    files, each with `uri`, `digest` (`sha256:` and 64 lower-case hexadecimal digits) and `size`. Hosts do not load other
    skills.
    """,
    on=EventKind.RESULT,
    valid=(LIST % GOOD_SKILL, LIST % SKILL % (URI, "a", "", '"dynamic"')),
    invalid=(
        LIST % GOOD_SKILL.replace("sha256:", "md5:"),
        LIST % GOOD_SKILL.replace(',"size":35', ""),
        LIST % GOOD_SKILL.replace(',"description":"b"', ""),
        LIST % SKILL % (URI, "a", "", '"none"'),
    ),
)


@entries.error(
    "EXT302",
    "name, path or description of a skill against the rules",
    page=AGENT_SKILLS + "#name-field",
    invalid=(
        LIST % SKILL % ("skill://b/SKILL.md", "a", "", '"dynamic"'),
        LIST % SKILL % ("skill://A_b/SKILL.md", "A_b", "", '"dynamic"'),
        LIST % SKILL % ("skill://a", "a", "", '"dynamic"'),
        LIST % SKILL.replace('"b"', '""') % (URI, "a", "", '"dynamic"'),
        LIST % SKILL % (URI, "a", ',"compatibility":"%s"' % ("c" * 501), '"dynamic"'),
    ),
)
def names(event: LintEvent) -> Iterator[Report]:
    """The URI of a skill ends with its name and `/SKILL.md`. A name has up to 64 lower-case letters, digits and single
    hyphens between them; a description has 1 to 1,024 characters, `compatibility` up to 500.
    """
    for skill in skills_in(event):
        uri, front = skill.get("uri"), skill.get("frontmatter")
        front = front if isinstance(front, dict) else {}
        name, description = front.get("name"), front.get("description")
        if isinstance(uri, str) and not uri.endswith(FILE):
            yield Report(f"the URI of a skill does not end with {FILE}: {uri[:80]}", uri)
        elif isinstance(uri, str) and isinstance(name, str):
            segment = unquote(uri.removesuffix(FILE).rpartition("/")[2])
            if segment != name:
                yield Report(f"skill {name[:64]!r} in the directory {segment[:64]!r}", uri)
        if isinstance(name, str) and not (_NAME.fullmatch(name) and len(name) <= 64):
            yield Report(f"not a valid name of a skill: {name[:80]!r}", name)
        if isinstance(description, str) and not 1 <= len(description.strip()) <= 1024:
            yield Report(f"description of {len(description)} characters", description)
        if isinstance(text := front.get("compatibility"), str) and len(text) > 500:
            yield Report(f"compatibility of {len(text)} characters", text)


@entries.error(
    "EXT303",
    "incomplete or wrong list of a skill's files",
    invalid=(
        LIST % SKILL % (URI, "a", "", "[]"),
        LIST % SKILL % (URI, "a", "", f"[{ENTRY % URI},{ENTRY % URI}]"),
        LIST % SKILL % (URI, "a", "", f"[{ENTRY % URI},{ENTRY % 'skill://b/c.md'}]"),
        LIST % (GOOD_SKILL + "," + SKILL % ("skill://a/b/SKILL.md", "b", "", '"dynamic"')),
    ),
)
def files(event: LintEvent) -> Iterator[Report]:
    """`resources` lists every file of the skill once, its `SKILL.md` and the files of nested skills among them, and no
    other files: it is what a user approves and a host verifies.
    """
    nested = {str(skill.get("uri")) for skill in skills_in(event)}
    for skill in skills_in(event):
        uri, listed = skill.get("uri"), skill.get("resources")
        if not isinstance(uri, str) or not isinstance(listed, list):
            continue
        counts = Counter(each["uri"] for each in objects(listed) if isinstance(each.get("uri"), str))
        if uri not in counts:
            yield Report(f"resources of {uri[:80]} do not have this file", skill)
        for inner in nested:
            if inner != uri and inner.startswith(directory_of(uri)) and inner not in counts:
                yield Report(f"resources of {uri[:80]} do not have the nested {inner[:80]}", skill)
        for file, count in counts.items():
            if count > 1:
                yield Report(f"file listed {count} times: {file[:80]}", file)
            elif not file.startswith(directory_of(uri)) or "/../" in file:
                yield Report(f"file that is not in the directory of {uri[:80]}: {file[:80]}", file)


@entries.warning(
    "EXT304",
    "skill beyond the limits",
    page=SOURCE + "#limits",
    invalid=LIST % GOOD_SKILL.replace('"size":35', '"size":16777217'),
)
def limits(event: LintEvent) -> Iterator[Report]:
    """Hosts must load skills of up to 512 files and 16 MiB; they may refuse larger ones."""
    for skill in skills_in(event):
        listed = objects(skill.get("resources"))
        size = sum(each["size"] for each in listed if isinstance(each.get("size"), int))
        if len(listed) > MOST_FILES or size > MOST_BYTES:
            yield Report(f"skill of {len(listed):,} files and {size:,} bytes", skill)


@rule.error(
    "EXT305",
    "server with skills and without resources",
    page=SOURCE + "#capability-negotiation",
    on=EventKind.RESULT,
    by=SERVER,
    about=("server/discover", "initialize"),
    valid=_DISCOVER % '"resources":{},',
    invalid=_DISCOVER % "",
)
def no_resources(event: LintEvent) -> Iterator[Report]:
    """Skills are read with `resources/read`, so their server declares `resources`."""
    capabilities = event.result.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    if EXTENSION.id in declared(capabilities) and capabilities.get("resources") is None:
        yield Report(f"{EXTENSION.id} without the capability resources", capabilities)


@entries.warning(
    "EXT312",
    "two skills of the same name",
    page=SOURCE + "#names",
    about="skills/list",
    invalid=LIST % (GOOD_SKILL + "," + SKILL % ("skill://b/a/SKILL.md", "a", "", '"dynamic"')),
)
def same_name(event: LintEvent) -> Iterator[Report]:
    """The names of the listed skills should differ: users choose by name, and hosts show a part of the path otherwise."""
    fronts = objects([skill.get("frontmatter") for skill in skills_in(event)])
    for name, count in Counter(str(front.get("name")) for front in fronts).items():
        if count > 1:
            yield Report(f"{count} skills with the name {name[:64]!r}")


@entries.warning(
    "EXT314",
    "reserved key in the metadata of a skill",
    page=SOURCE + "#reservations",
    invalid=LIST % SKILL % (URI, "a", ',"metadata":{"io.modelcontextprotocol/x":"1"}', '"dynamic"'),
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """Keys of `metadata` with the prefix `io.modelcontextprotocol/` are for extensions of MCP, and none defines one."""
    for front in objects([skill.get("frontmatter") for skill in skills_in(event)]):
        keys = front.get("metadata")
        for key in keys if isinstance(keys, dict) else ():
            if key.startswith(META):
                yield Report(f"reserved key in metadata: {key[:80]}", front)
