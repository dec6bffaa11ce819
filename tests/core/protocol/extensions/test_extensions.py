"""The registry of extensions: its files, and a new one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.protocol.extensions import (
    EXTENSION_METHODS,
    EXTENSIONS,
    RESULT_TYPES,
    declared,
    is_defined_key,
    is_for_model,
)
from mcpspy.core.protocol.spec import METHODS, REVISIONS

ROOT = Path(__file__).resolve().parents[4]

MADE_UP = '''"""The extension Clocks."""

from mcpspy.core.protocol.extensions.extension import (
    FINAL, ExtensionDocument, ExtensionListing, ExtensionMethod, McpExtension,
)

EXTENSION = McpExtension(
    id="com.example/clocks",
    title="Clocks",
    state=FINAL,
    source="https://example.com/clocks",
    since="2026-07-28",
    methods=(ExtensionMethod("clocks/list", "client", "cursor"), ExtensionMethod("clocks/read", "client", "name")),
    listings=(ExtensionListing("clocks/list", "clocks", "name", "clock"),),
    documents=(ExtensionDocument("clock face", "/clock-face", "application/clock+json"),),
    secret_headers=("clock-key",),
    result_types=("tick",),
    meta=("com.example.mcp.clocks/",),
    shapes="""
request clocks/read  clocks#read
  + request
  name  string

result tick  clocks#read
  + result
  time  string  CLK101
""",
)
'''

RULE = """
from mcpspy.analysis.lint.rule import RULES, RuleGroup
from mcpspy.analysis.lint.finding import EventKind

RuleGroup(RULES, page="https://example.com/clocks").shape_error(
    "CLK101", "clock without a time", "A clock has a time.", on=EventKind.RESULT, valid="@ bare", invalid="@ bare"
)
"""

PLAY = """
import user_rule
from mcpspy.analysis.lint import EntryPosition, Linter
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.analysis.lint.rule import RULES
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.session.streaming import StreamingSession

CLIENT = "@ 2026-07-28\\n"
HELLO = '> {"id":1,"method":"server/discover"}\\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{%s}}}}\\n'
READ = '> {"id":2,"method":"clocks/read","params":{"name":%s,"_meta":{"com.example.mcp.clocks/a":1}}}\\n< {"id":2,"result":{"resultType":"tick"%s}}'

def codes(example):
    session, linter = StreamingSession(header_of(example)), Linter(header_of(example), RULES)
    changes = [change for entry in entries_of(example) for change in session.add(entry)]
    return [finding.code for change in changes for finding in linter.add(change, EntryPosition())]

from mcpspy.analysis.trust import Interface, compare
from mcpspy.core.protocol.extensions import document_of
from mcpspy.core.protocol.http_headers import recorded_headers
from mcpspy.core.trust.lock import TrustedItem, TrustedServer

trusted = TrustedServer(listed=("clocks",), items={"clocks": {"a": TrustedItem({"name": "a"})}})
print([change.why for _, change in compare(trusted, Interface(items={"clocks": {}})).changes])
print(recorded_headers([("Clock-Key", "x")]), document_of("/a/clock-face?x", "").name)
print(METHODS["clocks/read"].subject)
print(codes(CLIENT + HELLO % '"com.example/clocks":{}' + READ % ('"a"', ',"time":"now"')))
print(codes(CLIENT + HELLO % '"com.example/clocks":{}' + READ % ("7", "")))
print(codes(CLIENT + HELLO % "" + READ % ('"a"', ',"time":"now"')))
"""


@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=lambda extension: extension.title)
def test_an_extension_has_an_id_a_state_a_source_and_a_revision(extension: Any) -> None:
    prefix, _, name = extension.id.partition("/")

    assert "." in prefix
    assert name
    assert extension.state in ("final", "draft")
    assert extension.source.startswith("https://")
    assert extension.since in REVISIONS
    assert all(method.sender in ("client", "server") for method in extension.methods)
    assert set(extension.not_found) <= METHODS.keys()


def test_the_methods_of_extensions_are_known_methods() -> None:
    final = {name for name, (extension, _) in EXTENSION_METHODS.items() if extension.state == "final"}

    assert final <= METHODS.keys()
    assert "events/subscribe" not in METHODS
    assert METHODS["skills/get"].extension == "io.modelcontextprotocol/skills"
    assert METHODS["tools/list"].extension is None
    assert "task" in RESULT_TYPES


def test_the_extensions_of_a_peer_are_read_from_its_capabilities() -> None:
    assert declared({"extensions": {"a.b/c": {}}}) == {"a.b/c": {}}
    assert declared({"extensions": ["a.b/c"]}) == {}
    assert declared(None) == {}


def test_keys_of_meta_that_an_extension_defines_are_known() -> None:
    assert is_defined_key("io.modelcontextprotocol.skills/version")
    assert not is_defined_key("io.modelcontextprotocol.skillset")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"name": "a"}, True),
        ({"_meta": {"ui": {"visibility": ["model", "app"]}}}, True),
        ({"_meta": {"ui": {"resourceUri": "ui://a"}}}, True),
        ({"_meta": {"ui": {"visibility": ["app"]}}}, False),
        ({"_meta": {"ui": "app"}}, True),
        ({"uri": "ui://a", "mimeType": "text/html; profile=mcp-app"}, False),
        ({"uri": "a:b", "mimeType": "text/html"}, True),
    ],
)
def test_tools_and_pages_of_apps_are_not_for_the_model(item: dict[str, Any], expected: bool) -> None:
    assert is_for_model(item) is expected


def test_a_new_extension_is_one_file_and_one_rule(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "mcpspy", tmp_path / "mcpspy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mcpspy/core/protocol/extensions/clocks.py").write_text(MADE_UP)
    (tmp_path / "user_rule.py").write_text(RULE)
    (tmp_path / "play.py").write_text(PLAY)

    done = subprocess.run(
        [sys.executable, "play.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.splitlines() == [
        "['lost the clock a']", "{'clock-key': '[redacted]'} clock face",
        "name", "[]", "['DATA101', 'CLK101']", "['EXT101']",
    ], done.stderr  # fmt: skip
