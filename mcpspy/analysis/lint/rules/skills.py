"""Skills: their entries, their files, and the requests for both."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
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
from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER

AGENT_SKILLS = "https://agentskills.io/specification"
MOST_FILES, MOST_BYTES = 512, 16 << 20
MOST_KEPT = 4096
"""Maximum number of skills and files that are remembered."""

_FILE = "/SKILL.md"
_FOLDER = "inode/directory"
_LISTS = ("skills/list", "skills/get")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONTMATTER = re.compile(r"(?s)\ufeff?---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|$)")
_FIELD = re.compile(r"([A-Za-z0-9_-]+):(?:[ \t]+(.*))?")

_URI = "skill://a/SKILL.md"
_TEXT = "---\\nname: a\\ndescription: b\\n---\\n# A\\n"
_DIGEST = "sha256:" + sha256(json.loads(f'"{_TEXT}"').encode()).hexdigest()
_ENTRY = '{"uri":"%s","digest":"' + _DIGEST + '","size":35}'
_SKILL = '{"uri":"%s","frontmatter":{"name":"%s","description":"b"%s},"resources":%s}'
_GOOD_SKILL = _SKILL % (_URI, "a", "", f"[{_ENTRY % _URI}]")
_LIST = HAS_SKILLS + '> {"id":2,"method":"skills/list"}\n< {"id":2,"result":{"skills":[%s]}}\n'
_GET = '> {"id":3,"method":"skills/get","params":{"uri":"%s"}}\n< {"id":3,%s}\n'
_READ = '> {"id":%d,"method":"resources/read","params":{"uri":"%s"}}\n< {"id":%d,"result":{"contents":[{"uri":"%s","mimeType":"text/markdown","text":"%s"}]}}\n'
_LOADED = _LIST % _GOOD_SKILL + _READ % (4, _URI, 4, _URI, _TEXT)
_CHILDREN = '> {"id":4,"method":"resources/directory/read","params":{"uri":"%s"}}\n< {"id":4,"result":{"resources":[{"uri":"%s","name":"b"}]}}'
_DIRECTORY = HAS_SKILLS + _CHILDREN
_RESOURCES = (
    _LIST % _GOOD_SKILL
    + '> {"id":3,"method":"resources/list"}\n< {"id":3,"result":{"resources":[{"uri":"skill://a/SKILL.md","name":"%s","description":"b","mimeType":"%s"}]}}'
)
_DISCOVER = '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{%s"extensions":{"io.modelcontextprotocol/skills":{}}}}}'

rule = RuleGroup(RULES, page=SOURCE + "#skill-entries")
entries = rule.group(
    on=EventKind.RESULT, by=SERVER, about=_LISTS, page=SOURCE + "#resources", valid=_LIST % _GOOD_SKILL
)
read = entries.group(about=(*_LISTS, "resources/read"), page=SOURCE + "#verification-on-read", valid=_LOADED)


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


def _book(event: LintEvent) -> SkillBook:
    return event.state.memory[SkillBook].learn(event)


def _directory(uri: str) -> str:
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
    valid=(_LIST % _GOOD_SKILL, _LIST % _SKILL % (_URI, "a", "", '"dynamic"')),
    invalid=(
        _LIST % _GOOD_SKILL.replace("sha256:", "md5:"),
        _LIST % _GOOD_SKILL.replace(',"size":35', ""),
        _LIST % _GOOD_SKILL.replace(',"description":"b"', ""),
        _LIST % _SKILL % (_URI, "a", "", '"none"'),
    ),
)


@entries.error(
    "EXT302",
    "name, path or description of a skill against the rules",
    page=AGENT_SKILLS + "#name-field",
    invalid=(
        _LIST % _SKILL % ("skill://b/SKILL.md", "a", "", '"dynamic"'),
        _LIST % _SKILL % ("skill://A_b/SKILL.md", "A_b", "", '"dynamic"'),
        _LIST % _SKILL % ("skill://a", "a", "", '"dynamic"'),
        _LIST % _SKILL.replace('"b"', '""') % (_URI, "a", "", '"dynamic"'),
        _LIST % _SKILL % (_URI, "a", ',"compatibility":"%s"' % ("c" * 501), '"dynamic"'),
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
        if isinstance(uri, str) and not uri.endswith(_FILE):
            yield Report(f"the URI of a skill does not end with {_FILE}: {uri[:80]}", uri)
        elif isinstance(uri, str) and isinstance(name, str):
            segment = unquote(uri.removesuffix(_FILE).rpartition("/")[2])
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
        _LIST % _SKILL % (_URI, "a", "", "[]"),
        _LIST % _SKILL % (_URI, "a", "", f"[{_ENTRY % _URI},{_ENTRY % _URI}]"),
        _LIST % _SKILL % (_URI, "a", "", f"[{_ENTRY % _URI},{_ENTRY % 'skill://b/c.md'}]"),
    ),
)
def files(event: LintEvent) -> Iterator[Report]:
    """`resources` lists every file of the skill once, its `SKILL.md` among them, and no other files: it is what a user
    approves and a host verifies.
    """
    for skill in skills_in(event):
        uri, listed = skill.get("uri"), skill.get("resources")
        if not isinstance(uri, str) or not isinstance(listed, list):
            continue
        counts = Counter(each["uri"] for each in objects(listed) if isinstance(each.get("uri"), str))
        if uri not in counts:
            yield Report(f"resources of {uri[:80]} do not have this file", skill)
        for file, count in counts.items():
            if count > 1:
                yield Report(f"file listed {count} times: {file[:80]}", file)
            elif not file.startswith(_directory(uri)) or "/../" in file:
                yield Report(f"file that is not in the directory of {uri[:80]}: {file[:80]}", file)


@entries.warning(
    "EXT304",
    "skill beyond the limits",
    page=SOURCE + "#limits",
    invalid=_LIST % _GOOD_SKILL.replace('"size":35', '"size":16777217'),
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


@read.error(
    "EXT306",
    "file of a skill with another digest or size",
    invalid=_LIST % _GOOD_SKILL + _READ % (4, _URI, 4, _URI, _TEXT.replace("# A", "# B")),
)
def other_content(event: LintEvent) -> Iterator[Report]:
    """A host compares each file that it reads with the latest entry of the skill, and does not use it if its bytes have
    another digest or size. After a change, it requests the entry again. Redacted texts are not compared.
    """
    book = _book(event)
    for item in event.listed("contents") if event.method == "resources/read" else ():
        file = book.files.get(str(item.get("uri")))
        data = _bytes(item)
        if file is None or data is None:
            continue
        if isinstance(size := file.get("size"), int) and size != len(data):
            yield Report(f"{str(item['uri'])[:80]} has {len(data):,} bytes, not {size:,}", file)
        elif str(file.get("digest")).startswith("sha256:") and file["digest"] != (
            digest := "sha256:" + sha256(data).hexdigest()
        ):
            yield Report(f"{str(item['uri'])[:80]} has the digest {digest[:20]}…", file)


def _bytes(item: dict[str, Any]) -> bytes | None:
    """Return the bytes of contents; None if they are redacted or cannot be decoded."""
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str):
        return None if TEXT_PLACEHOLDER.search(text) else text.encode("utf-8", "surrogatepass")
    try:
        return b64decode(blob, validate=True) if isinstance(blob, str) else None
    except binascii.Error:
        return None


@read.error(
    "EXT307",
    "frontmatter of a skill that differs from its entry",
    page=SOURCE + "#frontmatter-verification",
    invalid=(
        (_LIST % _GOOD_SKILL + _READ % (4, _URI, 4, _URI, _TEXT)).replace(
            '"description":"b"', '"description":"c"', 1
        ),
        _LIST % _SKILL % (_URI, "a", "", '"dynamic"') + _READ % (4, _URI, 4, _URI, "# A"),
        _LIST % _SKILL % (_URI, "a", "", '"dynamic"')
        + _READ % (4, _URI, 4, _URI, _TEXT.replace("name: a", "name: a\\nlicense: MIT")),
    ),
)
def other_frontmatter(event: LintEvent) -> Iterator[Report]:
    """`SKILL.md` begins with YAML frontmatter, and the entry has all of its fields, unchanged: a user approves the
    entry. Only texts of one line are compared.
    """
    book = _book(event)
    for item in event.listed("contents") if event.method == "resources/read" else ():
        skill, text = book.skills.get(str(item.get("uri"))), item.get("text")
        front = skill.get("frontmatter") if skill is not None else None
        if not isinstance(front, dict) or not isinstance(text, str) or TEXT_PLACEHOLDER.search(text):
            continue
        found = _FRONTMATTER.match(text)
        if found is None:
            yield Report(f"{str(item['uri'])[:80]} has no frontmatter", text)
            continue
        fields = _fields(found[1])
        for key in [*front, *(fields.keys() - front.keys())]:
            if (key in fields) is not (key in front):
                where = "entry" if key in front else "file"
                yield Report(f"only the {where} has the field {str(key)[:60]}", text)
            elif fields[key] is not None and isinstance(front[key], str) and fields[key] != front[key]:
                yield Report(f"{key[:60]} is {str(fields[key])[:60]!r} in the file", front)


def _fields(yaml: str) -> dict[str, str | None]:
    """Return the fields of frontmatter; None for a value that is not a text of one line."""
    found: dict[str, str | None] = {}
    last = ""
    for line in yaml.splitlines():
        if (field := _FIELD.fullmatch(line.rstrip())) is not None:
            last = field[1]
            found[last] = _scalar((field[2] or "").strip())
        elif line.strip() and line[:1] in " \t-":
            found[last] = None  # The value continues.
    found.pop("", None)
    return found


def _scalar(value: str) -> str | None:
    if value[:1] == '"' and value[-1:] == '"' and len(value) > 1:
        try:
            return str(json.loads(value))
        except ValueError:
            return None
    if value[:1] == "'" and value[-1:] == "'" and len(value) > 1:
        return value[1:-1].replace("''", "'")
    is_plain = value and value[0] not in "\"'|>[{&*!#%@`" and " #" not in value
    return value if is_plain else None


@rule.error(
    "EXT308",
    "skills/get of another URI than that of a skill",
    page=SOURCE + "#getting-a-skill",
    on=(EventKind.REQUEST, EventKind.RESULT),
    about="skills/get",
    valid=HAS_SKILLS + _GET % (_URI, f'"result":{{"skill":{_GOOD_SKILL}}}'),
    invalid=(
        HAS_SKILLS + _GET % ("skill://a", '"error":{"code":-32602,"message":"no"}'),
        HAS_SKILLS + _GET % ("skill://b/a/SKILL.md", f'"result":{{"skill":{_GOOD_SKILL}}}'),
    ),
)
def wrong_uri(event: LintEvent) -> Iterator[Report]:
    """A client requests the entry of a skill with the URI of its `SKILL.md`; the server returns this one."""
    if not isinstance(event.what, Result):
        if not (event.subject or _FILE).endswith(_FILE):
            yield Report(f"not the URI of a {_FILE[1:]}: {(event.subject or '')[:80]}")
        return
    for skill in skills_in(event):
        if event.subject is not None and skill.get("uri") not in (None, event.subject):
            yield Report(f"skill {str(skill['uri'])[:80]} instead of {event.subject[:80]}", skill)


@entries.error(
    "EXT309",
    "listed skill, file or directory that the server does not have",
    page=SOURCE + "#getting-a-skill",
    on=(EventKind.RESULT, EventKind.FAILURE),
    about=(*_LISTS, "resources/read", "resources/directory/read"),
    invalid=(
        _LIST % _GOOD_SKILL + _GET % (_URI, '"error":{"code":-32602,"message":"no"}'),
        _LIST % _GOOD_SKILL
        + (_GET % (_URI, '"error":{"code":-32602,"message":"no"}')).replace("skills/get", "resources/read"),
        _LIST % _GOOD_SKILL
        + (_GET % ("skill://a", '"error":{"code":-32602,"message":"no"}')).replace(
            "skills/get", "resources/directory/read"
        ),
    ),
)
def not_served(event: LintEvent) -> Iterable[Report]:
    """A server answers `skills/get` for every skill that it lists, and reads its files, and its directories if it has
    declared `directoryRead`.
    """
    book, uri = _book(event), event.subject or ""
    if isinstance(event.what, Result) or event.failure.code != -32602:
        return ()
    if event.method == "resources/directory/read":
        is_listed = any(file.startswith(uri.rstrip("/") + "/") for file in book.files)
    else:
        is_listed = uri in (book.skills if event.method == "skills/get" else book.files)
    return [Report(f"listed, and unknown to {event.method}: {uri[:80]}")] if is_listed else ()


@rule.error(
    "EXT310",
    "wrong children of a directory",
    page=SOURCE + "#reading-directories",
    on=(EventKind.REQUEST, EventKind.RESULT),
    about=(*_LISTS, "resources/directory/read"),
    valid=_DIRECTORY % ("skill://a", "skill://a/b.md"),
    invalid=(
        _LIST % _GOOD_SKILL.replace("]}", f",{_ENTRY % 'skill://a/c/d.md'}]}}")
        + _CHILDREN % ("skill://a", "skill://a/c"),
        _DIRECTORY % ("skill://a", "skill://a/c/b.md"),
        _DIRECTORY % ("skill://a", "skill://b/b.md"),
        _DIRECTORY % ("skill://a/", "skill://a/b.md"),
    ),
)
def children(event: LintEvent) -> Iterator[Report]:
    """The result has the direct children of the directory, and neither deeper ones nor others. The URI of a directory has
    no slash at its end, and its type is `inode/directory`.
    """
    book, uri = _book(event), event.subject or ""
    if event.method in _LISTS:
        return
    if not isinstance(event.what, Result):
        if uri.endswith("/"):
            yield Report(f"URI of a directory with a slash at its end: {uri[:80]}")
        return
    base = uri.rstrip("/") + "/"
    for item in event.listed("resources"):
        child = item.get("uri")
        if not isinstance(child, str):
            continue
        rest = child.removeprefix(base)
        if (rest == child and base.startswith("skill:")) or ("/" in rest.rstrip("/") and rest != child):
            yield Report(f"not a direct child of {uri[:80]}: {child[:80]}", child)
        elif child.endswith("/"):
            yield Report(f"URI of a directory with a slash at its end: {child[:80]}", child)
        elif item.get("mimeType") != _FOLDER and any(file.startswith(child + "/") for file in book.files):
            yield Report(f"directory that is not of type {_FOLDER}: {child[:80]}", item)


@read.warning(
    "EXT311",
    "SKILL.md without the metadata of its skill",
    page=SOURCE + "#resource-metadata",
    about=(*_LISTS, "resources/list", "resources/read"),
    valid=(_LOADED, _RESOURCES % ("a", "text/markdown")),
    invalid=(
        _RESOURCES % ("A", "text/markdown"),
        _RESOURCES % ("a", "text/plain"),
        _RESOURCES % ("a", 'text/markdown","_meta":{"description":"b"},"title":"a'),
    ),
)
def metadata(event: LintEvent) -> Iterator[Report]:
    """A `SKILL.md` has the type `text/markdown`; in `resources/list`, also the name and the description of its
    frontmatter. Other fields of it have the prefix `io.modelcontextprotocol.skills/` in `_meta`.
    """
    book = _book(event)
    is_list = event.method == "resources/list"
    items = event.listed("resources" if is_list else "contents") if event.method.startswith("res") else []
    for item in items:
        skill = book.skills.get(str(item.get("uri")))
        front = skill.get("frontmatter") if skill is not None else None
        if not isinstance(front, dict):
            continue
        media = str(item.get("mimeType", "")).partition(";")[0].strip().lower()
        if media != "text/markdown":
            yield Report(f"type of a SKILL.md is {media[:60] or '(none)'}, not text/markdown", item)
        for member in ("name", "description") if is_list else ():
            if item.get(member) != front.get(member):
                yield Report(f"{member} of the resource is not that of the skill {item['uri']}"[:160], item)
        meta = item.get("_meta")
        for key in meta if isinstance(meta, dict) else ():
            if key in front:
                yield Report(f"field of the frontmatter in _meta without its prefix: {key[:60]}", meta)


@entries.warning(
    "EXT312",
    "two skills of the same name",
    page=SOURCE + "#names",
    about="skills/list",
    invalid=_LIST % (_GOOD_SKILL + "," + _SKILL % ("skill://b/a/SKILL.md", "a", "", '"dynamic"')),
)
def same_name(event: LintEvent) -> Iterator[Report]:
    """The names of the listed skills should differ: users choose by name, and hosts show a part of the path otherwise."""
    fronts = objects([skill.get("frontmatter") for skill in skills_in(event)])
    for name, count in Counter(str(front.get("name")) for front in fronts).items():
        if count > 1:
            yield Report(f"{count} skills with the name {name[:64]!r}")


@rule.warning(
    "EXT313",
    "file that the entry of its skill does not list",
    page=SOURCE + "#the-acting-window-and-the-held-entry",
    on=(EventKind.REQUEST, EventKind.RESULT),
    about=(*_LISTS, "resources/read"),
    valid=_LOADED,
    invalid=_LOADED + _READ % (5, "skill://a/c.md", 5, "skill://a/c.md", "c"),
)
def unlisted(event: LintEvent) -> Iterator[Report]:
    """A host that has loaded a skill reads only the files that its entry lists, and requests the entry again if there may
    be others: the user has approved these files.
    """
    book, uri = _book(event), event.subject or ""
    if isinstance(event.what, Result) or event.method != "resources/read":
        return
    for skill in book.loaded:
        if (
            uri.startswith(_directory(skill))
            and isinstance(book.skills[skill].get("resources"), list)
            and uri not in book.files
        ):
            yield Report(f"file that {skill[:80]} does not list: {uri[:80]}")


@entries.warning(
    "EXT314",
    "reserved key in the metadata of a skill",
    page=SOURCE + "#reservations",
    invalid=_LIST % _SKILL % (_URI, "a", ',"metadata":{"io.modelcontextprotocol/x":"1"}', '"dynamic"'),
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """Keys of `metadata` with the prefix `io.modelcontextprotocol/` are for extensions of MCP, and none defines one."""
    for front in objects([skill.get("frontmatter") for skill in skills_in(event)]):
        keys = front.get("metadata")
        for key in keys if isinstance(keys, dict) else ():
            if key.startswith(META):
                yield Report(f"reserved key in metadata: {key[:80]}", front)
