"""The stages of redaction call only downwards, as the package's theory of operation states."""

from __future__ import annotations

import ast
from pathlib import Path

from mcpspy.core import redact

STAGES = (
    ("display",),
    ("redactor", "command_line"),
    ("walker", "private_keys", "url"),
    ("text",),
    ("connectors", "places", "encoded", "members"),
    ("patterns",),
    ("prefilter", "placeholder"),
    ("names", "literals", "format_table"),
)
"""From high to low. `config` and the rules of users are beside them."""


def test_no_stage_imports_one_above_it() -> None:
    assert redact.__file__ is not None
    folder = Path(redact.__file__).parent
    upwards = []
    for number, modules in enumerate(STAGES):
        above = {module for stage in STAGES[:number] for module in stage}
        for module in modules:
            tree = ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    names = [node.module.rpartition(".")[2], *(name.name for name in node.names)]
                    upwards += [f"{module} imports {name}" for name in names if name in above]
    # A recording's header has a command line; restoring a live value reads the text around its placeholder.
    allowed = {"redactor imports command_line", "placeholder imports text"}
    assert set(upwards) <= allowed
