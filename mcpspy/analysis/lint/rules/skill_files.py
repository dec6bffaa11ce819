"""The files of skills, compared with their entries, and requests for one skill or a directory."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import Report
from mcpspy.analysis.lint.rules.extensions import HAS_SKILLS
from mcpspy.analysis.lint.rules.skills import (
    ENTRY,
    FILE,
    GOOD_SKILL,
    LIST,
    LISTS,
    SKILL,
    TEXT,
    URI,
    book_of,
    directory_of,
    entries,
    rule,
    skills_in,
)
from mcpspy.core.protocol.extensions.skills import SOURCE
from mcpspy.core.protocol.message import Result
from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER

_FOLDER = "inode/directory"
_FRONTMATTER = re.compile(r"(?s)\ufeff?---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|$)")
_FIELD = re.compile(r"([A-Za-z0-9_-]+):(?:[ \t]+(.*))?")

_GET = '> {"id":3,"method":"skills/get","params":{"uri":"%s"}}\n< {"id":3,%s}\n'
_READ = '> {"id":%d,"method":"resources/read","params":{"uri":"%s"}}\n< {"id":%d,"result":{"contents":[{"uri":"%s","mimeType":"text/markdown","text":"%s"}]}}\n'
_LOADED = LIST % GOOD_SKILL + _READ % (4, URI, 4, URI, TEXT)
_CHILDREN = '> {"id":4,"method":"resources/directory/read","params":{"uri":"%s"}}\n< {"id":4,"result":{"resources":[{"uri":"%s","name":"b"}]}}'
_DIRECTORY = HAS_SKILLS + _CHILDREN
_RESOURCES = (
    LIST % GOOD_SKILL
    + '> {"id":3,"method":"resources/list"}\n< {"id":3,"result":{"resources":[{"uri":"skill://a/SKILL.md","name":"%s","description":"b","mimeType":"%s"}]}}'
)

read = entries.group(about=(*LISTS, "resources/read"), page=SOURCE + "#verification-on-read", valid=_LOADED)


@read.error(
    "EXT306",
    "file of a skill with another digest or size",
    invalid=LIST % GOOD_SKILL + _READ % (4, URI, 4, URI, TEXT.replace("# A", "# B")),
)
def other_content(event: LintEvent) -> Iterator[Report]:
    """A host compares each file that it reads with the latest entry of the skill, and does not use it if its bytes have
    another digest or size. After a change, it requests the entry again. Redacted texts are not compared.
    """
    book = book_of(event)
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
    except ValueError:  # It is not Base64, or not ASCII.
        return None


@read.error(
    "EXT307",
    "frontmatter of a skill that differs from its entry",
    page=SOURCE + "#frontmatter-verification",
    invalid=(
        (LIST % GOOD_SKILL + _READ % (4, URI, 4, URI, TEXT)).replace(
            '"description":"b"', '"description":"c"', 1
        ),
        LIST % SKILL % (URI, "a", "", '"dynamic"') + _READ % (4, URI, 4, URI, "# A"),
        LIST % SKILL % (URI, "a", "", '"dynamic"')
        + _READ % (4, URI, 4, URI, TEXT.replace("name: a", "name: a\\nlicense: MIT")),
    ),
)
def other_frontmatter(event: LintEvent) -> Iterator[Report]:
    """`SKILL.md` begins with YAML frontmatter, and the entry has all of its fields, unchanged: a user approves the
    entry. Only texts of one line are compared.
    """
    book = book_of(event)
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
    valid=HAS_SKILLS + _GET % (URI, f'"result":{{"skill":{GOOD_SKILL}}}'),
    invalid=(
        HAS_SKILLS + _GET % ("skill://a", '"error":{"code":-32602,"message":"no"}'),
        HAS_SKILLS + _GET % ("skill://b/a/SKILL.md", f'"result":{{"skill":{GOOD_SKILL}}}'),
    ),
)
def wrong_uri(event: LintEvent) -> Iterator[Report]:
    """A client requests the entry of a skill with the URI of its `SKILL.md`; the server returns this one."""
    if not isinstance(event.what, Result):
        if not (event.subject or FILE).endswith(FILE):
            yield Report(f"not the URI of a {FILE[1:]}: {(event.subject or '')[:80]}")
        return
    for skill in skills_in(event):
        if event.subject is not None and skill.get("uri") not in (None, event.subject):
            yield Report(f"skill {str(skill['uri'])[:80]} instead of {event.subject[:80]}", skill)


@entries.error(
    "EXT309",
    "listed skill, file or directory that the server does not have",
    page=SOURCE + "#getting-a-skill",
    on=(EventKind.RESULT, EventKind.FAILURE),
    about=(*LISTS, "resources/read", "resources/directory/read"),
    invalid=(
        LIST % GOOD_SKILL + _GET % (URI, '"error":{"code":-32602,"message":"no"}'),
        LIST % GOOD_SKILL
        + (_GET % (URI, '"error":{"code":-32602,"message":"no"}')).replace("skills/get", "resources/read"),
        LIST % GOOD_SKILL
        + (_GET % ("skill://a", '"error":{"code":-32602,"message":"no"}')).replace(
            "skills/get", "resources/directory/read"
        ),
    ),
)
def not_served(event: LintEvent) -> Iterable[Report]:
    """A server answers `skills/get` for every skill that it lists, and reads its files, and its directories if it has
    declared `directoryRead`.
    """
    book, uri = book_of(event), event.subject or ""
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
    about=(*LISTS, "resources/directory/read"),
    valid=_DIRECTORY % ("skill://a", "skill://a/b.md"),
    invalid=(
        LIST % GOOD_SKILL.replace("]}", f",{ENTRY % 'skill://a/c/d.md'}]}}")
        + _CHILDREN % ("skill://a", "skill://a/c"),
        _DIRECTORY % ("skill://a", "skill://a/c/b.md"),
        _DIRECTORY % ("skill://a", "skill://b/b.md"),
        _DIRECTORY % ("skill://a/", "skill://a/b.md"),
        LIST % GOOD_SKILL + _CHILDREN % (URI, URI + "/b"),
    ),
)
def children(event: LintEvent) -> Iterator[Report]:
    """The result has the direct children of the directory, and neither deeper ones nor others. The URI of a directory has
    no slash at its end, and its type is `inode/directory`.
    """
    book, uri = book_of(event), event.subject or ""
    if event.method in LISTS:
        return
    if not isinstance(event.what, Result):
        if uri.endswith("/"):
            yield Report(f"URI of a directory with a slash at its end: {uri[:80]}")
        return
    if uri in book.files:
        yield Report(f"{uri[:80]} is a file, and was read as a directory: the error is -32602")
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
    about=(*LISTS, "resources/list", "resources/read"),
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
    book = book_of(event)
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


@rule.warning(
    "EXT313",
    "file that the entry of its skill does not list",
    page=SOURCE + "#the-acting-window-and-the-held-entry",
    on=(EventKind.REQUEST, EventKind.RESULT),
    about=(*LISTS, "resources/read"),
    valid=_LOADED,
    invalid=_LOADED + _READ % (5, "skill://a/c.md", 5, "skill://a/c.md", "c"),
)
def unlisted(event: LintEvent) -> Iterator[Report]:
    """A host that has loaded a skill reads only the files that its entry lists, and requests the entry again if there may
    be others: the user has approved these files.
    """
    book, uri = book_of(event), event.subject or ""
    if isinstance(event.what, Result) or event.method != "resources/read":
        return
    for skill in book.loaded:
        if (
            uri.startswith(directory_of(skill))
            and isinstance(book.skills[skill].get("resources"), list)
            and uri not in book.files
        ):
            yield Report(f"file that {skill[:80]} does not list: {uri[:80]}")
